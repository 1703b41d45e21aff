# -------------------------------------------------------------------------------------------------------------- files

files_load() { # N: what to do with file N into f_…; paths as the node sees them, "-" for none. Read once, then kept in `f_notes`
  local line noted
  f_path='' f_before='' f_after='' f_old='' f_new='' f_made=''
  set -- "$T/file.$1"
  line=''
  IFS=$NL
  for noted in $f_notes; do
    case $noted in "$1 "*) line=${noted#"$1 "} ;; esac
  done
  unset IFS
  if [ -z "$line" ]; then
    read -r line 2>/dev/null <"$1" || return 1
    f_notes="$f_notes$1 $line$NL"
  fi
  # shellcheck disable=SC2086 # split into words
  set -- $line
  [ "$#" -ge 5 ] || return 1
  f_path=$1 f_before=$2 f_after=$3 f_old=$4 f_new=$5
  shift 5
  f_made=$*
}

files_digest() { # PATH…: sums, for files_is_as. False, with `why`, if they are not known, where that is no reason to refuse
  local summed
  files_sum "$@"
  summed=$?
  files_failed_as "$summed" sha256sum
}

files_sum() { # PATH…: the same, whatever sha256sum did: its status; one process for all that are there: some versions end at the first that is not
  local digestible summed
  f_digested=" $*"
  for digestible in "$@"; do
    shift
    [ ! -f "$digestible" ] || set -- "$@" "$digestible"
  done
  f_sums=$NL
  [ "$#" -gt 0 ] || return 0
  f_sums=$(sha256sum -- "$@" 2>/dev/null)
  summed=$?
  f_sums=$NL$f_sums$NL
  return "$summed"
}

files_failed_as() { # STATUS PROGRAM: it was not started, or was killed: what it would have shown is unknown. A trigger tries again, a verb refuses.
  # One that failed has shown a part: a revert does what it can, and a change refuses. Once a transaction is armed here, nothing is refused: its
  # caller ends it, for which this is false, with `why`
  case $1,$verb in
    0,* | 1,guard | 1,watch | 1,boot | 1,revert | 1,status | 1,verify | 1,snapshot) return 0 ;;
    *,guard | *,watch | *,boot) exit 1 ;;
  esac
  tell_end "$1"
  why="$2 $w_ended"
  [ "$f_armed" = 0 ] || return 1
  refuse program-failed "$why"
}

files_lacks_sum() { # PATH: a regular file of which `files_digest` got no sum
  [ -f "$R$1" ] && [ ! -L "$R$1" ] || return 1
  case $f_sums in *"  $R$1$NL"*) return 1 ;; esac
}

files_is_as() { # DIGEST PATH: a regular file that had this digest when `files_digest` ran; or `absent`, and there is no file
  if [ "$1" = absent ]; then
    [ ! -e "$R$2" ] && [ ! -L "$R$2" ]
  else
    [ -f "$R$2" ] && [ ! -L "$R$2" ] || return 1
    case $f_sums in *"$NL$1  $R$2$NL"*) ;; *) return 1 ;; esac
  fi
}

files_targets() { # the targets of the loaded receipt into `f_paths`; into `f_copies` the copies of the old files
  local n copy
  f_paths='' f_copies='' n=1
  while [ "$n" -le "$r_files" ]; do
    files_load "$n" && f_paths="$f_paths $R$f_path"
    for copy in "$R$f_old" "$T/old.$n" "$T/twin.$n"; do
      case "$f_copies " in *" $copy "*) ;; *) f_copies="$f_copies $copy" ;; esac
    done
    n=$((n + 1))
  done
}

files_folders() { # the existing folders of `f_paths` into `f_dirs`
  local path
  f_dirs=''
  for path in $f_paths; do
    path=${path%/*}
    until [ -d "$path" ]; do path=${path%/*}; done
    case " $f_dirs " in *" $path "*) ;; *) f_dirs="$f_dirs $path" ;; esac
  done
}

files_near() { # N: the path, without its ending, of the loaded file's copies if they cannot be in the transaction's folder
  local topmost
  f_near=${f_path%/*}
  for topmost in $f_made; do f_near=${topmost%/*} && break; done
  case $f_near in *.d) f_near=${f_near%/*} ;; esac # never where a reader's pattern could match
  f_near=$f_near/.rollout-$tx.$1
}

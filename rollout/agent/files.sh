# -------------------------------------------------------------------------------------------------------------- files

load_file() { # N: what to do with file N into f_…; paths as the node sees them, "-" for none. Read once, then kept in `notes`
  f_path='' f_before='' f_after='' f_old='' f_new='' f_made=''
  set -- "$T/file.$1"
  line=''
  IFS=$NL
  for noted in $notes; do
    case $noted in "$1 "*) line=${noted#"$1 "} ;; esac
  done
  unset IFS
  if [ -z "$line" ]; then
    read -r line 2>/dev/null <"$1" || return 1
    notes="$notes$1 $line$NL"
  fi
  # shellcheck disable=SC2086 # split into words
  set -- $line
  [ "$#" -ge 5 ] || return 1
  f_path=$1 f_before=$2 f_after=$3 f_old=$4 f_new=$5
  shift 5
  f_made=$*
}

digest() { # PATH…: sums, for is_as; one process for all that are there: some versions end at the first that is not
  digested=" $*"
  for digestible in "$@"; do
    shift
    [ ! -f "$digestible" ] || set -- "$@" "$digestible"
  done
  sums=$NL
  [ "$#" -eq 0 ] || sums=$NL$(sha256sum -- "$@" 2>/dev/null)$NL
  case $?,$sums in 12[67],*) do_without sha256sum ;; esac
}

do_without() { # PROGRAM: it was not started. What it would have shown is unknown: a trigger tries again, a verb refuses
  case $verb in guard | watch | boot) exit 1 ;; *) refuse not-started "$1 could not be started" ;; esac
}

is_as() { # DIGEST PATH: a regular file that had this digest when `digest` ran; or `absent`, and there is no file
  if [ "$1" = absent ]; then
    [ ! -e "$R$2" ] && [ ! -L "$R$2" ]
  else
    [ -f "$R$2" ] && [ ! -L "$R$2" ] || return 1
    case $sums in *"$NL$1  $R$2$NL"*) ;; *) return 1 ;; esac
  fi
}

targets() { # the targets of the loaded receipt into `paths`; the old files beside them into `copies`
  paths='' copies='' n=1
  while [ "$n" -le "$r_files" ]; do
    load_file "$n" && paths="$paths $R$f_path"
    [ ! -e "$T/beside.$n" ] || copies="$copies $R$f_old"
    n=$((n + 1))
  done
}

folders() { # the existing folders of `paths` into `dirs`
  dirs=''
  for path in $paths; do
    path=${path%/*}
    until [ -d "$path" ]; do path=${path%/*}; done
    case " $dirs " in *" $path "*) ;; *) dirs="$dirs $path" ;; esac
  done
}

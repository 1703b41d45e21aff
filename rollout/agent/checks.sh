# -------------------------------------------------------------------------------------------------------------- apply

check_file() { # N PATH BEFORE AFTER MODE BASE64
  if [ "$#" -ne 6 ] || ! is_number "$5" || [ "$1" != $((files + 1)) ]; then refuse bad-argument "file line $1"; fi
  case $2 in /*/../* | */.. | */./* | *//* | */ | [!/]*) refuse bad-argument "$2" ;; esac
  files=$1 paths="$paths $R$2" room=$((room + ${#6} / 256 + 64))
  case $2 in /etc/systemd/* | /run/systemd/* | /usr/lib/systemd/* | /usr/local/lib/systemd/* | /lib/systemd/*) r_reload=1 ;; esac
  if [ -L "$R$2" ] || { [ -e "$R$2" ] && [ ! -f "$R$2" ]; }; then
    refuse not-a-regular-file "$2"
  fi
  folder=${2%/*}
  until [ -d "$R$folder/" ]; do
    if [ -e "$R$folder" ] || [ -L "$R$folder" ]; then refuse not-a-regular-file "$folder"; fi
    folder=${folder%/*}
  done
  points="$points $2"
  case $folder in *.d) points="$points $folder" dots="$dots $R$folder" ;; esac # the copies will be in its parent
}

look_at_paths() { # the state's folder, the targets, their folders and the kubelet's program: one reading of their attributes and one of their mounts
  list=$SYSTEM above=''
  for path in $paths; do
    path=${path%/*}
    until [ -d "$path/" ]; do path=${path%/*}; done
    case " $list " in *" $path "*) ;; *) list="$list $path" ;; esac
  done
  for path in $dots; do above="$above ${path%/*}"; done
  # shellcheck disable=SC2086 # a list of paths
  facts=$(stat -L -c '%n %d %s-%Y %i %.9Y %.9Z %h' -- "$S" $list $above $paths $program 2>/dev/null)
  # shellcheck disable=SC2086 # a list of paths
  read_mounts "$S" $list $points
}

facts_of() { # PATH: as read, into `device`, `version`, `times` (inode, modification, change) and `names`; false if it was not there
  fact=''
  IFS=$NL
  for line in $facts; do
    case $line in "$1 "*) fact=${line#"$1 "} && break ;; esac
  done
  unset IFS
  [ -n "$fact" ] || return 1
  # shellcheck disable=SC2086 # split into words
  set -- $fact
  device=$1 version=$2 times="$3 $4 $5" names=$6
}

read_mounts() { # PATH…: of these and of all folders above them, into `mounts`
  patterns='' # of shell words: a pattern has blanks
  for path in "$@"; do
    path=${path#"$R"}
    while [ -n "$path" ]; do
      case "$patterns$NL" in *"$NL$path$NL"*) break ;; esac
      patterns=$patterns$NL$path
      path=${path%/*}
    done
  done
  set --
  for path in $patterns; do set -- "$@" -e "^[^ ]* [^ ]* [^ ]* [^ ]* $path "; done
  mounts=$(grep "$@" -e '^[^ ]* [^ ]* [^ ]* [^ ]* / ' "$R/proc/self/mountinfo" 2>/dev/null)
}

check_mounts() { # a mount of its own (a file, a .d folder) cannot be replaced by a rename
  IFS=$NL
  for line in $mounts; do
    unset IFS
    # shellcheck disable=SC2086 # split into fields
    set -- $line
    case " $points " in *" $5 "*) refuse not-renameable "$5 is a mount of its own" ;; esac
  done
  unset IFS
  for folder in $dots; do
    facts_of "$folder" || device=''
    own=$device
    facts_of "${folder%/*}" || device=none
    [ "$device" = "$own" ] || refuse not-renameable "${folder#"$R"} is on another file system than the folder above it"
  done
}

check_persistence() { # a reboot must leave all files as they are, or none: else it leaves a third state
  is_persistent "$S" 0 || [ "$volatile" = 0 ] || refuse state-not-persistent "$why"
  facts_of "$S"
  own=$device
  for folder in $list; do
    { facts_of "$folder" && [ "$device" = "$own" ]; } || is_persistent "$folder" 0 || refuse not-as-persistent "$why; after a reboot it would not agree with $S"
  done
}

is_persistent() { # FOLDER DEPTH: its file system outlives a reboot; `why`, if not or if unknown; `volatile` if it certainly does not
  [ "$2" -eq 0 ] || read_mounts "$1"
  volatile=0 why="$1 is on a file system of an unknown kind"
  find_mount "$1" || return 1
  why="$1 is on $kind"
  case $kind,$source in
    tmpfs,* | ramfs,* | *,/dev/ram* | *,/dev/zram*) volatile=1 && why="$1 is on $kind of $source" && return 1 ;;
    ext[234],* | xfs,* | btrfs,* | zfs,* | f2fs,* | jfs,* | reiserfs,* | bcachefs,*) return 0 ;;
    overlay,*) [ "$2" -lt 4 ] || return 1 ;;
    *) return 1 ;;
  esac
  case ,$options, in *,upperdir=*) ;; *) return 1 ;; esac
  upper=${options##*upperdir=}
  upper=$R${upper%%,*}
  why="$1 is on an overlay whose upper directory cannot be seen"
  [ -d "$upper" ] && is_persistent "$upper" $(($2 + 1))
}

find_mount() { # FOLDER: `kind`, `source` and `options` of its file system
  path=${1#"$R"}/ kind='' longest_point=0
  IFS=$NL
  for line in $mounts; do
    IFS=' '
    # shellcheck disable=SC2086 # split into fields
    set -- $line
    case $path in "${5%/}/"*) ;; *) continue ;; esac
    if [ "${#5}" -ge "$longest_point" ]; then # of two mounts at one point the later one counts
      longest_point=${#5}
      while [ "$1" != - ]; do shift; done
      kind=$2 source=$3 options=${4-}
    fi
    IFS=$NL
  done
  unset IFS
  [ -n "$kind" ]
}

check_homes() { # only what this node's kubelet, its unit and its runtimes read now is written, whatever the order contains
  so_far=$spoken list='' brief=1
  show_units
  note_homes
  spoken=$so_far brief=0 # a snapshot shows units and homes, an apply does not
  each file check_home
}

check_home() { # N PATH…
  case " $list " in *" $2 "*) return ;; esac
  case $2 in
    *.conf) case " $list " in *" ${2%/*} "*) return ;; esac ;; # a drop-in in a folder that is read
    */hosts.toml) folder=${2%/*} && case " $hosts " in *" ${folder%/*} "*) return ;; esac ;;
  esac
  command_line "$main_pid"
  [ -n "$words" ] || refuse unit-not-running "$unit has no process, so it is unknown whether it reads $2"
  refuse not-a-home "$2 is nothing that the kubelet, its unit or the runtimes read here"
}

check_before() { is_as "$3" "$2" || { drifted=$2 && return 1; }; }

check_unit() { # NAME: its state allows a change; remembered as it is
  look_up "$1" || refuse systemd-not-answering "systemctl show $1"
  case $u_load/$u_file in masked/* | */masked*) refuse unit-masked "$1" ;; esac # its drop-ins are never read, even after a reload
  [ "$u_reload" != yes ] || refuse need-daemon-reload "$1: its unit files changed since systemd read them"
  [ "$u_load" = loaded ] || refuse unit-not-found "$1 is $u_load"
  remember "$1"
}

note_restart() { # NAME
  is_name "$1" || refuse bad-argument "unit $1"
  r_units="$r_units${r_units:+ }$1"
}

note_hangup() { # NAME
  is_name "$1" || refuse bad-argument "unit $1"
  r_hangups="$r_hangups${r_hangups:+ }$1"
}

check_units() { # of those concerned, by one answer for them and for the runtimes
  each unit note_restart
  each hangup note_hangup
  concern
  find_runtimes
  set -- "$unit"
  for name in $runtimes $concerned; do
    case " $* " in *" $name "*) ;; *) set -- "$@" "$name" ;; esac
  done
  [ "$measure" = 0 ] || measured=$*
  ask_units "$@"
  for name in $concerned; do check_unit "$name"; done
  for name in $r_hangups; do
    recall "$memory" "$name"
    [ "$was_pid" != 0 ] || refuse unit-not-running "$name has no process that would take a SIGHUP"
  done
}

check_node() { # all checks that can fail, before any write but those of the lock and the token
  read -r is_machine 2>/dev/null <"$R/etc/machine-id"
  [ "$machine" = "$is_machine" ] || refuse machine-id-changed "this is $is_machine, and the plan was made for $machine"
  files=0 paths='' points='' dots='' room=1024 r_units='' r_hangups='' r_reload=0 memory=$NL longest=0
  each file check_file
  [ "$files" -gt 0 ] || refuse bad-argument "no file"
  check_units
  recall "$memory" "$unit"
  find_kubelet "$was_pid"
  look_at_paths
  check_mounts
  check_persistence
  [ ! -L "$SYSTEM/$BOOT_UNIT" ] || refuse not-a-regular-file "${SYSTEM#"$R"}/$BOOT_UNIT"
  ! sync "$S/none" 2>/dev/null || refuse sync-without-names "this node's sync takes no file names, so it cannot report a failure"
  space=$(stat -f -c '%T %a %S' "$S" 2>/dev/null)
  failed_as $? stat
  # shellcheck disable=SC2086 # type, free blocks, block size
  set -- $space
  case ${1-} in tmpfs | ramfs) refuse state-not-persistent "$S is on $1" ;; esac
  [ $((${2-0} * (${3-0} / 512) / 2)) -ge "$room" ] || refuse no-room "$room KiB are needed in $S"
  [ $((longest + 3000)) -le $((guard * 1000)) ] || refuse guard-too-short "RestartSec is $pause, the guard $guard s"
  check_homes
  # shellcheck disable=SC2086 # a list of paths
  digest $paths
  each file check_before || refuse drifted "$drifted changed since it was read"
}

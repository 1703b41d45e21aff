# -------------------------------------------------------------------------------------------------------------- apply

checks_file() { # N PATH BEFORE AFTER MODE BASE64: into `c_files`, `f_paths`, `c_room`, `c_points` and `c_dots`
  local folder
  if [ "$#" -ne 6 ] || ! is_number "$5" || [ "$1" != $((c_files + 1)) ]; then refuse bad-argument "the line of file $1 is not as the protocol has it"; fi
  case $2 in /*/../* | */.. | */./* | *//* | */ | [!/]*) refuse bad-argument "$2" ;; esac
  c_files=$1 f_paths="$f_paths $R$2" c_room=$((c_room + ${#6} / 256 + 64))
  case $2 in /etc/systemd/* | /run/systemd/* | /usr/lib/systemd/* | /usr/local/lib/systemd/* | /lib/systemd/*) r_reload=1 ;; esac
  if [ -L "$R$2" ] || { [ -e "$R$2" ] && [ ! -f "$R$2" ]; }; then
    refuse not-a-regular-file "$2"
  fi
  folder=${2%/*}
  until [ -d "$R$folder/" ]; do
    if [ -e "$R$folder" ] || [ -L "$R$folder" ]; then refuse not-a-regular-file "$folder"; fi
    folder=${folder%/*}
  done
  c_points="$c_points $2"
  case $folder in *.d) c_points="$c_points $folder" c_dots="$c_dots $R$folder" ;; esac # the copies will be in its parent
}

checks_look_at_paths() { # the state's folder, the targets, their folders and the kubelet's program: one reading of their attributes and one of their mounts
  local above path
  m_list=$SYSTEM above=''
  for path in $f_paths; do
    path=${path%/*}
    until [ -d "$path/" ]; do path=${path%/*}; done
    case " $m_list " in *" $path "*) ;; *) m_list="$m_list $path" ;; esac
  done
  for path in $c_dots; do above="$above ${path%/*}"; done
  # shellcheck disable=SC2086 # a list of paths
  c_facts=$(stat -L -c '%n %d %s-%Y %i %.9Y %.9Z %h' -- "$S" $m_list $above $f_paths $s_program 2>/dev/null)
  # shellcheck disable=SC2086 # a list of paths
  checks_read_mounts "$S" $m_list $c_points
}

checks_facts_of() { # PATH: as read, into `c_device`, `c_version`, `c_times` (inode, modification, change) and `c_names`; false if it was not there
  local fact line
  fact=''
  IFS=$NL
  for line in $c_facts; do
    case $line in "$1 "*) fact=${line#"$1 "} && break ;; esac
  done
  unset IFS
  [ -n "$fact" ] || return 1
  # shellcheck disable=SC2086 # split into words
  set -- $fact
  c_device=$1 c_version=$2 c_times="$3 $4 $5" c_names=$6
}

checks_read_mounts() { # PATH…: of these and of all folders above them, into `c_mounts`
  local patterns path
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
  c_mounts=$(grep "$@" -e '^[^ ]* [^ ]* [^ ]* [^ ]* / ' "$R/proc/self/mountinfo" 2>/dev/null)
}

checks_mounts() { # a mount of its own (a file, a .d folder) cannot be replaced by a rename
  local line own folder
  IFS=$NL
  for line in $c_mounts; do
    unset IFS
    # shellcheck disable=SC2086 # split into fields
    set -- $line
    case " $c_points " in *" $5 "*) refuse not-renameable "$5 is a mount of its own" ;; esac
  done
  unset IFS
  for folder in $c_dots; do
    checks_facts_of "$folder" || c_device=''
    own=$c_device
    checks_facts_of "${folder%/*}" || c_device=none
    [ "$c_device" = "$own" ] || refuse not-renameable "${folder#"$R"} is on another file system than the folder above it"
  done
}

checks_persistence() { # a reboot must leave all files as they are, or none: else it leaves a third state
  local own folder
  checks_is_persistent "$S" 0 || [ "$c_volatile" = 0 ] || refuse state-not-persistent "$why"
  checks_facts_of "$S"
  own=$c_device
  for folder in $m_list; do
    { checks_facts_of "$folder" && [ "$c_device" = "$own" ]; } || checks_is_persistent "$folder" 0 || refuse not-as-persistent "$why; after a reboot it may not agree with $S"
  done
}

checks_is_persistent() { # FOLDER DEPTH: its file system outlives a reboot; `why`, if not or if unknown; `c_volatile` if it certainly does not
  local upper
  [ "$2" -eq 0 ] || checks_read_mounts "$1"
  c_volatile=0 why="$1 is on a file system of an unknown kind"
  checks_find_mount "$1" || return 1
  why="$1 is on $c_kind"
  case $c_kind,$c_source in
    tmpfs,* | ramfs,* | *,/dev/ram* | *,/dev/zram*) c_volatile=1 && why="$1 is on $c_kind of $c_source" && return 1 ;;
    ext[234],* | xfs,* | btrfs,* | zfs,* | f2fs,* | jfs,* | reiserfs,* | bcachefs,*) return 0 ;;
    overlay,*) [ "$2" -lt 4 ] || return 1 ;;
    *) return 1 ;;
  esac
  case ,$c_options, in *,upperdir=*) ;; *) return 1 ;; esac
  upper=${c_options##*upperdir=}
  upper=$R${upper%%,*}
  why="$1 is on an overlay whose upper directory cannot be seen"
  [ -d "$upper" ] && checks_is_persistent "$upper" $(($2 + 1))
}

checks_find_mount() { # FOLDER: `c_kind`, `c_source` and `c_options` of its file system
  local path longest_point line
  path=${1#"$R"}/ c_kind='' longest_point=0
  IFS=$NL
  for line in $c_mounts; do
    IFS=' '
    # shellcheck disable=SC2086 # split into fields
    set -- $line
    case $path in "${5%/}/"*) ;; *) continue ;; esac
    if [ "${#5}" -ge "$longest_point" ]; then # of two mounts at one point the later one counts
      longest_point=${#5}
      while [ "$1" != - ]; do shift; done
      c_kind=$2 c_source=$3 c_options=${4-}
    fi
    IFS=$NL
  done
  unset IFS
  [ -n "$c_kind" ]
}

checks_homes() { # only what this node's kubelet, its unit and its runtimes read now is written, whatever the order contains
  local so_far m_list n_reads
  so_far=$spoken m_list='' n_reads=$NL c_brief=1
  measure_show_units
  # shellcheck disable=SC2086 # a list of paths
  measure_note_path $m_unit_files
  homes_note_usual
  each file checks_is_noted || homes_note # few changes need the command lines of the node's processes and the files that these name
  spoken=$so_far c_brief=0                # a snapshot shows units and homes, an apply does not
  each file checks_home
}

checks_is_noted() { case " $m_list " in *" $2 "*) ;; *) return 1 ;; esac } # N PATH…

checks_home() { # N PATH…
  local folder
  ! checks_is_noted "$@" || return 0
  case $2 in
    *.conf) case " $m_list " in *" ${2%/*} "*) return ;; esac ;; # a drop-in in a folder that is read
    */hosts.toml) folder=${2%/*} && case " $n_hosts " in *" ${folder%/*} "*) return ;; esac ;;
  esac
  homes_command_line "$m_pid"
  [ -n "$n_words" ] || refuse unit-not-running "no command line of a kubelet in $unit could be read, so it is unknown whether it reads $2"
  refuse not-a-home "$2 is not among the files that the kubelet, its unit and the container runtimes of this node are seen to read"
}

checks_before() { files_is_as "$3" "$2" || { c_drifted=$2 && return 1; }; }

checks_unit() { # NAME: its state allows a change; remembered as it is
  processes_look_up "$1" || refuse systemd-not-answering "systemctl show reported no state of $1"
  case $u_load/$u_file in masked/* | */masked*) refuse unit-masked "$1" ;; esac # its drop-ins are never read, even after a reload
  [ "$u_reload" != yes ] || refuse need-daemon-reload "$1: its unit files changed since systemd read them"
  [ "$u_load" = loaded ] || refuse unit-not-found "systemctl show reports LoadState=$u_load of $1"
  health_remember "$1"
}

checks_note_restart() { # NAME
  is_name "$1" || refuse bad-argument "unit $1"
  r_units="$r_units${r_units:+ }$1"
}

checks_note_hangup() { # NAME
  is_name "$1" || refuse bad-argument "unit $1"
  r_hangups="$r_hangups${r_hangups:+ }$1"
}

checks_units() { # of those concerned, by one answer for them and for the runtimes
  local name
  each unit checks_note_restart
  each hangup checks_note_hangup
  health_concern
  processes_find_runtimes
  set -- "$unit"
  for name in $u_runtimes $h_concerned; do
    case " $* " in *" $name "*) ;; *) set -- "$@" "$name" ;; esac
  done
  processes_ask_units "$@"
  for name in $h_concerned; do checks_unit "$name"; done
  for name in $r_hangups; do
    health_recall "$h_memory" "$name"
    [ "$h_pid" != 0 ] || refuse unit-not-running "systemctl show reports no main process of $name, which is to get a SIGHUP"
  done
}

checks_node() { # all checks that can fail, before any write but those of the lock and the token
  local is_machine c_points c_dots c_room space
  read -r is_machine 2>/dev/null <"$R/etc/machine-id"
  [ "$machine" = "$is_machine" ] || refuse machine-id-changed "/etc/machine-id has ${is_machine:-no line}, and the plan was made for $machine"
  c_files=0 f_paths='' c_points='' c_dots='' c_room=1024 r_units='' r_hangups='' r_reload=0 h_memory=$NL h_longest=0
  each file checks_file
  [ "$c_files" -gt 0 ] || refuse bad-argument "no file"
  checks_units
  health_recall "$h_memory" "$unit"
  processes_find_kubelet "$h_pid"
  staging_find_kubelet "$p_kubelet"
  checks_look_at_paths
  checks_mounts
  checks_persistence
  [ ! -L "$SYSTEM/$BOOT_UNIT" ] || refuse not-a-regular-file "${SYSTEM#"$R"}/$BOOT_UNIT"
  ! sync "$S/none" 2>/dev/null || refuse sync-without-names "sync reported success for a name that does not exist, so its success proves nothing"
  space=$(stat -f -c '%T %a %S' "$S" 2>/dev/null)
  files_failed_as $? stat
  # shellcheck disable=SC2086 # type, free blocks, block size
  set -- $space
  case ${1-} in tmpfs | ramfs) refuse state-not-persistent "$S is on $1" ;; esac
  [ $((${2-0} * (${3-0} / 512) / 2)) -ge "$c_room" ] || refuse no-room "$c_room KiB are needed in $S"
  [ $((h_longest + 3000)) -le $((guard * 1000)) ] || refuse guard-too-short "RestartSec is $h_pause, the guard $guard s"
  checks_homes
  # shellcheck disable=SC2086 # a list of paths
  files_digest $f_paths
  each file checks_before || refuse drifted "$c_drifted changed since it was read"
}

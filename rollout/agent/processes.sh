# ----------------------------------------------------------------------------------------------------- the units' health

find_runtimes() { # the runtimes' units that exist here, into `runtimes`: systemd searches long for those that do not
  runtimes=''
  for name in $RUNTIMES; do
    for path in "$R/run/systemd/units/invocation:$name" "$R/run/systemd/generator.late/$name"; do # it runs; or a script of SysV starts it
      if [ -e "$path" ] || [ -L "$path" ]; then runtimes="$runtimes $name" && continue 2; fi
    done
    for folder in $UNIT_FOLDERS; do
      [ ! -e "$folder/$name" ] || { runtimes="$runtimes $name" && break; }
    done
  done
}

ask_units() { # UNIT…: the properties of all of them, in one request
  asked_units=$*
  blocks=$(export TZ=UTC && lastly 10 systemctl show -p LoadState -p ActiveState -p SubState -p MainPID -p NRestarts \
    -p FragmentPath -p DropInPaths -p EnvironmentFiles -p UnitFileState -p NeedDaemonReload -p RestartUSec \
    -p TimeoutStopUSec -p ExecMainStartTimestamp -p ExecMainStartTimestampMonotonic "$@" 2>/dev/null)$NL
  name_blocks
}

name_blocks() { # systemctl answers in the order of the question, with an empty line between two units: in `blocks` it becomes `@` and the name
  # shellcheck disable=SC2086 # a list of units
  set -- $asked_units
  named="@$1$NL" joint=''
  IFS='=' # an empty line is in a short word then, since each line has this sign
  for word in $blocks; do
    named=$named$joint joint='='
    while :; do
      case $word in *"$NL$NL"*) ;; *) break ;; esac
      shift
      named=$named${word%%"$NL$NL"*}$NL@${1-}$NL
      case $word in
        *"$NL$NL"*"$NL$NL"*) word=${word#*"$NL$NL"} ;; # of a unit without a line
        *) word=${word##*"$NL$NL"} ;;
      esac
    done
    named=$named$word
  done
  unset IFS
  blocks=$named
}

find_block() { # UNIT: its properties, as answered, into `block`; false if it was not asked for
  block='' current=''
  IFS=$NL
  for line in $blocks; do
    case $line in
      @*) current=${line#@} ;;
      *) [ "$current" != "$1" ] || block=$block${block:+$NL}$line ;;
    esac
  done
  unset IFS
  case " $asked_units " in *" $1 "*) ;; *) return 1 ;; esac
}

look() { # UNIT: its properties into u_…
  ask_units "$1"
  look_up "$1"
}

look_up() { # UNIT: as look, in the last answer
  u_load='' u_active='' u_sub='' u_pid=0 u_restarts=0 u_started=0 u_pause=100ms u_reload=no u_file=''
  find_block "$1" || return 1
  IFS=$NL
  for line in $block; do
    value=${line#*=}
    case $line in
      LoadState=*) u_load=$value ;;
      ActiveState=*) u_active=$value ;;
      SubState=*) u_sub=$value ;;
      MainPID=*) u_pid=$value ;;
      NRestarts=*) u_restarts=$value ;;
      RestartUSec=*) u_pause=$value ;;
      ExecMainStartTimestampMonotonic=*) u_started=$value ;;
      NeedDaemonReload=*) u_reload=$value ;;
      UnitFileState=*) u_file=$value ;;
    esac
  done
  unset IFS
  [ -n "$u_active" ]
}

directly() { # COMMAND…: without a proxy; in a subshell, since a command gate may need one
  unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
  export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1 # whatever a wgetrc contains
  "$@"
}

probe() { # PORT: `health` is ok, refused, timeout or status NNN; empty when no program here can send the request
  # bash, which opens the connection itself: a third of the cost of curl. Not every bash can, and Alpine and busybox have none: then
  # curl or wget. A refused connection looks the same, so they may ask once more
  url=http://127.0.0.1:$1/healthz health='' answer=''
  if command -v bash >/dev/null; then
    # shellcheck disable=SC2016 # expanded by that bash
    answer=$(lastly 3 bash -pc 'exec 3<>"/dev/tcp/127.0.0.1/$1" && printf "GET /healthz HTTP/1.0\r\n\r\n" >&3 && read -r line <&3 && echo "$line"' - "$1" 2>/dev/null)
    weigh "$?" "$answer"
    case $health in '' | refused) ;; *) return ;; esac
  fi
  if command -v curl >/dev/null; then
    share 3
    answer=$(directly curl -q -s -m "$seconds" -w '\n%{http_code}' "$url" 2>/dev/null)
  elif command -v wget >/dev/null; then
    answer=$(directly bounded 4 wget -q -S -T 3 -O - "$url" 2>&1)
  else
    return
  fi
  weigh "$?" "$answer"
}

weigh() { # STATUS ANSWER of the program that asked: into `health`
  health=refused
  case $1,$2 in
    124,* | 137,* | 143,* | 28,*) health=timeout ;;
    *HTTP/1.[01]\ [0-9][0-9][0-9]*) answer=${2#*HTTP/1.[01] } health="status ${answer%"${answer#???}"}" ;;
    0,ok | 0,*"$NL"200) health=ok ;;
    0,*"$NL"[0-9][0-9][0-9]) health="status ${2##*"$NL"}" ;;
  esac
  [ "$health" != "status 200" ] || health=ok
}

find_logs() { # PID: the files that its log is written to, into `logs`; none for a log in the journal
  logs='' outputs=$R/proc/$1/fd # also those to which systemd or a script redirects it
  [ ! -f "$outputs/2" ] || logs="$outputs/2"
  # shellcheck disable=SC3013 # dash, bash and busybox have -ef
  [ ! -f "$outputs/1" ] || [ "$outputs/1" -ef "$outputs/2" ] || logs="$logs $outputs/1"
  mentions "$1" logtostderr= || return 0
  command_line "$1"
  option ' --logtostderr '
  case $value in 0 | [fF] | false | FALSE | False) ;; *) return 0 ;; esac
  option ' --log-file '
  if [ -z "$value" ]; then
    option ' --log-dir '
    value=${value:-/tmp}/kubelet.INFO
  fi
  case $value in *[!A-Za-z0-9_./:@%+=,-]*) ;; *) logs="$logs $R$value" ;; esac
}

is_thrown_away() { # PID: its text log is discarded: its lines in the journal are its standard output, and not its log
  [ -c "$R/proc/$1/fd/2" ] && [ "$(readlink -- "$R/proc/$1/fd/2" 2>/dev/null)" = /dev/null ]
}

is_said_by() { # PID SINCE LINE: this process wrote it. klog's text contains the process, its JSON the time; SINCE is the first time that counts
  case $3 in
    [IWEF][0-9][0-9][0-9][0-9]' '*)
      pid_said=${3#* }
      pid_said=${pid_said#"${pid_said%%[! ]*}"}
      pid_said=${pid_said#* }
      pid_said=${pid_said#"${pid_said%%[! ]*}"}
      [ "${pid_said%% *}" = "$1" ]
      ;;
    '{"ts":'*)
      moment=${3#'{"ts":'}
      moment=${moment%%[!0-9]*}
      is_number "$moment" && [ "$moment" -ge "$2" ]
      ;;
    *) return 1 ;;
  esac
}

read_logs() { # PID STARTED: the files in `logs`, as `read_journal` reads the journal. STARTED is in microseconds since boot
  is_number "${2:-}" && [ -n "$logs" ] || return 0
  date_boot
  first=$((booted + $2 / 1000 - 2000))
  for log in $logs; do
    said=0
    IFS=$NL
    for line in $(bounded 8 tail -c 67108864 -- "$log" 2>/dev/null | grep -e 'lenient decoding'); do
      ! is_said_by "$1" "$first" "$line" || said=$((said + 1))
    done
    unset IFS
    [ "$said" -gt 0 ] || is_read "$1" "$first" "$log" || continue
    lenient=$((${lenient:-0} + said))
  done
}

is_read() { # PID SINCE FILE: this process wrote one of its last lines
  IFS=$NL
  for line in $(bounded 8 tail -n 20 -- "$3" 2>/dev/null); do
    ! is_said_by "$1" "$2" "$line" || { unset IFS && return; }
  done
  unset IFS
  return 1
}

count_lenient() { # PID STARTED: the number of "lenient decoding" lines of this process; empty while no line of it can be read
  lenient='' its_log='^'
  ! is_thrown_away "$1" || its_log='^{"ts":'
  lines=$({ bounded 8 journalctl -q -b --no-pager -o cat -n 50000 "_PID=$1" 2>/dev/null || echo '!unreadable'; } |
    sed -n -e '/^!unreadable$/{p;q;}' -e "/$its_log/{x;/^\$/{s/^/!read/;p;};x;}" -e '/lenient decoding/p')
  case $lines in
    *'!unreadable') ;;
    *)
      IFS=$NL
      for line in $lines; do
        case $line in '!read') lenient=${lenient:-0} ;; *) lenient=$((${lenient:-0} + 1)) ;; esac
      done
      unset IFS
      ;;
  esac
  find_logs "$1"
  read_logs "$1" "$2"
  return 0
}

escape() { # BASE64: its bytes into `escaped`, for printf: without a program
  rest=${1%%=*} escaped='' bits=0 held=0
  while [ -n "$rest" ]; do
    sixth=${rest%"${rest#?}"} rest=${rest#?}
    before=${BASE64%%"$sixth"*}
    held=$((held << 6 | ${#before})) bits=$((bits + 6))
    [ "$bits" -ge 8 ] || continue
    bits=$((bits - 8))
    byte=$((held >> bits & 255)) held=$((held & ((1 << bits) - 1)))
    escaped="$escaped\\$((byte >> 6))$((byte >> 3 & 7))$((byte & 7))"
  done
}

has_argument() { # BASE64: it is one word of the process's command line
  escape "$1"
  # shellcheck disable=SC2059 # made of octal numbers
  decoded=$(printf "$escaped")
  case $words in *"$NL$decoded$NL"*) ;; *)
    why="an argument is missing from its command line"
    return 1
    ;;
  esac
}

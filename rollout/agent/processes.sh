# ----------------------------------------------------------------------------------------------------- the units' health

EMBEDDINGS='k3s.service k3s-agent.service rke2-server.service rke2-agent.service'

processes_find_runtimes() { # the runtimes' units that exist here, into `u_runtimes`: systemd searches long for those that do not
  local name path folder
  u_runtimes=''
  for name in $RUNTIMES; do
    for path in "$R/run/systemd/units/invocation:$name" "$R/run/systemd/generator.late/$name"; do # it runs; or a script of SysV starts it
      if [ -e "$path" ] || [ -L "$path" ]; then u_runtimes="$u_runtimes $name" && continue 2; fi
    done
    for folder in $UNIT_FOLDERS; do
      [ ! -e "$folder/$name" ] || { u_runtimes="$u_runtimes $name" && break; }
    done
  done
}

processes_choose_unit() { # into `unit`: where systemd has no kubelet.service, the unit that has the kubelet in it: the only one that runs, else the only one that is
  # enabled. It stays where neither is so
  local name folder running enabled
  [ "$unit" = kubelet.service ] || return 0
  for folder in $UNIT_FOLDERS "$R/run/systemd/generator.late"; do
    if [ -e "$folder/$unit" ] || [ -L "$folder/$unit" ]; then return 0; fi
  done
  running='' enabled=''
  for name in $EMBEDDINGS; do
    [ ! -L "$R/run/systemd/units/invocation:$name" ] || running="$running $name"
    [ ! -L "$SYSTEM/multi-user.target.wants/$name" ] || enabled="$enabled $name"
  done
  # shellcheck disable=SC2086 # a list of units
  set -- ${running:-$enabled}
  [ "$#" -ne 1 ] || unit=$1
}

processes_find_kubelet() { # PID of the main process of `unit`: the process that is its kubelet, into `p_kubelet`; 0 if there is none. RKE2 starts it as a child, and
  # k3s has it in itself. False if the processes could not be searched
  local found status
  p_kubelet=$1
  case $unit,$1 in *,0) return 0 ;; rke2-*) ;; *) return 0 ;; esac
  set +f
  found=$(lastly 5 grep -h -s "^[0-9]* (kubelet) [^XZ] $1 " -- "$R"/proc/[0-9]*/stat 2>/dev/null)
  status=$?
  set -f
  p_kubelet=${found%% *}
  case $found in '' | *"$NL"*) p_kubelet=0 ;; esac # of two it is not known which one stays
  [ "$status" -le 2 ] # 2: one of the processes has ended meanwhile
}

processes_find_home() { # PID of a kubelet: the folder that its k3s or RKE2 keeps its agent in, into `p_home`; none if that is not known
  local n_words n_value
  homes_command_line "$1"
  homes_option ' --kubeconfig '
  p_home=${n_value%/kubelet.kubeconfig}
  case $n_value,$p_home in
    /*/kubelet.kubeconfig,*[!A-Za-z0-9_./:@%+=,-]*) p_home='' ;;
    /*/kubelet.kubeconfig,*) ;;
    *) p_home='' ;;
  esac
}

processes_ask_units() { # UNIT…: the properties of all of them, in one request
  u_asked=$*
  u_blocks=$(export TZ=UTC && lastly 10 systemctl show -p Id -p LoadState -p ActiveState -p SubState -p MainPID -p NRestarts \
    -p FragmentPath -p DropInPaths -p EnvironmentFiles -p UnitFileState -p NeedDaemonReload -p RestartUSec -p KillMode -p ControlGroup \
    -p TimeoutStopUSec -p ExecMainStartTimestamp -p ExecMainStartTimestampMonotonic -p InactiveEnterTimestampMonotonic "$@" 2>/dev/null)$NL
  processes_name_blocks
}

processes_name_blocks() { # systemctl answers in the order of the question, with an empty line between two units: into `u_block_1`, `u_block_2`, … for those of `u_asked`
  local nth block joint word
  # shellcheck disable=SC2086 # a list of units
  set -- $u_asked
  nth=1 block='' joint=''
  IFS='=' # an empty line is in a short word then, since each line has this sign
  for word in $u_blocks; do
    block=$block$joint joint='='
    while :; do
      case $word in *"$NL$NL"*) ;; *) break ;; esac
      block=$block${word%%"$NL$NL"*}
      eval "u_block_$nth=\$block"
      nth=$((nth + 1)) block=''
      case $word in
        *"$NL$NL"*"$NL$NL"*) word=${word#*"$NL$NL"} ;; # of a unit without a line
        *) word=${word##*"$NL$NL"} ;;
      esac
    done
    block=$block$word
  done
  unset IFS
  block=${block%"$NL"}
  eval "u_block_$nth=\$block"
  while [ "$nth" -lt "$#" ]; do
    nth=$((nth + 1))
    eval "u_block_$nth="
  done
}

processes_find_block() { # UNIT: its properties, as answered, into `u_block`; false if it was not asked for
  local nth name
  u_block='' nth=0
  for name in $u_asked; do
    nth=$((nth + 1))
    [ "$name" != "$1" ] || { eval "u_block=\$u_block_$nth" && return; }
  done
  return 1
}

processes_look() { # UNIT: its properties into u_…
  processes_ask_units "$1"
  processes_look_up "$1"
}

processes_date_log() { # ENDED STARTED, of a unit: into `u_since`, from when on lines under the number of its process are of this process. On a busy machine
  # systemd notes a start after the process has logged: it notes it when it is scheduled again itself. It has noted before when the unit ended
  u_since=$2
  ! { is_number "$1" && is_number "$2" && [ "$1" -le "$2" ]; } || u_since=$1
}

processes_look_up() { # UNIT: as look, in the last answer
  local line value
  u_load='' u_active='' u_sub='' u_pid=0 u_restarts=0 u_started=0 u_since='' u_pause=100ms u_reload=no u_file='' u_group='' u_id=$1
  processes_find_block "$1" || return 1
  IFS=$NL
  for line in $u_block; do
    value=${line#*=}
    case $line in
      LoadState=*) u_load=$value ;;
      ActiveState=*) u_active=$value ;;
      SubState=*) u_sub=$value ;;
      MainPID=*) u_pid=$value ;;
      NRestarts=*) u_restarts=$value ;;
      RestartUSec=*) u_pause=$value ;;
      ExecMainStartTimestampMonotonic=*) u_started=$value ;;
      InactiveEnterTimestampMonotonic=*) u_since=$value ;;
      NeedDaemonReload=*) u_reload=$value ;;
      UnitFileState=*) u_file=$value ;;
      ControlGroup=*) u_group=$value ;;
      Id=*) u_id=$value ;;
    esac
  done
  unset IFS
  processes_date_log "$u_since" "$u_started"
  [ -n "$u_active" ]
}

processes_find_listener() { # PORT PID: into `h_host` the address at which this process listens for requests of this node; else `h_health` is why it is not known:
  # refused, not-its-own (another process listens), or not-observed. Any user may listen on a free port. So the kernel's table names the
  # listening sockets (address and port in hexadecimal, state 0A, inode), and the descriptors of the process show which are its own
  local table sockets held exact wide foreign line
  h_host='' h_health=not-observed
  [ -r "$R/proc/net/tcp" ] || return
  hexadecimal "$1"
  held='' exact='' wide='' foreign=0 h_health=refused
  for table in tcp tcp6; do
    sockets=$(grep -h -e ": [0-9A-F]*:$w_digits 0*:0000 0A " "$R/proc/net/$table" 2>/dev/null)
    [ -n "$sockets" ] || continue
    if [ -z "$held" ]; then
      held=$(ls -ln "$R/proc/$2/fd/" 2>/dev/null)$NL
      case $held in *' -> '*) ;; *) h_health=not-observed && return 1 ;; esac
    fi
    IFS=$NL
    for line in $sockets; do
      unset IFS
      # shellcheck disable=SC2086 # split into words
      set -- "$1" "$2" $line
      case $held in
        *" socket:[${12}]$NL"*) case ${4%:*} in *[!0]*) exact=${4%:*} ;; *) wide=${4%:*} ;; esac ;;
        *) foreign=1 ;;
      esac
    done
    unset IFS
    [ -z "$exact" ] || break # to read a table, the kernel searches all that it has room for
  done
  [ -n "$held" ] || return
  # a request to an address reaches the socket of just that address; the one of all addresses gets what no other takes
  h_health=not-its-own
  if [ -n "$exact" ]; then
    processes_spell "$exact"
  elif [ -n "$wide" ] && [ "$foreign" = 0 ]; then
    h_host=127.0.0.1
  else
    return 1
  fi
}

processes_spell() { # HEX: an address of the kernel's table, which has the bytes of each 32 bits in the machine's order, into `h_host`
  local rest byte high low
  case $1 in 0100007F | 7F000001) h_host=127.0.0.1 && return ;; esac
  rest=$1 h_host=''
  while [ -n "$rest" ]; do
    byte=${rest%"${rest#????????}"} rest=${rest#????????}
    high=${byte#????} low=${byte%????}
    if [ "${#1}" -eq 8 ]; then
      h_host=$((0x${high#??})).$((0x${high%??})).$((0x${low#??})).$((0x${low%??}))
    else
      h_host=$h_host:${high#??}${high%??}:${low#??}${low%??}
    fi
  done
  h_host=${h_host#:}
}

processes_directly() { # COMMAND…: without a proxy; in a subshell, since a command gate may need one
  unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
  export no_proxy="$h_host" NO_PROXY="$h_host" # whatever a wgetrc contains
  "$@"
}

processes_probe() { # PORT PID: `h_health` is ok, timeout, refused, no-answer, status NNN or what `processes_find_listener` found; empty when no program here can send the request
  local url answer
  processes_find_listener "$1" "$2" || return 0
  # bash, which opens the connection itself: a third of the cost of curl. Not every bash can, and Alpine and busybox have none: then
  # curl or wget. Without an answer it may be such a bash, so they ask once more
  url=http://$h_host:$1/healthz h_health='' answer=''
  case $h_host in *:*) url="http://[$h_host]:$1/healthz" ;; esac
  if command -v bash >/dev/null; then
    # shellcheck disable=SC2016 # expanded by that bash
    answer=$(lastly 3 bash -pc 'exec 3<>"/dev/tcp/$1/$2" && printf "GET /healthz HTTP/1.0\r\n\r\n" >&3 && read -r line <&3 && echo "$line"' - "$h_host" "$1" 2>&1)
    processes_weigh "$?" "$answer"
    [ "$h_health" = no-answer ] || return 0
  fi
  if command -v curl >/dev/null; then
    share 3
    answer=$(processes_directly curl -q -s -m "$w_seconds" -w '\n%{http_code}' "$url" 2>/dev/null)
  elif command -v wget >/dev/null; then
    answer=$(processes_directly bounded 4 wget -q -S -T 3 -O - "$url" 2>&1)
  else
    return
  fi
  processes_weigh "$?" "$answer"
}

processes_weigh() { # STATUS ANSWER of the program that asked: into `h_health`. What is none of these shows only that there was no answer
  local answer
  h_health=no-answer
  case $1,$2 in
    124,* | 137,* | 143,* | 28,*) h_health=timeout ;;
    *HTTP/1.[01]\ [0-9][0-9][0-9]*) answer=${2#*HTTP/1.[01] } h_health="status ${answer%"${answer#???}"}" ;;
    0,ok | 0,*"$NL"200) h_health=ok ;;
    0,*"$NL"[0-9][0-9][0-9]) h_health="status ${2##*"$NL"}" ;;
    7,* | [14],*": Connection refused"*) h_health=refused ;; # curl; bash, or wget. With status 0 the text is the listener's
  esac
  [ "$h_health" != "status 200" ] || h_health=ok
}

processes_find_logs() { # PID: the files that its log is written to, into `l_files`; none for a log in the journal
  local outputs n_value
  l_files='' outputs=$R/proc/$1/fd # also those to which systemd or a script redirects it
  [ ! -f "$outputs/2" ] || l_files="$outputs/2"
  # shellcheck disable=SC3013 # dash, bash and busybox have -ef
  [ ! -f "$outputs/1" ] || [ "$outputs/1" -ef "$outputs/2" ] || l_files="$l_files $outputs/1"
  case $unit in rke2-*) # it writes the lines of its kubelet to this file
    processes_find_home "$1"
    [ -z "$p_home" ] || l_files="$l_files $R$p_home/logs/kubelet.log"
    ;;
  esac
  case $unit in k3s*) return 0 ;; esac
  processes_mentions "$1" logtostderr= || return 0
  homes_command_line "$1"
  homes_option ' --logtostderr '
  case $n_value in 0 | [fF] | false | FALSE | False) ;; *) return 0 ;; esac
  homes_option ' --log-file '
  if [ -z "$n_value" ]; then
    homes_option ' --log-dir '
    n_value=${n_value:-/tmp}/kubelet.INFO
  fi
  case $n_value in *[!A-Za-z0-9_./:@%+=,-]*) ;; *) l_files="$l_files $R$n_value" ;; esac
}

processes_is_thrown_away() { # PID: its text log is discarded: its lines in the journal are its standard output. A warning about its
  # configuration is text in every version: the format of `logging` is in force only after the configuration is read
  [ -c "$R/proc/$1/fd/2" ] && [ "$(readlink -- "$R/proc/$1/fd/2" 2>/dev/null)" = /dev/null ]
}

processes_take_apart() { # LINE of a log: into `l_source`, the file that logged it, and `l_message`, whose quotes may have a backslash: klog's text, also
  # when logrus wraps it (k3s), klog's JSON, logrus' text and JSON (without a source). Only the beginning of a line decides: what a pod's
  # author can write stands in quotes behind it. Other lines have neither
  local wrapped level
  l_source='' l_message='' l_writer='' wrapped=$1
  unset IFS
  case $wrapped in
    'time="'*)
      l_source=${wrapped%%'" level='*}
      l_message=${wrapped#"$l_source\" level="} l_source=''
      level=${l_message%%' msg='*}
      case $level in '' | *[!a-z]*) l_message='' && return ;; esac
      l_message=${l_message#"$level msg="}
      l_message=${l_message#'"'}
      wrapped=$l_message
      ;;
  esac
  case $wrapped in
    [IWEF][01][0-9][0-3][0-9]' '[0-2][0-9]:[0-5][0-9]:[0-6][0-9].[0-9]*' '[0-9]*.go:[0-9]*'] '*)
      l_source=${wrapped%%'] '*}
      l_message=${wrapped#"$l_source] "}
      # shellcheck disable=SC2086 # date, time, process, file
      set -- $l_source
      l_source=''
      [ "$#" -eq 4 ] || { l_message='' && return; }
      case $3 in *[!0-9]*) l_message='' && return ;; esac
      l_source=${4##*/} l_writer=$3
      l_message=${l_message#\\}
      l_message=${l_message#'"'}
      ;;
    '{"'*'"msg":"'*)
      l_source=${wrapped%%[{,]'"msg":"'*}
      l_message=${wrapped#"$l_source"?'"msg":"'}
      case $l_source in
        '{"ts":'*',"caller":"'*.go:[0-9]*'"'*) l_source=${l_source#*',"caller":"'} && l_source=${l_source%%'"'*} && l_source=${l_source##*/} ;;
        *) l_source='' ;;
      esac
      ;;
  esac
}

processes_notice() { # LINE of a kubelet: into `l_noticed`: `l_ignored` if it ignores a part of its configuration, `l_loaded` if it has read it. codec.go
  # logs the first, in words up to 1.20, and server.go then its version, before the kubelet knows any pod (1.17 to 1.37)
  l_noticed=''
  processes_take_apart "$1"
  case $l_source/$l_message in
    codec.go:[0-9]*/[uU]'sing lenient decoding as strict decoding failed'*) l_noticed=ignored ;;
    server.go:[0-9]*/'Version: v'[0-9]*) case $unit in k3s*) ;; *) l_noticed=loaded ;; esac ;; # of k3s' API server, too
    server.go:[0-9]*/'Kubelet version"'* | server.go:[0-9]*/'Kubelet version\"'*) l_noticed=loaded ;;
  esac
}

processes_count_notice() { # LINE: into `l_ignored` and `l_loaded`. After the version's line there are texts of pods in a log, with their line ends up to 1.30: nothing counts
  [ "$l_loaded" = 0 ] || return 0
  processes_notice "$1"
  case $l_noticed in
    ignored) l_ignored=$((l_ignored + 1)) ;;
    loaded) l_loaded=1 ;;
  esac
}

processes_logged_at() { # LINE, as `[SECONDS.MICROSECONDS] HOST PROGRAM[PID]: TEXT`: into `l_moment`, the second since boot
  l_moment=${1#[}
  l_moment=${l_moment%%.*}
  l_moment=${l_moment##* }
  is_number "$l_moment"
}

processes_is_said_by() { # PID SINCE LINE: this process wrote it. klog's text contains the process, and day and time but no year, its JSON the time; SINCE is the first
  # time that counts, also as `l_first`, in klog's form. A file outlives boots, and a number of a process comes back
  processes_take_apart "$3"
  [ -n "$l_source" ] || return
  case $3 in
    '{"ts":'*)
      l_moment=${3#'{"ts":'}
      l_moment=${l_moment%%[!0-9]*}
      is_number "$l_moment" && [ "$l_moment" -ge "$2" ]
      ;;
    *)
      [ "$l_writer" = "$1" ] || return
      l_moment=${3#*[IWEF]}
      l_moment=${l_moment%%[!0-9 :]*}
      [ -z "$l_first" ] || processes_is_within "$l_moment"
      ;;
  esac
}

processes_is_within() { # MOMENT, as `MMDD HH:MM:SS`: not before `l_first`. A window over New Year ends at `l_last`, since such a time has no year
  local l_digits moment first
  processes_take_digits "$1" && moment=$l_digits || return 1
  processes_take_digits "$l_first" && first=$l_digits || return 1
  if processes_take_digits "$l_last" && [ "$l_digits" -lt "$first" ] && [ "$moment" -le "$l_digits" ]; then
    return 0
  fi
  [ "$moment" -ge "$first" ]
}

processes_take_digits() { # MOMENT, as `MMDD HH:MM:SS`: into `l_digits`, a number that begins with 1
  l_digits=${1#* }
  l_digits=1${1% *}${l_digits%%:*}${l_digits#*:}
  l_digits=${l_digits%:*}${l_digits##*:}
  is_number "$l_digits"
}

processes_bound_times() { # FIRST NOW, in seconds since 1970: `l_first` and `l_last`, the times of a log's lines, both empty if these may have every time of a year
  local zone
  l_first='' l_last=''
  [ $(($2 - $1)) -lt 31449600 ] || return 0 # 364 days
  l_last=$(lastly 3 date -d "@$(($2 + 3600))" '+%m%d %H:%M:%S %z' 2>/dev/null)
  l_first=$(lastly 3 date -d "@$1" '+%m%d %H:%M:%S %z' 2>/dev/null)
  zone=${l_first##* }
  [ "$zone" = "${l_last##* }" ] || l_first=$(lastly 3 date -d "@$(($1 - 3600))" '+%m%d %H:%M:%S %z' 2>/dev/null) # at the end of summer time an hour comes twice
  l_first=${l_first% *} l_last=${l_last% *}
}

processes_read_logs() { # PID SINCE: the files in `l_files`, as `pulls_read_journal` reads the journal. SINCE is in microseconds since boot
  local first log l_ignored l_loaded line l_first l_last
  is_number "${2:-}" && [ -n "$l_files" ] || return 0
  shown_files_date_boot
  first=$((x_booted + $2 / 1000 - 2000))
  clock
  processes_bound_times $((first / 1000)) $(((x_booted + now) / 1000))
  for log in $l_files; do
    l_ignored=0 l_loaded=0
    IFS=$NL
    for line in $(lastly 8 tail -c 67108864 -- "$log" 2>/dev/null | sed -n -e '/lenient decoding/b cut' -e '/Kubelet version/b cut' \
      -e '/] Version: v/b cut' -e d -e ': cut' -e 's/^\(.\{400\}\).*/\1/' -e p); do
      ! processes_is_said_by "$1" "$first" "$line" || processes_count_notice "$line"
    done
    unset IFS
    [ "$l_ignored$l_loaded" != 00 ] || processes_is_read "$1" "$first" "$log" || continue
    l_lenient=$((${l_lenient:-0} + l_ignored))
    [ "$l_loaded" = 0 ] || l_configured=1
  done
}

processes_is_read() { # PID SINCE FILE: this process wrote one of its last lines
  local line
  IFS=$NL
  for line in $(lastly 8 tail -n 20 -- "$3" 2>/dev/null); do
    ! processes_is_said_by "$1" "$2" "$line" || { unset IFS && return; }
  done
  unset IFS
  return 1
}

processes_count_lenient() { # UNIT PID SINCE: how often this process warned that it ignores a part of its configuration; empty until its log shows that it has read it
  local l_configured l_ignored l_loaded lines line
  l_lenient='' l_configured=0 l_ignored=0 l_loaded=0
  is_number "$3" || return 0
  if ! processes_is_thrown_away "$2"; then
    lines=$(lastly 20 journalctl -q -b --no-pager -o short-monotonic -n 50000 "_PID=$2" _UID=0 "_SYSTEMD_UNIT=$1" 2>/dev/null |
      sed -n -e '/lenient decoding/b cut' -e '/Kubelet version/b cut' -e '/] Version: v/b cut' -e d -e ': cut' -e 's/^\(.\{400\}\).*/\1/' -e p)
    IFS=$NL
    for line in $lines; do
      unset IFS
      ! processes_logged_at "$line" || [ "$l_moment" -lt $(($3 / 1000000)) ] || processes_count_notice "${line#*]: }"
    done
    unset IFS
    [ "$l_loaded" = 0 ] || { l_configured=1 l_lenient=$l_ignored; }
  fi
  processes_find_logs "$2"
  processes_read_logs "$2" "$3"
  [ "$l_configured" = 1 ] || [ "${l_lenient:-0}" -gt 0 ] || l_lenient=''
}

processes_mentions() { # PID PATTERN: its command line contains it; needs no process (a shell's read drops the NULs)
  local line
  line=''
  read -r line 2>/dev/null <"$R/proc/$1/cmdline"
  # shellcheck disable=SC2254 # a pattern
  case $line in *$2*) ;; *) return 1 ;; esac
}

processes_note_argument() { # BASE64: into `p_arguments`, for printf
  escape "$1"
  p_arguments="$p_arguments$w_escaped\\001"
}

processes_has_arguments() { # of the payload: each is one word of the process's command line; one process decodes all. Else `why`
  local decoded argument
  p_arguments='\001'
  each argument processes_note_argument
  # shellcheck disable=SC2059 # made of octal numbers
  decoded=$(printf "$p_arguments")
  IFS=${decoded%"${decoded#?}"} # no word of a command line has it
  # shellcheck disable=SC2086 # split into arguments
  set -- ${decoded#?}
  unset IFS
  for argument in "$@"; do
    case $n_words in *"$NL$argument$NL"*) ;; *)
      why="its command line, as it was read, lacks an argument"
      return 1
      ;;
    esac
  done
}

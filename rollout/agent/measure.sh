# ------------------------------------------------------------------------------------------------------------- measuring

note_path() { # PATH…: into `list`, each once. Paths outside the alphabet are counted in `odd`; the first of them is kept
  for noted in "$@"; do
    case $noted in
      '') continue ;;
      [!/]* | *[!A-Za-z0-9_./:@%+=,-]*)
        odd=$((${odd:-0} + 1))
        [ "$odd" -gt 1 ] || oddest=$noted
        continue
        ;;
    esac
    case " $list " in *" $noted "*) ;; *) list="$list $noted" ;; esac
  done
}

run_command() { # NAME SECONDS BASE64
  if ! { is_name "$1" && is_number "$2"; }; then refuse bad-argument "command $1"; fi
  line=$(printf %s "$3" | base64 -d)
  allow $(($2 + 3))
  # First the status, then the end of its output. A process that it leaves behind may hold the output open: tail waits
  # no longer than the command could have, and the status is known anyway.
  shown=$({
    {
      bounded "$2" sh -c "$line" 2>&1 3>&- </dev/null
      echo "$?" >&3
    } | bounded $(($2 + 3)) tail -c 200 | tr -c ' -~' ' ' | base64 | tr -d '\n'
  } 3>&1)
  case $shown in
    0 | "0$NL"*) say "command $1 0 -" ;;
    *"$NL"*) say "command $1 ${shown%%"$NL"*} ${shown#*"$NL"}" ;;
    *) say "command $1 $shown -" ;;
  esac
}

show_units() { # the kubelet's unit and the runtimes', as answered: properties and processes; into `unit_files`, `main_pid`, `main_started`, `services`
  unit_files='' main_pid=0 main_started='' services=' ' starts='' begun='' dates='' kubelet_files=''
  for served in "$unit" $runtimes; do
    find_block "$served"
    case $NL$block$NL in *"${NL}LoadState=loaded$NL"*) ;; *) [ "$served" = "$unit" ] || continue ;; esac
    if [ "$served" = "$unit" ]; then
      show_unit unit
      main_pid=$pid main_started=$started kubelet_files=$unit_files
      show_process "process"
    else
      show_unit service
      services="$services$served:$pid "
      [ "$verb" != snapshot ] || show_process "serving $served" # only a plan reads it
    fi
  done
}

measure_unit() { # the units, healthz, lenient, pulls
  find_runtimes
  # shellcheck disable=SC2086 # a list of units
  ask_units "$unit" $runtimes
  show_units
  read_journal
  read_kubelet_log
  [ -z "$lenient" ] || say "lenient $lenient"
  show_pulls
  if [ "$healthz" = 0 ]; then health=off; else probe "$healthz" "$main_pid"; fi
  [ -z "$health" ] || say "healthz $health"
}

show_unit() { # WORD: the lines of `block`, the unit named `served`; its files are added to `unit_files`
  pid=0 started='' dated=''
  IFS=$NL
  for line in $block; do
    value=${line#*=}
    case $line in
      Id=*) continue ;;
      ExecMainStartTimestamp=*) dated=$value && continue ;;
      EnvironmentFiles=*) unit_files="$unit_files ${value%% (*}" && continue ;;
      FragmentPath=* | DropInPaths=*) unit_files="$unit_files $value" ;;
      MainPID=*) pid=${value:-0} ;;
      ExecMainStartTimestampMonotonic=*) started=$value ;;
    esac
    say "$1 $served ${line%%=*} $value"
  done
  unset IFS
  [ "$pid" != 0 ] && is_number "$started" || return 0
  begun="$begun $served:$started" dates="$dates${dated:-@0}$NL"
}

show_process() { # WORDS: the command line of `pid`
  [ "$pid" != 0 ] && [ -r "$R/proc/$pid/cmdline" ] && [ "$brief" = 0 ] || return 0
  encode "$R/proc/$pid/cmdline"
  say "$1 $pid $code"
}

read_kubelet_log() { # into `lenient`, wherever the log is; empty if no line of it can be read
  [ "$main_pid" != 0 ] || return 0
  if [ -z "$lenient" ] && [ "$readable" = 1 ] && ! is_thrown_away "$main_pid"; then # a runtime that logs much may have displaced it
    line=$(bounded 8 journalctl -q -b --no-pager -o short-monotonic -n 1 "_PID=$main_pid" _UID=0 2>/dev/null)
    if logged_at "$line" && [ "$moment" -ge "$since" ]; then lenient=0; fi
  fi
  find_logs "$main_pid"
  read_logs "$main_pid" "$main_started"
}

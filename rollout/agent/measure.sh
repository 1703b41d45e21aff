# ------------------------------------------------------------------------------------------------------------- measuring

note_path() { # PATH…: into `m_list`, each once. Paths outside the alphabet are counted in `m_odd`; the first of them is kept
  local noted
  for noted in "$@"; do
    case $noted in
      '') continue ;;
      [!/]* | *[!A-Za-z0-9_./:@%+=,-]*)
        m_odd=$((${m_odd:-0} + 1))
        [ "$m_odd" -gt 1 ] || m_oddest=$noted
        continue
        ;;
    esac
    case " $m_list " in *" $noted "*) ;; *) m_list="$m_list $noted" ;; esac
  done
}

run_command() { # NAME SECONDS BASE64
  local line shown
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

show_units() { # the kubelet's unit and the runtimes', as answered: properties and processes; into `m_unit_files`, `m_pid`, `m_started`, `m_services`
  local served
  m_unit_files='' m_pid=0 m_started='' m_services=' ' m_begun='' m_dates='' m_kubelet_files=''
  for served in "$unit" $u_runtimes; do
    find_block "$served"
    case $NL$u_block$NL in *"${NL}LoadState=loaded$NL"*) ;; *) [ "$served" = "$unit" ] || continue ;; esac
    if [ "$served" = "$unit" ]; then
      show_unit unit
      m_pid=$m_this_pid m_started=$m_this_started m_kubelet_files=$m_unit_files
      show_process "process"
    else
      show_unit service
      m_services="$m_services$served:$m_this_pid "
      [ "$verb" != snapshot ] || show_process "serving $served" # only a plan reads it
    fi
  done
}

measure_unit() { # the units, healthz, lenient, pulls
  find_runtimes
  # shellcheck disable=SC2086 # a list of units
  ask_units "$unit" $u_runtimes
  show_units
  read_journal
  read_kubelet_log
  [ -z "$l_lenient" ] || say "lenient $l_lenient"
  show_pulls
  if [ "$healthz" = 0 ]; then h_health=off; else probe "$healthz" "$m_pid"; fi
  [ -z "$h_health" ] || say "healthz $h_health"
}

show_unit() { # WORD: the lines of `u_block`, the unit named `served`; its files are added to `m_unit_files`
  local dated line value
  m_this_pid=0 m_this_started='' dated=''
  IFS=$NL
  for line in $u_block; do
    value=${line#*=}
    case $line in
      Id=*) continue ;;
      ExecMainStartTimestamp=*) dated=$value && continue ;;
      EnvironmentFiles=*) m_unit_files="$m_unit_files ${value%% (*}" && continue ;;
      FragmentPath=* | DropInPaths=*) m_unit_files="$m_unit_files $value" ;;
      MainPID=*) m_this_pid=${value:-0} ;;
      ExecMainStartTimestampMonotonic=*) m_this_started=$value ;;
    esac
    say "$1 $served ${line%%=*} $value"
  done
  unset IFS
  [ "$m_this_pid" != 0 ] && is_number "$m_this_started" || return 0
  m_begun="$m_begun $served:$m_this_started" m_dates="$m_dates${dated:-@0}$NL"
}

show_process() { # WORDS: the command line of `m_this_pid`
  [ "$m_this_pid" != 0 ] && [ -r "$R/proc/$m_this_pid/cmdline" ] && [ "$c_brief" = 0 ] || return 0
  encode "$R/proc/$m_this_pid/cmdline"
  say "$1 $m_this_pid $x_code"
}

read_kubelet_log() { # into `l_lenient`, wherever the log is; empty if no line of it can be read
  local line
  [ "$m_pid" != 0 ] || return 0
  if [ -z "$l_lenient" ] && [ "$q_readable" = 1 ] && ! is_thrown_away "$m_pid"; then # a runtime that logs much may have displaced it
    line=$(bounded 8 journalctl -q -b --no-pager -o short-monotonic -n 1 "_PID=$m_pid" _UID=0 2>/dev/null)
    if logged_at "$line" && [ "$l_moment" -ge "$q_since" ]; then l_lenient=0; fi
  fi
  find_logs "$m_pid"
  read_logs "$m_pid" "$m_started"
}

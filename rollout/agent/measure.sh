# ------------------------------------------------------------------------------------------------------------- measuring

measure_note_path() { # PATH…: into `m_list`, each once. Paths outside the alphabet are counted in `m_odd`; the first of them is kept
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

measure_run_command() { # NAME SECONDS BASE64
  local line shown
  if ! { is_name "$1" && is_number "$2"; }; then refuse bad-argument "command $1"; fi
  line=$(printf %s "$3" | base64 -d) || line=''
  [ -n "$line" ] || refuse program-failed "base64 could not decode the command $1" # an empty one would succeed
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

measure_show_units() { # the kubelet's unit and the runtimes', as answered: properties and processes; into `m_unit_files`, `m_pid`, `m_started`, `m_since` (as `u_since`), `m_services`
  local served
  m_unit_files='' m_pid=0 m_started='' m_since='' m_services=' ' m_begun='' m_dates='' m_kubelet_files=''
  for served in "$unit" $u_runtimes; do
    processes_find_block "$served"
    case $NL$u_block$NL in *"${NL}LoadState=loaded$NL"*) ;; *) [ "$served" = "$unit" ] || continue ;; esac
    if [ "$served" = "$unit" ]; then
      measure_show_unit unit
      if ! processes_find_kubelet "$m_this_pid"; then
        p_kubelet=0
        say "unit $served KubeletPID "
      elif [ "$p_kubelet" != "$m_this_pid" ]; then
        say "unit $served KubeletPID $p_kubelet" # a child of the main process
      fi
      m_pid=$p_kubelet m_started=$m_this_started m_since=$m_this_since m_kubelet_files=$m_unit_files
      measure_show_process "$m_pid" "process"
    else
      measure_show_unit service
      m_services="$m_services$served:$m_this_pid "
      [ "$verb" != snapshot ] || measure_show_process "$m_this_pid" "serving $served" # only a plan reads it
    fi
  done
}

measure_unit() { # the units, healthz, lenient, and for a plan the pulls
  processes_find_runtimes
  # shellcheck disable=SC2086 # a list of units
  processes_ask_units "$unit" $u_runtimes
  measure_show_units
  pulls_read_journal
  measure_read_kubelet_log
  [ -z "$l_lenient" ] || say "lenient $l_lenient"
  [ "$verb" != snapshot ] || pulls_show
  if [ "$healthz" = 0 ]; then h_health=off; else processes_probe "$healthz" "$m_pid"; fi
  [ -z "$h_health" ] || say "healthz $h_health"
}

measure_show_unit() { # WORD: the lines of `u_block`, the unit named `served`; its files are added to `m_unit_files`
  local dated line value began
  m_this_pid=0 m_this_started='' m_this_since='' dated=''
  IFS=$NL
  for line in $u_block; do
    value=${line#*=}
    case $line in
      Id=*) continue ;;
      KillMode=* | ControlGroup=*) [ "$verb" = snapshot ] || continue ;; # only a plan reads it
      ExecMainStartTimestamp=*) dated=$value && continue ;;
      InactiveEnterTimestampMonotonic=*) m_this_since=$value && continue ;;
      EnvironmentFiles=*) m_unit_files="$m_unit_files ${value%% (*}" && continue ;;
      FragmentPath=* | DropInPaths=*) m_unit_files="$m_unit_files $value" ;;
      MainPID=*) m_this_pid=${value:-0} ;;
      ExecMainStartTimestampMonotonic=*) m_this_started=$value ;;
    esac
    say "$1 $served ${line%%=*} $value"
  done
  unset IFS
  processes_date_log "$m_this_since" "$m_this_started"
  m_this_since=$u_since
  [ "$m_this_pid" != 0 ] && is_number "$m_this_started" || return 0
  # on a busy machine systemd notes a start late, and the process has read its files by then: the kernel has noted it in time
  began=$m_this_started
  ! restarts_started_at "$m_this_pid" || [ $((h_started_at * 1000)) -ge "$began" ] || began=$((h_started_at * 1000))
  m_begun="$m_begun $served:$began" m_dates="$m_dates${dated:-@0}$NL"
}

measure_show_process() { # PID WORDS: its command line
  local n_words
  [ "$1" != 0 ] && [ -r "$R/proc/$1/cmdline" ] && [ "$c_brief" = 0 ] || return 0
  case $unit,$2 in k3s*,process)
    homes_logged_line "$1"
    [ -z "$n_words" ] || {
      say "$2 $1 $(printf %s "$n_words" | tr '\n' '\0' | base64 | tr -d '\n')"
      return
    }
    ;;
  esac
  shown_files_encode "$R/proc/$1/cmdline"
  say "$2 $1 $x_code"
}

measure_read_kubelet_log() { # into `l_lenient`, wherever the log is; empty if no line of it can be read
  local line
  [ "$m_pid" != 0 ] || return 0
  if [ -z "$l_lenient" ] && [ "$q_readable" = 1 ] && ! processes_is_thrown_away "$m_pid"; then # a runtime that logs much may have displaced it
    line=$(lastly 8 journalctl -q -b --no-pager -o short-monotonic -n 1 "_PID=$m_pid" _UID=0 2>/dev/null)
    if processes_logged_at "$line" && [ "$l_moment" -ge "$q_since" ]; then l_lenient=0; fi
  fi
  processes_find_logs "$m_pid"
  processes_read_logs "$m_pid" "$m_since"
}

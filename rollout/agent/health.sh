health_concern() { # the units to check for health: those of the loaded change and the kubelet's, into `h_concerned`
  local name
  h_concerned=''
  for name in $r_units $r_hangups "$unit"; do
    case " $h_concerned " in *" $name "*) ;; *) h_concerned="$h_concerned${h_concerned:+ }$name" ;; esac
  done
}

health_is_restarted() { case " $r_units " in *" $1 "*) ;; *) return 1 ;; esac }

health_is_unread() { # UNIT, after `processes_look`: it was restarted with the definition in systemd's memory, not with the changed unit files
  [ "$r_reload" != 0 ] && [ "$u_reload" = yes ] && health_is_restarted "$1"
}

health_remember() { # UNIT, after `processes_look`: into `h_memory` what its restart must change, or what must stay the same without one; into `h_longest` the longest RestartSec
  h_memory="$h_memory$1 $u_pid $u_started $u_restarts $u_group$NL"
  case " $r_units $r_hangups " in *" $1 "*) ;; *) return ;; esac
  # shellcheck disable=SC2086 # split into the words of a time span
  milliseconds $u_pause
  [ "$w_span" -lt "$h_longest" ] || h_longest=$w_span h_pause=$u_pause
}

health_remember_units() { # the units of the loaded change, as they are now
  local name
  health_concern
  h_memory=$NL h_longest=0
  # shellcheck disable=SC2086 # a list of units
  processes_ask_units $h_concerned
  for name in $h_concerned; do
    processes_look_up "$name"
    health_remember "$name"
  done
}

health_recall() { # MEMORY UNIT: its process as remembered there
  local line
  line=${1#*"$NL$2 "}
  # shellcheck disable=SC2086 # split into words
  set -- ${line%%"$NL"*}
  h_pid=$1 h_started=$2 h_restarts=$3 h_group=${4-}
}

health_ill() { # UNIT TEXT
  why=$2
  [ "$1" = "$unit" ] || why="$1: $2"
  return 1
}

health_is_seen_up() { # UNIT: by the answer after its restart with the old files; what has changed since then, the last look shows
  [ "$h_fresh" = 1 ] && health_is_restarted "$1" && processes_look_up "$1" && [ "$u_active/$u_restarts" = active/0 ] &&
    [ "$u_pid" != 0 ] && [ "$u_started" != "$h_started" ] && [ -e "$R/proc/$u_pid/cmdline" ]
}

health_comes_up() { # UNIT: it runs, in a process from after its restart, or, without a restart, in the same process; else `why`
  local grave anew
  health_recall "$h_memory" "$1"
  ! health_is_seen_up "$1" || return 0
  anew=$h_fresh
  clock
  grave=$((now + 20000)) # a dead process gets 20 s: the node controller's grace period is 40 s
  [ "$grave" -lt "$until" ] || grave=$until
  while :; do
    if { [ "$anew" = 0 ] && processes_look_up "$1"; } || processes_look "$1"; then
      if health_is_restarted "$1" && [ "$u_restarts" -ne 0 ] && [ "$u_restarts" -ne "$h_restarts" ]; then
        health_ill "$1" "restarted by systemd" || return
      fi
      case $u_active/$u_sub in
        */auto-restart) health_ill "$1" "ended, and systemd is to start it again ($u_active, $u_sub)" || return ;;
        failed/* | inactive/*) health_ill "$1" "ended ($u_active, $u_sub)" || return ;;
        active/*)
          if health_is_restarted "$1"; then
            [ "$u_pid" = 0 ] || [ "$u_started" = "$h_started" ] || return 0
          elif [ "$h_pid" = 0 ] || [ "$u_pid" = "$h_pid" ]; then
            [ "$u_pid" = 0 ] || return 0
          else
            health_ill "$1" "its process went from $h_pid to $u_pid, and this change does not restart it" || return
          fi
          ;;
      esac
    fi
    clock
    [ "$now" -lt "$grave" ] || health_ill "$1" "not seen running (${u_active:-systemctl show reported no state}${u_sub:+, $u_sub})" || return
    anew=1
    nap
  done
}

health_kubelet_comes_up() { # in the process of `unit`, or as a child of it, into `h_kubelet`; else `why`
  health_recall "$h_alive" "$unit"
  while :; do
    processes_find_kubelet "$h_pid"
    h_kubelet=$p_kubelet
    [ "$h_kubelet" = 0 ] || return 0
    clock
    if [ $((now + 2000)) -ge "$until" ] || [ ! -e "$R/proc/$h_pid/cmdline" ]; then
      health_ill "$unit" "not just one kubelet is seen as a child of its main process, $h_pid"
      return
    fi
    nap
  done
}

health_is_born() { # by the kernel, without a question to systemd: the only unit concerned was restarted, and its control group has one process, from after `h_asked_at`.
  # Into `h_alive`, with the time of its start and without a count of restarts, into `h_kubelet` and `h_born`. False: only systemd can show what there is
  local base pid other
  case $h_fresh/$unit in 0/k3s* | 0/rke2-* | 1/*) return 1 ;; esac
  [ "$h_concerned" = "$unit" ] && [ "$r_units" = "$unit" ] || return 1
  health_recall "$h_memory" "$unit"
  [ "$h_pid" != 0 ] && [ "$h_restarts" = 0 ] && [ -n "$h_group" ] || return 1 # so that a restart by systemd shows in the count
  for base in "$R/sys/fs/cgroup" "$R/sys/fs/cgroup/unified" "$R/sys/fs/cgroup/systemd"; do
    [ -e "$base$h_group/cgroup.procs" ] && break
  done
  { read -r pid && ! read -r other; } 2>/dev/null <"$base$h_group/cgroup.procs" || return 1
  is_number "$pid" && [ "$pid" != "$h_pid" ] && restarts_started_at "$pid" && [ $((h_started_at + 10)) -ge "$h_asked_at" ] || return 1
  h_alive="$NL$unit $pid $h_started_at -$NL" h_kubelet=$pid h_born=$h_started_at
}

health_lives() { restarts_started_at "$h_kubelet" && [ "$h_started_at" = "$h_born" ]; } # what `health_is_born` saw

health_is_borne_out() { # UNIT, after `processes_look_up`: what `health_is_born` saw is its main process, and systemd has not restarted it. Into `h_alive`
  local pid
  pid=$h_pid
  health_lives || return 1
  health_recall "$h_memory" "$1"
  [ "$u_pid/$u_restarts/$u_active" = "$pid/0/active" ] && [ "$u_started" != "$h_started" ] || return 1
  h_pid=$u_pid h_started=$u_started h_restarts=$u_restarts h_alive="$NL$1 $u_pid $u_started $u_restarts$NL"
}

health_come_up() { # all of `h_concerned`; their processes into `h_alive`, and that of the kubelet into `h_kubelet`
  local name
  h_alive=$NL
  # shellcheck disable=SC2086 # a list of units
  [ "$h_fresh" = 1 ] || processes_ask_units $h_concerned
  for name in $h_concerned; do
    health_comes_up "$name" || return 1
    h_alive="$h_alive$name $u_pid $u_started $u_restarts$NL"
  done
  h_fresh=0
  health_kubelet_comes_up
}

health_stay_up() { # for longer than the longest RestartSec, each in one process. In between only /proc is read, which costs nothing
  local steady name
  clock
  steady=$now
  [ "$h_longest" -eq 0 ] || steady=$((now + h_longest + h_longest / 10 + 100))
  # RKE2 waits 5 s before it starts a kubelet that ended once more
  case $unit,$h_longest in *,0) ;; rke2-*) [ "$steady" -ge $((now + 5600)) ] || steady=$((now + 5600)) ;; esac
  while clock && [ "$now" -lt "$steady" ]; do
    for name in $h_concerned; do
      health_recall "$h_alive" "$name"
      [ -e "$R/proc/$h_pid/cmdline" ] || health_ill "$name" "its process exited" || return
    done
    [ -e "$R/proc/$h_kubelet/cmdline" ] || health_ill "$unit" "its kubelet exited" || return
    [ "$now" -lt "$until" ] || health_ill "$unit" "the guard was about to fire" || return
    doze $((steady - now))
  done
  # shellcheck disable=SC2086 # a list of units
  processes_ask_units $h_concerned
  for name in $h_concerned; do
    health_recall "$h_alive" "$name"
    processes_look_up "$name" && { [ "$h_restarts" != - ] || health_is_borne_out "$name"; } && [ "$u_pid $u_started $u_restarts $u_active" = "$h_pid $h_started $h_restarts active" ] ||
      health_ill "$name" "systemctl show does not report the same process any more" || return
    ! health_is_unread "$name" || health_ill "$name" "systemd has not read its unit files anew" || return
  done
  health_recall "$h_alive" "$unit"
  processes_find_kubelet "$h_pid"
  [ "$p_kubelet" = "$h_kubelet" ] || health_ill "$unit" "its kubelet is not seen any more"
}

health_answers() { # /healthz, while there is time; off (port 0) and no program to send the request count as answered
  h_health=off
  [ "$healthz" != 0 ] || return 0
  while :; do
    processes_probe "$healthz" "$pid"
    case $h_health in
      ok | '') return 0 ;;
      not-its-own)
        why="the main process"
        case $unit in rke2-*) why="the kubelet" ;; esac
        why="healthz: another process than $pid, $why of $unit, listens on port $healthz"
        ;;
      not-observed) why="healthz: this node does not show which process listens on port $healthz" ;;
      *) why="healthz: $h_health" ;;
    esac
    clock
    [ $((now + 2000)) -lt "$until" ] && [ -e "$R/proc/$pid/cmdline" ] || return 1
    nap
  done
}

health_knows_its_fields() { # the process `pid`, by its log. A log that cannot be read counts as a failure, after half of the time that is left: klog writes its
  # files every 5 s, and on a node without a free processor the kubelet and the journal may need long for a first line
  local patience
  processes_look_up "$unit"
  clock
  patience=$(((now + until) / 2))
  [ "$patience" -ge $((now + 20000)) ] || patience=$((now + 20000))
  while processes_count_lenient "$u_id" "$pid" "$u_since" && [ -z "$l_lenient" ]; do
    [ "$unread" = 0 ] || return 0 # the order accepts an unread log
    why="not a line of its log can be read, or none that shows that it has read its configuration"
    clock
    [ "$now" -lt "$patience" ] && [ $((now + 2000)) -lt "$until" ] && [ -e "$R/proc/$pid/cmdline" ] || return 1
    nap
  done
  why="its log has $l_lenient lines of lenient decoding: it ignores a part of its configuration"
  [ "$l_lenient" -eq 0 ]
}

health_is_proven() { # compared with what was remembered before the restart; the reason or the result into `why`
  local pid n_words
  if health_is_born; then
    health_stay_up || { health_lives && health_come_up && health_stay_up; } || return 1 # it lives, and systemd may have another main process
  else
    health_come_up && health_stay_up || return 1
  fi
  health_recall "$h_alive" "$unit"
  pid=$h_kubelet
  health_answers || return 1
  case $NL$PAYLOAD in *"${NL}argument "*)
    homes_command_line "$pid"
    n_words=$NL$n_words$NL
    processes_has_arguments || return 1
    ;;
  esac
  # after a revert (no payload) the files are whatever they were before the change; without a restart they were not read
  [ -z "$PAYLOAD" ] || ! health_is_restarted "$unit" || health_knows_its_fields || return 1
  why="$((h_longest / 1000)) s without a restart, healthz ${h_health:-not requested}"
}

health_tell() { # of the units, after a restart with the old files
  case $v_how in
    nothing) # no unit was restarted: each is to run as it is now
      r_units='' r_hangups=''
      health_remember_units
      ;;
    finished) return ;;
  esac
  if health_is_proven; then say "healthy yes $why"; else say "healthy no $why"; fi
}

health_tell_reverted() { # of the loaded transaction, whatever reverted it: a unit that does not run with the old files
  local since name looks
  [ "$r_state" = reverted ] || return 0
  boot_id
  since=boot # whatever reverted it, a later boot has started all units
  [ "$r_cause" = boot ] || [ "$r_boot" != "$boot" ] || since=$r_cause
  # shellcheck disable=SC2086 # a list of units
  set -- $r_hangups $r_units
  [ "$#" -gt 0 ] || return 0
  processes_ask_units "$@"
  for name in "$@"; do
    processes_look_up "$name" || { health_tell_unasked "$name" && return; }
    looks=1
    while [ "$u_active/$since" = "inactive/$r_cause" ] && [ "$looks" -le 10 ]; do # between the stop and the start of a restart
      nap
      processes_look "$name" || { health_tell_unasked "$name" && return; }
      looks=$((looks + 1))
    done
    ! health_is_unread "$name" || { say "healthy no $name: systemd has not read its unit files anew" && return; }
    case $u_active/$u_sub/$since in
      */auto-restart/boot | inactive/*/boot) ;; # what it needs may still be starting
      failed/* | inactive/* | */auto-restart/*) say "healthy no $name is $u_sub with the old files" && return ;;
    esac
  done
}

health_tell_unasked() { say "refused systemd-not-answering systemctl show reported no state of $1, which runs or does not run with its old files"; } # UNIT

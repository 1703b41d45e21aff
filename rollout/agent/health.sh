concern() { # the units to check for health: those of the loaded change and the kubelet's, into `concerned`
  concerned=''
  for name in $r_units $r_hangups "$unit"; do
    case " $concerned " in *" $name "*) ;; *) concerned="$concerned${concerned:+ }$name" ;; esac
  done
}

is_restarted() { case " $r_units " in *" $1 "*) ;; *) return 1 ;; esac }

is_unread() { # UNIT, after `look`: it was restarted with the definition in systemd's memory, not with the changed unit files
  [ "$r_reload" != 0 ] && [ "$u_reload" = yes ] && is_restarted "$1"
}

remember() { # UNIT, after `look`: what its restart must change, or what must stay the same without one; the longest RestartSec
  memory="$memory$1 $u_pid $u_started $u_restarts$NL"
  case " $r_units $r_hangups " in *" $1 "*) ;; *) return ;; esac
  # shellcheck disable=SC2086 # split into the words of a time span
  milliseconds $u_pause
  [ "$span" -lt "$longest" ] || longest=$span pause=$u_pause
}

remember_units() { # the units of the loaded change, as they are now
  concern
  memory=$NL longest=0
  for name in $concerned; do
    look "$name"
    remember "$name"
  done
}

recall() { # MEMORY UNIT: its process as remembered there
  line=${1#*"$NL$2 "}
  # shellcheck disable=SC2086 # split into words
  set -- ${line%%"$NL"*}
  was_pid=$1 was_started=$2 was_restarts=$3
}

ill() { # UNIT TEXT
  why=$2
  [ "$1" = "$unit" ] || why="$1: $2"
  return 1
}

is_seen_up() { # UNIT: by the answer after its restart with the old files; what has changed since then, the last look shows
  [ "$fresh" = 1 ] && is_restarted "$1" && look_up "$1" && [ "$u_active/$u_restarts" = active/0 ] &&
    [ "$u_pid" != 0 ] && [ "$u_started" != "$was_started" ] && [ -e "$R/proc/$u_pid/cmdline" ]
}

comes_up() { # UNIT: it runs, in a process from after its restart, or, without a restart, in the same process; else `why`
  recall "$memory" "$1"
  ! is_seen_up "$1" || return 0
  clock
  grave=$((now + 20000)) # a dead process gets 20 s: the node controller's grace period is 40 s
  [ "$grave" -lt "$until" ] || grave=$until
  while :; do
    if look "$1"; then
      if is_restarted "$1" && [ "$u_restarts" -ne 0 ] && [ "$u_restarts" -ne "$was_restarts" ]; then
        ill "$1" "restarted by systemd" || return
      fi
      case $u_active/$u_sub in
        failed/* | inactive/* | */auto-restart) ill "$1" "exited ($u_active, $u_sub)" || return ;;
        active/*)
          if is_restarted "$1"; then
            [ "$u_pid" = 0 ] || [ "$u_started" = "$was_started" ] || return 0
          elif [ "$was_pid" = 0 ] || [ "$u_pid" = "$was_pid" ]; then
            [ "$u_pid" = 0 ] || return 0
          else
            ill "$1" "its process went from $was_pid to $u_pid though nobody restarted it" || return
          fi
          ;;
      esac
    fi
    clock
    [ "$now" -lt "$grave" ] || ill "$1" "not running (${u_active:-systemd silent}, $u_sub)" || return
    nap
  done
}

come_up() { # all of `concerned`; their processes into `alive`
  alive=$NL
  for name in $concerned; do
    comes_up "$name" || return 1
    alive="$alive$name $u_pid $u_started $u_restarts$NL"
  done
  fresh=0
}

stay_up() { # for longer than the longest RestartSec, each in one process. In between only /proc is read, which costs nothing
  clock
  steady=$now
  [ "$longest" -eq 0 ] || steady=$((now + longest + longest / 10 + 100))
  while clock && [ "$now" -lt "$steady" ]; do
    for name in $concerned; do
      recall "$alive" "$name"
      [ -e "$R/proc/$was_pid/cmdline" ] || ill "$name" "its process exited" || return
    done
    [ "$now" -lt "$until" ] || ill "$unit" "the guard was about to fire" || return
    doze $((steady - now))
  done
  # shellcheck disable=SC2086 # a list of units
  ask_units ${measured:-$concerned}
  for name in $concerned; do
    recall "$alive" "$name"
    look_up "$name" && [ "$u_pid $u_started $u_restarts $u_active" = "$was_pid $was_started $was_restarts active" ] ||
      ill "$name" "its process exited" || return
    ! is_unread "$name" || ill "$name" "systemd has not read its unit files anew" || return
  done
  return 0
}

answers() { # /healthz, while there is time; off (port 0) and no program to send the request count as answered
  health=off
  [ "$healthz" != 0 ] || return 0
  while :; do
    probe "$healthz" "$pid"
    case $health in
      ok | '') return 0 ;;
      not-its-own) why="healthz: another process than $pid, the main process of $unit, listens on port $healthz" ;;
      not-observed) why="healthz: this node does not show which process listens on port $healthz" ;;
      *) why="healthz: $health" ;;
    esac
    clock
    [ $((now + 2000)) -lt "$until" ] && [ -e "$R/proc/$pid/cmdline" ] || return 1
    nap
  done
}

knows_its_fields() { # the process `pid`, by its log. A log that cannot be read counts as a failure; klog writes its files every 5 s
  look_up "$unit"
  clock
  patience=$((now + 20000))
  while count_lenient "$u_id" "$pid" "$was_started" && [ -z "$lenient" ]; do
    [ "$unread" = 0 ] || return 0 # the order accepts an unread log
    why="not a line of its log can be read, or none that shows that it has read its configuration"
    clock
    [ "$now" -lt "$patience" ] && [ $((now + 2000)) -lt "$until" ] && [ -e "$R/proc/$pid/cmdline" ] || return 1
    nap
  done
  why="$lenient lines of lenient decoding: a field of its configuration is unknown"
  [ "$lenient" -eq 0 ]
}

is_healthy() { # compared with what was remembered before the restart; the reason or the result into `why`
  come_up && stay_up || return 1
  recall "$alive" "$unit"
  pid=$was_pid
  answers || return 1
  case $NL$PAYLOAD in *"${NL}argument "*)
    command_line "$pid"
    words=$NL$words$NL
    each argument has_argument || return 1
    ;;
  esac
  # after a revert (no payload) the files are whatever they were before the change; without a restart they were not read
  [ -z "$PAYLOAD" ] || ! is_restarted "$unit" || knows_its_fields || return 1
  why="$((longest / 1000)) s without a restart, healthz ${health:-off}"
}

tell_health() { # of the units, after a restart with the old files
  case $how in
    nothing) say "healthy yes no file had been exchanged" && return ;;
    finished) return ;;
  esac
  if is_healthy; then say "healthy yes $why"; else say "healthy no $why"; fi
}

tell_taken_back() { # of the loaded transaction, whatever reverted it: a unit that does not run with the old files
  [ "$r_state" = reverted ] || return 0
  boot_id
  since=boot # whatever reverted it, a later boot has started all units
  [ "$r_cause" = boot ] || [ "$r_boot" != "$boot" ] || since=$r_cause
  for name in $r_hangups $r_units; do
    look "$name" || return 0
    ! is_unread "$name" || { say "healthy no $name: systemd has not read its unit files anew" && return; }
    case $u_active/$u_sub/$since in
      */auto-restart/boot) ;; # what it needs may still be starting
      failed/* | */auto-restart/*) say "healthy no $name is $u_sub with the old files" && return ;;
    esac
  done
}

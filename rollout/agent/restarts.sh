restarts_hang_up() { # UNIT: make its main process read its configuration again
  bounded 10 systemctl kill -s HUP --kill-who=main "$1" >/dev/null 2>&1
}

restarts_unit() { bounded 90 systemctl restart "$1" >/dev/null 2>&1; }

restarts_surely() { # UNIT: a second attempt if the first one had no success; else `w_ended`. systemd merges two restarts that are requested at once
  local end
  restarts_unit "$1" && return
  end=$?
  tell_end "$end"
  case $end in 124 | 137) ;; *) bounded 5 systemctl reset-failed "$1" >/dev/null 2>&1 ;; esac # a crash loop's start limit blocks the old files too
  clock
  [ $((now + 3000)) -lt "$until" ] || return 1
  restarts_unit "$1" && return
  tell_end $?
  return 1
}

restarts_running() { # at boot the units start after us; one that runs already reads its old files as soon as we have ended
  local name
  # shellcheck disable=SC2086 # a list of units
  set -- $r_hangups $r_units
  [ "$#" -gt 0 ] || return 0
  processes_ask_units "$@"
  for name in "$@"; do
    processes_look_up "$name"
    [ "$u_pid" = 0 ] || bounded 10 systemctl --no-block restart "$name" >/dev/null 2>&1
  done
}

restarts_units() { # in order, after the SIGHUPs; `why`, if one fails. Since when, into `h_asked_at`
  local name
  clock
  h_asked_at=$now
  for name in $r_hangups; do
    restarts_hang_up "$name" || { tell_end $? && why="systemctl kill --signal=HUP $name $w_ended" && return 1; }
  done
  for name in $r_units; do
    restarts_unit "$name" || { tell_end $? && why="systemctl restart $name $w_ended" && return 1; }
  done
}

restarts_again() { # with the old files: every unit, even if others fail; those not seen to be restarted into `v_unrestarted`
  local name unheard
  unheard=''
  clock
  h_given_at=$now
  health_remember_units # now: a crash loop went on while the files were restored: its restarts do not count against the units
  for name in $r_hangups; do # a process that died of a SIGHUP is started
    restarts_hang_up "$name" || restarts_surely "$name" || {
      unheard="$unheard $name"
      say "say restart-failed systemctl kill --signal=HUP $name did not succeed, and systemctl restart $name $w_ended"
    }
  done
  [ -n "$r_units$unheard" ] || return 0
  for name in $r_units; do
    restarts_surely "$name" || say "say restart-failed systemctl restart $name $w_ended"
  done
  h_asked_at=$h_given_at
  ! health_is_born || return 0
  # shellcheck disable=SC2086 # a list of units
  processes_ask_units $r_units $unheard
  h_fresh=1
  for name in $r_units $unheard; do
    if restarts_is_seen "$name"; then restarts_recount "$name"; else v_unrestarted="$v_unrestarted${v_unrestarted:+ }$name"; fi
  done
}

restarts_recount() { # UNIT, after a look: systemd's restarts count from now on. One that was due before ours began was not in the look before, and stays counted
  health_recall "$h_memory" "$1"
  h_memory="$NL$1 $h_pid $h_started $u_restarts$h_memory"
}

restarts_is_seen() { # UNIT: by the last answer it has no process, or one younger than the restored files. systemctl's exit status is no proof
  processes_look_up "$1" || return 1
  [ "$u_pid" != 0 ] || return 0
  if restarts_started_at "$u_pid"; then
    [ $((h_started_at + 10)) -ge "$h_given_at" ]
  else
    health_recall "$h_memory" "$1"
    [ "$h_started" != 0 ] && [ "$u_started" != "$h_started" ]
  fi
}

restarts_started_at() { # PID: when it started, in milliseconds since boot
  local stat name_there
  read -r stat 2>/dev/null <"$R/proc/$1/stat" || return 1
  name_there=${stat%)*} # its name may hold anything
  # shellcheck disable=SC2086 # split into fields
  set -- ${stat#"$name_there) "}
  h_started_at=$((${20} * 10)) # hundredths of a second, on every supported Linux
}

restarts_reload() { # else `why`. Without the boot unit: once systemd has it in memory, only another reload removes it. An empty file in a folder that comes
  # first in its search hides the link (since systemd 234); it is gone before the next boot, as all of /run is
  local reloaded
  [ "$r_reload" != 0 ] || return 0
  { [ -d "${HIDDEN%/*}" ] || mkdir -p "${HIDDEN%/*}" 2>/dev/null; } && true 2>/dev/null >"$HIDDEN"
  bounded 30 systemctl daemon-reload >/dev/null 2>&1
  reloaded=$?
  restarts_show_boot_unit
  [ "$reloaded" -eq 0 ] || { tell_end "$reloaded" && why="systemctl daemon-reload $w_ended"; }
  return "$reloaded"
}

restarts_show_boot_unit() { rm -fd "$HIDDEN" "${HIDDEN%/*}" 2>/dev/null || rm -f "$HIDDEN"; } # to systemd again. The folder may have files of others; busybox has no -d

restarts_reload_surely() { # a second attempt if systemd refused (little room in /run); if it hung, it reloads before the restart, as soon as it can
  restarts_reload && return
  case $? in 124 | 137) ;; *) nap && restarts_reload && return ;; esac
  say "say reload-failed $why"
}

# -------------------------------------------------------------------------------------------------------------- guard

write_boot_unit() { # UNITS FOLDERS; durable only after the caller's flush
  [ ! -L "$SYSTEM/$BOOT_UNIT" ] || return 1 # masked, or a link that leads the write elsewhere
  [ -d "${WANTED%/*}" ] || { true >"$T/made-wants" && mkdir -p "${WANTED%/*}"; } || return 1
  umask 022
  # no default dependencies: they would order it after the target that wants it
  printf '%s\n' "[Unit]" "Description=rollout: take transaction $tx back unless it was confirmed" "DefaultDependencies=no" \
    "Requires=sysinit.target" "After=sysinit.target" "Before=basic.target shutdown.target $1" "Conflicts=shutdown.target" \
    "RequiresMountsFor=/var/lib/rollout $2" "[Service]" "Type=oneshot" "ExecStart=/bin/sh $T/agent boot" \
    "TimeoutStartSec=60" "[Install]" "WantedBy=basic.target" >"$SYSTEM/$BOOT_UNIT"
  written=$?
  umask 077
  [ "$written" -eq 0 ] || return 1
  # shellcheck disable=SC3013 # dash, bash and busybox have -ef
  { [ -L "$WANTED" ] && [ "$WANTED" -ef "$SYSTEM/$BOOT_UNIT" ]; } || { drop "$WANTED" && ln -s "../$BOOT_UNIT" "$WANTED"; }
}

remove_boot_unit() {
  drop "$WANTED" "$WANTED_ONCE" "$SYSTEM/$BOOT_UNIT"
  [ ! -e "$HIDDEN" ] || show_boot_unit
  [ ! -e "$T/made-wants" ] || [ ! -d "${WANTED%/*}" ] || rmdir "${WANTED%/*}" 2>/dev/null || :
}

disarm() { # what is already gone is no error; a watch does not stop itself
  strings="rollout-guard-$tx.timer"
  [ "$verb" = watch ] || strings="$strings rollout-watch-$tx.service"
  # shellcheck disable=SC2086 # a list of units
  bounded 10 systemctl stop $strings >/dev/null 2>&1 || :
  remove_boot_unit
}

start_timer() { # SECONDS OPTION…: it starts a guard of the loaded transaction, again and again until one succeeds
  delay=$1
  shift
  # `systemctl isolate rescue.target` stops timers and services in the same boot
  bounded 10 systemd-run --quiet "$@" --unit="rollout-guard-$tx" --on-active="$delay" \
    --timer-property=AccuracySec=100ms --timer-property=RemainAfterElapse=no --timer-property=IgnoreOnIsolate=yes --collect \
    --property=IgnoreOnIsolate=yes --property=Restart=on-failure --property=RestartSec=5 \
    /bin/sh "$T/agent" guard "$tx" >/dev/null 2>&1
}

start_strings() { # OPTION…: a timer that fires at r_deadline, never before; and a process that sleeps, which needs no timer
  clock
  delay=$(((r_deadline - now + 999) / 1000))
  [ "$delay" -ge 1 ] || delay=1
  start_timer "$delay" "$@"
  bounded 10 systemd-run --quiet "$@" --unit="rollout-watch-$tx" --collect --property=IgnoreOnIsolate=yes \
    --property=Restart=on-failure --property=RestartSec=5 /bin/sh "$T/agent" watch "$tx" $(((r_deadline + 10999) / 1000)) >/dev/null 2>&1
}

keep_strings() { # of the loaded transaction, armed in this boot: start them again if somebody stopped the timer
  [ "$r_state" = armed ] && boot_id && [ "$r_boot" = "$boot" ] || return 0
  shown=$(lastly 5 systemctl show -p ActiveState "rollout-guard-$tx.timer" "rollout-guard-$tx.service") || return 0
  case $shown in *ActiveState=active* | *ActiveState=activating*) ;; *) start_strings --no-block ;; esac
}

guard_is_proven() { # by what systemd shows, whatever systemd-run returned
  asked_units="rollout-guard-$tx.timer rollout-watch-$tx.service $BOOT_UNIT default.target multi-user.target"
  # shellcheck disable=SC2086 # a list of units
  blocks=$(lastly 10 systemctl show -p ActiveState -p NextElapseUSecMonotonic -p MainPID -p UnitFileState -p Requires -p Wants $asked_units 2>/dev/null)$NL
  name_blocks
  find_block "rollout-guard-$tx.timer"
  case $NL$block$NL in *"${NL}ActiveState=active$NL"*) ;; *) return 1 ;; esac
  next=${block##*NextElapseUSecMonotonic=}
  case ${next%%"$NL"*} in '' | 0 | infinity | *=*) return 1 ;; esac
  look_up "rollout-watch-$tx.service" && [ "$u_active" = active ] && [ "$u_pid" != 0 ] || return 1
  look_up "$BOOT_UNIT"
  [ "$u_file" = enabled ] || [ "$(bounded 10 systemctl is-enabled "$BOOT_UNIT" 2>/dev/null)" = enabled ] || return 1 # it may remember an older file
  is_reached
}

is_reached() { # the next boot reaches basic.target, as systemd itself resolves its default target: in the answer, or, for a target of one's own, anew
  ! needs default.target basic.target || return 0
  ! needs default.target multi-user.target || ! needs multi-user.target basic.target || return 0
  for needed in $(bounded 10 systemctl list-dependencies --plain --no-pager default.target 2>/dev/null); do
    [ "$needed" != basic.target ] || return 0
  done
  return 1
}

needs() { # UNIT OTHER: by the last answer, it requires or wants the other
  find_block "$1"
  for needed in $block; do
    case $needed in "$2" | "Requires=$2" | "Wants=$2") return 0 ;; esac
  done
  return 1
}

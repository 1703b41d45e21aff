# ------------------------------------------------------------------------------------------------------------- triggers

triggers_guard_locked() {
  if receipt_load "$tx"; then
    case $r_state in
      armed | reverting) revert_fully guard restart || [ "$v_stuck" = not-durable ] || exit 1 ;;
      *)
        if durable_seal; then guard_disarm; elif durable_is_lost && [ "$r_state" = confirmed ]; then revert_fully not-durable restart || exit 1; else exit 1; fi
        ;;
    esac
    triggers_leave_no_boot_unit
  else
    ! receipt_is_unread || exit 1 # it may be armed: systemd runs this again
    [ ! -d "$T" ] || staging_abandon
  fi
}

triggers_leave_no_boot_unit() { # there may be no cleanup after a guard
  [ ! -e "$SYSTEM/$BOOT_UNIT" ] || return 0
  cleanup_list_guards
  case $e_guards in *"$BOOT_UNIT"*) cleanup_forget_boot_unit ;; esac
}

verb_guard() { # TX: the time is over
  allow 200
  lock_seize || exit 1
  triggers_guard_locked 9>&-
}

verb_watch() { # TX: sleep until the timer must have fired and started its guard; then act as the guard
  receipt_load "$tx" || { ! receipt_is_unread || exit 1; }
  boot_id && [ -n "$r_state" ] && [ "$r_boot" = "$boot" ] || exit 0
  while clock && [ "$now" -lt $((r_deadline + 10000)) ]; do
    sleep $(((r_deadline + 10000 - now + 999) / 1000)) || nap
  done
  verb_guard
}

triggers_boot_locked() {
  local later name
  receipt_list
  boot_id
  later=0
  for name in $r_all; do
    receipt_load "$name" || return 1
    clock
    case $r_state in
      armed)
        if [ "$r_boot" = "$boot" ] && [ "$now" -lt "$r_deadline" ]; then
          later=1 # the boot unit ran again in the same boot: this boot's timer is still to come
          guard_keep
          continue
        fi
        revert_fully boot files || return 1
        ;;
      reverting) revert_fully "$r_cause" files || return 1 ;;
      *) durable_has_ended || later=1 ;;
    esac
  done
  [ -z "$r_unread" ] || return 1
  [ "$later" = 1 ] || { receipt_here - && guard_remove_boot_unit; }
}

verb_boot() { # before the units start: only files and unit definitions; nothing here waits for a unit
  allow 50
  lock_seize && triggers_boot_locked 9>&- || exit 1
}

verb_leave() { # after the boot unit: timer and watch ended with the previous boot, and nothing starts the boot unit again. So what it has not
  # ended is left to guards. Nothing here waits for systemd
  local name
  allow 25
  receipt_list
  for name in $r_unread $r_all; do
    receipt_load "$name"
    receipt_seconds_left # this boot's own timer is still to come
    case $r_left/$r_state in
      0/ | 0/armed | 0/reverting) ;;
      */armed) continue ;;
      *) durable_is_unsettled || continue ;; # the disk may still have it as reverting
    esac
    guard_start_timer 5 --no-block || bounded 5 systemctl is-active --quiet "rollout-guard-$tx.timer" "rollout-guard-$tx.service" || exit 1
  done
}

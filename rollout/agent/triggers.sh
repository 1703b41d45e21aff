# ------------------------------------------------------------------------------------------------------------- triggers

guard_locked() {
  if load "$tx"; then
    case $r_state in
      armed | reverting) take_back guard restart || [ "$stuck" = not-durable ] || exit 1 ;;
      *)
        if seal; then disarm; elif is_lost && [ "$r_state" = confirmed ]; then take_back guard restart || exit 1; else exit 1; fi
        ;;
    esac
    leave_no_boot_unit
  else
    here "$tx"
    [ ! -d "$T" ] || abandon
  fi
}

leave_no_boot_unit() { # there may be no cleanup after a guard
  [ ! -e "$SYSTEM/$BOOT_UNIT" ] || return 0
  list_guards
  case $guards in *"$BOOT_UNIT"*) forget_boot_unit ;; esac
}

verb_guard() { # TX: the time is over
  allow 200
  seize || exit 1
  guard_locked 9>&-
}

verb_watch() { # TX: sleep until the timer must have fired and started its guard; then act as the guard
  load "$tx" && boot_id && [ "$r_boot" = "$boot" ] || exit 0
  while clock && [ "$now" -lt $((r_deadline + 10000)) ]; do
    sleep $(((r_deadline + 10000 - now + 999) / 1000)) || nap
  done
  verb_guard
}

boot_locked() {
  transactions
  boot_id
  later=0
  for name in $all_tx; do
    load "$name"
    clock
    case $r_state in
      armed)
        if [ "$r_boot" = "$boot" ] && [ "$now" -lt "$r_deadline" ]; then
          later=1 # the boot unit ran again in the same boot: this boot's timer is still to come
          keep_strings
          continue
        fi
        take_back boot files || return 1
        ;;
      reverting) take_back "$r_cause" files || return 1 ;;
    esac
  done
  [ "$later" = 1 ] || { here - && remove_boot_unit; }
}

verb_boot() { # before the units start: only files and unit definitions; nothing here waits for a unit
  allow 50
  trap give_up TERM # the unit's time is over
  if seize && boot_locked 9>&-; then return; fi
  give_up
}

give_up() {
  leave_to_guards 9>&-
  exit 1
}

leave_to_guards() { # timer and watch ended with the previous boot, and nothing starts the boot unit again. Nothing here waits for systemd
  allow 5
  transactions
  for name in $all_tx; do
    load "$name"
    seconds_left # this boot's own timer is still to come
    case $left/$r_state in 0/armed | 0/reverting) start_timer 5 --no-block ;; esac
  done
}

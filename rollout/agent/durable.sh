# --------------------------------------------------------------------------------------------------------- durability

# A sync ends in one of four ways:
#
#     by itself         its result is final. Linux reports a lost write once: the next sync would succeed without the bytes
#     not started       there is no process for it at the moment: it is started again while this verb lasts
#     not yet           it is waited for while this verb lasts, and never killed: a killed one may have had the only report of a lost write
#     killed by others  its result is not known
#
# Where a result is not known, the same sync proves nothing. The bytes go into a new inode, which is synced and renamed.
# A transaction's folder notes such a sync before it starts (`unsettled`), so that whatever verb of this boot comes next does that.

durable_flush() { # FILE OR DIRECTORY…: sync. False if its success was not seen; then `undurable` has the reason
  local d_until d_child
  clock
  d_until=$((until > now + 1000 ? until : now + 1000))
  [ -z "$d_haste" ] || [ "$d_until" -lt $((now + d_haste * 1000)) ] || d_until=$((now + d_haste * 1000))
  while :; do
    d_status=127
    command eval 'sync "$@" >/dev/null 2>&1 & d_status=' 2>/dev/null # without `command`, a fork that fails would end dash
    if [ -z "$d_status" ]; then
      d_child=$!
      durable_await || { [ -z "$d_haste" ] || { d_late="$d_late $d_child:$d_birth" && return; }; }
    fi
    clock
    case $d_status in 126 | 127) [ $((now + 500)) -ge "$d_until" ] || ! command -v sync >/dev/null || { nap && continue; } ;; esac
    durable_judge
    return
  done
}

durable_await() { # the end of `d_child`, until `d_until`: its `d_status`; false if it has not ended
  local rest
  d_birth='' d_status='' rest=20 # a shorter one makes more looks at a busy node, and each look is a process
  while born "$d_child" && [ "$p_born" = "${d_birth:-$p_born}" ]; do
    d_birth=$p_born
    case $p_state in Z | X) break ;; esac
    clock
    [ "$now" -lt "$d_until" ] || return 1
    doze "$rest"
    rest=$((rest < 400 ? rest * 2 : 800))
  done
  wait "$d_child"
  d_status=$?
}

durable_judge() { # `d_status` of a sync, empty if it has not ended: false, and `undurable`, if that is no success. A failure stays
  local reason
  case $d_status in
    0) return ;;
    '') reason='sync has not ended' ;;
    126 | 127) reason='sync could not be started' ;;
    12? | 1[3-9]? | 2??) reason='sync was killed' ;;
    *) reason='sync failed' ;;
  esac
  durable_is_lost || undurable=$reason
  return 1
}

durable_is_lost() { [ "$undurable" = 'sync failed' ]; } # the disk itself reported it

durable_flush_soon() { # FILE OR DIRECTORY…: like flush, but what a disk needs longer for is left to `durable_flush_rest`: the restart must not wait for it
  d_haste=30
  durable_flush "$@"
  d_haste=''
}

durable_flush_rest() { # the results that `durable_flush_soon` did not wait for
  local d_until entry d_child
  clock
  d_until=$((until > now + 1000 ? until : now + 1000))
  for entry in $d_late; do
    d_child=${entry%:*}
    durable_await || :
    durable_judge || :
  done
  d_late=''
}

durable_unsettle() { # the loaded transaction's next sync may end without a result. Best effort on a full disk
  boot_id
  printf '%s\n' "$boot" 2>/dev/null >"$T/unsettled" || :
}

durable_settled() { true 2>/dev/null >"$T/unsettled" || :; }

durable_is_unsettled() { # what one boot wrote, another one reads from the disk
  local unsettled
  [ -s "$T/unsettled" ] && boot_id && read -r unsettled <"$T/unsettled" && [ "$unsettled" = "$boot" ]
}

durable_seal() { # the loaded transaction's receipt, if no sync after its rename is known to have succeeded: the same bytes in a new inode
  durable_is_unsettled || return 0
  printf %s "$r_text" 2>/dev/null >"$T/receipt.new" && durable_flush "$T/receipt.new" && mv -f "$T/receipt.new" "$T/receipt" && durable_flush "$T" && durable_settled
}

durable_has_ended() { # the loaded transaction needs no guard any more: neither by its receipt nor by the one that the disk may still have
  case $r_state in '') ;; armed | reverting) return 1 ;; *) durable_seal ;; esac
}

durable_renew() { # the same for the old files that an earlier revert restored. Their new ones are not needed any more: their names are free
  local n
  n=1
  while [ "$n" -le "$r_files" ]; do
    files_load "$n" || return 1
    if [ "$f_before" != absent ] && files_is_as "$f_before" "$f_path"; then
      drop "$R$f_new" && cp -a "$R$f_path" "$R$f_new" && durable_flush "$R$f_new" && let_go 30 mv -f "$R$f_new" "$R$f_path" || return 1
    fi
    n=$((n + 1))
  done
}

durable_keep_trying() { # of the loaded transaction, not ended: a guard in this boot, unless a verb is at work, or nothing in this boot can end it
  local shown
  { [ "$r_state" = reverting ] || durable_is_unsettled || { [ "$r_state" = armed ] && boot_id && [ "$r_boot" != "$boot" ]; }; } && command -v flock >/dev/null && flock -n "$S/lock" true || return 0
  revert_read_stuck
  [ "$v_stuck" != not-durable ] || return 0
  shown=$(lastly 5 systemctl show -p ActiveState "rollout-guard-$tx.timer" "rollout-guard-$tx.service") || return 0
  case $shown in *ActiveState=active* | *ActiveState=activating*) ;; *) guard_start_timer 5 --no-block || : ;; esac
}

# --------------------------------------------------------------------------------------- confirm, revert, cleanup, status

confirm_prune() { # remove all but the newest `keep` confirmed ones, what is newer than these, and those under way, by what the disk may still have; the receipt first
  local count reverted name
  receipt_list last # what a kept one left on a path is what the path holds, only if none after it was removed
  count=0 reverted=0
  for name in $r_all; do
    receipt_load_known "$name"
    case $r_state in # a reverted one, as each rehearsal, has no change that could be rolled back: it takes the place of no other
      confirmed) count=$((count + 1)) ;;
      reverted) reverted=$((reverted + 1)) ;;
    esac
    case $r_state,$count in armed,* | reverting,* | confirmed,1) continue ;; esac
    { [ "$count" -le "$keep" ] && [ "$reverted" -le $((4 * keep)) ]; } || confirm_keeps_foreign || durable_is_unsettled ||
      { revert_unstage && revert_flush_near && staging_withdraw_receipt && rm -rf "$T"; }
  done
}

confirm_keeps_foreign() { # the loaded transaction has foreign bytes, which no receipt names: kept until `forget`
  set +f
  set -- "$T"/kept.*
  set -f
  [ -e "$1" ] || [ -L "$1" ]
}

confirm_locked() {
  lock_fence
  receipt_need "$tx" || refuse no-transaction "$tx"
  lock_accept || lock_refuse_token
  case $r_state in
    reverting | reverted)
      say "refused too-late $tx is $r_state"
      health_tell_reverted
      ;;
    armed)
      receipt_seconds_left
      if [ "$r_boot" != "$boot" ] || [ "$now" -ge "$r_deadline" ]; then
        if [ "$r_boot" = "$boot" ]; then say "refused too-late the guard's time is over"; else say "refused too-late the node has booted since the apply"; fi
        revert_fully guard restart && health_tell_reverted
      else
        confirm_check_ordered
        if receipt_become confirmed; then
          confirm_settle
        elif durable_is_lost; then
          say "refused not-durable it is not known that the disk has the receipt: $undurable"
          receipt_load "$tx" && revert_fully not-durable restart && health_tell_reverted
        else
          [ -n "$undurable" ] || refuse state-not-writable "$T"
          say "refused durability-unknown $undurable; it is left to the guard to write the receipt again"
        fi
      fi
      ;;
    confirmed) if durable_seal; then confirm_settle; else say "refused durability-unknown $undurable; it is left to the guard to write the receipt again"; fi ;;
  esac
}

confirm_is_as_ordered() { # every file of the loaded transaction holds what it wrote: a unit may rewrite its own before it starts
  local n
  files_targets
  # shellcheck disable=SC2086 # a list of paths
  files_digest $f_paths || return 1
  n=1
  while [ "$n" -le "$r_files" ]; do
    files_load "$n" || { why="the note $T/file.$n could not be read" && return 1; }
    files_is_as "$f_after" "$f_path" || { why="$f_path is not what $tx has written" && return 1; }
    n=$((n + 1))
  done
}

confirm_check_ordered() { # a confirm needs the ordered bytes and a finished apply
  [ "$r_finished" = 1 ] || refuse not-finished "the receipt of $tx does not record that its apply has finished"
  confirm_is_as_ordered || refuse not-as-ordered "$why"
}

confirm_settle() { # a confirmed transaction needs no guard, and no copy outside its folder
  local asked
  guard_disarm
  revert_unstage
  receipt_here "$tx"
  asked=$tx
  confirm_prune
  receipt_here "$asked"
}

verb_confirm() {
  allow 150
  lock
  confirm_locked 9>&-
  receipt_show receipt "$tx"
}

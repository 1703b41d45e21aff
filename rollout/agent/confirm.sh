# --------------------------------------------------------------------------------------- confirm, revert, cleanup, status

prune() { # remove all but the newest `keep` confirmed ones, what is newer than these, and those under way, by what the disk may still have; the receipt first
  local count reverted name
  transactions last # what a kept one left on a path is what the path holds, only if none after it was removed
  count=0 reverted=0
  for name in $r_all; do
    load_known "$name"
    case $r_state in # a reverted one, as each rehearsal, has no change that could be rolled back: it takes the place of no other
      confirmed) count=$((count + 1)) ;;
      reverted) reverted=$((reverted + 1)) ;;
    esac
    case $r_state,$count in armed,* | reverting,* | confirmed,1) continue ;; esac
    { [ "$count" -le "$keep" ] && [ "$reverted" -le $((4 * keep)) ]; } || keeps_foreign || is_unsettled ||
      { unstage && flush_near && withdraw_receipt && rm -rf "$T"; }
  done
}

keeps_foreign() { # the loaded transaction has foreign bytes, which no receipt names: kept until `forget`
  set +f
  set -- "$T"/kept.*
  set -f
  [ -e "$1" ] || [ -L "$1" ]
}

confirm_locked() {
  fence
  load "$tx" || refuse no-transaction "$tx"
  accept || refuse_token
  case $r_state in
    reverting | reverted)
      say "refused too-late $tx is $r_state"
      tell_taken_back
      ;;
    armed)
      seconds_left
      if [ "$r_boot" != "$boot" ] || [ "$now" -ge "$r_deadline" ]; then
        say "refused too-late the guard's time is over"
        take_back guard restart && tell_taken_back
      else
        check_ordered
        if become confirmed; then
          settle
        elif is_lost; then
          say "refused not-durable the disk did not take the receipt: $undurable"
          load "$tx" && take_back health restart && tell_taken_back
        else
          [ -n "$undurable" ] || refuse state-not-writable "$T"
          say "refused durability-unknown $undurable; the node writes the receipt again by itself"
        fi
      fi
      ;;
    confirmed) if seal; then settle; else say "refused durability-unknown $undurable; the node writes the receipt again by itself"; fi ;;
  esac
}

is_as_ordered() { # every file of the loaded transaction holds what it wrote: a unit may rewrite its own before it starts
  local n
  targets
  # shellcheck disable=SC2086 # a list of paths
  digest $f_paths
  n=1
  while [ "$n" -le "$r_files" ]; do
    load_file "$n"
    is_as "$f_after" "$f_path" || { why="$f_path is not what $tx has written" && return 1; }
    n=$((n + 1))
  done
}

check_ordered() { # a confirm needs the ordered bytes and a finished apply
  [ "$r_finished" = 1 ] || refuse not-finished "$tx has not seen its node healthy"
  is_as_ordered || refuse not-as-ordered "$why"
}

settle() { # a confirmed transaction needs no guard, and no copy outside its folder
  local asked
  disarm
  unstage
  here "$tx"
  asked=$tx
  prune
  here "$asked"
}

verb_confirm() {
  allow 150
  lock
  confirm_locked 9>&-
  show_receipt receipt "$tx"
}

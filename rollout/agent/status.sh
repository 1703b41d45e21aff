claim_locked() {
  fence
  [ "$counter $run live" = "$k_counter $k_run $k_state" ] || write_token live || refuse_token
}

show_state() { # token, receipts, facts that cost nothing
  read_token
  say "token $k_counter $k_run $k_state"
  transactions
  count=0 asked=$1
  for name in $all_tx; do
    count=$((count + 1))
    [ "$count" -gt 8 ] || ! load_known "$name" || tell_receipt history
  done
  [ -z "$asked" ] || ! load_known "$asked" || tell_receipt receipt
  boot_id
  clock
  read -r is_machine 2>/dev/null <"$R/etc/machine-id" || is_machine=''
  say "fact machine-id $is_machine"
  say "fact boot-id $boot"
  say "fact uptime $((now / 1000))"
  read_freeze
  show_freeze || :
}

verb_status() {
  allow 60
  if [ "$claim" = 1 ]; then
    need run counter
    lock
    claim_locked 9>&-
    exec 9>&- # the measurements below change nothing, and a gate's children must not hold the lock
  fi
  show_state "$tx"
  if [ "$measure" != 1 ]; then
    { [ -z "$asked" ] || ! load "$asked"; } || { keep_strings && keep_trying && tell_taken_back && tell_stuck && tell_guards_log; }
    return
  fi
  list=''
  measure_unit
  each path note_path
  show_files without
  each command run_command
}

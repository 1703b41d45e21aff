claim_locked() {
  fence
  [ "$counter $run live" = "$k_counter $k_run $k_state" ] || write_token live || refuse_token
  [ "$void" != 1 ] || load "$tx" || make_void
}

read_voided() { # the transactions that the run of this token gave up here, into `voided`: an apply that was sent is refused when it comes at last
  voided=''
  # an older token is refused by itself, so its transactions are forgotten
  [ ! -f "$S/voided" ] || { read -r v_counter v_run voided <"$S/voided" && [ "$v_counter $v_run" = "$k_counter $k_run" ]; } || voided=''
}

make_void() { # `tx` has no receipt, and gets none any more. It is written also if it was before: that may not have reached the disk
  read_voided
  case " $voided " in *" $tx "*) ;; *) voided="$voided $tx" ;; esac
  if printf '%s %s %s\n' "$counter" "$run" "${voided# }" 2>/dev/null 1<>"$S/voided" && flush "$S/voided" "$S"; then
    say "voided $tx"
    return
  fi
  [ -z "$undurable" ] || refuse not-durable "the disk did not take the voided transaction: sync failed"
  refuse state-not-writable "the voided transaction could not be stored"
}

refuse_voided() {
  read_voided
  case " $voided " in *" $tx "*) refuse voided "its run was told that this node is untouched: this apply came too late" ;; esac
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
    [ "$void" != 1 ] || need tx
    lock
    claim_locked 9>&-
    exec 9>&- # the measurements below change nothing, and a gate's children must not hold the lock
  fi
  show_state "$tx"
  [ "$strays" != 1 ] || { guards='' && list_left; }
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

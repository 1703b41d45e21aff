status_claim_locked() {
  local older
  lock_fence
  [ "$counter $run ended 1" != "$k_counter $k_run $k_state $k_stored" ] || refuse ended-here "run $run has ended here" # a claim that arrived late
  older=$k_counter
  [ "$counter $run live" = "$k_counter $k_run $k_state" ] || lock_write_token live || lock_refuse_token
  [ "$counter" = "$older" ] || status_forget_voids # not before the newer token fences what they refuse
  [ -e "$S/void" ] || true 2>/dev/null >"$S/void" || :
  [ "$void" != 1 ] || receipt_need "$tx" || status_make_void
}

# A transaction that its run gave up here is a name, `void.COUNTER.TX`: an apply of it that comes at last is refused. A claim lays an empty
# file for that: a rename needs no room, though the disk is full to its last inode.

status_forget_voids() { # of older tokens, or of one that has ended: those are refused by themselves. False if there are none
  set +f
  set -- "$S"/void*
  set -f
  [ -e "$1" ] || return
  drop "$@"
}

status_make_void() { # `tx` has no receipt, and gets none any more. A mark that is there may have been told: it stays, whatever fails here. A new file
  # is renamed over it, because its name may not have reached the disk
  local mark told
  mark=$S/void.$counter.$tx told=1
  if [ ! -e "$mark" ]; then
    told=0
    true 2>/dev/null >"$mark" || mv -f "$S/void" "$mark" 2>/dev/null
  elif [ -e "$S/void" ]; then
    mv -f "$S/void" "$mark" 2>/dev/null
  fi || refuse state-not-writable "the voided transaction could not be stored"
  durable_flush "$S" && say "voided $tx" && return
  [ "$told" = 1 ] || mv -f "$mark" "$S/void" 2>/dev/null # the next one needs it, if the disk is full
  refuse not-durable "it is not known that the disk has the voided transaction: $undurable"
}

status_refuse_voided() { [ ! -e "$S/void.$counter.$tx" ] || refuse voided "a request with token $counter has voided $tx on this node before"; }

status_show() { # token, receipts, facts that cost nothing
  local count name is_machine
  lock_read_token
  say "token $k_counter $k_run $k_state"
  receipt_list
  receipt_need_all
  count=0 asked=$1
  for name in $r_all; do
    count=$((count + 1))
    [ "$count" -gt 8 ] || ! receipt_load_known "$name" || receipt_tell history
  done
  [ -z "$asked" ] || ! receipt_load_known "$asked" || receipt_tell receipt
  boot_id
  clock
  read -r is_machine 2>/dev/null <"$R/etc/machine-id" || is_machine=''
  say "fact machine-id $is_machine"
  say "fact boot-id $boot"
  say "fact uptime $((now / 1000))"
  freeze_read
  freeze_show || :
}

status_show_roles() { # static pods in the usual folders, and the unit with the kubelet: no process runs for it
  local n_manifests y_static
  n_manifests='' y_static=''
  surroundings_show_manifests
  say "fact kubelet-unit $unit"
}

verb_status() {
  local m_list
  allow 25
  if [ "$claim" = 1 ]; then
    need run counter
    [ "$void" != 1 ] || need tx
    lock
    status_claim_locked 9>&-
    exec 9>&- # the measurements below change nothing, and a gate's children must not hold the lock
  fi
  status_show "$tx"
  [ "$strays" != 1 ] || { cleanup_list_guards && cleanup_tell_remembered && cleanup_list_left; }
  [ "$roles" != 1 ] || status_show_roles
  if [ "$measure" != 1 ]; then
    { [ -z "$asked" ] || ! receipt_load "$asked"; } || { guard_keep && durable_keep_trying && health_tell_reverted && revert_tell_stuck && last_log_tell_guards; }
    return
  fi
  m_list=''
  measure_unit
  each path measure_note_path
  shown_files_show without
  each command measure_run_command
}

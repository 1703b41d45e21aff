requested_revert_check_ours() { # a requested revert removes only our bytes, and only under the kubelet for which they were made
  local n
  [ "$force" != 1 ] && [ "$r_state" != reverting ] || return 0
  files_targets
  # shellcheck disable=SC2086 # a list of paths
  files_digest $f_paths
  n=1
  while [ "$n" -le "$r_files" ]; do
    files_load "$n" || refuse program-failed "the note $T/file.$n could not be read" # nor is it known which file that is
    if ! files_is_as "$f_after" "$f_path" && ! files_is_as "$f_before" "$f_path"; then
      if files_lacks_sum "$f_path"; then refuse program-failed "sha256sum could not read $f_path"; fi # whose bytes they are is not known
      refuse foreign-bytes "$f_path"
    fi
    n=$((n + 1))
  done
  staging_mark_kubelet "$r_program"
  if [ "$s_kubelet" = unknown ] && [ -e "$r_program" ]; then refuse program-failed "stat could not read $r_program"; fi # which kubelet it is is not known
  [ "$r_kubelet" = "$s_kubelet" ] || refuse kubelet-changed "${r_program:-the kubelet} has another size or time than when $tx was applied"
}

requested_revert_rearm_boot_unit() { # a confirmed transaction has no guard; its revert must survive a reboot too
  files_targets
  files_folders
  if ! { guard_write_boot_unit && durable_flush "$SYSTEM/$BOOT_UNIT" "$SYSTEM/$BOOT_UNIT.d/$SHIELD" "$SYSTEM/$BOOT_UNIT.d" "${WANTED%/*}" "$SYSTEM"; }; then
    say "say boot-unit-not-armed a reboot before the end may leave the rest to the next revert"
  fi
}

requested_revert_locked() {
  local asked name
  lock_fence
  receipt_need "$tx" || refuse no-transaction "$tx"
  lock_accept || say "say token-not-stored ${undurable:-it could not be written}"
  case $r_state in reverted) ! durable_seal || health_tell_reverted && return ;; esac
  asked=$tx
  receipt_list
  receipt_need_all
  for name in $r_all; do
    receipt_load_known "$name"
    case $name/$r_state in "$asked"/*) ;; */armed | */reverting) refuse armed-by-another "$name is $r_state" ;; esac
  done
  staging_remove_strays
  receipt_load "$asked"
  requested_revert_check_ours
  unit=$r_unit healthz=$r_port
  health_concern
  [ "$r_state" != confirmed ] || { requested_revert_rearm_boot_unit && receipt_note_place; }
  revert_fully asked restart || {
    if guard_start_timer 5 --no-block; then say "say revert-unfinished systemd accepted a timer that tries again"; else say "say revert-unfinished systemd accepted no timer that would try again"; fi
    revert_tell_stuck
    return
  }
  unwatched=1
}

verb_revert() {
  local unwatched
  allow 200
  lock
  unwatched=0
  requested_revert_locked 9>&-
  exec 9>&- # the next caller need not wait for the checks of the old files
  [ "$evidence" != 1 ] || last_log_tell 0
  [ "$unwatched" = 0 ] || health_tell
  receipt_show receipt "$tx"
}

check_ours() { # a requested revert removes only our bytes, and only under the kubelet for which they were made
  local n
  [ "$force" != 1 ] && [ "$r_state" != reverting ] || return 0
  targets
  # shellcheck disable=SC2086 # a list of paths
  digest $f_paths
  n=1
  while [ "$n" -le "$r_files" ]; do
    load_file "$n"
    if ! is_as "$f_after" "$f_path" && ! is_as "$f_before" "$f_path"; then
      if lacks_sum "$f_path"; then refuse program-failed "sha256sum could not read $f_path"; fi # whose bytes they are is not known
      refuse foreign-bytes "$f_path"
    fi
    n=$((n + 1))
  done
  mark_kubelet "$r_program"
  [ "$r_kubelet" = "$s_kubelet" ] || refuse kubelet-changed "since $tx was applied"
}

rearm_boot_unit() { # a confirmed transaction has no guard; its revert must survive a reboot too
  targets
  folders
  if ! { write_boot_unit && flush "$SYSTEM/$BOOT_UNIT" "$SYSTEM/$BOOT_UNIT.d/$SHIELD" "$SYSTEM/$BOOT_UNIT.d" "${WANTED%/*}" "$SYSTEM"; }; then
    say "say boot-unit-not-armed a reboot before the end leaves the rest to the next revert"
  fi
}

revert_locked() {
  local asked name
  fence
  load "$tx" || refuse no-transaction "$tx"
  accept || say "say token-not-stored the disk takes no write"
  case $r_state in reverted) ! seal || tell_taken_back && return ;; esac
  asked=$tx
  transactions
  for name in $r_all; do
    load_known "$name"
    case $name/$r_state in "$asked"/*) ;; */armed | */reverting) refuse armed-by-another "$name is $r_state" ;; esac
  done
  remove_strays
  load "$asked"
  check_ours
  unit=$r_unit healthz=$r_port
  concern
  [ "$r_state" != confirmed ] || { rearm_boot_unit && note_place; }
  take_back asked restart || {
    start_timer 5 --no-block
    say "say revert-unfinished the node tries again by itself, and at boot"
    tell_stuck
    return
  }
  unwatched=1
}

verb_revert() {
  local unwatched
  allow 200
  lock
  unwatched=0
  revert_locked 9>&-
  exec 9>&- # the next caller need not wait for the checks of the old files
  [ "$evidence" != 1 ] || tell_last_log 0
  [ "$unwatched" = 0 ] || tell_health
  show_receipt receipt "$tx"
}

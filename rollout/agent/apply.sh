apply_switch() { # rename every file from old to new, back to back
  local n above folder
  n=1 above=''
  while [ "$n" -le "$c_files" ]; do
    files_load "$n"
    for folder in $f_made; do
      [ -d "$R$folder" ] || mkdir -m 755 "$R$folder" || { why="$folder could not be made" && return 1; }
      [ -e "$T/beside.$n" ] || above="$above $R${folder%/*}"
    done
    mv -f "$R$f_new" "$R$f_path" || { why="$f_path: a rename failed" && return 1; }
    n=$((n + 1))
  done
  files_folders
  # shellcheck disable=SC2086 # a list of paths
  durable_flush $f_dirs $above || { why="it is not known that the disk has the new files: $undurable" && return 1; }
}

apply_arm() {
  local lost
  receipt_become armed || {
    lost=$undurable
    staging_abandon
    [ -z "$lost" ] || refuse not-durable "it is not known that the disk has the receipt: $lost"
    refuse state-not-writable "the receipt could not be stored"
  }
  f_armed=1
  guard_start
  guard_is_proven || {
    v_because=$why
    staging_abandon
    [ "$g_outcome" != sync ] || refuse not-durable "it is not known that the disk has what the guard tried: sync $g_invocation"
    refuse guard-not-proven "$v_because"
  }
}

apply_refuse_staging() {
  local lost
  lost=$undurable # abandon syncs too; its result is not that of the staging
  staging_failed_step
  staging_abandon
  [ -z "$lost" ] || refuse not-durable "it is not known that the disk has what was staged: $lost"
  refuse "$s_reference" "$why"
}

apply_refuse_pulls() { # a restart cancels the image pulls under way. Nothing is waited for between this look and the restart
  [ -n "$pulls" ] || return 0
  pulls_read_journal
  pulls_show
  [ "$q_count" = 0 ] || [ "$pulls" = override ] || refuse pulls-in-flight "a restart would cancel image pulls, or it is not known whether there are any"
}

apply_tell_measured() { # for the gates: what this apply has just seen of the kubelet that it restarted, and its files: no further request is needed
  local m_list
  measure_show_units
  [ -z "$l_lenient" ] || say "lenient $l_lenient"
  [ -z "$h_health" ] || say "healthz $h_health"
  m_list=''
  each path measure_note_path
  shown_files_show without
  clock
  say "took $((now - asked_at))"
}

apply_in_time() { # else an agent that froze during its preparation would change its node when nobody expects it any more
  local taken
  clock
  [ "$now" -ge "$until" ] || return 0
  taken=$(((now - asked_at) / 1000))
  staging_abandon
  refuse too-late "the preparation took $taken s, of at most $(((until - asked_at) / 1000))"
}

apply_locked() {
  local asked lost cause
  lock_fence
  receipt_need "$tx" && { receipt_show receipt "$tx" && finish; }
  freeze_refuse
  status_refuse_voided
  [ "$run" != "$k_run" ] || [ "$k_state" = live ] || refuse ended-here "run $run has ended here"
  asked=$tx
  staging_sweep
  receipt_here "$asked"
  checks_node
  apply_refuse_pulls
  lock_accept || lock_refuse_token
  staging_make || apply_refuse_staging
  apply_in_time
  apply_arm
  until=$((r_deadline - 2000))
  # shellcheck disable=SC2086 # a list of paths
  files_digest $f_paths $s_staged || { v_because=$why && staging_abandon && refuse program-failed "$v_because"; }
  each file staging_is_as_ordered || apply_refuse_staging
  each file checks_before || { staging_abandon; refuse drifted "$c_drifted changed while staging"; }
  apply_in_time
  r_files=$c_files r_state=armed
  if apply_switch && restarts_reload && restarts_units && health_is_proven && confirm_is_as_ordered; then
    say "healthy yes $why"
    mv -f "$T/next/finished" "$T/receipt"
    staging_remember_loaded
    seen=1
  else
    lost=$undurable v_because=$why cause=not-durable # the revert looks at the disk anew
    [ -n "$lost" ] || { say "healthy no $v_because" && cause=health; }
    allow 150
    if revert_fully "$cause" restart; then unwatched=1; else lost='' && revert_tell_stuck; fi
    [ -z "$lost" ] || say "refused not-durable $v_because"
  fi
}

verb_apply() {
  local asked_at unwatched seen
  allow 60
  [ "$guard" -ge 60 ] || allow "$guard" # to arm: the controller waits for the guard's time and a margin, in which all is removed again
  asked_at=$now
  lock
  unwatched=0 seen=0
  apply_locked 9>&-
  exec 9>&- # the checks below change nothing
  allow $((h_longest / 900 + 20)) # the controller waits no longer
  [ "$seen$measure" != 11 ] || ! health_is_restarted "$unit" || apply_tell_measured
  last_log_tell $((r_deadline - guard * 1000))
  [ "$unwatched" = 0 ] || { PAYLOAD='' && health_tell; }
  ! lock_find_token || say "token $k_counter $k_run $k_state"
  receipt_show receipt "$tx"
}

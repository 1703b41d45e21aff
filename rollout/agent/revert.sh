# -------------------------------------------------------------------------------------------------------------- revert

revert_keep_foreign() { # N PATH: bytes that are neither the new nor the old ones; kept if that is possible without a gap
  [ -e "$R$2" ] || [ -L "$R$2" ] || return 0
  if [ -d "$R$2" ] && [ ! -L "$R$2" ]; then
    mv "$R$2" "$T/kept.$1"
  else
    ln "$R$2" "$T/kept.$1" 2>/dev/null || cp -a "$R$2" "$T/kept.$1" 2>/dev/null
  fi
  case $? in
    0) say "say foreign-bytes $2 is kept as $T/kept.$1" ;;
    *) say "say foreign-bytes $2 could not be kept" ;;
  esac
}

revert_give_back() { # N: restore file N; may be repeated; counted in `v_given` if that took a step
  local from
  files_load "$1" || return 1
  files_is_as "$f_before" "$f_path" && return 0
  files_is_as "$f_after" "$f_path" || revert_keep_foreign "$1" "$f_path"
  [ "$v_stuck" != durability-unknown ] || true 2>/dev/null >"$T/stuck" # if this attempt dies, the next one restarts the units
  if [ "$f_before" = absent ]; then
    let_go 30 rm -f "$R$f_path" || return 1
  else
    # On another file system a confirmed change keeps its copy in our folder only. The file beside the target may be incomplete:
    # a revert was killed, or the power failed, while it was written.
    from=$f_old
    if ! files_is_as "$f_before" "$from"; then
      if [ -e "$T/beside.$1" ]; then
        from=/var/lib/rollout/tx/$tx/old.$1
      elif [ -e "$T/twin.$1" ]; then
        from=${f_old%/*}/twin.$1 # somebody wrote into the old file through another of its names
      fi
      # a damaged copy takes no file's place: that would have neither its old nor its new bytes. Of one without a sum nothing is known
      files_is_as "$f_before" "$from" || files_lacks_sum "$from" || return 1
      [ ! -e "$T/beside.$1" ] || { rm -f "$R$f_old" && cp -a "$R$from" "$R$f_old" && durable_flush "$R$f_old" && from=$f_old; } || return 1
    fi
    let_go 30 mv -f "$R$from" "$R$f_path" || return 1
  fi
  v_given=$((v_given + 1))
}

revert_remove_made() { # N: remove the folders that were made for file N, if nothing uses them
  local folder made
  files_load "$1" || return 0
  made=''
  for folder in $f_made; do made="$R$folder $made"; done
  for folder in $made; do [ ! -d "$folder" ] || rmdir "$folder" 2>/dev/null || :; done
}

revert_remove_all_made() { # for every file, the last one first
  local n
  n=1
  while [ -e "$T/file.$n" ]; do n=$((n + 1)); done
  while [ "$n" -gt 1 ]; do
    n=$((n - 1))
    revert_remove_made "$n"
  done
}

revert_unstage() { # remove the copies that are outside the transaction's folder, or were tried there; false if one stays
  local nears n stays tried
  nears='' n=1 stays=0
  while [ -e "$T/file.$n" ]; do
    if files_load "$n"; then
      files_near "$n"
      nears="$nears $R$f_near.new $R$f_near.old $R$f_near.try $R$f_near.tried"
      tried=$R${f_path%/*}/.rollout-$tx.$n.try
      [ ! -d "$tried" ] || rmdir "$tried" || stays=1 # of a `try` that was killed
    elif [ -e "$T/receipt" ]; then
      stays=1 # it is not known where they are. Without a receipt the power failed before the disk had the note, and so before they were made
    fi
    n=$((n + 1))
  done
  # shellcheck disable=SC2086 # a list of paths
  drop $nears && [ "$stays" = 0 ]
}

revert_flush_near() { # make the removal durable: else a power cut restores copies that no record names
  local nears n
  nears='' n=1
  while [ -e "$T/file.$n" ]; do
    if files_load "$n"; then
      files_near "$n"
      case " $nears " in *" $R${f_near%/*} "*) ;; *) nears="$nears $R${f_near%/*}" ;; esac
    fi
    n=$((n + 1))
  done
  # shellcheck disable=SC2086 # a list of paths
  [ -z "$nears" ] || durable_flush $nears
}

revert_is_untouched() { # an armed transaction without a rename: everything staged is there. Old bytes are no proof, anybody may restore them
  local n
  [ "$r_state" = armed ] || return 1
  n=1
  while [ "$n" -le "$r_files" ]; do
    files_load "$n" && [ -e "$R$f_new" ] && files_is_as "$f_before" "$f_path" || return 1
    n=$((n + 1))
  done
}

revert_restrain() { # a transaction armed in this boot is reverted by its limit, before its pods are evicted
  [ "$r_state" = armed ] || [ "$verb" = guard ] || [ "$verb" = watch ] || return 0
  boot_id
  clock
  [ "$r_boot" != "$boot" ] || [ "$now" -ge $((r_limit - 10000)) ] || [ "$until" -lt "$r_limit" ] || until=$r_limit
}

revert_fully() { # CAUSE HOW: revert to the end; HOW is restart, or files at boot, when the units start after us anyway. False: not finished
  local v_unrestarted v_kept was times
  revert_restrain
  files_targets
  [ "$verb" = revert ] || f_armed=1
  # shellcheck disable=SC2086 # a list of paths
  files_digest $f_paths $f_copies || files_digest $f_paths $f_copies || return 1 # of a verb; its guard tries again
  v_how=$2
  revert_is_untouched && v_how=nothing
  revert_read_stuck
  [ "$v_stuck" != not-durable ] || return 1 # nothing in this boot can make it durable
  undurable='' v_unrestarted='' v_kept='' was=$r_state
  if [ "$r_state" != reverting ]; then
    durable_unsettle
    [ "$1" != not-durable ] || [ -e "$T/next/reverting-$1" ] || set -- health "$2" # an earlier version has laid no receipt for that
    bounded 60 mv -f "$T/next/reverting-$1" "$T/receipt" || return 1
    durable_flush_soon "$T"
    r_state=reverting r_cause=$1
  elif durable_is_unsettled; then
    { durable_seal && durable_unsettle && durable_renew; } || : "${undurable:=there is no room to write again what a sync without a result left}"
  fi
  revert_give_all_back
  revert_remove_all_made
  revert_read_back
  files_folders
  # shellcheck disable=SC2086 # a list of paths
  durable_flush_soon $f_dirs
  ! revert_is_finished || v_how=finished
  case $v_how in restart | files) restarts_reload_surely ;; esac
  case $v_how in restart) restarts_again ;; files) restarts_running ;; esac
  durable_flush_rest
  revert_is_whole || return 1
  [ "$v_how" != restart ] || staging_remember_loaded
  receipt_become "reverted-$r_cause" || return 1
  r_state=reverted
  case $2,$was,$1 in files,* | *,confirmed,asked) guard_remove_boot_unit ;; *) guard_disarm ;; esac # an earlier confirm has stopped the timer and the watch
  times=''
  [ "$v_how" != nothing ] || { contents "$T/times" && times=$w_contents; }
  revert_tidy
  staging_keep_times "$times"
}

revert_give_all_back() { # every file, even if others fail; those that keep the new bytes into `v_kept`
  local n
  v_given=0 n=1
  while [ "$n" -le "$r_files" ]; do
    revert_give_back "$n" || v_kept="$v_kept${v_kept:+ }${f_path:-/var/lib/rollout/tx/$tx/file.$n}" # the note, if that cannot be read
    n=$((n + 1))
  done
}

revert_read_back() { # what was given back is read, not believed: the old file, too, may have been written to. What has no old bytes into `v_kept`
  local n
  [ "$v_given" != 0 ] || return 0
  # shellcheck disable=SC2086 # a list of paths
  files_sum $f_paths
  n=1
  while [ "$n" -le "$r_files" ]; do
    ! files_load "$n" || files_is_as "$f_before" "$f_path" || case " $v_kept " in *" $f_path "*) ;; *) v_kept="$v_kept${v_kept:+ }$f_path" ;; esac
    n=$((n + 1))
  done
}

revert_is_finished() { # by the previous attempt of this boot, as far as it goes: it has restarted the units, and no file was given back since then, by a killed attempt or by hand
  case $v_given,$v_stuck,$v_stuck_text in
    0,not-given-back,"$v_kept /"*) return 1 ;; # it had kept others too
    0,not-given-back,"$v_kept "*) [ -n "$v_kept" ] ;;
    0,durability-unknown,*) ;;
    *) return 1 ;;
  esac
}

revert_is_whole() { # else the reason is noted: the receipt stays `reverting`, and the next attempt or the next boot continues
  if durable_is_lost; then
    revert_stick not-durable "sync failed, so what was written may be lost; reboot the node, which then looks at its files again"
  elif [ -n "$v_unrestarted" ]; then
    revert_stick not-restarted "it was not seen that $v_unrestarted runs a process from after its old files were there"
  elif [ -n "$v_kept" ]; then
    revert_stick not-given-back "$v_kept $(revert_attributes "${v_kept%% *}" "does not have its old bytes again")"
  elif [ -n "$undurable" ]; then
    revert_stick durability-unknown "$undurable; it is left to the guard to write the old files again"
  else
    drop "$T/stuck"
    v_stuck=''
  fi
  [ -z "$v_stuck" ]
}

revert_stick() { # REFERENCE TEXT: why the loaded transaction cannot end. Best effort: only the receipt counts
  v_stuck=$1 v_stuck_text=$2
  printf '%s %s %s\n' "$boot" "$1" "$2" >"$T/stuck" 2>/dev/null
}

revert_read_stuck() { # the reason noted in this boot, into `v_stuck` and `v_stuck_text`
  local stuck_boot
  boot_id
  stuck_boot='' v_stuck='' v_stuck_text=''
  read -r stuck_boot v_stuck v_stuck_text 2>/dev/null <"$T/stuck"
  [ "$stuck_boot" = "$boot" ] || v_stuck='' v_stuck_text=''
}

revert_tell_stuck() { # of the loaded transaction
  [ "$r_state" = reverting ] || return 0
  revert_read_stuck
  [ -z "$v_stuck" ] || say "failed $v_stuck $v_stuck_text"
}

revert_attributes() { # PATH TEXT: why it cannot be renamed, if that is known, else the text
  local attributes
  attributes=$(lastly 5 lsattr -d -- "$R$1" 2>/dev/null)
  case ${attributes%% *} in
    *i*) printf 'is immutable; clear that with: chattr -i' ;;
    *a*) printf 'may only be appended to; clear that with: chattr -a' ;;
    *) printf %s "$2" ;;
  esac
}

revert_tidy() { # a reverted transaction keeps only its receipt and foreign bytes
  revert_unstage
  revert_remove_all_made # those that held a copy until now
  [ -e "$T/next" ] || return 0 # removed last
  set +f
  rm -rf "$T"/old.* "$T"/new.* "$T"/twin.* "$T/stuck" "$T/times" "$T"/tried* "$T/unsettled" "$T/next"
  set -f
}

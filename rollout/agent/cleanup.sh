cleanup_left() { # PATH OR UNIT of ours
  e_left=$((e_left + 1))
  say "left $1"
}

cleanup_list_left() { # our things outside $S, if any
  local entry n path name
  e_left=0
  set +f
  for entry in "$SYSTEM"/*rollout-guard* "$WANTED" "$WANTED_ONCE" "$FORGOTTEN" \
    "$RUNTIME"/rollout-[gw]*[!-].*.d "$TRANSIENT"/rollout-guard-* "$TRANSIENT"/rollout-watch-*; do
    case $entry in
      *-.service.d | *-.timer.d) continue ;; # others may have drop-ins for all guards
      "$SYSTEM/$BOOT_UNIT.d") entry=$entry/$SHIELD ;;
    esac
    if [ -e "$entry" ] || [ -L "$entry" ]; then cleanup_left "${entry#"$R"}"; fi
  done
  for entry in "$S"/tx/*; do
    set -f
    receipt_here "${entry##*/}"
    n=1
    while [ -e "$T/file.$n" ]; do
      files_load "$n" || {
        f_path=/none f_made=""
        [ ! -e "$T/receipt" ] || cleanup_left "/var/lib/rollout/tx/$tx/file.$n, which could not be read: what it names may be there"
      }
      files_near "$n"
      for path in "$f_near.old" "$f_near.new" "$f_near.try" "$f_near.tried"; do [ ! -e "$R$path" ] || cleanup_left "$path"; done
      path=${f_path%/*}/.rollout-$tx.$n.try # the same, where copies are kept beside the file
      [ "$path" = "$f_near.try" ] || [ ! -e "$R$path" ] || cleanup_left "$path"
      n=$((n + 1))
    done
  done
  set -f
  for name in $e_guards; do cleanup_left "$name"; done
  [ "$e_listed" = 1 ] || cleanup_left "units of rollout, if any: systemctl list-units did not succeed"
}

cleanup_list_guards() { # timers and services of ours that systemd knows, into `e_guards`; `e_listed`: 0 if it did not report them
  local shown line
  shown=$(lastly 10 systemctl list-units --all --plain --no-legend 'rollout-guard-*' 'rollout-watch-*' 2>/dev/null) && e_listed=1 || e_listed=0
  e_guards=''
  IFS=$NL
  for line in $shown; do
    e_guards="$e_guards ${line%% *}"
  done
  unset IFS
}

cleanup_forget_guards() { # of finished transactions: a confirm may have died before it disarmed. Units in systemd's memory, and the files where systemd
  # keeps them: after a reload that came between, it may have a file without a unit
  local idle files_of_idle entry name other
  cleanup_list_guards
  idle='' files_of_idle=''
  set +f
  set -- "$RUNTIME"/rollout-[gw]*[!-].*.d "$TRANSIENT"/rollout-guard-* "$TRANSIENT"/rollout-watch-*
  set -f
  for entry in $e_guards "$@"; do
    name=${entry##*/}
    case ${name%.d} in
      "$BOOT_UNIT") continue ;;
      rollout-guard-*.*) other=${name#rollout-guard-} ;;
      rollout-watch-*.service*) other=${name#rollout-watch-} ;;
      *) continue ;;
    esac
    other=${other%.d}
    receipt_load_known "${other%.*}"
    ! durable_is_unsettled || continue
    case $r_state,$entry in
      armed,* | reverting,*) ;;
      *,/*) [ ! -e "$entry" ] || files_of_idle="$files_of_idle $entry" ;;
      *) idle="$idle $name" ;;
    esac
  done
  # a stopped timer may remove its service, and systemctl then does not know it: that is no error
  # shellcheck disable=SC2086 # a list of units
  [ -z "$idle" ] || { bounded 10 systemctl stop $idle; bounded 10 systemctl reset-failed $idle; } >/dev/null 2>&1 || : # failed: its file was deleted
  # shellcheck disable=SC2086 # a list of paths
  [ -z "$files_of_idle" ] || rm -rf $files_of_idle
  case $e_busy,$e_guards in
    0,*"$BOOT_UNIT"*) cleanup_forget_boot_unit ;;
    *) [ -n "$idle" ] || return 0 ;;
  esac
  cleanup_list_guards
  cleanup_tell_remembered
}

cleanup_forget_boot_unit() { # in systemd's memory: a reload for a new drop-in had read it too; and a failed unit is remembered without its file. A reload may
  # take GPUs from running containers, and no plan has announced this one: where there are some, the unit stays in memory. It does nothing there without its file
  cleanup_has_gpus || bounded 30 systemctl daemon-reload >/dev/null 2>&1
  bounded 5 systemctl reset-failed "$BOOT_UNIT" >/dev/null 2>&1 || :
}

cleanup_has_gpus() { # a driver in a container has its devices below /run/nvidia/driver alone
  local path
  set +f
  set -- "$R"/dev/nvidia* "$R"/run/nvidia/driver/dev/nvidia* "$R"/proc/driver/nvidia/gpus/*
  set -f
  for path in "$@"; do
    [ ! -e "$path" ] || return 0
  done
  return 1
}

cleanup_tell_remembered() { # `e_guards` without the boot unit, if that is in systemd's memory only
  local names name
  [ ! -e "$SYSTEM/$BOOT_UNIT" ] && cleanup_has_gpus || return 0
  names=$e_guards e_guards=''
  for name in $names; do
    case $name in
      "$BOOT_UNIT") say "say boot-unit-remembered systemd remembers $BOOT_UNIT without its file until its next daemon-reload, which may take GPUs" ;;
      *) e_guards="$e_guards $name" ;;
    esac
  done
}

cleanup_withdraw() { # remove what finished transactions have outside $S
  local name
  receipt_list
  receipt_need_all
  e_busy=0
  for name in $r_all; do
    receipt_load_known "$name"
    durable_has_ended || e_busy=1
  done
  for name in $r_all; do
    receipt_load_known "$name"
    ! durable_is_unsettled || continue
    case $r_state in confirmed) revert_unstage ;; reverted) revert_tidy ;; esac
  done
  [ "$e_busy" = 1 ] || { staging_remove_strays && guard_remove_boot_unit; }
  cleanup_forget_guards
}

cleanup_flush_removed() { # [FILE] and every folder in which something of ours was removed, by this verb or by an earlier one: else a power cut restores it
  local name n f_paths entry
  set -- "$@" "$SYSTEM" "${WANTED%/*}" "$S/tx" "$S" "${S%/*}"
  for name in $r_all; do
    receipt_here "$name"
    set -- "$@" "$T" "$T/next"
    n=1 f_paths=''
    while [ -e "$T/file.$n" ]; do
      files_load "$n" && files_near "$n" && set -- "$@" "$R${f_near%/*}" && f_paths="$f_paths $R$f_path"
      n=$((n + 1))
    done
    files_folders
    # shellcheck disable=SC2086 # a list of paths
    set -- "$@" $f_dirs
  done
  for entry in "$@"; do
    shift
    case " $* " in *" $entry "*) ;; *) [ ! -e "$entry" ] || set -- "$@" "$entry" ;; esac
  done
  durable_flush "$@"
}

cleanup_locked() {
  local stored
  lock_fence
  cleanup_withdraw
  [ ! -e "$FORGOTTEN" ] || rm -rf "$FORGOTTEN"
  drop "$S/touched.new" "$S/void"
  cleanup_list_left
  lock_put_token ended
  stored=$?
  cleanup_flush_removed "$S/token" || { stored=1 && cleanup_left "what was removed, after a power cut: $undurable"; }
  if [ "$stored" -ne 0 ]; then
    lock_lose_token
    say "say token-not-stored ${undurable:-it could not be written}"
  elif status_forget_voids; then # only a durable token refuses what was void
    durable_flush "$S" || cleanup_left "what was removed, after a power cut: $undurable"
  fi
}

verb_cleanup() {
  allow 60
  lock
  cleanup_locked 9>&-
}

cleanup_forget_locked() { # one rename removes the whole state: a concurrent verb finds all of it or none
  local name
  lock_fence
  freeze_refuse "; an unfreeze comes first"
  receipt_list
  for name in $r_all; do
    receipt_load_known "$name"
    case $r_state in armed | reverting) refuse armed-by-another "$name is $r_state" ;; esac
  done
  cleanup_withdraw
  [ "$e_busy" = 0 ] || refuse not-durable "it is not known that the disk has the last receipt: $undurable"
  rm -rf "$FORGOTTEN"
  cleanup_list_left
  [ "$e_left" -eq 0 ] || refuse still-needed "what is left here can be removed only with what lies in /var/lib/rollout"
  [ ! -L "$S" ] || refuse not-renameable "/var/lib/rollout is a symbolic link"
  cleanup_flush_removed || refuse not-durable "it is not known that the disk has what was removed as removed: $undurable" # else a power cut restores a boot unit without its program
  why=$(mv "$S" "$FORGOTTEN" 2>&1) || refuse not-renameable "/var/lib/rollout: ${why:-mv failed}"
  durable_flush "${S%/*}" || refuse not-durable "it is not known that the disk has the removal of the state: $undurable" # a part of it could come back
}

cleanup_erase() { # remove what a forget has put aside; nothing uses it
  local entry
  rm -rf "$FORGOTTEN"
  durable_flush "${S%/*}" || say "left what was removed, after a power cut: $undurable"
  for entry in "$S" "$FORGOTTEN"; do [ ! -e "$entry" ] || say "left ${entry#"$R"}"; done
}

verb_forget() {
  force=0
  allow 60
  if [ -d "$S" ]; then
    lock
    cleanup_forget_locked 9>&-
  fi
  cleanup_erase 9>&-
}

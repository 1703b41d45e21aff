# --------------------------------------------------------------------------------------------------- lock and fencing

lock_hold() { # SECONDS: take the lock; wait at most this long. Else `k_end`: 1 if another process has it
  local patience
  k_end=0
  clock
  patience=$((now + $1 * 1000))
  while :; do
    [ -d "$S/tx" ] || mkdir -p "$S/tx" || return 1
    command exec 9>>"$S/lock" || return 1 # without `command`, an exec that fails would end dash
    until flock -n 9; do
      k_end=$?
      clock
      [ "$now" -lt "$patience" ] || return 1
      nap
    done
    # shellcheck disable=SC3013 # dash, bash and busybox have -ef
    [ "$S/lock" -ef "/proc/$self/fd/9" ] && break # else a forget came while we waited: the lock is another file now
    [ "$now" -lt "$patience" ] || return 1
    nap
    clock
  done
  born "$self"
  printf '%s %s\n' "$self" "$p_born" 2>/dev/null 1<>"$S/holder" || : # in place: works on a full disk
}

lock_seize() { # like hold, for a guard: a process that keeps the lock for ten seconds is stuck, and is killed
  local awaited holder start enough
  awaited=''
  while :; do
    lock_hold 1 && return
    read -r holder start 2>/dev/null <"$S/holder" || return 1
    clock
    [ "$awaited" = "$holder $start" ] || awaited="$holder $start" enough=$((now + 9000))
    [ "$now" -lt "$enough" ] || lock_is_taken_back || break
    nap
  done
  born "$holder" && [ "$p_born" = "$start" ] || return 1
  lock_kill_family "$holder" || return 1
  born "$holder"
  kill -9 "$holder"
  lock_wake "$p_parent"
  lock_hold 5
}

lock_is_taken_back() { # another process does a guard's work: leave it alone while there is time to do it all again
  [ "$tx" != - ] && receipt_load "$tx" && [ "$r_state" = reverting ] || return 1
  boot_id
  [ "$r_boot" = "$boot" ] || r_limit=$until # the recorded limit is by another boot's clock
  [ "$now" -lt $((r_limit - 90000)) ]
}

lock_wake() { # PID: continue it and its parents, up to init: a sudo stops when its command is stopped, and would never report its end
  while [ "$1" -gt 1 ]; do
    kill -CONT "$1" 2>/dev/null
    born "$1" || return 0
    set -- "$p_parent"
  done
}

lock_kill_family() { # PID: kill its children and theirs. PID keeps the lock, stopped, until none is left that could still change a file
  # (a rename that hangs in the kernel could complete later). If that takes too long, the next caller finds PID again
  local member patience
  lock_stop_family "$1" || return 1
  for member in $p_family; do
    lock_is_member "$member" && kill -9 "${member%:*}" 2>/dev/null
  done
  clock
  patience=$((now + 5000))
  while lock_family_lives; do
    clock
    [ "$now" -lt "$patience" ] || return 1
    nap
  done
}

lock_stop_family() { # PID: stop it and its children, so that none can start another; the children as PID:BIRTH into `p_family`
  local parents found entry member
  p_family='' parents=" $1 "
  kill -STOP "$1" || return 1
  while :; do
    found=''
    set +f
    for entry in /proc/[0-9]*; do
      member=${entry#/proc/}
      born "$member" || continue
      case $parents in *" $member "*) continue ;; *" $p_parent "*) ;; *) continue ;; esac
      [ "$p_name" != sync ] || continue # it may have the only report of a lost write
      kill -STOP "$member" 2>/dev/null
      found="$found $member:$p_born" parents="$parents$member "
    done
    set -f
    [ -n "$found" ] || return 0 # this pass began after the last one was stopped
    p_family=$p_family$found
  done
}

lock_is_member() { born "${1%:*}" && [ "$p_born" = "${1#*:}" ]; }

lock_family_lives() {
  local member
  for member in $p_family; do
    lock_is_member "$member" || continue
    case $p_state,$p_name in Z,* | X,*) ;; D,mv | D,rm | D,rmdir | D,ln) return 0 ;; D,*) ;; *) return 0 ;; esac
  done
  return 1
}

lock_is_ours() { # the state's folders, where they exist: others who can write there could replace a guard's program, which root runs.
  # Else `k_not_ours`
  local folder mode
  set --
  for folder in "$S" "$S/tx"; do
    [ -e "$folder" ] || [ -L "$folder" ] || break
    k_not_ours=$folder
    [ -d "$folder" ] && [ ! -L "$folder" ] && [ -O "$folder" ] || return 1
    set -- "$@" "$folder"
  done
  [ "$#" -gt 0 ] || return 0
  for mode in $(stat -c %a "$@"); do
    k_not_ours=$1
    shift
    case $mode in *[2367] | *[2367]?) return 1 ;; esac
  done
  [ "$#" -eq 0 ]
}

lock() {
  undurable=''
  command -v flock >/dev/null || refuse no-flock "no flock (of util-linux or busybox) was found on this node"
  [ "$t_owned" = 1 ] || lock_is_ours || refuse state-not-ours "$k_not_ours is a link, or another user's, or may be written by others, or its mode could not be read"
  [ -d "$S/tx" ] || mkdir -p "$S/tx" 2>/dev/null || refuse state-not-writable "$(mkdir -p "$S/tx" 2>&1 | tail -n 1)"
  true 2>/dev/null >>"$S/lock" || refuse state-not-writable "$({ true >>"$S/lock"; } 2>&1 | tail -n 1)"
  lock_hold 5 2>/dev/null && return
  [ "$k_end" != 0 ] || refuse state-not-writable "$S/lock could not be opened as the lock"
  [ "$k_end" != 1 ] || refuse locked "the lock of this node was not free for 5 s"
  tell_end "$k_end"
  refuse program-failed "flock $w_ended"
}

lock_read_token() { lock_find_token || refuse token-unreadable "$S/token is there, and could not be read or has no token"; }

lock_find_token() { # false if there is one that cannot be read. A first claim whose power failed leaves an empty file, before the first receipt
  k_counter=0 k_run=- k_state=ended k_stored=1
  [ -e "$S/token" ] || [ -L "$S/token" ] || return 0
  read -r k_counter k_run k_state 2>/dev/null <"$S/token"
  case $k_state in live | ended | lost) ;; *) k_counter='' ;; esac
  if ! { is_number "$k_counter" && is_name "$k_run"; }; then
    k_counter=0 k_run=- k_state=ended
    [ ! -s "$S/token" ] || return 1
    set +f
    set -- "$S"/tx/*/receipt
    set -f
    [ ! -e "$1" ]
    return
  fi
  [ "$k_state" != lost ] || k_stored=0 k_state=ended
}

lock_write_token() { # STATE
  lock_put_token "$1" && durable_flush "$S/token" "$S" "${S%/*}" && return
  lock_lose_token
  return 1
}

lock_put_token() { # STATE: in place, so that an emergency on a full disk is still fenced; durable only after the caller's flush
  k_counter=$counter k_run=$run k_state=$1 undurable=''
  printf '%s %s %s\n' "$counter" "$run" "$1" 2>/dev/null 1<>"$S/token"
}

lock_lose_token() { printf '%s %s lost\n' "$counter" "$run" 2>/dev/null 1<>"$S/token"; } # it fences, but the next caller of this run writes and syncs it again

lock_fence() { # the caller's token is at least the node's, and no other run has a claim
  lock_read_token
  if [ "$counter" -lt "$k_counter" ] || { [ "$counter" -eq "$k_counter" ] && [ "$run" != "$k_run" ]; }; then
    refuse fenced "this node has accepted token $k_counter of run $k_run"
  fi
  if [ "$run" != "$k_run" ] && [ "$k_state" = live ] && [ "$force" != 1 ]; then
    refuse claimed "by run $k_run with token $k_counter"
  fi
}

lock_refuse_token() {
  [ -z "$undurable" ] || refuse not-durable "it is not known that the disk has the token: $undurable"
  refuse state-not-writable "the token could not be stored"
}

lock_accept() { # after fence: remember a newer token
  [ "$counter $run $k_stored" = "$k_counter $k_run 1" ] || lock_write_token live
}

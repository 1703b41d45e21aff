#!/bin/sh
# rollout's agent: one node's transaction. POSIX sh; runs under dash, bash and busybox ash. Protocol: docs/agent.md.
#
# THEORY
#
# A transaction replaces a few files and restarts a few units, or sends them SIGHUP. It can always be reverted. Its receipt is the
# only record of its state, replaced only by rename. The timer and the boot unit hold no state: they start this program, which reads it:
#
#     (none) ──> armed ──> confirmed ──> reverting ──> reverted        armed ──> reverting ──> reverted
#
# There are no other transitions. So every verb may be repeated, and may finish what a killed verb began. Receipts for all
# later states are in next/ before the first one is in force, and both copies of every file exist by then. From then on each
# step, forward or back, is a rename (or an unlink): it needs no room on the disk, and it either happened or did not.
#
# What a kill -9 or a power cut leaves, by its point in `apply`, and what repairs it:
#
#     before the receipt          files old; stray staging         the next apply, or cleanup; the boot unit removes itself
#     armed, no timer yet         files old                        boot unit, or any confirm (too late) or revert
#     armed and guarded           each file old or new             timer, or boot unit, or revert: all old
#     in confirm, receipt first   files new; guard still there     timer and boot unit read `confirmed`, remove themselves
#     reverting                   each file old or new             timer, boot unit, or any revert continues: all old
#     reverted, guard still there files old                        timer and boot unit remove themselves
#     in forget                   all of the state, or none of it  another forget, or any cleanup
#
# Rules for all code below:
#   * State changes only under the lock (fd 9): killing the recorded holder's children, then the holder, stops all changes.
#   * The body of a verb runs with fd 9 closed (`… 9>&-`). The shell keeps the lock in a close-on-exec copy, so that no
#     child can hold it after the shell's death.
#   * Time is milliseconds since boot, plus the boot's id. `until` is the time by which this verb must have ended.
#     Every child that could hang runs under `bounded`, which waits at most until then, and at least one second.
#   * No `set -e`. HUP and PIPE are ignored: unread output is lost, without any other effect.
#   * Input words match [A-Za-z0-9_./:@%+=,-]; nothing else ever reaches a command line.

PAYLOAD=
export LC_ALL=C
umask 077
set -f
trap '' HUP PIPE

case $0 in # the copy that guards a transaction takes its node's root from its own path
  */var/lib/rollout/tx/*/agent) R=${0%/var/lib/rollout/tx/*/agent} ;;
  *) R=${ROLLOUT_ROOT-} ;;
esac
[ -n "$R" ] || export PATH="$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
S=$R/var/lib/rollout
FORGOTTEN=$S.forgotten
SYSTEM=$R/etc/systemd/system
BOOT_UNIT=rollout-guard-boot.service
UNIT_FOLDERS="$SYSTEM $R/run/systemd/system $R/usr/local/lib/systemd/system $R/usr/lib/systemd/system $R/lib/systemd/system"
WANTED=$SYSTEM/basic.target.wants/$BOOT_UNIT       # every ordinary service waits for that target, whatever a node's default target is
WANTED_ONCE=$SYSTEM/multi-user.target.wants/$BOOT_UNIT # of earlier versions
RUNTIMES='containerd.service crio.service cri-docker.service docker.service'
NL='
'

# ---------------------------------------------------------------------------------------------- words, time, children

say() { printf '%s\n' "$*" 2>/dev/null || :; }

finish() {
  say "end $verb"
  exit 0
}

refuse() { # REFERENCE TEXT
  say "refused $*"
  finish
}

clock() { # now: milliseconds since boot
  IFS=' ' read -r uptime _ <"$R/proc/uptime"
  case $uptime in *.??) ;; *) uptime=${uptime%%.*}.00 ;; esac
  now=$((${uptime%.*} * 1000 + 1${uptime#*.}0 - 1000))
}

allow() { # SECONDS: this verb must have ended by then
  clock
  until=$((now + $1 * 1000))
}

bounded() { # SECONDS COMMAND…: at most this long and at most the time left, but at least one second
  clock
  seconds=$(((until - now) / 1000))
  [ "$seconds" -lt "$1" ] || seconds=$1
  [ "$seconds" -ge 1 ] || seconds=1
  shift
  timeout -k 1 "$seconds" "$@"
}

let_go() { # SECONDS COMMAND…: like bounded, but returns even if the kernel does not end the command: its late effects do no harm
  clock
  seconds=$(((until - now) / 1000))
  [ "$seconds" -lt "$1" ] || seconds=$1
  [ "$seconds" -ge 1 ] || seconds=1
  shift
  timeout -k 1 $((seconds + 2)) timeout -k 1 "$seconds" "$@"
}

nap() { sleep 0.2 2>/dev/null || sleep 1; }

flush() { # FILE OR DIRECTORY…: sync to the disk. A failure is final: Linux reports it once, and the next sync would succeed without the bytes
  let_go 30 sync "$@" 2>/dev/null || { undurable=1 && return 1; }
}

milliseconds() { # SPAN…, as systemd prints it ("1min 30s", "100ms"): into `span`, rounded up
  span=0
  for part in "$@"; do
    figure=${part%%[!0-9]*}
    case $part in
      *us) span=$((span + figure / 1000 + 1)) ;;
      *ms) span=$((span + figure + 1)) ;;
      *.*s) span=$((span + figure * 1000 + 1000)) ;;
      *min) span=$((span + figure * 60000)) ;;
      *[0-9]s) span=$((span + figure * 1000)) ;;
      *[0-9]) span=$((span + figure / 1000)) ;;
      *) span=$((span + 86400000)) ;; # hours, "infinity": longer than any guard
    esac
  done
}

is_number() { case $1 in '' | *[!0-9]* | ????????????????*) return 1 ;; esac; }
is_name() { case $1 in '' | [.-]* | *[!A-Za-z0-9_.@-]*) return 1 ;; esac; }

arguments() { # KEY=VALUE…
  tx='' run='' counter='' machine='' guard=120 keep=3 unit=kubelet.service healthz=0 force=0 claim=0 measure=0 unread=0
  for word in "$@"; do
    case $word in *[!A-Za-z0-9_./:@%+=,-]*) refuse bad-argument "a word outside the alphabet" ;; esac
    value=${word#*=}
    case $word in
      tx=*) tx=$value ;;
      run=*) run=$value ;;
      counter=*) counter=$value ;;
      machine=*) machine=$value ;;
      guard=*) guard=$value ;;
      keep=*) keep=$value ;;
      unit=*) unit=$value ;;
      healthz=*) healthz=$value ;;
      force=*) force=$value ;;
      claim=*) claim=$value ;;
      measure=*) measure=$value ;;
      unread=*) unread=$value ;;
      *) refuse bad-argument "$word" ;;
    esac
  done
  if ! { is_name "$unit" && is_number "$guard" && is_number "$keep" && is_number "$healthz"; }; then
    refuse bad-argument "unit, guard, keep or healthz"
  fi
}

need() { # NAME…: these arguments must be present and well formed
  for name in "$@"; do
    case $name in
      tx) case $tx in *@*) refuse bad-argument tx ;; *) is_name "$tx" || refuse bad-argument tx ;; esac ;;
      run) is_name "$run" || refuse bad-argument run ;;
      counter) is_number "$counter" || refuse bad-argument counter ;;
    esac
  done
}

each() { # KIND FUNCTION: call FUNCTION with the words of each payload line of that kind, until it fails
  wanted=$1 callback=$2
  IFS=$NL
  # shellcheck disable=SC2086 # split into lines
  set -- $PAYLOAD
  unset IFS
  for line in "$@"; do
    case $line in "$wanted "*) ;; *) continue ;; esac
    # shellcheck disable=SC2086 # split into words
    $callback ${line#* } || return 1
  done
}

# --------------------------------------------------------------------------------------------------- lock and fencing

born() { # PID: its start time, which with the number identifies a process; also its parent, its state and its name
  born='' parent='' condition='' called=''
  read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
  called=${stat#*(} called=${called%)*}
  # shellcheck disable=SC2086 # split into fields; the command's name before ")" may hold anything
  set -- ${stat##*) }
  condition=$1 parent=$2 born=${20}
}

hold() { # SECONDS: take the lock; wait at most this long
  clock
  patience=$((now + $1 * 1000))
  while :; do
    [ -d "$S/tx" ] || mkdir -p "$S/tx" || return 1
    command exec 9>>"$S/lock" || return 1 # without `command`, an exec that fails would end dash
    until flock -n 9; do
      clock
      [ "$now" -lt "$patience" ] || return 1
      nap
    done
    # shellcheck disable=SC3013 # dash, bash and busybox have -ef
    [ "$S/lock" -ef "/proc/$$/fd/9" ] && break # else a forget came while we waited: the lock is another file now
    [ "$now" -lt "$patience" ] || return 1
    nap
    clock
  done
  born "$$"
  printf '%s %s\n' "$$" "$born" 2>/dev/null 1<>"$S/holder" || : # in place: works on a full disk
}

seize() { # like hold, for a guard: a process that keeps the lock for ten seconds is stuck, and is killed
  awaited=''
  while :; do
    hold 1 && return
    read -r holder start 2>/dev/null <"$S/holder" || return 1
    clock
    [ "$awaited" = "$holder $start" ] || awaited="$holder $start" enough=$((now + 9000))
    [ "$now" -lt "$enough" ] || is_taken_back || break
    nap
  done
  born "$holder" && [ "$born" = "$start" ] || return 1
  kill_family "$holder" || return 1
  born "$holder"
  kill -9 "$holder"
  wake "$parent"
  hold 5
}

is_taken_back() { # another process does a guard's work: leave it alone while there is time to do it all again
  [ "$tx" != - ] && load "$tx" && [ "$r_state" = reverting ] || return 1
  boot_id
  [ "$r_boot" = "$boot" ] || r_limit=$until # the recorded limit is by another boot's clock
  [ "$now" -lt $((r_limit - 90000)) ]
}

wake() { # PID: continue it and its parents, up to init: a sudo stops when its command is stopped, and would never report its end
  while [ "$1" -gt 1 ]; do
    kill -CONT "$1" 2>/dev/null
    born "$1" || return 0
    set -- "$parent"
  done
}

kill_family() { # PID: kill its children and theirs. PID keeps the lock, stopped, until none is left that could still change a file
  # (a rename that hangs in the kernel could complete later). If that takes too long, the next caller finds PID again
  stop_family "$1" || return 1
  for member in $family; do
    is_member "$member" && kill -9 "${member%:*}" 2>/dev/null
  done
  clock
  patience=$((now + 5000))
  while family_lives; do
    clock
    [ "$now" -lt "$patience" ] || return 1
    nap
  done
}

stop_family() { # PID: stop it and its children, so that none can start another; the children as PID:BIRTH into `family`
  family='' parents=" $1 "
  kill -STOP "$1" || return 1
  while :; do
    found=''
    set +f
    for entry in /proc/[0-9]*; do
      member=${entry#/proc/}
      born "$member" || continue
      case $parents in *" $member "*) continue ;; *" $parent "*) ;; *) continue ;; esac
      kill -STOP "$member" 2>/dev/null
      found="$found $member:$born" parents="$parents$member "
    done
    set -f
    [ -n "$found" ] || return 0 # this pass began after the last one was stopped
    family=$family$found
  done
}

is_member() { born "${1%:*}" && [ "$born" = "${1#*:}" ]; }

family_lives() {
  for member in $family; do
    is_member "$member" || continue
    case $condition,$called in Z,* | X,*) ;; D,mv | D,rm | D,rmdir | D,ln) return 0 ;; D,*) ;; *) return 0 ;; esac
  done
  return 1
}

is_ours() { # the state's folders, where they exist: others who can write there could replace a guard's program, which root runs
  for folder in "$S" "$S/tx"; do
    [ -e "$folder" ] || [ -L "$folder" ] || return 0
    [ -d "$folder" ] && [ ! -L "$folder" ] && [ -O "$folder" ] || return 1
    case $(stat -c %a "$folder") in *[2367] | *[2367]?) return 1 ;; esac
  done
}

lock() {
  undurable=''
  command -v flock >/dev/null || refuse no-flock "flock (of util-linux or busybox) is not on this node"
  is_ours || refuse state-not-ours "$folder is a link, or another user's, or may be written by others"
  [ -d "$S/tx" ] || mkdir -p "$S/tx" 2>/dev/null || refuse state-not-writable "$S"
  true 2>/dev/null >>"$S/lock" || refuse state-not-writable "$S/lock"
  hold 5 2>/dev/null || refuse locked "another verb is at work"
}

read_token() {
  k_counter=0 k_run=- k_state=ended
  [ -f "$S/token" ] && read -r k_counter k_run k_state <"$S/token"
  is_number "$k_counter" || k_counter=0 k_run=- k_state=ended
}

write_token() { # STATE: in place, so that an emergency on a full disk is still fenced
  k_counter=$counter k_run=$run k_state=$1
  printf '%s %s %s\n' "$counter" "$run" "$1" 2>/dev/null 1<>"$S/token" && flush "$S/token" "$S" "${S%/*}"
}

fence() { # the caller's token is at least the node's, and no other run has a claim
  read_token
  if [ "$counter" -lt "$k_counter" ] || { [ "$counter" -eq "$k_counter" ] && [ "$run" != "$k_run" ]; }; then
    refuse fenced "this node has accepted token $k_counter of run $k_run"
  fi
  if [ "$run" != "$k_run" ] && [ "$k_state" = live ] && [ "$force" != 1 ]; then
    refuse claimed "by run $k_run with token $k_counter"
  fi
}

refuse_token() {
  [ -z "$undurable" ] || refuse not-durable "the disk did not take the token: sync failed"
  refuse state-not-writable "the token could not be stored"
}

accept() { # after fence: remember a newer token
  [ "$counter $run" = "$k_counter $k_run" ] || write_token live
}

# -------------------------------------------------------------------------------------------------------- the receipt

here() { # TX: its folder
  tx=$1 T=$S/tx/$1
}

load() { # TX: its receipt into r_…; false if it has none
  r_run=- r_counter=0 r_seq=0 r_state='' r_cause=- r_finished=0 r_boot=- r_deadline=0 r_limit=0 r_files=0 r_units='' r_hangups='' r_unit='' r_port=0
  r_reload=0 r_kubelet='' r_program=''
  here "$1"
  [ -f "$T/receipt" ] && [ ! -L "$T" ] || return 1
  while IFS='=' read -r key value; do
    case $key in
      run) r_run=$value ;;
      counter) r_counter=$value ;;
      seq) r_seq=$value ;;
      state) r_state=$value ;;
      cause) r_cause=$value ;;
      finished) r_finished=$value ;;
      boot) r_boot=$value ;;
      deadline) r_deadline=$value ;;
      limit) r_limit=$value ;;
      files) r_files=$value ;;
      units) r_units=$value ;;
      hangups) r_hangups=$value ;;
      unit) r_unit=$value ;;
      port) r_port=$value ;;
      reload) r_reload=$value ;;
      kubelet) r_kubelet=$value ;;
      program) r_program=$value ;;
    esac
  done <"$T/receipt"
  [ "$r_limit" -gt 0 ] || r_limit=$((r_deadline + 150000)) # written by an earlier version
  [ -n "$r_program" ] || r_program=$(command -v kubelet) # an earlier version found it on PATH only
  [ -n "$r_state" ]
}

lay() { # NAME STATE CAUSE FINISHED: write a receipt for later
  printf 'tx=%s\nstate=%s\ncause=%s\nfinished=%s\n%s\n' "$tx" "$2" "$3" "$4" "$common" >"$T/next/$1"
}

lay_receipts() {
  lay armed armed - 0 && lay finished armed - 1 && lay confirmed confirmed - 1 || return 1
  for why in guard boot health asked; do
    lay "reverting-$why" reverting "$why" 1 && lay "reverted-$why" reverted "$why" 1 || return 1
  done
}

become() { # NAME: one rename, durable when this returns true
  bounded 60 mv -f "$T/next/$1" "$T/receipt" && flush "$T"
}

transactions() { # every transaction's name into `all_tx`, newest first
  all_tx='' found=''
  set +f
  for entry in "$S"/tx/*/receipt; do
    entry=${entry%/receipt}
    load "${entry##*/}" && found="$found $r_seq:$tx"
  done
  set -f
  while [ -n "$found" ]; do
    top=-1
    for entry in $found; do [ "${entry%%:*}" -le "$top" ] || top=${entry%%:*} newest=$entry; done
    all_tx="$all_tx ${newest#*:}" rest=''
    for entry in $found; do [ "$entry" = "$newest" ] || rest="$rest $entry"; done
    found=$rest
  done
}

boot_id() { read -r boot <"$R/proc/sys/kernel/random/boot_id"; }

seconds_left() { # left: seconds until this receipt's guard fires; 0 if it has fired or never will
  clock
  boot_id
  left=0
  [ "$r_state" = armed ] && [ "$r_boot" = "$boot" ] && left=$(((r_deadline - now) / 1000))
  [ "$left" -ge 0 ] || left=0
}

show_receipt() { # WORD TX: a line of output
  load "$2" || return 0
  seconds_left
  say "$1 tx=$tx run=$r_run counter=$r_counter state=$r_state cause=$r_cause left=$left finished=$r_finished"
}

# -------------------------------------------------------------------------------------------------------------- files

load_file() { # N: what to do with file N into f_…; paths as the node sees them, "-" for none
  f_made=''
  read -r f_path f_before f_after f_old f_new f_made 2>/dev/null <"$T/file.$1"
}

digest() { # PATH…: sums, for is_as; one process for all
  sums=$NL$(sha256sum -- "$@" 2>/dev/null)$NL
}

is_as() { # DIGEST PATH: a regular file that had this digest when `digest` ran; or `absent`, and there is no file
  if [ "$1" = absent ]; then
    [ ! -e "$R$2" ] && [ ! -L "$R$2" ]
  else
    [ -f "$R$2" ] && [ ! -L "$R$2" ] || return 1
    case $sums in *"$NL$1  $R$2$NL"*) ;; *) return 1 ;; esac
  fi
}

targets() { # the targets of the loaded receipt into `paths`; the old files beside them into `copies`
  paths='' copies='' n=1
  while [ "$n" -le "$r_files" ]; do
    load_file "$n" && paths="$paths $R$f_path"
    [ ! -e "$T/beside.$n" ] || copies="$copies $R$f_old"
    n=$((n + 1))
  done
}

folders() { # the existing folders of `paths` into `dirs`
  dirs=''
  for path in $paths; do
    path=${path%/*}
    until [ -d "$path" ]; do path=${path%/*}; done
    case " $dirs " in *" $path "*) ;; *) dirs="$dirs $path" ;; esac
  done
}

# -------------------------------------------------------------------------------------------------------------- guard

write_boot_unit() { # UNITS FOLDERS; durable only after the caller's flush
  [ ! -L "$SYSTEM/$BOOT_UNIT" ] || return 1 # masked, or a link that leads the write elsewhere
  [ -d "${WANTED%/*}" ] || { true >"$T/made-wants" && mkdir -p "${WANTED%/*}"; } || return 1
  umask 022
  # no default dependencies: they would order it after the target that wants it
  printf '%s\n' "[Unit]" "Description=rollout: take transaction $tx back unless it was confirmed" "DefaultDependencies=no" \
    "Requires=sysinit.target" "After=sysinit.target" "Before=basic.target shutdown.target $1" "Conflicts=shutdown.target" \
    "RequiresMountsFor=/var/lib/rollout $2" "[Service]" "Type=oneshot" "ExecStart=/bin/sh $T/agent boot" \
    "TimeoutStartSec=60" "[Install]" "WantedBy=basic.target" >"$SYSTEM/$BOOT_UNIT"
  written=$?
  umask 077
  [ "$written" -eq 0 ] || return 1
  # shellcheck disable=SC3013 # dash, bash and busybox have -ef
  { [ -L "$WANTED" ] && [ "$WANTED" -ef "$SYSTEM/$BOOT_UNIT" ]; } || { rm -f "$WANTED" && ln -s "../$BOOT_UNIT" "$WANTED"; }
}

remove_boot_unit() {
  rm -f "$WANTED" "$WANTED_ONCE" "$SYSTEM/$BOOT_UNIT"
  [ ! -e "$T/made-wants" ] || rmdir "${WANTED%/*}" 2>/dev/null || :
}

disarm() { # what is already gone is no error; a watch does not stop itself
  strings="rollout-guard-$tx.timer"
  [ "$verb" = watch ] || strings="$strings rollout-watch-$tx.service"
  # shellcheck disable=SC2086 # a list of units
  bounded 10 systemctl stop $strings >/dev/null 2>&1 || :
  remove_boot_unit
}

start_timer() { # SECONDS OPTION…: it starts a guard of the loaded transaction, again and again until one succeeds
  delay=$1
  shift
  # `systemctl isolate rescue.target` stops timers and services in the same boot
  bounded 10 systemd-run --quiet "$@" --unit="rollout-guard-$tx" --on-active="$delay" \
    --timer-property=AccuracySec=100ms --timer-property=RemainAfterElapse=no --timer-property=IgnoreOnIsolate=yes --collect \
    --property=IgnoreOnIsolate=yes --property=Restart=on-failure --property=RestartSec=5 \
    /bin/sh "$T/agent" guard "$tx" >/dev/null 2>&1
}

start_strings() { # OPTION…: a timer that fires at r_deadline, never before; and a process that sleeps, which needs no timer
  clock
  delay=$(((r_deadline - now + 999) / 1000))
  [ "$delay" -ge 1 ] || delay=1
  start_timer "$delay" "$@"
  bounded 10 systemd-run --quiet "$@" --unit="rollout-watch-$tx" --collect --property=IgnoreOnIsolate=yes \
    --property=Restart=on-failure --property=RestartSec=5 /bin/sh "$T/agent" watch "$tx" >/dev/null 2>&1
}

keep_strings() { # of the loaded transaction, armed in this boot: start them again if somebody stopped the timer
  [ "$r_state" = armed ] && boot_id && [ "$r_boot" = "$boot" ] || return 0
  shown=$(bounded 5 systemctl show -p ActiveState "rollout-guard-$tx.timer" "rollout-guard-$tx.service") || return 0
  case $shown in *ActiveState=active* | *ActiveState=activating*) ;; *) start_strings --no-block ;; esac
}

guard_is_proven() { # by what systemd shows, whatever systemd-run returned
  shown=$(bounded 10 systemctl show -p ActiveState -p NextElapseUSecMonotonic "rollout-guard-$tx.timer") || return 1
  case $NL$shown$NL in *"${NL}ActiveState=active$NL"*) ;; *) return 1 ;; esac
  next=${shown##*NextElapseUSecMonotonic=}
  case ${next%%"$NL"*} in '' | 0 | infinity | *=*) return 1 ;; esac
  look "rollout-watch-$tx.service" && [ "$u_active" = active ] && [ "$u_pid" != 0 ] || return 1
  enabled=$(bounded 10 systemctl is-enabled "$BOOT_UNIT" 2>/dev/null)
  [ "$enabled" = enabled ] || return 1
  reached=$NL$(bounded 10 systemctl list-dependencies --plain --no-pager default.target 2>/dev/null | tr -d ' ')$NL
  case $reached in *"${NL}basic.target$NL"*) ;; *) return 1 ;; esac # the next boot reaches it, as systemd itself resolves its default target
}

# ----------------------------------------------------------------------------------------------------- the units' health

look() { # UNIT: its properties into u_…
  u_load='' u_active='' u_sub='' u_pid=0 u_restarts=0 u_started=0 u_pause=100ms u_reload=no u_file=''
  shown=$(bounded 10 systemctl show -p LoadState -p ActiveState -p SubState -p MainPID -p NRestarts -p RestartUSec \
    -p ExecMainStartTimestampMonotonic -p NeedDaemonReload -p UnitFileState "$1" 2>/dev/null) || return 1
  IFS=$NL
  for line in $shown; do
    value=${line#*=}
    case $line in
      LoadState=*) u_load=$value ;;
      ActiveState=*) u_active=$value ;;
      SubState=*) u_sub=$value ;;
      MainPID=*) u_pid=$value ;;
      NRestarts=*) u_restarts=$value ;;
      RestartUSec=*) u_pause=$value ;;
      ExecMainStartTimestampMonotonic=*) u_started=$value ;;
      NeedDaemonReload=*) u_reload=$value ;;
      UnitFileState=*) u_file=$value ;;
    esac
  done
  unset IFS
  [ -n "$u_active" ]
}

directly() { # COMMAND…: without a proxy; in a subshell, since a command gate may need one
  unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
  export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1 # whatever a wgetrc contains
  "$@"
}

probe() { # PORT: `health` is ok, refused, timeout or status NNN; empty when no program here can send the request
  # curl: Debian, Ubuntu and RHEL servers as a rule. wget: Alpine and busybox, minimal Debian. Where both are missing,
  # as on a minimal RHEL, bash opens the connection itself.
  url=http://127.0.0.1:$1/healthz health=refused
  if command -v curl >/dev/null; then
    answer=$(directly bounded 4 curl -q -s -m 3 -w '\n%{http_code}' "$url" 2>/dev/null)
  elif command -v wget >/dev/null; then
    answer=$(directly bounded 4 wget -q -S -T 3 -O - "$url" 2>&1)
  elif command -v bash >/dev/null; then
    # shellcheck disable=SC2016 # expanded by that bash
    answer=$(bounded 4 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1" && printf "GET /healthz HTTP/1.0\r\n\r\n" >&3 && cat <&3' - "$1" 2>/dev/null)
  else
    health=''
    return
  fi
  case $?,$answer in
    124,* | 137,* | 143,* | 28,*) health=timeout ;;
    *HTTP/1.[01]\ [0-9][0-9][0-9]*) answer=${answer#*HTTP/1.[01] } health="status ${answer%"${answer#???}"}" ;;
    0,ok | 0,*"$NL"200) health=ok ;;
    0,*"$NL"[0-9][0-9][0-9]) health="status ${answer##*"$NL"}" ;;
  esac
  [ "$health" != "status 200" ] || health=ok
}

find_logs() { # PID: the files that its log is written to, into `logs`; none for a log in the journal
  logs='' outputs=$R/proc/$1/fd # also those to which systemd or a script redirects it
  [ ! -f "$outputs/2" ] || logs="$outputs/2"
  # shellcheck disable=SC3013 # dash, bash and busybox have -ef
  [ ! -f "$outputs/1" ] || [ "$outputs/1" -ef "$outputs/2" ] || logs="$logs $outputs/1"
  mentions "$1" logtostderr= || return 0
  command_line "$1"
  option ' --logtostderr '
  case $value in 0 | [fF] | false | FALSE | False) ;; *) return 0 ;; esac
  option ' --log-file '
  if [ -z "$value" ]; then
    option ' --log-dir '
    value=${value:-/tmp}/kubelet.INFO
  fi
  case $value in *[!A-Za-z0-9_./:@%+=,-]*) ;; *) logs="$logs $R$value" ;; esac
}

is_thrown_away() { # PID: its text log is discarded: its lines in the journal are its standard output, and not its log
  [ "$(readlink -- "$R/proc/$1/fd/2" 2>/dev/null)" = /dev/null ]
}

is_said_by() { # PID SINCE LINE: this process wrote it. klog's text contains the process, its JSON the time; SINCE is the first time that counts
  case $3 in
    [IWEF][0-9][0-9][0-9][0-9]' '*)
      pid_said=${3#* }
      pid_said=${pid_said#"${pid_said%%[! ]*}"}
      pid_said=${pid_said#* }
      pid_said=${pid_said#"${pid_said%%[! ]*}"}
      [ "${pid_said%% *}" = "$1" ]
      ;;
    '{"ts":'*)
      moment=${3#'{"ts":'}
      moment=${moment%%[!0-9]*}
      is_number "$moment" && [ "$moment" -ge "$2" ]
      ;;
    *) return 1 ;;
  esac
}

read_logs() { # PID STARTED: the files in `logs`, as `read_journal` reads the journal. STARTED is in microseconds since boot
  is_number "${2:-}" || return 0
  clock
  first=$((($(date +%s) - now / 1000 + $2 / 1000000 - 2) * 1000))
  for log in $logs; do
    said=0
    IFS=$NL
    for line in $(bounded 8 tail -c 67108864 -- "$log" 2>/dev/null | grep -e 'lenient decoding'); do
      ! is_said_by "$1" "$first" "$line" || said=$((said + 1))
    done
    unset IFS
    [ "$said" -gt 0 ] || is_read "$1" "$first" "$log" || continue
    lenient=$((${lenient:-0} + said))
  done
}

is_read() { # PID SINCE FILE: this process wrote one of its last lines
  IFS=$NL
  for line in $(bounded 8 tail -n 20 -- "$3" 2>/dev/null); do
    ! is_said_by "$1" "$2" "$line" || { unset IFS && return; }
  done
  unset IFS
  return 1
}

count_lenient() { # PID STARTED: the number of "lenient decoding" lines of this process; empty while no line of it can be read
  lenient='' its_log='^'
  ! is_thrown_away "$1" || its_log='^{"ts":'
  lines=$({ bounded 8 journalctl -q -b --no-pager -o cat -n 50000 "_PID=$1" 2>/dev/null || echo '!unreadable'; } |
    sed -n -e '/^!unreadable$/{p;q;}' -e "/$its_log/{x;/^\$/{s/^/!read/;p;};x;}" -e '/lenient decoding/p')
  case $lines in
    *'!unreadable') ;;
    *)
      IFS=$NL
      for line in $lines; do
        case $line in '!read') lenient=${lenient:-0} ;; *) lenient=$((${lenient:-0} + 1)) ;; esac
      done
      unset IFS
      ;;
  esac
  find_logs "$1"
  read_logs "$1" "$2"
  return 0
}

has_argument() { # BASE64: it is one word of the process's command line
  argument=$(printf %s "$1" | base64 -d)
  case $words in *"$NL$argument$NL"*) ;; *)
    why="an argument is missing from its command line"
    return 1
    ;;
  esac
}

concern() { # the units to check for health: those of the loaded change and the kubelet's, into `concerned`
  concerned=''
  for name in $r_units $r_hangups "$unit"; do
    case " $concerned " in *" $name "*) ;; *) concerned="$concerned${concerned:+ }$name" ;; esac
  done
}

is_restarted() { case " $r_units " in *" $1 "*) ;; *) return 1 ;; esac }

is_unread() { # UNIT, after `look`: it was restarted with the definition in systemd's memory, not with the changed unit files
  [ "$r_reload" != 0 ] && [ "$u_reload" = yes ] && is_restarted "$1"
}

remember() { # UNIT, after `look`: what its restart must change, or what must stay the same without one; the longest RestartSec
  memory="$memory$1 $u_pid $u_started $u_restarts$NL"
  case " $r_units $r_hangups " in *" $1 "*) ;; *) return ;; esac
  # shellcheck disable=SC2086 # split into the words of a time span
  milliseconds $u_pause
  [ "$span" -lt "$longest" ] || longest=$span pause=$u_pause
}

remember_units() { # the units of the loaded change, as they are now
  concern
  memory=$NL longest=0
  for name in $concerned; do
    look "$name"
    remember "$name"
  done
}

recall() { # MEMORY UNIT: its process as remembered there
  line=${1#*"$NL$2 "}
  # shellcheck disable=SC2086 # split into words
  set -- ${line%%"$NL"*}
  was_pid=$1 was_started=$2 was_restarts=$3
}

ill() { # UNIT TEXT
  why=$2
  [ "$1" = "$unit" ] || why="$1: $2"
  return 1
}

comes_up() { # UNIT: it runs, in a process from after its restart, or, without a restart, in the same process; else `why`
  recall "$memory" "$1"
  clock
  grave=$((now + 20000)) # a dead process gets 20 s: the node controller's grace period is 40 s
  [ "$grave" -lt "$until" ] || grave=$until
  while :; do
    if look "$1"; then
      if is_restarted "$1" && [ "$u_restarts" -ne 0 ] && [ "$u_restarts" -ne "$was_restarts" ]; then
        ill "$1" "restarted by systemd" || return
      fi
      case $u_active/$u_sub in
        failed/* | inactive/* | */auto-restart) ill "$1" "exited ($u_active, $u_sub)" || return ;;
        active/*)
          if is_restarted "$1"; then
            [ "$u_pid" = 0 ] || [ "$u_started" = "$was_started" ] || return 0
          elif [ "$was_pid" = 0 ] || [ "$u_pid" = "$was_pid" ]; then
            [ "$u_pid" = 0 ] || return 0
          else
            ill "$1" "its process went from $was_pid to $u_pid though nobody restarted it" || return
          fi
          ;;
      esac
    fi
    clock
    [ "$now" -lt "$grave" ] || ill "$1" "not running (${u_active:-systemd silent}, $u_sub)" || return
    nap
  done
}

come_up() { # all of `concerned`; their processes into `alive`
  alive=$NL
  for name in $concerned; do
    comes_up "$name" || return 1
    alive="$alive$name $u_pid $u_started $u_restarts$NL"
  done
}

stay_up() { # for longer than the longest RestartSec, each in one process. In between only /proc is read, which costs nothing
  clock
  steady=$now
  [ "$longest" -eq 0 ] || steady=$((now + longest + longest / 10 + 100))
  while clock && [ "$now" -lt "$steady" ]; do
    for name in $concerned; do
      recall "$alive" "$name"
      [ -e "$R/proc/$was_pid/cmdline" ] || ill "$name" "its process exited" || return
    done
    [ "$now" -lt "$until" ] || ill "$unit" "the guard was about to fire" || return
    nap
  done
  for name in $concerned; do
    recall "$alive" "$name"
    look "$name" && [ "$u_pid $u_started $u_restarts $u_active" = "$was_pid $was_started $was_restarts active" ] ||
      ill "$name" "its process exited" || return
    ! is_unread "$name" || ill "$name" "systemd has not read its unit files anew" || return
  done
  return 0
}

answers() { # /healthz, while there is time; off (port 0) and no program to send the request count as answered
  [ "$healthz" != 0 ] || return 0
  while :; do
    probe "$healthz"
    case $health in ok | '') return 0 ;; esac
    why="healthz: $health"
    clock
    [ $((now + 2000)) -lt "$until" ] && [ -e "$R/proc/$pid/cmdline" ] || return 1
    nap
  done
}

knows_its_fields() { # the process `pid`, by its log. A log that cannot be read counts as a failure; klog writes its files every 5 s
  clock
  patience=$((now + 20000))
  while count_lenient "$pid" "$was_started" && [ -z "$lenient" ]; do
    [ "$unread" = 0 ] || return 0 # the order accepts an unread log
    why="not a line of its log can be read"
    clock
    [ "$now" -lt "$patience" ] && [ $((now + 2000)) -lt "$until" ] && [ -e "$R/proc/$pid/cmdline" ] || return 1
    nap
  done
  why="$lenient lines of lenient decoding: a field of its configuration is unknown"
  [ "$lenient" -eq 0 ]
}

is_healthy() { # compared with what was remembered before the restart; the reason or the result into `why`
  come_up && stay_up || return 1
  recall "$alive" "$unit"
  pid=$was_pid
  answers || return 1
  words=$NL$(tr '\0' '\n' 2>/dev/null <"$R/proc/$pid/cmdline")$NL
  each argument has_argument || return 1
  # after a revert (no payload) the files are whatever they were before the change; without a restart they were not read
  [ -z "$PAYLOAD" ] || ! is_restarted "$unit" || knows_its_fields || return 1
  why="$((longest / 1000)) s without a restart, healthz ${health:-off}"
}

tell_health() { # of the units, after a restart with the old files
  case $how in
    nothing) say "healthy yes no file had been exchanged" && return ;;
    finished) return ;;
  esac
  if is_healthy; then say "healthy yes $why"; else say "healthy no $why"; fi
}

tell_taken_back() { # of the loaded transaction, whatever reverted it: a unit that does not run with the old files
  [ "$r_state" = reverted ] || return 0
  boot_id
  since=boot # whatever reverted it, a later boot has started all units
  [ "$r_cause" = boot ] || [ "$r_boot" != "$boot" ] || since=$r_cause
  for name in $r_hangups $r_units; do
    look "$name" || return 0
    ! is_unread "$name" || { say "healthy no $name: systemd has not read its unit files anew" && return; }
    case $u_active/$u_sub/$since in
      */auto-restart/boot) ;; # what it needs may still be starting
      failed/* | */auto-restart/*) say "healthy no $name is $u_sub with the old files" && return ;;
    esac
  done
}

hang_up() { # UNIT: make its main process read its configuration again
  bounded 10 systemctl kill -s HUP --kill-who=main "$1" >/dev/null 2>&1
}

restart_unit() { bounded 90 systemctl restart "$1" >/dev/null 2>&1; }

restart_surely() { # UNIT: a second attempt if the first one hung; systemd merges two restarts that are requested at once
  restart_unit "$1" && return
  case $? in 124 | 137) clock && [ $((now + 3000)) -lt "$until" ] && restart_unit "$1" ;; *) return 1 ;; esac
}

restart_running() { # at boot the units start after us; one that runs already reads its old files as soon as we have ended
  for name in $r_hangups $r_units; do
    look "$name"
    [ "$u_pid" = 0 ] || bounded 10 systemctl --no-block restart "$name" >/dev/null 2>&1
  done
}

restart_units() { # in order, after the SIGHUPs; `why`, if one fails
  for name in $r_hangups; do
    hang_up "$name" || { why="$name has no process that takes a SIGHUP" && return 1; }
  done
  for name in $r_units; do
    restart_unit "$name" || { why="systemctl restart $name failed or hung" && return 1; }
  done
}

restart_again() { # with the old files: every unit, even if others fail; those not seen to be restarted into `unrestarted`
  clock
  given_at=$now previous=$NL
  for name in $r_units; do
    look "$name" || u_started=0
    previous="$previous$name 0 $u_started 0$NL"
  done
  [ -z "${memory-}" ] || remember_units # a crash loop went on while the files were restored: its restarts do not count against the units
  for name in $r_hangups; do # a process that died of a SIGHUP is started
    hang_up "$name" || restart_surely "$name" || say "say restart-failed $name has no process and does not start"
  done
  [ -n "$r_units" ] || return 0
  # shellcheck disable=SC2086 # a list of units
  bounded 5 systemctl reset-failed $r_units >/dev/null 2>&1 # else a crash loop's start limit blocks the old files too
  for name in $r_units; do
    restart_surely "$name" || say "say restart-failed systemctl restart $name failed or hung"
  done
  for name in $r_units; do
    is_seen_restarted "$name" || unrestarted="$unrestarted${unrestarted:+ }$name"
  done
}

is_seen_restarted() { # UNIT: it has no process, or one younger than the restored files. systemctl's exit status is no proof
  look "$1" || return 1
  [ "$u_pid" != 0 ] || return 0
  if started_at "$u_pid"; then
    [ $((started_at + 10)) -ge "$given_at" ]
  else
    recall "$previous" "$1"
    [ "$was_started" != 0 ] && [ "$u_started" != "$was_started" ]
  fi
}

started_at() { # PID: when it started, in milliseconds since boot
  read -r stat 2>/dev/null <"$R/proc/$1/stat" || return 1
  # shellcheck disable=SC2086 # split into fields; the command's name before ")" may hold anything
  set -- ${stat##*) }
  started_at=$((${20} * 10)) # hundredths of a second, on every supported Linux
}

reload_units() { [ "$r_reload" = 0 ] || bounded 30 systemctl daemon-reload >/dev/null 2>&1; }

reload_surely() { # a second attempt if systemd refused (little room in /run); if it hung, it reloads before the restart, as soon as it can
  reload_units && return
  case $? in 124 | 137) ;; *) nap && reload_units && return ;; esac
  say "say reload-failed systemctl daemon-reload failed or hung"
}

# -------------------------------------------------------------------------------------------------------------- revert

keep_foreign() { # N PATH: bytes that are neither the new nor the old ones; kept if that is possible without a gap
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

give_back() { # N: restore file N; may be repeated; counted in `given` if that took a step
  load_file "$1" || return 1
  is_as "$f_before" "$f_path" && return 0
  is_as "$f_after" "$f_path" || keep_foreign "$1" "$f_path"
  if [ "$f_before" = absent ]; then
    let_go 30 rm -f "$R$f_path" || return 1
  else
    # On another file system a confirmed change keeps its copy in our folder only. The file beside the target may be incomplete:
    # a revert was killed, or the power failed, while it was written.
    if [ -e "$T/beside.$1" ] && ! is_as "$f_before" "$f_old"; then
      rm -f "$R$f_old" && cp -a "$T/old.$1" "$R$f_old" && flush "$R$f_old" || return 1
    fi
    let_go 30 mv -f "$R$f_old" "$R$f_path" || return 1
  fi
  given=$((given + 1))
}

remove_made() { # N: remove the folders that were made for file N, if nothing uses them
  load_file "$1" || return 0
  made=''
  for folder in $f_made; do made="$R$folder $made"; done
  for folder in $made; do rmdir "$folder" 2>/dev/null || :; done
}

remove_all_made() { # for every file, the last one first
  n=1
  while [ -e "$T/file.$n" ]; do n=$((n + 1)); done
  while [ "$n" -gt 1 ]; do
    n=$((n - 1))
    remove_made "$n"
  done
}

near() { # N: the path, without its ending, of the loaded file's copies if they cannot be in the transaction's folder
  near=${f_path%/*}
  for topmost in $f_made; do near=${topmost%/*} && break; done
  case $near in *.d) near=${near%/*} ;; esac # never where a reader's pattern could match
  near=$near/.rollout-$tx.$1
}

unstage() { # remove the copies that are outside the transaction's folder, or were tried there
  n=1
  while [ -e "$T/file.$n" ]; do
    if load_file "$n"; then
      near "$n"
      rm -f "$R$near.new" "$R$near.old"
    fi
    n=$((n + 1))
  done
}

flush_near() { # make the removal durable: else a power cut restores copies that no record names
  nears='' n=1
  while [ -e "$T/file.$n" ]; do
    if load_file "$n"; then
      near "$n"
      case " $nears " in *" $R${near%/*} "*) ;; *) nears="$nears $R${near%/*}" ;; esac
    fi
    n=$((n + 1))
  done
  # shellcheck disable=SC2086 # a list of paths
  [ -z "$nears" ] || flush $nears
}

is_untouched() { # an armed transaction without a rename: everything staged is there. Old bytes are no proof, anybody may restore them
  [ "$r_state" = armed ] || return 1
  n=1
  while [ "$n" -le "$r_files" ]; do
    load_file "$n" && [ -e "$R$f_new" ] && is_as "$f_before" "$f_path" || return 1
    n=$((n + 1))
  done
}

restrain() { # a transaction armed in this boot is reverted by its limit, before its pods are evicted
  [ "$r_state" = armed ] || [ "$verb" = guard ] || [ "$verb" = watch ] || return 0
  boot_id
  clock
  [ "$r_boot" != "$boot" ] || [ "$now" -ge $((r_limit - 10000)) ] || [ "$until" -lt "$r_limit" ] || until=$r_limit
}

take_back() { # CAUSE HOW: revert to the end; HOW is restart, or files at boot, when the units start after us anyway. False: not finished
  restrain
  targets
  # shellcheck disable=SC2086 # a list of paths
  digest $paths $copies
  how=$2
  is_untouched && how=nothing
  read_stuck
  [ "$stuck" != not-durable ] || return 1 # nothing in this boot can make it durable
  undurable='' unrestarted='' kept=''
  if [ "$r_state" != reverting ]; then
    bounded 60 mv -f "$T/next/reverting-$1" "$T/receipt" || return 1
    flush "$T"
    r_state=reverting r_cause=$1
  fi
  give_all_back
  remove_all_made
  folders
  # shellcheck disable=SC2086 # a list of paths
  flush $dirs
  [ "$given,$stuck" != 0,not-given-back ] || how=finished # by the previous attempt
  case $how in restart | files) reload_surely ;; esac
  case $how in restart) restart_again ;; files) restart_running ;; esac
  is_whole || return 1
  [ "$how" != restart ] || remember_loaded
  become "reverted-$r_cause" || return 1
  r_state=reverted
  if [ "$2" = files ]; then remove_boot_unit; else disarm; fi
  times=''
  [ "$how" != nothing ] || times=$(cat "$T/times" 2>/dev/null)
  tidy
  keep_times "$times"
}

give_all_back() { # every file, even if others fail; those that keep the new bytes into `kept`
  given=0 n=1
  while [ "$n" -le "$r_files" ]; do
    give_back "$n" || kept="$kept${kept:+ }$f_path"
    n=$((n + 1))
  done
}

is_whole() { # else the reason is noted: the receipt stays `reverting`, and the next attempt or the next boot continues
  if [ -n "$undurable" ]; then
    stick not-durable "the disk reported that it lost what was written; reboot the node, which then looks at its files again"
  elif [ -n "$unrestarted" ]; then
    stick not-restarted "$unrestarted still runs the process from before its old files were there"
  elif [ -n "$kept" ]; then
    stick not-given-back "$kept $(attributes)"
  else
    rm -f "$T/stuck"
    stuck=''
  fi
  [ -z "$stuck" ]
}

stick() { # REFERENCE TEXT: why the loaded transaction cannot end. Best effort: only the receipt counts
  stuck=$1 stuck_text=$2
  printf '%s %s %s\n' "$boot" "$1" "$2" >"$T/stuck" 2>/dev/null
}

read_stuck() { # the reason noted in this boot, into `stuck` and `stuck_text`
  boot_id
  stuck_boot='' stuck='' stuck_text=''
  read -r stuck_boot stuck stuck_text 2>/dev/null <"$T/stuck"
  [ "$stuck_boot" = "$boot" ] || stuck='' stuck_text=''
}

tell_stuck() { # of the loaded transaction
  [ "$r_state" = reverting ] || return 0
  read_stuck
  [ -z "$stuck" ] || say "failed $stuck $stuck_text"
}

attributes() { # why the first of `kept` cannot be renamed, if that is known
  attributes=$(bounded 5 lsattr -d -- "$R${kept%% *}" 2>/dev/null)
  case ${attributes%% *} in
    *i*) printf 'is immutable; clear that with: chattr -i' ;;
    *a*) printf 'may only be appended to; clear that with: chattr -a' ;;
    *) printf 'cannot be renamed' ;;
  esac
}

tidy() { # a reverted transaction keeps only its receipt and foreign bytes
  unstage
  remove_all_made # those that held a copy until now
  set +f
  rm -rf "$T"/old.* "$T"/new.* "$T/next" "$T/stuck" "$T/times"
  set -f
}

# -------------------------------------------------------------------------------------------------------------- apply

check_file() { # N PATH BEFORE AFTER MODE BASE64
  if [ "$#" -ne 6 ] || ! is_number "$5" || [ "$1" != $((files + 1)) ]; then refuse bad-argument "file line $1"; fi
  case $2 in /*/../* | */.. | */./* | *//* | */ | [!/]*) refuse bad-argument "$2" ;; esac
  files=$1 paths="$paths $R$2" room=$((room + ${#6} / 256 + 64))
  case $2 in /etc/systemd/* | /run/systemd/* | /usr/lib/systemd/* | /usr/local/lib/systemd/* | /lib/systemd/*) r_reload=1 ;; esac
  if [ -L "$R$2" ] || { [ -e "$R$2" ] && [ ! -f "$R$2" ]; }; then
    refuse not-a-regular-file "$2"
  fi
  folder=${2%/*}
  until [ -d "$R$folder/" ]; do
    if [ -e "$R$folder" ] || [ -L "$R$folder" ]; then refuse not-a-regular-file "$folder"; fi
    folder=${folder%/*}
  done
  points="$points $2"
  case $folder in *.d) points="$points $folder" && same_device "$folder" ;; esac # the copies will be in its parent
}

same_device() { # FOLDER: it and the one above it are on one device
  # shellcheck disable=SC2046 # two numbers
  set -- "$1" $(stat -L -c %d "$R$1" "$R${1%/*}")
  [ "${2-}" = "${3-none}" ] || refuse not-renameable "$1 is on another file system than the folder above it"
}

check_mounts() { # a mount of its own (a file, a .d folder) cannot be replaced by a rename
  # shellcheck disable=SC2086 # a list of paths
  set -- $points
  for path in "$@"; do
    shift
    set -- "$@" -e "^[^ ]* [^ ]* [^ ]* [^ ]* $path "
  done
  mounted=$(grep -m 1 "$@" "$R/proc/self/mountinfo" 2>/dev/null) || return 0
  # shellcheck disable=SC2086 # split into fields
  set -- $mounted
  refuse not-renameable "$5 is a mount of its own"
}

check_persistence() { # a reboot must leave all files as they are, or none: else it leaves a third state
  list=$SYSTEM
  # shellcheck disable=SC2086 # a list of paths
  set -- $paths
  for path in "$@"; do
    path=${path%/*}
    until [ -d "$path/" ]; do path=${path%/*}; done
    case " $list " in *" $path "*) ;; *) list="$list $path" ;; esac
  done
  # shellcheck disable=SC2086 # a list of paths
  devices=$(stat -L -c %d -- "$S" $list)
  is_persistent "$S" 0 || [ "$volatile" = 0 ] || refuse state-not-persistent "$why"
  own=${devices%%"$NL"*}
  for folder in $list; do
    devices=${devices#*"$NL"}
    [ "${devices%%"$NL"*}" = "$own" ] || is_persistent "$folder" 0 || refuse not-as-persistent "$why; after a reboot it would not agree with $S"
  done
}

is_persistent() { # FOLDER DEPTH: its file system outlives a reboot; `why`, if not or if unknown; `volatile` if it certainly does not
  volatile=0 why="$1 is on a file system of an unknown kind"
  find_mount "$1" || return 1
  why="$1 is on $kind"
  case $kind,$source in
    tmpfs,* | ramfs,* | *,/dev/ram* | *,/dev/zram*) volatile=1 && why="$1 is on $kind of $source" && return 1 ;;
    ext[234],* | xfs,* | btrfs,* | zfs,* | f2fs,* | jfs,* | reiserfs,* | bcachefs,*) return 0 ;;
    overlay,*) [ "$2" -lt 4 ] || return 1 ;;
    *) return 1 ;;
  esac
  case ,$options, in *,upperdir=*) ;; *) return 1 ;; esac
  upper=${options##*upperdir=}
  upper=$R${upper%%,*}
  why="$1 is on an overlay whose upper directory cannot be seen"
  [ -d "$upper" ] && is_persistent "$upper" $(($2 + 1))
}

find_mount() { # FOLDER: `kind`, `source` and `options` of its file system
  path=${1#"$R"} kind=''
  set --
  while [ -n "$path" ]; do
    set -- "$@" -e "^[^ ]* [^ ]* [^ ]* [^ ]* $path "
    path=${path%/*}
  done
  lines=$(grep "$@" -e '^[^ ]* [^ ]* [^ ]* [^ ]* / ' "$R/proc/self/mountinfo" 2>/dev/null) longest_point=0
  IFS=$NL
  for line in $lines; do
    IFS=' '
    # shellcheck disable=SC2086 # split into fields
    set -- $line
    if [ "${#5}" -ge "$longest_point" ]; then # of two mounts at one point the later one counts
      longest_point=${#5}
      while [ "$1" != - ]; do shift; done
      kind=$2 source=$3 options=${4-}
    fi
    IFS=$NL
  done
  unset IFS
  [ -n "$kind" ]
}

check_homes() { # only what this node's kubelet, its unit and its runtimes read now is written, whatever the order contains
  show_units >/dev/null
  list=''
  note_homes >/dev/null
  each file check_home
}

check_home() { # N PATH…
  case " $list " in *" $2 "*) return ;; esac
  case $2 in
    *.conf) case " $list " in *" ${2%/*} "*) return ;; esac ;; # a drop-in in a folder that is read
    */hosts.toml) folder=${2%/*} && case " $hosts " in *" ${folder%/*} "*) return ;; esac ;;
  esac
  command_line "$main_pid"
  [ -n "$words" ] || refuse unit-not-running "$unit has no process, so it is unknown whether it reads $2"
  refuse not-a-home "$2 is nothing that the kubelet, its unit or the runtimes read here"
}

check_before() { is_as "$3" "$2" || { drifted=$2 && return 1; }; }

check_unit() { # NAME: its state allows a change; remembered as it is
  is_name "$1" || refuse bad-argument "unit $1"
  look "$1" || refuse systemd-not-answering "systemctl show $1"
  case $u_load/$u_file in masked/* | */masked*) refuse unit-masked "$1" ;; esac # its drop-ins are never read, even after a reload
  [ "$u_reload" != yes ] || refuse need-daemon-reload "$1: its unit files changed since systemd read them"
  [ "$u_load" = loaded ] || refuse unit-not-found "$1 is $u_load"
  remember "$1"
}

check_restart() { # NAME
  r_units="$r_units${r_units:+ }$1"
  check_unit "$1"
}

check_hangup() { # NAME
  r_hangups="$r_hangups${r_hangups:+ }$1"
  check_unit "$1"
  [ "$u_pid" != 0 ] || refuse unit-not-running "$1 has no process that would take a SIGHUP"
}

check_node() { # all checks that can fail, before any write but those of the lock and the token
  read -r is_machine 2>/dev/null <"$R/etc/machine-id"
  [ "$machine" = "$is_machine" ] || refuse machine-id-changed "this is $is_machine"
  files=0 paths='' points='' room=1024 r_units='' r_hangups='' r_reload=0 memory=$NL longest=0
  each file check_file
  [ "$files" -gt 0 ] || refuse bad-argument "no file"
  check_mounts
  check_persistence
  [ ! -L "$SYSTEM/$BOOT_UNIT" ] || refuse not-a-regular-file "${SYSTEM#"$R"}/$BOOT_UNIT"
  ! let_go 10 sync "$S/none" 2>/dev/null || refuse sync-without-names "this node's sync takes no file names, so it cannot report a failure"
  # shellcheck disable=SC2046 # type, free blocks, block size
  set -- $(stat -f -c '%T %a %S' "$S")
  case ${1-} in tmpfs | ramfs) refuse state-not-persistent "$S is on $1" ;; esac
  [ $((${2-0} * (${3-0} / 512) / 2)) -ge "$room" ] || refuse no-room "$room KiB are needed in $S"
  each unit check_restart
  each hangup check_hangup
  concern
  case $memory in *"$NL$unit "*) ;; *) check_unit "$unit" ;; esac
  [ $((longest + 3000)) -le $((guard * 1000)) ] || refuse guard-too-short "RestartSec is $pause, the guard $guard s"
  check_homes
  # shellcheck disable=SC2086 # a list of paths
  digest $paths
  each file check_before || refuse drifted "$drifted changed since it was read"
}

sweep() { # remove transactions that died before their receipt; refuses if one is still under way
  transactions
  top=0
  for name in $all_tx; do
    load "$name"
    [ "$r_seq" -le "$top" ] || top=$r_seq
    case $r_state in armed | reverting) refuse armed-by-another "$name is $r_state" ;; esac
  done
  remove_strays
}

remove_strays() {
  set +f
  for entry in "$S"/tx/*; do
    set -f
    here "${entry##*/}"
    [ ! -L "$T" ] || rm -f "$T"
    [ -e "$T/receipt" ] || [ ! -d "$T" ] || abandon
  done
  set -f
}

withdraw_receipt() { # else a power cut restores it without the files that it names
  [ ! -e "$T/receipt" ] || { rm -f "$T/receipt" && flush "$T"; }
}

abandon() { # nothing was renamed; remove all traces of this transaction
  withdraw_receipt
  [ ! -e "$T/guarded" ] || disarm
  unstage
  remove_all_made
  flush_near
  times=$(cat "$T/times" 2>/dev/null)
  rm -rf "$T"
  keep_times "$times"
}

note_times() { # when the targets last changed, before our hard link changes their ctime
  # shellcheck disable=SC2086 # a list of paths
  stat -c '%i %.9Y %.9Z %n' -- $paths >"$T/times" 2>/dev/null
  :
}

keep_times() { # LINES of `times`: of files that only our links have touched since. Best effort: a forgotten file counts as changed
  [ -n "$1" ] || return 0
  lines='' entries=$NL$(cat "$S/touched" 2>/dev/null)$NL
  IFS=$NL
  for line in $1; do
    unset IFS
    path=${line#* * * }
    line=${line%" $path"}
    left=${line%% *} moment=${line##* }
    case $entries in *"$NL$left $moment "*) moment=${entries#*"$NL$left $moment "} && moment=${moment%% *} ;; esac
    current=$(stat -c '%i %.9Y %.9Z' -- "$path" 2>/dev/null) || continue
    [ "${current% *}" = "${line% *}" ] || continue
    lines="$lines$left ${current##* } $moment $path$NL"
  done
  unset IFS
  remember_times "$lines"
}

remember_times() { # LINES, INODE CTIME TIME PATH: a file with this inode and ctime counts as changed at TIME
  lines=$1$NL entries=$(cat "$S/touched" 2>/dev/null)
  IFS=$NL
  for line in $entries; do
    case $NL$lines in *" ${line#* * * }$NL"*) ;; *) lines="$lines$line$NL" ;; esac
  done
  unset IFS
  printf %s "$lines" >"$S/touched.new" 2>/dev/null && mv -f "$S/touched.new" "$S/touched" 2>/dev/null
  :
}

remember_loaded() { # the targets, if a SIGHUP made a unit read them, without a new process
  # shellcheck disable=SC2086 # a list of paths
  [ -z "$r_hangups" ] || remember_times "$(stat -c '%i %.9Z 0 %n' -- $paths 2>/dev/null)"
}

place() { # N PATH BEFORE: `old` and `new`, from which a rename reaches the target; noted in file.N before they exist
  folder=${2%/*} made=''
  until [ -d "$R$folder/" ]; do
    made="$folder $made"
    folder=${folder%/*}
  done
  f_path=$2 f_made=$made
  near "$1"
  rm -f "$R$near.new" "$R$near.old" || return 1 # whatever is there: nothing is written through a link
  inside "$@" || return 1
  if [ "$3" != absent ]; then
    linked "$R$2" "$R$old" || { beside "$@" && cp -a "$R$2" "$T/old.$1" && cp -a "$R$2" "$R$old"; }
  else
    true >"$T/new.$1" && flush_note "$1" || return 1
    if linked "$T/new.$1" "$R$near.new"; then # reached: a rename works where a link does
      rm -f "$R$near.new"
    else
      beside "$@"
    fi
  fi
}

linked() { # FROM TO: by a hard link; false across two file systems. A file that may not be linked may not be renamed
  said=$(ln "$1" "$2" 2>&1) && return
  case $said in *'not permitted'*) ;; *) return 1 ;; esac
  kept=$f_path
  said=$(attributes)
  abandon
  refuse not-renameable "$kept $said"
}

flush_note() { flush "$T/file.$1" "$T" "$S/tx"; } # N: before anything exists outside the transaction's folder

make_folders() { # the folders that the file needs, already noted: the disk may be full later
  for made_one in $made; do
    [ -d "$R$made_one/" ] || mkdir -m 755 "$R$made_one" || return 1
    news="$news $R${made_one%/*}"
  done
}

note_file() { printf '%s %s %s %s %s %s\n' "$2" "$3" "$4" "$old" "$new" "$made" >"$T/file.$1"; }

inside() { # N PATH BEFORE: both copies in the transaction's folder
  old=/var/lib/rollout/tx/$tx/old.$1 new=/var/lib/rollout/tx/$tx/new.$1
  note_file "$@"
}

beside() { # N PATH BEFORE: both copies near the target, on another file system; a copy here serves a later rollback
  old=$near.old new=$near.new
  note_file "$@" && true >"$T/beside.$1" && flush_note "$1"
}

stage_file() { # N PATH BEFORE AFTER MODE BASE64
  place "$@" && make_folders || return 1
  if [ "$3" != absent ]; then
    cp -a "$R$2" "$R$new" || return 1 # mode, owner, label and attributes of the target; then the bytes
  else
    true >"$R$new" && chmod "$5" "$R$new" || return 1
    [ ! -e "$R/sys/fs/selinux/enforce" ] || chcon --reference="$R$folder" "$R$new" || return 1
  fi
  if [ "$6" = - ]; then
    true >"$R$new"
  else
    printf %s "$6" | base64 -d >"$R$new"
  fi || return 1
  stat -c '%a %u:%g' -- "$R$new" >"$T/mode.$1" || return 1 # for verify
  news="$news $R$new"
  [ ! -e "$T/beside.$1" ] || news="$news $R${near%/*}"
  if [ -e "$T/old.$1" ] && [ -e "$T/beside.$1" ]; then news="$news $R$old $T/old.$1"; fi
}

staged_is() { # N PATH BEFORE AFTER MODE BASE64
  load_file "$1" && is_as "$4" "$f_new"
}

find_kubelet() { # PID: the program that its unit starts, into `program`: the running one, or, if that may be an interpreter, the one on PATH
  program=$(readlink "$R/proc/$1/exe" 2>/dev/null) || program=''
  program=${program% (deleted)} # replaced since its start: the next start uses the file that is there now
  case $program in
    *[!A-Za-z0-9_./:@%+=,-]*) program=kubelet ;;
    */kubelet) ;;
    *) ! command -v kubelet >/dev/null || program=kubelet ;;
  esac
  program=$(command -v "${program:-kubelet}") || program=''
}

mark_kubelet() { # PROGRAM: which kubelet this is, without running it
  kubelet=$(stat -L -c %s-%Y "$1" 2>/dev/null) || kubelet=unknown
}

stage() { # everything that is needed later, and the boot unit; durable when this returns true
  news=''
  mkdir -p "$T/next" || return 1
  note_times
  # shellcheck disable=SC2154 # the loader's: this text and the payload
  printf '%s' "${all%%"${NL}PAYLOAD='"*}$NL" >"$T/agent" || return 1
  each file stage_file || return 1
  # shellcheck disable=SC2086 # a list of paths
  digest $news
  each file staged_is || return 1
  recall "$memory" "$unit"
  find_kubelet "$was_pid"
  mark_kubelet "$program"
  boot_id
  clock
  r_boot=$boot r_deadline=$((now + guard * 1000)) r_limit=$((now + 270000))
  common="run=$run${NL}counter=$counter${NL}seq=$((top + 1))${NL}boot=$boot${NL}deadline=$r_deadline${NL}limit=$r_limit${NL}files=$files
units=$r_units${NL}hangups=$r_hangups${NL}unit=$unit${NL}port=$healthz${NL}reload=$r_reload${NL}kubelet=$kubelet${NL}program=$program"
  lay_receipts || return 1
  folders
  true >"$T/guarded" && write_boot_unit "$concerned" "$(logical "$dirs")" || return 1
  set +f
  # shellcheck disable=SC2086 # a list of paths
  flush "$T"/agent "$T"/file.* "$T"/mode.* "$T"/next/* $news "$T/next" "$T" "$S/tx" "$SYSTEM/$BOOT_UNIT" "${WANTED%/*}" "$SYSTEM"
  flushed=$?
  set -f
  return "$flushed"
}

logical() { # PATHS: as the node sees them
  # shellcheck disable=SC2086 # a list of paths
  set -- $1
  for path in "$@"; do printf '%s ' "${path#"$R"}"; done
}

switch() { # rename every file from old to new, back to back
  n=1
  while [ "$n" -le "$files" ]; do
    load_file "$n"
    for folder in $f_made; do [ -d "$R$folder" ] || mkdir -m 755 "$R$folder" || return 1; done
    bounded 60 mv -f "$R$f_new" "$R$f_path" || return 1
    n=$((n + 1))
  done
  folders
  # shellcheck disable=SC2086 # a list of paths
  flush $dirs || { why="the disk did not take the new files: sync failed" && return 1; }
}

arm() {
  become armed || {
    lost=$undurable
    abandon
    [ -z "$lost" ] || refuse not-durable "the disk did not take the receipt: sync failed"
    refuse state-not-writable "the receipt could not be stored"
  }
  start_strings
  guard_is_proven || { abandon; refuse guard-not-proven "systemd shows no timer, no watch or no boot unit, or its default target does not reach basic.target"; }
}

refuse_staging() {
  lost=$undurable # abandon syncs too; its result is not that of the staging
  abandon
  [ -z "$lost" ] || refuse not-durable "the disk did not take what was staged: sync failed"
  refuse no-room "staging failed"
}

in_time() { # else an agent that froze during its preparation would change its node when nobody expects it any more
  clock
  [ "$now" -lt "$until" ] || { abandon; refuse too-late "it stood still while it prepared"; }
}

apply_locked() {
  fence
  load "$tx" && { show_receipt receipt "$tx" && finish; }
  [ "$run" != "$k_run" ] || [ "$k_state" = live ] || refuse fenced "run $run has ended here"
  asked=$tx
  sweep
  here "$asked"
  check_node
  accept || refuse_token
  stage || refuse_staging
  in_time
  arm
  until=$((r_deadline - 2000))
  # shellcheck disable=SC2086 # a list of paths
  digest $paths
  each file check_before || { abandon; refuse drifted "$drifted changed while staging"; }
  in_time
  r_files=$files r_state=armed why="a rename failed"
  if switch && why="systemctl daemon-reload failed" && reload_units && restart_units && is_healthy && is_as_ordered; then
    say "healthy yes $why"
    mv -f "$T/next/finished" "$T/receipt"
    remember_loaded
  else
    lost=$undurable because=$why # the revert looks at the disk anew
    [ -n "$lost" ] || say "healthy no $because"
    allow 150
    remember_units
    if take_back health restart; then unwatched=1; else lost='' && tell_stuck; fi
    [ -z "$lost" ] || say "refused not-durable $because"
  fi
}

verb_apply() {
  need tx run counter
  allow 60
  lock
  unwatched=0
  apply_locked 9>&-
  exec 9>&- # the checks below change nothing
  allow $((longest / 900 + 20)) # the controller waits no longer
  [ "$unwatched" = 0 ] || { PAYLOAD='' && tell_health; }
  read_token
  say "token $k_counter $k_run $k_state"
  show_receipt receipt "$tx"
}

# --------------------------------------------------------------------------------------- confirm, revert, cleanup, status

prune() { # remove all but the newest `keep`, the newest confirmed and those under way; the receipt first
  transactions
  count=0 confirmed=''
  for name in $all_tx; do
    load "$name"
    count=$((count + 1))
    ! keeps_foreign || continue
    case $r_state in
      armed | reverting) continue ;;
      confirmed) [ -n "$confirmed" ] || { confirmed=$name && continue; } ;;
    esac
    [ "$count" -le "$keep" ] || { unstage && flush_near && withdraw_receipt && rm -rf "$T"; }
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
        else
          [ -n "$undurable" ] || refuse state-not-writable "$T"
          say "refused not-durable the disk did not take the receipt: sync failed"
          load "$tx" && take_back health restart && tell_taken_back
        fi
      fi
      ;;
    confirmed) settle ;;
  esac
}

is_as_ordered() { # every file of the loaded transaction holds what it wrote: a unit may rewrite its own before it starts
  targets
  # shellcheck disable=SC2086 # a list of paths
  digest $paths
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
  disarm
  unstage
  here "$tx"
  asked=$tx
  prune
  here "$asked"
}

verb_confirm() {
  need tx run counter
  allow 150
  lock
  confirm_locked 9>&-
  show_receipt receipt "$tx"
}

check_ours() { # a requested revert removes only our bytes, and only under the kubelet for which they were made
  [ "$force" != 1 ] && [ "$r_state" != reverting ] || return 0
  targets
  # shellcheck disable=SC2086 # a list of paths
  digest $paths
  n=1
  while [ "$n" -le "$r_files" ]; do
    load_file "$n"
    is_as "$f_after" "$f_path" || is_as "$f_before" "$f_path" || refuse foreign-bytes "$f_path"
    n=$((n + 1))
  done
  mark_kubelet "$r_program"
  [ "$r_kubelet" = "$kubelet" ] || refuse kubelet-changed "since $tx was applied"
}

rearm_boot_unit() { # a confirmed transaction has no guard; its revert must survive a reboot too
  targets
  folders
  # shellcheck disable=SC2086 # a list of paths
  if ! { write_boot_unit "$concerned" "$(logical "$dirs")" && flush "$SYSTEM/$BOOT_UNIT" "${WANTED%/*}" "$SYSTEM"; }; then
    say "say boot-unit-not-armed a reboot before the end leaves the rest to the next revert"
  fi
}

revert_locked() {
  fence
  load "$tx" || refuse no-transaction "$tx"
  accept || say "say token-not-stored the disk takes no write"
  case $r_state in reverted) tell_taken_back && return ;; esac
  asked=$tx
  transactions
  for name in $all_tx; do
    load "$name"
    case $name/$r_state in "$asked"/*) ;; */armed | */reverting) refuse armed-by-another "$name is $r_state" ;; esac
  done
  remove_strays
  load "$asked"
  check_ours
  unit=$r_unit healthz=$r_port
  remember_units
  [ "$r_state" != confirmed ] || rearm_boot_unit
  take_back asked restart || {
    start_timer 5 --no-block
    say "say revert-unfinished the node tries again by itself, and at boot"
    tell_stuck
    return
  }
  unwatched=1
}

verb_revert() {
  need tx run counter
  allow 200
  lock
  unwatched=0
  revert_locked 9>&-
  exec 9>&- # the next caller need not wait for the checks of the old files
  [ "$unwatched" = 0 ] || tell_health
  show_receipt receipt "$tx"
}

left() { # PATH OR UNIT of ours
  lefts=$((lefts + 1))
  say "left $1"
}

list_left() { # our things outside $S, if any
  lefts=0
  set +f
  for entry in "$SYSTEM"/*rollout-guard* "$WANTED" "$WANTED_ONCE" "$FORGOTTEN"; do
    if [ -e "$entry" ] || [ -L "$entry" ]; then left "${entry#"$R"}"; fi
  done
  for entry in "$S"/tx/*; do
    here "${entry##*/}"
    n=1
    while [ -e "$T/file.$n" ]; do
      load_file "$n" || f_path=/none f_made=""
      near "$n"
      for path in "$near.old" "$near.new"; do [ ! -e "$R$path" ] || left "$path"; done
      n=$((n + 1))
    done
  done
  set -f
  for name in $guards; do left "$name"; done
}

list_guards() { # timers and services of ours that systemd knows, into `guards`
  shown=$(bounded 10 systemctl list-units --all --plain --no-legend 'rollout-guard-*' 'rollout-watch-*' 2>/dev/null)
  guards=''
  IFS=$NL
  for line in $shown; do
    guards="$guards ${line%% *}"
  done
  unset IFS
}

forget_guards() { # forget units of finished transactions in systemd's memory: a confirm may have died before it disarmed
  list_guards
  idle=''
  for name in $guards; do
    case $name in
      "$BOOT_UNIT") continue ;;
      rollout-guard-*) other=${name#rollout-guard-} ;;
      rollout-watch-*.service) other=${name#rollout-watch-} ;;
      *) continue ;;
    esac
    load "${other%.*}"
    case $r_state in armed | reverting) ;; *) idle="$idle $name" ;; esac
  done
  # a stopped timer may remove its service, and systemctl then does not know it: that is no error
  # shellcheck disable=SC2086 # a list of units
  [ -z "$idle" ] || { bounded 10 systemctl stop $idle; bounded 10 systemctl reset-failed $idle; } >/dev/null 2>&1 || : # failed: its file was deleted
  case $busy,$guards in
    0,*"$BOOT_UNIT"*) forget_boot_unit ;;
    *) [ -n "$idle" ] || return 0 ;;
  esac
  list_guards
}

forget_boot_unit() { # in systemd's memory: a reload for a new drop-in had read it too; and a failed unit is remembered without its file
  bounded 30 systemctl daemon-reload >/dev/null 2>&1
  bounded 5 systemctl reset-failed "$BOOT_UNIT" >/dev/null 2>&1 || :
}

withdraw() { # remove what finished transactions have outside $S
  transactions
  busy=0
  for name in $all_tx; do
    load "$name"
    case $r_state in armed | reverting) busy=1 ;; esac
  done
  for name in $all_tx; do
    load "$name"
    case $r_state in confirmed) unstage ;; reverted) tidy ;; esac
  done
  [ "$busy" = 1 ] || { remove_strays && remove_boot_unit; }
  forget_guards
}

cleanup_locked() {
  fence
  withdraw
  rm -rf "$FORGOTTEN" "$S/touched.new"
  write_token ended || say "say token-not-stored the disk takes no write"
  list_left
}

verb_cleanup() {
  need run counter
  allow 60
  lock
  cleanup_locked 9>&-
}

forget_locked() { # one rename removes the whole state: a concurrent verb finds all of it or none
  fence
  transactions
  for name in $all_tx; do
    load "$name"
    case $r_state in armed | reverting) refuse armed-by-another "$name is $r_state" ;; esac
  done
  withdraw
  rm -rf "$FORGOTTEN"
  list_left
  [ "$lefts" -eq 0 ] || refuse still-needed "what is left here can be removed only with what lies in /var/lib/rollout"
  [ ! -L "$S" ] || refuse not-renameable "/var/lib/rollout is a symbolic link"
  for name in $all_tx; do
    here "$name"
    flush_near
  done
  flush "$SYSTEM" "${WANTED%/*}" # else a power cut restores a boot unit without its program
  mv "$S" "$FORGOTTEN" 2>/dev/null || refuse not-renameable "/var/lib/rollout is a mount of its own, or the disk takes no write"
  flush "${S%/*}"
}

erase() { # remove what a forget has put aside; nothing uses it
  rm -rf "$FORGOTTEN"
  for entry in "$S" "$FORGOTTEN"; do [ ! -e "$entry" ] || say "left ${entry#"$R"}"; done
}

verb_forget() {
  need run counter
  force=0
  allow 60
  if [ -d "$S" ]; then
    lock
    forget_locked 9>&-
  fi
  erase 9>&-
}

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
    [ "$count" -gt 8 ] || show_receipt history "$name"
  done
  [ -z "$asked" ] || show_receipt receipt "$asked"
  boot_id
  clock
  read -r is_machine 2>/dev/null <"$R/etc/machine-id" || is_machine=''
  say "fact machine-id $is_machine"
  say "fact boot-id $boot"
  say "fact uptime $((now / 1000))"
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
    { [ -z "$asked" ] || ! load "$asked"; } || { keep_strings && tell_taken_back && tell_stuck; }
    return
  fi
  list=''
  measure_unit
  each path note_path
  show_files without
  each command run_command
}

# --------------------------------------------------------------------------------------------------------------- verify

expect() { # what the loaded transaction's files should hold, except those that a newer one touched too
  n=1
  while [ "$n" -le "$r_files" ]; do
    if load_file "$n"; then
      case " $list " in *" $f_path "*) ;; *) expect_file "$n" ;; esac
    fi
    n=$((n + 1))
  done
}

expect_file() { # N
  list="$list $f_path" mode='- -'
  case $r_state in
    confirmed) holds=$f_after ;;
    reverted) holds=$f_before ;;
    *) holds=- ;; # under way: old or new
  esac
  case $holds in - | absent) ;; *) read -r mode 2>/dev/null <"$T/mode.$1" || mode='- -' ;; esac
  say "expected $tx $r_state $holds $mode $f_path"
}

verb_verify() {
  allow 60
  show_state ''
  list=''
  for name in $all_tx; do
    load "$name" && expect
  done
  # shellcheck disable=SC2086 # a list of names
  set -- $all_tx
  if [ "$#" -gt 0 ] && load "$1"; then
    mark_kubelet "$r_program"
    say "kubelet $1 ${r_kubelet:-unknown} $kubelet"
  fi
  each path note_path
  show_kubeadm
  measure_unit
  show_files without
  note_homes
  show_stale
  [ "${main_pid:-0}" = 0 ] || ! is_number "$main_started" || say "started $((now / 1000 - main_started / 1000000))"
}

# ------------------------------------------------------------------------------------------------------------- measuring

note_path() { # PATH…: into `list`, each once. Paths outside the alphabet are counted in `odd`; the first of them is kept
  for noted in "$@"; do
    case $noted in
      '') continue ;;
      [!/]* | *[!A-Za-z0-9_./:@%+=,-]*)
        odd=$((${odd:-0} + 1))
        [ "$odd" -gt 1 ] || oddest=$noted
        continue
        ;;
    esac
    case " $list " in *" $noted "*) ;; *) list="$list $noted" ;; esac
  done
}

run_command() { # NAME SECONDS BASE64
  if ! { is_name "$1" && is_number "$2"; }; then refuse bad-argument "command $1"; fi
  line=$(printf %s "$3" | base64 -d)
  allow $(($2 + 3))
  # First the status, then the end of its output. A process that it leaves behind may hold the output open: tail waits
  # no longer than the command could have, and the status is known anyway.
  shown=$({
    {
      bounded "$2" sh -c "$line" 2>&1 3>&- </dev/null
      echo "$?" >&3
    } | bounded $(($2 + 3)) tail -c 200 | tr -c ' -~' ' ' | base64 | tr -d '\n'
  } 3>&1)
  case $shown in
    0 | "0$NL"*) say "command $1 0 -" ;;
    *"$NL"*) say "command $1 ${shown%%"$NL"*} ${shown#*"$NL"}" ;;
    *) say "command $1 $shown -" ;;
  esac
}

show_units() { # the kubelet's unit and the runtimes': properties and processes; into `unit_files`, `main_pid`, `main_started`, `services`
  # shellcheck disable=SC2086 # a list of units
  blocks=$(bounded 10 env TZ=UTC systemctl show -p LoadState -p ActiveState -p SubState -p MainPID -p NRestarts \
    -p FragmentPath -p DropInPaths -p EnvironmentFiles -p UnitFileState -p NeedDaemonReload -p RestartUSec \
    -p TimeoutStopUSec -p ExecMainStartTimestamp -p ExecMainStartTimestampMonotonic "$unit" $RUNTIMES 2>/dev/null)$NL$NL
  unit_files='' main_pid=0 main_started='' services=' ' starts='' begun='' dates='' kubelet_files=''
  for served in "$unit" $RUNTIMES; do # systemctl answers in the order of the question, with an empty line between two
    block=${blocks%%"$NL$NL"*} blocks=${blocks#*"$NL$NL"}
    case $NL$block$NL in *"${NL}LoadState=loaded$NL"*) ;; *) [ "$served" = "$unit" ] || continue ;; esac
    if [ "$served" = "$unit" ]; then
      show_unit unit
      main_pid=$pid main_started=$started kubelet_files=$unit_files
      show_process "process"
    else
      show_unit service
      services="$services$served:$pid "
      show_process "serving $served"
    fi
  done
}

measure_unit() { # the units, healthz, lenient, pulls
  show_units
  read_journal
  read_kubelet_log
  [ -z "$lenient" ] || say "lenient $lenient"
  show_pulls
  if [ "$healthz" = 0 ]; then health=off; else probe "$healthz"; fi
  [ -z "$health" ] || say "healthz $health"
}

show_unit() { # WORD: the lines of `block`, the unit named `served`; its files are added to `unit_files`
  pid=0 started='' dated=''
  IFS=$NL
  for line in $block; do
    value=${line#*=}
    case $line in
      ExecMainStartTimestamp=*) dated=$value && continue ;;
      EnvironmentFiles=*) unit_files="$unit_files ${value%% (*}" && continue ;;
      FragmentPath=* | DropInPaths=*) unit_files="$unit_files $value" ;;
      MainPID=*) pid=${value:-0} ;;
      ExecMainStartTimestampMonotonic=*) started=$value ;;
    esac
    say "$1 $served ${line%%=*} $value"
  done
  unset IFS
  [ "$pid" != 0 ] && is_number "$started" || return 0
  begun="$begun $served:$started" dates="$dates${dated:-@0}$NL"
}

show_process() { # WORDS: the command line of `pid`
  [ "$pid" != 0 ] && [ -r "$R/proc/$pid/cmdline" ] || return 0
  encode "$R/proc/$pid/cmdline"
  say "$1 $pid $code"
}

read_kubelet_log() { # into `lenient`, wherever the log is; empty if no line of it can be read
  [ "$main_pid" != 0 ] || return 0
  if [ -z "$lenient" ] && [ "$readable" = 1 ] && ! is_thrown_away "$main_pid"; then # a runtime that logs much may have displaced it
    [ -z "$(bounded 8 journalctl -q -b --no-pager -o cat -n 1 "_PID=$main_pid" 2>/dev/null)" ] || lenient=0
  fi
  find_logs "$main_pid"
  read_logs "$main_pid" "$main_started"
}

read_journal() { # of the running processes: the number of the kubelet's "lenient decoding" lines; the pulls under way, as NAME#REQUEST,
  # into `pulling`. A pull ends with the kubelet that requested it: lines since its start count, by a clock that
  # never steps
  lenient='' pulling='' readable=0 sources='' since=999999999999 main_lines='^$'
  if [ "$main_pid" != 0 ]; then
    sources="_PID=$main_pid" main_lines="\\[$main_pid\\]: "
    ! is_thrown_away "$main_pid" || main_lines="$main_lines{\"ts\":"
    ! is_number "$main_started" || since=$((main_started / 1000000))
  fi
  for served in $services; do [ "${served#*:}" = 0 ] || sources="$sources _PID=${served#*:}"; done
  [ -n "$sources" ] || return 0
  # `!read` marks the first line of the kubelet itself, whatever it contains
  # shellcheck disable=SC2086 # a list of matches
  lines=$({ bounded 8 journalctl -q -b --no-pager -o short-monotonic -n 8000 $sources 2>/dev/null || echo '!unreadable'; } |
    sed -n -e '/^!unreadable$/{p;q;}' -e "/$main_lines/{x;/^$/{s/^/!read/;p;};x;}" -e '/lenient decoding/b say' \
      -e '/PullImage/b say' -e '/ulling image/b say' -e '/Pulled image: /b say' -e d -e ': say' -e p)
  case $lines in *!unreadable) return ;; esac
  readable=1
  IFS=$NL
  for line in $lines; do
    unset IFS
    moment=${line#[} request=''
    moment=${moment%%.*}
    moment=${moment##* }
    case $line in
      '!read') lenient=${lenient:-0} ;;
      *"[$main_pid]: "*'lenient decoding'*) lenient=$((${lenient:-0} + 1)) ;;
      *) ! is_number "$moment" || [ "$moment" -lt "$since" ] || follow ;;
    esac
  done
  unset IFS
}

follow() { # `line`: a pull that begins or ends. Of containerd 1.5 to 2.3, CRI-O, cri-dockerd and kubelets: failed calls,
  # which CRI-O does not log, and dockershim's progress, every 10 s if it runs with -v=2
  case $line in
    *'msg":"PullImage \"'* | *'msg="PullImage \"'*)
      image=${line#*'PullImage \"'}
      text=${image#*'\"'} image=${image%%'\"'*}
      case $text in '"'*) began ;; ' returns image reference '* | ' failed'*) ended "$image#" ;; esac
      ;;
    *'] PullImage "'*'" from image service failed: '*)
      image=${line#*'] PullImage "'}
      ended "${image%%'"'*}#*"
      ;;
    *'"PullImage from image service failed"'*' image="'*)
      image=${line##*' image="'}
      ended "${image%%'"'*}#*"
      ;;
    *'msg="Pulling image: '*' id='*) # CRI-O; its requests have numbers
      image=${line#*'msg="Pulling image: '} request=${line##*' id='}
      image=${image%%'"'*} request=${request%% *}
      began
      ;;
    *'msg="Pulled image: '*' id='*)
      request=${line##*' id='}
      ended "*#${request%% *}"
      ;;
    *kube_docker_client.go:*'ulling image'* | *'msg="Pulling image '* | *'msg="Stop pulling image '* | \
      *'msg="Cancel pulling image '*) follow_docker ;;
  esac
}

follow_docker() { # `line` of dockershim, old or new, or of cri-dockerd
  image=${line#*'ulling image'}
  case $image in
    ' "'*) image=${image#' "'} && image=${image%%'"'*} ;;
    *' image="'*) image=${image#*' image="'} && image=${image%%'"'*} ;;
    *) image=${image#' '} && image=${image%%': '*} && image=${image%%' because '*} ;;
  esac
  ended "$image#"
  case $line in *'] Pulling image "'* | *'] "Pulling image" '* | *'msg="Pulling image '*) began ;; esac
}

began() { # `image`, `request`
  case $image#$request in '#'* | *[!A-Za-z0-9_./:@%+=,#-]*) image='(unnamed)' ;; esac
  pulling="$pulling $image#$request"
}

ended() { # PATTERN: remove the first match from `pulling`
  others='' gone=0
  for entry in $pulling; do
    # shellcheck disable=SC2254 # a pattern
    case $gone$entry in 0$1) gone=1 ;; *) others="$others $entry" ;; esac
  done
  pulling=$others
}

show_pulls() { # the pulls under way, or `-`; no line where that cannot be known
  known=0
  for served in $services; do
    process=${served#*:}
    case $served in
      *:0) continue ;;
      docker.service:*) find_docker_layers || return 0 ;;
      *) [ "$readable" = 1 ] || return 0 ;;
    esac
    case $served in containerd.service:*) find_ingests ;; esac
    known=1
  done
  [ "$known" = 1 ] || return 0
  names='' count=0
  for entry in $pulling; do
    count=$((count + 1))
    [ "$count" -gt 20 ] || names="$names ${entry%%#*}"
  done
  say "pulls${names:- -}"
}

unnamed() { # something is pulled; without a name from elsewhere it is unnamed
  [ -n "$pulling" ] || pulling=' (unnamed)#'
}

mentions() { # PID PATTERN: its command line contains it; needs no process (a shell's read drops the NULs)
  line=''
  read -r line 2>/dev/null <"$R/proc/$1/cmdline"
  # shellcheck disable=SC2254 # a pattern
  case $line in *$2*) ;; *) return 1 ;; esac
}

find_docker_layers() { # each layer is in a file of its own until it is extracted; false where that cannot be read
  data='' config=''
  if mentions "$process" --data-root || mentions "$process" --config-file; then
    command_line "$process"
    option ' --config-file '
    config=$value
    option ' --data-root '
    data=$value
  fi
  [ -n "$data" ] || read_data_root "$R${config:-/etc/docker/daemon.json}"
  data=$R${data:-/var/lib/docker}
  [ -d "$data/tmp" ] || return 1
  set +f
  for path in "$data"/tmp/GetImageBlob*; do [ ! -e "$path" ] || { unnamed && break; }; done
  set -f
}

read_data_root() { # FILE of dockerd's, into `data`
  while read -r line || [ -n "$line" ]; do
    case $line in *'"data-root"'*:*) text=${line#*'"data-root"'} ;; *) continue ;; esac
    text=${text#*'"'}
    data=${text%%'"'*}
    return
  done 2>/dev/null <"$1"
}

read_root() { # FILE of containerd's, into `data`: the root, from before its first table
  while read -r line || [ -n "$line" ]; do
    case $line in
      '['*) return ;;
      'root '*=* | root=*) quoted "$line" && data=${strings# } ;;
    esac
  done 2>/dev/null <"$1"
}

find_ingests() { # a layer under way is written to now and then; an interrupted one stays for a day
  data=''
  if mentions "$process" --root; then
    command_line "$process"
    option ' --root '
    data=$value
  elif [ ! -d "$R/var/lib/containerd/io.containerd.content.v1.content" ]; then
    read_root "$R/etc/containerd/config.toml"
  fi
  set +f
  set -- "$R${data:-/var/lib/containerd}"/io.containerd.content.v1.content/ingest/*/data
  set -f
  [ -e "$1" ] || return 0
  # shellcheck disable=SC2046 # a list of numbers
  set -- $(stat -c %Y -- "$@" 2>/dev/null) $(date +%s)
  for latest; do :; done
  for moment in "$@"; do
    shift
    [ "$#" -eq 0 ] || [ $((latest - moment)) -gt 60 ] || unnamed
  done
}

encode() { # FILE: base64 on one line, into `code`
  code=$(base64 -w0 2>/dev/null <"$1") || code=$(base64 <"$1" | tr -d '\n')
}

date_starts() { # into `starts`: UNIT:MILLISECONDS, the start of each unit's process by the clock of file times
  starts=' '
  booted=$(date +%s%3N)
  clock
  is_number "$booted" || booted=$(date +%s)000
  booted=$((booted - now)) dates=$(printf %s "$dates" | date -f - +%s 2>/dev/null)
  for served in $begun; do
    began=$((booted + ${served#*:} / 1000)) dated=${dates%%"$NL"*} dates=${dates#*"$NL"}
    # if the clock was set since then, the earlier of both misses no edit
    ! is_number "$dated" || [ "$dated" -eq 0 ] || [ $((dated * 1000 + 3000)) -gt "$began" ] || began=$((dated * 1000))
    starts="$starts${served%:*}:$began "
  done
}

file_time() { # SECONDS.FRACTION since 1970 into `moment`, in milliseconds; 0 for an invalid time
  fraction=${1#*.}000 moment=0
  ! is_number "${1%.*}" || ! is_number "$fraction" || moment=$((${1%.*} * 1000 + 1${fraction%"${fraction#???}"} - 1000))
}

show_stale() { # the files that changed after the start of the process that reads them at its start
  [ -n "$begun" ] || return 0
  date_starts
  memories=$NL$(cat "$S/touched" 2>/dev/null)$NL present='' some=0
  IFS=$NL
  for line in $reads; do [ ! -f "$R${line#* }" ] || present="$present$R${line#* }$NL"; done
  # shellcheck disable=SC2086 # a list of paths
  stats=$(stat -L -c '%i %.9Y %.9Z %n' -- $present 2>/dev/null)
  for line in $stats; do
    unset IFS
    path=${line#* * * }
    # shellcheck disable=SC2086 # three words
    is_stale ${line%" $path"} && some=1 && say "stale $how $since $reader ${path#"$R"}"
  done
  unset IFS
  [ "$some" = 0 ] || show_loaded
}

show_loaded() { # which confirmed transaction started each running process: the process has read what it wrote
  transactions
  boot_id
  told=' '
  for name in $all_tx; do
    if ! load "$name" || [ "$r_state,$r_boot" != "confirmed,$boot" ]; then continue; fi
    for served in $begun; do
      case " $r_units " in *" ${served%:*} "*) ;; *) continue ;; esac
      case $told in *" ${served%:*} "*) continue ;; esac
      [ $((${served#*:} / 1000)) -gt "$r_deadline" ] || { told="$told${served%:*} " && say "fact loaded.${served%:*} $name"; }
    done
  done
}

is_stale() { # INODE MTIME CTIME of `path`; then also `how`, `since` (seconds) and `reader`
  reader=${reads%%" ${path#"$R"}$NL"*}
  reader=${reader##*"$NL"}
  case $starts in *" $reader:"*) began=${starts#*" $reader:"} ;; *) return 1 ;; esac
  began=$((${began%% *} + 50)) # no process reads its files sooner; and clocks tick in steps of some milliseconds
  changed=$3 how=replaced
  case $memories in *"$NL$1 $3 "*) changed=${memories#*"$NL$1 $3 "} && changed=${changed%% *} ;; esac
  file_time "$changed"
  [ "$moment" -ge "$began" ] || return 1
  since=$(((moment - began + 50) / 1000))
  file_time "$2"
  [ "$moment" -lt "$began" ] || how=edited since=$(((moment - began + 50) / 1000))
}

show_files() { # with|without: a line for each path in `list`
  present='' spare=3145728 # bytes of content: an answer has a size limit too
  for path in $list; do [ ! -f "$R$path" ] || [ -L "$R$path" ] || present="$present $R$path"; done
  sums='' stats=''
  if [ -n "$present" ]; then # one line each in both, in this order, but for files that were removed meanwhile
    # shellcheck disable=SC2086 # a list of paths
    digest $present
    sums=${sums#"$NL"}
    # shellcheck disable=SC2086 # a list of paths
    stats=$(stat -c '%n %a %u:%g %s' -- $present 2>/dev/null)$NL
  fi
  batch='' batched=0
  for path in $list; do show_file "$1" "$path"; done
  show_batch
}

show_batch() { # the content of the files with lines that end with `+` since the last time, in one
  [ -n "$batch" ] || return 0
  # shellcheck disable=SC2086 # a list of paths
  say "content $(cat -- $batch | base64 -w0 2>/dev/null || cat -- $batch | base64 | tr -d '\n')"
  batch='' batched=0
}

show_file() { # with|without PATH
  kind=other sum='' details=''
  [ ! -d "$R$2" ] || kind=directory
  [ ! -f "$R$2" ] || kind=regular
  [ -e "$R$2" ] || kind=absent
  [ ! -L "$R$2" ] || kind=symlink
  line=${sums%%"$NL"*}
  case $line in *"  $R$2") sum=${line%% *} sums=${sums#*"$NL"} ;; esac
  line=${stats%%"$NL"*}
  case $line in "$R$2 "*) details=${line#"$R$2 "} stats=${stats#*"$NL"} ;; esac
  if [ "$kind" != regular ] || [ -z "$details" ] || [ -z "$sum" ]; then
    [ "$kind" != regular ] || kind=other # removed meanwhile, or unreadable
    say "file $kind - - - - $2 -"
    return
  fi
  size=${details##* } content=-
  if [ "$1" = with ] && [ "$size" -le 131072 ] && [ "$size" -gt 0 ] && [ "$size" -le "$spare" ]; then
    [ $((batched + size)) -le 131072 ] || show_batch
    content=+ spare=$((spare - size)) batched=$((batched + size)) batch="$batch $R$2"
  fi
  say "file regular $details $sum $2 $content"
}

version() { # NAME COMMAND…: the version that it prints
  name=$1
  shift
  command -v "$1" >/dev/null || return 0
  line=$(bounded 10 "$@" 2>/dev/null)
  [ -z "$line" ] || say "fact $name ${line%%"$NL"*}"
}

command_line() { # PID: its words into `words`, one a line
  words=''
  [ "$1" = 0 ] || words=$(tr '\0' '\n' 2>/dev/null <"$R/proc/$1/cmdline")
}

option() { # ' NAME NAME… ': the value of the last of these options in `words`, into `value`
  value='' previous=''
  IFS=$NL
  for word in $words; do
    case $1 in *" $previous "*) value=$word ;; esac
    case $word in -*=*) case $1 in *" ${word%%=*} "*) value=${word#*=} ;; esac ;; esac
    previous=$word
  done
  unset IFS
}

note_matching() { # WHAT PATTERN…: the paths that match, at most 64; also into `matched`
  what=$1 count=0 matched=''
  shift
  set +f
  for pattern in "$@"; do
    case $pattern in '' | [!/]* | *[!A-Za-z0-9_./:@%+=,*?-]*) continue ;; esac
    for path in $R$pattern; do
      [ -e "$path" ] || [ -L "$path" ] || continue
      count=$((count + 1))
      [ "$count" -le 64 ] || { say "fact $what-truncated only 64 are told" && break 2; }
      note_path "${path#"$R"}"
      matched="$matched ${path#"$R"}"
    done
  done
  set -f
}

note_read() { # UNIT PATH…: into `list`, and as what this unit's process reads at its start into `reads`
  reader=$1
  shift
  note_path "$@"
  for noted in "$@"; do
    case $noted in '' | *[!A-Za-z0-9_./:@%+=,-]*) ;; *) reads="$reads$reader $noted$NL" ;; esac
  done
}

note_homes() { # what the kubelet, its unit and the runtimes read
  hosts='' reads=$NL
  # shellcheck disable=SC2086 # a list of paths
  note_path $unit_files
  note_kubelet
  note_runtimes
}

note_kubelet() { # what the running kubelet reads, and what it keeps
  command_line "$main_pid"
  option ' --config '
  # shellcheck disable=SC2086 # a list of paths
  note_read "$unit" $kubelet_files "${value:-/var/lib/kubelet/config.yaml}" /etc/default/kubelet /etc/sysconfig/kubelet /var/lib/kubelet/kubeadm-flags.env \
    "/etc/systemd/system/$unit.d/90-rollout.conf"
  note_path /var/lib/kubelet/config.yaml /var/lib/kubelet/cpu_manager_state /var/lib/kubelet/memory_manager_state
  option ' --config-dir '
  [ -n "$value" ] || return 0
  note_folder "$value"
  case $NL$(tr '\0' '\n' 2>/dev/null <"$R/proc/$main_pid/environ")$NL in # 1.28 and 1.29 need it
    *"${NL}KUBELET_CONFIG_DROPIN_DIR_ALPHA="*) say "fact config-dir-alpha set" ;;
  esac
}

note_folder() { # PATH: a kubelet's drop-ins, those in sub-directories too; at most 64 in 64 folders
  note_path "$1"
  waiting=${1%/} walked=0 count=0
  set +f
  while [ -n "$waiting" ]; do
    folder=${waiting%%"$NL"*} walked=$((walked + 1))
    case $waiting in *"$NL"*) waiting=${waiting#*"$NL"} ;; *) waiting='' ;; esac
    for path in "$R$folder"/* "$R$folder"/.[!.]*; do
      [ -e "$path" ] || [ -L "$path" ] || continue
      if [ "$count" -ge 64 ] || [ "$walked" -gt 64 ]; then
        say "fact config-dir-truncated only $count files in $walked folders are told"
        break 2
      fi
      if [ -d "$path" ] && [ ! -L "$path" ]; then
        waiting=$waiting${waiting:+$NL}${path#"$R"}
      else
        case $path in *.conf) count=$((count + 1)) && note_read "$unit" "${path#"$R"}" ;; esac
      fi
    done
  done
  set -f
}

note_runtimes() { # the configuration of the container runtimes that are there
  for served in $services; do
    words=''
    if mentions "${served#*:}" -config || mentions "${served#*:}" '-[cd][/=]'; then command_line "${served#*:}"; fi
    note_read "${served%:*}" "/etc/systemd/system/${served%:*}.d/90-rollout.conf"
    case $served in
      containerd.service:*) note_containerd ;;
      crio.service:*) note_crio ;;
      docker.service:*)
        option ' --config-file '
        note_read docker.service "${value:-/etc/docker/daemon.json}"
        ;;
    esac
  done
}

note_crio() {
  option ' --config -c '
  note_read crio.service "${value:-/etc/crio/crio.conf}"
  option ' --config-dir -d '
  value=${value:-/etc/crio/crio.conf.d}
  note_path "$value" "$value/99-rollout.conf"
  note_matching crio-conf "$value/*"
  # shellcheck disable=SC2086 # a list of paths
  note_read crio.service $matched
}

note_containerd() { # its file, its imports and their imports, and the registries' hosts.toml
  option ' --config -c -config '
  value=${value:-/etc/containerd/config.toml}
  note_path "$value"
  base=${value%/*} hosts='/etc/containerd/certs.d /etc/docker/certs.d' seen=' ' imports=$value round=0
  note_matching containerd-conf '/etc/containerd/conf.d/*.toml'
  imports="$imports$matched"
  while [ -n "$imports" ] && [ "$round" -lt 4 ]; do
    round=$((round + 1)) unread=''
    for path in $imports; do
      case $seen in *" $path "*) continue ;; esac
      seen="$seen$path "
      [ ! -f "$R$path" ] || unread="$unread $R$path"
    done
    imports=''
    [ -z "$unread" ] || read_containerd
  done
  # shellcheck disable=SC2086 # a list of paths
  note_read containerd.service $seen
  for folder in $hosts; do
    note_path "$folder"
    note_matching hosts "$folder/*/hosts.toml"
    note_matching host-folders "$folder/*"
  done
}

read_containerd() { # `unread`: what these files import, into `list` and `imports`; the folders of their config_path into `hosts`
  # shellcheck disable=SC2086 # a list of paths
  lines=$(sed -n -e '/^[[:blank:]]*imports[[:blank:]]*=.*]/{p;d;}' -e '/^[[:blank:]]*imports[[:blank:]]*=/,/]/p' \
    -e '/^[[:blank:]]*config_path[[:blank:]]*=/p' -- $unread 2>/dev/null)
  IFS=$NL
  for line in $lines; do
    quoted "$line"
    case $line in
      *config_path*) note_hosts "$strings" ;;
      *) note_imports "$strings" ;;
    esac
    IFS=$NL
  done
  unset IFS
}

quoted() { # LINE: its quoted strings, into `strings`
  IFS="\"'"
  # shellcheck disable=SC2086 # split at quotes
  set -- $1
  unset IFS
  strings=''
  while [ "$#" -gt 1 ]; do
    strings="$strings $2"
    shift 2
  done
}

note_hosts() { # PATHS, as in $PATH
  IFS=': '
  # shellcheck disable=SC2086 # split into paths
  set -- $1
  unset IFS
  for path in "$@"; do
    case $path in [!/]* | *[!A-Za-z0-9_./@%+=,-]*) continue ;; esac
    case " $hosts " in *" $path "*) ;; *) hosts="$hosts $path" ;; esac
  done
}

note_imports() { # PATTERNS, relative to the main file unless absolute
  # shellcheck disable=SC2086 # split into patterns
  set -- $1
  for pattern in "$@"; do
    shift
    case $pattern in /*) set -- "$@" "$pattern" ;; *) set -- "$@" "$base/$pattern" ;; esac
  done
  note_matching containerd-imports "$@"
  imports="$imports$matched"
}

show_kubeadm() { # when kubeadm last rewrote the kubelet's file: it keeps a copy of the previous one
  newest=''
  set +f
  for path in "$R"/etc/kubernetes/tmp/kubeadm-kubelet-config*/config.yaml; do
    [ -f "$path" ] || continue
    # shellcheck disable=SC3013 # dash, bash and busybox have -nt
    if [ -z "$newest" ] || [ "$path" -nt "$newest" ]; then newest=$path; fi
  done
  set -f
  [ -z "$newest" ] || say "fact kubeadm-upgraded $(stat -c %Y -- "$newest") ${newest#"$R"}"
}

show_cgroup() { # 1.35 refuses v1 by default
  [ -d "$R/sys/fs/cgroup" ] || return 0
  if [ -e "$R/sys/fs/cgroup/cgroup.controllers" ]; then say "fact cgroup v2"; else say "fact cgroup v1"; fi
}

marks() { # NAME PATH-OR-UNIT…: marks of another manager of this node. Costs no process
  name=$1 found=''
  shift
  for mark in "$@"; do
    case $mark in
      /*) [ ! -e "$R$mark" ] || found="$found $mark" ;;
      *) mark_unit "$mark" ;;
    esac
  done
  case $scheduled in *" $name "*) found="$found cron" ;; esac
  [ -z "$found" ] || say "fact manager-$name${found}"
}

mark_unit() { # NAME, with :enabled and :active where it is so
  for folder in $UNIT_FOLDERS; do
    [ -e "$folder/$1" ] || continue
    found="$found $1"
    for link in $wants; do case $link in */"$1") found="$found:enabled" && break ;; esac done
    [ ! -L "$R/run/systemd/units/invocation:$1" ] || found="$found:active"
    return
  done
}

find_schedules() { # managers that cron runs, into `scheduled`; what systemd starts by itself, into `wants`
  set +f
  set -- "$R"/etc/systemd/system/*.wants/* "$R"/usr/lib/systemd/system/*.wants/*
  wants=$*
  set -- "$R"/etc/crontab "$R"/etc/cron.*/* "$R"/var/spool/cron/* "$R"/var/spool/cron/crontabs/*
  set -f
  for path in "$@"; do
    shift
    [ ! -f "$path" ] || set -- "$@" "$path"
  done
  scheduled=' '
  [ "$#" -gt 0 ] || return 0
  lines=$(grep -h -o -s -e '^[^#]*ansible-pull' -e '^[^#]*puppet  *agent' -e '^[^#]*chef-client' -e '^[^#]*cinc-client' \
    -e '^[^#]*salt-call' -- "$@" 2>/dev/null)
  case $lines in *ansible-pull*) scheduled="$scheduled ansible-pull " ;; esac
  case $lines in *puppet*agent*) scheduled="$scheduled puppet " ;; esac
  case $lines in *chef-client* | *cinc-client*) scheduled="$scheduled chef " ;; esac
  case $lines in *salt-call*) scheduled="$scheduled salt " ;; esac
}

show_managers() { # what else configures this node, or owns its kubelet
  system=''
  while IFS='=' read -r key value; do
    case $key in ID) system=${value#\"} system=${system%\"} ;; esac
  done 2>/dev/null <"$R/etc/os-release"
  case $system in '' | *[!a-z0-9._-]*) ;; *) say "fact os $system" ;; esac
  find_schedules
  marks puppet puppet.service pe-puppet.service /etc/puppetlabs/puppet/puppet.conf /etc/puppet/puppet.conf \
    /opt/puppetlabs/puppet/cache/state/agent_disabled.lock /opt/puppetlabs/puppet/cache/state/agent_catalog_run.lock
  marks chef chef-client.service chef-client.timer cinc-client.service cinc-client.timer /etc/chef/client.rb /etc/cinc/client.rb
  marks ansible-pull ansible-pull.service ansible-pull.timer
  marks salt salt-minion.service /etc/salt/minion
  marks cfengine cfengine3.service cf-execd.service
  marks mco machine-config-daemon.service machine-config-daemon-pull.service machine-config-daemon-firstboot.service \
    /etc/machine-config-daemon/currentconfig
  for path in /run/reboot-required /var/run/reboot-required; do
    [ ! -e "$R$path" ] || { say "fact reboot-pending $path" && break; }
  done
}

verb_snapshot() {
  allow 60
  show_state ''
  show_managers
  version systemd systemctl --version
  version runtime-docker docker --version
  version runtime-containerd containerd --version
  version runtime-crio crio --version
  version runtime-cri-dockerd cri-dockerd --version
  folder=$S
  until [ -d "$folder/" ]; do folder=${folder%/*}; done
  # shellcheck disable=SC2046 # type, free blocks, block size
  set -- $(stat -f -c '%T %a %S' "$folder/")
  say "fact state-dir-fs ${1-unknown}"
  say "fact room-kib $((${2-0} * (${3-0} / 512) / 2))"
  read -r name 2>/dev/null <"$R/etc/hostname" && say "fact hostname $name"
  show_cgroup
  show_kubeadm
  measure_unit
  find_kubelet "$main_pid"
  version kubelet-version "$program" --version
  list=''
  note_homes
  [ "${odd:-0}" = 0 ] || say "fact odd-names $odd $(printf %s "$oddest" | tr -c 'A-Za-z0-9_./:@%+=,-' '?')"
  show_files with
  show_stale
}

# ------------------------------------------------------------------------------------------------------------- triggers

guard_locked() {
  if load "$tx"; then
    case $r_state in
      armed | reverting) take_back guard restart || [ "$stuck" = not-durable ] || exit 1 ;;
      *) disarm ;;
    esac
    leave_no_boot_unit
  else
    here "$tx"
    [ ! -d "$T" ] || abandon
  fi
}

leave_no_boot_unit() { # there may be no cleanup after a guard
  [ ! -e "$SYSTEM/$BOOT_UNIT" ] || return 0
  list_guards
  case $guards in *"$BOOT_UNIT"*) forget_boot_unit ;; esac
}

verb_guard() { # TX: the time is over
  allow 200
  seize || exit 1
  guard_locked 9>&-
}

verb_watch() { # TX: sleep until the timer must have fired and started its guard; then act as the guard
  load "$tx" && boot_id && [ "$r_boot" = "$boot" ] || exit 0
  while clock && [ "$now" -lt $((r_deadline + 10000)) ]; do
    sleep $(((r_deadline + 10000 - now + 999) / 1000)) || nap
  done
  verb_guard
}

boot_locked() {
  transactions
  boot_id
  later=0
  for name in $all_tx; do
    load "$name"
    clock
    case $r_state in
      armed)
        if [ "$r_boot" = "$boot" ] && [ "$now" -lt "$r_deadline" ]; then
          later=1 # the boot unit ran again in the same boot: this boot's timer is still to come
          keep_strings
          continue
        fi
        take_back boot files || return 1
        ;;
      reverting) take_back "$r_cause" files || return 1 ;;
    esac
  done
  [ "$later" = 1 ] || { here - && remove_boot_unit; }
}

verb_boot() { # before the units start: only files and unit definitions; nothing here waits for a unit
  allow 50
  trap give_up TERM # the unit's time is over
  if seize && boot_locked 9>&-; then return; fi
  give_up
}

give_up() {
  leave_to_guards 9>&-
  exit 1
}

leave_to_guards() { # timer and watch ended with the previous boot, and nothing starts the boot unit again. Nothing here waits for systemd
  allow 5
  transactions
  for name in $all_tx; do
    load "$name"
    seconds_left # this boot's own timer is still to come
    case $left/$r_state in 0/armed | 0/reverting) start_timer 5 --no-block ;; esac
  done
}

main() { # VERB ARGUMENT…
  verb=${1-}
  [ "$#" -eq 0 ] || shift
  until=0
  case $verb in
    guard | watch | boot)
      tx=${1--} force=0
      "verb_$verb" # its output goes to the node's journal
      exit
      ;;
    snapshot | status | verify | apply | confirm | revert | cleanup | forget)
      arguments "$@"
      "verb_$verb"
      ;;
    *) refuse bad-argument "no such verb" ;;
  esac
  finish
}

case $0 in rollout) ;; *) main "$@" ;; esac # under the loader the payload comes first, and the loader calls main

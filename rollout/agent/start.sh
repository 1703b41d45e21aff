#!/bin/sh
# rollout's agent: one node's transaction. POSIX sh; runs under dash, bash and busybox ash. See docs/agent.md.
# shellcheck disable=SC3043 # these three have `local`; other shells are refused by name before they read this
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
#     Every child that could hang runs under `bounded`, which waits at most until then, and at least one second. Two kinds have no
#     such limit: the renames of an apply or a confirm, which the guard ends, and what is written before anything is armed.
#   * A program costs a node more than the shell's own work: one call for all units or paths, and none for what the shell can do.
#     But `read` costs a system call a byte, as much for three receipts as a program: what a verb needs again it keeps.
#     And `${x#*y}` and `${x##*y}` cost the square of the length: of long texts take `${x%%y*}` or `${x%y*}`, or go through the lines.
#   * A function's name begins with its part's: guard_disarm is in guard.sh. Without a prefix: the verbs, which are verb_NAME, and the
#     functions of words.sh, which all parts use like the shell's own commands. Those of a runtime begin with its package's name.
#   * A name that a function sets for itself is `local` in it; what it calls sees it too. Any other name is a result, which the comment of
#     its function names, with a prefix for its part: a_ managers, c_ checks, d_ durable, e_ cleanup, f_ files, g_ guard, h_ health and
#     restarts, k_ the token, l_ a log, m_ measure, n_ homes, p_ a process, q_ pulls, r_ the receipt, s_ staging, t_ the conversation,
#     u_ a unit, v_ revert, w_ words, x_ shown files, y_ surroundings, z_ a freeze. Without one: the arguments of the verb, its `verb`, `tx`, T, `until`, `spoken`,
#     `undurable` and `why`, the clock's `now`, and `boot`.
#   * No `set -e`. HUP and PIPE are ignored: unread output is lost, without any other effect.
#   * Input words match [A-Za-z0-9_./:@%+=,-]; nothing else ever reaches a command line.

if [ "${1-}" = after ]; then # the boot unit has ended: by itself, out of time, killed, without a process. systemd ends this after 30 s
  until command eval 'sh "$0" leave'; do command eval 'sleep 1'; done # without `command`, a fork that fails would end dash
  exit 0
fi
unset -v NL # else one of the environment stays exported, and goes with the others
NL='
'
set -f +aeuxC # a SHELLOPTS may have set these in bash
# The environment is made from nothing: what a login, sudo or systemd puts there changes what programs print and which of them run.
# Proxies stay: command gates may need them, and the agent's own probes unset them
IFS=$NL
for line in $(export -p); do
  name=${line#export } name=${name#declare -x } name=${name%%=*}
  case $name in PATH | INVOCATION_ID | ROLLOUT_* | *_proxy | *_PROXY | [0-9]* | *[!A-Za-z0-9_]* | '') ;; *) command unset -v "$name" 2>/dev/null || : ;; esac # bash keeps some
done
unset IFS
# shellcheck disable=SC3044,SC3045 # only bash: what it does not unset, and functions that it takes from the environment
[ -z "${BASH_VERSION-}" ] || {
  export -n SHELLOPTS BASHOPTS
  for name in $(declare -F); do case $name in declare | -*) ;; *) unset -f "$name" ;; esac done
}

PAYLOAD='' spoken='' f_notes='' r_names='' boot='' h_fresh=0 c_brief=0 f_digested='' f_sums='' f_armed=0 t_owned=0 x_times='' undurable='' d_haste='' d_late='' t_program=''
export LC_ALL=C HOME=/root # command gates may want one
umask 077
trap '' HUP PIPE

case $0 in rollout) t_program=${1-} ;; esac # its digest, as the conversation has checked it
case $0 in # the copy that guards a transaction takes its node's root from its own path
  */var/lib/rollout/tx/*/agent) R=${0%/var/lib/rollout/tx/*/agent} ;;
  *) R=${ROLLOUT_ROOT-} ;;
esac
[ -n "$R" ] || export PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH"
if [ "${1-}" = watch ]; then # until this second since boot: a confirm ends most watches, which then never parse the rest of this program
  IFS='. ' read -r uptime _ <"$R/proc/uptime"
  [ "$uptime" -ge "${3-0}" ] || sleep $(($3 - uptime))
fi
S=$R/var/lib/rollout
FORGOTTEN=$S.forgotten
SYSTEM=$R/etc/systemd/system
BOOT_UNIT=rollout-guard-boot.service
UNIT_FOLDERS="$SYSTEM $R/run/systemd/system $R/usr/local/lib/systemd/system $R/usr/lib/systemd/system $R/lib/systemd/system"
WANTED=$SYSTEM/basic.target.wants/$BOOT_UNIT       # every ordinary service waits for that target, whatever a node's default target is
HIDDEN=$R/run/systemd/transient/basic.target.wants/$BOOT_UNIT
WANTED_ONCE=$SYSTEM/multi-user.target.wants/$BOOT_UNIT # of earlier versions
BASE64=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/

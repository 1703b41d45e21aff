#!/bin/sh
# Starts the real kubelet 1.20.2 on a node of the bed. It needs cgroup v1, which the node's systemd does not use, and kernel
# switches that it may not write: it gets a mount namespace of its own with both. The process stays the same.
set -eu
program=/opt/kubernetes/kubelet
case " $* " in *' --version '*) exec "$program" "$@" ;; esac
if [ "${1:-}" != --inside ]; then exec unshare --mount --propagation private "$0" --inside "$@"; fi
shift
umount -l -R /sys/fs/cgroup
mount -t tmpfs cgroup /sys/fs/cgroup
while read -r hierarchy group; do
  options=$hierarchy
  [ "$hierarchy" != systemd ] || options=none,name=systemd
  mkdir "/sys/fs/cgroup/$hierarchy"
  mount -t cgroup -o "$options" cgroup "/sys/fs/cgroup/$hierarchy"
  echo $$ >"/sys/fs/cgroup/$hierarchy/$group/cgroup.procs"
done </opt/kubernetes/hierarchies
while read -r switch value; do
  mkdir -p /run/switches
  echo "$value" >"/run/switches/${switch##*/}"
  mount --bind "/run/switches/${switch##*/}" "/proc/sys/$switch"
done </opt/kubernetes/switches
[ -e /dev/kmsg ] || ln -s /dev/null /dev/kmsg
mount --bind /dev/null /proc/swaps
# shellcheck disable=SC2016 # the inner shell expands it
exec unshare --cgroup sh -c '
  while read -r hierarchy group; do
    umount "/sys/fs/cgroup/$hierarchy"
    options=$hierarchy
    [ "$hierarchy" != systemd ] || options=none,name=systemd
    mount -t cgroup -o "$options" cgroup "/sys/fs/cgroup/$hierarchy"
  done </opt/kubernetes/hierarchies
  exec "$@"' sh "$program" "$@"

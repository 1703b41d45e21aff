#!/bin/sh
# boot.sh NAME ROOT NETNS CGROUP - runs one node until it is switched off; `systemctl reboot` inside boots it again.
# Run under `unshare -m`: the cgroup2 file system is mounted over whatever this machine has there.
set -eu
name=$1 root=$2 netns=$3 cgroup=$4
umount -l -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mkdir -p "/sys/fs/cgroup/$cgroup"
echo $$ > "/sys/fs/cgroup/$cgroup/cgroup.procs"
mkdir -p /run/systemd/nspawn
mount -t tmpfs -o mode=755 tmpfs /run/systemd/nspawn
# without TMPFS_TMP=0 each node's /tmp may take a tenth of the memory
export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 SYSTEMD_NSPAWN_TMPFS_TMP=0
status=133 # nspawn's exit status when the node requested a reboot
while [ "$status" = 133 ]; do
    status=0
    systemd-nspawn -q --register=no --keep-unit -M "$name" -D "$root" --network-namespace-path="/run/netns/$netns" \
        --resolv-conf=off --timezone=off --link-journal=no --console=pipe --boot || status=$?
done
exit "$status"

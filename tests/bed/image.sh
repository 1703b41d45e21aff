#!/bin/sh
# image.sh OUT.tar.zst - a minimal Debian with systemd, dbus, sshd, sudo and a user `ops`; no keys, no kubelet.
set -eu
# shellcheck disable=SC2016 # the hooks are expanded by the shell that mmdebstrap starts
mmdebstrap --quiet --variant=minbase \
  --include=systemd,systemd-sysv,dbus,openssh-server,sudo,iproute2,procps \
  --aptopt='Apt::Install-Recommends "false"' --dpkgopt=force-unsafe-io \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/usr/share/doc/*' \
  --customize-hook='for unit in e2scrub_reap.service e2scrub_all.timer fstrim.timer apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer systemd-pstore.service; do ln -sf /dev/null "$1/etc/systemd/system/$unit"; done' \
  --customize-hook='rm -f "$1"/etc/resolv.conf "$1"/etc/ssh/ssh_host_* && : > "$1/etc/resolv.conf" && : > "$1/etc/machine-id"' \
  --customize-hook='printf "UseDNS no\nPermitRootLogin no\nHostKey /etc/ssh/ssh_host_ed25519_key\nMaxStartups 200:30:400\nMaxSessions 64\n" > "$1/etc/ssh/sshd_config.d/bed.conf"' \
  --customize-hook='chroot "$1" useradd -m -u 1000 -s /bin/bash ops && install -d -m 700 -o 1000 -g 1000 "$1/home/ops/.ssh"' \
  --customize-hook='printf "ops ALL=(ALL) NOPASSWD:ALL\n" > "$1/etc/sudoers.d/ops" && chmod 440 "$1/etc/sudoers.d/ops"' \
  bookworm "$1"

#!/bin/sh
# image.sh OUT.tar.zst [SYSTEM] - a minimal Debian with systemd, dbus, sshd, sudo and a user `ops`; no keys, no kubelet.
# SYSTEM is a release of Debian, or `sid-rust`: sid, with sudo-rs and rust-coreutils in the place of sudo and coreutils.
set -eu
out=$1 system=${2-bookworm}
case $system in
  sid-rust) release=sid sudo=sudo-rs,rust-coreutils ;;
  *) release=$system sudo=sudo ;;
esac
# shellcheck disable=SC2016 # the hooks are expanded by the shell that mmdebstrap starts
set -- \
  --customize-hook='for unit in e2scrub_reap.service e2scrub_all.timer fstrim.timer apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer systemd-pstore.service; do ln -sf /dev/null "$1/etc/systemd/system/$unit"; done' \
  --customize-hook='rm -f "$1"/etc/resolv.conf "$1"/etc/ssh/ssh_host_* && : > "$1/etc/resolv.conf" && : > "$1/etc/machine-id"' \
  --customize-hook='printf "UseDNS no\nPermitRootLogin no\nHostKey /etc/ssh/ssh_host_ed25519_key\nMaxStartups 200:30:400\nMaxSessions 64\n" > "$1/etc/ssh/sshd_config.d/bed.conf"' \
  --customize-hook='chroot "$1" useradd -m -u 1000 -s /bin/bash ops && install -d -m 700 -o 1000 -g 1000 "$1/home/ops/.ssh"' \
  --customize-hook='mkdir -p "$1/etc/sudoers.d" && printf "ops ALL=(ALL) NOPASSWD:ALL\n" > "$1/etc/sudoers.d/ops" && chmod 440 "$1/etc/sudoers.d/ops"'
# shellcheck disable=SC2016
[ "$system" != sid-rust ] || set -- "$@" \
  --customize-hook='printf "@includedir /etc/sudoers.d\n" > "$1/etc/sudoers" && chmod 440 "$1/etc/sudoers" && ln -s sudo-rs "$1/usr/bin/sudo"' \
  --customize-hook='cd "$1/usr/lib/cargo/bin/coreutils" && for tool in *; do ln -s "/usr/lib/cargo/bin/coreutils/$tool" "$1/usr/local/bin/$tool"; done'
# a mirror of sid is signed anew each day, and a machine's clock may be ahead of it
mmdebstrap --quiet --variant=minbase \
  --include="systemd,systemd-sysv,dbus,openssh-server,$sudo,iproute2,procps" \
  --aptopt='Apt::Install-Recommends "false"' --aptopt='Acquire::Check-Valid-Until "false"' --dpkgopt=force-unsafe-io \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/usr/share/doc/*' "$@" \
  "$release" "$out"

#!/bin/sh
# Downloads and unpacks Debian's cloud kernel, without installing it: DIR/boot/vmlinuz-VERSION and its modules. Usage: get-kernel.sh DIR
# As root it installs QEMU if it is missing.
set -eu

dir=${1:?usage: get-kernel.sh DIR}
if ! command -v qemu-system-x86_64 >/dev/null; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "NOT TESTED: QEMU is missing (apt-get install --no-install-recommends qemu-system-x86)" >&2
		exit 2
	fi
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends qemu-system-x86 >/dev/null
fi
set -- "$dir"/boot/vmlinuz-*
[ ! -e "$1" ] || exit 0
mkdir -p "$dir"
cd "$dir"
package=$(apt-cache depends --important linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
apt-get download -qq "${package:?apt knows no cloud kernel}"
dpkg-deb -x "$package"_*.deb .
rm "$package"_*.deb

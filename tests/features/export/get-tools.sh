#!/bin/sh
# Fetches what reads texts for new nodes from Debian's own packages: ignition-validate of Ignition, and cloud-init's schema.
# Nothing is installed. Usage: get-tools.sh DIR; afterwards DIR/ignition-validate and DIR/schema-cloud-config-v1.json exist.
set -eu

dir=${1:?usage: get-tools.sh DIR}
mirror=http://deb.debian.org/debian
mkdir -p "$dir"
cd "$dir"
[ ! -x ignition-validate ] || [ ! -e schema-cloud-config-v1.json ] || exit 0
curl -fsS -o Packages-new-nodes.xz "$mirror/dists/bookworm/main/binary-amd64/Packages.xz"

get() { # PACKAGE FILE
	path=$(xz -dc Packages-new-nodes.xz | awk -v RS= -v name="$1" '$0 ~ "(^|\n)Package: " name "\n" { match($0, /Filename: [^\n]*/); print substr($0, RSTART + 10, RLENGTH - 10) }')
	[ -n "$path" ] || { echo "Debian has no $1" >&2; exit 1; }
	curl -fsS -o new-nodes.deb "$mirror/$path"
	rm -rf new-nodes.unpacked
	dpkg-deb -x new-nodes.deb new-nodes.unpacked
	mv "new-nodes.unpacked/$2" .
	rm -rf new-nodes.unpacked new-nodes.deb
}

get ignition usr/bin/ignition-validate
get cloud-init usr/lib/python3/dist-packages/cloudinit/config/schemas/schema-cloud-config-v1.json
rm Packages-new-nodes.xz

#!/bin/sh
# Fetches real container runtimes from Debian's own packages: containerd 1.6 (bookworm), 1.7 (trixie) and 2.x (forky), and dockerd
# of the same three. Nothing is installed. Usage: get-runtimes.sh DIR; afterwards DIR/containerd-SERIES and DIR/dockerd-SERIES exist.
set -eu

dir=${1:?usage: get-runtimes.sh DIR}
mirror=http://deb.debian.org/debian
mkdir -p "$dir"
cd "$dir"

get() { # SERIES PACKAGE PROGRAM
	[ ! -x "$3-$1" ] || return 0
	path=$(xz -dc "Packages-$1.xz" | awk -v RS= -v name="$2" '$0 ~ "(^|\n)Package: " name "\n" { match($0, /Filename: [^\n]*/); print substr($0, RSTART + 10, RLENGTH - 10) }')
	[ -n "$path" ] || { echo "Debian $1 has no $2" >&2; exit 1; }
	curl -fsS -o package.deb "$mirror/$path"
	rm -rf unpacked
	dpkg-deb -x package.deb unpacked
	mv "unpacked/usr/bin/$3" "$3-$1" 2>/dev/null || mv "unpacked/usr/sbin/$3" "$3-$1"
	rm -rf unpacked package.deb
}

for series in bookworm trixie forky; do
	[ -x "containerd-$series" ] && [ -x "dockerd-$series" ] && continue
	curl -fsS -o "Packages-$series.xz" "$mirror/dists/$series/main/binary-amd64/Packages.xz"
	get "$series" containerd containerd
	get "$series" docker.io dockerd
	rm "Packages-$series.xz"
done

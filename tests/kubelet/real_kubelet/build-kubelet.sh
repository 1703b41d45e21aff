#!/bin/sh
# Builds a real kubelet (1.20.2) from Debian's own source package, and the empty container runtime that it is run against
# (cri/main.go, from the packages that the kubelet's source carries: nothing else is downloaded), without touching the
# system's package lists.
# Usage: build-kubelet.sh DIR; afterwards DIR/kubelet and DIR/empty-cri exist. Needs golang-go; as root it installs it.
# About six minutes on two cores and 2 GB of space, most of it freed at the end.
set -eu

dir=${1:?usage: build-kubelet.sh DIR}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
sum=$(sha256sum "$here/cri/main.go" | cut -c1-64)
if [ -x "$dir/kubelet" ] && [ -x "$dir/empty-cri" ] && [ "$(cat "$dir/empty-cri.sum")" = "$sum" ]; then exit 0; fi
command -v go >/dev/null || [ "$(id -u)" != 0 ] || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends golang-go >/dev/null
for tool in go apt-get tar; do
	command -v "$tool" >/dev/null || { echo "$tool is missing: the model of the kubelet is tested against recorded runs only" >&2; exit 1; }
done

work=$dir/build-kubelet
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/go/src/k8s.io"
echo "deb-src http://deb.debian.org/debian bookworm main" >"$work/sources.list"
apt() {
	apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root "$@"
}
apt update
(cd "$work" && apt source --download-only kubernetes)

tree=$work/go/src/k8s.io/kubernetes
mkdir -p "$tree/cmd/empty-cri"
tar -xf "$work"/kubernetes_*.orig.tar.* -C "$tree" --strip-components=1
cp "$here/cri/main.go" "$tree/cmd/empty-cri/"
export GOPATH="$work/go" GO111MODULE=off GOFLAGS=-p=2 GOCACHE="$work/gocache" CGO_ENABLED=0
cd "$tree"

go build -ldflags "-s -w" -o "$work/empty-cri" ./cmd/empty-cri
if [ ! -x "$dir/kubelet" ]; then
	version=k8s.io/kubernetes/vendor/k8s.io/component-base/version # validation compares with it: showHiddenMetricsForVersion
	go build -ldflags "-s -w -X $version.gitVersion=v1.20.2 -X $version.gitMajor=1 -X $version.gitMinor=20" \
		-o "$work/kubelet" ./cmd/kubelet
	mv "$work/kubelet" "$dir/kubelet"
fi
mv "$work/empty-cri" "$dir/empty-cri"
echo "$sum" >"$dir/empty-cri.sum"
chmod -R u+w "$work"
rm -rf "$work"
echo "built $dir/kubelet and $dir/empty-cri"

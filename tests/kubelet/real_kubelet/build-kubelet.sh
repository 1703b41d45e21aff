#!/bin/sh
# Builds a real kubelet (1.20.2) from Debian's own source package, and the container runtimes that it is run against
# (empty-cri, and pods-cri of `make incidents`; from the packages that the kubelet's source carries: nothing else is
# downloaded), without touching the system's package lists.
# Usage: build-kubelet.sh DIR; afterwards DIR/kubelet, DIR/empty-cri and DIR/pods-cri exist. Needs golang-go; as root it
# installs it.
# About six minutes on two cores and 2 GB of space, most of it freed at the end.
set -eu

dir=${1:?usage: build-kubelet.sh DIR}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
source_of() {
	case $1 in empty-cri) echo "$here/cri/main.go" ;; pods-cri) echo "$here/../../incidents/cri/main.go" ;; esac
}
sum_of() { sha256sum "$(source_of "$1")" | cut -c1-64; }
is_built() { [ -x "$dir/$1" ] && [ "$(cat "$dir/$1.sum" 2>/dev/null)" = "$(sum_of "$1")" ]; }
if [ -x "$dir/kubelet" ] && is_built empty-cri && is_built pods-cri; then exit 0; fi
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
mkdir -p "$tree"
tar -xf "$work"/kubernetes_*.orig.tar.* -C "$tree" --strip-components=1
export GOPATH="$work/go" GO111MODULE=off GOFLAGS=-p=2 GOCACHE="$work/gocache" CGO_ENABLED=0
cd "$tree"

for runtime in empty-cri pods-cri; do
	if is_built "$runtime"; then continue; fi
	mkdir -p "$tree/cmd/$runtime"
	cp "$(source_of "$runtime")" "$tree/cmd/$runtime/"
	go build -ldflags "-s -w" -o "$work/$runtime" "./cmd/$runtime"
	mv "$work/$runtime" "$dir/$runtime"
	sum_of "$runtime" >"$dir/$runtime.sum"
done
if [ ! -x "$dir/kubelet" ]; then
	version=k8s.io/kubernetes/vendor/k8s.io/component-base/version # validation compares with it: showHiddenMetricsForVersion
	go build -ldflags "-s -w -X $version.gitVersion=v1.20.2 -X $version.gitMajor=1 -X $version.gitMinor=20" \
		-o "$work/kubelet" ./cmd/kubelet
	mv "$work/kubelet" "$dir/kubelet"
fi
chmod -R u+w "$work"
rm -rf "$work"
echo "built $dir/kubelet, $dir/empty-cri and $dir/pods-cri"

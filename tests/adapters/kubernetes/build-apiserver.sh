#!/bin/sh
# Builds a real kube-apiserver (1.20.2) from Debian's own source package, without touching the system's package lists.
# Usage: build-apiserver.sh DIR; afterwards DIR/kube-apiserver exists, and DIR/etcd to run it: the program of Debian's package, which
# is not installed, because that starts a service. Needs golang-go; as root it installs it.
# About seven minutes on two cores and 3 GB of space, most of which is freed at the end.
set -eu

dir=${1:?usage: build-apiserver.sh DIR}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
if [ -x "$dir/kube-apiserver" ] && [ -x "$dir/etcd" ]; then exit 0; fi
command -v go >/dev/null || [ "$(id -u)" != 0 ] || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends golang-go >/dev/null
for tool in go apt-get dpkg-deb tar make; do
	command -v "$tool" >/dev/null || { echo "$tool is missing: the API gates are tested against recorded answers only" >&2; exit 1; }
done

work=$dir/build
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/go/src/k8s.io"
printf '%s http://deb.debian.org/debian bookworm main\n' deb deb-src >"$work/sources.list"
apt() {
	apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root "$@"
}
apt update
if [ ! -x "$dir/etcd" ]; then
	(cd "$work" && apt download etcd-server && dpkg-deb -x etcd-server_*.deb etcd)
	mv "$work/etcd/usr/bin/etcd" "$dir/etcd"
fi
if [ -x "$dir/kube-apiserver" ]; then
	rm -rf "$work"
	exit 0
fi
(cd "$work" && apt source --download-only kubernetes)

tree=$work/go/src/k8s.io/kubernetes
mkdir -p "$tree"
tar -xf "$work"/kubernetes_*.orig.tar.* -C "$tree" --strip-components=1
export GOPATH="$work/go" GO111MODULE=off GOFLAGS=-p=2 GOCACHE="$work/gocache" CGO_ENABLED=0
cd "$tree"

# The API's description is generated code; the source package does not carry it.
go build -o "$work/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
packages=$(grep -rl '+k8s:openapi-gen=' pkg staging/src/k8s.io --include='*.go' | grep -v -e _test.go -e /_examples/ -e /sample- |
	sed 's#/[^/]*$##; s#^staging/src/##; s#^pkg/#k8s.io/kubernetes/pkg/#' | sort -u | paste -sd, -)
"$work/openapi-gen" --input-dirs "$packages" --output-base "$work/go/src" --output-package k8s.io/kubernetes/pkg/generated/openapi \
	-O zz_generated.openapi --go-header-file hack/boilerplate/boilerplate.generatego.txt -r "$work/violations" >/dev/null

version="-X k8s.io/component-base/version.gitVersion=v1.20.2 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=20"
go build -ldflags "-s -w $version" -o "$work/kube-apiserver" ./cmd/kube-apiserver
mv "$work/kube-apiserver" "$dir/kube-apiserver"
chmod -R u+w "$work"
rm -rf "$work"
echo "built $dir/kube-apiserver"

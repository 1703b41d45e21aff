"""Errors of failed pulls in the forms of each program and version, with names of ours.

The forms are those of issues of containerd, moby, cri-o, cri-dockerd, kubernetes, k3s, minikube, rke2 and docker/hub-feedback, and in the sources
of containerd 1.6 to 2.4, moby 19.03 to 28, containers/image and the kubelet.
"""

from __future__ import annotations

import pytest

from rollout.features.diagnose.rules.finding import Confidence
from rollout.features.diagnose.rules.pull_errors import PullCause, read_error

D = "sha256:" + "4a2d0c3f7f7c5b1f6f0c8f0f1f9d1f0aa35d58d0fdf7bbd0a3d5a3aa1fb0f1cd"
IMAGE = "reg.example.net/shop/web:1"
U = f'rpc error: code = Unknown desc = failed to pull and unpack image "{IMAGE}": '
N = f'rpc error: code = NotFound desc = failed to pull and unpack image "{IMAGE}": '
R = f'{U}failed to resolve reference "{IMAGE}": '
DD = "rpc error: code = Unknown desc = Error response from daemon: "
X = "rpc error: code = Unknown desc = "

FORMS = (
    (PullCause.MOUNTS_FULL, f'{U}failed to extract layer {D}: failed to mount /var/lib/containerd/tmpmounts/containerd-mount1: no space left on device: unknown'),
    (PullCause.MOUNTS_FULL, f'{X}error creating overlay mount to /var/lib/containers/storage/overlay/a/merged: no space left on device'),
    (PullCause.NODE_LIMIT, f'{R}failed to do request: Head "https://reg.example.net/v2/x": dial tcp 192.0.2.1:443: socket: too many open files'),
    (PullCause.NODE_LIMIT, f'{U}failed to extract layer {D}: open /var/lib/containerd/x: too many open files'),
    (PullCause.SOCKET, f'{R}failed to do request: Head "http://mirror/v2/x": dial unix /run/mirror.sock: connect: no such file or directory'),
    (PullCause.REFUSED, f'{U}failed to copy: httpReadSeeker: failed open: unexpected status code https://mirror.example.com/v2/x/blobs/{D}?ns=docker.io: 400 Bad Request'),
    (PullCause.REFUSED, f'{U}failed to copy: httpReadSeeker: failed open: unexpected status from GET request to https://mirror.example.com/v2/x/blobs/{D}: 416 Requested Range Not Satisfiable'),
    (PullCause.UNREACHABLE, f'{R}failed to do request: Head "https://reg.example.net/v2/x": dial tcp [2001:db8::1]:443: connect: cannot assign requested address'),
    (PullCause.DISK_FULL, f'{U}failed to extract layer {D}: write /var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/12/fs/usr/lib/a.so: no space left on device: unknown'),
    (PullCause.DISK_FULL, f'{U}failed to extract layer (application/vnd.oci.image.layer.v1.tar+gzip {D}) to overlayfs as "extract-1-x {D}": write /var/lib/containerd/x: no space left on device'),
    (PullCause.DISK_FULL, f'{U}failed to copy: failed to copy: write /var/lib/containerd/io.containerd.content.v1.content/ingest/ab/data: no space left on device'),
    (PullCause.DISK_FULL, f'{U}failed to prepare extraction snapshot "extract-1-x {D}": failed to create temp dir: mkdir /var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/new-123: no space left on device'),
    (PullCause.DISK_FULL, f'{X}failed to register layer: Error processing tar file(exit status 1): write /usr/lib/x86_64-linux-gnu/libicudata.so.66.1: no space left on device'),
    (PullCause.DISK_FULL, f'{DD}failed to register layer: write /usr/lib/x: no space left on device'),
    (PullCause.DISK_FULL, f'{X}failed to register layer: ApplyLayer exit status 1 stdout:  stderr: write /usr/local/src/x.gch: no space left on device'),
    (PullCause.DISK_FULL, f'{X}Error response from daemon: failed to register layer: open /var/lib/docker/image/overlay2/layerdb/tmp/write-set-334267312/diff: no space left on device'),
    (PullCause.DISK_FULL, f'{X}writing blob: storing blob to file "/var/tmp/container_images_storage1834/1": write /var/tmp/container_images_storage1834/1: no space left on device'),
    (PullCause.DISK_FULL, f'{X}copying system image from manifest list: writing blob: adding layer with blob "{D}": processing tar file(write /usr/share/a: no space left on device): exit status 1'),
    (PullCause.DISK_FULL, f'{X}Error committing the finished image: error adding layer with blob "{D}": Error processing tar file(exit status 1): write /usr/share/a: no space left on device'),
    (PullCause.DISK_FULL, f'{X}copying system image from manifest list: writing blob: adding layer with blob "{D}"/""/"{D}": unpacking failed (error: exit status 1; output: write /usr/lib/a: no space left on device)'),
    (PullCause.DISK_FULL, f'{X}copying system image from manifest list: parsing image configuration: write /var/lib/containers/storage/overlay-images/x: no space left on device'),
    (PullCause.DISK_FULL, f'{U}failed commit on ref "layer-{D}": commit failed: rename /var/lib/containerd/a /var/lib/containerd/b: no space left on device'),
    (PullCause.DISK_FULL, f'failed to pull image "{IMAGE}": write /var/lib/docker/tmp/GetImageBlob143: no space left on device'),
    (PullCause.DISK_FULL, f'{U}failed to create lease: write /var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db: no space left on device'),
    (PullCause.SNAPSHOTS, f'{N}failed to prepare extraction snapshot "extract-795119289-7389 {D}": parent snapshot {D} does not exist: not found'),
    (PullCause.SNAPSHOTS, f'{U}failed to stat snapshot {D}: snapshot {D} does not exist: not found'),
    (PullCause.SNAPSHOTS, f'{N}failed to extract layer {D}: failed to get reader from content store: content digest {D}: not found'),
    (PullCause.SNAPSHOTS, f'{N}failed to extract layer {D}: failed to get reader from content store: blob {D} expected at /var/lib/containerd/io.containerd.content.v1.content/blobs/sha256/4a2d: blob not found: not found'),
    (PullCause.DAMAGED, f'rpc error: code = FailedPrecondition desc = failed to pull and unpack image "{IMAGE}": failed commit on ref "layer-{D}": "layer-{D}" failed size validation: 6239744 != 17386982: failed precondition'),
    (PullCause.INVALID_NAME, 'Error response from daemon: no such image: reg.example.net/pause-amd64:3.0": invalid reference format'),
    (PullCause.LEFTOVERS, f'{U}failed to prepare extraction snapshot "extract-1-x {D}": failed to rename: rename /var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/new-1 /var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/2: file exists'),
    (PullCause.LEFTOVERS, f'{X}failed to register layer: rename /var/lib/docker/image/overlay2/layerdb/tmp/write-set-1 /var/lib/docker/image/overlay2/layerdb/sha256/4a2d0c3f7f7c5b1f6f0c8f0f1f9d1f0aa35d58d0fdf7bbd0a3d5a3aa1fb0f1cd: file exists'),
    (PullCause.SNAPSHOTS, f'{X}layer does not exist'),
    (PullCause.SNAPSHOTS, f'{X}copying system image from manifest list: reading blob {D}: layer not known'),
    (PullCause.CERTIFICATE_TIME, f'{R}failed to do request: Head "https://reg.example.net/v2/shop/web/manifests/1": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2024-06-30T11:33:07-07:00 is after 2021-09-30T14:01:15Z'),
    (PullCause.CERTIFICATE_TIME, f'{DD}Get https://reg.example.net/v2/: x509: certificate has expired or is not yet valid'),
    (PullCause.CERTIFICATE_TIME, f'{X}error pulling image configuration: Get https://production.cloudflare.docker.com/registry-v2/docker/registry/v2/blobs/sha256/05/05cbb2fce885009ab9540ecef52d54ffd5829e6a2700058258e36f8762267f9b/data?verify=1577484021-l4Ql8: x509: certificate has expired or is not yet valid'),
    (PullCause.CERTIFICATE_TIME, f'{X}error pulling image configuration: download failed after attempts=1: tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2021-01-01T00:04:03Z is before 2026-04-03T00:00:00Z'),
    (PullCause.CERTIFICATE_TIME, f'{X}initializing source docker://{IMAGE}: pinging container registry reg.example.net: Get "https://reg.example.net/v2/": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2021-01-01T00:04:03Z is before 2026-04-03T00:00:00Z'),
    (PullCause.DNS_SILENT, f'{DD}Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io on 10.0.2.3:53: read udp 10.0.2.15:49031->10.0.2.3:53: i/o timeout'),
    (PullCause.DNS_SILENT, f'{DD}Get https://registry-1.docker.io/v2/: dial tcp: lookup registry-1.docker.io on 10.0.2.3:53: server misbehaving'),
    (PullCause.DNS_SILENT, f'{R}failed to do request: Head "https://reg.example.net/v2/x": dial tcp: lookup reg.example.net: i/o timeout'),
    (PullCause.DNS_SILENT, f'{R}failed to do request: Head "https://reg.example.net/v2/x": dial tcp: lookup reg.example.net on 127.0.0.53:53: dial udp 127.0.0.53:53: connect: connection refused'),
    (PullCause.DNS_SILENT, f'{R}failed to do request: Head "https://reg.example.net/v2/x": dial tcp: lookup reg.example.net: device or resource busy'),
    (PullCause.DNS_SILENT, f'{X}pinging container registry reg.example.net: Get "https://reg.example.net/v2/": dial tcp: lookup reg.example.net: Temporary failure in name resolution'),
    (PullCause.DNS_SILENT, f'{X}error pinging docker registry k8s.gcr.io: Get "https://k8s.gcr.io/v2/": dial tcp: lookup k8s.gcr.io on [::1]:53: read udp [::1]:38712->[::1]:53: read: connection refused'),
    (PullCause.DNS_SILENT, f'{R}failed to do request: Head "https://reg.example.net/v2/x": dial tcp: lookup reg.example.net: Try again'),
    (PullCause.NO_NAME, f'{R}failed to do request: Head "https://reg.example.net/v2/x": dial tcp: lookup reg.example.net: no such host'),
    (PullCause.NO_NAME, f'{DD}Head "https://reg.example.net/v2/x": dial tcp: lookup reg.example.net on 127.0.0.53:53: no such host'),
    (PullCause.NO_NAME, f'{R}failed to authorize: failed to fetch anonymous token: Get "https://auth.docker.io/token?scope=repository%3Alibrary%2Fbusybox%3Apull&service=registry.docker.io": dial tcp: lookup auth.docker.io on 10.0.0.2:53: no such host'),
    (PullCause.PROXY, f'{R}failed to do request: Head "https://registry-1.docker.io/v2/x": proxyconnect tcp: dial tcp 127.0.0.1:1082: connect: connection refused'),
    (PullCause.PROXY, f'{DD}Get "https://registry-1.docker.io/v2/": proxyconnect tcp: dial tcp: lookup proxy.example.net: no such host'),
    (PullCause.PROXY, f'{X}error pinging docker registry registry-1.docker.io: Get "https://registry-1.docker.io/v2/": proxyconnect tcp: dial tcp: lookup http: Temporary failure in name resolution'),
    (PullCause.PROXY, f'{X}Error response from daemon: Get https://k8s.gcr.io/v2/: proxyconnect tcp: net/http: TLS handshake timeout'),
    (PullCause.PROXY, f'{DD}Get "https://registry-1.docker.io/v2/": http: error connecting to proxy http://127.0.0.1:53847: dial tcp 127.0.0.1:53847: getsockopt: connection refused'),
    (PullCause.PROXY, f'{DD}Get "https://registry-1.docker.io/v2/": proxyconnect tcp: tls: first record does not look like a TLS handshake'),
    (PullCause.PROXY, f'{R}failed to do request: Head "https://reg.example.net/v2/x": socks connect tcp 127.0.0.1:1080->reg.example.net:443: dial tcp 127.0.0.1:1080: connect: connection refused'),
    (PullCause.PROXY_REFUSES, f'{DD}Get "https://registry-1.docker.io/v2/": Proxy Authentication Required'),
    (PullCause.PROXY_REFUSES, f'{R}failed to do request: Head "https://reg.example.net/v2/x": Proxy Authorization Required'),
    (PullCause.PROXY_REFUSES, f'{X}pinging container registry reg.example.net: Get "https://reg.example.net/v2/": Proxy Authentication Required'),
    (PullCause.PROXY_REFUSES, f'{R}unexpected status from HEAD request to https://reg.example.net/v2/x: 407 Proxy Authentication Required'),
    (PullCause.WEB_PAGE, f'{N}failed to unpack image on snapshotter overlayfs: unexpected media type text/html for {D}: not found'),
    (PullCause.WEB_PAGE, f'{DD}error parsing HTTP 403 response body: invalid character \'<\' looking for beginning of value: "<!DOCTYPE html>"'),
    (PullCause.WEB_PAGE, f'{X}parsing image configuration: Unsupported schema version text/html'),
    (PullCause.WEB_PAGE, f'{X}unsupported manifest media type and unexpected content: text/html; charset=utf-8'),
    (PullCause.WEB_PAGE, f'{R}failed to authorize: failed to decode token response: invalid character \'<\' looking for beginning of value'),
    (PullCause.WEB_PAGE, f'{X}initializing source docker://{IMAGE}: reading manifest 1 in reg.example.net/shop/web: unsupported manifest MIME type text/html'),
    (PullCause.WEB_PAGE, f'{DD}unsupported manifest media type and no default available: text/html'),
    (PullCause.PLATFORM, f'{N}no match for platform in manifest: not found'),
    (PullCause.PLATFORM, f'{X}no matching manifest for linux/arm64/v8 in the manifest list entries'),
    (PullCause.PLATFORM, f'{DD}no matching manifest for linux/amd64 in the manifest list entries: no match for platform in manifest: not found'),
    (PullCause.PLATFORM, f'{X}choosing an image from manifest list docker://{IMAGE}: no image found in image index for architecture "arm64", variant "v8", OS "linux"'),
    (PullCause.PLATFORM, f'{X}Error choosing an image from manifest list docker://{IMAGE}: no image found in manifest list for architecture amd64, OS linux'),
    (PullCause.PLATFORM, f'{X}no supported platform found in manifest list'),
    (PullCause.PLATFORM, f'{X}Error response from daemon: image operating system "windows" cannot be used on this platform'),
    (PullCause.PLATFORM, f'{X}image operating system "windows" cannot be used on this platform: operating system is not supported'),
    (PullCause.PLATFORM, f'{X}Error response from daemon: no matching manifest for windows/amd64 10.0.17763 in the manifest list entries'),
    (PullCause.ADDRESS_BLOCKED, f'{X}failed to pull and unpack image "registry.k8s.io/x:1": failed to resolve reference "registry.k8s.io/x:1": unexpected status from HEAD request to https://us-west2-docker.pkg.dev/v2/k8s-artifacts-prod/images/x/manifests/1: 403 Forbidden'),
    (PullCause.ADDRESS_BLOCKED, f'{X}failed to pull and unpack image "registry.k8s.io/x:1": failed to resolve reference "registry.k8s.io/x:1": pulling from host registry.k8s.io failed with status code [manifests 1]: 403 Forbidden'),
    (PullCause.ADDRESS_BLOCKED, f'{X}initializing source docker://registry.k8s.io/x:1: reading manifest 1 in registry.k8s.io/x: StatusCode: 403, "<!doctype html>"'),
    (PullCause.ADDRESS_BLOCKED, f'{DD}Head "https://registry.k8s.io/v2/x/manifests/1": denied: <html>403'),
    (PullCause.FORBIDDEN, f'{R}pulling from host reg.example.net failed with status code [manifests 1]: 403 Forbidden'),
    (PullCause.FORBIDDEN, f'{R}failed to authorize: failed to fetch oauth token: unexpected status from POST request to https://reg.example.net/token: 403 Forbidden'),
    (PullCause.FORBIDDEN, f'{U}failed to copy: httpReadSeeker: failed open: unexpected status code https://reg.example.net/v2/shop/web/blobs/{D}: 403 Forbidden - Server message: denied'),
    (PullCause.FORBIDDEN, f'{R}unexpected status code [manifests 1]: 403 Forbidden'),
    (PullCause.FORBIDDEN, f'{X}reading manifest 1 in reg.example.net/shop/web: received unexpected HTTP status: 403 Forbidden'),
    (PullCause.CREDENTIALS, f'{R}pulling from host reg.example.net failed with status code [manifests 1]: 401 Unauthorized'),
    (PullCause.CREDENTIALS, f'{R}unexpected status code [manifests 1]: 401 Unauthorized'),
    (PullCause.CREDENTIALS, f'{R}failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized'),
    (PullCause.CREDENTIALS, f'{DD}Get https://registry-1.docker.io/v2/library/nginx/manifests/latest: unauthorized: incorrect username or password'),
    (PullCause.CREDENTIALS, f'{X}reading manifest latest in reg.example.net/a: unauthorized: authentication required'),
    (PullCause.CREDENTIALS, f'{X}unable to retrieve auth token: invalid username/password: unauthorized: authentication required'),
    (PullCause.CREDENTIALS, f'{X}initializing source docker://{IMAGE}: Requesting bearer token: invalid status code from registry 401 (Unauthorized)'),
    (PullCause.CREDENTIALS, f'{DD}Head "https://1.dkr.ecr.us-east-1.amazonaws.com/v2/x/manifests/1": no basic auth credentials'),
    (PullCause.CREDENTIALS, f'{X}failed to pull and unpack image "1.dkr.ecr.us-east-1.amazonaws.com/x:1": failed to resolve reference "1.dkr.ecr.us-east-1.amazonaws.com/x:1": pulling from host 1.dkr.ecr.us-east-1.amazonaws.com failed with status code [manifests 1]: 401 Unauthorized'),
    (PullCause.NO_IMAGE_OR_ACCESS, f'{X}Error reading manifest latest in docker.io/crio/busybox: errors:\ndenied: requested access to the resource is denied\nunauthorized: authentication required'),
    (PullCause.CREDENTIALS, f'{R}pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials'),
    (PullCause.NO_IMAGE_OR_ACCESS, f'{X}failed to pull and unpack image "docker.io/x/y:1": failed to resolve reference "docker.io/x/y:1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed'),
    (PullCause.NO_IMAGE_OR_ACCESS, f'{X}initializing source docker://x/y:1: reading manifest 1 in docker.io/x/y: requested access to the resource is denied'),
    (PullCause.RATE, f'{U}failed to copy: httpReaderSeeker: failed open: unexpected status code https://registry-1.docker.io/v2/x/manifests/{D}: 429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit. You may increase the limit by authenticating and upgrading: https://www.docker.com/increase-rate-limit'),
    (PullCause.RATE, f'{X}Error reading manifest latest in docker.io/x/y: toomanyrequests: You have reached your pull rate limit. You may increase the limit by authenticating and upgrading: https://www.docker.com/increase-rate-limit'),
    (PullCause.RATE, f'{X}reading manifest latest in docker.io/x/y: toomanyrequests: You have reached your unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit'),
    (PullCause.RATE, f'{DD}toomanyrequests: Rate exceeded'),
    (PullCause.RATE, f'{DD}Head "https://public.ecr.aws/v2/x": toomanyrequests: Data limit exceeded'),
    (PullCause.RATE, f'{R}unexpected status from HEAD request to https://registry-1.docker.io/v2/x/manifests/1: 429 Too Many Requests\ntoomanyrequests: You have reached your unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit'),
    (PullCause.RATE, f'{R}pulling from host public.ecr.aws failed with status code [manifests 1]: 429 Too Many Requests'),
    (PullCause.RATE, f'{X}copying system image from manifest list: reading blob {D}: fetching blob: received unexpected HTTP status: 429 Too Many Requests'),
    (PullCause.RATE, f'{X}initializing source docker://x/y:1: reading manifest 1 in docker.io/x/y: StatusCode: 429, "<html>..."'),
    (PullCause.RATE, f'{X}Error response from daemon: toomanyrequests: <!DOCTYPE html>\n\n<html class="no-js" lang="en-US">'),
    (PullCause.NO_IMAGE, f'{N}failed to resolve reference "{IMAGE}": {IMAGE}: not found'),
    (PullCause.NO_IMAGE, f'{R}failed to resolve reference "{IMAGE}": {IMAGE}: not found'),
    (PullCause.NO_IMAGE, f'{DD}manifest for x/y:1 not found: manifest unknown: manifest unknown'),
    (PullCause.NO_IMAGE, f'{DD}manifest for x/y:1 not found'),
    (PullCause.NO_IMAGE, f'{X}Error reading manifest latest in registry.mydomain/image: manifest unknown: manifest unknown'),
    (PullCause.NO_IMAGE, f'{X}reading manifest 1 in quay.io/x/y: manifest unknown'),
    (PullCause.NO_IMAGE, f'{X}initializing source docker://quay.io/x/y:1: reading manifest 1 in quay.io/x/y: name unknown: repository not found'),
    (PullCause.NO_IMAGE, f'{DD}Head "https://reg.example.net/v2/x/manifests/1": manifest unknown: The named manifest is not known to the registry.'),
    (PullCause.NO_IMAGE, f'{X}Error response from daemon: failed to resolve reference "docker.io/x/y:1": docker.io/x/y:1: not found'),
    (PullCause.NO_PART, f'{X}failed to pull and unpack image "reg.example.net/x:1": failed to copy: httpReadSeeker: failed open: content at https://reg.example.net/v2/x/manifests/{D} not found: not found'),
    (PullCause.NO_PART, f'{X}failed to pull and unpack image "reg.example.net/x:1": failed to copy: httpReadSeeker: failed open: could not fetch content descriptor {D} (application/vnd.docker.image.rootfs.diff.tar.gzip) from remote: not found'),
    (PullCause.NO_IMAGE_OR_ACCESS, f'{X}repository reg.example.net/x not found: does not exist or no pull access'),
    (PullCause.CERTIFICATE, f'{DD}Get "https://reg.example.net/v2/": x509: certificate signed by unknown authority'),
    (PullCause.CERTIFICATE, f'{R}failed to do request: Head "https://reg.example.net/v2/x": tls: failed to verify certificate: x509: certificate signed by unknown authority (possibly because of "crypto/rsa: verification error" while trying to verify candidate authority certificate "x")'),
    (PullCause.CERTIFICATE, f'{X}pinging container registry reg.example.net: Get "https://reg.example.net/v2/": x509: certificate signed by unknown authority'),
    (PullCause.CERTIFICATE_NAME, f'{DD}Get https://reg.example.net/v2/: x509: cannot validate certificate for 10.0.0.1 because it doesn\'t contain any IP SANs'),
    (PullCause.CERTIFICATE_NAME, f'{R}failed to do request: Head "https://reg.example.net/v2/x": x509: certificate relies on legacy Common Name field, use SANs or temporarily enable Common Name matching with GODEBUG=x509ignoreCN=0'),
    (PullCause.RESET, f'{U}failed to copy: read tcp 10.0.0.1:1->10.0.0.2:443: read: connection reset by peer'),
    (PullCause.RESET, f'{DD}Get "https://reg.example.net/v2/": read tcp 10.0.0.1:1->10.0.0.2:443: read: connection reset by peer'),
    (PullCause.RESET, f'{U}failed to copy: httpReadSeeker: failed open: failed to do request: Get "https://cdn.example.net/x?y=z": EOF'),
    (PullCause.RESET, f'{U}failed to copy: unexpected EOF'),
    (PullCause.RESET, f'{U}failed to copy: failed to read expected number of bytes: unexpected EOF'),
    (PullCause.RESET, f'{U}failed to read expected number of bytes: unexpected EOF'),
    (PullCause.RESET, f'{U}failed to copy: httpReadSeeker: failed open: failed to do request: Get "https://cdn.example.net/x": unexpected EOF'),
    (PullCause.RUNTIME_AWAY, 'rpc error: code = Unavailable desc = error reading from server: unexpected EOF'),
    (PullCause.RESET, f'{X}writing blob: storing blob to file "/var/tmp/storage1/1": happened during read: read tcp 10.0.0.1:1->10.0.0.2:443: read: connection reset by peer'),
    (PullCause.RESET, f'{X}copying system image from manifest list: reading blob {D}: Get "https://cdn.example.net/x": read tcp 10.0.0.1:1->10.0.0.2:443: read: connection timed out'),
    (PullCause.RESET, f'{X}writing blob: storing blob to file "/var/tmp/storage1/1": happened during read: unexpected EOF'),
    (PullCause.RESET, f'{U}failed to copy: httpReadSeeker: failed open: failed to do request: Get "https://cdn.example.net/x": read tcp 10.0.0.1:1->10.0.0.2:443: read: connection reset by peer'),
    (PullCause.RESET, f'{DD}Get "https://registry-1.docker.io/v2/": EOF'),
    (PullCause.RESET, f'{X}error pulling image configuration: download failed after attempts=6: EOF'),
    (PullCause.RESET, f'{U}failed to copy: local error: tls: bad record MAC'),
    (PullCause.RESET, f'{U}failed to copy: stream error: stream ID 3; INTERNAL_ERROR; received from peer'),
    (PullCause.READ_ONLY, f'{X}failed to register layer: open /var/lib/docker/image/overlay2/layerdb/tmp/write-set-334267312/diff: read-only file system'),
    (PullCause.READ_ONLY, f'{DD}error creating temporary lease: write /var/lib/desktop-containerd/daemon/io.containerd.metadata.v1.bolt/meta.db: read-only file system'),
    (PullCause.READ_ONLY, f'{X}open /mnt/sda1/var/lib/docker/tmp/GetImageBlob503175633: read-only file system'),
    (PullCause.READ_ONLY, f'{U}failed to create lease: write /var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db: read-only file system: unknown'),
    (PullCause.READ_ONLY, f'{X}writing blob: storing blob to file "/var/tmp/storage1/1": open /var/tmp/storage1/1: read-only file system'),
    (PullCause.READ_ONLY, f'{U}failed to prepare extraction snapshot "extract-1 {D}": failed to create temp dir: mkdir /var/lib/containerd/x: read-only file system: unknown'),
    (PullCause.LOCKED, f'{U}locking ref k8s.io/2/layer-{D} failed: ref k8s.io/2/layer-{D} locked: unavailable'),
    (PullCause.LOCKED, f'rpc error: code = Unavailable desc = failed to pull and unpack image "{IMAGE}": ref layer-{D} locked for 1.2s (since 2026-05-06 07:08:09.403 +0000 UTC m=+429.401): unavailable'),
    (PullCause.LOCKED, f'rpc error: code = Unavailable desc = ref default/20/layer-{D} locked: unavailable'),
    (PullCause.RUNTIME_AWAY, f'{U}failed to copy: failed to send write: error reading from server: EOF: unavailable'),
    (PullCause.QUOTA, f'{X}failed to register layer: Error processing tar file(exit status 1): open /usr/share/locale/nb/LC_MESSAGES/tar.mo: disk quota exceeded'),
    (PullCause.QUOTA, f'{DD}failed to register layer: symlink libheimntlm.so.0.1.0 /var/lib/docker/vfs/dir/2501d3c7-init/usr/lib/x86_64-linux-gnu/libheimntlm.so.0: disk quota exceeded'),
    (PullCause.QUOTA, f'{U}failed to extract layer {D}: mkdir /var/lib/containerd/x: disk quota exceeded: unknown'),
    (PullCause.QUOTA, f'{X}writing blob: adding layer with blob "{D}": processing tar file(mkdir /usr/share/a: disk quota exceeded): exit status 1'),
    (PullCause.SIGNATURE, f'{X}copying system image from manifest list: Source image rejected: A signature was required, but no signature exists'),
    (PullCause.SIGNATURE, f'{X}Source image rejected: Running image docker://docker.io/library/hello-world:latest is rejected by policy.'),
    (PullCause.SIGNATURE, 'SignatureValidationFailed: copying system image from manifest list: Source image rejected: Required email "a" not found (got ["b"])'),
    (PullCause.SIGNATURE, f'{X}SignatureValidationFailed: unable to pull image or OCI artifact: pull image err: copying system image from manifest list: Source image rejected: A signature was required, but no signature exists; artifact err: x'),
    (PullCause.POLICY_FILE, f'{X}invalid policy in "/etc/containers/policy.json": Unknown key "keyPaths"'),
    (PullCause.NO_IMAGE, f'{X}unable to pull image or OCI artifact: pull image err: initializing source docker://quay.io/x/y:1: reading manifest 1 in quay.io/x/y: manifest unknown; artifact err: get manifest: build image source: reading manifest 1 in quay.io/x/y: manifest unknown'),
    (PullCause.UNREACHABLE, f'{X}initializing source docker://{IMAGE}: pinging container registry reg.example.net: Get "https://reg.example.net/v2/": dial tcp 192.0.2.4:443: i/o timeout'),
    (PullCause.UNREACHABLE, f'{X}pinging docker registry returned: Get http://registry-1.docker.io/v2/: dial tcp 34.199.40.84:80: i/o timeout'),
    (PullCause.CERTIFICATE, f'{X}(Mirrors also failed: [m.example.net/shop/web:1: pinging container registry m.example.net: Get "https://m.example.net/v2/": dial tcp 192.0.2.4:443: connect: connection refused]): {IMAGE}: pinging container registry reg.example.net: Get "https://reg.example.net/v2/": x509: certificate signed by unknown authority'),
    (PullCause.SERVER, f'{X}initializing source docker://{IMAGE}: pinging container registry reg.example.net: received unexpected HTTP status: 503 Service Unavailable'),
    (PullCause.SERVER, f'{R}pulling from host reg.example.net failed with status code [manifests 1]: 500 Internal Server Error'),
    (PullCause.SERVER, f'{DD}received unexpected HTTP status: 502 Bad Gateway'),
    (PullCause.SERVER, f'{X}reading manifest 1 in x/y: received unexpected HTTP status: 504 Gateway Timeout'),
    (PullCause.SLOW_ANSWER, f'{DD}Get "https://registry-1.docker.io/v2/": net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)'),
    (PullCause.SLOW_ANSWER, f'{DD}Get "https://reg.example.net/v2/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'),
    (PullCause.SLOW_ANSWER, f'{R}failed to do request: Head "https://reg.example.net/v2/x": net/http: TLS handshake timeout'),
    (PullCause.SLOW_ANSWER, f'{R}failed to do request: Head "https://reg.example.net/v2/x": read tcp 10.0.0.1:1->10.0.0.2:443: i/o timeout'),
    (PullCause.UNREACHABLE, 'RegistryUnavailable: failed to pull image "x": dial tcp 192.0.2.4:443: connect: connection refused'),
    (PullCause.SIGNATURE, 'SignatureValidationFailed'),
    (PullCause.NO_IMAGE, 'ImagePullBackOff: Back-off pulling image "x": ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/x:1": failed to resolve reference "docker.io/library/x:1": docker.io/library/x:1: not found'),
    (PullCause.NO_IMAGE, f'{X}initializing source docker://{IMAGE}: (Mirrors also failed: [m.example.net/shop/web:1: reading manifest 1 in m.example.net/shop/web: unauthorized: authentication required]): {IMAGE}: reading manifest 1 in reg.example.net/shop/web: manifest unknown'),
    (PullCause.BLOCKED, f'(Mirrors also failed: [10.0.0.4:5000/shop/web:1: reading manifest 1 in 10.0.0.4:5000/shop/web: manifest unknown]): {IMAGE}: registry reg.example.net/shop is blocked in /etc/containers/registries.conf or /etc/containers/registries.conf.d'),
    (PullCause.CREDENTIALS, f'unable to pull image or OCI artifact: pull image err: initializing source docker://{IMAGE}: reading manifest 1 in reg.example.net/shop/web: authentication required; artifact err: provided artifact is a container image'),
    (PullCause.DENIED_OTHERWISE, f'{X}initializing source docker://{IMAGE}: reading manifest 1 in reg.example.net/shop/web: denied: Quota has been exceeded on namespace'),
    (PullCause.DENIED_OTHERWISE, f"{DD}Get https://lab1.azurecr.example/v2/a/b/manifests/7: denied: client with IP '203.0.113.9' is not allowed access."),
    (PullCause.RUNTIME_AWAY, 'rpc error: code = Unavailable desc = error reading from server: read unix @->/run/containerd/containerd.sock: read: connection reset by peer'),
    (PullCause.DENIED_OTHERWISE, f'{X}initializing source docker://{IMAGE}: reading manifest 1 in x/y: denied: You have exceeded your pull traffic quota for the current month. Review your quota usage and pricing plan'),
    (PullCause.NO_IMAGE_OR_ACCESS, f'{X}initializing source docker://{IMAGE}: reading manifest 1 in x/payment: denied: project payment: no permission to pull repository x/payment'),
    (PullCause.NO_IMAGE_OR_ACCESS, f'{X}initializing source docker://{IMAGE}: reading manifest 1 in x/y: denied: anonymous access is disabled'),
    (PullCause.NO_IMAGE_OR_ACCESS, f'{X}initializing source docker://{IMAGE}: reading manifest 1 in x/y: denied: User "billing" lacks the role to read it'),
    (PullCause.FORBIDDEN, f'{U}failed to copy: httpReadSeeker: failed open: unexpected status code https://reg.example.net/v2/x/blobs/{D}?verify=1: 403 Forbidden'),
    (PullCause.FORBIDDEN, f'{R}failed to authorize: failed to fetch oauth token: unexpected status from GET request to https://auth.example.net/token?service=reg.example.net&sig=x: 403 Forbidden'),
    (PullCause.STORAGE_REFUSES, f'{U}failed to copy: httpReadSeeker: failed open: unexpected status code https://cdn.example.net/registry-v2/docker/registry/v2/blobs/{D}/data?expires=1&signature=a&verify=b: 403 Forbidden'),
    (PullCause.NO_PROGRAM, f'{X}error getting credentials: exec: "docker-credential-lab": executable file not found in $PATH'),
    (PullCause.STORAGE_REFUSES, f'{U}failed to copy: httpReadSeeker: failed open: unexpected status code https://bucket.s3.example.net/blobs/{D}/data?X-Amz-Expires=1200&X-Amz-Signature=%5BREDACTED%5D: 403 Forbidden'),
    (PullCause.STORAGE_REFUSES, f'{U}failed to copy: httpReadSeeker: failed open: unexpected status from GET request to https://store.blob.example.net/a/{D}/data?se=2026-01-01&sig=x: 403 This request is not authorized'),
    (PullCause.DAMAGED, f'{X}failed to pull image "{IMAGE}": failed commit on ref "layer-{D}": unexpected commit size 13852439, expected 13804441: unknown'),
    (PullCause.DAMAGED, f'{DD}manifest verification failed for digest {D}'),
    (PullCause.LEFTOVERS, f'{DD}failed to register layer: rename /var/lib/docker/image/overlay2/layerdb/tmp/write-set-1 /var/lib/docker/image/overlay2/layerdb/sha256/4a2d0c3f7f7c: directory not empty'),
    (PullCause.NO_MEMORY, f'{U}failed to extract layer {D}: mount callback failed on /var/lib/containerd/tmpmounts/containerd-mount1: fork/exec /usr/bin/unpigz: cannot allocate memory: unknown'),
    (PullCause.NO_MEMORY, f'{X}failed to register layer: Error processing tar file(exit status 1): write /app/a.js: cannot allocate memory'),
    (PullCause.NO_RIGHT, f'{X}writing blob: adding layer with blob "{D}": Error processing tar file(exit status 1): Error while loading /: Permission denied'),
    (PullCause.NO_RIGHT, f'{U}failed to extract layer {D}: failed to convert whiteout file "etc/.wh.x": operation not permitted: unknown'),
    (PullCause.NO_RIGHT, f'{DD}failed to register layer: mknod /dev/console: operation not permitted'),
    (PullCause.NO_ATTRIBUTES, f'{U}failed to extract layer {D}: lsetxattr security.capability /usr/bin/ping: operation not supported: unknown'),
    (PullCause.NO_PROGRAM, f'{U}failed to prepare extraction snapshot "extract-1-x {D}": failed to mount: exec: "mount.fuse": executable file not found in $PATH'),
    (PullCause.LAYER_KIND, f'{U}failed to extract layer {D}: failed to get stream processor for application/vnd.in-toto+json: no processor for media-type: unknown'),
    (PullCause.NO_KEY, f'{U}failed to extract layer {D}: call to unpacker failed: no suitable key unwrapper found or none of the private keys could be used for decryption: unknown'),
    (PullCause.ARTIFACT, f'{X}parsing image configuration: unsupported image-specific operation on artifact with type "application/vnd.cncf.model.manifest.v1+json"'),
    (PullCause.ARTIFACT, f'{DD}Encountered remote "application/vnd.cncf.helm.config.v1+json"(unknown) when fetching'),
    (PullCause.MISMATCH, f'{U}failed to unpack image on snapshotter overlayfs: mismatched image rootfs and manifest layers'),
    (PullCause.NO_IMAGE, 'failed to pull image "docker.io/x/y:1": failed to pull and unpack image "docker.io/x/y:1": failed to resolve reference "docker.io/x/y:1": docker.io/x/y:1: not found'),
)  # fmt: skip


LIKELY = (
    (PullCause.DENIED_OTHERWISE, f'{X}initializing source docker://{IMAGE}: reading manifest 1 in x/y: denied: this image is quarantined'),
    (PullCause.SLOW_ANSWER, f'{U}failed to copy: httpReadSeeker: failed open: failed to do request: Get "https://reg.example.net/v2/x/blobs/{D}": context deadline exceeded'),
    (PullCause.SLOW_ANSWER, f'{DD}Get "https://reg.example.net/v2/shop/web/manifests/1": context deadline exceeded'),
    (PullCause.NO_OWNER, f'{X}writing blob: adding layer with blob "{D}": processing tar file(potentially insufficient UIDs or GIDs available in user namespace (requested 0:42 for /etc/gshadow): Check /etc/subuid and /etc/subgid if configured locally: lchown /etc/gshadow: invalid argument): exit status 1'),
    (PullCause.KILLED, f'{U}failed to extract layer {D}: mount callback failed on /var/lib/containerd/tmpmounts/containerd-mount1: signal: killed: unknown'),
    (PullCause.UNPACK, f'{U}failed to extract layer {D}: exit status 1: unpigz: skipping: <stdin>: corrupted -- crc32 mismatch'),
    (PullCause.SNAPSHOTS, f'{DD}failed to register layer: symlink ../4c0a77/diff /var/lib/docker/overlay2/l/ABC: no such file or directory'),
    (PullCause.WEB_PAGE, f'{X}Error response from daemon: missing or empty Content-Type header'),
    (PullCause.WEB_PAGE, f'{X}initializing source docker://{IMAGE}: pinging container registry reg.example.net: invalid status code from registry 302 (Found)'),
    (PullCause.UNREACHABLE, 'RegistryUnavailable'),
    (PullCause.UNPACK, f'{U}failed to extract layer {D}: unexpected EOF: unknown'),
    (PullCause.UNPACK, f'{U}failed to extract layer {D}: mount callback failed on /var/lib/containerd/tmpmounts/containerd-mount1: unexpected EOF: unknown'),
    (PullCause.UNPACK, f'{U}failed to extract layer (application/vnd.oci.image.layer.v1.tar+gzip {D}) to overlayfs as "extract-1-x {D}": unexpected EOF'),
    (PullCause.UNPACK, f'{U}failed to extract layer {D}: gzip: invalid header: unknown'),
    (PullCause.UNPACK, f'{U}failed to extract layer {D}: archive/tar: invalid tar header: unknown'),
    (PullCause.UNPACK, f'{X}failed to register layer: Error processing tar file(exit status 1): unexpected EOF'),
    (PullCause.UNPACK, f'{X}failed to register layer: ApplyLayer exit status 1 stdout:  stderr: unexpected EOF'),
    (PullCause.UNPACK, f'{DD}failed to register layer: flate: corrupt input before offset 4711'),
    (PullCause.UNPACK, f'{X}copying system image from manifest list: writing blob: adding layer with blob "{D}": processing tar file(unexpected EOF): exit status 1'),
    (PullCause.UNPACK, f'{X}writing blob: adding layer with blob "{D}"/""/"{D}": unpacking failed (error: exit status 1; output: archive/tar: invalid tar header)'),
    (PullCause.UNPACK, f'{X}gzip: invalid checksum'),
    (PullCause.RESET, f'{DD}unexpected EOF'),
)  # fmt: skip


@pytest.mark.parametrize(("cause", "text"), FORMS, ids=lambda value: str(value)[-50:])
def test_a_reported_error_is_read_for_what_it_is(cause: PullCause, text: str) -> None:
    for printed in (text, text.replace('"', '\\"'), f'"{text}"'.replace('"', '\\\\\\"')):
        error = read_error(printed)
        assert (error.cause, error.confidence) == (cause, Confidence.CERTAIN), error


@pytest.mark.parametrize(("cause", "text"), LIKELY, ids=lambda value: str(value)[-50:])
def test_words_that_others_could_answer_too_are_likely(cause: PullCause, text: str) -> None:
    error = read_error(text)
    assert (error.cause, error.confidence) == (cause, Confidence.LIKELY), error


UNKNOWN = (
    f"{U}failed to extract layer {D}: failed to mount /var/lib/containerd/tmpmounts/containerd-mount1: no such file or directory: unknown",
    f"{U}unable to initialize unpacker: no unpack platforms defined: invalid argument",
    f"{X}failed to get snapshotter: snapshotter overlayfs was not found: not found",
    f'{R}failed to do request: Head "https://reg.example.net/v2/x": authenticationrequired',
    f"{X}processing tar file(: exit status 1",
    f"{X}unpacking failed (error: exit status 1; output: )",
    f"{X}StatusCode: 4033, x",
    f"{X}mkdir /sys/fs/cgroup/a: input/output error",
)
"""Forms that more than one thing can produce, or that nobody has explained."""


@pytest.mark.parametrize("text", UNKNOWN, ids=lambda value: str(value)[-50:])
def test_a_form_that_is_not_known_has_no_cause(text: str) -> None:
    error = read_error(text)
    assert (error.cause, error.confidence) == (None, Confidence.UNKNOWN), error


HOSTS = (
    (
        f"{R}pulling from host mirror.example.com failed with status code [manifests 1]: 403 Forbidden",
        "mirror.example.com",
    ),
    (
        f"{X}pinging container registry reg.example.net:5000: dial tcp: lookup reg.example.net: no such host",
        "reg.example.net",
    ),
    (f"{X}reading manifest 1 in quay.io/x/y: manifest unknown", "quay.io"),
    (f'{R}failed to do request: Head "https://mirror.example.com:81/v2/x?ns=docker.io": EOF', "mirror.example.com:81"),
    (
        f"{R}pulling from host 127.0.0.1:65001 failed with status code [manifests 1]: 500 Internal Server Error",
        "127.0.0.1:65001",
    ),
    (f"{R}pulling from host [::1]:5000 failed with status code [manifests 1]: 500 Internal Server Error", "[::1]:5000"),
    (f"{DD}toomanyrequests: You have reached your pull rate limit: https://www.docker.com/increase-rate-limit", ""),
    (f"{DD}unauthorized: follow the steps in: https://docs.example.com/authentication", ""),
    (f"{X}something else", ""),
)


@pytest.mark.parametrize(("text", "host"), HOSTS)
def test_the_host_that_was_asked_is_read_from_the_words_too(text: str, host: str) -> None:
    assert read_error(text).host == host


def test_of_joined_errors_the_first_one_counts() -> None:
    """containerd#12811: a fetch in chunks joins the error of each chunk."""
    error = read_error(f"{U}context canceled\naborted\naborted\naborted")
    assert (error.cause, error.confidence) == (PullCause.CANCELLED, Confidence.CERTAIN)
    assert read_error("\n\n").cause is None
    assert read_error("errors:\n").cause is None


def test_a_mirror_of_containerd_is_told_as_one() -> None:
    """containerd asks with ``ns=`` only where the host is not the registry's own."""
    error = read_error(
        f"{R}unexpected status from HEAD request to https://127.0.0.1:6443/v2/x/manifests/1?ns=docker.io: 500 Internal Server Error"
    )
    assert (error.host, error.mirror_of) == ("127.0.0.1:6443", "docker.io")
    assert (
        read_error(
            f"{R}unexpected status from HEAD request to https://reg.example.net/v2/x/manifests/1: 500 Internal Server Error"
        ).mirror_of
        == ""
    )


@pytest.mark.parametrize(
    "url",
    [
        "https://reg.example.net/v2/x/manifests/1?ns=reg.example.net",
        "https://registry-1.docker.io/v2/library/x/manifests/1?ns=docker.io",
        "https://cdn.example.net/data?x=1&ns=docker.io",
        "https://cdn.example.net/data?ns=production",
    ],
)
def test_a_url_with_a_key_ns_is_not_always_of_a_mirror(url: str) -> None:
    error = read_error(f"{R}unexpected status from HEAD request to {url}: 500 Internal Server Error")
    assert error.cause is PullCause.SERVER
    assert error.mirror_of == ""


def test_what_mirrors_answered_is_kept_beside_what_the_registry_answered() -> None:
    error = read_error(
        f'(Mirrors also failed: [m.example.net/a:1: pinging container registry m.example.net: Get "https://m.example.net/v2/": EOF]): {IMAGE}: reading manifest 1 in x: manifest unknown'
    )
    assert error.cause is PullCause.NO_IMAGE
    assert error.mirrors.endswith('"https://m.example.net/v2/": EOF')


def test_tries_with_several_credentials_that_differ_are_told_beside_each_other() -> None:
    """CRI-O 1.33: the first try lost its connection, the second one had no access."""
    one = 'unable to pull image or OCI artifact: pull image err: parsing image configuration: Get "https://cdn.example.net/x": EOF; artifact err: provided artifact is a container image'
    other = f"unable to pull image or OCI artifact: pull image err: initializing source docker://{IMAGE}: reading manifest 1 in x/y: unauthorized: access; artifact err: get manifest: unauthorized: access"
    error = read_error(f"[{one}, {other}]")
    assert (error.cause, error.confidence, error.others) == (PullCause.CREDENTIALS, Confidence.LIKELY, "EOF")


def test_the_registrys_own_text_is_shown_where_it_refuses_a_request() -> None:
    error = read_error(
        f"{U}failed to copy: httpReadSeeker: failed open: unexpected status code https://reg.example.net/v2/a/manifests/{D}: 412 Precondition Failed - Server message: unknown: current image with 5 vulnerabilities cannot be pulled due to configured policy"
    )
    assert error.cause is PullCause.REFUSED
    assert (
        error.words
        == "412 Precondition Failed: unknown: current image with 5 vulnerabilities cannot be pulled due to configured policy"
    )

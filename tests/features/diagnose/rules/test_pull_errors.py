"""A failed pull's error is read by its form. Each text is as its program prints it, with names of ours."""

from __future__ import annotations

import random

import pytest

from rollout.features.diagnose.rules.finding import Confidence
from rollout.features.diagnose.rules.pull_errors import PullCause, read_error

Q = '"reg.example.net/shop/web:1"'
D = "sha256:" + "4a2d0c3f7f7c5b1f6f0c8f0f1f9d1f0aa35d58d0fdf7bbd0a3d5a3aa1fb0f1cd"
UNPACK = f"rpc error: code = Unknown desc = failed to pull and unpack image {Q}: "
RESOLVE = f"{UNPACK}failed to resolve reference {Q}: "
HEAD = f'{RESOLVE}failed to do request: Head "https://reg.example.net/v2/shop/web/manifests/1": '
DOCKERD = "rpc error: code = Unknown desc = Error response from daemon: "
GET = f'{DOCKERD}Get "https://reg.example.net/v2/": '
CRIO = "rpc error: code = Unknown desc = initializing source docker://reg.example.net/shop/web:1: "
PING = f'{CRIO}pinging container registry reg.example.net: Get "https://reg.example.net/v2/": '

WHOLE = (
    # containerd 1.5 to 2.3
    (f"rpc error: code = NotFound desc = failed to pull and unpack image {Q}: failed to resolve reference {Q}: reg.example.net/shop/web:1: not found", PullCause.NO_IMAGE),
    (f"{UNPACK}failed to prepare extraction snapshot \"extract-795119289-7389 {D}\": parent snapshot {D} does not exist: not found", PullCause.SNAPSHOTS),
    (f"{UNPACK}failed to copy: write /var/lib/containerd/io.containerd.content.v1.content/ingest/0a403be11f429d401d8e/data: no space left on device", PullCause.DISK_FULL),
    (f"{UNPACK}failed to extract layer {D}: mount callback failed on /var/lib/containerd/tmpmounts/containerd-mount403: write /var/lib/containerd/tmpmounts/containerd-mount403/usr/lib/x: no space left on device: unknown", PullCause.DISK_FULL),
    (f"{UNPACK}failed to extract layer {D}: mkdir /var/lib/containerd/x: read-only file system", PullCause.READ_ONLY),
    (f"{UNPACK}failed to copy: write /var/lib/containerd/x: disk quota exceeded", PullCause.QUOTA),
    (f"{RESOLVE}no match for platform in manifest: not found", PullCause.PLATFORM),
    (f"{UNPACK}no match for platform in manifest {D}: not found", PullCause.PLATFORM),
    (f"{RESOLVE}unexpected status from HEAD request to https://reg.example.net/v2/shop/web/manifests/1: 403 Forbidden", PullCause.FORBIDDEN),
    (f"{RESOLVE}unexpected status from HEAD request to https://registry.k8s.io/v2/pause/manifests/1: 403 Forbidden", PullCause.ADDRESS_BLOCKED),
    (f"{RESOLVE}failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://reg.example.net/token?scope=repository%3Aa%3Apull&service=x: 401 Unauthorized", PullCause.CREDENTIALS),
    (f"{RESOLVE}failed to authorize: failed to fetch oauth token: unexpected status: 401 Unauthorized", PullCause.CREDENTIALS),
    (f"{RESOLVE}pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed", PullCause.NO_IMAGE_OR_ACCESS),
    (f"{UNPACK}failed to copy: httpReadSeeker: failed open: unexpected status code https://reg.example.net/v2/shop/web/manifests/{D}: 429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit.", PullCause.RATE),
    (f"{RESOLVE}unexpected status from HEAD request to https://reg.example.net/v2/shop/web/manifests/1: 503 Service Unavailable", PullCause.SERVER),
    (f"{HEAD}dial tcp: lookup reg.example.net on 10.0.0.2:53: no such host", PullCause.NO_NAME),
    (f"{HEAD}dial tcp: lookup reg.example.net on 10.0.0.2:53: read udp 10.0.3.7:40403->10.0.0.2:53: i/o timeout", PullCause.DNS_SILENT),
    (f"{HEAD}dial tcp: lookup reg.example.net: Temporary failure in name resolution", PullCause.DNS_SILENT),
    (f"{HEAD}proxyconnect tcp: dial tcp 10.0.0.9:3128: connect: connection refused", PullCause.PROXY),
    (f"{HEAD}Proxy Authentication Required", PullCause.PROXY_REFUSES),
    (f"{HEAD}Forbidden", PullCause.PROXY_REFUSES),
    (f"{HEAD}dial tcp 192.0.2.4:443: connect: connection refused", PullCause.UNREACHABLE),
    (f"{HEAD}dial tcp 192.0.2.4:443: i/o timeout", PullCause.UNREACHABLE),
    (f"{HEAD}dial tcp [2001:db8::4]:443: connect: network is unreachable", PullCause.UNREACHABLE),
    (f"{HEAD}net/http: TLS handshake timeout", PullCause.SLOW_ANSWER),
    (f"{HEAD}tls: failed to verify certificate: x509: certificate signed by unknown authority", PullCause.CERTIFICATE),
    (f"{HEAD}x509: certificate is valid for a.example.net, not reg.example.net", PullCause.CERTIFICATE_NAME),
    (f"{HEAD}tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2021-01-01T00:04:03Z is before 2026-04-03T00:00:00Z", PullCause.CERTIFICATE_TIME),
    (f"{HEAD}http: server gave HTTP response to HTTPS client", PullCause.NOT_TLS),
    (f"{HEAD}EOF", PullCause.RESET),
    (f"{UNPACK}failed to copy: read tcp 10.0.3.7:40403->192.0.2.4:443: read: connection reset by peer", PullCause.RESET),
    (f"{UNPACK}failed commit on ref \"layer-{D}\": unexpected commit digest {D}, expected {D}: failed precondition", PullCause.DAMAGED),
    (f"{UNPACK}failed to copy: (*service).Write failed: rpc error: code = Unavailable desc = ref layer-{D} locked for 1m3.403s (since 2026-05-06 07:08:09.403 +0000 UTC m=+429.401): unavailable", PullCause.LOCKED),
    (f"rpc error: code = Canceled desc = failed to pull and unpack image {Q}: failed to resolve reference {Q}: failed to do request: Head \"https://reg.example.net/v2/shop/web/manifests/1\": context canceled", PullCause.CANCELLED),
    # dockerd and cri-dockerd
    (f"{DOCKERD}manifest for reg.example.net/shop/web:1 not found: manifest unknown: manifest unknown", PullCause.NO_IMAGE),
    (f"{DOCKERD}pull access denied for shop/web, repository does not exist or may require 'docker login': denied: requested access to the resource is denied", PullCause.NO_IMAGE_OR_ACCESS),
    (f"{DOCKERD}unauthorized: authentication required", PullCause.CREDENTIALS),
    (f"{GET}unauthorized: no space left on device", PullCause.CREDENTIALS),
    (f"{DOCKERD}Head \"https://reg.example.net/v2/shop/web/manifests/1\": no basic auth credentials", PullCause.CREDENTIALS),
    (f"{DOCKERD}toomanyrequests: You have reached your pull rate limit. You may increase the limit by authenticating: https://example.net/limit", PullCause.RATE),
    (f"{DOCKERD}no matching manifest for linux/arm64/v8 in the manifest list entries", PullCause.PLATFORM),
    (f"{DOCKERD}error parsing HTTP 200 response body: invalid character '<' looking for beginning of value: \"<html>403</html>\"", PullCause.WEB_PAGE),
    (f"{DOCKERD}write /var/lib/docker/tmp/GetImageBlob140356789: no space left on device", PullCause.DISK_FULL),
    (f"{DOCKERD}filesystem layer verification failed for digest {D}", PullCause.DAMAGED),
    (f"{GET}net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)", PullCause.SLOW_ANSWER),
    (f"{GET}dial tcp: lookup reg.example.net on [2001:db8::1]:53: server misbehaving", PullCause.DNS_SILENT),
    (f"{GET}context deadline exceeded", PullCause.SLOW_ANSWER),
    (f"{DOCKERD}received unexpected HTTP status: 500 Internal Server Error", PullCause.SERVER),
    ("rpc error: code = Canceled desc = context canceled", PullCause.CANCELLED),
    ("rpc error: code = Unknown desc = Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", PullCause.RUNTIME_AWAY),
    # CRI-O
    (f"{CRIO}reading manifest 1 in reg.example.net/shop/web: manifest unknown", PullCause.NO_IMAGE),
    (f"{CRIO}reading manifest 1 in reg.example.net/shop/web: unauthorized: access to the requested resource is not authorized", PullCause.CREDENTIALS),
    (f"{CRIO}reading manifest 1 in reg.example.net/shop/web: toomanyrequests: 401 403 not found", PullCause.RATE),
    (f"{PING}dial tcp 192.0.2.4:443: connect: no route to host", PullCause.UNREACHABLE),
    ("rpc error: code = Unknown desc = choosing image instance: no image found in image index for architecture arm64, variant \"v8\", OS linux", PullCause.PLATFORM),
    ("rpc error: code = Unknown desc = copying system image from manifest list: Source image rejected: A signature was required, but no signature exists", PullCause.SIGNATURE),
    ("rpc error: code = Canceled desc = copying system image from manifest list: copying config: context canceled", PullCause.CANCELLED),
    (f"{CRIO}unable to retrieve auth token: invalid username/password: unauthorized: incorrect username or password", PullCause.CREDENTIALS),
    # gRPC
    ('rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused"', PullCause.RUNTIME_AWAY),
    ("rpc error: code = Unavailable desc = error reading from server: EOF", PullCause.RUNTIME_AWAY),
)  # fmt: skip


@pytest.mark.parametrize(("text", "cause"), WHOLE, ids=lambda value: str(value)[-40:])
def test_a_whole_form_is_certain(text: str, cause: PullCause) -> None:
    for printed in (text, text.replace('"', '\\"'), f'"{text}"'.replace('"', '\\\\\\"')):
        error = read_error(printed)
        assert (error.cause, error.confidence) == (cause, Confidence.CERTAIN), error


def test_a_full_disk_in_a_form_that_is_not_known_is_likely() -> None:
    error = read_error(f"{UNPACK}something new: no space left on device")
    assert (error.cause, error.confidence, error.words) == (
        PullCause.DISK_FULL,
        Confidence.LIKELY,
        "no space left on device",
    )


@pytest.mark.parametrize(
    "text", ["", "pull QPS exceeded", "a new kind of trouble", "403", "x: y: 429 of them", ": :", '"']
)
def test_what_is_not_known_has_no_cause(text: str) -> None:
    assert read_error(text).cause is None


def test_the_deadline_of_an_unnamed_program_is_not_blamed_on_the_registry() -> None:
    """cri-dockerd before 0.2.6 ended each pull after its own 2 minutes (cri-dockerd#105)."""
    error = read_error("rpc error: code = Unknown desc = context deadline exceeded")
    assert (error.cause, error.confidence) == (PullCause.OWN_LIMIT, Confidence.LIKELY)


def test_numbers_in_digests_names_and_addresses_are_no_cause() -> None:
    dice = random.Random(7)  # noqa: S311 - a sample, no secret
    for _ in range(2000):
        digest = "".join(dice.choice("0123456789abcdef") for _ in range(64))
        number = dice.choice(("401", "403", "429", "500"))
        name = f"x{number}y{dice.randrange(1000)}"
        digest = digest[:20] + number + digest[23:]
        text = f'{UNPACK}failed to read "{name}: {number}" of sha256:{digest} at /var/lib/{name}/{number}: bad luck with 10.0.{number[0]}.3:{number}'
        assert read_error(text).cause is None, text


def test_the_host_is_the_one_that_was_asked() -> None:
    text = f'{RESOLVE}failed to do request: Head "https://mirror.example.com:81/v2/shop/web/manifests/1?ns=reg.example.net": dial tcp 192.0.2.103:81: i/o timeout'
    assert read_error(text).host == "mirror.example.com:81"


def test_what_stands_behind_a_registrys_code_is_the_registrys_own_text() -> None:
    told = read_error(f"{DOCKERD}denied: write /var/lib/x: no space left on device")
    assert told.cause is PullCause.NO_IMAGE_OR_ACCESS

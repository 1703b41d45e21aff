"""What a kubelet's server, locks and cloud provider require of the configuration."""

from __future__ import annotations

from collections.abc import Iterator

from rollout.kubelet.configuration import go_values
from rollout.kubelet.configuration.flags import Flags
from rollout.kubelet.configuration.go_urls import UrlError, scheme_of
from rollout.kubelet.configuration.go_values import quoted
from rollout.kubelet.configuration.validation.checked import Checked, Complaint

# Names that Go's TLS knows: ``component-base/cli/flag/ciphersuites_flag.go``. The secure and the insecure names
# together.


CIPHER_SUITES = frozenset({
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
})  # fmt: skip

VERSIONS = frozenset({"VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"})

REQUIRED_BY_HTTP2 = frozenset({"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"})
"""RFC 7540, 9.2.2: golang.org/x/net/http2 requires one of them in a list of suites."""


_WRAPPED_SINCE = 24
"""From this minor on an error names the step that failed."""

_CLOUDS = {"aws": 26, "openstack": 25, "azure": 29, "vsphere": 29, "gce": 30}
_BUILT_IN_UNTIL, _CLOUDS_UNTIL = 30, 33
"""The last minor with a provider built in: openstack was removed in 1.26, aws in 1.27, azure and vsphere by 1.30."""


_CURVES = frozenset({23, 24, 25, 29, 4587, 4588, 4589})
"""``CurveID`` of crypto/tls in Go 1.26, with which 1.36 is built: P-256, P-384, P-521, X25519 and three with ML-KEM."""
_MOST_CURVE = 2**16 - 1


def tls(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """Names and numbers that Go does not know (``InitializeTLS`` in ``cmd/kubelet/app/server.go``)."""
    ahead = "failed to construct kubelet dependencies: " if checked.minor >= _WRAPPED_SINCE else ""
    for name in checked.entries("tlsCipherSuites"):
        if name not in CIPHER_SUITES:
            yield Complaint("tlsCipherSuites", f"{ahead}Cipher suite {name} not supported or doesn't exist")
    version = checked.text("tlsMinVersion")
    if version and version not in VERSIONS:
        yield Complaint("tlsMinVersion", f"{ahead}unknown tls version {quoted(version)}")
    curves = checked.entries("tlsCurvePreferences")
    for at, number in enumerate(curves):
        if message := _no_curve(number, curves[:at]):
            yield Complaint("tlsCurvePreferences", ahead + message)


def _no_curve(number: int, before: list[int]) -> str:
    """``tlsCurvePreferences``, since 1.36 (component-base ``cli/flag/curves_flag.go``)."""
    if not 1 <= number <= _MOST_CURVE:
        return f"curve preference {number} is out of range (must be 1-{_MOST_CURVE})"
    if number in before:
        return f"duplicate curve preference {number}"
    return "" if number in _CURVES else f"curve preference {number} is not supported by the current Go version"


def http2(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """Go's HTTP/2 server requires one of two suites, except with TLS 1.3, which ignores the list."""
    suites = checked.entries("tlsCipherSuites")
    asked = checked.flag("enableServer") and checked.text("tlsMinVersion") != "VersionTLS13"
    if suites and asked and not REQUIRED_BY_HTTP2.intersection(suites):
        message = "http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher"
        either = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
        yield Complaint("tlsCipherSuites", f"{message} (need at least one of {either})")


def lock(_: Checked, flags: Flags) -> Iterator[Complaint]:
    """``--exit-on-lock-contention`` needs a lock file."""
    if flags.values.get("--exit-on-lock-contention") and not flags.text("--lock-file"):
        yield Complaint("", "cannot exit on lock file contention: no lock file specified")


def authorization(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """``BuildAuthz``."""
    mode = checked.inner("authorization").get("mode")
    if not mode:
        yield Complaint("authorization", "no authorization mode specified")
    elif mode not in {"AlwaysAllow", "Webhook"}:
        yield Complaint("authorization", f"unknown authorization mode {mode}")


def cloud_provider(checked: Checked, flags: Flags) -> Iterator[Complaint]:
    """Until 1.30 providers missing in the minor are refused; 1.31 to 1.33 accept only ``external``, later ones any."""
    name = flags.text("--cloud-provider")
    if name in {"", "external"} or checked.minor > _CLOUDS_UNTIL:
        return
    disabled = checked.minor > _BUILT_IN_UNTIL or (name in _CLOUDS and checked.gate_on("DisableCloudProviders"))
    if disabled:
        message = "was specified, but built-in cloud providers are disabled. Please set --cloud-provider=external"
        yield Complaint("", f"cloud provider {quoted(name)} {message} and migrate to an external cloud provider")
    elif _CLOUDS.get(name, 0) < checked.minor:
        yield Complaint("", f"unknown cloud provider {quoted(name)}")


def node_ips(checked: Checked, flags: Flags) -> Iterator[Complaint]:
    """``--node-ip``: one address, or one of each family where two are allowed. Other words only cause a warning."""
    node_ip, cloud = flags.text("--node-ip"), flags.text("--cloud-provider")
    addresses = [known for word in node_ip.split(",") if (known := go_values.parsed_ip(word.strip())) is not None]
    if len(addresses) < 2:
        return
    gate = "CloudDualStackNodeIPs"
    allowed = cloud == "" or (cloud == "external" and (checked.gate_on(gate) or checked.minor > _GATED_UNTIL))
    if len(addresses) == 2 and checked.gate_off("IPv6DualStack"):
        yield Complaint(
            "", f"dual-stack --node-ip {quoted(node_ip)} not supported in a cluster where dual-stack is disabled"
        )
    elif len(addresses) > 2 or addresses[0].version == addresses[1].version:
        yield Complaint(
            "", f"bad --node-ip {quoted(node_ip)}: must contain either a single IP or a dual-stack pair of IPs"
        )
    elif not allowed:
        yield Complaint("", f"bad --node-ip {quoted(node_ip)}: dual-stack not supported in this configuration")
    elif any(each.is_unspecified for each in addresses):
        yield Complaint("", f"bad --node-ip {quoted(node_ip)}: dual-stack node IP cannot include '0.0.0.0' or '::'")


_GATED_UNTIL = 31
"""The gate CloudDualStackNodeIPs, stable and on since 1.30, is removed after this minor."""


def seccomp(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """A gate of its own from 1.22 to 1.26, off until 1.25."""
    if checked.flag("seccompDefault") and checked.gate_off("SeccompDefault"):
        message = "the SeccompDefault feature gate must be enabled in order to use the SeccompDefault configuration"
        yield Complaint("seccompDefault", message)


def endpoints(checked: Checked, flags: Flags) -> Iterator[Complaint]:
    """Runtime and image service are reached through Unix sockets only, dockershim's too (``PreInitRuntimeService``).

    Source: ``parseEndpointWithFallbackProtocol`` (``pkg/kubelet/util/util_unix.go`` of 1.20.2, 1.23 to 1.28; later
    cri-client): a path without a scheme is a socket.
    """
    for field, flag in (
        ("containerRuntimeEndpoint", "--container-runtime-endpoint"),
        ("imageServiceEndpoint", "--image-service-endpoint"),
    ):
        message = _no_socket(checked.text(field) or flags.text(flag))
        if message:
            yield Complaint(field, message)


def _no_socket(endpoint: str) -> str:
    try:
        scheme = scheme_of(endpoint)
    except UrlError:
        scheme = ""
    if not scheme:
        try:
            scheme = scheme_of(f"unix://{endpoint}")
        except UrlError as error:
            return str(error)
    if scheme == "tcp":
        return "only support unix socket endpoint"
    return "" if scheme == "unix" else f"protocol {quoted(scheme)} not supported"


def address(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """The server's goroutine ends the process when it cannot listen."""
    if checked.flag("enableServer") and go_values.parsed_ip(checked.text("address")) is None:
        yield Complaint("address", "listen tcp: lookup <nil>: no such host")


def ports(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """Two servers on one port (a healthz port in use is only logged)."""
    port = checked.number("port")
    if checked.flag("enableServer") and port and port == checked.number("readOnlyPort"):
        yield Complaint("readOnlyPort", f"listen tcp {checked.text('address')}:{port}: bind: address already in use")

"""What a kubelet's own server, its locks and its cloud ask of the configuration."""

from __future__ import annotations

from collections.abc import Iterator

from rollout.kubelet.configuration import go_values
from rollout.kubelet.configuration.flags import Flags
from rollout.kubelet.configuration.go_values import GoValueError, quoted
from rollout.kubelet.configuration.tls_names import CIPHER_SUITES, REQUIRED_BY_HTTP2, VERSIONS
from rollout.kubelet.configuration.validation.checked import Checked, Complaint

_CLOUDS = frozenset({"", "external", "aws", "azure", "gce", "openstack", "vsphere"})


def tls(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """Names that Go does not know."""
    for name in checked.entries("tlsCipherSuites"):
        if name not in CIPHER_SUITES:
            yield Complaint("tlsCipherSuites", f"Cipher suite {name} not supported or doesn't exist")
    version = checked.text("tlsMinVersion")
    if version and version not in VERSIONS:
        yield Complaint("tlsMinVersion", f"unknown tls version {quoted(version)}")


def http2(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """Go's HTTP/2 server asks for one of two suites, unless TLS 1.3 makes the list meaningless."""
    suites = checked.entries("tlsCipherSuites")
    asked = checked.flag("enableServer") and checked.text("tlsMinVersion") != "VersionTLS13"
    if suites and asked and not REQUIRED_BY_HTTP2.intersection(suites):
        said = "http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher"
        either = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
        yield Complaint("tlsCipherSuites", f"{said} (need at least one of {either})")


def lock(_: Checked, flags: Flags) -> Iterator[Complaint]:
    """Whose contention?"""
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
    """Until 1.30 a name that no provider ever had; 1.31 to 1.33 take none but ``external``, later ones any."""
    name = flags.text("--cloud-provider")
    if checked.minor <= 30 and name not in _CLOUDS:
        yield Complaint("", f"unknown cloud provider {quoted(name)}")
    if 31 <= checked.minor <= 33 and name not in {"", "external"}:
        said = "was specified, but built-in cloud providers are disabled. Please set --cloud-provider=external"
        yield Complaint("", f"cloud provider {quoted(name)} {said} and migrate to an external cloud provider")


def address(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """The server's goroutine ends the process when it cannot listen."""
    try:
        go_values.ip_address(checked.text("address"))
    except GoValueError:
        if checked.flag("enableServer"):
            yield Complaint("address", "listen tcp: lookup <nil>: no such host")


def ports(checked: Checked, _: Flags) -> Iterator[Complaint]:
    """Two servers on one port (a port of healthz that is taken is only logged)."""
    port = checked.number("port")
    if checked.flag("enableServer") and port and port == checked.number("readOnlyPort"):
        yield Complaint("readOnlyPort", f"listen tcp {checked.text('address')}:{port}: bind: address already in use")

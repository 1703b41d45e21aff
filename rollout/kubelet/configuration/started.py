"""What a kubelet itself changes in its configuration on the way up, as ``/configz`` shows it afterwards."""

from __future__ import annotations

from rollout.kubelet.configuration.decoding import Object
from rollout.kubelet.configuration.flags import Flags
from rollout.kubelet.configuration.validation.allocatable import cpus

_CERTIFICATES = "/var/lib/kubelet/pki"


def as_started(configuration: Object, flags: Flags) -> Object:
    """The configuration of a kubelet that runs."""
    return _reserved_cpus(_own_certificate(configuration, flags))


def _own_certificate(configuration: Object, flags: Flags) -> Object:
    """It makes one for itself when it is given none (``InitializeTLS``)."""
    given = configuration.get("tlsCertFile") or configuration.get("tlsPrivateKeyFile")
    if given or configuration.get("serverTLSBootstrap") is True:
        return configuration
    folder = flags.text("--cert-dir") or _CERTIFICATES
    own = {"tlsCertFile": f"{folder}/kubelet.crt", "tlsPrivateKeyFile": f"{folder}/kubelet.key"}
    return {**configuration, **own}


def _reserved_cpus(configuration: Object) -> Object:
    """``reservedSystemCPUs`` takes the place of the CPU in both reservations (``run`` in ``cmd/kubelet/app/server.go``).

    ``/configz`` was filled before, but shares the maps; one that was nil then is not shown.
    """
    listed = configuration.get("reservedSystemCPUs")
    if not listed:
        return configuration
    full = dict(configuration)
    if full.get("kubeReserved"):
        full["kubeReserved"] = {name: amount for name, amount in full["kubeReserved"].items() if name != "cpu"}
    if full.get("systemReserved") is not None:
        full["systemReserved"] = {**full["systemReserved"], "cpu": str(cpus(listed))}
    return full

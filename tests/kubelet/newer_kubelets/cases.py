"""The cases: those of the kubelet 1.20.2, and newer ones: drop-ins, newer fields, each minor's gates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rollout.kubelet import fields
from rollout.kubelet.configuration import feature_gates
from rollout.kubelet.configuration.outcome import File, Sources
from tests.kubelet.newer_kubelets.drop_ins import DROP_INS
from tests.kubelet.newer_kubelets.newer import BY_KIND, NEWER
from tests.kubelet.real_kubelet.corners.all import CORNERS
from tests.kubelet.real_kubelet.corners.case import HEAD

HERE = "/mnt"
CONFIG = f"{HERE}/config.yaml"
DIRECTORY = f"{HERE}/conf.d"
RUNTIME = f"{HERE}/nobody.sock"
ROOT_DIR = f"{HERE}/kubelet"
BASE = (
    f"--container-runtime-endpoint=unix://{RUNTIME}",
    f"--cert-dir={HERE}/pki",
    f"--root-dir={ROOT_DIR}",
    "--anonymous-auth=true",
    "--authorization-mode=AlwaysAllow",
    "--authentication-token-webhook=false",
    "--v=5",
)
"""The socket of ``empty_cri``. The first recordings had no server: a kubelet that had accepted its configuration ended
when it could not connect. ``--v=5``: it prints the values in force. Flags override the file."""

_CGROUP_V1_FAILS = 35
"""From this minor on a kubelet does not start on cgroup v1, which the recording host had, unless a flag allows it."""

_DROP_INS_FROM = 29
_DROP_IN_GATE = "KUBELET_CONFIG_DROPIN_DIR_ALPHA"


@dataclass(frozen=True, slots=True)
class Newer:
    """``drop_ins``: names below ``--config-dir`` and their contents; ``None``: no such flag."""

    name: str
    config: bytes | None = None
    flags: tuple[str, ...] = ()
    drop_ins: tuple[tuple[str, bytes], ...] | None = None
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The whole command line without the program."""
        config = () if self.config is None else (f"--config={CONFIG}",)
        directory = () if self.drop_ins is None else (f"--config-dir={DIRECTORY}",)
        return (*BASE, *config, *directory, *self.flags)

    @property
    def sources(self) -> Sources:
        """The same as input of rollout's model."""
        config = None if self.config is None else File(CONFIG, self.config)
        found = None
        if self.drop_ins is not None:
            found = tuple(
                File(f"{DIRECTORY}/{name}", content)
                for name, content in sorted(self.drop_ins)
                if name.endswith(".conf")
            )
        return Sources(config, found, self.words, dict(self.environment), cgroup_v1=True)

    @property
    def digest(self) -> str:
        """Digest of the input of the start: a changed case has another one."""
        drop_ins = None if self.drop_ins is None else [(name, content.hex()) for name, content in self.drop_ins]
        said = [self.config.hex() if self.config is not None else None, self.words, drop_ins, self.environment]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:12]


def of_minor(minor: int) -> tuple[Newer, ...]:
    """The cases of a kubelet 1.``minor``, each name once."""
    found = {case.name: case for case in (*_corners(), *_newer_fields(minor), *_gates(minor), *_drop_ins(minor))}
    ahead = ("--fail-cgroupv1=false",) if minor >= _CGROUP_V1_FAILS else ()
    return tuple(replace(case, flags=(*ahead, *case.flags)) for case in found.values())


def _corners() -> Iterator[Newer]:
    for case in CORNERS:
        if not any(word.startswith("--config-dir") for word in case.flags):  # whether it exists depends on the host
            yield Newer(case.name, case.config, case.flags)


def _newer_fields(minor: int) -> Iterator[Newer]:
    """Fields since 1.21, in each kubelet: older kubelets do not know them."""
    for name in sorted(fields.known_fields(minor) | fields.known_fields(36)):
        field = fields.field(name)
        if field is None or field.since <= 20:
            continue
        for value in BY_KIND.get(field.kind, ("null", "abc", "{}", "[]")):
            yield _inside(f"newer: {name}: {value}", f"{name}: {value}")
    for body in NEWER:
        yield _inside(f"newer: {body}", body.replace("; ", "\n"))


def _gates(minor: int) -> Iterator[Newer]:
    every = {name for each in range(20, 37) for name in feature_gates.known_gates(each)} - {
        feature_gates.ALL_ALPHA,
        feature_gates.ALL_BETA,
    }
    for name in sorted(every):
        for word in ("true", "false"):
            yield _inside(f"gate: {name} {word}", f"featureGates:\n  {name}: {word}")


def _drop_ins(minor: int) -> Iterator[Newer]:
    """Not for 1.28: the recorded one was built with another release of the library that merges them."""
    if minor < _DROP_INS_FROM:
        return
    asked = ((_DROP_IN_GATE, "true"),) if minor == _DROP_INS_FROM else ()
    for name, (body, flags, drop_ins) in DROP_INS.items():
        config = None if body is None else f"{HEAD}{body}\n".encode()
        contents = tuple((file, content.encode()) for file, content in drop_ins.items())
        yield Newer(f"drop-in: {name}", config, flags, contents, asked)
    yield Newer("drop-in: no gate in the environment", HEAD.encode(), (), ())


def _inside(name: str, body: str) -> Newer:
    return Newer(name, f"{HEAD}{body}\n".encode())

"""A case: the input of one kubelet's start, and the place in which it starts, which is separate for each kubelet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rollout.kubelet.configuration.outcome import File, Sources

HERE = "/mnt"
"""A file system in memory, in the mount namespace of each worker."""

CONFIG = f"{HERE}/config.yaml"
RUNTIME = f"{HERE}/cri.sock"
BASE_FLAGS = (
    "--container-runtime=remote",
    f"--container-runtime-endpoint=unix://{RUNTIME}",
    f"--cert-dir={HERE}/pki",
    "--anonymous-auth=true",
    "--authorization-mode=AlwaysAllow",
    "--authentication-token-webhook=false",
)
"""Added to every case: a runtime to start on, a certificate that need not be made again, and open access without an API
server, so that ``/configz`` can be read for every file. Flags override the file."""


@dataclass(frozen=True, slots=True)
class Case:
    """``config`` ``None``: the kubelet has no ``--config``. ``flags`` come after the base flags and override them."""

    name: str
    config: bytes | None = None
    flags: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The whole command line without the program."""
        return (*BASE_FLAGS, *(() if self.config is None else (f"--config={CONFIG}",)), *self.flags)

    @property
    def sources(self) -> Sources:
        """The same as input of rollout's model."""
        config = None if self.config is None else File(CONFIG, self.config)
        return Sources(config=config, flags=self.words, cgroup_v1=True)

    def written(self) -> dict[str, Any]:
        """As JSON; bytes that are no UTF-8 are kept as lone surrogates."""
        config = {} if self.config is None else {"config": self.config.decode("utf-8", "surrogateescape")}
        return {"name": self.name, **config, **({"flags": list(self.flags)} if self.flags else {})}


def case_of(written: dict[str, Any]) -> Case:
    """Reads the result of ``written``."""
    config = written.get("config")
    content = None if config is None else config.encode("utf-8", "surrogateescape")
    return Case(written["name"], content, tuple(written.get("flags", ())))

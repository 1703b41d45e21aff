"""The engine of regions, as the options of a command name it: its scheduler, and whether it has the workers of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rollout.core.model.frozen import dataclass
from rollout.core.text.terminal import printable
from rollout.errors import UsageError

if TYPE_CHECKING:
    from rollout.adapters.regions.workers import Scheduler
    from rollout.app.node_worker import NodeAccess


@dataclass(frozen=True, slots=True)
class DaskEngine:
    """Nodes are reached through the workers of regions. ``strict``: a region without a worker is refused at once.

    ``is_away``: it did not answer, and the inventory decides which nodes are reached over this machine's SSH.
    """

    scheduler: str
    certificates: Path | None
    strict: bool = True
    is_away: bool = False

    def connected(self) -> Scheduler:
        """A new connection. ``UsageError``: it cannot be used."""
        if self.is_away:
            from rollout.adapters.regions.workers import NoScheduler

            return NoScheduler()
        try:
            from rollout.adapters.regions.scheduler import DaskScheduler
        except ModuleNotFoundError:
            hint = "pip install 'kubelet-rollout[dask]'"
            raise UsageError("no-dask", "--engine dask needs the extra `dask`", hint=hint) from None
        from rollout.adapters.regions.certificates import CertificateFiles

        return DaskScheduler(self.scheduler, CertificateFiles(self.certificates) if self.certificates else None)

    def check_workers(self, scheduler: Scheduler, access: NodeAccess) -> None:
        """``UsageError`` for zones without a worker that can be used, each with the reason."""
        from rollout.adapters.regions.workers import missing_workers

        missing = missing_workers(scheduler, sorted({target.zone for target in access.targets.values()}))
        if missing:
            said = "; ".join(f"zone {zone}: {why}" for zone, why in missing.items())
            hint = "start a worker that is named after the zone: `dask worker … --name ZONE-1`"
            raise UsageError("region-without-worker", f"nothing was touched: {printable(said, 800)}", hint=hint)

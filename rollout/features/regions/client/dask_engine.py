"""The engine of regions, as the options of a command name it: its scheduler, and whether it has the workers of a plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, TypeVar

from rollout.core.model.frozen import dataclass
from rollout.core.text.terminal import printable
from rollout.errors import UsageError, with_extra

if TYPE_CHECKING:
    from rollout.app.node_access import NodeAccess
    from rollout.features.regions.client.workers import Scheduler


Answer = TypeVar("Answer")

AGAIN_SECONDS = 2.0
_MAY_PASS = frozenset({"scheduler-unusable", "region-without-worker"})


@dataclass(frozen=True, slots=True)
class DaskEngine:
    """Nodes are reached through the workers of regions. ``strict``: a region without a worker is refused at once.

    ``is_away``: it did not answer, and the inventory decides which nodes are reached over this machine's SSH.
    ``patience``: for so many seconds a scheduler that does not answer, or a zone without a worker, is tried again.
    """

    scheduler: str
    certificates: Path | None
    strict: bool = True
    is_away: bool = False
    patience: float = 0.0

    def connected(self) -> Scheduler:
        """A new connection. ``UsageError``: it cannot be used."""
        return self._patiently(self._connected)

    def check_workers(self, scheduler: Scheduler, access: NodeAccess) -> tuple[str, ...]:
        """What is easily overlooked. ``UsageError`` for zones without a worker that can be used, each with the reason."""
        return self._patiently(lambda: self._checked(scheduler, access))

    def _patiently(self, ask: Callable[[], Answer]) -> Answer:
        until = monotonic() + self.patience
        while True:
            try:
                return ask()
            except UsageError as error:
                if error.reference not in _MAY_PASS or monotonic() >= until:
                    raise
            sleep(AGAIN_SECONDS)

    def _connected(self) -> Scheduler:
        if self.is_away:
            from rollout.features.regions.client.workers import NoScheduler

            return NoScheduler()
        try:
            from rollout.features.regions.client.scheduler import DaskScheduler
        except ModuleNotFoundError:
            raise UsageError("no-dask", "--engine dask needs the extra `dask`", hint=with_extra("dask")) from None
        from rollout.features.regions.client.certificates import CertificateFiles

        return DaskScheduler(self.scheduler, CertificateFiles(self.certificates) if self.certificates else None)

    def _checked(self, scheduler: Scheduler, access: NodeAccess) -> tuple[str, ...]:
        from rollout.core.model.inventory import NO_RACK
        from rollout.features.regions.client.workers import RegionWorkers, served_zones

        workers = RegionWorkers(scheduler).connected()
        zones = served_zones(workers, sorted({target.zone for target in access.targets.values()}))
        missing = [each for each in zones if each.trouble]
        if missing:
            whose = {NO_RACK: ", that of nodes without a zone in the inventory"}
            said = "; ".join(f"zone {each.zone}{whose.get(each.zone, '')}: {each.trouble}" for each in missing)
            names = sorted((each.name, each.region) for each in workers if not each.trouble)
            usable = ", ".join(f"{name} of region {region}" for name, region in names)
            exist = f"Usable workers: {usable}" if usable else "No worker can be used"
            hint = f"start a worker of the zone's region, for example `dask worker … --name {missing[0].zone}-1`"
            message = f"nothing was touched: {printable(said, 800)}. {printable(exist, 400)}"
            raise UsageError("region-without-worker", message, hint=hint)
        return tuple(f"zone {each.zone}: {each.notice}" for each in zones if each.notice)

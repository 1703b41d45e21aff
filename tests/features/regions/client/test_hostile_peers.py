"""A worker and a scheduler that are hostile: nothing of what they send is run, or printed, in the controller's process."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rollout.features.regions.client.plain_data import load
from rollout.features.regions.client.scheduler import DaskScheduler, read_plain_data_only
from rollout.features.regions.client.workers import CallLostError, RegionWorkers
from tests.controllers import until
from tests.features.regions.client import hostile
from tests.story.regions import Regions, regions_up


def marked(folder: Path) -> bool:
    """Whether the attacker's code ran in this process."""
    return (folder / str(os.getpid())).exists()


PLAIN = (None, True, 7, 2**70, 1.5, "text", b"bytes", [1, (2, {"a": {3}})], frozenset({1}), bytes)


@pytest.mark.parametrize("value", PLAIN)
@pytest.mark.parametrize("protocol", [4, 5])
def test_plain_data_is_read_as_it_was(value: object, protocol: int) -> None:
    assert load(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize(
    "value", [hostile.Evil("/nowhere"), [hostile.Evil("/nowhere")], os.system, eval, Path("/"), ValueError("x"), int]
)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_whatever_names_code_is_refused(value: object, protocol: int) -> None:
    with pytest.raises(pickle.UnpicklingError, match="plain data"):
        load(pickle.dumps(value, protocol))


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regions]:
    folder = tmp_path_factory.mktemp("regions")
    (folder / "ssh_config").write_text("")
    with regions_up(folder / "dask", folder / "ssh_config", "eu-1") as made:
        yield made


@pytest.fixture
def scheduler(regions: Regions) -> Iterator[DaskScheduler]:
    made = DaskScheduler(regions.address, None)
    until(made.workers, 60.0, "the worker is connected")
    yield made
    made.close()


@pytest.mark.process
@pytest.mark.parametrize(
    "function",
    [
        hostile.result,
        hostile.nested_result,
        hostile.serialized_result,
        hostile.pickled_result,
        hostile.subclass_of_bytes,
        hostile.error,
    ],
)
def test_no_answer_of_a_worker_runs_code_here(
    scheduler: DaskScheduler, tmp_path: Path, function: Callable[[bytes], Any]
) -> None:
    (address,) = scheduler.workers().values()
    with pytest.raises(CallLostError):
        scheduler.call(function, address, (str(tmp_path).encode(),), 20.0)
    assert not marked(tmp_path)
    (worker,) = RegionWorkers(scheduler).connected()
    assert (worker.name, worker.process != "") == ("eu-1", True), "the next call is carried out"


@pytest.mark.process
def test_no_event_of_a_peer_is_run_or_printed_here(
    scheduler: DaskScheduler, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (address,) = scheduler.workers().values()
    scheduler._client.run(hostile.event, str(tmp_path).encode(), workers=[address])  # noqa: SLF001
    RegionWorkers(scheduler).connected()  # a round trip later
    assert not marked(tmp_path)
    assert "owned" not in "".join(capfd.readouterr())


@pytest.mark.process
def test_no_answer_of_a_scheduler_runs_code_here(regions: Regions, tmp_path: Path) -> None:
    scheduler = DaskScheduler(regions.address, None)
    until(scheduler.workers, 60.0, "the worker is connected")
    for turn in (hostile.report_an_error, hostile.turn_hostile):
        scheduler._client.run_on_scheduler(turn, str(tmp_path))  # noqa: SLF001
    assert scheduler.workers() == {}, "it counts as away"
    assert not marked(tmp_path)
    scheduler.close()


def test_dask_reads_pickles_nowhere_else() -> None:
    """Every module of Dask that a client has in memory and that can load a pickle by itself has the restricted one."""
    read_plain_data_only()
    loaded = {name: module for name, module in sys.modules.items() if name.split(".")[0] in ("distributed", "dask")}
    own = {name for name, module in loaded.items() if getattr(module, "pickle", None) is pickle}
    assert own <= NOT_FOR_WHAT_ARRIVES, own


NOT_FOR_WHAT_ARRIVES = {
    "dask.multiprocessing",
    "dask.tokenize",
    "distributed.scheduler",
    "distributed.shuffle._core",
    "distributed.shuffle._pickle",
}
"""Of a scheduler's process, of workers' shuffles, and of values of this process: a client loads nothing of a peer there."""

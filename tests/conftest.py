"""What all tests share: how much of each is done, and that a test says what it needs of the machine."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests.sampling import DEPTH, Depth, sample, seed

if TYPE_CHECKING:
    from _typeshed import TraceFunction

pytest_plugins = ("tests.bed.plugin", "tests.times")

gc.disable()  # until all tests are collected: what is made until then stays, and the collector would look at it again and again

for _depth in Depth:
    # These machines are shared: no deadline, because time proves nothing.
    hypothesis.settings.register_profile(_depth.name, deadline=None, print_blob=True, max_examples=_depth.value)
hypothesis.settings.load_profile(DEPTH.name)

COUNTED = ("core/", "kubelet/", "gates/", "app/", "features/", "cli/")
"""The tests by which ``make test-inside`` counts the branches of the first five packages."""
NOT_COUNTED = frozenset(
    [
        "app/test_breathing_fleets.py",
        "app/test_stubborn_nodes.py",
        "cli/test_growth.py",
        "cli/test_leavers.py",
        "cli/test_odd_text.py",
        "cli/test_proposed_options.py",
        "cli/test_report.py",
        "cli/test_rollback_model.py",
        "cli/test_watch.py",
        "core/model/test_transactions.py",
        "core/presentation/test_page.py",
        "core/presentation/test_story.py",
        "core/reading/test_rendering.py",
        "core/run/test_engine_away.py",
        "core/run/test_machine.py",
        "core/run/test_records.py",
        "core/run/test_replay.py",
        "core/text/test_json_text.py",
        "core/text/test_name_pattern.py",
        "features/diagnose/rules/test_forms.py",
        "features/diagnose/rules/test_quoted.py",
        "features/diagnose/rules/test_remedies_exist.py",
        "features/sequence/test_killed_sequences.py",
        "kubelet/changes/test_round_trip.py",
        "kubelet/changes/test_written_by_others.py",
        "kubelet/configuration/test_drawn_mistakes.py",
        "kubelet/explained/test_explanation.py",
        "kubelet/explained/test_references.py",
        "kubelet/node/test_layout.py",
        "kubelet/test_kinds.py",
    ]
)
"""Of these the ones that take long, and in which nearly no line is reached that no other counted test reaches. One test of a file says so by the mark `no_cover`."""
LONG_SECONDS = 2.0
"""CPU seconds. `make test` draws a quarter of the tests with processes of a file if they take longer, by the measured table: 15 minutes hold no more."""
QUICK_SECONDS = 0.5
"""CPU seconds of each file in `make quick`, as they were measured in full depth: some tests of a file that takes longer are drawn."""
PROCESS_EVENTS = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "socket.__new__"}
)
"""What Python reports to audit hooks when a process is started or a socket is made."""


class _Guard:
    """Notes each process and socket of a test that does not say that it needs one."""

    def __init__(self) -> None:
        self.watching = False
        self.seen: list[str] = []

    def hook(self, event: str, args: tuple[object, ...]) -> None:
        if self.watching and event in PROCESS_EVENTS:
            self.seen.append(f"{event} {args[:2]!r:.200}")


_guard = _Guard()
sys.addaudithook(_guard.hook)


_settrace = sys.settrace


def _settrace_again(function: TraceFunction | None) -> None:
    """Python 3.11 refuses a trace function while another thread installs its own: coverage then loses that thread, which dies."""
    while True:
        try:
            return _settrace(function)
        except RuntimeError as error:
            if "another trace function" not in str(error):
                raise


sys.settrace = _settrace_again


@cache
def _says_what_it_needs(file: Path) -> bool:
    """Whether a file of tests, or a ``conftest.py`` of its folders, names the mark ``process`` or ``root``."""
    folders = [folder for folder in file.parents if Path(__file__).parent in folder.parents]
    texts = [file, *(folder / "conftest.py" for folder in folders)]
    return any(re.search(r"\bmark\.(process|root)\b", text.read_text("utf-8")) for text in texts if text.exists())


@cache
def _names_no_cover(file: Path) -> bool:
    return "mark.no_cover" in file.read_text("utf-8")


@cache
def _is_whole_outside(file: Path) -> bool:
    """Whether all tests of a file need a process or root: it says so once, for the whole file."""
    return (
        re.search(r"^pytestmark = \[?pytest\.mark\.(process|root)\b", file.read_text("utf-8"), re.MULTILINE) is not None
    )


@cache
def _is_counted(file: Path) -> bool:
    path = str(file.relative_to(Path(__file__).parent)) if file.is_relative_to(Path(__file__).parent) else ""
    return path.startswith(COUNTED) and path not in NOT_COUNTED


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Resources of a test that are closed at its end."""
    with ExitStack() as opened:
        yield opened


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--outside", action="store_true", help="read no file that names neither the mark `process` nor `root`"
    )
    parser.addoption("--compile", action="store_true", help="only import the files of tests, which compiles them")
    parser.addoption("--undrawn", action="store_true", help="run only the tests that `drawn` leaves out with this seed")
    parser.addoption("--counted", action="store_true", help="read only files with tests inside that are counted")
    parser.addoption("--uncounted", action="store_true", help="read only files with tests inside that are not counted")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """To read all files of tests takes 10 s of CPU in each worker: a part of ``make test`` reads those that have a test for it."""
    if collection_path.suffix != ".py":
        return None
    if config.getoption("outside") and not _says_what_it_needs(collection_path):
        return True
    counted, uncounted = config.getoption("counted"), config.getoption("uncounted")
    if not (counted or uncounted):
        return None
    if _is_whole_outside(collection_path):
        return True
    is_counted = _is_counted(collection_path)
    needless = not is_counted if counted else is_counted and not _names_no_cover(collection_path)
    return needless or None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> list[pytest.Item] | None:
    return [] if collector.config.getoption("compile") else None


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts what runs in the background with SIGINT ignored, and whatever is started from there inherits it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    hypothesis.core.global_force_seed = seed()  # type: ignore[assignment]  # what --hypothesis-seed sets


def pytest_itemcollected(item: pytest.Item) -> None:
    """Counting branches makes a test up to five times as slow: only these tests are counted, in a process without the others.

    To pause the count for a test is not safe in Python 3.11: a thread of an earlier test may just begin to be counted.
    """
    if not _is_counted(item.path):
        item.add_marker(pytest.mark.no_cover)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a file that says ``drawn(N)`` so many tests are run; all of them at night, and where a test is asked for by its name.

    ``quick`` draws of every file that takes long by the measured table, and `make test-outside` a quarter of the tests of such a file.
    """
    marked = {item.path for item in items if item.get_closest_marker("process") or item.get_closest_marker("root")}
    if unread := [str(path) for path in marked if not _says_what_it_needs(path)]:
        raise pytest.UsageError(f"`make test-outside` would not read these: they take a mark from elsewhere: {unread}")
    uncounted = {item.path for item in items if item.get_closest_marker("no_cover") and _is_counted(item.path)}
    if unread := [str(path) for path in uncounted if not _names_no_cover(path)]:
        raise pytest.UsageError(
            f"`make test-uncounted` would not read these: they take `no_cover` from elsewhere: {unread}"
        )
    if DEPTH is Depth.NIGHT or any("::" in word for word in config.args):
        return
    files: dict[str, list[str]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item.nodeid)
    chosen = {file: set(sample(file, tests, _most(file, len(tests)))) for file, tests in files.items()}
    if config.getoption("outside") or config.getoption("undrawn"):
        for file, tests in _outside(items).items():
            chosen[file] -= set(tests) - set(sample(f"quarter of {file}", tests, _most_outside(file, len(tests))))
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        mark, file = item.get_closest_marker("drawn"), item.nodeid.partition("::")[0]
        drawn = mark is None or item.nodeid in sample(file, files[file], mark.args[0])
        (kept if drawn and item.nodeid in chosen[file] else left).append(item)
    if config.getoption("undrawn"):
        kept, left = left, kept
    items[:] = kept
    config.hook.pytest_deselected(items=left)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def _most(file: str, tests: int) -> int:
    """How many of a file's tests are run at this depth."""
    from tests.times import known  # a plugin: pytest reads it first

    cpu = float(known()[file]["cpu"]) if DEPTH is Depth.QUICK and file in known() else 0.0
    return tests if cpu <= QUICK_SECONDS else max(1, int(tests * QUICK_SECONDS / cpu))


def _outside(items: list[pytest.Item]) -> dict[str, list[str]]:
    """File → its tests with processes, where the file does not say itself how many are drawn."""
    files: dict[str, list[str]] = {}
    for item in items:
        if (item.get_closest_marker("process") or item.get_closest_marker("root")) and not item.get_closest_marker(
            "drawn"
        ):
            files.setdefault(item.nodeid.partition("::")[0], []).append(item.nodeid)
    return files


def _most_outside(file: str, tests: int) -> int:
    """How many of a file's tests with processes are run: a quarter of them if they take long, but two at least."""
    from tests.times import known  # a plugin: pytest reads it first

    row = known().get(file)
    cpu = tests * float(row["cpu"]) / int(row["tests"]) if row else 0.0
    return tests if cpu <= LONG_SECONDS else max(min(tests, 2), (tests + 3) // 4, int(tests * LONG_SECONDS / cpu))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(
        f"Sampled for `{DEPTH.name.lower()}` with seed {seed()}; ROLLOUT_SAMPLE_SEED={seed()} draws the same again."
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("root") and os.geteuid() != 0:
        pytest.skip("NOT TESTED: needs root")
    if item.get_closest_marker("night") and DEPTH is not Depth.NIGHT:
        pytest.skip("NOT TESTED: takes long; `make night` runs it")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _guard.watching = not (item.get_closest_marker("process") or item.get_closest_marker("root"))
    _guard.seen.clear()
    result = yield
    _guard.watching = False
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    result = yield
    if _guard.seen:
        pytest.fail(f"starts a process or makes a socket, but is not marked `process`: {_guard.seen[0]}", pytrace=False)
    return result

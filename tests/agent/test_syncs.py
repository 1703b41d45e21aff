"""Each step that changes what is true on a node waits for the disk: shown by what the kernel was asked for.

A power cut of a container, or a kill, leaves the page cache as it is, so only this shows that the syncs are there and in
time: the real program's verbs under ``strace`` on a real file system, and the rules as a table. No sync is without a rule:
a trace from which any one of them is taken out breaks one.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from tests.agent.lives import CALLS_OF_FLUSH, Stories, Story
from tests.agent.node import CONFIG, DROPIN, FLAGS, SHELLS
from tests.agent.page_cache import Disk
from tests.agent.traces import Step
from tests.sampling import sample

pytestmark = [
    pytest.mark.process,
    pytest.mark.xdist_group("lives"),
    pytest.mark.skipif(shutil.which("strace") is None, reason="NOT TESTED: strace is missing (apt-get install strace)"),
]

TX = "/var/lib/rollout/tx/{tx}"
CLAIM = "/var/lib/rollout/token"
BOOT = (
    "/etc/systemd/system/rollout-guard-boot.service",
    "/etc/systemd/system/basic.target.wants/rollout-guard-boot.service",
)
TARGETS = (CONFIG, FLAGS, DROPIN)
ANY_TARGET = "|".join(map(re.escape, TARGETS))


@dataclass(frozen=True)
class Rule:
    """Before a step like ``when`` what matches ``safe`` must be on the disk as it is, names and bytes; of ``written`` the bytes."""

    name: str
    when: str
    safe: tuple[str, ...]
    written: tuple[str, ...] = ()


RULES = (
    Rule(
        "a token that is told, or that a transaction begins with, is remembered",
        rf"say .*token \d|mkdir {TX.format(tx='[^/]+')}$",
        (CLAIM,),
    ),
    Rule(
        "what lies beside a target is noted first",
        r"(make|link \S+) \S*/\.rollout-(?P<tx>[^/]+)\.(?P<n>\d+)\.(old|new)",
        (f"{TX}/file.{{n}}",),
    ),
    Rule(
        "armed: all that the way back needs is there, and who goes it at boot",
        r"rename /var/lib/rollout/tx/(?P<tx>[^/]+)/next/armed ",
        (
            CLAIM,
            *(f"{TX}/{name}" for name in ("agent", "file.*", "mode.*", "old.*", "new.*", "next/*")),
            "/etc/*/.rollout-{tx}.*",
            "/var/lib/kubelet/.rollout-{tx}.*",
            *BOOT,
        ),
    ),
    Rule(
        "no target is exchanged before the receipt says armed",
        r"rename \S*(tx/(?P<tx>[^/]+)/new\.\d|\.rollout-(?P<tx_beside>[^/]+)\.\d\.new) ",
        (f"{TX}/receipt", *BOOT),
    ),
    Rule("confirmed: the new files are there", r"rename \S*/tx/(?P<tx>[^/]+)/next/confirmed ", TARGETS),
    Rule(
        "no target is given back before the receipt says reverting, and who goes on at boot is there",
        rf"rename \S*(tx/(?P<tx>[^/]+)/old\.\d|\.rollout-(?P<tx_beside>[^/]+)\.\d\.old) ({ANY_TARGET})",
        (f"{TX}/receipt", *BOOT),
    ),
    Rule("what is given back is there", rf"rename (?P<old>\S+) ({ANY_TARGET})", (), ("{old}",)),
    Rule("reverted: the old files are there", r"rename \S*/tx/(?P<tx>[^/]+)/next/reverted-", TARGETS),
    Rule(
        "what is told of a transaction stays true",
        r"say .*receipt tx=(?P<tx>\S+) .*state=(confirmed|reverted)",
        (f"{TX}/receipt",),
    ),
    Rule(
        "who knows what lay beside a target goes after it",
        rf"unlink {TX.format(tx='(?P<tx>[^/]+)')}/file",
        ("/etc/*/.rollout-{tx}.*", "/var/lib/kubelet/.rollout-{tx}.*"),
    ),
    Rule(
        "the guard's program goes after the guard, all that we know after what we know",
        r"rename /var/lib/rollout /var/lib/rollout\.forgotten",
        (*BOOT, "/etc/*/.rollout-*", "/var/lib/kubelet/.rollout-*"),
    ),
    Rule(
        "nothing that a way back needs goes before the receipt says that there is none, or goes",
        rf"unlink (({BOOT[0]}|{BOOT[1]})$|{TX.format(tx='[^/]+')}/(next|old|file|agent))",
        ("/var/lib/rollout/tx/*/receipt",),
    ),
    Rule("forgotten is told when it is so", r"say .*end forget", ("/var/lib/rollout",)),
)


def broken(before: Disk, steps: Sequence[Step]) -> Iterator[str]:
    """The rules that these steps break."""
    disk = before
    for step in steps:
        for rule in RULES:
            found = re.search(rule.when, str(step))
            if found is None:
                continue
            words = {key.removesuffix("_beside"): word for key, word in found.groupdict().items() if word}
            for path in _matching(disk, [pattern.format(**words) for pattern in rule.safe]):
                if not disk.is_safe(path):
                    yield f"{rule.name}: {path} at {str(step)[:100]}"
            for path in (pattern.format(**words) for pattern in rule.written):
                if not disk.is_written(path):
                    yield f"{rule.name}: {path} at {str(step)[:100]}"
        disk.do(step)


def _matching(disk: Disk, patterns: list[str]) -> set[str]:
    known = {*disk.paths(), *disk.paths(safe=True)}
    plain = {pattern for pattern in patterns if "*" not in pattern}
    return plain | {path for pattern in patterns for path in fnmatch.filter(known, pattern)}


FIRST, *OTHERS = SHELLS
LIVES = [(FIRST, False), (FIRST, True), *sample("lives", list(itertools.product(OTHERS, (False, True))), 1)]
"""Under which shell, and whether the targets lie on other file systems."""


@pytest.mark.parametrize(("shell", "elsewhere"), LIVES)
def test_no_step_comes_before_the_disk_has_what_it_builds_on(stories: Stories, shell: str, elsewhere: bool) -> None:
    story = stories.of(shell, elsewhere=elsewhere)
    assert list(broken(story.disk(), story.steps)) == []


COVERED = re.compile(
    r"(/etc/default|/etc/systemd/system|/var/lib/kubelet) after (unlink /etc/default/\.rollout-tN\.N\.old"
    r"|unlink /etc/systemd/system/rollout-guard-boot\.service|unlink /var/lib/rollout/tx/tN|write /var/lib/rollout/holder)"
)
"""Twins that were removed are synced before what knows of them is pruned, and before all is forgotten. In these lives every change
has the same targets, so that the one covers the other; on a node whose changes differ neither does."""


def test_no_sync_is_needless_and_none_is_left_out(stories: Stories) -> None:
    """Taken out, wherever it follows the same kind of step, each breaks a rule."""
    both = [stories.of("dash", elsewhere=elsewhere) for elsewhere in (False, True)]
    assert both[0].flushes | both[1].flushes == set(range(CALLS_OF_FLUSH)), "all of the program's are in these traces"
    kinds = {kind for story in both for kind in _syncs(story.steps).values()}
    needless = [kind for kind in sorted(kinds) if not any(_is_needed(kind, story) for story in both)]
    assert [kind for kind in needless if not COVERED.fullmatch(kind)] == []
    together = {kind for kind in kinds if COVERED.fullmatch(kind)}
    assert any(_is_needed(together, story) for story in both), "without any of those that cover each other"


def _is_needed(kinds: str | set[str], story: Story) -> bool:
    taken, syncs = {kinds} if isinstance(kinds, str) else kinds, _syncs(story.steps)
    without = [step for number, step in enumerate(story.steps) if syncs.get(number) not in taken]
    return len(without) < len(story.steps) and any(broken(story.disk(), without))


def _syncs(steps: Sequence[Step]) -> dict[int, str]:
    """Where they are, and of what kind: what is synced after what, whichever transaction's and file's."""
    done, found = "", {}
    for number, step in enumerate(steps):
        if step.what == "sync":
            found[number] = re.sub(r"\bt\d\b", "tN", re.sub(r"\.\d\b", ".N", f"{step.path} after {done}"))
        elif step.what not in ("say", "begin"):
            done = str(step)
    return found

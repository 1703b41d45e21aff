"""Each step that changes the state of a node waits for the disk: shown by the system calls.

A power cut of a container, or a kill, leaves the page cache as it is. So only this shows that the syncs happen, and in
time: the real program's verbs under ``strace`` on a real file system, and the rules as a table. Every sync has a rule:
a trace without any one of the syncs breaks a rule.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

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
    "/etc/systemd/system/rollout-guard-boot.service.d/~~~~~~~~-rollout.conf",
)
TARGETS = (CONFIG, FLAGS, DROPIN)
ANY_TARGET = "|".join(map(re.escape, TARGETS))


@dataclass(frozen=True)
class Rule:
    """Before a step that matches ``when``, paths of ``safe`` must be on the disk, names and bytes; of ``written`` the bytes.

    ``gone``: what was removed before it, here or by earlier verbs, is not on the disk any more.
    """

    name: str
    when: str
    safe: tuple[str, ...]
    written: tuple[str, ...] = ()
    gone: bool = False


RULES = (
    Rule(
        "a reported token, or the token of a new transaction, is durable",
        rf"say .*token \d|mkdir {TX.format(tx='[^/]+')}$",
        (CLAIM,),
    ),
    Rule(
        "a copy beside a target is noted first",
        r"(make|link \S+) \S*/\.rollout-(?P<tx>[^/]+)\.(?P<n>\d+)\.(old|new)",
        (f"{TX}/file.{{n}}",),
    ),
    Rule(
        "armed: everything that a revert needs is there, and the boot unit",
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
        "a revert is tried for a receipt that is armed",
        rf"make {TX.format(tx='(?P<tx>[^/]+)')}/tried\.new",
        (f"{TX}/receipt",),
    ),
    Rule(
        "no target is replaced before the receipt is armed and a revert was tried",
        r"rename \S*(tx/(?P<tx>[^/]+)/new\.\d|\.rollout-(?P<tx_beside>[^/]+)\.\d\.new) ",
        (f"{TX}/receipt", f"{TX}/tried", *BOOT),
    ),
    Rule("confirmed: the new files are there", r"rename \S*/tx/(?P<tx>[^/]+)/next/confirmed ", TARGETS),
    Rule(
        "no target is restored before the receipt is reverting and the boot unit is there",
        rf"rename \S*(tx/(?P<tx>[^/]+)/old\.\d|\.rollout-(?P<tx_beside>[^/]+)\.\d\.old) ({ANY_TARGET})",
        (f"{TX}/receipt", *BOOT),
    ),
    Rule("a restored file is there", rf"rename (?P<old>\S+) ({ANY_TARGET})", (), ("{old}",)),
    Rule("reverted: the old files are there", r"rename \S*/tx/(?P<tx>[^/]+)/next/reverted-", TARGETS),
    Rule(
        "the reported state of a transaction stays true",
        r"say .*receipt tx=(?P<tx>\S+) .*state=(confirmed|reverted)",
        (f"{TX}/receipt",),
    ),
    Rule(
        "the note of a copy beside a target is removed after the copy",
        rf"unlink {TX.format(tx='(?P<tx>[^/]+)')}/file",
        ("/etc/*/.rollout-{tx}.*", "/var/lib/kubelet/.rollout-{tx}.*"),
    ),
    Rule(
        "the guard's program is removed after the guard, and the state after everything that it names",
        r"rename /var/lib/rollout /var/lib/rollout\.forgotten",
        (*BOOT, "/etc/*/.rollout-*", "/var/lib/kubelet/.rollout-*"),
    ),
    Rule(
        "nothing that a revert needs is removed before the receipt needs none, or is removed",
        rf"unlink (({BOOT[0]}|{BOOT[1]})$|{TX.format(tx='[^/]+')}/(next|old|file|agent))",
        ("/var/lib/rollout/tx/*/receipt",),
    ),
    Rule("the bytes of a freeze are there before its name", r"rename (?P<old>\S+/freeze\.new) ", (), ("{old}",)),
    Rule("a reported freeze or unfreeze is durable", r"say .*end (un)?freeze", ("/var/lib/rollout/freeze",)),
    Rule(
        "a transaction that is reported as given up is refused after a power cut",
        r"say .*voided (?P<tx>t\d+)",
        ("/var/lib/rollout/void.5.{tx}",),
    ),
    Rule(
        "no part of the state is removed before the removal of all of it is durable",
        r"unlink /var/lib/rollout\.forgotten/",
        ("/var/lib/rollout",),
    ),
    Rule("a forget is reported when it is durable", r"say .*end forget", ("/var/lib/rollout",), gone=True),
    Rule("a cleanup is reported when it is durable", r"say .*end cleanup", (CLAIM,), gone=True),
)


@cache
def asked(step: Step) -> tuple[tuple[Rule, dict[str, str]], ...]:
    """The rules for this step, with the words that it fills into their paths."""
    matches = [(rule, re.search(rule.when, str(step))) for rule in RULES]
    return tuple(
        (rule, {key.removesuffix("_beside"): word for key, word in found.groupdict().items() if word})
        for rule, found in matches
        if found
    )


def broken(before: Disk, steps: Sequence[Step]) -> Iterator[str]:
    """The rules that these steps break."""
    disk = before
    for step in steps:
        for rule, words in asked(step):
            for path in _matching(disk, [pattern.format(**words) for pattern in rule.safe]):
                if not disk.is_safe(path):
                    yield f"{rule.name}: {path} at {str(step)[:100]}"
            for path in (pattern.format(**words) for pattern in rule.written):
                if not disk.is_written(path):
                    yield f"{rule.name}: {path} at {str(step)[:100]}"
            for path in sorted({*disk.paths(safe=True)} - {*disk.paths()} if rule.gone else ()):
                yield f"{rule.name}: {path} at {str(step)[:100]}"
        disk.do(step)


def _matching(disk: Disk, patterns: list[str]) -> set[str]:
    known = {*disk.paths(), *disk.paths(safe=True)}
    plain = {pattern for pattern in patterns if "*" not in pattern}
    return plain | {path for pattern in patterns for path in fnmatch.filter(known, pattern)}


FIRST, *OTHERS = SHELLS
LIVES = [(FIRST, False), (FIRST, True), *sample("lives", list(itertools.product(OTHERS, (False, True))), 1)]
"""The shell, and whether the targets are on other file systems."""


@pytest.mark.parametrize(("shell", "elsewhere"), LIVES)
def test_every_step_waits_until_its_prerequisites_are_on_the_disk(
    stories: Stories, shell: str, elsewhere: bool
) -> None:
    story = stories.of(shell, elsewhere=elsewhere)
    assert list(broken(story.disk(), story.steps)) == []


COVERED = re.compile(
    r"(/etc/default|/etc/systemd/system|/var/lib/kubelet) after (unlink /etc/default/\.rollout-tN\.N\.old"
    r"|unlink /etc/systemd/system/rollout-guard-boot\.service(\.d)?|unlink /var/lib/rollout/tx/tN|write /var/lib/rollout/holder)"
    r"|/(etc|var)/\S+ after (unlink /var/lib/rollout/void|write /var/lib/rollout/(token|holder))"
)
"""The removal of copies is synced before their note is pruned, and before a forget. In these lives every change has the
same targets, so that one sync covers the other; on a node with different changes neither does. A cleanup and a forget sync
every folder where an earlier verb may have removed something: in these lives not each of them has."""


def test_every_sync_is_needed(stories: Stories) -> None:
    """Without it, wherever it follows the same kind of step, a rule is broken."""
    both = [stories.of("dash", elsewhere=elsewhere) for elsewhere in (False, True)]
    assert both[0].flushes | both[1].flushes == set(range(CALLS_OF_FLUSH)), (
        "all syncs of the program are in these traces"
    )
    kinds = {kind for story in both for kind in _syncs(story.steps).values()}
    needless = [kind for kind in sorted(kinds) if not any(_is_needed(kind, story) for story in both)]
    assert [kind for kind in needless if not COVERED.fullmatch(kind)] == []
    together = {kind for kind in kinds if COVERED.fullmatch(kind)}
    assert any(_is_needed(together, story) for story in both), "without all syncs that cover each other"


def _is_needed(kinds: str | set[str], story: Story) -> bool:
    taken, syncs = {kinds} if isinstance(kinds, str) else kinds, _syncs(story.steps)
    without = [step for number, step in enumerate(story.steps) if syncs.get(number) not in taken]
    return len(without) < len(story.steps) and any(broken(story.disk(), without))


def _syncs(steps: Sequence[Step]) -> dict[int, str]:
    """Where they are, and of what kind: what is synced after what, for any transaction and file."""
    done, found = "", {}
    for number, step in enumerate(steps):
        if step.what == "sync":
            found[number] = re.sub(r"\bt\d\b", "tN", re.sub(r"\.\d\b", ".N", f"{step.path} after {done}"))
        elif step.what not in ("say", "begin"):
            done = str(step)
    return found

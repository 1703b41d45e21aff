"""Whether a remedy works: proven by a pull that passes a stalled one, or by hours in force; else not yet, or still there."""

from __future__ import annotations

from collections.abc import Iterable

from rollout.features.diagnose.rules.event_lists import event_facts
from rollout.features.diagnose.rules.facts import Fact
from rollout.features.diagnose.rules.finding import ProposalTarget
from rollout.features.diagnose.rules.node_journals import journal_of
from rollout.features.diagnose.rules.remedies import (
    HOURS,
    PULLS,
    Effect,
    Observed,
    Remedy,
    remedies,
    remedy_lines,
    remedy_part,
)
from tests.features.diagnose.rules.logs import BEGIN, NODE, event, klog, lines, logrus, pulls
from tests.features.diagnose.rules.test_node_journals import END, LATEST
from tests.features.diagnose.rules.test_pulls import queue

SLOW, QUICK = "10.8.2.9:9083/slow:1", "10.8.14.9:9083/web:1"


def of_events(events: Iterable[dict[str, object]]) -> tuple[Fact, ...]:
    return tuple(fact for number, each in enumerate(events, 1) for fact in event_facts(each, "events", number))


def of_journal(*said: tuple[float, str]) -> tuple[Fact, ...]:
    text = lines(*(f"{BEGIN:%Y-%m-%dT%H:%M:%S+0000} {NODE} {message}" for _, message in said))
    return tuple(journal_of(NODE, text.encode() + END, "", LATEST).facts)


def containerd(seconds: float, message: str) -> tuple[float, str]:
    return seconds, f"containerd[9]: {logrus(seconds, message)}"


def judged(before: Iterable[Fact] = (), after: Iterable[Fact] = (), hours: float = 1.0, *, in_force: bool | None = True, silent: tuple[str, ...] = ()) -> Remedy:  # fmt: skip
    (found,) = remedies(
        {"serializeImagePulls"},
        [Observed(NODE, tuple(before), tuple(after), hours, in_force)],
        silent,
        ProposalTarget("rno"),
    )
    return found


BEFORE = of_events(queue(5, "pull QPS exceeded"))
STALLED = containerd(0, f'PullImage "{SLOW}"')


def test_a_pull_that_ends_while_another_is_stalled_is_the_proof() -> None:
    after = of_journal(
        STALLED,
        containerd(100, f'PullImage "{QUICK}"'),
        containerd(130, f'PullImage "{QUICK}" returns image reference "x"'),
    )
    found = judged(BEFORE, after)
    assert (found.effect, found.before, found.after) == (Effect.PROVEN, (NODE,), ())
    assert found.why.startswith(
        f"on {NODE} the pull of {QUICK} ended at 2026-11-20T09:02:10Z while the pull of {SLOW} had been running for 2 min 10 s"
    )
    assert len(found.evidence) == 3


def test_the_events_of_both_pulls_prove_it_too() -> None:
    both = of_events([*pulls(SLOW, "ais-1", 0, 600), *pulls(QUICK, "web-1", 30, 90)])
    assert judged(BEFORE, both).effect is Effect.PROVEN


def test_what_looks_like_it_and_is_not() -> None:
    ended = containerd(130, f'PullImage "{QUICK}" returns image reference "x"')
    quick = containerd(100, f'PullImage "{QUICK}"')
    failed = containerd(130, f'PullImage "{QUICK}" failed')
    begun_later = of_journal(quick, containerd(110, f'PullImage "{SLOW}"'), ended)
    short = of_journal(containerd(90, f'PullImage "{SLOW}"'), quick, ended)
    one_after_the_other = of_journal(
        STALLED, containerd(90, f'PullImage "{SLOW}" returns image reference "y"'), quick, ended
    )
    restarted = of_journal(STALLED, (50, f"kubelet[7]: {klog(50, 'Version: v1.20.15')}"), quick, ended)
    lost_end = of_events([event(0, "Pulling", f'Pulling image "{SLOW}"', "ais-1"), *pulls(QUICK, "web-1", 100, 130)])
    twice = of_events(
        [
            *pulls(SLOW, "ais-1", 0, 600),
            event(200, "Pulling", f'Pulling image "{SLOW}"', "ais-1"),
            *pulls(QUICK, "web-1", 100, 130),
        ]
    )
    for after in (
        begun_later,
        short,
        one_after_the_other,
        restarted,
        lost_end,
        twice,
        of_journal(STALLED, quick, failed),
    ):
        assert judged(BEFORE, after).effect is Effect.NOT_YET


def test_an_empty_queue_behind_the_restart_proves_nothing() -> None:
    found = judged(BEFORE, in_force=None)
    assert found.effect is Effect.NOT_YET
    assert found.missing == (
        f"the value in force on {NODE} is not known: /configz needs a kubeconfig that may read nodes/proxy",
        "23.0 more hours without it, or a pull that ends while another one is stalled",
        "20 more pulls: 0 ended since the confirm",
    )


def test_hours_of_pulls_with_the_value_in_force_prove_it() -> None:
    many = of_events(
        each
        for number in range(PULLS)
        for each in pulls(f"web:{number}", f"web-{number}", 100.0 * number, 100.0 * number + 5)
    )
    assert judged(BEFORE, many, HOURS).effect is Effect.PROVEN
    assert judged(BEFORE, many, HOURS - 1).effect is Effect.NOT_YET
    assert judged(BEFORE, many, HOURS, in_force=False).missing == (f"another value is in force on {NODE}",)
    assert judged(BEFORE, many, HOURS, silent=("n9",)).missing == ("n9 could not be read",)


def test_a_queue_since_the_confirm_is_still_there() -> None:
    found = judged(BEFORE, BEFORE, HOURS)
    assert (found.effect, found.after) == (Effect.STILL_THERE, (NODE,))
    assert "\n".join(remedy_lines([found])).startswith("serial-pull-queue (serializeImagePulls): still there")


def test_a_setting_that_mends_no_finding_is_left_out() -> None:
    assert remedies({"eventBurst"}, [], (), ProposalTarget()) == ()
    assert list(remedy_lines(())) == ["No setting of this run is a remedy for a finding."]
    assert remedy_part(judged(BEFORE)).effect is Effect.NOT_YET

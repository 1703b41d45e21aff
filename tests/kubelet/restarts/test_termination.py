"""How long a kubelet may take to end a pod: grace period, hooks and sidecars in each minor, and the bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.pods import ContainerEnd, LeavingPod
from rollout.kubelet.restarts.termination import FLOOR, budget, exec_sleep, timeout, worst

OLD, NOT_DEDUCTED, DEDUCTED, ORDERED = range(20, 22), range(22, 28), range(28, 29), range(29, 37)
AGES = (OLD, NOT_DEDUCTED, DEDUCTED, ORDERED)
APP = ContainerEnd("app")
HOOKED = ContainerEnd("app", hook=True)
SLEEPS = ContainerEnd("app", hook=True, hook_sleeps=5)
SIDECAR = ContainerEnd("proxy", sidecar=True)
HOOKED_SIDECAR = ContainerEnd("proxy", sidecar=True, hook=True)


def pod(
    *containers: ContainerEnd, grace: int = 30, granted: int | None = None, name: str = "default/web"
) -> LeavingPod:
    return LeavingPod("u", name, grace, granted, containers=containers or (APP,))


TABLE = (  # what, the pod, seconds in each of the four ranges of minors
    ("no hook: the grace period", pod(), (30, 30, 30, 30)),
    ("containers unknown", LeavingPod("u", "default/web", 30), (30, 30, 30, 30)),
    ("a hook of unknown length may use all of it", pod(HOOKED), (32, 60, 32, 32)),
    ("a hook that sleeps is deducted, except from 1.22 to 1.27", pod(SLEEPS), (30, 35, 30, 30)),
    ("a hook that sleeps nearly all of it leaves the minimum", pod(SLEEPS, grace=6), (7, 11, 7, 7)),
    ("a hook that sleeps longer is cut off", pod(SLEEPS, grace=4), (6, 8, 6, 6)),
    ("a second is less than the minimum, where there is one", pod(grace=1), (2, 1, 2, 2)),
    ("no grace at all", pod(grace=0), (2, 1, 2, 2)),
    ("no grace at all, and a hook, which old kubelets do not start", pod(HOOKED, grace=0), (2, 1, 3, 3)),
    ("a negative grace period counts as a second", pod(grace=-3), (2, 1, 2, 2)),
    ("a negative grace period, and a hook", pod(HOOKED, grace=-3), (3, 2, 3, 3)),
    ("a negative one that an old API server granted", pod(HOOKED, grace=-3, granted=-3), (2, 1, 3, 3)),
    ("a granted period overrides the pod's own", pod(HOOKED, grace=600, granted=10), (12, 20, 12, 12)),
    ("a longer period may be granted, too", pod(grace=10, granted=90), (90, 90, 90, 90)),
    ("none was granted: newer kubelets use the pod's own", pod(HOOKED, grace=30, granted=0), (2, 30, 32, 32)),
    ("containers end in parallel: the longest counts", pod(APP, SLEEPS, HOOKED), (32, 60, 32, 32)),
    ("a sidecar is an ordinary container before 1.29", pod(APP, SIDECAR), (30, 30, 30, 32)),
    ("sidecars stop waiting at the same moment", pod(APP, SIDECAR, ContainerEnd("mesh", sidecar=True)), (30, 30, 30, 32)),
    ("a sidecar's hook runs at once, in parallel with the others", pod(APP, HOOKED_SIDECAR), (32, 60, 32, 33)),
    ("a sidecar with a hook that sleeps", pod(APP, ContainerEnd("proxy", hook=True, hook_sleeps=5, sidecar=True)), (30, 35, 30, 32)),
)  # fmt: skip


@pytest.mark.parametrize("minor", [minor for age in AGES for minor in age])
@pytest.mark.parametrize(("leaving", "seconds"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_seconds_at_worst(minor: int, leaving: LeavingPod, seconds: tuple[int, ...]) -> None:
    (expected,) = (found for age, found in zip(AGES, seconds, strict=True) if minor in age)
    assert budget(leaving, minor).seconds == expected


@pytest.mark.parametrize(
    ("leaving", "minor", "text"),
    [
        (pod(), 30, "its grace period of 30 s"),
        (pod(grace=1), 20, "a kubelet 1.20 gives every container 2 s"),
        (pod(HOOKED), 20, "the preStop hook of app may use all 30 s of the grace period, and the container then has 2 s"),
        (
            pod(HOOKED), 23,
            "the preStop hook of app may use all 30 s of the grace period, which a kubelet 1.23 does not deduct: the container then has 30 s",
        ),
        (pod(SLEEPS), 20, "the preStop hook of app sleeps 5 s of its grace period of 30 s"),
        (pod(APP, SIDECAR), 33, "sidecar proxy waits for the others through the grace period of 30 s and then has 2 s"),
    ],
)  # fmt: skip
def test_the_reason_is_given(leaving: LeavingPod, minor: int, text: str) -> None:
    assert budget(leaving, minor).text == text


def test_a_timeout_of_minus_three_seconds_waits_without_a_limit() -> None:
    """Grace 5, a main container and a helper, each with a hook that sleeps 3 s. A kubelet with its own kind of
    sidecars ran the helper's hook, then ended the main container. It passed 5 - (3 + 3 + 2) as an override, and docker
    waited without a limit.
    """
    spent = 3 + timeout_of_main() + 3
    assert timeout(20, 5, hook=3, override=5 - spent) is None, "docker waits without a limit for -3 s"
    assert timeout(30, 5, hook=3, override=5 - spent) == FLOOR, "newer kubelets apply the minimum last"

    main = ContainerEnd("krds", hook=True, hook_sleeps=3)
    helper = ContainerEnd("agent", hook=True, hook_sleeps=3)
    for minor in OLD:
        assert budget(pod(main, helper, grace=5), minor).seconds == 5, "as it is without that kubelet: side by side"
    for minor in NOT_DEDUCTED:
        assert budget(pod(main, helper, grace=5), minor).seconds == 3 + 5
    native = ContainerEnd("agent", hook=True, hook_sleeps=3, sidecar=True)
    for minor in ORDERED:
        assert budget(pod(main, native, grace=5), minor).seconds == 5 + FLOOR, "in order, within one grace period"


def timeout_of_main() -> int:
    given = timeout(20, 5, hook=3)
    assert given == FLOOR
    return given


def test_the_worst_pod_is_named_and_those_that_stay_are_not_counted() -> None:
    short, long = pod(grace=5, name="default/short"), pod(HOOKED, name="default/long")
    stays = LeavingPod("u", "kube-system/proxy", 600, stays="daemon-set")
    assert worst([short, long, stays], 23) == (budget(long, 23), long)
    assert worst([stays], 23) is None


endings = st.builds(
    ContainerEnd,
    name=st.sampled_from("abc"),
    hook=st.booleans(),
    hook_sleeps=st.integers(0, 100),
    sidecar=st.booleans(),
)
minors = st.integers(15, 40)
containers = st.lists(endings, max_size=4).map(tuple)


@given(containers, minors, st.integers(-(2**31), 2**31), st.none() | st.integers(-(2**31), 2**31))
def test_never_negative_never_without_bound_and_never_below_the_floor(
    found: tuple[ContainerEnd, ...], minor: int, grace: int, granted: int | None
) -> None:
    seconds = budget(LeavingPod("u", "a/b", grace, granted, containers=found), minor).seconds
    assert seconds is not None
    assert seconds >= (1 if minor in NOT_DEDUCTED else FLOOR)


@given(containers, minors, st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_longer_grace_period_never_ends_a_pod_sooner(
    found: tuple[ContainerEnd, ...], minor: int, grace: int, more: int
) -> None:
    less, longer = (budget(LeavingPod("u", "a/b", each, containers=found), minor) for each in (grace, grace + more))
    assert less.seconds is not None
    assert longer.seconds is not None
    assert less.seconds <= longer.seconds
    assert longer.seconds >= grace + more


@given(containers, minors, st.integers(1, 10_000))
def test_only_kubelets_that_do_not_deduct_take_much_longer_than_the_grace_period(
    found: tuple[ContainerEnd, ...], minor: int, grace: int
) -> None:
    seconds = budget(LeavingPod("u", "a/b", grace, containers=found), minor).seconds
    assert seconds is not None
    assert seconds <= (2 * grace if minor in NOT_DEDUCTED else grace + FLOOR + 1)


@pytest.mark.parametrize("minor", [minor for age in AGES for minor in age])
@pytest.mark.parametrize("leaving", [row[1] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_rules_add_every_second(minor: int, leaving: LeavingPod) -> None:
    end = budget(leaving, minor)
    assert end.seconds is None or sum(seconds for seconds, _ in end.parts) == end.seconds


@pytest.mark.parametrize(
    ("command", "seconds"),
    [
        (["sleep", "3"], 3),
        (["/bin/sleep", "0.5"], 1),
        (["sleep", "1m", "5s"], 65),
        (["sh", "-c", "sleep 3"], 3),
        (["/bin/bash", "-c", " sleep 20; "], 20),
        (["sh", "-c", "sleep 3; nginx -s quit"], 0),
        (["sh", "-c", "sleep $WAIT"], 0),
        (["sh", "sleep 3"], 0),
        (["sleep", "infinity"], 0),
        (["sleep"], 0),
        (["/bin/drain"], 0),
        ([], 0),
    ],
)
def test_a_hook_that_only_sleeps(command: list[str], seconds: int) -> None:
    assert exec_sleep(command) == seconds


@pytest.mark.parametrize(("minor", "seconds"), [(20, 60), (24, 60), (28, 60), (29, 60)])
def test_a_sleep_action_is_unknown_before_1_29_and_fails_at_once(minor: int, seconds: int) -> None:
    """An exec hook of the same length is added to the grace period by 1.22 to 1.27."""
    action = pod(ContainerEnd("a", hook=True, hook_sleeps=20, sleep_action=True), grace=60)
    exec_ = pod(ContainerEnd("a", hook=True, hook_sleeps=20), grace=60)
    ended = budget(action, minor)
    assert ended.seconds == seconds
    assert ("not known before 1.29" in ended.parts[0][1]) == (minor < 29)
    assert budget(exec_, minor).seconds == (80 if minor == 24 else 60)

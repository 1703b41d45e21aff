"""Every check of a node finds its violation: a node without trouble, then one planted violation each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.chaos.findings import (
    Finding,
    Harm,
    Known,
    Kubelet,
    Limits,
    Seen,
    beyond,
    fenced,
    findings,
    held_to_limits,
    repeated,
)

CONFIG, DROP_IN = "/var/lib/kubelet/config.yaml", "/etc/systemd/system/kubelet.service.d/90-rollout.conf"
FOLDER = "/etc/systemd/system/kubelet.service.d"
OLD_TREE = {CONFIG: "100644 0:0 aaa", "/etc/hostname": "100644 0:0 ccc"}
NEW_TREE = {**OLD_TREE, CONFIG: "100644 0:0 bbb", FOLDER: "40755 0:0 ", DROP_IN: "100644 0:0 ddd"}
STATE_TOP = frozenset({"lock", "holder", "token", "touched", "tx"})
CONFIRMED = frozenset({"receipt", "agent", "file.1", "old.1", "next", "next/reverting-asked"})
REVERTED = frozenset({"receipt", "agent", "file.1"})


def seen(tree: dict[str, str], words: tuple[str, ...], state: str, files: frozenset[str]) -> Seen:
    return Seen(
        node="n1",
        tree=tree,
        state={"": STATE_TOP, "r1-1": files},
        receipts=({"tx": "r1-1", "seq": "1", "state": state, "cause": "-"},),
        mode="700",
        token=("3", "r1", "ended"),
        ours=(),
        kubelet=Kubelet("active", words, stale=False),
    )


OLD = seen(OLD_TREE, ("kubelet",), "reverted", REVERTED)
NEW = seen(NEW_TREE, ("kubelet", "--v=3"), "confirmed", CONFIRMED)
KNOWN = Known(OLD, NEW, frozenset({CONFIG, DROP_IN}))
UNTOUCHED = replace(OLD, state={}, receipts=(), token=(), mode="")


@pytest.mark.parametrize(
    ("node", "word"),
    [(NEW, "confirmed"), (OLD, "reverted"), (OLD, "failed"), (UNTOUCHED, "pending"), (UNTOUCHED, "refused")],
)
def test_a_node_with_exactly_old_or_exactly_new_files_as_journaled_has_no_finding(node: Seen, word: str) -> None:
    assert findings(node, KNOWN, word) == ()


def with_file(node: Seen, path: str, what: str | None) -> Seen:
    tree = {**node.tree, path: what or ""}
    return replace(node, tree={key: text for key, text in tree.items() if text})


def with_state(node: Seen, **folders: frozenset[str]) -> Seen:
    return replace(node, state={**node.state, **{name.replace("_", "-"): names for name, names in folders.items()}})


def with_receipt(node: Seen, state: str) -> Seen:
    return replace(node, receipts=({**node.receipts[0], "state": state},))


PLANTED = [
    ("a file that is half written", with_file(NEW, CONFIG, "100644 0:0 bb"), "confirmed", Harm.LOST),
    ("an empty file", with_file(OLD, CONFIG, "100644 0:0 "), "reverted", Harm.LOST),
    ("one file old, one new", with_file(NEW, CONFIG, OLD_TREE[CONFIG]), "confirmed", Harm.LOST),
    ("a file that is gone", with_file(OLD, CONFIG, None), "reverted", Harm.LOST),
    ("another mode", with_file(NEW, CONFIG, "100600 0:0 bbb"), "confirmed", Harm.LOST),
    ("another owner", with_file(OLD, CONFIG, "100644 1000:0 aaa"), "reverted", Harm.LOST),
    ("a kubelet that is not running", replace(OLD, kubelet=Kubelet("failed", (), stale=False)), "reverted", Harm.LOST),
    ("old files, the kubelet of the new ones", replace(OLD, kubelet=NEW.kubelet), "reverted", Harm.LOST),
    ("unit files not read", replace(NEW, kubelet=replace(NEW.kubelet, stale=True)), "confirmed", Harm.LOST),
    ("new files that the journal calls reverted", NEW, "reverted", Harm.UNTRUE),
    ("old files that the journal calls confirmed", OLD, "confirmed", Harm.UNTRUE),
    ("a receipt that says another thing", with_receipt(OLD, "confirmed"), "reverted", Harm.UNTRUE),
    ("a transaction still armed", with_receipt(NEW, "armed"), "confirmed", Harm.UNTRUE),
    ("a transaction still going back", with_receipt(OLD, "reverting"), "reverted", Harm.UNTRUE),
    ("new files without a receipt", replace(NEW, receipts=(), state={"": STATE_TOP}), "confirmed", Harm.UNTRUE),
    ("a timer", replace(OLD, ours=("unit rollout-guard-r1-1.timer",)), "reverted", Harm.LEFT),
    ("the lock", replace(OLD, ours=("the lock is held",)), "reverted", Harm.LEFT),
    ("a boot unit", with_file(OLD, "/etc/systemd/system/rollout-guard-boot.service", "100644 0:0 x"), "reverted", Harm.LEFT),
    ("a folder that was made", with_file(OLD, FOLDER, "40755 0:0 "), "reverted", Harm.LEFT),
    ("a twin beside a target", with_file(NEW, "/var/lib/kubelet/.rollout-r1-1.1.new", "100644 0:0 x"), "confirmed", Harm.LEFT),
    ("a file of others that is gone", with_file(NEW, "/etc/hostname", None), "confirmed", Harm.LEFT),
    ("a live claim", replace(OLD, token=("3", "r1", "live")), "reverted", Harm.LEFT),
    ("what a claim lays down", with_state(OLD, **{"": STATE_TOP | {"void"}}), "reverted", Harm.LEFT),
    ("a state that others can read", replace(OLD, mode="755"), "reverted", Harm.LEFT),
    ("something unknown in our state", with_state(OLD, **{"": STATE_TOP | {"core"}}), "reverted", Harm.LEFT),
    ("staging without a receipt", with_state(OLD, r2_1=frozenset({"new.1"})), "reverted", Harm.LEFT),
    ("staging of a transaction that is over", with_state(OLD, r1_1=REVERTED | {"new.1"}), "reverted", Harm.LEFT),
    ("a receipt laid down that was used", with_state(NEW, r1_1=CONFIRMED | {"next/armed"}), "confirmed", Harm.LEFT),
]  # fmt: skip


@pytest.mark.parametrize(("node", "word", "harm"), [case[1:] for case in PLANTED], ids=[case[0] for case in PLANTED])
def test_planted_violations_are_found(node: Seen, word: str, harm: Harm) -> None:
    assert harm in {finding.harm for finding in findings(node, KNOWN, word)}


LIMITS = Limits({"a": frozenset({"n1", "n3"}), "b": frozenset({"n2"})}, per_rack=1, in_flight=2)


@pytest.mark.parametrize(
    ("away", "text"),
    [
        ((), ""),
        (("n1", "n2"), ""),
        (("n1", "n3"), "2 of rack a, the limit is 1: n1 n3"),
        (("n1", "n2", "n3"), "3 in flight, the limit is 2: n1 n2 n3"),
    ],
)
def test_more_nodes_away_than_the_limits_allow_are_found(away: tuple[str, ...], text: str) -> None:
    assert beyond(LIMITS, frozenset(away)) == text


def test_only_a_revert_of_a_node_that_the_fault_made_unhealthy_may_exceed_the_limits() -> None:
    under_way = {("n1", "t1"): "reverting", ("n2", "t1"): "armed", ("n3", "t1"): "reverting"}
    assert held_to_limits(under_way, frozenset({"n1", "n2"})) == {"n2", "n3"}


def test_a_thawed_controller_must_find_its_lease_lost_and_touch_nothing() -> None:
    told = "error: another controller has taken this run over; this one stops [lease-lost]"
    assert fenced(5, told, (OLD,), (OLD,)) == ()
    assert fenced(0, told, (OLD,), (OLD,)) != ()
    assert fenced(70, "Traceback", (OLD,), (OLD,)) != ()
    touched = Finding(Harm.UNTRUE, "n1", "touched by a controller that had lost its lease")
    assert fenced(5, told, (OLD,), (replace(OLD, token=("4", "r1", "live")),)) == (touched,)
    assert fenced(5, told, (OLD,), (NEW,)) == (touched,)


def test_a_change_that_a_node_made_twice_is_found() -> None:
    assert repeated("n1", {"r1-1": 1, "r1-2": 1}) == ()
    assert [str(found) for found in repeated("n1", {"r1-1": 2})] == ["untrue: n1: r1-1 was applied 2 times"]

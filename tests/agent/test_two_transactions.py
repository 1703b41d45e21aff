"""Two transactions on one node. The boot unit is theirs together: no verb for one removes it while the disk may still need it for the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from rollout.core.model.freeze import NodeFreeze
from rollout.core.model.report import Outcome
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import Claim
from tests.agent.node import CONFIG, FLAGS, OLD, Node, order

pytestmark = [pytest.mark.process, pytest.mark.drawn(10)]

BOOT_UNIT = "/etc/systemd/system/rollout-guard-boot.service"
WANTED = "/etc/systemd/system/basic.target.wants/rollout-guard-boot.service"
FIRST = {FLAGS: b"NEW=1\n"}
SECOND = {CONFIG: b"second config\n"}
TOKEN = {"run": "run-1", "counter": 1}
UNKNOWN = "*/tx/t1 killed\n" + "*/tx/t1/receipt.new killed\n" * 20
"""No sync of t1's receipt has a result any more."""

Verb = Callable[[Node], object]


def _call(name: str, **words: object) -> Verb:
    def verb(node: Node) -> object:
        return node.run(getattr(agent_call, name)(node.program, **words, sudo=False, deadline=60))

    return verb


def _trigger(what: str, tx: str) -> Verb:
    return lambda node: node.trigger(what, tx)


def _both(name: str, **words: object) -> Iterator[tuple[str, Verb]]:
    for tx in ("t0", "t1"):
        yield f"{name} {tx}", _call(name, tx=tx, **words)


VERBS: dict[str, Verb] = {
    "snapshot": lambda node: node.snapshot(),
    "verify": lambda node: node.verify(CONFIG),
    "status": _call("status"),
    "claim": _call("status", claim=Claim(1, "run-1")),
    "void t9": _call("status", tx="t9", claim=Claim(1, "run-1"), void=True),
    "apply t2": lambda node: node.apply(order("t2", old={**OLD, **FIRST, **SECOND}, new={CONFIG: b"third\n"})),
    **dict(_both("confirm", keep=1, **TOKEN)),
    **dict(_both("revert", **TOKEN)),
    "freeze": _call("freeze", order=NodeFreeze(2, "f-1", "ann", "year end")),
    "unfreeze": _call("unfreeze", order=NodeFreeze(2, "f-1", "ann", "year end")),
    "cleanup": _call("cleanup", **TOKEN),
    "forget": _call("forget", **TOKEN),
    **{f"{what} {tx}": _trigger(what, tx) for what in ("guard", "watch") for tx in ("t0", "t1")},
    "boot": lambda node: node.trigger("boot", "t1"),
}  # fmt: skip
ENDS_T1 = {"revert t1"}
"""The verbs that may end the transaction in another way than its unsettled one."""


def unsettled(node: Node, how: str) -> None:
    """t0 is confirmed. The sync of t1's confirm, or of the end of its revert, has no result."""
    assert node.apply(order("t0", new=FIRST)).healthy
    assert node.confirm("t0").outcome is Outcome.DONE
    assert node.apply(order("t1", old={**OLD, **FIRST}, new=SECOND)).healthy
    node.standin("lost", UNKNOWN if how == "confirm" else f"*/tx/t1 0\n{UNKNOWN}")
    getattr(node, how)("t1")
    assert (node.tx("t1") / "unsettled").stat().st_size
    assert node.at(BOOT_UNIT).exists()


@pytest.mark.parametrize("how", ["confirm", "revert"])
@pytest.mark.parametrize("verb", VERBS)
def test_the_boot_unit_stays_while_another_transaction_needs_it(node: Node, verb: str, how: str) -> None:
    unsettled(node, how)
    VERBS[verb](node)
    settled = not (node.tx("t1") / "unsettled").exists() or not (node.tx("t1") / "unsettled").stat().st_size
    if settled:
        assert verb in ENDS_T1, "no sync of its receipt had a result"
        return
    assert node.at(WANTED).is_symlink()
    program = re.search(r"(?m)^ExecStart=/bin/sh (\S+)/agent boot$", node.at(BOOT_UNIT).read_text())
    assert program is not None
    assert (node.tx(program[1].rpartition("/")[2]) / "agent").exists()
    _power_cut(node, how)
    tx = program[1].rpartition("/")[2]
    node.at("/run/standin/lost").unlink()
    assert node.trigger("boot", tx) == 0
    assert node.receipt("t1")["state"] == "reverted"
    assert node.read(CONFIG) == OLD[CONFIG]
    assert node.cleanup().leftovers == ()
    assert node.strays() == []


def _power_cut(node: Node, how: str) -> None:
    """The disk has the receipt from before the sync."""
    receipt = node.tx("t1") / "receipt"
    late, before = ("confirmed", "armed") if how == "confirm" else ("reverted-asked", "reverting")
    (node.tx("t1") / "next" / late).write_bytes(receipt.read_bytes())
    receipt.write_text(re.sub(r"(?m)^state=\w+$", f"state={before}", receipt.read_text()))
    node.reboot()

"""A command on many nodes: within its bounds, node by node, and ended in order."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

import pytest

from rollout.app.node_access import NodeAccess
from rollout.app.operator_commands import Commanded, OperatorCommand, run_on_all
from rollout.app.ports import Target
from rollout.core.model.inventory import Node
from rollout.core.model.playbook import Limits, Share
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.run.at_once import AtOnce, at_once
from rollout.features.exec.asking import shell_line

NAMES = [f"n{number}" for number in range(6)]
ACCESS = NodeAccess("", {name: Target(name, name) for name in NAMES}, dict.fromkeys(NAMES, True))
UPTIME = OperatorCommand("uptime", 60.0)


def bounds(limits: Limits) -> AtOnce:
    """Two racks of three."""
    nodes = [Node(name, name, f"r{at // 3}", "z") for at, name in enumerate(NAMES)]
    return at_once(nodes, nodes, limits, None)


@dataclass
class Fleet:
    """Nodes that answer once ``together`` of them are busy, and count how many ever were, by rack."""

    together: int
    most: Counter[str] = field(default_factory=Counter)
    busy: Counter[str] = field(default_factory=Counter)
    released: list[str] = field(default_factory=list)
    commands: list[RemoteCommand] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.barrier = threading.Barrier(self.together)

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        rack = f"r{NAMES.index(target.name) // 3}"
        with self.lock:
            self.commands.append(command)
            self.busy[rack] += 1
            self.most[rack] = max(self.most[rack], self.busy[rack])
        self.barrier.wait(60)
        with self.lock:
            self.busy[rack] -= 1
        return RemoteAnswer(0, target.name.encode(), b"", started=True)

    def release(self, target: Target) -> None:
        self.released.append(target.name)

    def close(self) -> None:
        """Nothing is open."""


def never() -> bool:
    return False


def test_each_node_runs_it_once_and_two_racks_go_side_by_side_within_their_limits() -> None:
    fleet, so_far, heard = Fleet(2), Commanded([*NAMES]), list[str]()
    run_on_all(
        ACCESS, fleet, lambda _: UPTIME, bounds(Limits(per_rack=Share(count=1))), so_far,
        stopping=never, heard=lambda result: heard.append(result.node),
    )  # fmt: skip
    assert fleet.most == {"r0": 1, "r1": 1}
    assert sorted(heard) == sorted(fleet.released) == sorted(result.node for result in so_far.results) == NAMES
    assert (so_far.waiting, so_far.busy) == ([], set())


def test_once_it_is_stopping_no_node_starts_and_those_in_flight_finish() -> None:
    fleet, so_far = Fleet(1), Commanded([*NAMES])
    run_on_all(
        ACCESS, fleet, lambda _: UPTIME, bounds(Limits(in_flight=1)), so_far,
        stopping=lambda: len(so_far.results) >= 2, heard=lambda _: None,
    )  # fmt: skip
    assert [result.node for result in so_far.results] == ["n0", "n1"]
    assert (len(so_far.waiting), so_far.busy) == (4, set())


def test_an_error_of_our_own_is_not_taken_for_an_answer() -> None:
    class Broken(Fleet):
        def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
            raise ZeroDivisionError(target.name)

    with pytest.raises(ZeroDivisionError):
        run_on_all(
            ACCESS,
            Broken(1),
            lambda _: UPTIME,
            bounds(Limits()),
            Commanded([*NAMES]),
            stopping=never,
            heard=lambda _: None,
        )


def test_one_word_is_a_line_and_several_are_quoted() -> None:
    assert shell_line(["df -h | tail -1"]) == "df -h | tail -1"
    assert shell_line(["grep", "a b", "/etc/$x"]) == "grep 'a b' '/etc/$x'"


def test_sudo_is_for_nodes_that_need_it() -> None:
    through = OperatorCommand("id -u; id -g", 5.0, sudo=True).on(through_sudo=True)
    assert (through.line, through.bare) == ("env LC_ALL=C sudo -n -- sh -c 'id -u; id -g'", "sh -c 'id -u; id -g'")
    as_root, without = OperatorCommand("id", 5.0, sudo=True), OperatorCommand("id", 5.0)
    for command in (as_root.on(through_sudo=False), without.on(through_sudo=True)):
        assert (command.line, command.bare, command.stdin, command.deadline) == ("id", "", b"", 5.0)

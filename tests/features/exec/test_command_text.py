"""A command on many nodes is shown as few lines: the same result stands once, and what did not answer has its reason."""

from __future__ import annotations

from rollout.core.model.report import CommandResult
from rollout.core.text import documents
from rollout.features.exec.words import (
    CommandResultDocument,
    command_lines,
    given_up,
    not_started,
    recorded_end,
    recorded_start,
)
from tests.documents import as_printed

KEPT = 64 * 1024


def shown(*results: CommandResult, left: tuple[str, ...] = ()) -> list[str]:
    return list(command_lines(results, left, KEPT))


def refused(node: str, address: str) -> CommandResult:
    message = f"connection refused (at {address}:22); check that sshd runs"
    return CommandResult(node, None, started=False, reference="connection-refused", message=message)


def test_nodes_with_the_same_result_stand_once_the_largest_group_first() -> None:
    assert shown(
        CommandResult("a-3", 1, b"", b"no such file\n"),
        CommandResult("a-1", 0, b"up 3 days\n"),
        CommandResult("a-2", 0, b"up 3 days\n"),
        CommandResult("a-4", 0, b"up 3 days\n", b"warning\n"),
        refused("a-5", "10.0.0.5"),
        refused("a-6", "10.0.0.6"),
    ) == [
        "a-[1-2] (2 nodes): exit status 0",
        "  up 3 days",
        "a-3 (1 node): exit status 1",
        "  stderr: no such file",
        "a-4 (1 node): exit status 0",
        "  up 3 days",
        "  stderr: warning",
        "a-[5-6] (2 nodes): no answer: connection refused (at the address of NODE); check that sshd runs [connection-refused]",
        "6 nodes: 3 with exit status 0, 1 with another exit status, 2 without an answer",
    ]


def test_the_same_output_with_another_status_is_another_group() -> None:
    first, _, second, *_ = shown(CommandResult("a-1", 0, b"x\n"), CommandResult("a-2", 3, b"x\n"))
    assert (first, second) == ("a-1 (1 node): exit status 0", "a-2 (1 node): exit status 3")


def test_output_without_a_last_line_end_is_another_result() -> None:
    """Folding compares bytes, as the exit status says nothing of them."""
    assert len(shown(CommandResult("a-1", 0, b"x\n"), CommandResult("a-2", 0, b"x"))) == 5


def test_cut_output_is_marked() -> None:
    assert shown(CommandResult("a-1", 0, b"x\n", cut=True))[2] == "  … output cut: a node's output is kept up to 64 KiB"


def test_what_was_printed_before_a_deadline_is_shown() -> None:
    late = CommandResult("a-1", None, b"begun\n", reference="deadline", message="not finished after 30 s")
    assert shown(late)[:2] == ["a-1 (1 node): no answer: not finished after 30 s [deadline]", "  begun"]


def test_an_exit_status_with_a_remark_has_its_reference() -> None:
    held = CommandResult("a-1", 0, reference="output-held-open", message="a process keeps its output open")
    assert shown(held)[0] == "a-1 (1 node): exit status 0; a process keeps its output open [output-held-open]"


def test_no_node_can_write_a_line_of_ours_or_steer_the_terminal() -> None:
    forged = b"\x1b[2J\x1b]0;title\x07ok\rb-1 (1 node): exit status 0\n\x9b1mbold\xe2\x80\xae\n\x1b]unended\nafter\n"
    first, *body, last = shown(CommandResult("a-1", 0, forged))
    assert (first, last) == ("a-1 (1 node): exit status 0", "1 node: 1 with exit status 0")
    assert body == ["  ok", "  b-1 (1 node): exit status 0", "  �1mbold", "", "  after"]


def test_tables_keep_their_columns() -> None:
    table = b"NAME\tSTATE\n  a\tup\n"
    assert shown(CommandResult("a-1", 0, table))[1:3] == ["  NAME    STATE", "    a     up"]


def test_nodes_that_were_not_started_are_named() -> None:
    lines = shown(CommandResult("a-1", 0), left=("a-2", "a-3"))
    assert lines[1:] == [
        "a-[2-3] (2 nodes): not started [not-started]",
        "3 nodes: 1 with exit status 0, 2 not started",
    ]


def test_a_line_of_json_is_safe_for_a_terminal_and_has_everything() -> None:
    found = CommandResultDocument(CommandResult("a-1", 0, b"\x1b[2J\xff", b"e", cut=True))
    assert documents.line(found).isprintable()
    assert as_printed(found) == {
        "apiVersion": "rollout/v1", "kind": "CommandResult",
        "node": "a-1", "exitStatus": 0, "stdout": "\x1b[2J\ufffd", "stderr": "e", "started": True, "cut": True,
        "reference": "", "message": "",
    }  # fmt: skip
    assert as_printed(CommandResultDocument(not_started("a-2")))["reference"] == "not-started"


def test_the_record_has_the_nodes_the_command_and_how_each_ended() -> None:
    start = recorded_start("exec r1", ["a-1", "a-2"], 'echo "x\n"', sudo=True, seconds=30, reason="OPS-1")
    assert start == (
        'exec r1: command on a-[1-2] (2 nodes) through sudo, at most 30 s each: "echo \\"x\\n\\""; reason: OPS-1'
    )
    results = [CommandResult("a-1", 0), CommandResult("a-2", 1), CommandResult("a-3", 0), refused("a-4", "10.0.0.4")]
    assert recorded_end("exec r1", [*results, given_up("a-6")], ["a-5"]) == (
        "exec r1 ended: connection-refused on a-4 (1 node); exit status 0 on a-[1,3] (2 nodes); "
        "exit status 1 on a-2 (1 node); not-started on a-5 (1 node); not-waited-for on a-6 (1 node)"
    )

"""Every reference that the program prints has an entry, and every entry is used."""

from __future__ import annotations

import re

import click
import pytest

from rollout.cli.main import cli, run
from rollout.errors import InputError, Problem, UsageError
from rollout.kubelet.explained.explanation import every_name
from rollout.kubelet.explained.references import ANY, about, references, where_to_read_more
from tests import wire_names
from tests.documents import only
from tests.house.language import Kind, Prose, complaints

OTHER_WORDS = frozenset(
    {
        "ansible-inventory",
        "ansible-pull",
        "boot-id",
        "cloud-init",
        "config-dir-alpha",
        "control-group",
        "drain-and-restart",
        "hard-links",
        "healthz-port",
        "image-gc-high-threshold",
        "image-gc-low-threshold",
        "iptables-drop-bit",
        "k3s-agent",
        "k3s-drop-in",
        "iptables-masquerade-bit",
        "inhibit-delay",
        "kubeadm-deb",
        "kubelet-arg",
        "kubelet-root",
        "kube-system",
        "kubelet-config",
        "kubelet-version",
        "log-unreadable",
        "machine-id",
        "not-its-own",
        "not-observed",
        "oom-score-adj",
        "read-only-port",
        "rke2-agent",
        "rke2-server",
        "restart-kubelet",
        "restart-runtime",
        "rollout-lab",
        "room-kib",
        "s-pending",
        "sk-ssh-ed25519",
        "span-hold",
        "state-dir-fs",
        "verdict-word",
        "rke2-drop-in",
    }
)
"""Words that look like references to ``wire_names``: flags, facts of nodes, layouts, kinds of disruption, what a node answers of its health port."""


def printed() -> set[str]:
    """The references in the code, other than those that it puts together."""
    return set(wire_names.names()["references"]) - OTHER_WORDS


@pytest.mark.no_cover  # reads the source, not the code under test
def test_every_reference_has_an_entry() -> None:
    missing = sorted(word for word in printed() if about(word) is None)
    assert missing == [], "add them to rollout/kubelet/explained/references.toml"


@pytest.mark.no_cover
def test_every_entry_is_used() -> None:
    begun = set(re.findall(r'f"([a-z]+(?:-[a-z]+)*-)\{', "".join(wire_names.sources())))
    families = {key.removesuffix(ANY) for key in references() if key.endswith(ANY)}
    assert families <= begun
    assert {key for key in references() if not key.endswith(ANY)} - wire_names.words() == set()


def test_other_words_have_no_entry_and_are_in_the_code() -> None:
    assert OTHER_WORDS & set(references()) == set()
    assert set(wire_names.names()["references"]) >= OTHER_WORDS


def test_no_reference_is_the_name_of_a_setting() -> None:
    settings = {name.removeprefix("--") for name in every_name()}
    assert settings & set(references()) == set()


def test_entries_are_sentences_by_the_rules_of_language() -> None:
    texts = [text for entry in references().values() for text in (entry.cause, entry.remedy)]
    assert [text for text in texts if not text.endswith(".") or "\n" in text] == []
    assert [found for text in texts for found in complaints(Prose(0, text, Kind.PRINTED))] == []


@pytest.mark.parametrize("written", ["drifted", "[drifted]"])
def test_a_reference_is_explained_as_it_was_printed(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", written]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[drifted]  What a node refuses"
    assert [line.split(":")[0] for line in lines[1:]] == ["  cause", "  remedy"]


def test_a_reference_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "locked", "-o", "json"]) == 0
    document = only(capsys.readouterr().out)
    assert (document["kind"], document["reference"], document["subject"]) == ("Reference", "locked", "Runs")


def test_a_family_has_one_entry_and_never_hides_a_setting(capsys: pytest.CaptureFixture[str]) -> None:
    found = about("gate-podsKept")
    assert found is not None
    assert found.reference == "gate-NAME"
    assert about("gate-NAME") is None
    assert run(["explain", "http-check-frequency"]) == 0
    assert capsys.readouterr().out.startswith("--http-check-frequency  flag")


def test_a_reference_of_older_plans_is_explained_by_its_name_of_today() -> None:
    assert about("containers-would-end") == about("containers-killed") is not None


def test_a_misspelt_reference_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "drifed"]) == 2
    assert "did you mean `drifted`?" in capsys.readouterr().err


def test_a_message_leads_to_at_most_three_entries() -> None:
    assert where_to_read_more(["locked", "no-such-thing", "locked", "tls"]) == (
        "rollout explain locked",
        "rollout explain tls",
    )
    assert len(where_to_read_more(["tls", "locked", "busy", "closed"])) == 3


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize(
    "error",
    [UsageError("no-runs", "no run"), InputError((Problem("no-runs", "no run"), Problem("no-such-thing", "x")))],
)
def test_only_a_terminal_gets_the_command_that_explains(
    error: UsageError | InputError,
    *,
    terminal: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    @click.command()
    def fails() -> None:
        raise error

    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    monkeypatch.setattr(cli, "get_command", lambda _context, _name: fails)
    assert run(["status"]) == 2
    assert ("more: rollout explain no-runs" in capsys.readouterr().err.splitlines()) is terminal

"""For any node: a change writes the old content with our part merged in, a second merge changes nothing, and the copies
that a revert restores have the exact old bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.plan import ExcludedNode
from rollout.core.model.playbook import Shadowed
from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.changes.changes import Proposal
from rollout.kubelet.node import arguments, env_file, layout
from rollout.kubelet.node.layout import LayoutError
from tests.kubelet import nodes
from tests.kubelet.deciding import decide
from tests.kubelet.nodes import CONFIG, DEB, DROP_IN, FRAGMENT, KUBEADM_FLAGS, POLICY, regular, settings

MOVE = replace(POLICY, shadowed=Shadowed.MOVE)
WANTED = settings(serializeImagePulls=False, registryPullQPS=20, imagePullProgressDeadline="5m")
OURS = frozenset({"--serialize-image-pulls", "--registry-qps", "--image-pull-progress-deadline"})

TEXT = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=6)
WORDS = st.lists(
    st.one_of(
        st.builds("--{}={}".format, st.sampled_from(["hostname-override", "cert-dir", "node-ip"]), TEXT),
        st.sampled_from(
            ["--fail-swap-on", "--v=3", "--node-labels=a=b,c=d", "--serialize-image-pulls", "--registry_qps=3"]
        ),
        st.sampled_from(["--serialize-image-pulls=true", "--registry-qps=7", "--image-pull-progress-deadline=1m"]),
    ),
    max_size=5,
)


def single(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'"


def escaped(word: str) -> str:
    """Without a blank at its end: systemd removes blanks from the end of a line before it checks for backslashes."""
    if word.endswith(" "):
        return arguments.quote(word)
    return "".join("\\" + mark if mark in " \\\"'" else mark for mark in word) or "''"


QUOTES = st.sampled_from([arguments.quote, single, escaped])
ENDS = st.sampled_from(["\n", "\r\n"])
BLANKS = st.sampled_from([" ", "  ", "\t"])


@dataclass(frozen=True)
class Line:
    """Words of a command line as a person wrote them."""

    words: tuple[str, ...]
    text: str


@st.composite
def lines(draw: st.DrawFn) -> Line:
    words = draw(WORDS)
    return Line(tuple(words), "".join(draw(BLANKS) + draw(QUOTES)(word) for word in words).strip())


@st.composite
def environment_files(draw: st.DrawFn) -> tuple[Line, str]:
    """``KUBELET_EXTRA_ARGS`` among other lines, bare or quoted."""
    line, end = draw(lines()), draw(ENDS)
    bare = line.text.replace("\\", "\\\\").replace('"', '\\"').replace("'", "\\'")
    value = draw(st.sampled_from([bare, env_file.quote(line.text)]))
    before = draw(
        st.lists(
            st.sampled_from(["# a comment", "; another", "OTHER='x y'", "KUBELET_EXTRA_ARGS=--v=1", ""]), max_size=3
        )
    )
    after = draw(st.lists(st.sampled_from(["# the end", "B=1", "nonsense", ""]), max_size=2))
    text = end.join([*before, f"KUBELET_EXTRA_ARGS={value}", *after]) + draw(st.sampled_from(["", end]))
    return line, text


@given(environment_files(), lines())
def test_environment_files(written: tuple[Line, str], kubeadm_flags: Line) -> None:
    line, text = written
    found = nodes.kubeadm(version="1.23.17", extra="")
    flags = f"--network-plugin=cni {kubeadm_flags.text}".strip()
    files = {
        **found.files,
        DEB: regular(DEB, text),
        KUBEADM_FLAGS: regular(KUBEADM_FLAGS, f"KUBELET_KUBEADM_ARGS={env_file.quote(flags)}\n"),
    }
    command = found.measurement.process.command_line if found.measurement.process else ()
    before = command[: command.index("--network-plugin=cni") + 1]
    check(nodes.with_command(replace(found, files=files), *before, *kubeadm_flags.words, *line.words))


@given(lines(), st.sampled_from(["\n", " \\\n  ", " \\\n  # why\n  ; or not\n  "]))
def test_plain_units(line: Line, joint: str) -> None:
    separator = " " if joint == "\n" else joint
    quoted = line.text.replace("%", "%%").replace("$", "$$")
    fixed = f"/usr/local/bin/kubelet{separator}--config={CONFIG}"
    unit = f"[Unit]\nDescription=kubelet\n[Service]\nExecStart={fixed}{separator}{quoted}\nRestart=always\n"
    found = nodes.with_file(nodes.plain(version="1.23.17"), regular(FRAGMENT, unit))
    check(nodes.with_command(found, "/usr/local/bin/kubelet", f"--config={CONFIG}", *line.words))


def check(found: Snapshot) -> None:
    try:
        asked = layout.find(found).asked
    except LayoutError:
        return
    got = decide(found, WANTED, MOVE)
    if isinstance(got, ExcludedNode):
        assert got.reference in {"layout-not-understood", "config-not-understood"}, got
        return
    for file in got.change.files:
        state = found.files[file.path]
        assert state.kind == "absent" if file.before is None else file.before == state.content
    after = nodes.applied(found, got.change)
    assert others(layout.find(after).asked) == others(asked)
    assert isinstance(decide(after, WANTED, MOVE), ExcludedNode)
    check_other_lines(found, got)


def others(words: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(flag.name, flag.value) for flag in arguments.given(words) if flag.name not in OURS]


def check_other_lines(found: Snapshot, got: Proposal) -> None:
    """Everything around the one assignment that changes keeps its bytes."""
    for file in got.change.files:
        if file.path not in {DEB, KUBEADM_FLAGS} or not file.before:
            continue
        variable = "KUBELET_EXTRA_ARGS" if file.path == DEB else "KUBELET_KUBEADM_ARGS"
        old, new = file.before.decode(), file.after.decode()
        was = [each for each in env_file.parse(old) if each.name == variable][-1]
        now = [each for each in env_file.parse(new) if each.name == variable][-1]
        assert (old[: was.start], old[was.end :]) == (new[: now.start], new[now.end :])


def test_only_our_own_drop_in_is_written_among_unit_files() -> None:
    got = decide(nodes.plain(version="1.23.17", more="--registry-qps=3"), WANTED, MOVE)
    assert isinstance(got, Proposal)
    assert {file.path for file in got.change.files} == {CONFIG, DROP_IN}

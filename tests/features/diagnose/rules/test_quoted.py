"""What a pod's author writes stands in quoted fields of other messages: no phrase that is searched for means anything there.

The phrases are those of the tables, and every line of a log that shows a finding. The hosts are the forms of lines that the
other tests use.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from rollout.features.diagnose.rules.facts import MOST_FACTS, Fact
from rollout.features.diagnose.rules.finding import Confidence
from rollout.features.diagnose.rules.messages import WANTED
from rollout.features.diagnose.rules.others_text import MOST_RANGES, OthersText
from rollout.features.diagnose.rules.reading import FileReading
from rollout.features.diagnose.rules.sieve import QUOTED
from tests.features.diagnose.rules.logs import NODE, diagnosis, found, journal, klog, logrus
from tests.features.diagnose.rules.test_each_finding import LOGS
from tests.sampling import sample

LINES = sorted(
    {
        line
        for shows, _ in LOGS.values()
        for line in shows.splitlines()
        if not line.lstrip().startswith(("{", "}", '"', "["))
    }
)
"""Whole lines of logs: a text with line ends may contain one."""
PHRASES = sorted({*WANTED, *(word for words in WANTED.values() for word in words if word), QUOTED.decode(), *LINES})


def go(text: str) -> str:
    """In Go's quotes, as klog and logrus print a value."""
    return json.dumps(text)


def pod(text: str) -> str:
    """A container as kubelets up to 1.30 print it, whose values are as they were written."""
    return (
        f"&Container{{Name:app,Image:{text},Command:[],Args:[{text}],Env:[]EnvVar{{EnvVar{{Name:A,Value:{text},}},}},}}"
    )


HOSTS: dict[str, Callable[[str], str]] = {
    "a key": lambda text: klog(0, f'"Observed pod startup duration" pod="shop/web" image={go(text)} err={go(text)}'),
    "an error of several lines": lambda text: klog(0, '"Probe failed" pod="shop/web" err=<') + f"\n\t{text}\n\t{text} x\n >",
    "words": lambda text: klog(0, f"Probe of container {go(text)} failed: {go(text)}"),
    "words without quotes": lambda text: klog(0, f"Probe of container {pod(text)} failed: exec of {text}"),
    "an annotation": lambda text: klog(0, f'"Pod was rejected" pod="shop/web" annotations={{"a":{go(text)}}}'),
    "JSON": lambda text: json.dumps({"ts": 1795656502746.1, "caller": "prober/prober.go:1", "msg": "Probe failed", "v": 0, "err": text, "pod": {"name": text}}),
    "JSON, compact": lambda text: json.dumps({"ts": 1.5, "caller": "a.go:1", "msg": "Probe failed", "v": 0, "err": text}, separators=(",", ":")),
    "a runtime": lambda text: logrus(0, f"RunPodSandbox for &PodSandboxMetadata{{Name:{text},}}", rest=f" error={go(text)} pod={go(text)}"),
    "a runtime's JSON": lambda text: json.dumps({"error": text, "level": "info", "msg": f"StartContainer for {text}", "time": "2026-11-20T09:00:00Z"}),
    "another program": lambda text: f"Probe of {go(text)}: {text}",
}  # fmt: skip


def in_the_journal(host: Callable[[str], str], program: str) -> Callable[[str], str]:
    return lambda text: "\n".join(journal(line, 0, program) for line in host(text).splitlines())


def as_journal_json(host: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(
        json.dumps({"MESSAGE": line, "_HOSTNAME": "n", "__REALTIME_TIMESTAMP": "1795656502746000"})
        for line in host(text).splitlines()
    )


EVERYWHERE = {
    **{name: host for name, host in HOSTS.items() if name != "another program"},
    **{f"{name}, in the journal": in_the_journal(host, "kubelet[3033]") for name, host in HOSTS.items()},
    **{f"{name}, of a container": in_the_journal(host, "web[9]") for name, host in HOSTS.items()},
    **{f"{name}, in the journal's JSON": as_journal_json(host) for name, host in HOSTS.items()},
}


def container(text: str) -> str:
    """A kubelet up to 1.30 that cannot start a container: its arguments, with their line ends, in one message."""
    ahead = f"container &Container{{Name:app,Image:a/b:1,Command:[],Args:[x{chr(10)}{text}{chr(10)}],WorkingDir:,}}"
    return klog(
        0, f"{ahead} start failed in pod web_shop(0f): ErrImagePull: not found", "E", "kuberuntime_manager.go:1256"
    )


def that_looks_whole(text: str) -> str:
    """The same, where the author ends the message before the forged lines, and begins another one behind them."""
    begins = klog(0, "container &Container{Name:app,Image:a/b:1,Command:[],Args:[", "E", "kuberuntime_manager.go:1256")
    return container(f"],}} start failed in pod web_shop(0f): ErrImagePull: not found\n{text}\n{begins}")


def probe(text: str) -> str:
    """A kubelet up to 1.20: the output of a probe as it is."""
    return klog(0, f'Liveness probe for "web_shop(0f):app" failed (failure): x\n{text}', "I", "prober.go:117")


def unhealthy(text: str) -> str:
    where = 'Event(v1.ObjectReference{Kind:"Pod", Namespace:"shop", Name:"web", UID:"0f"}): type: \'Warning\' reason:'
    return klog(0, f"{where} 'Unhealthy' Liveness probe failed: x\n{text}", "I", "event.go:209")


PRINTS_AS_IT_IS = {
    "a container": container,
    "a message that looks whole": that_looks_whole,
    "a probe": probe,
    "an event": unhealthy,
}


def facts(text: str) -> list[Fact]:
    lines = (text + "\n").encode().splitlines(keepends=True)
    return list(FileReading("f").of(iter(lines), datetime(2026, 12, 31, tzinfo=UTC)))


@pytest.mark.parametrize("host", EVERYWHERE)
def test_a_phrase_in_a_field_means_nothing(host: str) -> None:
    shown = {
        phrase: [fact.kind.value for fact in found] for phrase in PHRASES if (found := facts(EVERYWHERE[host](phrase)))
    }
    assert shown == {}


def test_the_phrases_alone_mean_something() -> None:
    """Else the test above would prove nothing."""
    assert len(LINES) > 20
    assert sum(bool(facts(line)) for line in LINES) > len(LINES) // 2


FORGED = {name: shows for name, (shows, _) in LOGS.items() if not shows.lstrip().startswith(("{", "["))}
"""Every log of words that shows a finding, as a text of others."""


def confidence(text: str) -> dict[str, Confidence]:
    return {each.id: each.confidence for each in found(text).values()}


@pytest.mark.parametrize("host", PRINTS_AS_IT_IS)
@pytest.mark.parametrize("name", FORGED)
def test_whole_lines_that_a_pod_may_have_written_make_nothing_certain(name: str, host: str) -> None:
    """They have a header, a source and a time as the kubelet's own lines: what they show is likely, and says why."""
    text = PRINTS_AS_IT_IS[host](FORGED[name][: 9 << 10])
    before, behind = klog(-60, '"Starting kubelet"'), klog(90, '"Observed pod" pod="shop/x"')
    for forged in (f"{before}\n{text}\n{behind}\n", *_in_the_journal(before, text, behind)):
        for each in found(forged).values():
            assert each.confidence is not Confidence.CERTAIN, (each, forged)
            assert each.confidence is not Confidence.LIKELY or each.fetch_next, each


def _in_the_journal(before: str, text: str, behind: str) -> Iterator[str]:
    """journald writes the time at which a line came, whatever time it contains."""
    lines = [journal(before, -60), *(journal(line, 0) for line in text.splitlines()), journal(behind, 90)]
    yield "\n".join(lines) + "\n"


OPENS = klog(0, "container &Container{Name:app,Image:a/b:1,Command:[],Args:[x", "E", "kuberuntime_manager.go:1256")
ENDS = "],} start failed in pod web_shop(0f): ErrImagePull: not found"
OUTPUT = klog(0, 'Liveness probe for "web_shop(0f):app" failed (failure): x', "I", "prober.go:117")
AROUND: dict[str, tuple[str, str]] = {
    "no end": (f"{OPENS}\n", ""),
    "many openings behind": (f"{OPENS}\n", "&Container{\n" * 10_500 + ENDS),
    "many openings ahead": (f"{OPENS}\n" + "&Container{\n" * 10_500, ENDS),
    "many ends ahead": (f"{OPENS}\n" + f"{ENDS}\n" * 10_500, ENDS),
    "many empty lines behind": (f"{OPENS}\n", "\n" * 54_000 + ENDS),
    "many empty lines ahead": (f"{OPENS}\n" + "\n" * 54_000, ENDS),
    "many entries of envFrom ahead": (f"{OPENS}{' EnvFromSource{Prefix:,},' * 100_000}\n", ENDS),
    "openings in other forms": (f"{OPENS}\n" + f"{journal(OPENS, -3600)}\n" * 100, ENDS),
    "a line of another time ahead": (
        f"{OPENS}\n{journal('x', 600)}\n" + '{"MESSAGE":"x","__REALTIME_TIMESTAMP":"1"}\n',
        "",
    ),
    "an output": (f"{OUTPUT}\n", ""),
    "an output with empty lines ahead": (f"{OUTPUT}\n" + "\n" * 4_000, ""),
}
"""What the author of a pod, or a journal that drops lines, puts around forged lines."""


def _json(message: object, seconds: float = 0) -> str:
    at = str(1795656502000000 + int(seconds * 1e6))
    return json.dumps(
        {"MESSAGE": message, "_HOSTNAME": "n", "_PID": "3033", "__REALTIME_TIMESTAMP": at, "_X": "y" * 40}
    )


WRITTEN: dict[str, Callable[[list[str]], Iterator[str]]] = {
    "a file": iter,
    "a journal": lambda lines: (journal(line, 0) for line in lines),
    "a journal whose first line is a blob": lambda lines: (
        journal("[5.1K blob data]" if number == 0 else line, 0) for number, line in enumerate(lines)
    ),
    "a journal with other writers": lambda lines: (
        each for line in lines for each in (journal(line, 0), journal("x" * 200, 1, "web[9]"), journal(OPENS, 0, "web[8]"))
    ),
    "a journal that takes 1 second for 2,000 lines": lambda lines: (
        journal(line, number // 2_000) for number, line in enumerate(lines)
    ),
    "JSON": lambda lines: (_json(line) for line in lines),
    "JSON whose first line is bytes": lambda lines: (
        _json(line if number else list(line.encode())) for number, line in enumerate(lines)
    ),
    "JSON whose first line is too long": lambda lines: (
        _json(line if number else None) for number, line in enumerate(lines)
    ),
}  # fmt: skip


FORGERIES = [(around, written) for around in AROUND for written in WRITTEN]


@pytest.mark.parametrize(("around", "written"), sample("forgeries", FORGERIES, 24))
def test_no_text_around_forged_lines_makes_them_certain(around: str, written: str) -> None:
    """All the logs that show a finding, or one of them where the message is long."""
    ahead, behind = AROUND[around]
    names = sorted(FORGED)
    for name in names if len(ahead + behind) < 1_000 else sample(f"forged {around} {written}", names, 1):
        lines = list(WRITTEN[written](f"{ahead}{FORGED[name][: 5 << 10]}\n{behind}".split("\n")))
        for each in found("\n".join(lines) + "\n").values():
            assert each.confidence is not Confidence.CERTAIN, (each, name)


@pytest.mark.parametrize("written", ["a journal", "JSON", "a journal whose first line is a blob"])
@pytest.mark.parametrize("name", sample("forged backwards", sorted(FORGED), 6))
def test_a_file_with_the_newest_line_first_makes_them_no_more_certain(name: str, written: str) -> None:
    """The forged lines then stand ahead of the message that they are a part of."""
    text = [*f"{OPENS}\n{FORGED[name][: 5 << 10]}".split("\n"), "x"]
    before = [_json("x", -60)] if written == "JSON" else [journal("x", -60)]
    lines = [*before, *WRITTEN[written](text)]
    for each in found("\n".join(reversed(lines)) + "\n").values():
        assert each.confidence is not Confidence.CERTAIN, (each, name)


def test_every_line_between_is_of_others_and_ranges_without_number_are_kept() -> None:
    """10,000 messages a second apart from each other, twice as many as are told apart: the oldest are not forgotten."""
    others, number = OthersText(), 0
    forged = []
    for message in range(2 * MOST_RANGES + 10):
        for line in (OPENS, "forged"):
            number += 1
            others.take(number, f"{journal(line, message * 5)}\n".encode())
        forged.append(number)
    assert all(map(others.holds, forged))
    assert not others.holds(forged[-1] - 1)
    assert not others.holds(1)


def test_a_later_kubelets_quotes_and_tabs_are_no_message_of_others() -> None:
    """They keep every line of a text of others apart, so lines behind them are the kubelet's own."""
    shows = FORGED["pleg-unhealthy"].rstrip()
    in_quotes = klog(0, f'"Unhandled Error" err={go(container("x"))}', "E")
    with_tabs = klog(0, '"Unhandled Error" err=<', "E") + "\n\tcontainer &Container{Name:app,}\n >"
    for ahead in (in_quotes, with_tabs):
        assert confidence(f"{ahead}\n{shows}\n")["pleg-unhealthy"] is Confidence.CERTAIN


def test_what_the_kubelet_prints_at_another_time_is_its_own() -> None:
    shows = FORGED["pleg-unhealthy"]
    assert confidence(shows)["pleg-unhealthy"] is Confidence.CERTAIN
    own = [journal(line, 60) for line in shows.splitlines()]
    around = [[journal(line, at) for line in container("x").splitlines()] for at in (0, 120)]
    assert confidence("\n".join([*around[0], *own, *around[1]]) + "\n")["pleg-unhealthy"] is Confidence.CERTAIN


def test_lines_of_others_do_not_take_certainty_from_what_is_certain_without_them() -> None:
    shows = FORGED["pleg-unhealthy"].rstrip()
    assert confidence(f"{shows}\n{container(shows)}\n")["pleg-unhealthy"] is Confidence.CERTAIN


LIES = sorted(
    {
        line
        for shows, alike in LOGS.values()
        for line in (shows + alike).splitlines()
        if line.strip() and not line.lstrip().startswith(("{", "}", '"', "[", "]"))
    }
    | {
        klog(at, words)
        for at in (-1, 5, 400)
        for words in ('"Kubelet version" kubeletVersion="v1.36.2"', "Version: v1.13.0")
    }
    | {
        klog(at, f'"Successfully registered node" node="{name}"')
        for at in (-1, 5)
        for name in ("other", "tess-node-0007")
    }
)
"""Lines that show a finding, lines of logs that look alike and show none, versions and names: each may contradict a true log."""


def _lies() -> Iterator[tuple[str, str]]:
    for host, prints in PRINTS_AS_IT_IS.items():
        everything = "\n".join(LIES)
        yield f"all in {host}", prints(everything if host.startswith("a container") else everything[: 9 << 10])
        yield from ((f"one in {host}", prints(line)) for line in LIES if len(line) < 9 << 10)


TRUE = sorted(FORGED)


@pytest.mark.parametrize("name", TRUE)
def test_no_line_of_others_makes_a_finding_vanish(name: str) -> None:
    """What the log shows without them stays reported; where only they contradict it, it is likely, and says why."""
    shows = FORGED[name].rstrip()
    alone = found(shows)
    assert name in alone
    for what, lie in sample(f"lies {name}", list(_lies()), 20):
        ahead = [
            *(journal(line, -90) for line in lie.splitlines()),
            *(line if f" {NODE} " in line else journal(line, 0) for line in shows.splitlines()),
        ]
        for text in (f"{shows}\n{lie}\n", "\n".join(ahead) + "\n"):
            both = diagnosis(text).findings
            for each in alone.values():
                same = [other for other in both if other.id == each.id and set(each.nodes) <= set(other.nodes)]
                assert same, (what, each.id)
                if each.confidence is not Confidence.UNKNOWN:
                    assert any(other.confidence is not Confidence.UNKNOWN for other in same), (what, each.id)


def test_no_number_of_lines_of_others_displaces_those_of_the_kubelet() -> None:
    """Of each kind the newest lines are kept: those of others are counted apart."""
    shows = FORGED["pleg-unhealthy"].rstrip()
    flood = "\n".join(f"{shows} {number}" for number in range(MOST_FACTS + 100))
    assert confidence(f"{shows}\n{container(flood)}\n")["pleg-unhealthy"] is Confidence.CERTAIN

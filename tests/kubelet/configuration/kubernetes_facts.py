"""What Kubernetes' own table tests and defaults say of a configuration, as facts: ``kubernetes_facts.jsonl``.

Collected from the table tests and test data of Kubernetes 1.20 to 1.37 (``about`` names the test or the source), in
words of our own: which configuration, flags and drop-ins a kubelet gets, and what follows from them. A line with
``base`` is a configuration that others are written ``on``: they name only what differs, and what they are ``without``.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rollout.core.model.frozen import dataclass
from rollout.kubelet import versions
from rollout.kubelet.configuration.drop_ins import ENVIRONMENT, in_order
from rollout.kubelet.configuration.outcome import File, KubeletOutcome, MessageLevel, Sources
from rollout.kubelet.configuration.startup import outcome

HEAD = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
FOLDER = "/etc/kubernetes/kubelet.conf.d"


@dataclass(frozen=True, slots=True)
class Fact:
    """``starts`` ``None``: the fact is about values alone. ``error`` is a part of the kubelet's one error."""

    minor: int
    about: str
    config: Mapping[str, Any] | None
    flags: tuple[str, ...]
    drop_ins: Mapping[str, str] | None
    relative_file: bool
    starts: bool | None
    error: str
    values: Mapping[str, Any]

    def answer(self) -> KubeletOutcome:
        """Our answer to the same input."""
        path = "config.yaml" if self.relative_file else "/var/lib/kubelet/config.yaml"
        config = None if self.config is None else File(path, json.dumps({**HEAD, **self.config}).encode())
        files = self.drop_ins
        drop_ins = None if files is None else tuple(File(f"{FOLDER}/{n}", files[n].encode()) for n in in_order(files))
        sources = Sources(config=config, drop_ins=drop_ins, flags=self.flags, environment={ENVIRONMENT: ""})
        return outcome(versions.known(f"1.{self.minor}.0"), sources)


def facts() -> Iterator[tuple[str, Fact]]:
    """Each fact of each minor, with a name of its own."""
    bases: dict[int, dict[str, Any]] = {}
    lines = Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(map(json.loads, lines), 1):
        if "base" in line:
            bases[line["base"]] = line["config"]
            continue
        config = line.get("config")
        if "on" in line:
            base = bases[line["on"]]
            config = {**{k: v for k, v in base.items() if k not in line.get("without", ())}, **config}
        for minor in line["minors"]:
            yield (
                f"1.{minor} {line['about']}, line {number}",
                Fact(
                    minor=minor,
                    about=line["about"],
                    config=config,
                    flags=tuple(shlex.split(line.get("flags", ""))),
                    drop_ins=line.get("dropins"),
                    relative_file=line.get("relative_file", False),
                    starts=line.get("starts"),
                    error=line.get("error", ""),
                    values={**line.get("effective", {}), **line.get("default", {})},
                ),
            )


def disagreement(fact: Fact) -> str:
    """Where our answer is another one, or ``""``."""
    answer = fact.answer()
    fatal = [message.text for message in answer.messages if message.level is MessageLevel.FATAL]
    one = fatal[0] if len(fatal) == 1 else f"[{', '.join(fatal)}]"  # Go's aggregate
    if fact.starts is not None and answer.starts is not fact.starts:
        return f"we say that it starts: {answer.starts} {one}"
    if fact.error not in one:
        return f"our text is {one}"
    differing = {name: answer.effective.get(name) for name in fact.values if not _holds(answer, fact, name)}
    return f"our values are {differing}" if differing else ""


def _holds(answer: KubeletOutcome, fact: Fact, name: str) -> bool:
    return _is_part(answer.effective.get(name), fact.values[name])


def _is_part(shown: Any, wanted: Any) -> bool:
    """Of maps only the wanted keys count."""
    if isinstance(wanted, dict):
        return isinstance(shown, dict) and all(_is_part(shown.get(key), value) for key, value in wanted.items())
    return bool(shown == wanted)

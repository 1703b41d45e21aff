"""What a kubelet's log shows of pulls, read by two expressions of our own: the proof does not use what it proves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

_EVENT = re.compile(
    r'^(?P<at>\S+) \S+ kubelet\[\d+\]: .*"Event occurred" object="(?P<pod>[^"]+)".* reason="(?P<reason>Pulling|Pulled|Failed)" '
    r'message="[^"]*?(?:ulling|ulled|pull) image \\"(?P<image>[^"\\]+)\\"',
    re.MULTILINE,
)
_STARTED = re.compile(r"^(\S+) \S+ kubelet\[\d+\]: .*\] Version: v", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Pulled:
    """One pull; ``end`` ``None``: it has not ended. Seconds since 1970."""

    pod: str
    image: str
    begin: float
    end: float | None
    reason: str

    @property
    def seconds(self) -> float:
        return (self.end or self.begin) - self.begin


def pulls(log: str) -> tuple[Pulled, ...]:
    return tuple(_pulls(log))


def _pulls(log: str) -> Iterator[Pulled]:
    begun: dict[tuple[str, str], float] = {}
    for found in _EVENT.finditer(log):
        key, at = (found["pod"], found["image"]), seconds(found["at"])
        if found["reason"] == "Pulling":
            begun[key] = at
        elif key in begun:
            yield Pulled(*key, begun.pop(key), at, found["reason"])
    for (pod, image), at in begun.items():
        yield Pulled(pod, image, at, None, "")


def of_pod(log: str, pod: str) -> tuple[Pulled, ...]:
    return tuple(each for each in pulls(log) if each.pod.startswith(f"shop/{pod}-"))


def ended(log: str, pod: str) -> bool:
    """Whether an image of the pod was pulled."""
    return any(each.reason == "Pulled" for each in of_pod(log, pod))


def begun(log: str, pod: str) -> bool:
    return bool(of_pod(log, pod))


def starts(log: str) -> tuple[float, ...]:
    """When kubelets started."""
    return tuple(seconds(found[1]) for found in _STARTED.finditer(log))


def since(log: str, at: float) -> str:
    """The lines that are not older."""
    return "".join(line for line in log.splitlines(keepends=True) if _at(line) >= at)


def _at(line: str) -> float:
    try:
        return seconds(line.partition(" ")[0])
    except ValueError:
        return 0.0


def seconds(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()

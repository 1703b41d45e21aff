"""The kinds of gates that this rollout knows. ``rollout.gates.table`` lists them, and each entry point makes them known once: ``rollout.composition.kinds``.

Whatever reads a plan or a playbook needs them: a journal, a page, a watch, a resumed run. They are the same for all of a process, as
its modules are. So they are not a parameter of all these functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import Gate, GateQuery


@dataclass(frozen=True, slots=True)
class GateKinds:
    """``queries``: kind → the class of its queries, in the order in which people are told of the kinds.

    ``default``: the gates of a playbook that names no node gates; ``by_api``: those that it has as well if a kubeconfig is given. ``always_written``: the keys, with their empty values, that
    a plan has for every gate. ``written``: the model of a playbook's ``gates``; it needs pydantic, which few commands do.
    """

    queries: Mapping[str, type[GateQuery]]
    default: tuple[Gate, ...]
    always_written: Mapping[str, object]
    written: Callable[[], type[Any]]
    by_api: tuple[Gate, ...] = ()


_known: list[GateKinds] = []


def know(kinds: GateKinds) -> None:
    """Called by entry points, before anything is read."""
    _known[:] = [kinds]


def known() -> GateKinds:
    if not _known:
        raise LookupError("the kinds of gates are not known yet: call rollout.composition.kinds.install() first")
    return _known[0]

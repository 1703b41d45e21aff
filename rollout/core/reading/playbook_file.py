"""The playbook file: text and templates in, ``Policy`` out, or every mistake at once. ``playbooks/image-pulls.yaml`` shows
every key with its meaning.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from rollout.core.model.gate_kinds import known
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.playbook import (
    DEFAULT_BUDGETS,
    Budget,
    Cause,
    Drain,
    LateWatch,
    Limits,
    OnLateHarm,
    Policy,
    PullsInFlight,
    RegistryCap,
    Scope,
    Share,
    SoakData,
    Templates,
    WaveKind,
    WaveRule,
)
from rollout.core.reading import rendering
from rollout.core.reading.gate_keys import AnyGates
from rollout.core.reading.playbook_schema import (
    Playbook,
    Shares,
    WrittenBudgets,
    WrittenCap,
    WrittenData,
    WrittenTemplates,
    WrittenWave,
)
from rollout.core.reading.validation import Mistakes, locate, read_document, validate
from rollout.core.reading.value_types import read_settings
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.core.text.yaml_source import Item
from rollout.errors import Place, Problem

# The programs that a playbook's wave gates run on the controller's machine, with their places.


def wave_commands(text: str, file: str) -> Iterator[tuple[str, Place]]:
    """The commands in a playbook's text, which may have mistakes elsewhere. Raises ``InputError`` for a file that is not a map."""
    root, mistakes = read_document(text, file)
    gates = locate(root, ("gates", "wave"))[0].value
    for gate in gates if isinstance(gates, list) else []:
        command = gate.entries().get("command")
        words = command.item.value if command else None
        if isinstance(words, list) and words and isinstance(program := words[0].value, str) and program:
            yield program, mistakes.place(words[0])


TEMPLATE_FOLDER = "templates"
DEFAULT_WAVES = (
    WaveRule(WaveKind.CANARY),
    WaveRule(WaveKind.PER_RACK, count=1),
    WaveRule(WaveKind.UP_TO, percent=5.0),
    WaveRule(WaveKind.UP_TO, percent=25.0),
    WaveRule(WaveKind.REST),
)
_TEMPLATE_VARIABLES = {
    "kubeletConfig": rendering.KUBELET_CONFIG,
    "flagsEnv": rendering.FLAGS_ENV,
    "dropIn": rendering.DROP_IN,
}


def load_playbook(text: str, file: str, templates: Mapping[str, str]) -> Policy:
    """``text`` is the file's, ``file`` its name for messages; ``templates`` are texts by name. Raises ``InputError``."""
    root, mistakes = read_document(text, file)
    said_waves, said_settings = _at(root, "waves").value, _at(root, "settings").value
    written, _ = validate(Playbook, root, mistakes)
    settings = read_settings(_at(root, "settings"), f"playbook {written.name}", mistakes)
    if said_settings == {} and "settings" in root.entries():
        mistakes.add(_at(root, "settings"), "no-settings", "the playbook has no settings", "name at least one")
    used = _templates(written.templates, templates, root, mistakes)
    waves = DEFAULT_WAVES if written.waves is None else tuple(_wave(wave) for wave in written.waves)
    if isinstance(said_waves, list) and len(waves) == len(said_waves):
        _check_waves(waves, root, mistakes)
    gates = tuple(_gates(written.gates, root, mistakes))
    default = (
        gate for gate in known().by_api if gate.name not in written.gates.without
    )  # with a kubeconfig: planning knows
    if written.watch_for and not any(gate.can_be_late for gate in (*gates, *default)):
        hint = "add a wave gate, or a node gate of the API server such as nodeReady"
        mistakes.add(_at(root, "watchFor"), "nothing-to-watch", "no gate can be measured after the run", hint)
    if not any(gate.asks.asks_api and gate.scope is GateScope.NODE for gate in gates):
        # Pod starts are read with the gates of the API server. Without one of them they would never be known.
        places: list[tuple[tuple[int | str, ...], WrittenData | None]] = [(("mustHaveData",), written.must_have_data)]
        places += [(("waves", at, "mustHaveData"), wave.must_have_data) for at, wave in enumerate(written.waves or ())]
        for place in (place for place, data in places if data is not None and data.pod_starts):
            hint = "add a node gate of the API server such as podsKept"
            mistakes.add(
                _at(root, *place), "data-unknown", "no gate reads the API server, so pod starts are unknown", hint
            )
    caps = tuple(_caps(written.registry_caps, root, mistakes))
    mistakes.raise_any(*_template_problems(written.templates, templates))
    return Policy(
        name=written.name,
        settings=settings,
        templates=used,
        waves=waves,
        limits=written.limits.as_value(Limits),
        budgets=tuple(_budgets(written.budgets)),
        gates=gates,
        without=tuple(dict.fromkeys(written.gates.without)),
        on_failure=written.on_failure.revert,
        soak=written.soak,
        data=_data(written.must_have_data),
        passes=written.passes,
        guard=written.guard,
        keep=written.keep,
        rehearsal=written.rehearsal,
        control_plane=written.control_plane,
        cordoned=written.cordoned,
        disruption=written.disruption,
        drain=written.drain.as_value(Drain, evict_too=frozenset(written.drain.evict_too)),
        pulls=written.pulls_in_flight.as_value(PullsInFlight),
        shadowed=written.shadowed_by_flag,
        accepted={each.setting: each.reason for each in written.accept},
        caps=caps,
        kubeadm_config_map=written.kubeadm_config_map,
        late=LateWatch(written.watch_for, written.on_late_harm or OnLateHarm.NOTIFY) if written.watch_for else None,
        conditions=tuple(written.conditions(root, mistakes)),
        digest=_digest(text, used),
    )


def _at(root: Item, *path: int | str) -> Item:
    return locate(root, path)[0]


def _names(written: WrittenTemplates) -> dict[str, str]:
    """Template names by the key that chooses them."""
    return dict(written.model_dump(by_alias=True))


def _templates(written: WrittenTemplates, texts: Mapping[str, str], root: Item, mistakes: Mistakes) -> Templates:
    for key, name in _names(written).items():
        if name not in texts:
            message = f"there is no template {TEMPLATE_FOLDER}/{printable(name, 80)}"
            mistakes.add(_at(root, "templates", key), "unknown-template", message, did_you_mean(name, texts))
    named = {key: f"{TEMPLATE_FOLDER}/{name}" for key, name in _names(written).items()}
    return Templates(
        kubelet_config=texts.get(written.kubelet_config, ""),
        kubelet_config_name=named["kubeletConfig"],
        flags_env=texts.get(written.flags_env, ""),
        flags_env_name=named["flagsEnv"],
        drop_in=texts.get(written.drop_in, ""),
        drop_in_name=named["dropIn"],
    )


def _template_problems(written: WrittenTemplates, texts: Mapping[str, str]) -> Iterator[Problem]:
    for key, name in _names(written).items():
        known = _TEMPLATE_VARIABLES[key]
        yield from rendering.undefined_variables(texts.get(name, ""), f"{TEMPLATE_FOLDER}/{name}", known)


def _digest(text: str, used: Templates) -> str:
    texts = [text, used.kubelet_config, used.flags_env, used.drop_in]
    return sha256(json.dumps(texts).encode()).hexdigest()


def _check_waves(waves: tuple[WaveRule, ...], root: Item, mistakes: Mistakes) -> None:
    """Checks that waves grow and that the last one leaves out no node."""
    grown = 0.0
    for at, wave in enumerate(waves):
        where = _at(root, "waves", at)
        if wave.kind is WaveKind.UP_TO:
            if wave.percent <= grown:
                mistakes.add(where, "bad-wave", f"upTo: {wave.percent:g}% after {grown:g}% adds no node", "waves grow")
            grown = wave.percent
        if wave.kind is WaveKind.REST and at < len(waves) - 1:
            mistakes.add(where, "bad-wave", "`rest` leaves nothing for the waves after it", "put it last")
    if waves[-1].kind is not WaveKind.REST and grown < 100:
        hint = "end with `rest`; to change fewer nodes, use --limit"
        mistakes.add(
            _at(root, "waves", len(waves) - 1), "bad-wave", "the waves end before they include every node", hint
        )


def _data(written: WrittenData | None) -> SoakData | None:
    return written.as_value(SoakData) if written else None


def _wave(written: WrittenWave) -> WaveRule:
    always: dict[str, Any] = {"soak": written.soak, "hold": written.hold, "data": _data(written.must_have_data)}
    if written.per_rack is not None:
        return WaveRule(WaveKind.PER_RACK, count=written.per_rack, **always)
    if written.up_to is not None:
        return WaveRule(WaveKind.UP_TO, percent=written.up_to, **always)
    return WaveRule(WaveKind.CANARY if written.canary else WaveKind.REST, **always)


def _budgets(written: WrittenBudgets) -> Iterator[Budget]:
    for default in DEFAULT_BUDGETS:
        own = {cause: share for cause, shares in written.causes.items() if (share := _share(shares, default.scope))}
        together = default.causes - own.keys()
        if together:
            yield Budget(default.scope, together, _share(written, default.scope) or default.share)
        yield from (Budget(default.scope, frozenset({cause}), own[cause]) for cause in Cause if cause in own)


def _share(shares: Shares, scope: Scope) -> Share | None:
    return {Scope.WAVE: shares.wave, Scope.RACK: shares.rack, Scope.FLEET: shares.fleet}[scope]


def _caps(written: Sequence[WrittenCap], root: Item, mistakes: Mistakes) -> Iterator[RegistryCap]:
    """Each registry is capped once per zone and once for the fleet."""
    taken: set[tuple[str, bool]] = set()
    for at, said in enumerate(written):
        cap = said.as_value(RegistryCap)
        scope = (cap.registry, cap.per_zone)
        if scope in taken:
            whose = f"registry `{cap.registry}`" if cap.registry else "each registry"
            message = f"{whose} is capped twice {'per zone' if cap.per_zone else 'for the fleet'}"
            mistakes.add(_at(root, "registryCaps", at), "duplicate-cap", message, "put both caps into one entry")
        taken.add(scope)
        yield cap


def _gates(written: AnyGates, root: Item, mistakes: Mistakes) -> Iterator[Gate]:
    default = [gate for gate in known().default if written.node is None and gate.name not in written.without]
    yield from default
    taken, reserved = {gate.name for gate in default}, {gate.name for gate in known().by_api}
    for at, name in enumerate(written.without):
        if any(said.gate().name == name for said in written.node or []):
            mistakes.add(
                _at(root, "gates", "without", at),
                "duplicate-gate",
                f"gate `{name}` is switched off, and is listed under `node`",
            )
    for scope, gates in ((GateScope.NODE, written.node or []), (GateScope.WAVE, written.wave)):
        for at, said in enumerate(gates):
            gate = said.gate()
            if gate.name in taken or (gate.kind != gate.name and gate.name in reserved):
                hint = "give it a `name` of its own" if gate.asks.program or scope is GateScope.WAVE else ""
                mistakes.add(
                    _at(root, "gates", scope.value, at), "duplicate-gate", f"duplicate gate `{gate.name}`", hint
                )
            taken.add(gate.name)
            yield gate

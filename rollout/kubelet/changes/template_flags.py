"""Flags that a playbook's template adds to the arguments it is given; it can neither drop nor change one."""

from __future__ import annotations

from rollout.core.model.inventory import Node
from rollout.core.model.playbook import Templates
from rollout.core.model.settings import Value
from rollout.kubelet import fields, homes
from rollout.kubelet.changes.rendered import Rendered, rendered
from rollout.kubelet.homes import InFlag
from rollout.kubelet.node import arguments, env_file
from rollout.kubelet.node.layout import VARIABLE, Layout
from rollout.kubelet.versions import Version


def template_flags(
    now: Layout, flags: tuple[InFlag, ...], templates: Templates, version: Version, node: Node
) -> tuple[InFlag, ...]:
    """What the template makes of ``KUBELET_EXTRA_ARGS`` besides the node's own arguments and ours."""
    merged = arguments.merge(now.variable_value, [flag.argument for flag in flags])
    own = [merged[word.start : word.end] for word in arguments.split(merged)]
    variables: dict[str, Value] = {"variable": VARIABLE, "arguments": [_escaped(word) for word in own]}
    made = rendered(templates.flags_env, templates.flags_env_name, variables, node)
    try:
        said = env_file.values(made.text)
        words = tuple(word.text for word in arguments.split(said.pop(VARIABLE, "")))
    except ValueError as error:
        raise made.refused(f"what the template renders: {error}", words=("variable",)) from None
    own_words = tuple(word.text for word in arguments.split(merged))
    stray = [*said, *(word for word in words if not word.startswith("-") and word not in own_words)]
    if VARIABLE not in env_file.values(made.text):
        raise made.refused(f"the template does not set {VARIABLE}", words=("variable",))
    if stray:
        raise made.refused(f"the template sets {stray[0]!r}", words=(stray[0],))
    _check_kept(made, own_words, words)
    given = {(flag.name, flag.value) for flag in arguments.given(own_words)}
    rest = [flag for flag in arguments.given(words) if (flag.name, flag.value) not in given]
    return tuple(_template_flag(made, flag, version) for flag in rest)


def _check_kept(made: Rendered, own: tuple[str, ...], words: tuple[str, ...]) -> None:
    """Every flag among ``arguments`` is there with its value."""
    for flag in arguments.given(own):
        found = arguments.last(words, flag.name)
        meant = arguments.last(own, flag.name)
        if found is None:
            raise made.refused(
                f"the template drops {flag.name}, which is among `arguments`",
                words=("arguments", "variable"),
                about=(flag.name,),
            )
        if meant is not None and found.value != meant.value:
            message = f"the template says {flag.name}={found.value}, `arguments` say {flag.name}={meant.value}"
            raise made.refused(message, words=(flag.name,), about=(flag.name,))


def _template_flag(made: Rendered, flag: arguments.Given, version: Version) -> InFlag:
    known = fields.flag(flag.name)
    if known is None or not known.known_in(version.minor) or flag.name in homes.NOT_OURS:
        message = f"the template adds {flag.name}, which a kubelet {version.short} does not take from us"
        raise made.refused(message, words=(flag.name,))
    return InFlag(flag.name, flag.value, known.kind)


def _escaped(word: str) -> str:
    """A word for a bare value in an environment file: a backslash takes the next character there."""
    return word.replace("\\", "\\\\").replace('"', '\\"').replace("'", "\\'")

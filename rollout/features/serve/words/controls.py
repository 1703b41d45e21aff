"""The forms of ``rollout serve --control``: pause, continue and abort a run, each as its command would."""

from __future__ import annotations

from rollout.core.model.playbook import RevertScope
from rollout.core.presentation.pages.markup import Html, raw, tag
from rollout.core.presentation.summary_text import Afterwards
from rollout.core.presentation.watch_keys import possible
from rollout.core.run.events import RequestWord
from rollout.core.run.state import Phase, RunState

NONE = Html("")
"""For a page that may not control."""


def controls(state: RunState, after: Afterwards, secret: str) -> Html:
    """The forms that the state allows. ``secret`` proves that a form is of this page; ``""``: it may not control."""
    if not secret or state.phase is Phase.ENDED:
        return NONE
    emergency = tag(
        "p",
        "An emergency rollback is a command: ",
        tag("code", f"rollout rollback --cluster {state.order.cluster} --emergency", class_="command"),
    )
    if not after.controller.alive:
        return raw(tag("p", "No controller can handle a request."), emergency)
    words = possible(state)
    if not words:
        return raw(tag("p", "It is ending: nothing can be requested."), emergency)
    return raw(*(_form(state, word, secret) for word in words), emergency)


def pause_shown(state: RunState) -> str:
    """Which pause a form continues. One that is sent again, or from an old page, must not promote a later wave."""
    return f"{state.paused.at:.6f}" if state.paused else ""


def _form(state: RunState, word: RequestWord, secret: str) -> Html:
    more = _abort_fields(state) if word is RequestWord.ABORT else NONE
    if word is RequestWord.CONTINUE:
        more = tag("input", type="hidden", name="pause", value=pause_shown(state))
    return tag(
        "form",
        tag("input", type="hidden", name="proof", value=secret),
        tag("label", "Reason", tag("input", name="reason", maxlength=300, autocomplete="off")),
        more,
        tag("button", f"{word.value.capitalize()} the run", type="submit"),
        method="post",
        action=f"../runs/{state.order.run}/{word.value}",
        class_="control",
    )


def _abort_fields(state: RunState) -> Html:
    """What to revert, and the cluster's name: the last chance to notice a wrong cluster."""
    scopes = [tag("option", scope.value, value=scope.value) for scope in RevertScope]
    default = tag("option", f"as the playbook sets it ({state.order.on_failure.value})", value="")
    typed = tag("input", name="cluster", required="required", autocomplete="off", spellcheck="false")
    return raw(
        tag("label", "Revert", tag("select", default, scopes, name="revert")),
        tag("label", f"Type the cluster's name ({state.order.cluster})", typed),
    )

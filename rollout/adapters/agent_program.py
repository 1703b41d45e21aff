"""The agent's text, as it is sent to every node."""

from __future__ import annotations

from importlib.resources import files


def agent_program() -> str:
    return (files("rollout.agent") / "agent.sh").read_text(encoding="utf-8")

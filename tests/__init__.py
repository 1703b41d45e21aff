"""The tests. Like each entry point, they make the kinds of gates known."""

from rollout.composition import kinds

kinds.install()

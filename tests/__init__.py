"""The tests. Like each entry point, they make the kinds of gates known."""

from rollout.gates import table

table.install()

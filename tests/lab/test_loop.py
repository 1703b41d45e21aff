"""The lab's one thread: which handler is called when a descriptor is readable."""

from __future__ import annotations

import os

from rollout.lab.loop import Loop


def test_a_reused_descriptor_does_not_get_events_of_the_old_one() -> None:
    """One pipe's handler closes another readable pipe, and its number is reused. The new owner's handler is not called."""
    loop = Loop()
    pipes = [os.pipe(), os.pipe()]
    called: list[str] = []

    def first(own: int, other: int) -> None:
        called.append("first")
        loop.forget(own)
        loop.forget(other)
        quiet, _ = os.pipe()
        os.dup2(quiet, other)  # as the next open() would do
        loop.watch(other, lambda: called.append("one that has nothing to read"))
        loop.call(loop.stop)

    (one, to_one), (two, to_two) = pipes
    loop.watch(one, lambda: first(one, two))
    loop.watch(two, lambda: first(two, one))
    os.write(to_one, b"x")
    os.write(to_two, b"x")
    loop.run()
    assert called == ["first"]

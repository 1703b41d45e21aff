"""The reader of traces: a call that another process interrupted is the same call."""

from tests.agent.traces import whole


def test_a_call_that_was_interrupted_after_its_last_argument_is_read_as_one_that_was_not() -> None:
    trace = '7 rename("a", "b" <unfinished ...>\n8 fsync(3) = 0\n7 <... rename resumed>) = 0\n'
    assert list(whole(trace)) == ["8 fsync(3) = 0", '7 rename("a", "b") = 0']


def test_a_call_that_was_interrupted_before_an_argument_keeps_the_space_before_it() -> None:
    trace = '7 read(3,  <unfinished ...>\n7 <... read resumed>"text", 8) = 4\n'
    assert list(whole(trace)) == ['7 read(3, "text", 8) = 4']

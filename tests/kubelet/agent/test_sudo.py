"""The exact bytes sent to sudo, and the texts that count as its prompt."""

from __future__ import annotations

import pickle
import shlex

import pytest

from rollout.kubelet.agent.sudo import Secret, asking, heard, quiet, refusal

NONCE = "0123abcd"


def test_the_exact_line() -> None:
    assert quiet("sh -c 'a b' x") == "sudo -n -- sh -c 'a b' x"
    assert asking("sh -c 'a b' x", NONCE) == (
        "env LC_ALL=C sudo -S -p '[rollout %% 0123abcd]' -- "
        'sh -c \'printf "rollout %s ready\\n" "$0" >&2; exec "$@"\' 0123abcd sh -c \'a b\' x'
    )


def test_the_command_line_itself_is_neither_a_prompt_nor_ready() -> None:
    line = asking("sh -c true", NONCE)
    for shown in (line, shlex.split(line), [word.replace("\\n", "\n") for word in shlex.split(line)], repr(line)):
        said = heard((shown if isinstance(shown, str) else " ".join(shown)).encode(), NONCE)
        assert (said.asked, said.ready) == (0, False)


def test_texts_that_count_as_a_prompt() -> None:
    assert heard(b"Lecture\n[rollout % 0123abcd]", NONCE).asked == 1
    assert heard(b"[rollout % 0123abcd]Sorry, try again.\n[rollout % 0123abcd]", NONCE).asked == 2
    assert heard(b"[rollout % 4444abcd]", NONCE).asked == 0
    after = heard(b"[rollout % 0123abcd]rollout 0123abcd ready\nerr [rollout % 0123abcd]", NONCE)
    assert (after.asked, after.ready, after.rest) == (1, True, b"err [rollout % 0123abcd]")


@pytest.mark.parametrize(
    ("stderr", "reference"),
    [
        (b"sudo: sorry, you must have a tty to run sudo\n", "sudo-needs-tty"),
        (b"x is not in the sudoers file.\n", "sudo-not-allowed"),
        (b"Sorry, user x is not allowed to execute '/bin/sh' as root on h.\n", "sudo-not-allowed"),
        (b"sudo: account validation failure, is your account locked?\n", "sudo-not-allowed"),
        (b"sudo: 1 incorrect password attempt\n", "sudo-password-wrong"),
        (b"env: 'sudo': No such file or directory\n", "no-sudo"),
        (b"sudo: unable to stat /etc/sudoers\n\x1b[2J", "sudo-failed"),
        (b"", "sudo-failed"),
    ],
)
def test_the_reason_of_a_refusal(stderr: bytes, reference: str) -> None:
    found, message = refusal(b"[rollout % 0123abcd]" + stderr, NONCE)
    assert found == reference
    assert message.isprintable()
    assert NONCE not in message


def test_a_secret_is_not_shown() -> None:
    secret = Secret("hunter2")
    assert "hunter2" not in f"{secret} {secret!r} {[secret]} {vars(type(secret))}"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    assert secret.reveal() == "hunter2"

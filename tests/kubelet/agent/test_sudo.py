"""The exact bytes sent to sudo, and the texts that count as its prompt."""

from __future__ import annotations

import pickle
import shlex

import pytest

from rollout.kubelet.agent.sudo import Secret, asking, heard, quiet, refusal, refused_quietly

NONCE = "0123abcd"


def test_the_exact_line() -> None:
    assert quiet("sh -c 'a b' x") == "env LC_ALL=C sudo -n -- sh -c 'a b' x"
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


REFUSALS: dict[tuple[bytes, int, bool], str] = {
    # what it printed, its exit status, whether it got the password
    (b"sudo: sorry, you must have a tty to run sudo\n", 1, False): "sudo-needs-tty",
    (b"x is not in the sudoers file.\n", 1, False): "sudo-not-allowed",
    (b"Sorry, user x is not allowed to execute '/bin/sh' as root on h.\n", 1, False): "sudo-not-allowed",
    (b"sudo: I'm sorry x. I'm afraid I can't do that\n", 1, False): "sudo-not-allowed",  # sudo-rs
    (b"x is not allowed to run sudo on h.\n", 1, False): "sudo-not-allowed",
    (b"Sorry, user x may not run sudo on h.\n", 1, False): "sudo-not-allowed",
    (b"doas: Operation not permitted\n", 1, False): "sudo-not-allowed",
    # what the files of a login shell print is no message of sudo
    (b"bash: ulimit: core file size: cannot modify limit: Operation not permitted\n", 1, False): "sudo-failed",
    (
        b"bash: ulimit: core file size: cannot modify limit: Operation not permitted\nSorry, try again.\n",
        1,
        True,
    ): "sudo-password-wrong",
    (
        b"You are not allowed to work here after 18:00; no new privileges\nsudo: 1 incorrect password attempt\n",
        1,
        True,
    ): "sudo-password-wrong",
    (b"sudo: account validation failure, is your account locked?\n", 1, False): "sudo-not-allowed",
    (
        b'sudo: The "no new privileges" flag is set, which prevents sudo from running as root.\n',
        1,
        False,
    ): "sudo-not-allowed",
    (b"sudo: 1 incorrect password attempt\n", 1, True): "sudo-password-wrong",
    (b"sudo: maximum 1 incorrect authentication attempts\n", 1, True): "sudo-password-wrong",  # sudo-rs
    (b"sudo: Authentication required but not attempted\n", 1, True): "sudo-password-wrong",  # sudo-rs
    (b"sudo: 1 Fehlversuch bei der Passwort-Eingabe\n", 1, True): "sudo-password-wrong",
    (b"", 1, True): "sudo-password-wrong",
    (
        b"Sorry, user x is not allowed to execute '/bin/sh' as root on h.\n",
        1,
        True,
    ): "sudo-not-allowed",  # the password was right
    (b"sudo: pam_authenticate: System error\n", 7, True): "sudo-password-wrong",
    (b"env: 'sudo': No such file or directory\n", 127, False): "no-sudo",
    (b"env: sudo: Keine Berechtigung\n", 126, False): "no-sudo",
    (b"sudo: unable to stat /etc/sudoers\n\x1b[2J", 1, False): "sudo-failed",
    (b"", 1, False): "sudo-failed",
}


@pytest.mark.parametrize(("stderr", "status", "sent"), REFUSALS)
@pytest.mark.parametrize("prompt", [b"[rollout % 0123abcd]", b"[sudo: [rollout % 0123abcd]] Password: "])
def test_the_reason_of_a_refusal(prompt: bytes, stderr: bytes, status: int, sent: bool) -> None:
    found, message = refusal(prompt * sent + stderr, NONCE, status=status, sent=sent)
    assert found == REFUSALS[stderr, status, sent]
    assert message.isprintable()
    assert NONCE not in message
    assert "Password:" not in message


QUIET: dict[tuple[bytes, int], str | None] = {
    (b"sudo: a password is required\n", 1): "no-sudo",
    (b"sudo: interactive authentication is required\n", 1): "no-sudo",  # sudo-rs
    (b"sudo: ein Passwort ist notwendig\n", 1): "no-sudo",
    ("sudo: 需要密码\n".encode(), 1): "no-sudo",
    (b"doas: Authentication required\n", 1): "doas-needs-password",
    (b"doas: Authorization required\n", 1): "doas-needs-password",  # OpenBSD's
    (b"doas: Operation not permitted\n", 1): "doas-not-allowed",
    (b"doas: doas is not enabled, /etc/doas.conf: No such file or directory\n", 1): "no-doas",
    (b"Welcome to n1\nno sudo here, doas only\ndoas: Operation not permitted\n", 1): "doas-not-allowed",
    (b"Welcome to n1\nenv: 'doas': No such file or directory\n", 127): "no-doas",
    (b"doas is not for n1\nenv: 'sudo': No such file or directory\n", 127): "no-sudo",
    (b"env: 'doas': No such file or directory\n", 127): "no-doas",
    (b"env: doas: Permission denied\n", 126): "no-doas",
    (b"sudo: I'm sorry x. I'm afraid I can't do that\n", 1): "sudo-not-allowed",
    (b"Sorry, user x is not allowed to execute '/bin/sh' as root on h.\n", 1): "sudo-not-allowed",
    (b"sudo: sorry, you must have a tty to run sudo\n", 1): "sudo-needs-tty",
    (b'sudo: The "no new privileges" flag is set, which prevents sudo from running as root.\n', 1): "sudo-not-allowed",
    (b"env: 'sudo': No such file or directory\n", 127): "no-sudo",
    (
        b"bash: ulimit: open files: cannot modify limit: Operation not permitted\nsudo: a password is required\n",
        1,
    ): "no-sudo",
    (b"sh: 1: Syntax error\n", 2): None,
    (b"rollout: not a shell\n", 1): None,
}


@pytest.mark.parametrize(("stderr", "status"), QUIET)
def test_the_reason_of_a_refusal_without_a_question(stderr: bytes, status: int) -> None:
    found = refused_quietly(stderr, status)
    assert (found and found[0]) == QUIET[stderr, status]


def test_a_secret_is_not_shown() -> None:
    secret = Secret("hunter2")
    assert "hunter2" not in f"{secret} {secret!r} {[secret]} {vars(type(secret))}"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    assert secret.reveal() == "hunter2"

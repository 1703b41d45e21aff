"""The person that runs a command, and the people that its run informs."""

from __future__ import annotations

import getpass
import os
import pwd
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from rollout.app.ports import Journal
from rollout.core.text.terminal import printable
from rollout.errors import UsageError, with_extra

if TYPE_CHECKING:
    from rollout.features.notices.asking import NoticeSender


def operator() -> str:
    """The user who runs this command and the machine, for the journal."""
    return printable(f"{getpass.getuser()}@{socket.gethostname()}")


def own_logins() -> frozenset[str]:
    """The login names of the person that runs this command, also through sudo, and whatever ``USER`` contains."""
    names = {getpass.getuser(), os.environ.get("SUDO_USER", "")}
    with suppress(KeyError):  # a user without an entry
        names.add(pwd.getpwuid(os.getuid()).pw_name)
    return frozenset(names - {""})


def notice_sender(journal: Journal, carried: Callable[[str], str]) -> NoticeSender | None:
    """``None``: no addresses are set. ``UsageError``: they cannot be used. ``carried`` completes proposed commands."""
    from rollout.features.notices.client.addresses import LINK_VARIABLE, addresses

    urls = addresses(os.environ)
    if not urls:
        return None
    try:
        from rollout.features.notices.client.postman import ApprisePostman
    except ImportError as exc:
        raise UsageError("no-apprise", "apprise is not installed", hint=with_extra("notices")) from exc
    from rollout.features.notices.asking import NoticeSender

    page = os.environ.get(LINK_VARIABLE, "")
    return NoticeSender(ApprisePostman(urls), journal, operator(), page, carried=carried)

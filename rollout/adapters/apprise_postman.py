"""Notices through apprise: chats, mail, pagers, HTTP. Its addresses contain secrets and are in no message, log or argument."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from apprise import Apprise

from rollout.errors import RemoteError, UsageError


class ApprisePostman:
    """``UsageError``: apprise does not know an address; the message has its number only."""

    def __init__(self, urls: Sequence[str]) -> None:
        logger = logging.getLogger("apprise")
        logger.propagate = False
        logger.addHandler(logging.NullHandler())
        self._apprise = Apprise()
        for number, url in enumerate(urls, 1):
            if not self._apprise.add(url):
                raise UsageError("notice-address", f"apprise does not know address number {number}")

    def send(self, title: str, body: str) -> None:
        if not self._apprise.notify(body=body, title=title):
            raise RemoteError("notice-undelivered", "at least one of its addresses did not accept it")

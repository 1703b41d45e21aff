"""Months as journald prints them: in the language of the shell that called ``journalctl``, by glibc's ``%b`` of that locale."""

from __future__ import annotations

import re
from collections.abc import Mapping

# glibc's localedata, abmon: de, en, es, fr, it, nl, pl, pt, ru, sv, tr, uk, cs. Chinese, Japanese and Korean have numbers.
_NAMES = """
jan jän janv ene gen sty oca янв січ led
feb fev févr lut şub фев лют úno
mar mär mars mrt märz мар бер bře
apr abr avril kwi nis апр кві dub
may mai maj mag mei мая май тра kvě
jun juin giu cze haz июн чер čen
jul juil lug lip tem июл лип čvc čec
aug ago août sie ağu авг сер srp
sep set sept wrz eyl сен вер zář
oct okt out ott paź eki окт жов říj
nov lis kas ноя лис
dec dez dic déc gru ara дек гру pro
"""
_BY_NAME: Mapping[str, int] = {
    name: number for number, names in enumerate(_NAMES.strip().splitlines(), 1) for name in names.split()
}
_NUMBERED = re.compile(r"(\d{1,2})[月월]")


def month_of(name: str) -> int | None:
    """1 to 12; ``None`` for a name of no known language."""
    if numbered := _NUMBERED.fullmatch(name):
        return int(numbered[1]) if 1 <= int(numbered[1]) <= 12 else None
    return _BY_NAME.get(name.lower().rstrip("."))

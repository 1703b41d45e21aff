"""Months as journald prints them: in the language of the shell that called ``journalctl``, by glibc's ``%b`` of that locale."""

from __future__ import annotations

import re
from collections.abc import Mapping

# glibc 2.36's localedata, abmon and ab_alt_mon of 53 locales. Chinese, Japanese and Korean have numbers. "lip", "lis" and
# "srp" are left out: they are other months in Croatian than in Polish and Czech.
_NAMES = """
jan jän janv ene gen sty led sij јан яну янв січ сту ian tammi jaan saus ιαν oca yan ינו ينا يناير ژانویه जन॰ জানু ม.ค urt xan იან հնվ қаң
feb févr fév fev lut úno velj феб фев лют febr helmi veebr vas φεβ şub פבר فبر فبراير فوریه फ़र॰ ফেব ก.พ ots თებ փտր ақп
mar mär mars mrt bře ožu мар бер сак márc maalis märts kov μαρ μάρ מרץ مار مارس मार्च মার্চ มี.ค mac març მარ մար нау
apr avril avr abr kwi dub tra апр кві кра ápr huhti bal april απρ nis אפר أبر أبريل آوریل अप्रैल এপ্রিল เม.ย api აპრ ապր сәу
may mai mag mei maj kvě máj svi мај май мая тра touko geg maí μαΐ μάι מאי ماي مايو مه मई মে พ.ค maig მაი մայ мам
jun juin giu cze čen jún јун юни июн чер чэр iun kesä juuni jūn birž juni ιουν ιούν haz יונ يون يونيو ژوئن जून জুন มิ.ย juny eka xuñ ივნ հնս мау
jul juil jui lug čec júl јул юли июл лип ліп iul heinä juuli jūl liep juli ιουλ ιούλ tem יול يول يوليو ژوئیه जुल॰ জুলাই ก.ค uzt xul ივლ հլս шіл
aug août aoû ago sie avg kol авг сер жні elo rugp ágú αυγ αύγ ağu avq אוג أغس أغسطس اوت अग॰ আগস্ট ส.ค agu ogos ag abu აგვ օգս там
sep sept set wrz zář ruj сеп сен вер szept syys rugs σεπ eyl sen ספט سبت سبتمبر سپتامبر सित॰ সেপ্টেম্বর ก.ย ira სექ սեպ қыр
oct okt out ott paź říj окт жов кас loka spal οκτ eki אוק أكت أكتوبر اكتبر अक्तू॰ অক্টোবর ต.ค urr ოქტ հոկ қаз
nov stu нов ное ноя лис ліс marras lapkr nóv νοε νοέ kas noy נוב نوف نوفمبر نوامبر नव॰ নভেম্বর พ.ย aza ნოე նմբ қар
dec dez déc dic gru pro дец дек гру сне joulu dets gruod des δεκ ara dek דצמ ديس ديسمبر دسامبر दिस॰ ডিসেম্বর ธ.ค dis abe დეკ դեկ жел
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

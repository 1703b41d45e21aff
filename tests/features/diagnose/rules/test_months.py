"""journald prints months in the language of the shell that called it: kubernetes#110288 (`5月 30`), #62897 (`4월 20`)."""

from __future__ import annotations

import pytest

from rollout.features.diagnose.rules.months import month_of
from tests.features.diagnose.rules.logs import found

MAY = (
    "May 30",
    "Mai 30",
    "mai 30",
    "mayo 30",
    "5月 30",
    "5월 30",
    "30 мая",
    "maj 30",
    "mag 30",
    "тра 30",
    "kvě 30",
    "may. 30",
    "xyz 30",
)
LINES = (
    'vm-0 kubelet[5949]: E0530 22:08:20.149768    5949 run.go:74] "command failed" err="failed to run Kubelet: misconfiguration"',
    "vm-0 systemd[1]: kubelet.service: Main process exited, code=exited, status=1/FAILURE",
)


def log(date: str) -> str:
    times = ("22:08:20", "22:08:31", "22:08:42", "22:08:53")
    return "".join(f"{date} {time} {line}\n" for time in times for line in LINES)


@pytest.mark.parametrize("date", MAY)
def test_the_findings_are_those_of_the_english_log(date: str) -> None:
    """A month of an unknown language too: klog's own date, in the same lines, has its number."""
    loop, english = (found(log(each))["kubelet-crash-loop"] for each in (date, "May 30"))
    assert (loop.nodes, loop.confidence, loop.cause, loop.since) == (
        english.nodes,
        english.confidence,
        english.cause,
        english.since,
    )


@pytest.mark.parametrize(
    ("names", "number"),
    [
        ("Jan janv. ene янв 1月 1월", 1),
        ("Mär mars мар 3月", 3),
        ("août ago авг sie 8월", 8),
        ("Dez dic déc. дек 12月", 12),
    ],
)
def test_months_of_some_languages(names: str, number: int) -> None:
    assert {month_of(name) for name in names.split()} == {number}


@pytest.mark.parametrize("name", ["", "xyz", "13月", "0월", "May30"])
def test_what_is_no_month(name: str) -> None:
    assert month_of(name) is None


GLIBC = """\
zh_CN  1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月
ko_KR  1월 2월 3월 4월 5월 6월 7월 8월 9월 10월 11월 12월
ja_JP  1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月
fr_FR  janv. févr. mars avril mai juin juil. août sept. oct. nov. déc.
ru_RU  янв фев мар апр мая июн июл авг сен окт ноя дек
de_DE  Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez
es_ES  ene feb mar abr may jun jul ago sep oct nov dic
pt_BR  jan fev mar abr mai jun jul ago set out nov dez
it_IT  gen feb mar apr mag giu lug ago set ott nov dic
uk_UA  січ лют бер кві тра чер лип сер вер жов лис гру
tr_TR  Oca Şub Mar Nis May Haz Tem Ağu Eyl Eki Kas Ara
fi_FI  tammi helmi maalis huhti touko kesä heinä elo syys loka marras joulu
hu_HU  jan febr márc ápr máj jún júl aug szept okt nov dec
el_GR  Ιαν Φεβ Μαρ Απρ Μαΐ Ιουν Ιουλ Αυγ Σεπ Οκτ Νοε Δεκ
"""


@pytest.mark.parametrize("row", GLIBC.splitlines(), ids=lambda row: row[:5])
def test_the_months_of_glibc(row: str) -> None:
    """``abmon`` of glibc 2.36; of Russian the form behind a day."""
    assert [month_of(name) for name in row.split()[1:]] == list(range(1, 13))


@pytest.mark.parametrize("name", ["lip", "lis", "srp"])
def test_a_word_that_is_two_months_is_none(name: str) -> None:
    """July, November and August in Polish and Czech are June, October and July in Croatian."""
    assert month_of(name) is None

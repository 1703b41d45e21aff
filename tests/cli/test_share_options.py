"""Shares on the command line: a bare number is refused, because it means nodes in a playbook."""

from __future__ import annotations

import pytest

from rollout.cli.main import run


@pytest.mark.parametrize("option", ["--per-rack", "--per-zone"])
@pytest.mark.parametrize(
    ("value", "said"), [("20", "write 20%"), ("0%", "1% to 100%"), ("x%", "1% to 100%"), ("101%", "1% to 100%")]
)
def test_a_share_is_per_cent_and_says_so(
    capsys: pytest.CaptureFixture[str], option: str, value: str, said: str
) -> None:
    assert run(["rollback", "--cluster", "small", "--emergency", option, value]) == 2
    assert said in capsys.readouterr().err

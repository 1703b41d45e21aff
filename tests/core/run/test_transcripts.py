"""The specification of the run machine: transcripts of what is fed in and what comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.run.transcripts.conversation import FOLDER, played


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_the_machine_says_what_the_transcript_says(path: Path) -> None:
    text = path.read_text()
    assert played(text) == text, "python -m tests.core.run.transcripts.conversation writes it anew"

"""`make fuzz`: every reader under a coverage-guided fuzzer, for a given time.

    python -m tests.hostile.fuzz SECONDS [TARGET…]

Each target runs in a process of its own, starting from its normal input and the words of ``mutations``. Input that breaks
the property is written to ``cases/TARGET/``, once for each place where it broke. From then on every test run tries it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

atheris = importlib.import_module("atheris")  # only this program needs it, and it has no types
with (
    contextlib.redirect_stdout(sys.stderr),
    atheris.instrument_imports(include=["rollout", "yaml", "tomlkit", "ruamel.yaml"]),
):
    from tests.hostile.mutations import WORDS
    from tests.hostile.property import Target, judge
    from tests.hostile.targets import TARGETS

CASES = Path(__file__).parent / "cases"
LONGEST = 1 << 14
MEBIBYTES = 2048
PATIENCE = 20


class Collector:
    """Judges inputs, and keeps the first one that breaks a target in each place."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.places: set[str] = set()

    def __call__(self, data: bytes) -> None:
        try:
            judge(self.target, data)
        except Exception as error:  # noqa: BLE001 - every error is a finding
            place = _place(error)
            if place not in self.places:
                self.places.add(place)
                self._keep(data, place)

    def _keep(self, data: bytes, place: str) -> None:
        folder = CASES / self.target.name
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"found-{hashlib.sha256(data).hexdigest()[:12]}"
        file.write_bytes(data)
        sys.stderr.write(f"FOUND {file.relative_to(CASES)}: {place}\n")


def _place(error: Exception) -> str:
    """The kind of an error and the last two lines of rollout in its trace."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/rollout/" in frame.filename]
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[:-3:-1])
    said = str(error).split(" ", maxsplit=1)[0][:2] if isinstance(error, AssertionError) else ""
    return f"{type(error).__name__} {said} {where}"


def _quoted(word: bytes) -> str:
    """A line of libFuzzer's dictionary."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n'


def fuzz(name: str, seconds: int, corpus: Path) -> None:
    """Fuzzes in this process, which libFuzzer ends."""
    target = TARGETS[name]
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed[:LONGEST])
    words = corpus.parent / "words"
    words.write_text("".join(map(_quoted, (word for word in WORDS if len(word) < 60))))
    options = (
        f"-max_total_time={seconds}", f"-max_len={LONGEST}", f"-rss_limit_mb={MEBIBYTES}", f"-timeout={PATIENCE}",
        f"-dict={words}", f"-artifact_prefix={CASES / name}/", "-print_final_stats=1", "-verbosity=1", "-len_control=20",
    )  # fmt: skip
    (CASES / name).mkdir(parents=True, exist_ok=True)
    collector = Collector(target)
    atheris.Setup([sys.argv[0], *options, str(corpus)], collector)
    atheris.Fuzz()


def main(seconds: int, names: list[str]) -> int:
    """The number of targets that broke."""
    broken = 0
    for name in names or list(TARGETS):
        with tempfile.TemporaryDirectory() as folder:
            corpus = Path(folder, "corpus")
            corpus.mkdir()
            command = [sys.executable, "-m", "tests.hostile.fuzz", "--in", name, str(seconds), str(corpus)]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        found = [line for line in done.stderr.splitlines() if line.startswith("FOUND ")]
        runs = next((line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line), "?")
        sound = not found and done.returncode == 0
        sys.stdout.write(
            f"{name}: {runs} inputs{'' if sound else ', BROKEN'}\n" + "".join(f"  {line}\n" for line in found)
        )
        if done.returncode != 0:
            sys.stdout.write("".join(f"  {line}\n" for line in done.stderr.splitlines()[-25:]))
        sys.stdout.flush()
        broken += not sound
        if (CASES / name).is_dir() and not any((CASES / name).iterdir()):
            (CASES / name).rmdir()
    return broken


if __name__ == "__main__":
    if sys.argv[1] == "--in":
        fuzz(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
    sys.exit(1 if main(int(sys.argv[1]), sys.argv[2:]) else 0)

"""One file's edit, and the text of a reason."""

from __future__ import annotations

from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import FileChange
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import digest

MODE = "644"
"""The mode of a file that we create; an existing file keeps its own."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A file's bytes before (``None``: absent) and after."""

    path: str
    before: bytes | None
    after: bytes
    reasons: tuple[str, ...]

    @property
    def change(self) -> FileChange:
        before = "" if self.before is None else digest(self.before)
        return FileChange(self.path, before, digest(self.after), MODE, self.reasons)

    @property
    def contents(self) -> tuple[bytes, ...]:
        return (self.after,) if self.before is None else (self.before, self.after)


def reason(name: str, old: str, new: str, setting: Setting | None) -> str:
    """``serializeImagePulls: true → false (playbook image-pulls)``."""
    source = f" ({setting.source})" if setting and setting.source else ""
    return f"{name}: {old} → {new}{source}"

"""The programs that a playbook's wave gates run on the controller's machine, with their places."""

from __future__ import annotations

from collections.abc import Iterator

from rollout.core.reading.validation import locate, read_document
from rollout.errors import Place


def wave_commands(text: str, file: str) -> Iterator[tuple[str, Place]]:
    """Of a playbook's text, which may have mistakes elsewhere. Raises ``InputError`` for a file that is no map."""
    root, mistakes = read_document(text, file)
    gates = locate(root, ("gates", "wave"))[0].value
    for gate in gates if isinstance(gates, list) else []:
        command = gate.entries().get("command")
        words = command.item.value if command else None
        if isinstance(words, list) and words and isinstance(program := words[0].value, str) and program:
            yield program, mistakes.place(words[0])

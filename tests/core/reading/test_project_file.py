"""The places of mistakes in ``rollout.toml``, for drawn files: each statement is written by a generator that knows its own line."""

from __future__ import annotations

from random import Random

import pytest

from rollout.core.reading.project_file import PROJECT_KEYS, read_project
from rollout.errors import InputError
from tests.sampling import dice, sample

_VALUES = (
    "5", "true", "[]", "{}", "1979-05-27", '[\n  "cluster",\n]', '[\n["b"],\n]', '[ # ]\n  [1,\n  2], "]"\n]',
    '"""\ncluster\n"""', '"""\n[state]\n\\"""\ncluster = 1\n"""""', "'''\n[engine]\n\"\"\"\n'''", "'''\nx = '\n'''''",
    '["a # [ \\" b"]', "['c:\\']", '["""a""b\\\\"""]', "{ a = [\n 1 ], b = '}' }", '[ """\n]\n""", \'\'\'\n[x]\n\'\'\' ]',
)  # fmt: skip
_BLANK = ("", "# cluster = 5 [", "\t", "  # '''")


def drawn(dice: Random) -> tuple[str, dict[str, tuple[int, int]]]:
    """A file of keys that are all mistakes, and where each of them begins."""
    names = [*PROJECT_KEYS, "x", "y-1", "a.b", "0", "é", "a b", "", "[", "#", '"', "\t"]
    dice.shuffle(names)
    text, places = "", {}
    headers = dice.randrange(4)
    for number, name in enumerate(names[: dice.randrange(1, len(names))]):
        text += "".join(f"{dice.choice(_BLANK)}\n" for _ in range(dice.randrange(3)))
        indent = dice.choice(("", " ", "\t ", "    "))
        escaped = "".join(f"\\u{ord(each):04x}" for each in name)
        forms = [f'"{escaped}"', *([f"'{name}'"] if name != "\t" else [])]
        if name.isascii() and name.replace("_", "").replace("-", "").isalnum():
            forms.append(name)
        key = dice.choice(forms)
        places[name] = (text.count("\n") + 1, len(indent) + 1)
        end = dice.choice(("", " # '''", ' # """ [', "\t"))
        if number < 6 and not (headers == 0 and number == 5):
            dotted = dice.choice(("", "", ".cluster", ' . "x]"'))
            text += f"{indent}{key}{dotted} = {dice.choice(_VALUES)}{end}\n"
        else:
            opens, closes = dice.choice((("[", "]"), ("[[", "]]")))
            text += f"{indent}{opens} {key} {closes}{end}\n"
            text += "".join(f"  k{inner} = {dice.choice(_VALUES)}\n" for inner in range(dice.randrange(3)))
            text += "  cluster = 5\n" * dice.randrange(2)
    return (text.replace("\n", "\r\n") if dice.randrange(4) == 0 else text), places


@pytest.mark.parametrize("number", sample("drawn rollout.toml", range(2_000), 200))
def test_each_mistake_is_told_at_the_beginning_of_its_statement(number: int) -> None:
    text, places = drawn(dice(f"rollout.toml {number}"))
    with pytest.raises(InputError) as refused:
        read_project(text, "rollout.toml")
    told = [(each.place.line, each.place.column) for each in refused.value.problems if each.place]
    assert sorted(told) == sorted(places.values()), text


@pytest.mark.parametrize(
    "text",
    [
        'nodes = [\n  "cluster",\n]\ncluster = 5\n',
        'x = """\ncluster\n"""\ncluster = 5\n',
        'a = [\n["b"],\n]\ncluster = 5\n',
        "[[x]]\ncluster = 1\n[[x]]\n[cluster]\n",
        "x.y = '''\n[cluster]'''\n\ncluster = 5",
    ],
)
def test_lines_inside_a_value_are_no_keys(text: str) -> None:
    with pytest.raises(InputError) as refused:
        read_project(text, "rollout.toml")
    assert [each.place and each.place.line for each in refused.value.problems] == [1, 4]

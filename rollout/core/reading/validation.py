"""From a YAML tree to a validated model, with a place for every mistake.

Three named shapes: the *document* (as written), the pydantic *model* of the written shape (checked key by key), and
the frozen value the program uses, which ``inventory_file`` and ``playbook_file`` build from the other two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.core.text.yaml_source import Document, Entry, Item, read_yaml
from rollout.errors import InputError, Place, Problem

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Model = TypeVar("Model", bound="Written")
Value = TypeVar("Value", bound="DataclassInstance")


class Written(BaseModel):
    """A map in a file of ours: strict types, no unknown keys, camelCase keys as aliases."""

    stand_ins: ClassVar[Mapping[str, Any]] = {}  # for missing keys, so that the rest can be checked
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=False, defer_build=True)

    def as_value(self, kind: type[Value], **others: Any) -> Value:
        """A value of this dataclass, with ``others``. Its other fields are those of this map; its own default where one is not set.

        pydantic does not make such a value itself: of a dataclass it takes either no map (strict), or "yes" for true and unknown keys.
        """
        names = {field.name for field in fields(kind)} - others.keys()
        found = {name: value for name in names if (value := getattr(self, name)) is not None}
        return kind(
            **{name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}, **others
        )


class Mistakes:
    """Collects the mistakes in one file; only the first one about a place is kept."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._problems: list[Problem] = []
        self._taken = {problem.place for problem in document.problems}

    def add(self, where: Item | Entry, reference: str, message: str, hint: str = "") -> None:
        place = self.place(where)
        if place not in self._taken:
            self._problems.append(Problem(reference, message, place, hint))

    def place(self, where: Item | Entry) -> Place:
        return Place(self.document.file, where.line, where.column)

    def raise_any(self, *others: Problem) -> None:
        """Raise ``InputError`` with everything found, in the order of the file."""
        problems = {*self.document.problems, *self._problems, *others}
        if problems:
            raise InputError(tuple(sorted(problems, key=_in_file_order)))


def _in_file_order(problem: Problem) -> tuple[Place, str, str]:
    return problem.place or Place("", 0, 0), problem.reference, problem.message


def read_document(text: str, file: str) -> tuple[Item, Mistakes]:
    """The tree of a file that must be a map. Raises ``InputError`` if it is not."""
    document = read_yaml(text, file)
    mistakes = Mistakes(document)
    root = document.root
    if root is None or not isinstance(root.value, dict):
        if not document.problems:
            empty = root is None or root.value is None
            message = "the file is empty" if empty else "the file must be a map of keys and values"
            mistakes.add(root or Item(None, 1, 1), "wrong-type", message)
        mistakes.raise_any()
    assert root is not None  # noqa: S101 - raise_any has raised
    return root, mistakes


def validate(model: type[Model], root: Item, mistakes: Mistakes) -> tuple[Model, bool]:
    """The document as a model, with every mistake noted, and whether the model is the whole document.

    Wrong parts are cut out of the tree, so that the meaning of the rest can still be checked.
    """
    try:
        return model.model_validate(root.plain()), True
    except ValidationError as error:
        errors = error.errors(include_url=False)
    for details in errors:
        item, entry = locate(root, details["loc"])
        at_key = details["type"] == "extra_forbidden" or details["loc"][-1:] == ("[key]",)
        mistakes.add(entry if entry and at_key else item, *explain(details, model))
    whole = True
    for _ in range(_ROUNDS):
        targets = [details["loc"][: -1 if details["type"] in ("missing", "[key]") else None] for details in errors]
        whole = whole and all(len(target) > _SECTION for target in targets if target[:1] != ("settings",))
        _cut(root, [_container(root, target) for target in targets], model)
        try:
            return model.model_validate(root.plain()), whole
        except ValidationError as error:
            errors = error.errors(include_url=False)
    mistakes.raise_any()
    raise AssertionError("every removed part has a mistake")


_ROUNDS = 6  # cutting may leave a map without a key it needs, which is then cut in turn
_SECTION = 2  # a path this short names a whole rack, zone, group or node


def _container(root: Item, path: tuple[int | str, ...]) -> tuple[Item, Item]:
    """The map or list at the end of ``path`` and what to take out of it."""
    around, item = root, root
    for step in path:
        below, _ = locate(item, (step,))
        if below is item:
            break
        around, item = item, below
    return around, item


def _cut(root: Item, targets: list[tuple[Item, Item]], model: type[Written]) -> None:
    doomed = {id(item) for _, item in targets}
    for around in {id(around): around for around, _ in targets}.values():
        if isinstance(around.value, list):
            around.value = [item for item in around.value if id(item) not in doomed]
        elif isinstance(around.value, dict):
            around.value = {key: entry for key, entry in around.value.items() if id(entry.item) not in doomed}
    if isinstance(root.value, dict):
        for key, value in model.stand_ins.items():
            root.value.setdefault(key, Entry(Item(value, root.line, root.column), root.line, root.column))


def locate(root: Item, path: tuple[int | str, ...]) -> tuple[Item, Entry | None]:
    """The value at ``path``, or the deepest existing one above it, and its key if it has one."""
    item, entry = root, None
    for step in path:
        if isinstance(item.value, dict) and step in item.value:
            entry = item.value[str(step)]
            item = entry.item
        elif isinstance(item.value, list) and isinstance(step, int):
            item, entry = item.value[step], None
        else:
            break
    return item, entry


def explain(details: ErrorDetails, model: type[Written]) -> tuple[str, str, str]:
    """Our reference, message and hint for an error of pydantic."""
    kind, path = details["type"], details["loc"]
    name = _name(path)
    if kind == "missing":
        return "missing-key", f"`{name}` is missing", ""
    if kind == "extra_forbidden":
        return (
            "unknown-key",
            f"unknown key `{name}`",
            did_you_mean(
                str(path[-1]), [field.alias or name for name, field in _model_at(model, path[:-1]).model_fields.items()]
            ),
        )
    if kind in _TYPES:
        return "wrong-type", f"`{name}` must be {_TYPES[kind]}, not {_kind_said(details)}", ""
    if kind == "literal_error":
        return "wrong-type", f"`{name}` takes no value but true", ""
    if kind == "too_short":
        return "empty-list", f"`{name}` must not be empty", ""
    if kind == "string_too_short":
        return "empty-text", f"`{name}` must not be empty", ""
    if kind in _BOUNDS:
        return "out-of-range", f"`{name}` must be {_BOUNDS[kind].format(**details['ctx'])}, not {details['input']}", ""
    return (
        kind,
        _KEY.sub(lambda found: f"{found[1]}`{name}`", details["msg"], count=1),
        str(details.get("ctx", {}).get("hint", "")),
    )


_KEY = re.compile(r"\A(label |)KEY")

_TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a map",
    "model_type": "a map",
    "list_type": "a list",
}
_BOUNDS = {
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:g}",
    "greater_than": "more than {gt:g}",
}
_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "a boolean"),
    (int, "a number"),
    (float, "a number"),
    (str, "text"),
    (list, "a list"),
    (dict, "a map"),
)


def _kind_said(details: ErrorDetails) -> str:
    fraction = details["type"].startswith("int") and isinstance(details["input"], float)
    return str(details["input"]) if fraction else kind_of(details["input"])


def kind_of(value: object) -> str:
    """The kind of a value, as worded in messages."""
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "nothing")


def _name(path: tuple[int | str, ...]) -> str:
    """``waves[2].soak`` without its path: the last key, and its place in a list."""
    words = [step for step in path if step != "[key]"]
    keys = [at for at, step in enumerate(words) if isinstance(step, str)]
    tail = words[keys[-1] :] if keys else words
    return printable("".join(str(step) if isinstance(step, str) else f"[{step}]" for step in tail), 80) or "the file"


def _model_at(model: type[BaseModel], path: tuple[int | str, ...]) -> type[BaseModel]:
    """The model that reads the map at ``path``."""
    for step in path:
        fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
        if step in fields:
            model = next(_models_in(fields[str(step)]), model)
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def wrong(reference: str, message: str, hint: str = "") -> PydanticCustomError:
    """A mistake with our own text, from inside a model; ``KEY`` in it becomes the key's name."""
    return PydanticCustomError(reference, "{said}", {"said": message, "hint": hint})

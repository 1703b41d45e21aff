"""The new texts of the files that hold a kubelet's flags: ours merged in, others taken out, every other word as it stands."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rollout.core.model.playbook import Templates
from rollout.core.model.settings import Value
from rollout.kubelet.changes.rendered import Rendered, rendered
from rollout.kubelet.node import arguments, env_file, unit_file
from rollout.kubelet.node.found import Found
from rollout.kubelet.node.layout import DROP_IN, UNIT, VARIABLE, EnvHome, Layout, LayoutError
from rollout.kubelet.node.unit_file import Piece


def texts(found: Found, ours: tuple[str, ...], taken: Collection[str], templates: Templates) -> Mapping[str, str]:
    """Path → text of each file that changes so that ``ours`` (``--flag=value``) are said and ``taken`` are not."""
    now = found.layout
    made = _environments(now, ours if isinstance(now.flags_home, EnvHome) else (), taken)
    command = unit_file.without(now.start.command, taken)
    if not isinstance(now.flags_home, EnvHome):
        command = unit_file.merge(command, ours)
    if command != now.start.command:
        variables: dict[str, Value] = {"exec_start": command, "unit": UNIT}
        drop_in = rendered(templates.drop_in, templates.drop_in_name, variables, found.node)
        _check_command(drop_in, command)
        made[DROP_IN] = drop_in.text
    return made


def _check_command(made: Rendered, command: str) -> None:
    """A drop-in starts the kubelet with ``exec_start`` and with nothing else, whatever it says besides."""
    try:
        said = unit_file.start({UNIT: "[Service]\nExecStart=/of-the-unit\n", DROP_IN: made.text}).command
        same = unit_file.exec_words(said) == unit_file.exec_words(command)
    except ValueError as error:
        raise made.refused(f"what the template renders: {error}", words=("ExecStart",)) from None
    if not same:
        raise made.refused("the template would start something else than `exec_start`", words=("ExecStart",))


def file_of(now: Layout, piece: Piece) -> str:
    """The file that changes when this word of the command line is taken out."""
    if not piece.variable:
        return DROP_IN
    home = now.flags_home
    return home.path if piece.variable == VARIABLE and isinstance(home, EnvHome) else piece.file


def _environments(now: Layout, ours: tuple[str, ...], taken: Collection[str]) -> dict[str, str]:
    """Each environment file with the variables that change."""
    where = {
        now.pieces[1 + flag.start].variable: file_of(now, now.pieces[1 + flag.start])
        for flag in arguments.given(now.asked)
        if flag.name in taken and now.pieces[1 + flag.start].variable
    }
    if ours:
        where[VARIABLE] = now.flags_home.path
    made: dict[str, str] = {}
    for variable, path in where.items():
        try:
            value = arguments.without(now.variables.get(variable, ""), taken)
            value = arguments.merge(value, ours) if variable == VARIABLE else value
            made[path] = env_file.assign(made.get(path, now.environments.get(path, "")), variable, value)
        except ValueError as error:
            raise LayoutError("layout-not-understood", f"{path}: {error}") from None
    return made

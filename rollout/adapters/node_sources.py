"""Where inventories get nodes that they do not list themselves."""

from __future__ import annotations

import json
import os
import re
import resource
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollout.adapters.owners import check_ours
from rollout.app.ports import ApiSources, NodeSources
from rollout.core.model.inventory import Inventory
from rollout.core.model.live import LiveNode
from rollout.core.model.pods import PlacedPod
from rollout.core.reading.ansible_inventory import filled_in
from rollout.core.text import json_text
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem, RemoteError

# Nodes of an Ansible inventory: from a program that prints them, or from ``ansible-inventory`` for all other files.
# ``ansible-inventory`` prints templates as they are written. ``ansible … -m debug`` fills them, and connects to no host.
#
# No shell, no input, no inherited descriptors. It has its own process group, which is killed when it takes too long
# or prints too much.


PATIENCE = 30.0
PATIENCE_WITH_TEMPLATES = 300.0
"""Ansible takes 40 ms for each host."""
MOST_BYTES = 64 * 1024 * 1024
_MOST_COMPLAINT = 64 * 1024
_MOST_MEMORY = 4 << 30
"""Of a process. Ansible keeps each host of ``node[1:99999999]`` in memory, and reads a link to ``/dev/zero`` without an end."""
_TOOL = "ansible-inventory"
_FILLER = "ansible"
INSTALL = "install Ansible: `pipx install ansible-core`, or `apt install ansible-core`"
_WHOLE = {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true"}
"""Otherwise Ansible exits with 0 after a partial read and reports the missing rest on standard error only."""
_UNPARSED = re.compile(r"Failed to parse .* plugin: (.+)")
_PLAIN = {"ANSIBLE_NOCOLOR": "true", "ANSIBLE_FORCE_COLOR": "false", "ANSIBLE_LOAD_CALLBACK_PLUGINS": "false"}
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_PATTERN = 65536


class InventoryScripts:
    """``patience``: seconds for one inventory; ``most_bytes``: the longest output that is read."""

    def __init__(self, patience: float = PATIENCE, most_bytes: int = MOST_BYTES) -> None:
        self._patience = patience
        self._most = most_bytes

    def ansible(self, path: str) -> str:
        """What the inventory at ``path`` prints for ``--list``. Raises ``InputError``."""
        out = self._output(_command(Path(path)), path, self._patience, {0})
        try:
            return out.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _error("not-json", path, f"its output is not UTF-8 at byte {error.start}") from None

    def ansible_values(self, path: str, templates: Mapping[str, Collection[str]]) -> Mapping[str, Mapping[str, object]]:
        """As Ansible fills them for a task. A variable without a value is ``None``. Raises ``InputError``."""
        tool = shutil.which(_FILLER)
        if tool is None:
            host, names = next(iter(templates.items()))
            message = f"`{printable(next(iter(names)), 60)}` of `{printable(host, 60)}` is a template, and {_FILLER} is not installed to fill it"
            raise _error("no-ansible", path, message, INSTALL)
        check_ours(Path(path))
        variables = sorted({name for names in templates.values() for name in names if _VARIABLE.fullmatch(name)})
        asked = json.dumps({"msg": {name: f"{{{{ {name} | default(none) }}}}" for name in variables}})
        pattern = ",".join(templates)
        if len(pattern) > _LONGEST_PATTERN or not all(map(_HOST.fullmatch, templates)):
            pattern = "all"
        command = [tool, "--inventory", str(Path(path).absolute()), "--forks", "10"]
        command += ["--module-name", "ansible.builtin.debug", "--args", asked, pattern]
        patience = max(self._patience, PATIENCE_WITH_TEMPLATES)
        out = self._output(command, path, patience, {0, 2}).decode("utf-8", "replace")
        return {host: values for host, values in filled_in(out).items() if host in templates}

    def _output(self, command: list[str], path: str, patience: float, good: Collection[int]) -> bytes:
        """``good``: the exit statuses after which the output counts."""
        try:
            with _bounded_memory():  # it inherits the limit: one that is set after its start may come too late
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    env={**os.environ, **_WHOLE, **_PLAIN},
                )
        except OSError as error:
            hint = "check that its first line names an installed program"
            raise _error("script-not-started", path, f"it could not be started: {error.strerror}", hint) from None
        with suppress(OSError, AttributeError):  # it has ended, is another user's program, or this is macOS
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY))  # it cannot raise it
        with process:
            try:
                out, complaint = self._read(process, path, patience)
                status = process.wait(timeout=patience)
            except subprocess.TimeoutExpired:
                _end(process)
                raise _error("script-hangs", path, "it closed its output but did not end") from None
            except BaseException:
                _end(process)
                raise
        if status not in good:
            how = f"exit status {status}" if status > 0 else f"signal {-status}"
            raise _error("script-failed", path, f"it failed ({how}){_last_line(complaint)}")
        return out

    def _read(self, process: subprocess.Popen[bytes], path: str, patience: float) -> tuple[bytes, str]:
        """Reads both outputs to their ends in parallel, within the limits of time and size."""
        assert process.stdout is not None  # noqa: S101 - asked for
        assert process.stderr is not None  # noqa: S101
        deadline = time.monotonic() + patience
        out, complaint = bytearray(), bytearray()
        with selectors.DefaultSelector() as both:
            both.register(process.stdout, selectors.EVENT_READ, out)
            both.register(process.stderr, selectors.EVENT_READ, complaint)
            while both.get_map():
                left = deadline - time.monotonic()
                ready = both.select(left) if left > 0 else []
                if not ready:
                    raise _error("script-hangs", path, f"it did not end within {patience:g} s and was stopped")
                for key, _ in ready:
                    piece = os.read(key.fd, 1 << 16)
                    if not piece:
                        both.unregister(key.fileobj)
                    key.data.extend(piece)
                del complaint[:-_MOST_COMPLAINT]
                if len(out) > self._most:
                    raise _error("script-output-too-long", path, f"it printed more than {self._most} bytes")
        return bytes(out), complaint.decode("utf-8", "replace")


def _last_line(complaint: str) -> str:
    """The last line, and Ansible's earlier line that says why a file could not be read."""
    lines = complaint.strip().splitlines()
    if not lines:
        return ", without a message"
    why = _UNPARSED.findall("\n".join(lines[:-1]))
    return f": {printable(lines[-1], 200)}" + (f": {printable(why[-1], 200)}" if why else "")


def _command(path: Path) -> list[str]:
    if not path.exists():
        raise _error("script-missing", str(path), "there is no such file")
    check_ours(path)  # it is a program, or names programs
    if not path.is_file() and not path.is_dir():
        raise _error("file-unreadable", str(path), "it is not a regular file or a folder")
    if path.is_file() and os.access(path, os.X_OK):
        return [str(path.absolute()), "--list"]
    if path.is_file() and _is_script(path):
        hint = f"chmod +x {printable(str(path))}"
        raise _error("script-not-executable", str(path), "it is a script, but it is not executable", hint)
    tool = shutil.which(_TOOL)
    if tool is None:
        hint = f"{INSTALL}; or make it a program that prints JSON for --list"
        raise _error("no-ansible", str(path), f"it is not a program, and {_TOOL} is not installed to read it", hint)
    return [tool, "--inventory", str(path.absolute()), "--list"]


def _is_script(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


@contextmanager
def _bounded_memory() -> Iterator[None]:
    """What this process starts meanwhile has at most so much memory; its own is far less. A lower limit stays."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft != resource.RLIM_INFINITY and soft <= _MOST_MEMORY:
        yield
        return
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the whole process group. The process has not been waited for, so its pid cannot be reused yet."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _error(reference: str, path: str, message: str, hint: str = "") -> InputError:
    return InputError((Problem(reference, f"{printable(path)}: {message}", hint=hint),))


if TYPE_CHECKING:
    from rollout.adapters.kubernetes.cluster import KubernetesCluster

# ruff: noqa: PLC0415 - the HTTP client takes 0.1 s to import, and most calls do not need it

CONFIGZ_SECONDS = 15.0


class RealSources:
    """Runs Ansible inventories, asks API servers by their kubeconfigs; ``kubeconfig`` overrides every other one."""

    def __init__(self, kubeconfig: str = "") -> None:
        self._kubeconfig = kubeconfig

    def ansible(self, path: str) -> str:
        return InventoryScripts().ansible(path)

    def ansible_values(self, path: str, templates: Mapping[str, Collection[str]]) -> Mapping[str, Mapping[str, object]]:
        return InventoryScripts().ansible_values(path, templates)

    def live(self, kubeconfig: str, context: str) -> tuple[LiveNode, ...]:
        with self._cluster(kubeconfig, context) as cluster:
            return cluster.nodes()

    def pods(self, kubeconfig: str, context: str, nodes: Collection[str]) -> tuple[PlacedPod, ...]:
        with self._cluster(kubeconfig, context) as cluster:
            return cluster.pods(nodes)

    def configz(self, kubeconfig: str, context: str, node: str) -> Mapping[str, Any]:
        with self._cluster(kubeconfig, context) as cluster:
            return cluster.configz(node, CONFIGZ_SECONDS)

    def meant(self, kubeconfig: str, context: str) -> ApiServer:
        """Which API server is meant now. ``InputError`` for a wrong kubeconfig."""
        from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig

        file, context = self._chosen(kubeconfig, context)
        access = load_kubeconfig(file, context)
        return ApiServer(file, access.context, access.server, sha256(access.authority).hexdigest())

    def _cluster(self, kubeconfig: str, context: str) -> AbstractContextManager[KubernetesCluster]:
        return kubernetes_cluster(*self._chosen(kubeconfig, context))

    def _chosen(self, kubeconfig: str, context: str) -> tuple[str, str]:
        return (self._kubeconfig, "") if self._kubeconfig else (kubeconfig, context)


@contextmanager
def kubernetes_cluster(kubeconfig: str, context: str) -> Iterator[KubernetesCluster]:
    """The API server of a kubeconfig, closed at the end."""
    from rollout.adapters.kubernetes.client import ApiClient
    from rollout.adapters.kubernetes.cluster import KubernetesCluster
    from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig

    cluster = KubernetesCluster(ApiClient(load_kubeconfig(kubeconfig, context)))
    try:
        yield cluster
    finally:
        cluster.close()


# The last node list of each API server, kept for times when the API server does not answer or refuses the request.
#
# Reverts, ``resume`` and ``verify`` must not need the API server. A plan does need it. The files are
# 0600 in the journal's folder, one for each API server; messages report their age and their API server. Which one a kubeconfig
# means may change at any time (``kubectl config use-context``), so a list counts only for the API server that gave it.


@dataclass(frozen=True, slots=True)
class ApiServer:
    """What a kubeconfig means at one time. ``authority``: the SHA-256 of its certificate authority."""

    kubeconfig: str
    context: str
    server: str
    authority: str

    def __str__(self) -> str:
        return f"context {printable(self.context, 80)} ({printable(self.server, 120)})"

    def file(self, folder: Path) -> Path:
        return folder / f"nodes-{sha256(f'{self.server} {self.authority}'.encode()).hexdigest()[:16]}.json"


Meant = Callable[[str, str], ApiServer]
"""Which API server a kubeconfig and a context (``""``: the current one) mean now."""


@dataclass(frozen=True, slots=True)
class _Kept:
    taken: str
    api: ApiServer
    nodes: tuple[LiveNode, ...]


class RememberingSources:
    """Asks ``sources``, and keeps the answers of API servers in ``folder``."""

    def __init__(self, sources: ApiSources, folder: Path, meant: Meant) -> None:
        self._sources = sources
        self._folder = folder
        self._meant = meant

    def ansible(self, path: str) -> str:
        return self._sources.ansible(path)

    def ansible_values(self, path: str, templates: Mapping[str, Collection[str]]) -> Mapping[str, Mapping[str, object]]:
        return self._sources.ansible_values(path, templates)

    def live(self, kubeconfig: str, context: str) -> tuple[LiveNode, ...]:
        api = self._meant(kubeconfig, context)
        nodes = self._sources.live(kubeconfig, context)
        if not nodes or api != self._meant(kubeconfig, context):
            return nodes  # an empty list helps nobody; after a switch of the context it is not known which one gave it
        kept = _Kept(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC", api, nodes)
        path = api.file(self._folder)
        with suppress(OSError):  # optional: without the copy an emergency needs the API server
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = path.with_suffix(".new")
            fresh.touch(mode=0o600)
            fresh.write_text(json.dumps(json_text.encode(kept)), encoding="utf-8")
            fresh.replace(path)
        return nodes

    def pods(self, kubeconfig: str, context: str, nodes: Collection[str]) -> tuple[PlacedPod, ...]:
        return self._sources.pods(kubeconfig, context, nodes)

    def configz(self, kubeconfig: str, context: str, node: str) -> Mapping[str, Any]:
        return self._sources.configz(kubeconfig, context, node)


class RecallingSources:
    """Falls back to the last answer of the same API server when it does not list its nodes; ``say`` reports it."""

    def __init__(self, sources: NodeSources, folder: Path, meant: Meant, say: Callable[[str], None]) -> None:
        self._sources = sources
        self._folder = folder
        self._meant = meant
        self._say = say
        self.taken = ""  # when the list that was used was given; "": the API server answered
        self.api = ""  # the API server that gave the list; "": none was asked

    def ansible(self, path: str) -> str:
        return self._sources.ansible(path)

    def ansible_values(self, path: str, templates: Mapping[str, Collection[str]]) -> Mapping[str, Mapping[str, object]]:
        return self._sources.ansible_values(path, templates)

    def live(self, kubeconfig: str, context: str) -> tuple[LiveNode, ...]:
        api = self._meant(kubeconfig, context)
        self.api = str(api)
        try:
            return self._sources.live(kubeconfig, context)
        except RemoteError as error:
            kept = _read(api.file(self._folder))
            if kept is None:
                _refuse_others(self._folder, api, error)
                raise
            self.taken = kept.taken
            self._say(
                f"the API server of {api} did not list its nodes ({error.message}); using its node list of {kept.taken}"
            )
            return kept.nodes


class OnlyRemembered:
    """The last answers alone, for a completion: starts no program and asks no API server."""

    def __init__(self, folder: Path, meant: Meant) -> None:
        self._folder = folder
        self._meant = meant

    def ansible(self, path: str) -> str:
        raise RemoteError("not-asked", f"{path} is a program")

    def ansible_values(self, path: str, templates: Mapping[str, Collection[str]]) -> Mapping[str, Mapping[str, object]]:
        raise RemoteError("not-asked", f"{path} has templates of {len(templates)} hosts")

    def live(self, kubeconfig: str, context: str) -> tuple[LiveNode, ...]:
        kept = _read(self._meant(kubeconfig, context).file(self._folder))
        if kept is None:
            raise RemoteError("not-asked", "no answer of the API server is kept")
        return kept.nodes


def _refuse_others(folder: Path, api: ApiServer, error: RemoteError) -> None:
    """``RemoteError`` if the list of another API server is kept, which the same kubeconfig has meant."""
    every = filter(None, map(_read, folder.glob("nodes-*.json")))
    others = [kept for kept in every if kept.api.kubeconfig == api.kubeconfig]
    if others:
        last = max(others, key=lambda kept: kept.taken)
        raise RemoteError(
            "list-of-another-cluster",
            f"the API server of {api} did not list its nodes ({error.message}), and the node list of {last.taken} is of {last.api}",
            hint=f"if the nodes are those of {last.api}, name that context: `context` in the inventory, or `kubectl config use-context`",
        ) from None


def _read(path: Path) -> _Kept | None:
    """``None``: there is none. Another version of rollout may have written more or fewer fields of a node."""
    try:
        data = json_text.parse(path.read_text(encoding="utf-8"))
        nodes = [{key: node.get(key, empty) for key, empty in _EMPTY.items()} for node in data["nodes"]]
        kept: _Kept = json_text.decode(_Kept, {"taken": data["taken"], "api": data["api"], "nodes": nodes})
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return kept


_EMPTY = json_text.encode(
    LiveNode("", "", "", (), {}, unschedulable=False, taints=(), kubelet_version="", runtime="", os_image="", ready="")
)


@contextmanager
def cluster_state(inventory: Inventory, kubeconfig: str) -> Iterator[KubernetesCluster | None]:
    """``None``: no kubeconfig is set."""
    endpoints = inventory.endpoints
    if not kubeconfig and not endpoints.kubeconfig:
        yield None
        return
    which = (kubeconfig, "") if kubeconfig else (endpoints.kubeconfig, endpoints.context)
    with kubernetes_cluster(*which) as cluster:
        yield cluster

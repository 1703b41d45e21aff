"""Where inventories get nodes that they do not list themselves."""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollout.core.model.live import LiveNode
from rollout.core.model.pods import PlacedPod
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem

# Nodes of an Ansible inventory: from a program that prints them, or from ``ansible-inventory`` for all other files.
#
# No shell, no input, no inherited descriptors. It has its own process group, which is killed when it takes too long
# or prints too much.


PATIENCE = 30.0
MOST_BYTES = 64 * 1024 * 1024
_MOST_COMPLAINT = 64 * 1024
_TOOL = "ansible-inventory"
_WHOLE = {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true"}
"""Otherwise Ansible exits with 0 after a partial read and reports the missing rest on standard error only."""
_UNPARSED = re.compile(r"Failed to parse .* plugin: (.+)")


class InventoryScripts:
    """``patience``: seconds for one inventory; ``most_bytes``: the longest output that is read."""

    def __init__(self, patience: float = PATIENCE, most_bytes: int = MOST_BYTES) -> None:
        self._patience = patience
        self._most = most_bytes

    def ansible(self, path: str) -> str:
        """What the inventory at ``path`` prints for ``--list``. Raises ``InputError``."""
        command = _command(Path(path))
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, **_WHOLE},
            )
        except OSError as error:
            hint = "check that its first line names an installed program"
            raise _error("script-not-started", path, f"it could not be started: {error.strerror}", hint) from None
        with process:
            try:
                out, complaint = self._read(process, path)
                status = process.wait(timeout=self._patience)
            except subprocess.TimeoutExpired:
                _end(process)
                raise _error("script-hangs", path, "it closed its output but did not end") from None
            except BaseException:
                _end(process)
                raise
        if status != 0:
            how = f"exit status {status}" if status > 0 else f"signal {-status}"
            raise _error("script-failed", path, f"it failed ({how}){_last_words(complaint)}")
        try:
            return out.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _error("not-json", path, f"its output is not UTF-8 at byte {error.start}") from None

    def _read(self, process: subprocess.Popen[bytes], path: str) -> tuple[bytes, str]:
        """Reads both outputs to their ends in parallel, within the limits of time and size."""
        assert process.stdout is not None  # noqa: S101 - asked for
        assert process.stderr is not None  # noqa: S101
        deadline = time.monotonic() + self._patience
        out, complaint = bytearray(), bytearray()
        with selectors.DefaultSelector() as both:
            both.register(process.stdout, selectors.EVENT_READ, out)
            both.register(process.stderr, selectors.EVENT_READ, complaint)
            while both.get_map():
                left = deadline - time.monotonic()
                ready = both.select(left) if left > 0 else []
                if not ready:
                    raise _error("script-hangs", path, f"it did not end within {self._patience:g} s and was stopped")
                for key, _ in ready:
                    piece = os.read(key.fd, 1 << 16)
                    if not piece:
                        both.unregister(key.fileobj)
                    key.data.extend(piece)
                del complaint[:-_MOST_COMPLAINT]
                if len(out) > self._most:
                    raise _error("script-output-too-long", path, f"it printed more than {self._most} bytes")
        return bytes(out), complaint.decode("utf-8", "replace")


def _last_words(complaint: str) -> str:
    """The last line, and Ansible's earlier line that says why a file could not be read."""
    said = complaint.strip().splitlines()
    if not said:
        return ", without a message"
    why = _UNPARSED.findall("\n".join(said[:-1]))
    return f": {printable(said[-1], 200)}" + (f": {printable(why[-1], 200)}" if why else "")


def _command(path: Path) -> list[str]:
    if not path.exists():
        raise _error("script-missing", str(path), "there is no such file")
    if path.is_file() and os.access(path, os.X_OK):
        return [str(path.absolute()), "--list"]
    if path.is_file() and _is_script(path):
        hint = f"chmod +x {printable(str(path))}"
        raise _error("script-not-executable", str(path), "it is a script, but it is not executable", hint)
    tool = shutil.which(_TOOL)
    if tool is None:
        hint = "install Ansible, or make it a program that prints JSON for --list"
        raise _error("no-ansible", str(path), f"it is not a program, and {_TOOL} is not installed to read it", hint)
    return [tool, "--inventory", str(path.absolute()), "--list"]


def _is_script(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


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

    def live(self, kubeconfig: str, context: str) -> tuple[LiveNode, ...]:
        with self._cluster(kubeconfig, context) as cluster:
            return cluster.nodes()

    def pods(self, kubeconfig: str, context: str, nodes: Collection[str]) -> tuple[PlacedPod, ...]:
        with self._cluster(kubeconfig, context) as cluster:
            return cluster.pods(nodes)

    def configz(self, kubeconfig: str, context: str, node: str) -> Mapping[str, Any]:
        with self._cluster(kubeconfig, context) as cluster:
            return cluster.configz(node, CONFIGZ_SECONDS)

    def _cluster(self, kubeconfig: str, context: str) -> AbstractContextManager[KubernetesCluster]:
        return kubernetes_cluster(*((self._kubeconfig, "") if self._kubeconfig else (kubeconfig, context)))


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

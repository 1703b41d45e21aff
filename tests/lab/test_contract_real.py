"""The same contract on a real systemd node: the lab behaves like systemd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from rollout.adapters.ssh import SshNodes
from rollout.app.ports import Target
from rollout.core.model.report import RemoteCommand
from tests.bed.bed import Bed
from tests.bed.plugin import RealNodes
from tests.lab.contract import CASES, Subject

pytestmark = [pytest.mark.root, pytest.mark.drawn(10)]


@dataclass(slots=True)
class RealSubject:
    """A node of the bed, over SSH."""

    ssh: SshNodes
    name: str
    version: str = "1.20.15"
    restart_sec: float = 1.0
    prefix: str = ""

    def run(self, line: str, stdin: bytes = b"") -> tuple[int, str]:
        command = RemoteCommand(f"sudo -n sh -c {_quoted(line)}", stdin, 300)
        answer = self.ssh.run(Target(self.name, self.name), command)
        assert answer.status is not None, answer
        return answer.status, answer.stdout.decode()

    def read(self, path: str) -> bytes | None:
        status, output = self.run(f"test ! -e {path} || cat {path}; test -e {path}")
        return output.encode() if status == 0 else None

    def write(self, path: str, content: bytes | None) -> None:
        line = f"mkdir -p $(dirname {path}); cat >{path}" if content is not None else f"rm -f {path}"
        assert self.run(line, content or b"")[0] == 0


def _quoted(line: str) -> str:
    return "'" + line.replace("'", "'\\''") + "'"


@pytest.fixture(scope="module")
def subject(bed: Bed, real_nodes: RealNodes) -> Iterator[Subject]:
    (node,) = real_nodes(1)
    node.exec("rm", "-rf", "/var/lib/rollout")  # other tests have had it
    ssh = SshNodes(ssh_config=bed.ssh_config)
    yield RealSubject(ssh, node.name)
    ssh.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_contract(subject: Subject, case: Callable[[Subject], None]) -> None:
    case(subject)

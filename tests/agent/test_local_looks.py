"""How a node checks its own health: without a proxy, and without blocking other verbs."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from rollout.core.model.report import Outcome
from rollout.kubelet.agent.agent_call import Measure, NodeCommand
from tests.agent.node import OLD, SOCKETS, Node, listening
from tests.agent.test_second_chances import wrap

pytestmark = pytest.mark.process


def test_the_health_check_of_a_revert_holds_no_lock(node: Node) -> None:
    """A revert's health check may take minutes; a verb that arrived meanwhile was refused as `locked`."""
    lock, looks = node.at("/var/lib/rollout/lock"), node.at("/run/standin/looks")
    wrap(node, "bash", f"if flock -n {lock} true; then echo free; else echo held; fi >>{looks}")
    assert node.apply().healthy
    assert node.confirm().outcome is Outcome.DONE
    assert set(looks.read_text().split()) == {"held"}, "an armed apply keeps its lock"
    looks.unlink()
    assert node.revert().healthy
    assert set(looks.read_text().split()) == {"free"}


def test_a_revert_asks_systemd_three_times_for_its_unit(node: Node) -> None:
    """Before the restart, after it, and when the unit has run for long enough; each question costs as much as ten small programs."""
    assert node.apply().healthy
    assert node.confirm().outcome is Outcome.DONE
    before = len(node.calls())
    assert node.revert().healthy
    assert sum(call.startswith("show") for call in node.calls()[before:]) == 3


def test_the_nodes_own_health_check_uses_no_proxy(node: Node) -> None:
    """curl asks where no bash can."""
    said = node.at("/run/standin/said")
    (node.bin / "bash").write_text("#!/bin/sh\nexit 1\n")
    names = ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy")
    wrap(node, "curl", f'echo "{"".join("${" + name + "-}" for name in names)}$1 $no_proxy" >>{said}')
    node.environment.update(dict.fromkeys(names, "http://proxy.invalid:3128"))
    assert node.apply().healthy
    assert set(said.read_text().splitlines()) == {"-q 127.0.0.1"}


@pytest.mark.parametrize(
    ("status", "health"), [("200 OK", "ok"), ("500 Internal Server Error", "status 500"), ("", "refused")]
)
def test_bash_opens_the_connection_itself(node: Node, status: str, health: str) -> None:
    """curl costs a node three times as much as bash does, and is asked only where bash has no answer."""
    (node.bin / "bash").unlink()
    startup = node.at("/run/standin/startup")
    startup.write_text("exit 3\n")
    node.environment["BASH_ENV"] = str(startup)  # what a login sets is not read
    (node.bin / "curl").write_text(f"#!/bin/sh\necho asked >>{node.at('/run/standin/curl')}\nexit 7\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        port = server.getsockname()[1]
        node.write("/proc/net/tcp", (SOCKETS + listening("0100007F", port, 4242)).encode())
        asked = bytearray()

        def answer() -> None:
            with server.accept()[0] as caller:
                while not asked.endswith(b"\r\n\r\n"):
                    asked.extend(caller.recv(1000))
                if status:
                    caller.sendall(f"HTTP/1.0 {status}\r\nContent-Length: 2\r\n\r\nok".encode())

        thread = threading.Thread(target=answer)
        thread.start()
        measured = node.status(measure=Measure(healthz_port=port))
        thread.join()
    assert measured.measurement is not None
    assert (measured.measurement.healthz, bytes(asked)) == (health, b"GET /healthz HTTP/1.0\r\n\r\n")
    assert node.at("/run/standin/curl").exists() == (not status)


def test_a_command_gate_keeps_its_proxy(node: Node) -> None:
    node.environment["http_proxy"] = "http://proxy.invalid:3128"
    assert node.apply().healthy
    gate = NodeCommand("c", 5, 'echo "$http_proxy"; false')
    measured = node.status("t1", measure=Measure(healthz_port=10248, commands=(gate,)))
    assert measured.measurement is not None
    assert measured.measurement.outputs["c"] == "http://proxy.invalid:3128"


def test_a_node_without_flock_is_refused(node: Node, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for tool in Path(folder).iterdir():
            if tool.name != "flock" and not (tools / tool.name).is_symlink():
                (tools / tool.name).symlink_to(tool)
    node.environment["PATH"] = f"{node.bin}:{tools}"
    report = node.apply()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "no-flock")
    assert (node.files(), node.strays()) == (OLD, [])

"""``become: doas``: on a real OpenSSH server, with a stand-in of doas that words its refusals as opendoas 6.8.2 does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rollout.adapters.agent_program import agent_program
from rollout.adapters.ssh import SshNodes
from rollout.adapters.ssh.over_fabric import FabricSession
from rollout.app.operator_commands import OperatorCommand
from rollout.core.model.report import Outcome
from rollout.core.model.ways_in import Become
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_answer import parse_report
from rollout.kubelet.agent.sudo import Secret
from tests.adapters.ssh.sshd import PATIENT, Sshd, target

pytestmark = pytest.mark.process

DOAS = """#!/bin/sh
refuse() { printf 'doas: %s\\n' "$1" >&2; exit 1; }
while getopts n option; do [ "$option" = n ] && quiet=yes; done
shift $((OPTIND - 1))
rule=$(cat "$0.conf" 2>/dev/null) || refuse "doas is not enabled, $0.conf: No such file or directory"
case $rule in
  "permit nopass") ;;
  permit) [ -z "$quiet" ] || refuse 'Authentication required'; exec sleep 600 ;;
  *) refuse 'Operation not permitted' ;;
esac
exec env -i PATH=/usr/bin:/bin DOAS_USER=sre HOME=/root "$@"
"""
NODE = replace(target(), become=Become.DOAS)
STATUS = agent_call.status(agent_program(), sudo=True, deadline=600)


@pytest.fixture
def doas(own_sshd: Sshd, tmp_path: Path) -> Path:
    """The file of its rules. Without sudo on the ``PATH``."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sudo", "doas"):
        (folder / name).write_text(DOAS if name == "doas" else "#!/bin/sh\nexit 99\n")
        (folder / name).chmod(0o755)
    own_sshd.options = f"SetEnv SHLVL=2 PATH={folder}:/usr/sbin:/usr/bin:/sbin:/bin"
    own_sshd.start()
    return folder / "doas.conf"


@pytest.mark.usefixtures("doas")
@pytest.mark.parametrize("password", [None, "x"], ids=["no-password", "password-for-others"])
@pytest.mark.parametrize(
    ("rule", "reference"),
    [
        ("permit nopass", ""),
        ("permit", "doas-needs-password"),
        ("deny", "doas-not-allowed"),
        ("", "no-doas"),
    ],
)
def test_the_agent_begins_through_doas_or_its_refusal_is_named(
    own_sshd: Sshd, doas: Path, rule: str, reference: str, password: str | None
) -> None:
    if rule:
        doas.write_text(rule)
    secret = Secret(password) if password else None
    nodes = SshNodes(ssh_config=own_sshd.ssh_config, limits=PATIENT, sudo_password=secret)
    try:
        report = parse_report("n1", "status", nodes.run(NODE, STATUS), 0)
    finally:
        nodes.close()
    assert (report.outcome, report.reference) == (Outcome.REFUSED if reference else Outcome.DONE, reference)
    assert "password" not in report.message or reference == "doas-needs-password"


@pytest.mark.parametrize("sessions", [None, FabricSession], ids=["session", "fabric"])
def test_an_operators_command_goes_through_doas(
    own_sshd: Sshd, doas: Path, sessions: type[FabricSession] | None
) -> None:
    doas.write_text("permit nopass")
    more = {"sessions": sessions} if sessions else {}
    nodes = SshNodes(ssh_config=own_sshd.ssh_config, limits=PATIENT, sudo_password=Secret("x"), **more)  # type: ignore[arg-type]
    command = OperatorCommand('echo "$DOAS_USER"', 600.0, sudo=True).on(through_sudo=True)
    try:
        answer = nodes.run(NODE, command)
    finally:
        nodes.close()
    assert (answer.status, answer.stdout, answer.started) == (0, b"sre\n", True)

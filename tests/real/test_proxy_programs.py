"""Real nodes behind programs of ``ProxyCommand``: a wrapper of ``ssh -W`` and a stand-in for ``aws ssm start-session``.

Two of the four nodes are reached by each. Their own addresses are of no use to rollout.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.ssh.sshd import Sshd
from tests.adapters.ssh.test_proxy_commands import RELAY, processes, written_program
from tests.controllers import until
from tests.real.fleet import Fleet

pytestmark = [pytest.mark.root, pytest.mark.night]

WRAPPER = '#!/bin/sh\nexec ssh -F {config} -W "$1:$2" bastion\n'
AWS = """#!/bin/sh
# aws [ssm start-session --target ID --document-name AWS-StartSSHSession --parameters portNumber=N]
set -eu
exec 3<&0  # a shell gives a background process no input
[ "$1 $2 $3 $5 $6 $7" = "ssm start-session --target --document-name AWS-StartSSHSession --parameters" ]
address=$(sed -n "s/^$4 //p" {instances})
printf 'Starting session with SessionId: sre-%s\\n' "$$" >&2
{plugin} "$address" "${8#portNumber=}" <&3 &
wait "$!"
"""
"""As the real one, it starts a plugin that carries the session."""
LINE = "aws ssm start-session --target %h --document-name AWS-StartSSHSession --parameters"


@pytest.fixture
def bastion(tmp_path: Path) -> Iterator[Sshd]:
    folder = tmp_path / "bastion"
    folder.mkdir()
    server = Sshd(folder)
    server.start()
    yield server
    server.stop()


def test_plan_apply_and_rollback_through_programs(
    fleet: Fleet, bastion: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, first, second = tmp_path / "home", fleet.nodes[:2], fleet.nodes[2:]
    (home / ".config/rollout").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    bastion.write_ssh_config(f"Host bastion\n  HostName 127.0.0.1\n  Port {bastion.port}\n")
    wrapper = written_program(tmp_path / "wrapper", WRAPPER.format(config=bastion.ssh_config))
    plugin = written_program(tmp_path / "session-manager-plugin", RELAY)
    ids = {node.name: f"i-0{number:03}" for number, node in enumerate(second)}
    (tmp_path / "instances").write_text("".join(f"{ids[node.name]} {node.address}\n" for node in second))
    aws_text = AWS.replace("{instances}", str(tmp_path / "instances")).replace("{plugin}", str(plugin))
    aws = written_program(tmp_path / "aws", aws_text)
    (home / ".config/rollout/config.toml").write_text(
        f"proxyCommands = ['{wrapper} %h %p', '{aws.parent}/{LINE} portNumber=%p']\n"
    )
    stanzas = "".join(f"Host {node.name}\n  ProxyCommand {wrapper} %h %p\n" for node in first) + "".join(
        f"Host {node.name}\n  HostName {ids[node.name]}\n  HostKeyAlias {node.address}\n"
        f"  ProxyCommand sh -c \"{LINE} 'portNumber=%p'\"\n"
        for node in second
    )
    kept = fleet.bed.ssh_config.read_text()
    try:
        fleet.bed.ssh_config.write_text(f"{stanzas}{kept}")
        before = fleet.everything()
        fleet.plan()
        applied = fleet.rollout("apply", "p.json", "--yes")
        assert applied.code == 0, applied.all
        assert [fleet.runs_new(node) for node in fleet.nodes] == [True] * 4
        back = fleet.rollout("rollback", fleet.status()["run"], "--yes")
        assert back.code == 0, back.all
        assert fleet.everything() == before
        fleet.nothing_left()
        assert bastion.accepted() >= len(first)
        until(lambda: not [*processes(wrapper), *processes(aws), *processes(plugin)], 30, "no program is left")

        written_program(aws, "#!/bin/sh\necho 'Your session has expired. Please reauthenticate.' >&2\nexit 255\n")
        expired = fleet.rollout("doctor", "--cluster", "real", "--all")
        assert expired.code == 4, expired.all
        assert "Your session has expired" in expired.all
        assert "[proxy-command-failed]" in expired.all
    finally:
        fleet.bed.ssh_config.write_text(kept)

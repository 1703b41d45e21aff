"""A credential in a node's file, through a whole run: it is in the plan and the journal, which are private, and nowhere else.

Other secrets are tested where they are used: sudo's password in ``tests/adapters/ssh/test_sudo.py``, bearer tokens and
kubeconfigs in ``tests/adapters/kubernetes``, the journal's password in ``tests/adapters/journal``.
"""

from __future__ import annotations

import base64
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.controllers import finished
from tests.processes import every_process
from tests.story.conftest import Site, in_memory, lab_up, make_site, served

NODES = "small-[001-002]"
SECRET = b"CANARY-5d1e77-registry-password"
LINE = f"REGISTRY_PASSWORD={SECRET.decode()}\n"


def _forms(secret: bytes) -> tuple[bytes, ...]:
    """The secret, and the base64 forms of its middle at every offset."""
    middles = (base64.b64encode(bytes(before) + secret)[4 * (before > 0) + 4 : -8] for before in range(3))
    return secret, *middles


FORMS = _forms(SECRET)


def holds(content: bytes) -> bool:
    return any(form in content for form in FORMS)


def test_the_forms_of_a_secret_are_found_wherever_base64_begins() -> None:
    for before in range(7):
        assert holds(base64.b64encode(b"x" * before + SECRET + b"yyy"))
    assert not holds(base64.b64encode(b"x" * 100))


@pytest.mark.process
def test_a_credential_in_a_file_is_only_in_the_plan_and_the_journal(tmp_path: Path) -> None:
    with served(tmp_path, NODES) as site, every_process() as processes:
        said = "".join(_whole_way(site))
        kept = [
            path for path in tmp_path.rglob("*") if path.is_file() and "lab" not in path.relative_to(tmp_path).parts
        ]
        with_it = {path for path in kept if holds(path.read_bytes())}
    assert not holds(said.encode())
    assert "<redacted>" in said, "the line was shown, without the secret"
    assert any(b"rollout.cli\0apply\0" in line for line in processes), "the check saw its process"
    assert not any(holds(line) for line in processes)
    names = {str(path.relative_to(tmp_path)) for path in with_it}
    assert {"p.json", "s.json"} <= names
    assert names <= {"p.json", "s.json", ".rollout/journal.db", ".rollout/journal.db-wal"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in with_it} == {0o600}
    assert stat.S_IMODE((tmp_path / ".rollout").stat().st_mode) == 0o700


def _whole_way(site: Site) -> Iterator[str]:
    """All output of the command line, from plan to rollback."""
    for name in ("small-001", "small-002"):
        file = site.node(name) / "etc/default/kubelet"
        file.write_text(file.read_text() + LINE if file.exists() else LINE)
    for words in _calls(("--cluster", "small", "--limit", NODES)):
        yield _all_of(site, *words)


def _calls(limit: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return (
        ("plan", *limit, "--out", "p.json", "--save-snapshot", "s.json"),
        ("plan", *limit, "--out", "p.json", "-o", "json"),
        ("apply", "p.json", "--yes", "-o", "json"),
        ("status",),
        ("status", "-o", "json"),
        ("report", "--html", "r.html"),
        ("report", "-o", "json"),
        ("verify", *limit),
        ("rollback", *limit, "--emergency", "--yes"),
    )


def _all_of(site: Site, *words: str) -> str:
    """What a command prints. It is a new process: its own command line is checked."""
    done = finished(["env", *site.command(*words)], site.folder, 600)
    assert done.code == 0, f"{words}: {done.out}{done.err}"
    return done.out + done.err


RKE2 = """\
cluster: small
apiServer: v1.33.4
nodes:
  small-001: {labels: {kubeletVersion: v1.33.4+rke2r1, containerRuntime: containerd, layout: rke2}}
"""
RKE2_PLAYBOOK = """\
name: pulls
settings: {serializeImagePulls: true, --max-pods: 180}
waves: [canary, rest]
limits: {perRack: 100%, pace: 20}
soak: 600ms
passes: 2
rehearsal: false
guard: 60s
accept:
  - {setting: /etc/rancher/rke2/config.yaml, reason: by hand}
"""
TOKEN = SECRET.decode()
PLACES = {
    "etc/rancher/rke2/config.yaml": (
        f"# token: {TOKEN}\ntoken: {TOKEN}\nagent-token: '{TOKEN}'\ndatastore-endpoint: postgres://a:{TOKEN}@192.0.2.5/k3s\n"
        "write-kubeconfig-mode: 0644\nkube-apiserver-arg: [encryption-provider-config=/etc/rancher/enc.json]\n"
    ),
    "etc/rancher/enc.json": f'{{"kind": "EncryptionConfiguration", "secret": "{TOKEN}"}}\n',
    "etc/rancher/rke2/config.yaml.d/10-token.yaml": f"agent-token: |\n  {TOKEN}\n",
    "etc/rancher/rke2/config.yaml.d/10-token.yaml.bak": f"token: {TOKEN}\n",
    "etc/default/rke2-agent": f"RKE2_TOKEN={TOKEN}\nRKE2_ARGS='--token {TOKEN}'\n",
    "etc/systemd/system/rke2-agent.service.d/10-site.conf": (
        f"# {TOKEN}\n[Service]\nEnvironment=RKE2_AGENT_TOKEN={TOKEN}\nExecStart=\nExecStart=/usr/bin/rke2 agent $RKE2_ARGS\n"
    ),
}
"""Where a node of RKE2 has the secrets of its cluster."""


@pytest.mark.process
def test_the_tokens_of_rke2_are_in_nothing_that_rollout_keeps_or_shows(tmp_path: Path) -> None:
    with in_memory(tmp_path) as room:
        site = replace(make_site(tmp_path), lab=room / "lab")
        (site.folder / "inventories/small.yaml").write_text(RKE2)
        (site.folder / "playbooks/pulls.yaml").write_text(RKE2_PLAYBOOK)
        with lab_up(site, "--cluster", "small"):
            for path, text in PLACES.items():
                file = site.node("small-001") / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text((file.read_text() if file.exists() else "") + text)
            restart = "sudo -n systemctl daemon-reload && sudo -n systemctl restart rke2-agent.service"
            finished(["ssh", "-F", str(site.lab / "ssh_config"), "small-001", restart], site.folder)
            calls = _calls(("--cluster", "small", "--limit", "small-001"))
            said = [_all_of(site, *words) for words in (calls[0], calls[2], *calls[5:7], calls[8])]
            on_node = [path for path in (site.node("small-001") / "var/lib/rollout").rglob("*") if path.is_file()]
            state = [path for path in on_node if holds(path.read_bytes())]
        kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".sock"]
        kept = [path for path in kept if "lab" not in path.relative_to(tmp_path).parts]
    assert "--max-pods" in said[0], said[0]
    assert not [text for text in said if holds(text.encode())]
    assert {"p.json", "s.json", "r.html"} <= {path.name for path in kept}
    assert [path for path in kept if holds(path.read_bytes())] == []
    assert state == [], "the node's own copies are of changed files"

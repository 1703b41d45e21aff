"""Every file that a secret, a program or a trusted key is read from, and every address that gets a secret.

A file of the table is refused when another user decides what it contains: by owning it, a link on the way or a folder
above. An address is refused when its peer would not have to prove its identity. A search of the source finds the readers of
files, so that a new one is either in the table or named with the reason why anybody may write what it reads.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rollout.adapters.endpoints import HttpEndpoint, TokenFile, authorities
from rollout.adapters.journal.postgres import verifying
from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig
from rollout.adapters.node_sources import InventoryScripts
from rollout.adapters.owners import others_hold
from rollout.adapters.private_files import private_state, read_password
from rollout.adapters.ssh.identities import _load
from rollout.adapters.ssh.known_hosts import KnownHostsFiles
from rollout.adapters.ssh.proxy_lines import ProxyCommands
from rollout.adapters.ssh.resolve import Resolver
from rollout.adapters.ssh.ssh_config import SshConfig
from rollout.composition.project import project_at
from rollout.errors import RolloutError
from rollout.features.approvals.client.signatures import SshSignatures
from rollout.features.notices.client.addresses import FILE_VARIABLE, addresses
from rollout.features.notices.client.postman import ApprisePostman
from rollout.features.regions.client.certificates import CertificateFiles
from rollout.features.regions.client.scheduler import DaskScheduler
from tests.places import ROOT

SOMEBODY = 12345
KUBECONFIG = """
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://api.example:6443"}}]
users: [{name: u, user: {%s}}]
"""


def kubeconfig_with(user: str) -> Callable[[Path], object]:
    """A kubeconfig of ours that names a file."""

    def read(path: Path) -> object:
        made = path.parent.parent / "kubeconfig"
        made.write_text(KUBECONFIG % user.replace("FILE", str(path)))
        return load_kubeconfig(str(made))

    return read


def ssh_key(path: Path) -> None:
    found = _load(path, b"")
    assert isinstance(found, str)
    if "uid" in found or "writable" in found:
        raise RolloutError("key", found)


EXEC = "exec: {apiVersion: client.authentication.k8s.io/v1, command: FILE}"
FILES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "rollout.toml": ("project._check_owner", lambda path: project_at(path.parent)),
    "state folder": ("private_files.private_state", lambda path: private_state(path.parent)),
    "sudo password": ("private_files._password_text", read_password),
    "kubeconfig": ("kubernetes/kubeconfig._text", lambda path: load_kubeconfig(str(path))),
    "client key": ("kubernetes/kubeconfig._Reading._content", kubeconfig_with("client-key: FILE")),
    "exec plugin": ("", kubeconfig_with(EXEC)),
    "bearer token": ("endpoints.TokenFile._in_file", lambda path: TokenFile(path).read()),
    "authorities": ("endpoints.authorities", lambda path: authorities(str(path))),
    "notices": ("notices/client/addresses._private_text", lambda path: addresses({FILE_VARIABLE: str(path)})),
    "Dask certificates": (
        "regions/client/certificates.CertificateFiles.check",
        lambda path: CertificateFiles(path.parent).check(),
    ),
    "nodesFrom": ("node_sources._is_script", lambda path: InventoryScripts().ansible(str(path))),
    "ssh_config": ("ssh/ssh_config.Reader._lines", lambda path: SshConfig.read(path, private=True)),
    "ssh_config of --ssh-config": ("ssh/ssh_config.Reader._lines", Resolver.reading),
    "user's configuration": ("ssh/proxy_lines.ProxyCommands.read", ProxyCommands.read),
    "private key": ("ssh/identities._load", ssh_key),
    "known_hosts": ("ssh/known_hosts._read", lambda path: KnownHostsFiles().of((path,))),
    "signers": ("", lambda path: SshSignatures().people("", str(path))),
}
"""What is read → the function that opens it (``""``: another program does), and a call that reads it."""

NAMES = {"rollout.toml": "rollout.toml", "state folder": "journal.db", "Dask certificates": "key.pem"}

OF_ANYBODY = {
    "plan_files.read_bounded": "a plan or snapshot that the operator names; a plan is checked before it is applied",
    "approvals/client/waiting.waiting_plans": "plans of the current folder: only their names and digests are shown",
    "files.FolderFiles.content": "files of a project: reviewed as code, and named by the operator",
    "diagnose/client._opened": "logs and events that an operator hands over: evidence, read with limits",
    "approvals/client/files._text": "signatures: each is checked against the file of signers",
}
IN_THE_STATE_FOLDER = {
    "journal/database._copy", "journal/ends.Ends.keep", "journal/ends.Ends.kept", "journal/heads.Heads.keep", "journal/heads.Heads.kept", "node_sources._read",
    "node_sources.RememberingSources.live",
}  # fmt: skip
NO_SECRET = {
    "agent_program.part": "of this package",
    "serve/client/pages.static_files": "of this package",
    "endpoints._check_files": "only whether they are files, before `authorities` reads them",
    "files._descriptor": "for its callers, which are in these tables",
    "files.content_of": "for its callers, which are in these tables",
    "journal/owner._read": "/proc",
    "ssh/proxy_process._session": "/proc",
    "ssh/certificates.read": "public, and signed",
    "ssh/identities._blob_in": "public: chooses among the agent's keys",
    "ssh/known_hosts._append": "read by `_read` first, under its lock",
    "init/client.write_new": "written anew, never over another file",
    "http.Http.__init__": "the system's authorities",
    "kubernetes/credentials.context_for": "the authority of the kubeconfig, in memory",
    "kubernetes/credentials._bear": "a folder of this process, 0700",
}


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """A folder of ours in a folder of ours."""
    found = tmp_path / "above" / "inside"
    found.mkdir(parents=True)
    return found


def owned(path: Path) -> None:
    os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)


def its_file(path: Path) -> Path:
    owned(path)
    return path


def everybodys_file(path: Path) -> Path:
    path.chmod(0o606)
    return path


def link_to_its_file(path: Path) -> Path:
    """The link is ours, the target is not."""
    target = path.with_name("target")
    path.rename(target)
    owned(target)
    path.symlink_to(target)
    return path


def its_link(path: Path) -> Path:
    """The target is ours now; the owner of the link may choose another."""
    target = path.with_name("target")
    path.rename(target)
    path.symlink_to("target")
    owned(path)
    return path


def link_through_its_folder(path: Path) -> Path:
    """The file and the link are ours, and the file is in a folder of another user."""
    folder = path.parent.parent / "elsewhere"
    folder.mkdir()
    path.rename(folder / path.name)
    owned(folder)
    path.symlink_to(Path("..", "elsewhere", path.name))
    return path


def in_its_folder(path: Path) -> Path:
    owned(path.parent.parent)
    return path


def in_everybodys_folder(path: Path) -> Path:
    path.parent.parent.chmod(0o777)
    return path


ATTACKS = (
    its_file, everybodys_file, link_to_its_file, its_link, link_through_its_folder, in_its_folder, in_everybodys_folder,
)  # fmt: skip


@pytest.mark.root  # giving files to another user
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("what", FILES)
def test_a_file_that_another_user_decides_about_is_refused(
    inside: Path, what: str, attack: Callable[[Path], Path]
) -> None:
    path = inside / NAMES.get(what, "file")
    path.write_text(KUBECONFIG % "token: x" if what == "kubeconfig" else "")
    path.chmod(0o600)
    path = attack(path)
    with pytest.raises(RolloutError) as caught:
        FILES[what][1](path)
    said = str(caught.value)
    links = what == "state folder" and attack in (link_to_its_file, its_link, link_through_its_folder)
    private = attack in (its_file, everybodys_file, link_to_its_file) and what in (
        "sudo password",
        "notices",
        "ssh_config",
        "user's configuration",
    )
    assert links or private or "uid 12345" in said or "writable by everybody" in said, said


@pytest.mark.root
@pytest.mark.parametrize("what", FILES)
def test_the_same_file_of_ours_is_read_also_through_a_link_and_in_a_folder_like_tmp(inside: Path, what: str) -> None:
    """Whatever else is wrong with an empty file, it is not its owner."""
    inside.parent.chmod(0o1777)
    path = inside / NAMES.get(what, "file")
    path.write_text("")
    path.chmod(0o600)
    if what != "state folder":
        path.rename(inside / "target")
        path.symlink_to("target")
    said = ""
    try:
        FILES[what][1](path)
    except RolloutError as error:
        said = str(error)
    assert not any(word in said for word in ("uid", "writable", "not-yours", "not-private")), said


def test_a_descriptor_of_ours_is_no_path_of_others() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"word\n")
    os.close(writing)
    assert others_hold(Path(f"/dev/fd/{reading}")) == ""
    assert read_password(Path(f"/dev/fd/{reading}")).reveal() == "word"
    os.close(reading)


def test_links_that_never_end_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        others_hold(tmp_path / "a")


OPENS = {
    "open", "read_text", "read_bytes", "load_cert_chain", "create_default_context", "from_path", "opened", "content_of",
}  # fmt: skip


def readers() -> Iterator[str]:
    """The functions of adapters, of features and of the composition root that open files, as ``module.function``."""
    rooms = (ROOT / "rollout" / "adapters", ROOT / "rollout" / "composition", ROOT / "rollout" / "features")
    for folder, file in ((room, file) for room in rooms for file in sorted(room.rglob("*.py"))):
        module = str(file.relative_to(folder).with_suffix(""))
        waiting: list[tuple[ast.AST, str]] = [(ast.parse(file.read_text()), module)]
        while waiting:
            node, name = waiting.pop()
            for child in ast.iter_child_nodes(node):
                inner = f"{name}.{child.name}" if isinstance(child, ast.FunctionDef | ast.ClassDef) else name
                if isinstance(child, ast.Call):
                    called = child.func
                    word = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
                    if word in OPENS:
                        yield inner
                waiting.append((child, inner))


def test_every_reader_of_files_is_in_the_table() -> None:
    known = {function for function, _ in FILES.values()} | set(OF_ANYBODY) | IN_THE_STATE_FOLDER | set(NO_SECRET)
    assert set(readers()) - known == set()


def notice(url: str) -> None:
    ApprisePostman((url,))


def journal(url: str) -> None:
    if verifying(url, {}).get("sslmode") == "verify-full":
        raise RolloutError("", "the server must prove who it is")


def endpoint(url: str) -> None:
    HttpEndpoint(url, "/token")


PEERS: tuple[tuple[str, Callable[..., object], str, bool], ...] = (
    ("journal", journal, "postgresql://ops@db.example/rollout", False),
    ("journal", journal, "postgresql://ops@127.0.0.1/rollout", True),
    ("Prometheus, Alertmanager", endpoint, "http://prometheus.example", False),
    ("Prometheus, Alertmanager", endpoint, "https://prometheus.example", True),
    ("Prometheus, Alertmanager", endpoint, "http://127.0.0.1:9090", True),
    ("Dask", lambda url: DaskScheduler(url, None), "tcp://scheduler.example:8786", False),
    ("Dask", lambda url: DaskScheduler(url, None), "tls://scheduler.example:8786", False),
    ("notices", notice, "json://ops:word@hooks.example/x", False),
    ("notices", notice, "json://hooks.example/secret", False),
    ("notices", notice, "jsons://hooks.example/secret?verify=no", False),
    ("notices", notice, "jsons://hooks.example/secret", True),
    ("notices", notice, "json://127.0.0.1:9/secret", True),
    ("notices", notice, "mailto://ops:word@mail.example", False),
    ("notices", notice, "syslog://", True),
)


@pytest.mark.process  # apprise makes a socket when it is imported
@pytest.mark.parametrize(("what", "ask", "address", "good"), PEERS)
def test_no_secret_goes_to_a_peer_that_need_not_prove_who_it_is(
    what: str, ask: Callable[[str], object], address: str, *, good: bool
) -> None:
    if good:
        ask(address)
    else:
        with pytest.raises(RolloutError):
            ask(address)


@pytest.mark.parametrize(
    ("cluster", "server"),
    [("", "http://api.example:6443"), ("insecure-skip-tls-verify: true, ", "https://api.example:6443")],
)
def test_no_token_goes_to_an_api_server_that_need_not_prove_who_it_is(
    tmp_path: Path, cluster: str, server: str
) -> None:
    text = (KUBECONFIG % "token: x").replace('server: "https://api.example:6443"', f'{cluster}server: "{server}"')
    (tmp_path / "kubeconfig").write_text(text)
    with pytest.raises(RolloutError):
        load_kubeconfig(str(tmp_path / "kubeconfig"))

"""Kubeconfigs: supported entries, entries that are refused by name, and no secret is ever shown."""

from __future__ import annotations

import base64
import json
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rollout.adapters.kubernetes.client import ApiClient
from rollout.adapters.kubernetes.credentials import context_for
from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig
from rollout.errors import AwayError, InputError, RemoteError
from tests.adapters.web import Reply, Web, nobody, web
from tests.controllers import until

SECRET = "s3cret-t0ken"  # noqa: S105 - must never be shown
OK = Reply(body=b'{"kind": "Status"}')


def config(folder: Path, user: dict[str, Any], server: str = "https://10.0.0.1:6443", **cluster: Any) -> str:
    document = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "default"}}],
        "clusters": [{"name": "k", "cluster": {"server": server, **cluster}}], "users": [{"name": "u", "user": user}],
    }  # fmt: skip
    path = folder / "kubeconfig"
    path.write_text(json.dumps(document, indent=1))
    return str(path)


def client(stack: ExitStack, path: str) -> ApiClient:
    made = ApiClient(load_kubeconfig(path))
    stack.callback(made.close)
    return made


def bearer_seen(server: Web) -> list[str]:
    return [seen.headers.get("authorization", "") for seen in server.seen]


@pytest.mark.process
def test_a_token_is_sent(stack: ExitStack, tmp_path: Path) -> None:
    server = stack.enter_context(web(OK))
    client(stack, config(tmp_path, {"token": SECRET}, server.url)).get("/version", 5)
    assert bearer_seen(server) == [f"Bearer {SECRET}"]


@pytest.mark.process
def test_a_token_file_is_relative_to_the_kubeconfig(stack: ExitStack, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n")
    server = stack.enter_context(web(OK))
    client(stack, config(tmp_path, {"tokenFile": "token"}, server.url)).get("/version", 5)
    assert bearer_seen(server) == [f"Bearer {SECRET}"]


@pytest.mark.parametrize(
    ("user", "cluster", "said"),
    [
        ({"token": SECRET}, {"insecure-skip-tls-verify": True}, "`insecure-skip-tls-verify`: the server would not be verified; set its certificate authority instead [kubeconfig-unsupported]"),
        ({"token": SECRET}, {"proxy-url": "http://proxy"}, "`proxy-url`: proxies are not supported [kubeconfig-unsupported]"),
        ({"username": "me", "password": SECRET}, {}, "`username`: passwords are not supported; no API server since 1.19 takes them [kubeconfig-unsupported]"),
        ({"auth-provider": {"name": "gcp"}}, {}, "`auth-provider`: auth providers are not supported; no client since 1.26 supports them, use `exec` [kubeconfig-unsupported]"),
        ({"token": SECRET, "as": "admin"}, {}, "`as`: impersonation is not supported [kubeconfig-unsupported]"),
        ({"token": 7}, {}, "`token` must be text, not a number [wrong-type]"),
        ({"client-certificate-data": "%%"}, {}, "`client-certificate-data` is not base64 [bad-base64]"),
        ({"client-certificate": "missing.crt"}, {}, "`client-certificate`: missing.crt: No such file or directory [file-missing]"),
        ({"client-certificate": "/dev/null"}, {}, "`client-certificate`: /dev/null is empty [bad-certificate]"),
        ({"token": SECRET}, {"certificate-authority": "/dev/null"}, "`certificate-authority`: /dev/null is empty [bad-certificate]"),
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "x"}}, {}, "`exec` with apiVersion `client.authentication.k8s.io/v1alpha1` [kubeconfig-unsupported]"),
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x", "interactiveMode": "Always"}}, {}, "`exec` that needs a terminal (interactiveMode: Always) [kubeconfig-unsupported]"),
    ],
)  # fmt: skip
def test_unsupported_entries_are_reported(
    tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as error:
        load_kubeconfig(config(tmp_path, user, **cluster))
    assert str(error.value).splitlines()[0].partition(": ")[2] == said
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("http://10.0.0.1:8080", "`server` is not https: credentials would be sent unencrypted [bad-server]"),
        ("10.0.0.1:6443", "`server` is not an address: `10.0.0.1:6443` [bad-server]"),
        ("https://me:pw@10.0.0.1", "`server` is not an address, or contains a user [bad-server]"),
    ],
)
def test_the_server_must_be_an_https_address(tmp_path: Path, server: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        load_kubeconfig(config(tmp_path, {"token": SECRET}, server))
    assert str(error.value).endswith(said)


def test_contexts_are_chosen_by_name_with_a_hint(tmp_path: Path) -> None:
    path = config(tmp_path, {"token": SECRET})
    assert load_kubeconfig(path, "c").where == f"{path}, context c"
    with pytest.raises(InputError, match=r"there is no context `cc` \(did you mean `c`\?\) \[no-context\]"):
        load_kubeconfig(path, "cc")


@pytest.mark.parametrize("kind", ["cluster", "user", "context"])
def test_two_entries_of_one_name_are_refused_as_by_kubectl(tmp_path: Path, kind: str) -> None:
    """The first would count, and could be another cluster."""
    path = Path(config(tmp_path, {"token": SECRET}))
    document = json.loads(path.read_text())
    name = document[f"{kind}s"][0]["name"]
    document[f"{kind}s"].append(document[f"{kind}s"][0])
    path.write_text(json.dumps(document, indent=1))
    message = f"two {kind}s have the name `{name}`, and kubectl reads no such file [kubeconfig-unsupported]"
    with pytest.raises(InputError) as error:
        load_kubeconfig(str(path))
    assert str(error.value).splitlines()[0].partition(": ")[2] == message


def test_an_impersonation_of_nobody_is_none(tmp_path: Path) -> None:
    user = {"token": SECRET, "as": "", "as-groups": [], "as-user-extra": {}}
    assert load_kubeconfig(config(tmp_path, user)).token == SECRET


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere: No such file or directory \[no-kubeconfig\]"):
        load_kubeconfig(str(tmp_path / "nowhere"))


def test_invalid_yaml_is_reported_with_its_position(tmp_path: Path) -> None:
    (tmp_path / "k").write_text("clusters: [\n")
    with pytest.raises(InputError, match=r"k:\d+:\d+: "):
        load_kubeconfig(str(tmp_path / "k"))


@pytest.mark.parametrize(
    "user", [{"client-certificate-data": base64.b64encode(b"x").decode(), "client-key-data": "eA=="}]
)
def test_invalid_certificates_are_reported_before_any_request(tmp_path: Path, user: dict[str, Any]) -> None:
    with pytest.raises(
        InputError, match=r"the client certificate and key are not a matching PEM pair \[bad-certificate\]"
    ):
        ApiClient(load_kubeconfig(config(tmp_path, user)))


def test_an_invalid_authority_is_reported(tmp_path: Path) -> None:
    authority = base64.b64encode(b"-----").decode()
    with pytest.raises(InputError, match=r"the certificate authority is not a PEM certificate \[bad-certificate\]"):
        ApiClient(load_kubeconfig(config(tmp_path, {"token": SECRET}, **{"certificate-authority-data": authority})))


def made_authority() -> bytes:
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-keyout", "/dev/null"]
    return subprocess.run(words, capture_output=True, check=True).stdout


@pytest.mark.process
def test_an_authority_is_read_as_kubectl_reads_it(tmp_path: Path) -> None:
    """Its base64 may have several lines, and the text beside a certificate any letters."""
    authority = base64.encodebytes("# Főtanúsítvány\n".encode() + made_authority()).decode()
    assert "\n" in authority.strip()
    access = load_kubeconfig(config(tmp_path, {"token": SECRET}, **{"certificate-authority-data": authority}))
    (found,) = context_for(access, b"", b"").get_ca_certs()
    assert found["subject"] == ((("commonName", "x"),),)


def test_secrets_are_in_no_repr(tmp_path: Path) -> None:
    assert SECRET not in repr(load_kubeconfig(config(tmp_path, {"token": SECRET})))


# exec plugins

Plugin = Callable[[str], str]


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    """A plugin in the kubeconfig's folder that runs some Python."""

    def write(body: str) -> str:
        path = tmp_path / "plugin"
        path.write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return "./plugin"

    return write


def execs(command: str) -> dict[str, Any]:
    return {"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": command, "args": ["login"],
        "env": [{"name": "PLUGIN", "value": "yes"}], "interactiveMode": "IfAvailable", "installHint": "apt install plugin",
    }}  # fmt: skip


def prints(status: str) -> str:
    credential = f'{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {status}}}'
    return f"open('asked', 'a').write('x'); print(json.dumps({credential}))"


@pytest.mark.process
def test_a_plugins_token_is_used_until_it_ends(
    stack: ExitStack, tmp_path: Path, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server = stack.enter_context(web(OK))
    body = prints('{"token": sys.argv[1] + os.environ["PLUGIN"], "expirationTimestamp": "2999-01-01T00:00:00Z"}')
    asking = client(stack, config(tmp_path, execs(plugin(body)), server.url))
    asking.get("/version", 5)
    asking.get("/version", 5)
    assert bearer_seen(server) == ["Bearer loginyes"] * 2
    assert (tmp_path / "asked").read_text() == "x"


@pytest.mark.process
def test_a_plugin_is_told_of_the_cluster_what_kubectl_tells_it(
    stack: ExitStack, tmp_path: Path, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gardenlogin and others read which cluster it is from ``config``, and verify it by the authority (client.authentication.k8s.io/v1, ``Cluster``)."""
    monkeypatch.chdir(tmp_path)
    server = stack.enter_context(web(OK))
    own = {"shootRef": {"name": "rno"}, "audience": "06e3fbd18de8"}
    cluster = {
        "certificate-authority-data": base64.b64encode(made_authority()).decode(),
        "tls-server-name": "kubernetes",
        "extensions": [
            {"name": "cluster_info", "extension": {"provider": "minikube"}},
            {"name": "client.authentication.k8s.io/exec", "extension": own},
        ],
    }
    body = "open('told', 'w').write(os.environ['KUBERNETES_EXEC_INFO'])\n" + prints('{"token": "t"}')
    user = execs(plugin(body))
    user["exec"]["provideClusterInfo"] = True
    client(stack, config(tmp_path, user, server.url, **cluster)).get("/version", 5)
    spec = json.loads((tmp_path / "told").read_text())["spec"]
    assert spec == {
        "interactive": False,
        "cluster": {
            "server": server.url,
            "tls-server-name": "kubernetes",
            "certificate-authority-data": cluster["certificate-authority-data"],
            "config": own,
        },
    }
    user["exec"]["provideClusterInfo"] = False
    client(stack, config(tmp_path, user, server.url, **cluster)).get("/version", 5)
    assert json.loads((tmp_path / "told").read_text())["spec"] == {"interactive": False}


@pytest.mark.process
def test_an_expired_token_is_requested_again(
    stack: ExitStack, tmp_path: Path, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server = stack.enter_context(web(Reply(401), OK))
    asking = client(stack, config(tmp_path, execs(plugin(prints('{"token": "t"}'))), server.url))
    asking.get("/version", 5)
    assert (tmp_path / "asked").read_text() == "xx"


@pytest.mark.process
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sys.exit('not logged in')", "the plugin plugin ended with 1: not logged in (apt install plugin) [exec-plugin]"),
        ("print('hello')", "the plugin plugin printed no client.authentication.k8s.io/v1 ExecCredential (apt install plugin) [exec-plugin]"),
        (prints('{"token": "two words"}'), "its output holds no bearer token [no-token]"),
        (prints("{}"), "the plugin plugin printed no client.authentication.k8s.io/v1 ExecCredential (apt install plugin) [exec-plugin]"),
        ("time.sleep(86400)", "the plugin plugin did not end in 0.3 s (apt install plugin) [exec-plugin]"),
    ],
    ids=["fails", "no JSON", "no token", "nothing", "hangs"],
)  # fmt: skip
def test_a_plugin_that_fails_is_named(
    stack: ExitStack, tmp_path: Path, plugin: Plugin, monkeypatch: pytest.MonkeyPatch, body: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if "sleep" in body:
        monkeypatch.setattr("rollout.adapters.kubernetes.credentials.PLUGIN_SECONDS", 0.3)
    with pytest.raises(RemoteError) as error:
        client(stack, config(tmp_path, execs(plugin(body)), nobody())).get("/version", 5)
    assert str(error.value).endswith(said)


@pytest.mark.process
def test_a_plugin_that_hangs_is_killed_with_its_children(
    stack: ExitStack, tmp_path: Path, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that keeps the plugin's output open is killed with it, and causes no delay."""
    monkeypatch.setattr("rollout.adapters.kubernetes.credentials.PLUGIN_SECONDS", 1.0)
    beat = tmp_path / "child"
    body = f"import subprocess; child = subprocess.Popen(['sleep', '86400']); open({str(beat)!r}, 'w').write(str(child.pid)); time.sleep(86400)"
    with pytest.raises(RemoteError, match="did not end in 1 s"):
        client(stack, config(tmp_path, execs(plugin(body)), nobody())).get("/version", 60)
    status = Path(f"/proc/{beat.read_text()}/stat")
    until(lambda: not status.exists() or status.read_text().split()[2] == "Z", 60, "the child is killed")


@pytest.mark.process
def test_a_name_that_cannot_be_in_an_environment_is_a_failure_of_the_plugin(stack: ExitStack, tmp_path: Path) -> None:
    wrong = execs("true")
    wrong["exec"]["env"] = [{"name": "A=B", "value": "x"}]
    with pytest.raises(RemoteError, match=r"the plugin true could not be run: illegal environment variable name"):
        client(stack, config(tmp_path, wrong, nobody())).get("/version", 5)


@pytest.mark.process
def test_a_missing_plugin_is_named(stack: ExitStack, tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="the plugin no-such-plugin could not be run: No such file or directory"):
        client(stack, config(tmp_path, execs("no-such-plugin"), nobody())).get("/version", 5)


# Answers


@pytest.mark.process
@pytest.mark.parametrize(
    ("reply", "reference", "said"),
    [
        (Reply(401, b'{"message": "Unauthorized"}'), "unauthorized", "Unauthorized"),
        (Reply(403, b'{"message": "nodes is forbidden"}'), "forbidden", "nodes is forbidden"),
        (Reply(500, b"etcd is away"), "http-500", "answered 500: etcd is away"),
        (Reply(body=b"[]"), "bad-answer", "the answer is not a map"),
        (Reply(body=b"<html>"), "bad-answer", "the answer is not JSON"),
        (Reply(301, headers=(("Location", "http://127.0.0.1:1/"),)), "http-301", "answered 301"),
    ],
)
def test_errors_contain_the_servers_message(
    stack: ExitStack, tmp_path: Path, reply: Reply, reference: str, said: str
) -> None:
    server = stack.enter_context(web(reply))
    with pytest.raises(RemoteError) as error:
        client(stack, config(tmp_path, {"token": SECRET}, server.url)).get("/api/v1/nodes", 5)
    assert (error.value.reference, error.value.message) == (reference, said)


@pytest.mark.process
def test_an_unverified_server_gets_no_token(stack: ExitStack, tmp_path: Path) -> None:
    """The server has another authority, so the handshake fails before any request."""
    import ssl
    import subprocess
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    pair = tmp_path / "pair.pem"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        str(pair),
        "-out",
        str(tmp_path / "c"),
        "-subj",
        "/CN=x",
    ]
    subprocess.run(made, check=True, capture_output=True)
    pair.write_bytes(pair.read_bytes() + (tmp_path / "c").read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign] # the test is about the end of the handshake
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    with pytest.raises(RemoteError, match="self-signed certificate") as error:
        client(stack, config(tmp_path, {"token": SECRET}, f"https://127.0.0.1:{server.server_address[1]}")).get("/", 5)
    assert error.value.reference == "tls"
    assert SECRET not in str(error.value)


# ------------------------------------------------------------------------------ refusals that may pass


REFUSED = Reply(403, b'{"message": "nodes is forbidden"}')


@pytest.mark.process
@pytest.mark.parametrize(("status", "reference"), [(401, "unauthorized"), (403, "forbidden")])
def test_a_refusal_of_what_was_granted_is_final_only_when_it_persists(
    stack: ExitStack, tmp_path: Path, status: int, reference: str
) -> None:
    """A restarting server refuses every user for a moment: its RBAC cache is empty."""
    clock = [0.0]
    server = stack.enter_context(web(Reply(status)))
    asking = ApiClient(load_kubeconfig(config(tmp_path, {"token": SECRET}, server.url)), lambda: clock[0])
    stack.callback(asking.close)
    asking.rights_were_checked()
    for at, final in ((10.0, False), (24.0, False), (25.0, True)):
        clock[0] = at
        with pytest.raises(RemoteError) as error:
            asking.get("/api/v1/nodes?limit=1", 5)
        assert (error.value.reference, isinstance(error.value, AwayError)) == (reference, not final)
    server.replies = [OK]
    asking.get("/api/v1/nodes", 5)
    server.replies = [Reply(status)]
    with pytest.raises(AwayError):
        asking.get("/api/v1/nodes", 5)


@pytest.mark.process
def test_without_a_check_of_rights_a_refusal_is_believed_at_once(stack: ExitStack, tmp_path: Path) -> None:
    server = stack.enter_context(web(REFUSED))
    with pytest.raises(RemoteError) as error:
        client(stack, config(tmp_path, {"token": SECRET}, server.url)).get("/api/v1/nodes", 5)
    assert not isinstance(error.value, AwayError)


@pytest.mark.process
def test_a_token_file_is_read_again_when_its_token_is_refused(stack: ExitStack, tmp_path: Path) -> None:
    """The file was rotated a moment ago. Otherwise it is read once a minute."""
    (tmp_path / "token").write_text("old")
    server = stack.enter_context(web())
    server.answer = lambda seen: OK if seen.headers["authorization"] == "Bearer new" else Reply(401)
    asking = client(stack, config(tmp_path, {"tokenFile": "token"}, server.url))
    with pytest.raises(RemoteError, match="401"):
        asking.get("/version", 5)
    (tmp_path / "token").write_text("new")
    asking.get("/version", 5)
    assert bearer_seen(server)[-2:] == ["Bearer old", "Bearer new"]


@pytest.mark.process
@pytest.mark.parametrize("written", ["", "two words", None], ids=["empty", "no token", "gone"])
def test_a_token_file_that_is_written_at_this_moment_does_not_end_a_run(
    stack: ExitStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str | None
) -> None:
    monkeypatch.setattr("rollout.adapters.endpoints.EVERY", -1.0)
    file = tmp_path / "token"
    file.write_text("old")
    server = stack.enter_context(web(OK))
    asking = client(stack, config(tmp_path, {"tokenFile": "token"}, server.url))
    asking.get("/version", 5)
    file.unlink() if written is None else file.write_text(written)
    asking.get("/version", 5)
    server.replies = [Reply(401)]
    with pytest.raises(AwayError, match="no-token"):
        asking.get("/version", 5)
    file.write_text("new")
    server.replies = [OK]
    asking.get("/version", 5)
    assert bearer_seen(server) == ["Bearer old"] * 3 + ["Bearer new"]


@pytest.mark.process
def test_a_token_file_that_never_had_a_token_is_a_mistake(stack: ExitStack, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("")
    with pytest.raises(RemoteError, match="no-token") as error:
        client(stack, config(tmp_path, {"tokenFile": "token"}, nobody())).get("/version", 5)
    assert not isinstance(error.value, AwayError)


def test_a_home_that_does_not_exist_is_a_file_that_does_not_exist() -> None:
    with pytest.raises(InputError, match="no-kubeconfig"):
        load_kubeconfig("~nobody-of-this-name/config")

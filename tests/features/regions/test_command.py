"""The options of an engine, and what is refused before any node is reached."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from threading import Thread

import pytest

from rollout.cli.main import run
from rollout.features.regions.client import certificates, scheduler
from rollout.features.regions.client.dask_engine import DaskEngine
from rollout.features.regions.client.worker import RegionStation
from tests.app.agents import Agents
from tests.features.regions.client.test_region_nodes import Fabric

INVENTORY = "cluster: c\napiServer: v1.23.17\nnodes: {n1: }\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "inventories").mkdir()
    (tmp_path / "inventories/c.yaml").write_text(INVENTORY)
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks/pulls.yaml").write_text("name: pulls\nsettings: {serializeImagePulls: false}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_certificates_are_made_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["regions", "certs", "certs", "--host", "10.0.0.1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"written: certs/{role}" for role in ("scheduler", "worker", "controller")
    ]
    assert run(["regions", "certs", "certs"]) == 2
    assert "certs is not empty; nothing was written (name a new folder) [folder-not-empty]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reference"),
    [
        (("regions", "workers"), "no-scheduler"),
        (("regions", "workers", "--engine", "dask"), "no-scheduler"),
        (("verify", "--cluster", "c", "--engine", "dask", "--scheduler", "tcp://10.0.0.1:8786"), "engine-needs-tls"),
        (("regions", "workers", "--engine", "dask", "--scheduler", "8786"), "scheduler-address"),
    ],
)
def test_an_engine_that_cannot_be_used_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], reference: str
) -> None:
    assert run([*words]) == 2
    err = capsys.readouterr().err
    assert f"[{reference}]" in err
    if reference == "engine-needs-tls":
        assert "nothing was touched: tcp://10.0.0.1:8786 is not on this machine and not protected by TLS" in err


def test_an_expired_certificate_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "LIFE", timedelta(minutes=-1))
    assert run(["regions", "certs", "certs"]) == 0
    words = ("--engine", "dask", "--scheduler", "tls://127.0.0.1:8786", "--certificates", "certs/controller")
    assert run(["plan", "--cluster", "c", *words]) == 2
    assert "[certificate-expired]" in capsys.readouterr().err


def test_the_zones_of_a_cluster_are_listed_with_their_workers(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    zones = "zones: {eu-1: r1, eu-2: r2, us: r3}\nracks: {r1: n1, r2: n2, r3: n3}\n"
    (folder / "inventories/c.yaml").write_text(f"cluster: c\napiServer: v1.23.17\n{zones}nodes: {{'n[1-3]': }}\n")
    fabric = Fabric({name: RegionStation(Agents()) for name in ("eu-1", "eu-2")})
    monkeypatch.setattr(DaskEngine, "connected", lambda _: fabric)
    words = ["regions", "workers", "--engine", "dask", "--scheduler", "tcp://127.0.0.1:8786", "--cluster", "c"]
    assert run(words) == 4
    listed = capsys.readouterr().out.splitlines()[3:]
    assert listed[0].startswith(
        "zone eu-1  region eu: eu-1, eu-2 (worker eu-1 serves the whole region eu, together with"
    )
    assert listed[2] == "zone us  no worker is connected"
    fabric.stations = {name: RegionStation(Agents()) for name in ("eu-1-1", "eu-2-1", "us-1")}
    assert run([*words, "-o", "json"]) == 0
    zones_of = json.loads(capsys.readouterr().out)["zones"]
    assert [(each["zone"], each["region"], each["workers"]) for each in zones_of] == [
        ("eu-1", "eu-1", ["eu-1-1"]),
        ("eu-2", "eu-2", ["eu-2-1"]),
        ("us", "us", ["us-1"]),
    ]


@pytest.fixture
def web_server() -> Iterator[str]:
    """The address of a server that answers whatever it is sent with a page, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):  # it is closed
                while True:
                    with server.accept()[0] as connection:
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

        Thread(target=serve, daemon=True).start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.process
def test_an_address_of_something_else_than_a_scheduler_is_refused(
    folder: Path, web_server: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "CONNECT_SECONDS", 1.0)  # Dask tries again for as long
    assert run(["plan", "--cluster", "c", "--engine", "dask", "--scheduler", web_server]) == 2
    said = capsys.readouterr().err
    assert f"{web_server} did not answer as a Dask scheduler" in said
    assert "[scheduler-unusable]" in said

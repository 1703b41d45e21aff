"""A registry (HTTP API V2) with small images of random bytes, that can stop in the middle of a layer."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE = 64 * 1024
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def _set() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


@dataclass(slots=True)
class Fault:
    """``flows``: while it is not set, layers stop behind their first half. ``silence``: for how many seconds they stop there
    anyway. ``first``: the seconds that the first half takes.
    """

    flows: threading.Event = field(default_factory=_set)
    silence: float = 0.0
    first: float = 0.0


@dataclass(slots=True)
class Registry:
    """Every name is an image: it is made when it is first asked for, with one layer of ``size`` bytes."""

    address: tuple[str, int]
    size: int = 2_000_000
    fault: Fault = field(default_factory=Fault)
    _blobs: dict[str, bytes] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"

    def manifest(self, name: str) -> bytes:
        content = random.Random(name).randbytes(self.size)  # noqa: S311 - the same bytes for the same name
        plain = io.BytesIO()
        with tarfile.open(fileobj=plain, mode="w") as archive:
            entry = tarfile.TarInfo("content")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        layer = gzip.compress(plain.getvalue(), 1, mtime=0)
        config = json.dumps({
            "architecture": "amd64", "os": "linux", "config": {"Cmd": ["/content"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(plain.getvalue()).hexdigest()}"]},
        }).encode()  # fmt: skip
        document = {
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "size": len(config), "digest": self._put(config)},
            "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "size": len(layer), "digest": self._put(layer)}],
        }  # fmt: skip
        return json.dumps(document).encode()

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Type and content of what a path names; ``None``: there is no such thing."""
        if path == "/v2/":
            return "application/json", b"{}"
        name, kind, reference = path.removeprefix("/v2/").rsplit("/", 2)
        if kind == "manifests" and reference.startswith("sha256:"):
            return (MANIFEST, self._blobs[reference]) if reference in self._blobs else None
        if kind == "manifests":
            manifest = self.manifest(f"{name}:{reference}")
            self._put(manifest)
            return MANIFEST, manifest
        return ("application/octet-stream", self._blobs[reference]) if reference in self._blobs else None

    def _put(self, content: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self._blobs[digest] = content
        return digest


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        found = self._registry.answer(self.path)
        kind, content = found or ("text/plain", b"")
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if kind == MANIFEST:
            self.send_header("Docker-Content-Digest", f"sha256:{hashlib.sha256(content).hexdigest()}")
        self.end_headers()
        if self.command == "HEAD":
            return
        with suppress(ConnectionError):  # a pull was cancelled
            self._send(content)

    def do_HEAD(self) -> None:
        self.do_GET()

    @property
    def _registry(self) -> Registry:
        server = self.server
        assert isinstance(server, _Server)
        return server.registry

    def _send(self, content: bytes) -> None:
        if len(content) < self._registry.size // 2:
            self.wfile.write(content)
            return
        pieces = [content[at : at + PIECE] for at in range(0, len(content), PIECE)]
        fault, half = self._registry.fault, len(pieces) // 2
        for number, piece in enumerate(pieces):
            if number < half:
                _NEVER.wait(fault.first / half)
            elif number == half:
                _NEVER.wait(fault.silence)
                fault.flows.wait()
            self.wfile.write(piece)

    def log_message(self, *words: object) -> None:
        """Nothing."""


_NEVER = threading.Event()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry.address, _Handler)
        self.registry = registry


@contextmanager
def serving(registry: Registry) -> Iterator[Registry]:
    server = _Server(registry)
    registry.address = (registry.address[0], server.server_port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield registry
    finally:
        registry.fault.flows.set()
        server.shutdown()
        server.server_close()

"""A registry (HTTP API V2) with small images of random bytes, that can stop in the middle of a layer."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE = 64 * 1024
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass(slots=True)
class Fault:
    """``stalled``: layers stop behind their first half. ``silence``: they go on after so many seconds. ``first``: seconds
    that the first half takes.
    """

    stalled: threading.Event = field(default_factory=threading.Event)
    silence: float = 0.0
    first: float = 0.0


@dataclass(slots=True)
class Registry:
    """Every name is an image: it is made when it is first asked for, with one layer of ``size`` bytes."""

    address: tuple[str, int]
    size: int = 2_000_000
    fault: Fault = field(default_factory=Fault)
    requests: list[tuple[float, str]] = field(default_factory=list)
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


def _handler(registry: Registry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            registry.requests.append((time.time(), self.path))
            found = registry.answer(self.path)
            self.send_response(404 if found is None else 200)
            kind, content = found or ("text/plain", b"")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            if kind == MANIFEST:
                self.send_header("Docker-Content-Digest", f"sha256:{hashlib.sha256(content).hexdigest()}")
            self.end_headers()
            if self.command == "GET":
                self._send(content)

        do_HEAD = do_GET

        def _send(self, content: bytes) -> None:
            pieces = [content[at : at + PIECE] for at in range(0, len(content), PIECE)]
            layer, half = len(content) > registry.size // 2, len(pieces) // 2
            for number, piece in enumerate(pieces):
                if layer and number < half and registry.fault.first:
                    time.sleep(registry.fault.first / half)
                if layer and number == half:
                    self._stall()
                self.wfile.write(piece)

        def _stall(self) -> None:
            if registry.fault.silence:
                time.sleep(registry.fault.silence)
            while registry.fault.stalled.is_set():
                time.sleep(0.02)

        def log_message(self, *words: object) -> None:
            """Nothing: ``requests`` has them."""

    return Handler


@contextmanager
def serving(registry: Registry) -> Iterator[Registry]:
    server = ThreadingHTTPServer(registry.address, _handler(registry))
    server.daemon_threads = True
    registry.address = (registry.address[0], server.server_port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        registry.fault.stalled.clear()
        server.shutdown()
        server.server_close()

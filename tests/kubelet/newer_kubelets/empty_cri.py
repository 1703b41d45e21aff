"""A container runtime (CRI v1) without content and function, for a kubelet that only has to start.

``python -m tests.kubelet.newer_kubelets.empty_cri SOCKET`` prints "ready" once it listens, and ends with its input. It
needs grpcio (``requirements/record.txt``), unlike everything else. The few messages are encoded by hand: field numbers
are those of ``k8s.io/cri-api/pkg/apis/runtime/v1/api.proto``, the same from 1.26 to 1.36.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def switched_on(number: int) -> bytes:
    """A field of a protobuf message that is true."""
    return bytes((number << 3, 1))


def field(number: int, value: bytes | str) -> bytes:
    """A field that is a text or a message, shorter than 128 bytes."""
    content = value.encode() if isinstance(value, str) else value
    if len(content) > 127:
        raise ValueError("the length does not fit into one byte")
    return bytes((number << 3 | 2, len(content))) + content


def _condition(kind: str) -> bytes:
    return field(1, field(1, kind) + switched_on(2))


ANSWERS: Mapping[str, bytes] = {
    "Version": field(1, "0.1.0") + field(2, "empty") + field(3, "1.0.0") + field(4, "v1"),
    "Status": field(1, _condition("RuntimeReady") + _condition("NetworkReady")),
    "UpdateRuntimeConfig": b"",
    "ListPodSandbox": b"",
    "ListPodSandboxStats": b"",
    "ListContainers": b"",
    "ListContainerStats": b"",
    "ListMetricDescriptors": b"",
    "ListPodSandboxMetrics": b"",
    "ListImages": b"",
    "ImageFsInfo": b"",
}
"""The requests of a kubelet without pods. All others are "not implemented".

``RuntimeConfig`` is too, so the kubelet's own cgroup driver counts."""


def serve(socket: str) -> Any:
    """The server, listening."""
    grpc = importlib.import_module("grpc")  # only this program needs it

    class Empty(grpc.GenericRpcHandler):  # type: ignore[misc, name-defined] # grpcio is untyped
        def service(self, details: Any) -> Any:
            answer = ANSWERS.get(details.method.rpartition("/")[2])
            return None if answer is None else grpc.unary_unary_rpc_method_handler(lambda _request, _context: answer)

    server = grpc.server(ThreadPoolExecutor(4), handlers=(Empty(),))
    server.add_insecure_port(f"unix://{socket}")
    server.start()
    return server


def main() -> None:
    server = serve(sys.argv[1])
    print("ready", flush=True)  # noqa: T201 - for the process that started it
    sys.stdin.read()
    server.stop(None)


if __name__ == "__main__":
    main()

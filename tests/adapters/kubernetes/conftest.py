"""Every gate with the back end that it queries:

HTTP servers of the test, and a real API server or its recorded answers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.kubernetes.apiserver import ApiServer, can_run
from tests.adapters.kubernetes.bed import Bed, bed


@pytest.fixture(scope="session")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer | None]:
    """A real API server (``make test-apiserver``), or ``None``: its recorded answers are used."""
    if not os.environ.get("ROLLOUT_REAL_API"):
        yield None
        return
    assert can_run(), "there is no kube-apiserver, or no etcd: `make test-apiserver` gets both"
    server = ApiServer(tmp_path_factory.mktemp("apiserver"))
    yield server
    server.close()


@pytest.fixture
def api(request: pytest.FixtureRequest, tmp_path: Path, apiserver: ApiServer | None) -> Iterator[Bed]:
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")[:60]
    with bed(name, tmp_path, apiserver) as made:
        yield made

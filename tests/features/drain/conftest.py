"""The API server of ``tests/adapters/kubernetes``, real or recorded."""

from __future__ import annotations

from tests.adapters.kubernetes.conftest import api, apiserver

__all__ = ["api", "apiserver"]

"""The commands of features are tested as those of ``tests/cli``."""

from __future__ import annotations

from tests.cli.conftest import only_declared_documents

__all__ = ["only_declared_documents"]

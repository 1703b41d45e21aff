"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("shared", deadline=None, print_blob=True)  # these machines are shared: time proves nothing
settings.load_profile("shared")

"""Nodes over SSH: the only package that imports paramiko.

paramiko imports invoke only to run the commands of ``Match exec``, and rollout never does that. It is hidden meanwhile: its
import takes a third of the time.
"""

import sys

_HIDDEN = "invoke" not in sys.modules
if _HIDDEN:
    sys.modules["invoke"] = None  # type: ignore[assignment]  # Python's way to make an import fail

from rollout.adapters.ssh.limits import SshLimits, within_files  # noqa: E402 - see above
from rollout.adapters.ssh.nodes import SshNodes  # noqa: E402
from rollout.adapters.ssh.resolve import Resolver  # noqa: E402

if _HIDDEN:
    del sys.modules["invoke"]

__all__ = ["Resolver", "SshLimits", "SshNodes", "within_files"]

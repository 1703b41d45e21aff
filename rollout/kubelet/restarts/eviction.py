"""Which pods a drain does not evict by itself, because what they are or hold ends with them.

The same two that ``kubectl drain`` asks ``--force`` and ``--delete-emptydir-data`` for.
"""

from __future__ import annotations

from collections.abc import Collection

from rollout.core.model.draining import LeavingPod
from rollout.core.model.playbook import EvictToo


def kept_back(pod: LeavingPod, evict_too: Collection[EvictToo]) -> str:
    """Why a pod may not be evicted, with what would let it; ``""``: it may, or it stays anyway."""
    if pod.stays:
        return ""
    if not pod.controlled and EvictToo.BARE not in evict_too:
        return f"nothing makes pod {pod.name} anew; `drain: {{evictToo: [bare]}}` lets it go"
    if pod.local and EvictToo.LOCAL not in evict_too:
        return f"pod {pod.name} has an emptyDir; `drain: {{evictToo: [local]}}` lets it go"
    return ""

"""All of them, each name once."""

from __future__ import annotations

from tests.kubelet_real.cases import Case
from tests.kubelet_real.corners.documents import DOCUMENTS
from tests.kubelet_real.corners.flags import FLAGS
from tests.kubelet_real.corners.gates import GATES
from tests.kubelet_real.corners.rules import RULES
from tests.kubelet_real.corners.values import VALUES

CORNERS: tuple[Case, ...] = (*DOCUMENTS, *VALUES, *RULES, *GATES, *FLAGS)

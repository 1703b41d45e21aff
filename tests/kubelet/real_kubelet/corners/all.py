"""All of them, each name once."""

from __future__ import annotations

from tests.kubelet.real_kubelet.cases import Case
from tests.kubelet.real_kubelet.corners.documents import DOCUMENTS
from tests.kubelet.real_kubelet.corners.flags import FLAGS
from tests.kubelet.real_kubelet.corners.gates import GATES
from tests.kubelet.real_kubelet.corners.rules import RULES
from tests.kubelet.real_kubelet.corners.values import VALUES

CORNERS: tuple[Case, ...] = (*DOCUMENTS, *VALUES, *RULES, *GATES, *FLAGS)

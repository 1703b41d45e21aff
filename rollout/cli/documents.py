"""Every document that ``-o json`` prints, for its schema."""

from __future__ import annotations

from typing import Any

from rollout.app.prepulls import PullsDocument
from rollout.app.remedy_verification import VerifiedDocument
from rollout.app.run_documents import NoControllerDocument, PastRunDocument, StatusDocument
from rollout.app.simulate import ForecastDocument
from rollout.cli.approve import ApprovalDocument
from rollout.cli.check import CheckDocument
from rollout.cli.check_kubelet import KubeletCheckDocument
from rollout.cli.config import ConfigDocument
from rollout.cli.control import RequestDocument
from rollout.cli.cordons import CordonsDocument
from rollout.cli.engine import RegionWorkersDocument
from rollout.cli.lab import LabFaultsDocument, LabStatusDocument
from rollout.cli.runs import RecoverDocument
from rollout.cli.upkeep import ForgetDocument, UnlockDocument
from rollout.cli.watch_late import LateWatchDocument
from rollout.core.plans.kubeadm_patches import KubeadmPatchesDocument
from rollout.core.plans.plan_json import PlanDocument
from rollout.core.presentation.command_text import CommandResultDocument
from rollout.core.presentation.doctor_text import DoctorDocument
from rollout.core.presentation.drift_text import DriftDocument
from rollout.core.presentation.emergency_text import (
    LeftToDocument,
    NodeProofDocument,
    NotPredictedDocument,
    OnNodesDocument,
    PredictedDocument,
    ProofDocument,
    UnfinishedDocument,
    WaitingDocument,
)
from rollout.core.presentation.event_documents import EVENT_DOCUMENTS
from rollout.core.presentation.freeze_text import FreezeDocument
from rollout.core.presentation.nothing_to_do import NothingToDoDocument
from rollout.core.presentation.nothing_to_revert import NothingToRevertDocument
from rollout.core.presentation.pages.document import ReportDocument
from rollout.core.presentation.run_list import RunsDocument
from rollout.core.presentation.sequence_text import SequenceDocument
from rollout.core.presentation.summary_text import SummaryDocument
from rollout.core.text import documents
from rollout.kubelet.diagnosis.diagnosis_text import DiagnosisDocument
from rollout.kubelet.explained.explanation_document import ExplanationDocument
from rollout.kubelet.explained.references import ReferenceDocument
from rollout.kubelet.restarts.pod_budget import PodBudgetDocument
from rollout.simulator.play_documents import PlayDocument, TallyDocument

DOCUMENTS: tuple[type, ...] = (
    *EVENT_DOCUMENTS, ApprovalDocument, CheckDocument, CommandResultDocument, ConfigDocument, CordonsDocument, DiagnosisDocument, DoctorDocument, DriftDocument,
    ExplanationDocument, ForecastDocument, ForgetDocument, FreezeDocument, KubeadmPatchesDocument, KubeletCheckDocument,
    LabFaultsDocument, LabStatusDocument, LateWatchDocument, LeftToDocument, NoControllerDocument, NodeProofDocument,
    NothingToDoDocument, NothingToRevertDocument, OnNodesDocument, PastRunDocument, PlanDocument, PlayDocument, PodBudgetDocument,
    NotPredictedDocument, PredictedDocument, ProofDocument, PullsDocument, RecoverDocument, ReferenceDocument, RegionWorkersDocument, ReportDocument, RequestDocument, RunsDocument,
    SequenceDocument, StatusDocument, SummaryDocument, TallyDocument, UnfinishedDocument, UnlockDocument, VerifiedDocument,
    WaitingDocument,
)  # fmt: skip


def documents_schema() -> dict[str, Any]:
    return documents.schema(DOCUMENTS)

"""The sequence file: text in, ``ClusterSequence`` out, or every mistake at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from rollout.core.reading.validation import Mistakes, Written, locate, read_document, validate
from rollout.core.reading.value_types import Duration, Name, ShareText, between
from rollout.core.text.yaml_source import Item
from rollout.features.sequence.rules import DEFAULT_BUDGET, DEFAULT_SOAK, ClusterSequence, ClusterStage, StagedCluster

_MONTH = 30 * 86_400.0

StageSoak = Annotated[Duration, between(0, _MONTH, "between 0s and 720h")]
PlanPath = Annotated[str, Field(min_length=1, description="The cluster's plan file, relative to this file.")]


class WrittenStage(Written):
    """Clusters that begin together, when every stage before has passed."""

    name: Name | None = Field(None, description="Its name in output; without it, its number.")
    clusters: dict[Name, PlanPath] = Field(min_length=1, description="Cluster → its plan file.")
    soak: StageSoak = Field(DEFAULT_SOAK, description="Time between the end of its last run and the next stage.")


class SequenceFile(Written):
    """Clusters in sequence."""

    stand_ins: ClassVar[Mapping[str, Any]] = {"name": "sequence"}
    name: Name = Field(description="The name that an operator types to confirm.")
    budget: ShareText | None = Field(
        None, description="Failed nodes over all clusters at which no further cluster begins; 1% by default."
    )
    stages: list[WrittenStage] = Field(min_length=1, description="In this order.")


def load_sequence(text: str, file: str) -> ClusterSequence:
    """``text`` is the file's, ``file`` its name for messages. Raises ``InputError``."""
    root, mistakes = read_document(text, file)
    written, _ = validate(SequenceFile, root, mistakes)
    _check_names(root, mistakes)
    mistakes.raise_any()
    stages = tuple(
        ClusterStage(
            stage.name or str(at + 1),
            tuple(
                StagedCluster(name, plan, mistakes.place(locate(root, ("stages", at, "clusters", name))[0]))
                for name, plan in stage.clusters.items()
            ),
            stage.soak,
        )
        for at, stage in enumerate(written.stages)
    )
    return ClusterSequence(written.name, stages, written.budget or DEFAULT_BUDGET)


def _check_names(root: Item, mistakes: Mistakes) -> None:
    """Each cluster is in one stage, and each name of a stage stands once."""
    stages = locate(root, ("stages",))[0].value
    clusters, names = set[str](), set[object]()
    for number, stage in enumerate(stages if isinstance(stages, list) else [], 1):
        for name, entry in locate(stage, ("clusters",))[0].entries().items():
            if name in clusters:
                mistakes.add(entry, "duplicate-cluster", f"cluster {name} is in two stages", "a cluster has one plan")
            clusters.add(name)
        name_of = stage.entries().get("name")
        stage_name = (name_of and name_of.item.value) or str(number)
        if stage_name in names:
            hint = "a stage without a name has its number" if stage_name == str(number) else ""
            mistakes.add(
                name_of.item if name_of else stage, "duplicate-stage", f"two stages are called {stage_name}", hint
            )
        names.add(stage_name)

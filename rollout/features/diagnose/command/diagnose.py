"""``rollout diagnose``: from logs, events and nodes to the cause and the setting that fixes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from rollout.cli.options import limit_option, pod_name, session_options
from rollout.cli.project import project_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.cli.table_group import FirstWordGroup
from rollout.composition.files import write_privately
from rollout.composition.plan_files import saved_fleet
from rollout.composition.wiring import Session
from rollout.core.presentation.pages.markup import with_texts
from rollout.core.text import documents, durations
from rollout.core.text.nodesets import fold, limited
from rollout.core.text.terminal import printable
from rollout.errors import UsageError
from rollout.features.diagnose.asking.from_cluster import diagnose_cluster
from rollout.features.diagnose.asking.from_files import diagnose as diagnose_files
from rollout.features.diagnose.asking.from_files import diagnose_nodes, together
from rollout.features.diagnose.asking.remedy_verification import Verified, VerifiedDocument, verified_document
from rollout.features.diagnose.client import STANDARD_INPUT, DiagnosisFiles
from rollout.features.diagnose.command.readings import symptoms, verified
from rollout.features.diagnose.rules.diagnosis import Diagnosis
from rollout.features.diagnose.rules.finding import ProposalTarget
from rollout.features.diagnose.rules.remedies import Effect, remedy_lines
from rollout.features.diagnose.words.diagnosis_page import diagnosis_page
from rollout.features.diagnose.words.diagnosis_text import DiagnosisDocument, diagnosis_lines
from rollout.kubelet import versions

LONGEST = 7 * 24 * 3600.0
NOTHING_READ = NOT_PROVEN = 4


@registered(
    "Find the cause in logs and events, and the plan that fixes it.",
    prints=(DiagnosisDocument, VerifiedDocument),
)
@click.group(cls=FirstWordGroup, within="diagnose", invoke_without_command=True)
@click.option(
    "--logs", multiple=True, metavar="FILE", help="A log of a kubelet or a runtime; `-` is standard input; .gz too."
)
@click.option("--events", multiple=True, metavar="FILE", help="Events as kubectl prints them: JSON, YAML or a table.")
@click.option(
    "--kubelet", default="", metavar="V", help="The kubelets' version, such as 1.20.2, if the logs do not contain it."
)
@click.option(
    "--since",
    default="2h",
    show_default=True,
    metavar="DURATION",
    help="How far back the journals of the nodes are read.",
)
@click.option("--verify", default="", metavar="RUN", help="Show whether this run fixed what its settings are for.")
@click.option("--pod", default="", metavar="NS/NAME", help="Show the end of this pod as a timeline.")
@click.option(
    "--snapshot", type=click.Path(path_type=Path), default=None, help="Nodes as `plan --save-snapshot` wrote them."
)
@project_option("cluster", help="The cluster. Without a file: its nodes, their journals, pods and events are read.")
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="Write one self-contained page to this file too.",
)
@limit_option
@click.argument("files", nargs=-1, metavar="[FILE]...")
@session_options
def diagnose(
    session: Session,
    logs: tuple[str, ...],
    events: tuple[str, ...],
    kubelet: str,
    since: str,
    verify: str,
    pod: str,
    snapshot: Path | None,
    cluster: str,
    page: Path | None,
    limit: str,
    files: tuple[str, ...],
) -> int:
    """Find the cause in logs and events, with the lines that prove it and the plan that fixes it. Changes nothing.

    The form of each file is found from its content: klog, journald, containerd, dockerd, kubectl's events.
    Of nodes it reports settings that are in their files and not in force.

    Example: `rollout diagnose kubelet.log events.json`
    """
    paths = tuple(dict.fromkeys((*logs, *events, *files)))
    if verify:
        return _verified(session, verified(session, verify, _seconds(since)))
    if not paths and not snapshot and not cluster:
        hint = f"add --logs FILE or --events FILE (`{STANDARD_INPUT}` is standard input), --snapshot FILE or --cluster NAME"
        raise UsageError("nothing-to-read", "no log, no events and no nodes to read", hint=hint)
    wanted = _Wanted(cluster, limit, _minor(kubelet), _seconds(since), pod_name(pod) if pod else "", page)
    if paths or snapshot:
        return _shown(session, together(tuple(_of_files(paths, snapshot, wanted))), wanted, code=0)
    inventory = session.inventory(cluster)
    selection = limited(limit, inventory)
    read = symptoms(session, inventory, selection, wanted.seconds, wanted.pod)
    diagnosis = diagnose_cluster(read, wanted.target, wanted.pod)
    return _shown(session, diagnosis, wanted, code=NOTHING_READ if read.nothing else 0)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The options, checked. ``seconds``: how far back; ``pod``: ``""`` for none; ``page``: the file of the page."""

    cluster: str
    limit: str
    minor: int | None
    seconds: float
    pod: str
    page: Path | None

    @property
    def target(self) -> ProposalTarget:
        return ProposalTarget(self.cluster, self.minor)


def _of_files(paths: tuple[str, ...], snapshot: Path | None, wanted: _Wanted) -> Iterator[Diagnosis]:
    if paths:
        yield diagnose_files(DiagnosisFiles(), paths, wanted.target, wanted.pod)
    if snapshot:
        saved = saved_fleet(snapshot)
        yield diagnose_nodes(saved, ProposalTarget(wanted.cluster or saved.cluster, wanted.minor))


def _verified(session: Session, found: Verified) -> int:
    """0 only if every remedy of the run is proven."""
    confirmed = fold(list(found.run.confirmed))
    if session.output == "json":
        click.echo(documents.page(verified_document(found)))
    else:
        say(f"run {found.run.run} on {found.run.cluster}: confirmed on {confirmed}")
        say("\n".join(remedy_lines(found.remedies)))
    return 0 if all(each.effect is Effect.PROVEN for each in found.remedies) else NOT_PROVEN


def _shown(session: Session, found: Diagnosis, wanted: _Wanted, *, code: int) -> int:
    if wanted.page is not None:
        page = with_texts(diagnosis_page(found, wanted.cluster), session.carried)
        write_privately(wanted.page, page.encode())
    if session.output == "json":
        click.echo(documents.page(DiagnosisDocument(found)))
    else:
        say("\n".join(diagnosis_lines(found)))
    return code


def _seconds(text: str) -> float:
    try:
        seconds = durations.parse(text)
    except durations.DurationError as error:
        raise UsageError("bad-duration", f"--since {printable(text, 60)!r}: {error}") from None
    if not 1 <= seconds <= LONGEST:
        raise UsageError("bad-duration", f"--since {printable(text, 60)!r}: it must be from 1s to 168h")
    return seconds


def _minor(kubelet: str) -> int | None:
    if not kubelet:
        return None
    version = versions.parse(kubelet)
    if version is None:
        raise UsageError("kubelet-unknown", f"--kubelet {kubelet!r} is not a kubelet version", hint="such as 1.33")
    return version.minor

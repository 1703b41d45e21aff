"""How often the findings of ``rollout diagnose`` are right, for each grade of confidence, over labelled inputs.

``make bench-honesty`` writes the table to ``honesty.md`` beside this file. The inputs: cases of public reports, the incidents and
recordings of real kubelets (``tests/features/diagnose/labelled``), and generated ones, with the model that made them as their
label. The aims: *certain* is right in 99 of 100, healthy logs have no finding, and 5 of 100 known causes at most are not found.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from rollout.features.diagnose.rules.finding import Confidence
from tests.features.diagnose.labelled.reading import Graded, Labelled, Shown, cases, graded
from tests.features.diagnose.rules import test_short_queues as queues
from tests.features.diagnose.rules.logs import journal, klog, lines
from tests.features.diagnose.rules.test_healthy import day
from tests.features.diagnose.rules.test_pull_error_forms import FORMS
from tests.features.diagnose.rules.test_pull_errors import WHOLE

TABLE = Path(__file__).with_name("honesty.md")
REFUSALS = Path("tests/kubelet/newer_kubelets/recorded")
EVERY = 7
"""Of the recorded refusals of real kubelets, which are many and alike."""
HEALTHY = "healthy"
GRADES = tuple(Confidence)


def shown(id_: str, *words: str, at_most: Confidence = Confidence.CERTAIN) -> Shown:
    return Shown((id_,), at_most, tuple((word,) for word in words))


def generated() -> Iterator[Labelled]:
    yield from _queues()
    yield from _errors()
    yield from _refusals()
    for keyed in (False, True):
        text = lines(*(line for _, line in sorted(day(keyed))[:20_000]))
        name = "keys" if keyed else "words"
        yield Labelled(
            f"healthy-days-{name}",
            HEALTHY,
            "the generator of tests: restarts every hour, pods, pulls",
            files={"kubelet.log": text.encode()},
        )


def _queues() -> Iterator[Labelled]:
    """The same pulls through a serial and a parallel kubelet, in each form of log."""
    source = "a model of the kubelet's puller: pkg/kubelet/images/puller.go"
    for form in queues.FORMS:
        for length in queues.LENGTHS:
            for serial in (True, False):
                text = queues.log(queues.asked(length), form, serial=serial).encode()
                burst = shown("pull-qps-exceeded", "consequence" if serial else "no queue held them")
                expected = [burst, shown("serial-pull-queue", "reg.example/hung-0:1")] if serial else [burst]
                kind = "serial" if serial else "parallel"
                yield Labelled(
                    f"{kind}-{form}-{length:g}",
                    "queues",
                    source,
                    expected,
                    ["image-pull-backoff", "pull-progress-deadline"],
                    files={"kubelet.log": text},
                )


def _errors() -> Iterator[Labelled]:
    """Each known end of a pull's error as an event and as a line of a kubelet."""
    forms = (*WHOLE, *((error, cause) for cause, error in FORMS if "\n" not in error))
    for number, (error, cause) in enumerate(forms):
        image = "reg.example.net/shop/web:1"
        back_off = f'Back-off pulling image "{image}"'
        table = (
            "Events:\n  Type     Reason   Age                From     Message\n  ----     ------   ----               ----     -------\n"
            f'  Warning  Failed   3m (x4 over 5m)    kubelet  Failed to pull image "{image}": {error}\n  Normal   BackOff  1m (x6 over 5m)    kubelet  {back_off}\n'
        )
        told = f'failed to "StartContainer" for "web" with ErrImagePull: {json.dumps(error)}'
        waits = f'failed to "StartContainer" for "web" with ImagePullBackOff: {json.dumps(back_off)}'
        log = lines(
            *(
                klog(at, f'"Error syncing pod, skipping" err={json.dumps(told)} pod="shop/web-1" podUID="1"', "E")
                for at in (0, 60)
            ),
            klog(70, f'"Error syncing pod, skipping" err={json.dumps(waits)} pod="shop/web-1" podUID="1"', "E"),
        )
        cancelled = cause.name == "CANCELLED"
        id_ = "pull-progress-deadline" if cancelled else "image-pull-backoff"
        sure = Confidence.LIKELY if cancelled else Confidence.CERTAIN
        expected = shown(id_, *(() if cancelled else (cause.value,)), at_most=sure)
        for form, text in (("event", table), ("log", log)):
            yield Labelled(
                f"error-{number}-{form}",
                "pulls",
                f"the program's source, see test_pull_errors: {cause.name}",
                [expected],
                ["image-pull-backoff"] if cancelled else [],
                files={f"{form}.txt": text.encode()},
            )


def _refusals() -> Iterator[Labelled]:
    """What real kubelets of five minors said when they did not start, in a loop of systemd."""
    for file in sorted(REFUSALS.glob("*.jsonl")):
        said = [entry["said"] for line in file.read_text().splitlines() if (entry := json.loads(line)).get("said")]
        for number, text in enumerate(said[::EVERY]):
            told = []
            for at in (0.0, 12.0, 24.0, 36.0):
                told += [
                    journal(klog(at, f'"command failed" err={json.dumps(text)}', "E", "run.go:72"), at),
                    journal("kubelet.service: Main process exited, code=exited, status=1/FAILURE", at, "systemd[1]"),
                ]
            yield Labelled(
                f"refusal-{file.stem}-{number}",
                "starts",
                f"a real kubelet {file.stem}, recorded",
                [shown("kubelet-crash-loop", "4 attempts")],
                ["cgroup-v1-refused"],
                files={"journal.log": lines(*told).encode()},
            )


def table(answers: Iterable[Graded]) -> list[str]:
    answers = list(answers)
    whole: Counter[tuple[str, Confidence, bool]] = Counter()
    inputs: Counter[str] = Counter()
    known: Counter[str] = Counter()
    silent: Counter[str] = Counter()
    for answer in answers:
        kind = answer.case.kind
        inputs[kind] += 1
        known[kind] += len(answer.case.shows)
        silent[kind] += len(answer.silent)
        for confidence in {(finding.id, finding.confidence): finding.confidence for finding in answer.right}.values():
            whole[kind, confidence, True] += 1  # one of each id: some inputs have the same failure ten times
        for finding in answer.wrong:
            whole[kind, finding.confidence, False] += 1
    kinds = sorted(inputs, key=lambda kind: (kind == HEALTHY, kind))
    told = [
        "| inputs about | inputs | causes | not found | certain right | likely right | unknown right |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind in (*kinds, ""):
        here = kinds if not kind else [kind]
        rights = [
            _of(
                sum(whole[each, grade, True] for each in here),
                sum(whole[each, grade, ok] for each in here for ok in (True, False)),
            )
            for grade in GRADES
        ]
        causes, missing = sum(known[each] for each in here), sum(silent[each] for each in here)
        told.append(
            f"| {kind or '**all**'} | {sum(inputs[each] for each in here)} | {causes} | {_share(missing, causes)} | {' | '.join(rights)} |"
        )
    return told


def _of(right: int, whole: int) -> str:
    return f"{right} of {whole} ({100 * right / whole:.1f} %)" if whole else "–"


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.1f} %)" if whole else "–"


def mistakes(answers: Iterable[Graded]) -> Iterator[str]:
    for answer in answers:
        for finding in answer.wrong:
            yield f"| {answer.case.id} | {finding.id}, {finding.confidence} | {answer.case.source} |"
        for missing in answer.silent:
            yield f"| {answer.case.id} | no {' or '.join(missing.ids)} | {answer.case.source} |"


def page(answers: list[Graded]) -> str:
    by = defaultdict(list)
    for answer in answers:
        by["generated" if answer.case.id.startswith(GENERATED) else "written"].append(answer)
    wrong = list(mistakes(answers))
    parts = [
        "# How often a diagnosis is right",
        "",
        "Each input has a label: which findings it must have, with which words, how sure they may be, and its source. A finding is right if its label has it. Written by `make bench-honesty`.",
        "",
        "## Inputs from reports, incidents and real kubelets",
        "",
        *table(by["written"]),
        "",
        "## Generated inputs",
        "",
        *table(by["generated"]),
        "",
        "## All",
        "",
        *table(answers),
        "",
        "## What is wrong",
        "",
        *(
            ["| input | the answer | the source of what is right |", "| --- | --- | --- |", *wrong]
            if wrong
            else ["Nothing."]
        ),
    ]
    return "\n".join(parts) + "\n"


GENERATED = ("serial-", "parallel-", "error-", "refusal-", "healthy-days-")


def main() -> None:
    answers = [graded(case) for case in (*cases(), *generated())]
    TABLE.write_text(page(answers), encoding="utf-8")
    sys.stdout.write("\n".join(table(answers)) + "\n")


if __name__ == "__main__":
    main()

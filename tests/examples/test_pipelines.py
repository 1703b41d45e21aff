"""The pipelines of ``examples/``: their steps are run as written, on the lab; only what is outside of it is replaced."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml

from tests.places import ROOT
from tests.story.conftest import Site, served

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("pipelines")]

GITHUB: Mapping[str, Any] = yaml.safe_load((ROOT / "examples/github-actions.yml").read_text())
GITLAB: Mapping[str, Any] = yaml.safe_load((ROOT / "examples/gitlab-ci.yml").read_text())
OUTSIDE = {
    "python3": 'mkdir -p "$3/bin" && ln -sf "$(command -v pip)" "$3/bin/pip"',
    "pip": ":",
}
"""Programs of the runner and services that a test does not have."""


@dataclass
class Runner:
    """A runner's folder and its environment."""

    site: Site
    environment: dict[str, str]
    outputs: dict[str, str] = field(default_factory=dict)

    def step(self, script: str, **environment: str) -> int:
        """The exit status of a step, in the shell that both services use."""
        assert "${{" not in script, "an expression in a script is an injection"
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script], cwd=self.site.folder, check=False, capture_output=True, text=True,
            env={**self.environment, **environment},
        )  # fmt: skip
        self.said = done.stdout + done.stderr
        return done.returncode

    def file(self, name: str) -> str:
        return (self.site.folder / name).read_text()


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    folder = tmp_path_factory.mktemp("pipeline")
    with served(folder, "small-[001-002,061-062]") as site:
        programs = folder / "programs"
        programs.mkdir()
        for name, body in {**OUTSIDE, "rollout": f'exec {sys.executable} -m rollout.cli "$@"'}.items():
            (programs / name).write_text(f"#!/bin/sh\n{body}\n")
            (programs / name).chmod(0o755)
        text = (folder / "inventories/small.yaml").read_text()
        text = re.sub(r"\[001-120\]:", "[001-002,061-062]:", text).replace("[001-060]", "[001-002]")
        (folder / "inventories/small.yaml").write_text(text.replace("[061-120]", "[061-062]"))
        home = folder / "home"
        home.mkdir()
        (folder / "ssh-key").write_text("a key\n")
        yield Runner(
            site,
            {
                "PATH": f"{programs}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
                "HOME": str(home),
                "ROLLOUT_CLUSTER": "small",
                "ROLLOUT_SSH_CONFIG": str(site.lab / "ssh_config"),
                "GITHUB_OUTPUT": str(folder / "outputs"),
                "GITHUB_SHA": "0123abc",
                "CI_COMMIT_SHA": "0123abc",
                "GITHUB_PATH": str(folder / "path"),
                "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
                "RUNNER_TEMP": str(folder / "temp"),
                "PLAN_KEY": "5f0c",
                "SSH_KEY": str(folder / "ssh-key"),
            },
        )


def steps(job: str) -> dict[str, str]:
    """The scripts of a job on GitHub, by the names of their steps."""
    return {str(step["name"]): str(step["run"]) for step in GITHUB["jobs"][job]["steps"] if "run" in step}


def lines(job: str) -> str:
    """A job on GitLab: its lines run in one shell, one after the other."""
    before = GITLAB[GITLAB[job]["extends"]] if "extends" in GITLAB[job] else GITLAB["default"]
    return "\n".join([*before["before_script"], *GITLAB[job]["script"]])


def test_github_checks_a_pull_request_plans_and_applies_on_merge_and_verifies(runner: Runner) -> None:
    for name, script in (*steps("check").items(), *list(steps("plan").items())[:-1]):
        assert runner.step(script) == 0, f"{name}: {runner.said}"
    posted = runner.file("summary.md")
    assert posted.startswith("### Plan for `small`: 4 nodes to change")
    assert "+serializeImagePulls: false" in posted
    assert posted.count("<details>") == posted.count("</details>") > 1
    digest = re.fullmatch(r"digest=(\S+)\n", runner.file("outputs"))
    assert digest
    whole = runner.file("plan.json")
    assert runner.step(steps("plan")["log out"].replace(" plan.enc", "")) == 0, (
        "the next job has what was kept, no more"
    )
    apply = steps("apply")
    assert runner.step(apply["decrypt"], PLAN_KEY="another") != 0
    assert runner.step(apply["decrypt"]) == 0, runner.said
    assert runner.file("plan.json") == whole
    assert runner.step(apply["apply"], DIGEST="0" * 64) == 2, "another plan than the approved one"
    assert runner.step(apply["apply"], DIGEST=digest[1]) == 0, runner.said
    assert runner.step(apply["report"]) == 0, runner.said
    assert "<html" in runner.file("report.html")
    assert runner.step(steps("verify")["verify"]) == 0, runner.said
    config = runner.site.node("small-001") / "var/lib/kubelet/config.yaml"
    before = config.read_text()
    config.write_text(before + "maxPods: 42\n")
    assert runner.step(steps("verify")["verify"]) == 10, "drift fails the nightly job"
    config.write_text(before)


@pytest.mark.night
def test_gitlab_does_the_same(runner: Runner) -> None:
    playbook = runner.site.folder / "playbooks/pulls.yaml"
    playbook.write_text(playbook.read_text().replace("5m", "6m"))
    assert runner.step(lines("check")) == 0, runner.said
    assert runner.step(lines("plan")) == 0, runner.said
    assert runner.file("plan.md").startswith("### Plan for `small`: 4 nodes to change")
    digest = runner.file("plan.env").removeprefix("DIGEST=").strip()
    assert runner.step(lines("apply"), DIGEST=digest) == 0, runner.said
    assert runner.step("\n".join(GITLAB["apply"]["after_script"])) == 0, runner.said
    assert runner.step(lines("verify")) == 0, runner.said
    assert runner.step(lines("plan")) == 0, "nothing to do is no failure"
    assert runner.file("plan.env") == "" or "0 nodes" in runner.file("plan.txt")


def test_a_plan_that_cannot_be_made_fails_the_job(runner: Runner) -> None:
    runner.site.fault("small-[001-002,061-062]", "refuse")
    try:
        assert runner.step(steps("plan")["plan"]) == 4, runner.said
        assert runner.step(lines("plan")) == 4, runner.said
    finally:
        assert (
            runner.site.rollout(
                "lab", "fault", "small-[001-002,061-062]", "--clear", "--dir", str(runner.site.lab)
            ).code
            == 0
        )


def test_every_job_is_reached_and_permissions_are_the_least() -> None:
    assert set(GITHUB["jobs"]) == set(GITLAB["stages"]) == {"check", "plan", "apply", "verify"}
    assert GITHUB["permissions"] == {"contents": "read"}
    assert GITHUB["jobs"]["apply"]["environment"] == "production"
    assert GITLAB["apply"]["rules"][0]["when"] == "manual"


def test_what_nobody_has_reviewed_runs_without_a_secret_and_far_from_the_nodes() -> None:
    """Files of a branch name programs: whatever runs on a pull request could take what it is given."""
    for name, job in GITHUB["jobs"].items():
        of_a_branch = job["if"] == "github.event_name == 'pull_request'"
        assert of_a_branch or job["if"].startswith(("github.event_name == 'push'", "github.event_name == 'schedule'"))
        reaches = ("secrets." in str(job), "environment" in job, "self-hosted" in job["runs-on"])
        assert set(reaches) == {not of_a_branch}, name
    assert "secrets." not in str(GITHUB["env"])
    assert "pull_request_target" not in str(GITHUB)
    for name in GITLAB["stages"]:
        job = GITLAB[name]
        of_a_branch = "merge_request_event" in str(job["rules"])
        assert ("extends" in job) is not of_a_branch, name
        assert not of_a_branch or not re.search(r"SSH_KEY|PLAN_KEY|JOURNAL", str(job)), name
    assert "SSH_KEY" not in str(GITLAB["default"])


def test_no_artifact_is_a_plan_that_people_could_read() -> None:
    kept = [
        step["with"]["path"]
        for job in GITHUB["jobs"].values()
        for step in job["steps"]
        if "path" in step.get("with", {})
    ]
    kept += [path for name in GITLAB["stages"] for path in GITLAB[name].get("artifacts", {}).get("paths", ())]
    assert sorted(kept) == ["plan.enc", "plan.enc", "plan.md", "report.html", "report.html"]


def test_what_is_installed_is_pinned_by_hash() -> None:
    texts = [(ROOT / "examples" / name).read_text() for name in ("github-actions.yml", "gitlab-ci.yml")]
    for uses in re.findall(r"uses: (\S+)", texts[0]):
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", uses), uses
    for line in re.findall(r".*pip.* install .*", "\n".join(texts)):
        assert "--require-hashes --only-binary :all: -r rollout.lock" in line, line
    assert GITLAB["default"]["image"] == "$IMAGE"
    assert not any("image" in GITLAB[name] for name in GITLAB["stages"])


def test_the_release_publishes_with_attestations_and_without_a_token() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text()
    release = yaml.safe_load(text)
    assert release["jobs"]["test"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert release["jobs"]["publish"]["permissions"]["id-token"] == "write"
    assert "secrets." not in text
    for job in release["jobs"].values():
        for step in job["steps"]:
            if "make" in step.get("run", ""):
                target = step["run"].split()[1]
                assert f"\n{target}: " in (ROOT / "Makefile").read_text()

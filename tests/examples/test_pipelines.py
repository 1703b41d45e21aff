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
    "gh": 'printf "%s\\n" "$*" >gh.txt; while [ "$1" != --body-file ]; do shift; done; cp "$2" posted.md',
    "curl": 'printf "%s\\n" "$*" >curl.txt; cp comment.md posted.md',
    "pip": ":",
    "pipx": ":",
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
                "GH_TOKEN": "t",
                "PULL": "7",
                "SSH_KEY": str(folder / "ssh-key"),
            },
        )


def steps(job: str) -> dict[str, str]:
    """The scripts of a job on GitHub, by the names of their steps."""
    return {str(step["name"]): str(step["run"]) for step in GITHUB["jobs"][job]["steps"] if "run" in step}


def lines(job: str) -> str:
    """A job on GitLab: its lines run in one shell, one after the other."""
    return "\n".join([*GITLAB["default"]["before_script"], *GITLAB[job]["script"]])


def test_github_plans_on_a_pull_request_applies_on_merge_and_verifies(runner: Runner) -> None:
    for name, script in steps("plan").items():
        assert runner.step(script) == 0, f"{name}: {runner.said}"
    posted = runner.file("posted.md")
    assert posted.startswith("### Plan for `small`: 4 nodes to change")
    assert "+serializeImagePulls: false" in posted
    assert posted.count("<details>") == posted.count("</details>") > 1
    digest = re.fullmatch(r"digest=(\S+)\n", runner.file("outputs"))
    assert digest
    apply = steps("apply")
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
    assert runner.step(lines("plan"), CI_MERGE_REQUEST_IID="7", COMMENT_TOKEN="t") == 0, runner.said  # noqa: S106
    assert runner.file("posted.md").startswith("### Plan for `small`: 4 nodes to change")
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
    assert set(GITHUB["jobs"]) == set(GITLAB["stages"]) == {"plan", "apply", "verify"}
    assert GITHUB["permissions"] == {"contents": "read"}
    assert GITHUB["jobs"]["apply"]["environment"] == "production"
    assert GITLAB["apply"]["rules"][0]["when"] == "manual"


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

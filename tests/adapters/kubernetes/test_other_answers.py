"""A 200 is an answer to the question only if it has what was asked: a login page in JSON, or an answer about something else, is none."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rollout.adapters.kubernetes.cluster import KubernetesCluster
from rollout.errors import RemoteError
from tests.adapters.kubernetes.test_kubeconfig import client, config
from tests.adapters.web import Reply, web

pytestmark = pytest.mark.process

PORTAL: dict[str, Any] = {"login": "https://portal.example/"}


def cluster(stack: ExitStack, folder: Path, *answers: Any) -> KubernetesCluster:
    server = stack.enter_context(web(*(Reply(body=json.dumps(answer).encode()) for answer in answers)))
    return KubernetesCluster(client(stack, config(folder, {"token": "t"}, server.url)))


@pytest.mark.parametrize("answer", [PORTAL, None, {"metadata": {"name": "n2"}, "status": {"conditions": []}}])
def test_an_answer_about_something_else_is_not_a_node_that_is_not_ready(
    stack: ExitStack, tmp_path: Path, answer: Any
) -> None:
    with pytest.raises(RemoteError, match="the answer is not the Node n1"):
        cluster(stack, tmp_path, answer).look("n1", 5)


@pytest.mark.parametrize("answer", [PORTAL, {"kubeletconfig": None}, {"kubeletconfig": {}}])
def test_an_answer_without_a_configuration_is_not_an_empty_configuration(
    stack: ExitStack, tmp_path: Path, answer: Any
) -> None:
    with pytest.raises(RemoteError, match="the answer has no kubeletconfig"):
        cluster(stack, tmp_path, answer).configz("n1", 5)


@pytest.mark.parametrize("answer", [PORTAL, {"status": {}}, {"status": {"allowed": "no"}}])
def test_an_answer_without_a_verdict_is_not_a_missing_right(stack: ExitStack, tmp_path: Path, answer: Any) -> None:
    with pytest.raises(RemoteError, match="the answer does not have what this user may do"):
        cluster(stack, tmp_path, answer).missing_rights()


def test_a_right_that_the_server_could_not_check_is_told_as_such(stack: ExitStack, tmp_path: Path) -> None:
    unchecked = {"status": {"allowed": False, "evaluationError": "webhook: connection refused"}}
    allowed = {"status": {"allowed": True}}
    assert cluster(stack, tmp_path, allowed, unchecked, allowed).missing_rights() == (
        "list nodes (the server could not check all of it: webhook: connection refused)",
    )

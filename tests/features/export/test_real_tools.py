"""Texts for new nodes, read by the tools themselves: Ignition's own validator, and the schema that cloud-init has.

``make test-new-nodes`` fetches both from Debian. The other formats have no tool there.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest
import yaml

from rollout.core.model.settings import Value
from rollout.features.export.rules.settings import NewNodeSettings
from rollout.features.export.words import exported, exported_lines
from tests.controllers import PATIENCE

TOOLS = Path(os.environ.get("ROLLOUT_NEW_NODES", Path.home() / ".cache/rollout-tests"))
VALIDATE, SCHEMA = TOOLS / "ignition-validate", TOOLS / "schema-cloud-config-v1.json"

pytestmark = pytest.mark.process

SETTINGS: tuple[Mapping[str, Value], ...] = (
    {"serializeImagePulls": False, "registryPullQPS": 20},
    {
        "evictionHard": {"memory.available": "5%"}, "featureGates": {"NodeSwap": True}, "clusterDNS": ["10.0.0.10"],
        "nodeStatusUpdateFrequency": "1m0s", "authentication": {"anonymous": {"enabled": False}},
    },
)  # fmt: skip


def text(form: str, fields: Mapping[str, Value]) -> str:
    settings = NewNodeSettings(fields, (), nodes=("n1",))
    return "\n".join(exported_lines(form, exported(form, [settings]))) + "\n"


@pytest.mark.parametrize("fields", SETTINGS)
def test_ignition_accepts_its_text(fields: Mapping[str, Value], tmp_path: Path) -> None:
    """That of Debian 12 is 2.14.0: it knows the specification up to 3.3.0."""
    if not VALIDATE.exists():
        pytest.skip("NOT TESTED: `make test-new-nodes` fetches ignition-validate")
    file = tmp_path / "new.ign"
    file.write_text(text("ignition", fields))
    done = subprocess.run([VALIDATE, file], check=False, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    file.write_text(file.read_text().replace('"path"', '"pth"'))
    assert subprocess.run([VALIDATE, file], check=False, capture_output=True, timeout=PATIENCE).returncode == 1


@pytest.mark.parametrize("fields", SETTINGS)
def test_cloud_init_accepts_its_text(fields: Mapping[str, Value]) -> None:
    if not SCHEMA.exists():
        pytest.skip("NOT TESTED: `make test-new-nodes` fetches cloud-init's schema")
    schema = jsonschema.Draft4Validator(json.loads(SCHEMA.read_text()))
    document = yaml.safe_load(text("cloud-init", fields))
    schema.validate(document)
    del document["write_files"][0]["path"]
    assert not schema.is_valid(document)

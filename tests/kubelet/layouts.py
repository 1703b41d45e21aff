"""Nodes as distributions and installers make them, from ``layouts.json`` (layout → path → content)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rollout.core.model.snapshot import Snapshot
from rollout.kubelet.node import layout, packaged
from tests.kubelet import nodes
from tests.kubelet.nodes import CONFIG, CONFIG_TEXT, DEB, DROP_IN, FRAGMENT, KUBEADM, KUBEADM_FLAGS, RPM

LAYOUTS: Mapping[str, Mapping[str, str]] = json.loads((Path(__file__).parent / "layouts.json").read_text("utf-8"))

FOLDER = "/kubelet.service.d/"
_KUBEADM = {
    FRAGMENT: packaged.kubelet_unit(),
    KUBEADM: packaged.kubeadm_drop_in(DEB, packaged.config_flags(drop_ins=False)),
    KUBEADM_FLAGS: 'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/containerd/containerd.sock"\n',
    CONFIG: CONFIG_TEXT,
}
"""The files of kubeadm, for layouts that only add some to them."""


def texts_of(name: str) -> dict[str, str]:
    """Every file of the node, path → content."""
    given = dict(LAYOUTS[name])
    own_unit = any(path.endswith("/kubelet.service") for path in given)
    base = {} if own_unit else dict(_KUBEADM)
    if any(path.endswith("/10-kubeadm.conf") for path in given):
        base.pop(KUBEADM, None)
    return {**base, **given}


def node(texts: Mapping[str, str], version: str = "1.23.17", **facts: str) -> Snapshot:
    """A healthy node over containerd with these files. Its kubelet has read them all."""
    fragment = next(path for path in texts if path.endswith("/kubelet.service"))
    drop_ins = sorted((path for path in texts if FOLDER in path), key=lambda path: path.rsplit("/", 1)[-1])
    states = [nodes.regular(path, text) for path, text in texts.items()]
    gone = [
        nodes.absent(path)
        for path in (DEB, RPM, DROP_IN, KUBEADM_FLAGS, CONFIG, "/run/metadata/flatcar")
        if path not in texts
    ]
    found = nodes.snapshot(
        "tess-node-0001", version, "kubelet", [*states, *gone], drop_ins=" ".join(drop_ins), runtime="containerd"
    )
    found = nodes.with_unit(replace(found, facts={**found.facts, **facts}), FragmentPath=fragment)
    asked = layout.find(found)
    return nodes.with_command(found, asked.pieces[0].text, *asked.asked)

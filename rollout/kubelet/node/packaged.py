"""The kubelet's unit as packages install it (kubernetes/release, ``kubelet.service`` and ``10-kubeadm.conf``)."""

from __future__ import annotations

CONFIG = "/var/lib/kubelet/config.yaml"
CONFIG_DIR = "/etc/kubernetes/kubelet.conf.d"
CONFIG_DIR_SINCE = 30
"""From this minor on a kubelet reads a ``--config-dir`` without a variable in its environment (KEP-3983)."""
_PROGRAM = "/usr/bin/kubelet"

_UNIT = """\
[Unit]
Description=kubelet: The Kubernetes Node Agent
Documentation=https://kubernetes.io/docs/home/
Wants=network-online.target
After=network-online.target

[Service]
ExecStart={command}
Restart=always
StartLimitInterval=0
RestartSec={restart}

[Install]
WantedBy=multi-user.target
"""

_DROP_IN = """\
# Note: This dropin only works with kubeadm and kubelet v1.11+
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS={config}"
# This is a file that "kubeadm init" and "kubeadm join" generates at runtime, populating the KUBELET_KUBEADM_ARGS variable dynamically
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
# This is a file that the user can use for overrides of the kubelet args as a last resort. Preferably, the user should use
# the .NodeRegistration.KubeletExtraArgs object in the configuration files instead. KUBELET_EXTRA_ARGS should be sourced from this file.
EnvironmentFile=-{environment}
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""


def kubelet_unit(command: str = _PROGRAM, restart: str = "10") -> str:
    """``kubelet.service``; ``command`` is its ``ExecStart=``, ``restart`` its ``RestartSec=`` in seconds."""
    return _UNIT.format(command=command, restart=restart)


def kubeadm_drop_in(environment: str, config: str) -> str:
    """``10-kubeadm.conf``; ``environment`` is the file with ``KUBELET_EXTRA_ARGS``, ``config`` the flags of the configuration."""
    return _DROP_IN.format(environment=environment, config=config)


def config_flags(*, drop_ins: bool) -> str:
    """The flags of the configuration: its file, and the folder of its drop-ins."""
    return f"--config={CONFIG}" + (f" --config-dir={CONFIG_DIR}" if drop_ins else "")


def kubeadm_command(config: str, more: str) -> str:
    """The command line of a kubelet with that drop-in; ``more`` are the words of both environment files."""
    kubeconfig = (
        "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
    )
    return f"{_PROGRAM} {kubeconfig} {config} {more}"

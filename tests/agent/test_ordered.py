"""Only ordered bytes are confirmed, even if another program changed the node meanwhile, and for any result of the change."""

from __future__ import annotations

import pytest

from rollout.core.model.report import Outcome
from rollout.core.model.snapshot import ReceiptState
from rollout.core.run.events import Trigger, trigger_of
from tests.agent.node import CONFIG, DROPIN, FLAGS, NEW, OLD, Node, order
from tests.agent.test_second_chances import wrap

pytestmark = pytest.mark.process


def refused(node: Node) -> str:
    """The reference of a refused confirm; the guard stays armed."""
    report = node.confirm()
    assert report.outcome is Outcome.REFUSED
    assert report.receipt is None
    assert node.receipt()["state"] == "armed"
    return report.reference


@pytest.mark.parametrize("path", [CONFIG, FLAGS, DROPIN])
def test_bytes_of_a_third_party_are_not_confirmed(node: Node, path: str) -> None:
    assert node.apply().healthy
    node.write(path, b"somebody else's\n")
    assert refused(node) == "not-as-ordered"
    assert node.trigger("guard") == 0
    assert node.files() == OLD


@pytest.mark.parametrize("path", [CONFIG, FLAGS, DROPIN])
def test_a_link_is_not_confirmed_though_it_leads_to_the_same_bytes(node: Node, path: str) -> None:
    assert node.apply().healthy
    target = node.at(path)
    target.rename(target.with_suffix(".moved"))
    target.symlink_to(target.with_suffix(".moved"))
    assert refused(node) == "not-as-ordered"


def test_a_change_that_has_not_ended_is_not_confirmed(node: Node) -> None:
    assert node.apply().healthy
    receipt = node.tx() / "receipt"
    receipt.write_text(receipt.read_text().replace("finished=1", "finished=0"))
    report = node.confirm()
    assert report.reference == "not-finished"
    assert report.message == "the receipt of t1 does not record that its apply has finished"


def test_a_repeated_confirm_checks_nothing(node: Node) -> None:
    """It is already confirmed: later changes by others are drift."""
    assert node.apply().healthy
    assert node.confirm().outcome is Outcome.DONE
    node.write(CONFIG, b"somebody else's\n")
    again = node.confirm()
    assert again.receipt is not None
    assert again.receipt.state is ReceiptState.CONFIRMED
    assert trigger_of(again) is Trigger.CONFIRMED


def test_a_unit_that_rewrites_its_configuration_before_it_starts_is_detected(node: Node) -> None:
    """An ``ExecStartPre=`` that renders the file again: the kubelet is healthy, with other bytes than the plan's."""
    wrap(node, "systemctl", f'[ "$1" != restart ] || echo rendered >{node.at(CONFIG)}')
    report = node.apply()
    assert f"{CONFIG} is not what t1 has written" in report.message
    assert node.receipt()["state"] == "reverted"
    assert node.files()[FLAGS] == OLD[FLAGS]


def test_kept_foreign_bytes_stay_when_older_transactions_are_pruned(node: Node) -> None:
    assert node.apply().healthy
    node.confirm()
    node.write(CONFIG, b"kubeadm was here\n")
    assert node.revert(force=True).outcome is Outcome.DONE
    node.cleanup()
    for number in range(2, 8):
        tx = f"t{number}"
        assert node.apply(order(tx, f"run-{number}", number)).healthy
        assert node.confirm(tx, f"run-{number}", number, keep=1).outcome is Outcome.DONE
        assert node.revert(tx, f"run-{number}", number).outcome is Outcome.DONE
        node.cleanup(f"run-{number}", number)
    assert (node.tx("t1") / "kept.1").read_bytes() == b"kubeadm was here\n"
    assert not node.tx("t2").exists()


def test_without_a_kubelet_it_is_unknown_which_files_it_reads(node: Node) -> None:
    """It was killed and systemd does not restart it: the file that its command line named is still its home."""
    path = "/etc/kubernetes/kubelet-config.yaml"
    node.write("/proc/100/cmdline", f"kubelet\0--config={path}\0".encode())
    node.write(path, b"old\n")
    ordered = order(new={path: b"new\n"}, old={path: b"old\n"}, arguments=())
    node.at("/run/standin/pid.100.running").rename(node.at("/run/standin/pid.100.dead"))
    report = node.apply(ordered)
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "unit-not-running")
    node.at("/run/standin/pid.100.dead").rename(node.at("/run/standin/pid.100.running"))
    assert node.apply(ordered).receipt is not None


@pytest.mark.parametrize("path", ["/etc/cron.d/zz", "/var/lib/kubelet/pki/kubelet.crt", "/etc/default/kubelet2"])
def test_only_files_that_the_kubelet_and_the_runtimes_read_are_written(node: Node, path: str) -> None:
    """Whatever a plan file contains: somebody else may have made it."""
    node.at(path).parent.mkdir(parents=True, exist_ok=True)
    report = node.apply(order(new={**NEW, path: b"* * * * * root evil\n"}))
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "not-a-home")
    assert path in report.message
    assert (node.files(), node.receipt(), node.read(path)) == (OLD, {}, None)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/etc/kubernetes/kubelet.conf.d/99-rollout.conf", True),
        ("/etc/kubernetes/kubelet.conf.d/sub/99-rollout.conf", False),
        ("/etc/kubernetes/kubelet.conf.d/run.sh", False),
        ("/etc/containerd/certs.d/docker.io/hosts.toml", True),
        ("/etc/containerd/certs.d/docker.io/key.pem", False),
        ("/etc/containerd/config.toml", True),
        ("/etc/crio/crio.conf.d/99-rollout.conf", False),
    ],
)
def test_a_new_file_beside_those_that_are_read(node: Node, path: str, allowed: bool) -> None:
    node.write("/proc/100/cmdline", b"kubelet\0--config-dir=/etc/kubernetes/kubelet.conf.d\0")
    node.at("/etc/kubernetes/kubelet.conf.d").mkdir(parents=True)
    node.serve("containerd.service", "containerd")
    report = node.apply(order(new={path: b"x\n"}, arguments=()))
    assert (report.reference == "") is allowed, report

"""What is right and worth knowing, and values that a kubelet accepts without using them."""

from __future__ import annotations

import pytest

from rollout.kubelet.configuration.outcome import KubeletOutcome, MessageLevel

from .starts import references, said, started

REMOTE = ("--container-runtime=remote", "--container-runtime-endpoint=unix:///run/containerd/containerd.sock")


def told(found: KubeletOutcome) -> list[tuple[str, int | None]]:
    """The first word and the line of each note about a file."""
    notes = (message for message in found.messages if message.reference == "flag-over-file")
    return [(note.text, note.place.line if note.place else None) for note in notes]


def test_a_flag_wins_over_a_file() -> None:
    written = "maxPods: 5\ncgroupDriver: systemd\nfeatureGates:\n  NodeSwap: true\n  CPUManager: true\n"
    words = (
        "--max-pods=6",
        "--cgroup-driver=systemd",
        "--feature-gates=NodeSwap=false,CPUManager=true",
        "--registry-qps=3",
    )
    found = started("1.30.1", written, *words)
    assert found.starts
    assert told(found) == [
        ("`--max-pods=6` wins over `maxPods` of this file", 3),
        ("`--feature-gates=NodeSwap=false,CPUManager=true` wins over `featureGates.NodeSwap` of this file", 6),
    ]


def test_a_flag_wins_over_a_field_inside_another() -> None:
    written = "authentication:\n  webhook: {enabled: true}\n  anonymous:\n    enabled: false\n"
    found = started("1.30.1", written, "--anonymous-auth=true", "--authorization-mode=AlwaysAllow")
    assert told(found) == [("`--anonymous-auth=true` wins over `authentication.anonymous.enabled` of this file", 6)]


def test_a_flag_wins_over_a_drop_in() -> None:
    found = started("1.32.1", "maxPods: 5\n", "--max-pods=7", drop_ins=("maxPods: 6\n",))
    (note,) = (message for message in found.messages if message.level is MessageLevel.NOTE)
    assert note.place is not None
    assert note.place.file.endswith("10.conf")


def test_what_later_minors_refuse() -> None:
    found = started(
        "1.29.1", "featureGates:\n  KubeletPodResources: true\n  NodeSwap: false\n", "--pod-infra-container-image=a"
    )
    assert [text for text in said(found, MessageLevel.NOTE) if "NodeSwap" not in text] == [
        "`--pod-infra-container-image=a`: kubelets do not start with this flag from 1.35 on",
        "kubelets after 1.29 do not start with the gate `KubeletPodResources`",
    ]


@pytest.mark.parametrize(("version", "count"), [("1.23.1", 2), ("1.20.2", 2)])
def test_flags_that_only_dockershim_reads(version: str, count: int) -> None:
    words = ("--image-pull-progress-deadline=5m", "--network-plugin=cni")
    assert references(started(version, "", *REMOTE, *words), MessageLevel.NOTE).count("flag-without-effect") == count
    assert "flag-without-effect" not in references(started(version, "", *words), MessageLevel.NOTE)


@pytest.mark.parametrize(
    ("version", "missing"), [("1.23.1", False), ("1.24.1", True), ("1.26.1", True), ("1.27.1", False)]
)
def test_three_minors_need_to_be_told_their_runtime(version: str, missing: bool) -> None:
    found = started(version, "")
    assert found.starts
    assert ("no-runtime-endpoint" in references(found, MessageLevel.NOTE)) is missing
    assert "no-runtime-endpoint" not in references(started(version, "", REMOTE[1]), MessageLevel.NOTE)


def test_a_folder_of_drop_ins_that_is_not_given() -> None:
    assert references(started("1.31.1", "", "--config-dir=/x"), MessageLevel.NOTE) == ["drop-ins-not-read"]
    assert started("1.31.1", "", "--config-dir=/x", drop_ins=()).messages == ()


@pytest.mark.parametrize(
    ("written", "line", "text"),
    [
        ('clusterDomain: "${DOMAIN}"\n', 3, "`clusterDomain` contains `${DOMAIN}`"),
        ('staticPodPath: "{{ manifests }}"\n', 3, "`staticPodPath` contains `{{ manifests }}`"),
        ('providerID: "<no value>"\n', 3, "`providerID` contains `<no value>`"),
        ('clusterDNS:\n- 10.0.0.10\n- "%%DNS%%"\n', 5, "`clusterDNS[1]` contains `%%DNS%%`"),
        ('staticPodURLHeader:\n  A: ["${X}"]\n', 4, "`staticPodURLHeader.A[0]` contains `${X}`"),
    ],
)
def test_a_variable_that_is_not_filled_in(written: str, line: int, text: str) -> None:
    for found in (started("1.30.1", written), started("1.32.1", "", drop_ins=(written,))):
        (mistake,) = (message for message in found.messages if message.level is MessageLevel.POLICY)
        assert (mistake.reference, mistake.place and mistake.place.line) == ("unfilled-variable", line)
        assert mistake.text.startswith(text)
        assert found.starts


def test_a_share_and_a_dollar_are_no_variables() -> None:
    written = "evictionHard: {memory.available: 5%, nodefs.available: 10%}\nclusterDomain: $x.{y}\n"
    assert references(started("1.30.1", written), MessageLevel.POLICY) == []


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("clusterDNS: [10.0.0.10, '10.0.0.11,10.0.0.12']\n", 3),
        ("clusterDNS:\n- dns.example\n", 4),
        ("clusterDNS: [fe80::1%eth0]\n", 3),
        ("clusterDNS: ['']\n", 3),
        ("cgroupDriver: Systemd\n", 3),
    ],
)
def test_a_value_without_effect(written: str, line: int) -> None:
    found = started("1.30.1", written)
    (mistake,) = (message for message in found.messages if message.level is MessageLevel.POLICY)
    assert (found.starts, mistake.reference, mistake.place and mistake.place.line) == (
        True,
        "value-without-effect",
        line,
    )


def test_addresses_and_drivers_that_are_right() -> None:
    for written in (
        "clusterDNS: [10.0.0.10, '010.0.00.1', 'fd00::a', '::ffff:10.0.0.1']\n",
        "cgroupDriver: ''\n",
        "clusterDNS: []\n",
    ):
        assert references(started("1.30.1", written), MessageLevel.POLICY) == []

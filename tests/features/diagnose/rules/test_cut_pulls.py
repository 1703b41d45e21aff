"""Which part of a cancelled pull was silent: a longer deadline is proposed only where the node itself was at work."""

from __future__ import annotations

import pytest

from rollout.features.diagnose.rules.finding import Confidence, Finding
from tests.features.diagnose.rules.logs import event_list, found, journal, logrus, pulls

IMAGE = "reg.example.net/ml/train:9"
CUT = f'level=error msg="cancel pulling image {IMAGE} because of no progress in 5m0s"'
PULL = rf'level=info msg="PullImage \"{IMAGE}\""'


def containerd(*messages: str) -> str:
    """Lines of containerd, the pull's beginning first, then the cut and what follows it within a second."""
    lines = [(0, PULL), *((300, message) for message in messages)]
    return "".join(
        f'2026-08-05T02:{10 + at // 60}:{at % 60:02}.{number:06}+00:00 n1 containerd[1]: time="2026-08-05T02:{10 + at // 60}:{at % 60:02}.{number:06}Z" {message}\n'
        for number, (at, message) in enumerate(lines)
    )


def stopped(read: int, requests: int = 1) -> str:
    return f'level=info msg="stop pulling image {IMAGE}: active requests={requests}, bytes read={read}"'


def failed(last: str) -> str:
    return rf'level=error msg="PullImage \"{IMAGE}\" failed" error="rpc error: code = Canceled desc = failed to pull and unpack image \"{IMAGE}\": {last}"'


def next_host(host: str, error: str = "context canceled") -> str:
    return rf'level=info msg="trying next host" error="failed to do request: Head \"https://{host}/v2/ml/train/manifests/9?ns=reg.example.net\": {error}" host={host}'


def only(text: str) -> Finding:
    return found(text)["pull-progress-deadline"]


def test_an_unpack_that_the_deadline_cut_is_not_blamed_on_the_registry() -> None:
    """containerd#13909."""
    layer = 'failed to extract layer (application/vnd.oci.image.layer.v1.tar+gzip sha256:4a2d0c3f7f7c) to overlayfs as \\"extract-1 sha256:4a2d0c3f\\": context canceled'
    finding = only(containerd(CUT, stopped(18_450_222_101), failed(layer)))
    assert finding.confidence is Confidence.CERTAIN
    assert "The deadline cut the unpacking of a layer that had arrived (bytes read: 18,450,222,101)" in finding.cause
    assert "use_local_image_pull" in finding.cause


def test_a_mirror_that_hangs_is_named_and_no_longer_deadline_is_proposed() -> None:
    """containerd#10624."""
    finding = only(containerd(CUT, next_host("mirror.example.com"), next_host("reg.example.net"), stopped(0, 0)))
    assert finding.confidence is Confidence.CERTAIN
    assert "The mirror mirror.example.com did not answer (bytes read: 0)" in finding.cause
    assert finding.proposal == ""


def test_a_registry_that_hangs_is_named_and_no_longer_deadline_is_proposed() -> None:
    resolve = f'failed to resolve reference \\"{IMAGE}\\": failed to do request: Head \\"https://reg.example.net/v2/ml/train/manifests/9\\": context canceled'
    finding = only(containerd(CUT, stopped(0), failed(resolve)))
    assert "The registry reg.example.net did not answer" in finding.cause
    assert (finding.confidence, finding.proposal) == (Confidence.CERTAIN, "")


def test_a_mirror_that_refused_before_the_cut_did_not_hang() -> None:
    refused = next_host("mirror.example.com", "dial tcp 192.0.2.7:443: connect: connection refused")
    finding = only(containerd(CUT, refused, next_host("reg.example.net"), stopped(0, 0)))
    assert "The registry reg.example.net did not answer" in finding.cause


def test_a_host_that_another_image_was_asked_from_is_not_blamed() -> None:
    other = next_host("mirror.example.com").replace("/v2/ml/train/", "/v2/ml/other/")
    finding = only(containerd(CUT, other, stopped(0)))
    assert "mirror.example.com" not in finding.cause


def test_without_the_bytes_that_were_read_a_silent_registry_is_likely() -> None:
    finding = only(containerd(CUT, next_host("reg.example.net")))
    assert "The registry reg.example.net did not answer." in finding.cause
    assert finding.confidence is Confidence.LIKELY


@pytest.mark.parametrize("state", ["Pull complete", "Download complete"])
def test_a_layer_that_is_done_shows_nothing_of_the_others(state: str) -> None:
    line = f'time="2024-06-02T09:44:31Z" level=error msg="Cancel pulling image {IMAGE} because it exceeded image pull deadline 1m0s. Latest progress 0dd0445527a5: {state} "\n'
    assert "Which part of the pull was silent is not in what was read" in only(line).cause


def test_a_transfer_that_stood_still_in_the_middle_is_likely() -> None:
    finding = only(
        containerd(CUT, stopped(231_231_231), failed("failed to copy: httpReadSeeker: failed open: context canceled"))
    )
    assert "The transfer stood still (bytes read: 231,231,231)" in finding.cause
    assert (finding.confidence, finding.proposal) == (Confidence.LIKELY, "")


def test_many_requests_under_way_are_a_layer_in_chunks() -> None:
    """containerd#12811: a chunk starves although bytes flow."""
    finding = only(containerd(CUT, stopped(231_231_231, requests=13)))
    assert "concurrent_layer_fetch_buffer" in finding.cause
    assert (finding.confidence, finding.proposal) == (Confidence.LIKELY, "")


def test_lines_of_another_image_show_nothing_of_this_one() -> None:
    finding = only(containerd(CUT, stopped(0).replace("ml/train", "ml/other")))
    assert "Which part of the pull was silent is not in what was read" in finding.cause
    assert "imagePullProgressDeadline=10m0s" in finding.proposal


@pytest.mark.parametrize(
    ("state", "words", "proposed"),
    [
        ("Verifying Checksum", "The last progress was the node's own work", True),
        ("Extracting [=======>]  516.6MB/516.6MB", "The last progress was the node's own work", True),
        ("Downloading [==>  ]  950.3kB/2.001MB", "The transfer stood still", False),
    ],
)
def test_the_state_of_a_layer_shows_the_part(state: str, words: str, proposed: bool) -> None:
    line = f'time="2024-06-02T09:44:31Z" level=error msg="Cancel pulling image {IMAGE} because it exceeded image pull deadline 1m0s. Latest progress 0dd0445527a5: {state} "\n'
    finding = only(line)
    assert finding.cause.startswith("cri-dockerd cancelled 1 pull after 1m0s"), "not the kubelet"
    assert words in finding.cause
    assert bool(finding.proposal) is proposed


CRIO = '2024-11-16T10:00:14+00:00 wk-1 crio[812]: time="2024-11-16T10:00:14.3Z" level=warning msg="Timed out on waiting up to 10s for image pull progress updates" id=aa1\n'


@pytest.mark.parametrize(
    ("version", "proposed"), [("1.31.0", False), ("1.31.2", False), ("1.31.3", True), ("1.34.1", True)]
)
def test_a_key_that_this_crio_lacks_is_not_proposed(version: str, proposed: bool) -> None:
    """cri-o#8760: 1.31.0 to 1.31.2 cancel after 10 s and have no key."""
    start = f'2024-11-16T09:00:00+00:00 wk-1 crio[812]: time="2024-11-16T09:00:00Z" level=info msg="Starting CRI-O, version: {version}, git: 0"\n'
    finding = only(start + CRIO)
    assert bool(finding.proposal) is proposed
    assert ("upgrade" in finding.cause) is not proposed


def test_without_the_version_of_crio_the_next_step_is_to_ask_for_it() -> None:
    finding = only(CRIO)
    assert finding.proposal == ""
    assert "crio --version" in finding.fetch_next


# CRI-O's words in an event, without its log.


CONFIG = "rpc error: code = Canceled desc = copying system image from manifest list: copying config: context canceled"


def started(program: str, version: str) -> str:
    """The line with which a runtime starts."""
    words = {
        "CRI-O": f"Starting CRI-O, version: {version}, git: 0",
        "cri-dockerd": f"Starting cri-dockerd {version} (0f1e2d3)",
    }
    rest = f" revision=0 version=v{version}" if program == "containerd" else ""
    return journal(
        logrus(-600, words.get(program, "starting containerd"), rest=rest),
        -600,
        f"{program.lower().replace('cri-o', 'crio')}[1]",
    )


def cancelled(seconds: int = 14, times: int = 1, error: str = CONFIG) -> str:
    return event_list([each for at in range(times) for each in pulls(IMAGE, "a", 400 * at, 400 * at + seconds, error)])


def test_crios_words_in_an_event_name_it_and_the_upgrade() -> None:
    """cri-o#8760: an event has neither the line of the log nor the version."""
    finding = only(cancelled())
    assert finding.confidence is Confidence.LIKELY
    assert finding.cause.startswith(f"CRI-O cancelled the pull of {IMAGE}, 14 s after it began (1 time)")
    assert "an upgrade to 1.30.11, 1.31.3 or later fixes it" in finding.cause
    assert finding.proposal == ""
    assert finding.fetch_next.startswith(
        "crio --version; its log around one of these times: `Timed out on waiting up to`"
    )


@pytest.mark.parametrize(
    ("version", "sure", "proposed", "words"),
    [
        (
            "1.31.1",
            Confidence.LIKELY,
            False,
            "CRI-O 1.31.1 has no key for its deadline: an upgrade to 1.31.3 or later brings one.",
        ),
        (
            "1.30.4",
            Confidence.LIKELY,
            False,
            "CRI-O 1.30.4 has no key for its deadline: an upgrade to 1.30.11 or later brings one.",
        ),
        ("1.31.5", Confidence.LIKELY, True, "CRI-O 1.31.5 has a key for its deadline."),
        ("1.34.1", Confidence.UNKNOWN, False, "CRI-O 1.34.1 has a key for its deadline."),
    ],
)
def test_with_its_version_the_remedy_is_that_versions(
    version: str, sure: Confidence, proposed: bool, words: str
) -> None:
    finding = only_of(started("CRI-O", version), cancelled())
    assert (finding.confidence, bool(finding.proposal)) == (sure, proposed)
    assert words in finding.cause


@pytest.mark.parametrize("seconds", [4, 300], ids=["before its deadline", "long after it, once"])
def test_other_lengths_are_unknown(seconds: int) -> None:
    assert only(cancelled(seconds)).confidence is Confidence.UNKNOWN


def test_the_same_again_and_again_is_likely() -> None:
    finding = only(cancelled(300, times=3))
    assert finding.confidence is Confidence.LIKELY
    assert "(3 times)" in finding.cause


def test_containerds_words_name_the_log_that_decides() -> None:
    finding = only(
        cancelled(
            error=f'rpc error: code = Canceled desc = failed to pull and unpack image "{IMAGE}": context canceled'
        )
    )
    assert finding.confidence is Confidence.UNKNOWN
    assert finding.fetch_next.startswith("containerd's log around one of these times: `cancel pulling image`")


# A deadline of 0s.


def endless(*more: str, version: str = "2.1.4", image: str = IMAGE) -> str:
    """A pull without a deadline; the log goes on for 400 s."""
    lines = [
        *([started("containerd", version)] if version else []),
        journal(logrus(0, f'PullImage "{image}"'), 0, "containerd[1]"),
    ]
    lines.append(
        journal(logrus(0.001, f"no timeout and will not start pulling image {image} reporter"), 0, "containerd[1]")
    )
    return (
        "\n".join([*lines, *more, journal(logrus(400, 'PullImage "other.example/a:1"'), 400, "containerd[1]")]) + "\n"
    )


def test_a_deadline_of_0s_hangs_every_pull_of_the_transfer_service() -> None:
    """containerd#14158."""
    finding = only(endless())
    assert finding.confidence is Confidence.LIKELY
    assert "1 pull began without a progress deadline (0s) and did not end within 6 min 40 s" in finding.cause
    assert "With the transfer service, the default of containerd 2.1 and later" in finding.cause
    assert finding.proposal.endswith("--set imagePullProgressDeadline=5m0s")
    assert "use_local_image_pull" in finding.fetch_next


def test_the_same_line_with_a_pull_that_ends_is_a_local_pull() -> None:
    done = journal(
        logrus(9, f'Pulled image "{IMAGE}" with image id "s", repo tag "t", repo digest "d", size "9" in 9s'),
        9,
        "containerd[1]",
    )
    assert "pull-progress-deadline" not in found(endless(done))


def test_a_pull_that_failed_of_its_own_passed_the_first_step() -> None:
    error = f' error="rpc error: code = NotFound desc = {IMAGE}: not found"'
    gone = journal(logrus(9, f'PullImage "{IMAGE}" failed', "error", error), 9, "containerd[1]")
    assert "pull-progress-deadline" not in found(endless(gone))


def test_a_pull_that_was_cancelled_had_not_ended() -> None:
    error = ' error="rpc error: code = Canceled desc = context canceled"'
    gone = journal(logrus(390, f'PullImage "{IMAGE}" failed', "error", error), 390, "containerd[1]")
    assert only(endless(gone)).confidence is Confidence.LIKELY


def test_before_the_transfer_service_0s_is_only_off() -> None:
    assert "pull-progress-deadline" not in found(endless(version="1.7.28"))


def test_without_a_version_0s_is_unknown_and_the_version_decides() -> None:
    finding = only(endless(version=""))
    assert (finding.confidence, finding.proposal) == (Confidence.UNKNOWN, "")
    assert finding.fetch_next.startswith("containerd --version, and `use_local_image_pull`")


def only_of(*files: str) -> Finding:
    return found(*files)["pull-progress-deadline"]


# What a version lacks is not named.


@pytest.mark.parametrize(("version", "named"), [("1.7.28", False), ("2.1.4", False), ("2.2.0", True)])
def test_a_key_for_unpacking_is_named_only_where_it_helps(version: str, named: bool) -> None:
    layer = 'failed to extract layer sha256:4a2d0c3f7f7c to overlayfs as \\"extract-1\\": context canceled'
    finding = only(started_at(version) + containerd(CUT, stopped(18), failed(layer)))
    assert "The deadline cut the unpacking" in finding.cause
    assert ("use_local_image_pull" in finding.cause) is named


@pytest.mark.parametrize(("version", "named"), [("1.7.28", False), ("2.1.4", True)])
def test_before_chunks_many_requests_are_a_transfer_that_stood_still(version: str, named: bool) -> None:
    finding = only(started_at(version) + containerd(CUT, stopped(231_231_231, requests=13)))
    assert ("concurrent_layer_fetch_buffer" in finding.cause) is named
    assert ("The transfer stood still" in finding.cause) is not named


@pytest.mark.parametrize(
    ("state", "version", "named"),
    [
        ("Extracting [=>] 1MB/1MB", "0.3.9", True),
        ("Extracting [=>] 1MB/1MB", "0.3.15", False),
        ("Verifying Checksum", "0.3.9", False),
    ],
)
def test_an_upgrade_is_named_for_extracting_and_not_for_verifying(state: str, version: str, named: bool) -> None:
    """cri-dockerd 0.3.15 does not count the time of extracting; a checksum counts in every version."""
    start = f'time="2024-06-02T08:00:00Z" level=info msg="Starting cri-dockerd {version} (0f1e2d3)"\n'
    line = f'time="2024-06-02T09:44:31Z" level=error msg="Cancel pulling image {IMAGE} because it exceeded image pull deadline 1m0s. Latest progress 0dd0445527a5: {state} "\n'
    finding = only(start + line)
    assert ("an upgrade ends it" in finding.cause) is named
    assert finding.proposal.endswith("imagePullProgressDeadline=5m0s")


def started_at(version: str) -> str:
    return f'2026-08-05T01:00:00.000000+00:00 n1 containerd[1]: time="2026-08-05T01:00:00Z" level=info msg="starting containerd" revision=0 version=v{version}\n'


def crio(second: float, message: str) -> str:
    return journal(logrus(second, message, "info", " id=aa1"), second, "crio[812]")


def test_the_host_that_crio_asked_last_is_named() -> None:
    begun = crio(0, "Pulling image: quay.io/ai/train:2")
    mirror = crio(0.1, 'Trying to access "mirror.example.com:5000/ai/train:2"')
    own = crio(0.2, 'Trying to access "quay.io/ai/train:2"')
    cut = crio(14, "Timed out on waiting up to 10s for image pull progress updates")
    assert (
        "The host that was asked last before it is mirror.example.com:5000."
        in only("\n".join((begun, mirror, cut))).cause
    )
    assert "asked last before it is quay.io." in only("\n".join((begun, mirror, own, cut))).cause
    other = crio(1, "Pulling image: quay.io/other:1")
    assert "asked last" not in only("\n".join((begun, mirror, other, cut))).cause, "it may be the other pull's"
    assert "asked last" not in only(cut).cause

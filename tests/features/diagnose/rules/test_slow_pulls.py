"""Pulls that take long: which host cost the time, how much was read, and what a queue would explain as well."""

from __future__ import annotations

from rollout.features.diagnose.rules.diagnosis import Diagnosis
from rollout.features.diagnose.rules.finding import Confidence, Finding
from tests.features.diagnose.rules.logs import NODE, diagnosis, event, event_list, found, klog, lines, logrus, pulls

IMAGE = "docker.io/shop/web:1"
OTHER = "quay.io/shop/small:1"


def received(at: float, image: str = IMAGE) -> str:
    return logrus(at, f'PullImage "{image}"')


def returned(at: float, image: str = OTHER) -> str:
    return logrus(at, f'PullImage "{image}" returns image reference "sha256:0f"')


def pulled(at: float, took: str, image: str = IMAGE, size: int = 48_494_000) -> str:
    digest = 'with image id "sha256:0f", repo tag "t", repo digest "d"'
    return logrus(at, f'Pulled image "{image}" {digest}, size "{size}" in {took}')


def stopped(at: float, read: int, requests: int = 1, image: str = IMAGE) -> str:
    return logrus(at, f"stop pulling image {image}: active requests={requests}, bytes read={read}")


def refused(at: float, error: str = "context canceled", image: str = IMAGE) -> str:
    return logrus(at, f'PullImage "{image}" failed', "error", f' error="rpc error: code = Canceled desc = {error}"')


def next_host(
    at: float, host: str, error: str, path: str = "shop/web/manifests/1", message: str = "trying next host"
) -> str:
    asked = rf"failed to do request: Head \"https://{host}/v2/{path}?ns=docker.io\": {error}"
    return logrus(at, message, rest=f' error="{asked}" host="{host}"')


TIMEOUT = "dial tcp 192.0.2.103:81: i/o timeout"
QUICKLY = (received(60, OTHER), returned(64))
"""Another pull, which ends while the first one runs."""


def slow(*log: str) -> list[Finding]:
    return [each for each in diagnosis(lines(*log)).findings if each.id == "registry-slow"]


def ids(read: Diagnosis) -> list[str]:
    return [each.id for each in read.findings]


# A host that costs time before the next one is asked.


def test_the_mirror_that_cost_the_time_is_named_and_not_the_registry() -> None:
    """containerd#10660: each request waits 30 s for a mirror that is dead."""
    (finding,) = slow(
        received(0),
        next_host(30, "mirror.example.com:81", TIMEOUT),
        stopped(274, 48_495_295, 0),
        pulled(274, "4m34.4s"),
    )
    assert finding.confidence is Confidence.CERTAIN
    assert "the mirror mirror.example.com:81 cost 1 pull 30 s before the next host was asked" in finding.cause
    assert "`dial tcp 192.0.2.103:81: i/o timeout`" in finding.cause
    assert "MB/s" not in finding.cause, "the registry behind it is not measured"
    assert finding.proposal == ""


def test_each_host_has_its_own_time() -> None:
    first, second = slow(
        received(0),
        next_host(30, "mirror-a.example.com", TIMEOUT),
        next_host(150, "mirror-b.example.com", "EOF"),
        pulled(274, "4m34.4s"),
    )
    assert "mirror-a.example.com cost 1 pull 30 s" in first.cause
    assert "mirror-b.example.com cost 1 pull 2 min" in second.cause


def test_a_mirror_that_fails_at_once_costs_nothing() -> None:
    assert slow(received(0), next_host(0.2, "mirror.example.com", "EOF"), pulled(9, "9s")) == []


def test_a_host_of_another_image_costs_this_pull_nothing() -> None:
    (finding,) = slow(
        received(0), next_host(30, "mirror.example.com", TIMEOUT, "shop/other/manifests/1"), pulled(40, "40s")
    )
    assert IMAGE not in finding.cause
    assert "did not answer 1 time" in finding.cause


def test_a_registry_of_the_image_is_no_mirror() -> None:
    (finding,) = slow(
        received(0), next_host(30, "registry-1.docker.io", TIMEOUT, message="fetch failed"), refused(30, "x")
    )
    assert finding.cause.startswith("the host registry-1.docker.io cost 1 pull 30 s")


def test_a_mirror_with_a_name_that_ends_like_the_registrys_is_a_mirror() -> None:
    (finding,) = slow(
        received(0), next_host(30, "mirror-docker.io", TIMEOUT), stopped(40, 48_495_295, 0), pulled(40, "40s")
    )
    assert finding.cause.startswith("the mirror mirror-docker.io cost 1 pull 30 s")


def test_an_error_in_an_unknown_form_is_likely() -> None:
    (finding,) = slow(received(0), next_host(30, "mirror.example.com", "it was a bad day"), pulled(40, "40s"))
    assert finding.confidence is Confidence.LIKELY
    assert "curl" in finding.fetch_next


def test_a_host_without_the_beginning_of_its_pull_is_told_without_a_time() -> None:
    (finding,) = slow(next_host(30, "mirror.example.com", TIMEOUT), pulled(274, "4m34.4s"))
    assert finding.confidence is Confidence.LIKELY
    assert finding.cause.startswith(
        "mirror.example.com did not answer 1 time before the next host was asked: `dial tcp 192.0.2.103:81: i/o timeout`"
    )
    assert "docker.io" not in finding.cause


def test_a_host_that_answered_without_the_beginning_of_its_pull_is_not_told() -> None:
    assert slow(next_host(30, "mirror.example.com", "EOF"), pulled(20, "20s")) == []


def test_the_whole_time_of_the_pulls_is_told_where_it_is_longer() -> None:
    (finding,) = slow(received(0), next_host(30, "mirror.example.com", TIMEOUT), pulled(274, "4m34.4s"))
    assert "These pulls took up to 4 min 34 s." in finding.cause


def test_an_image_of_docker_hub_has_one_name() -> None:
    """bottlerocket#4564: the pull was asked for as ``docker.io/web`` and the address has ``library/web``."""
    (finding,) = slow(
        received(0, "docker.io/web:1"),
        next_host(30, "mirror.example.com", TIMEOUT, "library/web/manifests/1"),
        pulled(274, "4m34.4s", "docker.io/web:1"),
    )
    assert "mirror.example.com cost 1 pull 30 s" in finding.cause


REFUSED = "dial tcp 10.0.0.9:443: connect: connection refused"
V2 = "docker.io/shop/web:2"


def test_a_host_is_of_the_pull_whose_tag_it_was_asked_for() -> None:
    """The pull of one tag downloads for a minute; the mirror refuses another tag at once."""
    log = (received(0), received(60, V2), next_host(60.01, "mirror.example.com", REFUSED, "shop/web/manifests/2"))
    assert slow(*log, returned(80, V2), returned(119, IMAGE)) == []


def test_a_tag_that_no_open_pull_has_is_of_none() -> None:
    assert (
        slow(received(0), next_host(30, "mirror.example.com", REFUSED, "shop/web/manifests/2"), returned(40, IMAGE))
        == []
    )


def test_a_layer_that_two_pulls_may_have_asked_for_is_of_none() -> None:
    (finding,) = slow(
        received(0), received(1, V2), next_host(31, "mirror.example.com", TIMEOUT, "shop/web/blobs/sha256:0f")
    )
    assert finding.confidence is Confidence.LIKELY
    assert "How long each took is not in what was read" in finding.cause


def test_a_layer_of_the_one_open_pull_is_likely() -> None:
    """What was transferred before it is in no line."""
    (finding,) = slow(received(0), next_host(31, "mirror.example.com", TIMEOUT, "shop/web/blobs/sha256:0f"))
    assert finding.confidence is Confidence.LIKELY
    assert "cost 1 pull 31 s" in finding.cause


def test_the_registry_of_the_image_tells_two_pulls_of_one_tag_apart() -> None:
    log = (received(0), received(1, "quay.io/shop/web:1"), next_host(30, "mirror.example.com", TIMEOUT))
    (finding,) = slow(*log)
    assert "Images: docker.io/shop/web:1." in finding.cause
    assert finding.confidence is Confidence.CERTAIN


def test_an_image_with_a_digest_is_asked_for_by_it() -> None:
    digest = "sha256:" + "4a" * 32
    log = (received(0), received(1, f"docker.io/shop/web:2@{digest}"))
    (finding,) = slow(*log, next_host(31, "mirror.example.com", TIMEOUT, f"shop/web/manifests/{digest}"))
    assert f"Images: docker.io/shop/web:2@{digest}." in finding.cause
    assert "cost 1 pull 30 s" in finding.cause


def test_a_host_that_refuses_is_not_slow_by_its_own_form() -> None:
    (finding,) = slow(received(0), next_host(30, "mirror.example.com", REFUSED), pulled(40, "40s"))
    assert finding.confidence is Confidence.LIKELY
    assert "curl" in finding.fetch_next


def test_a_host_behind_one_without_an_address_in_its_line_is_likely() -> None:
    nameless = logrus(29, "trying next host - response was http.StatusNotFound", rest=' host="mirror-a.example.com"')
    (finding,) = slow(received(0), nameless, next_host(30, "mirror-b.example.com", TIMEOUT))
    assert finding.confidence is Confidence.LIKELY


def test_the_first_request_of_a_pull_is_what_is_measured() -> None:
    """The second line of the same host stands behind answers that are in no line."""
    (finding,) = slow(
        received(0),
        next_host(30, "mirror.example.com", TIMEOUT),
        next_host(130, "mirror.example.com", TIMEOUT, "shop/web/blobs/sha256:0f"),
        pulled(274, "4m34.4s"),
    )
    assert finding.confidence is Confidence.CERTAIN
    assert "cost 1 pull 30 s before" in finding.cause


# A slow transfer.


def test_a_pull_that_trickled_for_an_hour_is_told_with_its_size() -> None:
    """containerd#11650."""
    (finding,) = slow(received(0), *QUICKLY, stopped(3820, 231_231_231))
    assert finding.confidence is Confidence.CERTAIN
    assert "was open for 1 h 4 min and read 231,231,231 bytes in that time: 61 kB/s" in finding.cause
    assert "A progress deadline does not end such a pull" in finding.cause
    assert f"the pull of {OTHER} took 4 s" in finding.cause
    assert finding.proposal == ""


def test_a_pull_that_read_much_or_ran_for_seconds_is_not_slow() -> None:
    assert slow(received(0), stopped(3820, 80_000_000_000), refused(3820)) == []
    assert slow(received(0), stopped(40, 1000), refused(40)) == []


def test_a_pull_that_read_nothing_for_minutes_hung_before_its_first_byte() -> None:
    (finding,) = slow(received(0), stopped(2400, 0, 0), refused(2400))
    assert finding.confidence is Confidence.LIKELY
    assert "was open for 40 min and read nothing" in finding.cause


def test_a_pull_without_a_size_that_was_cancelled_after_an_hour_is_unknown() -> None:
    """containerd before 1.7 does not write what it read."""
    (finding,) = slow(received(0), refused(3800))
    assert finding.confidence is Confidence.UNKNOWN
    assert "until it was cancelled; what it read is not in the log" in finding.cause
    assert slow(received(0), refused(400)) == []
    assert slow(received(0), refused(3800, "no such host")) == []


def test_a_pull_that_a_deadline_cut_is_told_by_the_cut() -> None:
    cut = logrus(900, f"cancel pulling image {IMAGE} because of no progress in 5m0s", "error")
    read = diagnosis(lines(received(0), cut, stopped(900, 1_000_000), refused(900)))
    assert ids(read) == ["pull-progress-deadline"]


def test_a_pull_that_is_still_open_while_others_end_is_no_queue() -> None:
    (finding,) = slow(received(0), *QUICKLY, received(3000, OTHER), returned(3004))
    assert finding.confidence is Confidence.UNKNOWN
    assert f"the pull of {IMAGE} began 50 min before the end of what was read and has not ended" in finding.cause
    assert "content active" in finding.fetch_next


def test_an_open_pull_of_a_log_without_ends_shows_nothing() -> None:
    assert slow(received(0), received(3000, OTHER)) == []


def test_a_restart_of_the_runtime_ends_what_was_open() -> None:
    start = logrus(100, "starting containerd", rest=" revision=0 version=v1.7.28")
    assert slow(received(0), *QUICKLY, start, received(3000, OTHER), returned(3004)) == []


def test_two_pulls_of_one_image_are_told_as_one() -> None:
    (finding,) = slow(received(0), received(5), *QUICKLY, stopped(3820, 231_231_231), refused(3820))
    assert "231,231,231" in finding.cause


def test_the_kubelets_and_the_runtimes_line_of_one_pull_are_one_pull() -> None:
    log = lines(received(0), pulled(130, "2m10s", size=400_000_000))
    done = " in 2m10s (2m10s including waiting). Image size: 400000000 bytes."
    assert "registry-slow" not in found(log, event_list(pulls(IMAGE, "web-1", 0, 130, done=done)))


def test_one_pull_of_minutes_at_a_trickle_counts_alone() -> None:
    (finding,) = slow(received(0), pulled(400, "6m40s", size=48_000_000))
    assert "1 pull of images of docker.io took up to 6 min 40 s, at 0.1 MB/s" in finding.cause
    assert finding.confidence is Confidence.LIKELY, "the node's disk would look the same"
    assert "a mirror is asked without a line" in finding.fetch_next


def done(at: float, took: str, image: str, size: int, node: str = NODE) -> dict[str, object]:
    text = f'Successfully pulled image "{image}" in {took} ({took} including waiting). Image size: {size} bytes.'
    return event(at, "Pulled", text, image.rpartition("/")[2].partition(":")[0], node=node)


TWO_SLOW = (received(0), received(1, "docker.io/shop/api:1"))
TWO_SLOW_END = (
    pulled(300, "5m0s", size=200_000_000),
    pulled(305, "5m4s", "docker.io/shop/api:1", size=210_000_000),
)


def quick(begun: float, read: int = 80_000_000) -> tuple[str, ...]:
    end = begun + 4
    return received(begun, OTHER), stopped(end, read, 0, OTHER), pulled(end, "4s", OTHER, 80_000_000)


def test_images_of_another_registry_at_full_speed_meanwhile_exclude_the_node() -> None:
    (finding,) = slow(*TWO_SLOW, *quick(60), *TWO_SLOW_END)
    assert finding.confidence is Confidence.CERTAIN
    assert "Those of quay.io were quick meanwhile, on the same node." in finding.cause


def test_images_that_were_there_already_exclude_nothing() -> None:
    """The size is that of the whole image; the runtime read little of it."""
    (finding,) = slow(*TWO_SLOW, *quick(60, 4000), *TWO_SLOW_END)
    assert finding.confidence is Confidence.LIKELY
    assert "quick" not in finding.cause


def test_a_quick_pull_at_another_time_excludes_nothing() -> None:
    (finding,) = slow(*TWO_SLOW, *TWO_SLOW_END, *quick(900))
    assert finding.confidence is Confidence.LIKELY


def test_a_quick_pull_on_another_node_excludes_nothing() -> None:
    events = [
        done(100, "4s", "ghcr.io/x/tool:1", 80_000_000, "node-b"),
        done(300, "5m0s", "quay.io/y/app:1", 200_000_000, "node-a"),
        done(400, "5m10s", "quay.io/y/api:1", 210_000_000, "node-a"),
    ]
    finding = found(event_list(events))["registry-slow"]
    assert finding.confidence is Confidence.LIKELY
    assert "quick" not in finding.cause


def test_pulls_side_by_side_share_the_nodes_link() -> None:
    """Twelve of 900 MB within five minutes: the registry delivered 43 MB/s."""
    events = [done(300 + each, "4m0s", f"quay.io/y/app{each}:1", 900_000_000) for each in range(12)]
    assert "registry-slow" not in found(event_list(events))
    assert "registry-slow" in found(
        event_list([done(300 * each, "4m0s", f"quay.io/y/app{each}:1", 900_000_000) for each in (1, 2)])
    )


def test_a_clock_that_may_have_been_set_makes_no_rate_certain() -> None:
    (finding,) = slow(received(0), stopped(10_800, 600_000_000))
    assert finding.confidence is Confidence.LIKELY


# Kubelets 1.19 to 1.22 print one time, with the wait in it.


def old(image: str, pod: str, begun: float, seconds: int, took: str) -> list[dict[str, object]]:
    return pulls(image, pod, begun, begun + seconds, done=f" in {took}")


def test_two_pulls_that_did_not_meet_took_their_time_themselves() -> None:
    events = [*old(IMAGE, "a", 0, 1021, "17m1.2s"), *old(OTHER, "b", 1100, 242, "4m2s")]
    finding = found(event_list(events))["registry-slow"]
    assert finding.confidence is Confidence.LIKELY
    assert "2 pulls of images of docker.io, quay.io took up to 17 min 1 s" in finding.cause


def test_a_pull_behind_another_one_may_have_waited() -> None:
    events = [*old(IMAGE, "a", 0, 621, "10m21s"), *old(OTHER, "b", 400, 242, "4m2s")]
    finding = found(event_list(events))["registry-slow"]
    assert finding.confidence is Confidence.UNKNOWN
    assert "may have waited for that one" in finding.cause


def test_the_pull_in_front_of_others_took_its_time_itself() -> None:
    events = [*old(IMAGE, "a", 0, 1021, "17m1.2s"), *old(OTHER, "b", 800, 242, "4m2s")]
    finding = found(event_list(events))["registry-slow"]
    assert finding.confidence is Confidence.LIKELY
    assert finding.cause.startswith("1 pull of images of docker.io took up to 17 min 1 s")


def test_one_pull_of_minutes_in_the_old_form_is_not_told() -> None:
    assert "registry-slow" not in found(event_list(old(IMAGE, "a", 0, 242, "4m2s")))
    assert "registry-slow" in found(event_list(old(IMAGE, "a", 0, 1021, "17m1.2s")))


def test_a_kubelets_start_ends_what_was_open() -> None:
    start = klog(100, '"Kubelet version" kubeletVersion="v1.30.2"')
    assert slow(received(0), *QUICKLY, start, received(3000, OTHER), returned(3004)) == []


def test_a_log_shows_until_its_last_line_what_has_not_ended() -> None:
    """Whatever that line says: only few lines of a log are of pulls."""
    (finding,) = slow(received(0), *QUICKLY, logrus(3000, "Container exec is done"))
    assert "began 50 min before the end of what was read" in finding.cause
    assert slow(received(0), *QUICKLY) == []


def numbered(at: float, message: str, number: str) -> str:
    return logrus(at, message, rest=f" id={number} name=/runtime.v1.ImageService/PullImage")


def test_an_open_pull_in_a_log_that_numbers_its_requests_is_told() -> None:
    begun, again = (
        numbered(0, "Pulling image: quay.io/a:1", "2b-1"),
        numbered(400, "Pulling image: quay.io/a:1", "2b-2"),
    )
    later = numbered(2000, "Checking image status: quay.io/b:1", "2b-9")
    (finding,) = slow(begun, again, later, numbered(2001, "Pulling image: quay.io/b:1", "2b-10"))
    assert finding.confidence is Confidence.UNKNOWN
    assert "the pull of quay.io/a:1 began 33 min" in finding.cause
    assert "received it 2 times. It may also have failed" in finding.cause
    assert "kubelet's log" in finding.fetch_next


def test_the_number_of_a_request_tells_the_image_of_an_end() -> None:
    begun, other = numbered(0, "Pulling image: quay.io/a:1", "2b-1"), numbered(1, "Pulling image: quay.io/a:2", "2b-2")
    ended, last = numbered(30, "Pulled image: quay.io/a@sha256:0f", "2b-2"), numbered(2000, "Pulling image: c", "2b-3")
    (finding,) = slow(begun, other, ended, last)
    assert "the pull of quay.io/a:1 began 33 min" in finding.cause
    assert slow(begun, numbered(30, "Pulled image: quay.io/a@sha256:0f", "2b-1"), last) == []

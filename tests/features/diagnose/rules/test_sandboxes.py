"""Pods without a sandbox: each form of the error, in each place where it is printed."""

from __future__ import annotations

import json

import pytest

from rollout.features.diagnose.rules.container_creation import cause_of_creation
from rollout.features.diagnose.rules.finding import Confidence, Finding
from tests.features.diagnose.rules.logs import NODE, event, event_list, found, journal, klog, lines, logrus

ID = "sandbox-not-created"
S = "3fe33199939736653d0eb5ffb41ffd4a"
RUNC = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "
FORMS = {
    f'failed to setup network for sandbox "{S}": plugin type="calico" failed (add): connection is unauthorized: Unauthorized': "the network plugin calico fails with `connection is unauthorized: Unauthorized`",
    f'failed to setup network for sandbox "{S}": plugin type="flannel" name="cbr0" failed (add): loadFlannelSubnetEnv failed: open /run/flannel/subnet.env: no such file or directory': "the network plugin flannel fails with `loadFlannelSubnetEnv failed",
    f'failed to setup network for sandbox "{S}": failed to set bridge addr: "cni0" already has an IP address different from 10.244.1.1/24': "the network plugin fails with `failed to set bridge addr",
    f'[failed to set up sandbox container "{S}" network for pod "web-1": networkPlugin cni failed to set up pod "web-1_shop" network: netplugin failed with no error message, failed to clean up sandbox container "{S}" network for pod "web-1": networkPlugin cni failed to teardown pod "web-1_shop" network: x]': "the network plugin fails with `netplugin failed with no error message`",
    'NetworkPlugin cni failed to set up pod "web-1_shop" network: failed to find plugin "portmap" in path [/opt/flannel/bin /opt/cni/bin]': "the node has no network plugin portmap in [/opt/flannel/bin /opt/cni/bin]",
    f'failed to setup network for sandbox "{S}": plugin type="bridge" failed (add): failed to find plugin "host-local" in path [/opt/cni/bin]': "the network plugin bridge fails with",
    f'failed to create pod network sandbox k8s_web-1_shop_9f3c_0({S}): error adding pod shop_web-1 to CNI network "k8s-pod-network": stat /var/lib/calico/nodename: no such file or directory': "the network plugin fails with `stat /var/lib/calico/nodename",
    'failed to get sandbox runtime: no runtime for "nvidia" is configured': "the node's runtime has no handler nvidia",
    'failed to find runtime handler kata from runtime list map[runc:0xc000]': "the node's runtime has no handler kata",
    f'failed to create containerd task: OCI runtime create failed: expected cgroupsPath to be of format "slice:prefix:name" for systemd cgroups, got "/kubepods/poda1/{S}" instead': "the runtime's is systemd, and the kubelet's is cgroupfs",
    "cri-o configured with cgroupfs cgroup manager, but received systemd slice as parent: kubepods-burstable-pod1.slice": "the runtime's is cgroupfs, and the kubelet's is systemd",
    'failed to generate sandbox security options for sandbox "web-1": failed to generate seccomp security options for container: cannot load seccomp profile "/var/lib/kubelet/seccomp/a": open /var/lib/kubelet/seccomp/a: no such file or directory': "the seccomp profile /var/lib/kubelet/seccomp/a cannot be read on the node: no such file or directory",
    f"{RUNC}error loading seccomp filter into kernel: error loading seccomp filter: errno 524": "the kernel refuses the seccomp filter (errno 524)",
    f"{RUNC}unable to apply cgroup configuration: mkdir /sys/fs/cgroup/memory/kubepods/burstable/pod1/2: no space left on device": "a limit of the kernel, not the disk",
    f"{RUNC}error during container init: unable to join session keyring: unable to create session key: disk quota exceeded": "the kernel's quota of keys is used up",
    f"{RUNC}error during container init: error running hook #0: error running hook: exit status 1, stdout: , stderr: nvidia-container-cli: initialization error: driver error: failed to process request": "a hook of the runtime fails, a program of the node: `nvidia-container-cli: initialization error",
    'failed to start sandbox container task "3fe331": failed to create shim task: mkdir /run/containerd/io.containerd.runtime.v2.task/k8s.io/a: no space left on device': "disk is full",
    "error reading from server: read unix @->/run/containerd/containerd.sock: read: connection reset by peer": "the runtime ended while it worked on the request",
}  # fmt: skip
RPC = "rpc error: code = Unknown desc = "


POD = '"web-1_shop(9f3c)"'


def of_worker(error: str) -> str:
    return f'failed to "CreatePodSandbox" for {POD} with CreatePodSandboxError: {json.dumps(error)}'


def sync(error: str) -> str:
    told = of_worker(f"Failed to create sandbox for pod {POD}: {RPC}{error}")
    return f'"Error syncing pod, skipping" err={json.dumps(told)} pod="shop/web-1" podUID="9f3c"'


def old_sync(error: str) -> str:
    return (
        f"Error syncing pod 9f3c ({POD}), skipping: {of_worker(f'CreatePodSandbox for pod {POD} failed: {RPC}{error}')}"
    )


def manager(error: str) -> str:
    return f'"CreatePodSandbox for pod failed" err={json.dumps(RPC + error)} pod="shop/web-1"'


def old_manager(error: str) -> str:
    return f"createPodSandbox for pod {POD} failed: {RPC}{error}"


def only(*files: str) -> Finding:
    (finding,) = found(*files).values()
    assert finding.id == ID
    return finding


@pytest.mark.parametrize("error", FORMS)
@pytest.mark.parametrize("made", [sync, old_sync, manager, old_manager])
def test_a_whole_form_that_is_reported_for_minutes_is_certain(error: str, made: object) -> None:
    assert callable(made)
    finding = only(lines(*(klog(at, made(error), "E") for at in (0, 15, 150))))
    assert (finding.confidence, FORMS[error] in finding.cause) == (Confidence.CERTAIN, True), finding.cause
    assert "Of pod shop/web-1. Reported 3 times over 2 min 30 s." in finding.cause


@pytest.mark.parametrize("error", FORMS)
def test_events_show_it_too(error: str) -> None:
    for begin in ("Failed to create pod sandbox: ", "(combined from similar events): Failed create pod sandbox: "):
        often = event(150, "FailedCreatePodSandBox", f"{begin}{RPC}{error}", first=0, count=12)
        assert FORMS[error] in only(event_list([often])).cause


def test_the_log_of_containerd_alone_shows_it() -> None:
    error = next(iter(FORMS))
    for of in (
        "&PodSandboxMetadata{Name:web-1,Uid:9f3c,Namespace:shop,Attempt:0,}",
        'name:"web-1" uid:"9f3c" namespace:"shop"',
    ):
        failed = (
            logrus(at, f"RunPodSandbox for {of} failed, error", "error", f" error={json.dumps(error)}")
            for at in (0, 15, 150)
        )
        assert "calico" in only(lines(*failed)).cause
        begun = (logrus(at, f'RunPodSandbox for {of} returns sandbox id \\"{S}\\"') for at in (0, 15, 150))
        assert not found(lines(*begun))


def test_an_error_of_no_known_form_is_likely_and_quoted() -> None:
    finding = only(lines(*(klog(at, sync("no such thing"), "E") for at in (0, 150))))
    assert (finding.confidence, "no such thing" in finding.cause) == (Confidence.LIKELY, True)


def test_of_a_long_error_its_end_is_shown() -> None:
    finding = only(lines(*(klog(at, sync(f"{'x' * 400}: err: no such device"), "E") for at in (0, 150))))
    assert "x: err: no such device`. Of pod shop/web-1." in finding.cause


def test_a_sandbox_that_a_later_try_makes_is_no_finding() -> None:
    error = next(iter(FORMS))
    tries = [klog(at, sync(error), "E") for at in (0, 12, 30)]
    assert not found(lines(*tries)), "the node boots: its network comes within two minutes"
    made = '"Event occurred" object="shop/web-1" fieldPath="spec.initContainers{a}" kind="Pod" apiVersion="v1" type="Normal" reason="Created" message="Created container a"'
    assert only(lines(*tries, klog(150, sync(error), "E"), klog(160, made))).cause.startswith("over since")
    assert not found(lines(*tries, klog(60, made), *(klog(at, sync(error), "E") for at in (9000, 9012))))


@pytest.mark.parametrize("reason", ["Pulling", "Pulled", "Started"])
def test_what_a_kubelet_does_in_a_sandbox_shows_that_it_was_made(reason: str) -> None:
    error = next(iter(FORMS))
    told = {
        "Pulling": 'Pulling image "r/a:1"',
        "Pulled": 'Successfully pulled image "r/a:1"',
        "Started": "Started container a",
    }[reason]
    failed = event(150, "FailedCreatePodSandBox", f"Failed to create pod sandbox: {RPC}{error}", first=0, count=12)
    assert only(event_list([failed, event(170, reason, told)])).cause.startswith("over since 09:02:50")
    assert not only(event_list([failed, event(170, reason, told, "web-2")])).cause.startswith("over")


def test_another_program_that_prints_the_kubelets_lines_shows_none() -> None:
    text = [klog(at, manager(next(iter(FORMS))), "E") for at in (0, 15, 150)]
    assert only(lines(*(journal(line, at) for line, at in zip(text, (0, 15, 150), strict=True)))).nodes == (NODE,)
    assert not found(
        lines(*(journal(line, at, "event-exporter[9]") for line, at in zip(text, (0, 15, 150), strict=True)))
    )


def test_a_socket_that_refuses_is_a_runtime_that_is_down() -> None:
    error = 'connection error: desc = "transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused"'
    told = manager(error).replace("code = Unknown", "code = Unavailable")
    (finding,) = found(lines(*(klog(at, told, "E") for at in (0, 20, 40, 150)))).values()
    assert finding.id == "runtime-down"


NOT_OF_A_DISK = (
    f"{RUNC}error adding pid 7 to cgroups: failed to write 7: write /sys/fs/cgroup/cpuset/a/cgroup.procs: no space left on device",
    f"{RUNC}unable to apply cgroup configuration: mkdir /sys/fs/cgroup/memory/a: cannot allocate memory",
    f"{RUNC}error during container init: create session key: disk quota exceeded",
    "failed to create containerd task: failed to create shim task: open /proc/self/fd: input/output error",
)


@pytest.mark.parametrize("error", NOT_OF_A_DISK)
def test_a_limit_of_the_kernel_is_no_disk(error: str) -> None:
    cause = cause_of_creation(error)
    assert cause is None or not any(
        word in cause.told for word in ("disk is full", "disk quota of the node", "disk reports")
    )


def test_runc_before_1_0_quotes_each_step_within_the_other() -> None:
    begin = 'failed to start container "web": Error response from daemon: OCI runtime create failed: container_linux.go:349: starting container process caused '
    steps = "process_linux.go:449: container init caused "
    mount = f"mounting {json.dumps('/a/cpuinfo')} to rootfs {json.dumps('/b/merged')} at {json.dumps('/b/merged/proc/cpuinfo')} caused {json.dumps('not a directory')}"
    hook = f"process_linux.go:413: running prestart hook 0 caused {json.dumps('error running hook: exit status 1, stdout: , stderr: cli: driver error')}"
    for inner, told in (
        (
            f"rootfs_linux.go:58: {mount}",
            "its mount of /a/cpuinfo at /b/merged/proc/cpuinfo cannot be made: not a directory",
        ),
        (hook, "a hook of the runtime fails, a program of the node: `cli: driver error`"),
    ):
        error = begin + json.dumps(steps + json.dumps(inner))
        for behind in (": unknown", ": unknown: Are you trying to mount a directory onto a file (or vice-versa)?"):
            cause = cause_of_creation(error + behind)
            if "mount" in inner or behind == ": unknown":
                assert cause is not None
                assert cause.told.startswith(told)


NAMES = (
    f'{RUNC}exec: "sh: error loading seccomp filter: errno 524": stat sh: no such file or directory',
    f'{RUNC}exec: "a: error running hook #0: exit status 1, stdout: , stderr: b": executable file not found in $PATH',
    f'{RUNC}exec: "a: mkdir /sys/fs/cgroup/a: no space left on device": permission denied',
)


@pytest.mark.parametrize("error", NAMES)
def test_words_in_the_name_of_a_command_are_no_cause(error: str) -> None:
    cause = cause_of_creation(error)
    assert cause is not None
    assert cause.told.startswith("the runtime cannot run its command")

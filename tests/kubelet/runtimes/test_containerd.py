"""containerd's config.toml: the file and table of a key, by config version, imports and way of pulling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from rollout.core.model.plan import Change
from rollout.core.model.playbook import Disruption
from rollout.core.model.settings import Setting
from rollout.core.model.snapshot import FileState, Snapshot
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes.description import Runtime
from tests.kubelet.nodes import absent, regular
from tests.kubelet.runtimes.nodes import (
    CONTAINERD,
    V2,
    V3,
    added,
    applied,
    changed,
    node,
    wanted,
    with_files,
    with_service,
)

DEADLINE = wanted(imagePullProgressDeadline="3m")
EXTRA = "/etc/containerd/conf.d/20-pulls.toml"


def containerd(version: str, *files: FileState) -> Snapshot:
    return node(Runtime.CONTAINERD, version, *files)


def change(found: Snapshot, settings: Mapping[str, Setting] = DEADLINE) -> Change:
    return changed(found, Runtime.CONTAINERD, settings)


def refused(found: Snapshot, settings: Mapping[str, Setting] = DEADLINE) -> LayoutError:
    with pytest.raises(LayoutError) as error:
        change(found, settings)
    return error.value


def test_a_version_2_file_to_the_byte() -> None:
    (edit,) = change(containerd("1.7.24", regular(CONTAINERD, V2))).files
    line = '    image_pull_progress_timeout = "3m"\n'
    above = '    sandbox_image = "registry.k8s.io/pause:3.9"   # as kubeadm wants it\n'
    assert edit.after.decode() == V2.replace(above, above + line)
    assert edit.reasons == ("image_pull_progress_timeout: not set → 3m (playbook p)",)


def test_a_version_3_file_to_the_byte() -> None:
    (edit,) = change(containerd("2.1.0", regular(CONTAINERD, V3))).files
    above = "    snapshotter = 'overlayfs'\n"
    assert edit.after.decode() == V3.replace(above, above + '    image_pull_progress_timeout = "3m"\n')


def test_containerd_2_migrates_a_version_2_file_so_its_table_stays_the_home() -> None:
    (edit,) = change(containerd("2.3.4", regular(CONTAINERD, V2))).files
    assert added(edit) == ['image_pull_progress_timeout = "3m"']
    assert b'\n  [plugins."io.containerd.grpc.v1.cri"]\n' in edit.after


def test_an_existing_value_is_replaced_and_its_comment_kept() -> None:
    text = V3 + "\n[plugins.'io.containerd.transfer.v1.local']\n  max_concurrent_downloads = 9 # was 3\n"
    (edit,) = change(containerd("2.1.0", regular(CONTAINERD, text)), wanted(maxConcurrentDownloads=6)).files
    assert edit.after.decode() == text.replace("= 9 # was 3", "= 6 # was 3")


def test_two_intents_are_one_edit_of_one_file_and_one_restart() -> None:
    both = wanted(imagePullProgressDeadline="3m", maxConcurrentDownloads=6)
    found = change(containerd("1.7.24", regular(CONTAINERD, V2)), both)
    assert [edit.path for edit in found.files] == [CONTAINERD]
    assert added(found.files[0]) == ['image_pull_progress_timeout = "3m"', "max_concurrent_downloads = 6"]
    assert (found.units, found.disruption) == (("containerd.service",), Disruption.RESTART_RUNTIME)


@pytest.mark.parametrize(("version", "config"), [("1.7.24", 2), ("2.0.0", 3), ("2.3.4", 3)])
def test_without_a_file_containerd_runs_on_defaults_and_a_minimal_file_is_created(version: str, config: int) -> None:
    (edit,) = change(containerd(version)).files
    table = {2: '"io.containerd.grpc.v1.cri"', 3: '"io.containerd.cri.v1.images"'}[config]
    text = f'version = {config}\n\n[plugins.{table}]\n  image_pull_progress_timeout = "3m"\n'
    assert (edit.before, edit.after.decode()) == (None, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "gives no version (so 1)"),
        ('disabled_plugins = []\n[plugins.cri]\nsandbox_image = "p"\n', "gives no version (so 1)"),
        ("version = 1\n", "is of version 1"),
        ("version = 3\n", "reads config version 2"),
        ("version = 2\nthis is not toml\n", "is not readable TOML"),
    ],
)
def test_files_that_are_refused_on_containerd_1(text: str, said: str) -> None:
    assert said in str(refused(containerd("1.7.24", regular(CONTAINERD, text))))


@pytest.mark.parametrize(
    ("version", "text", "key"),
    [
        ("1.7.24", 'version = 2\n[plugins.cri]\nsandbox_image = "p"\n', "plugins"),
        ("1.7.24", 'version = 2\ndisabled_plugins = ["cri"]\n', "disabled_plugins"),
        ("2.1.9", 'version = 3\nrequired_plugins = ["io.containerd.grpc.v1.cri", "cri"]\n', "required_plugins"),
    ],
)
def test_a_plugins_name_of_version_1_keeps_containerd_from_starting(version: str, text: str, key: str) -> None:
    """Seen with the real ones: `invalid plugin key URI "cri"`. A restart would be the end of a containerd that was started before that edit."""
    assert f'{CONTAINERD}: {key} has "cri"' in str(refused(containerd(version, regular(CONTAINERD, text))))


def test_containerd_2_starts_with_names_that_it_ignores_or_translates() -> None:
    stray = regular(CONTAINERD, V3 + '[plugins.cri]\nsandbox_image = "p"\n')
    assert change(containerd("2.1.9", stray, regular(EXTRA, 'disabled_plugins = ["aufs"]\n'))).files


def test_version_4_is_for_containerd_2_3() -> None:
    text = V3.replace("version = 3", "version = 4")
    assert change(containerd("2.3.4", regular(CONTAINERD, text))).files
    assert "reads config versions 2 to 3" in str(refused(containerd("2.2.0", regular(CONTAINERD, text))))


def test_a_file_that_the_agent_did_not_list_is_refused() -> None:
    found = containerd("2.1.0")
    files = {path: state for path, state in found.files.items() if path != CONTAINERD}
    assert refused(replace(found, files=files)).reference == "layout-not-understood"


# --------------------------------------------------------------------------------------------------- already in force


@pytest.mark.parametrize(
    ("version", "default"), [("1.7.0", "1m"), ("1.7.9", "60s"), ("1.7.10", "5m"), ("2.1.0", "300s")]
)
def test_the_wanted_default_is_not_written_unless_pinned(version: str, default: str) -> None:
    main = regular(CONTAINERD, V3 if version[0] == "2" else V2)
    found = change(containerd(version, main), wanted(imagePullProgressDeadline=default))
    assert found.files == ()
    assert found.units == ()
    assert "default and not written" in found.notes[0]
    pinned = change(containerd(version, main), wanted(imagePullProgressDeadline=default, pin=True))
    assert added(pinned.files[0]) == [f'image_pull_progress_timeout = "{default}"']


def test_an_equal_value_needs_no_change() -> None:
    text = V2.replace("sandbox_image =", 'image_pull_progress_timeout = "180s"\n    sandbox_image =')
    assert change(containerd("1.7.24", regular(CONTAINERD, text))) == Change()


@pytest.mark.parametrize(
    ("version", "wants", "way"),
    [
        ("1.7.3", "3m", "loosens: 1m0s (containerd's default) → 3m"),
        ("1.7.24", "3m", "tightens: 5m0s (containerd's default) → 3m"),
        ("2.0.0", "10m", "loosens: 5m0s (containerd's default) → 10m"),
    ],
)
def test_the_direction_is_shown(version: str, wants: str, way: str) -> None:
    main = regular(CONTAINERD, V3 if version[0] == "2" else V2)
    notes = change(containerd(version, main), wanted(imagePullProgressDeadline=wants)).notes
    assert notes[0] == f"imagePullProgressDeadline {way}"


def test_a_deadline_that_was_off_is_tightened() -> None:
    text = V2.replace("sandbox_image =", 'image_pull_progress_timeout = "0s"\n    sandbox_image =')
    notes = change(containerd("1.7.24", regular(CONTAINERD, text))).notes
    assert notes == (f"imagePullProgressDeadline tightens: off ({CONTAINERD}) → 3m",)


# ------------------------------------------------------------------------------------------------- imported files


def test_containerd_2_merges_imports_key_by_key_so_the_file_that_sets_the_key_is_edited() -> None:
    text = "[plugins.'io.containerd.cri.v1.images']\nimage_pull_progress_timeout = '1m' # seed 1\n"
    (edit,) = change(containerd("2.1.0", regular(CONTAINERD, V3), regular(EXTRA, text))).files
    assert (edit.path, edit.after.decode()) == (EXTRA, text.replace("'1m'", '"3m"'))


def test_containerd_2_leaves_an_import_that_does_not_set_the_key() -> None:
    text = "[plugins.'io.containerd.cri.v1.images']\nsnapshotter = 'native'\n"
    (edit,) = change(containerd("2.1.0", regular(CONTAINERD, V3), regular(EXTRA, text))).files
    assert edit.path == CONTAINERD


def test_containerd_1_replaces_the_whole_table_of_the_plugin_so_the_last_file_with_it_is_edited() -> None:
    main = V2.replace("sandbox_image =", 'image_pull_progress_timeout = "3m"\n    sandbox_image =')
    text = '[plugins."io.containerd.grpc.v1.cri"]\n  sandbox_image = "pause"\n'
    (edit,) = change(containerd("1.7.24", regular(CONTAINERD, main), regular(EXTRA, text))).files
    assert (edit.path, added(edit)) == (EXTRA, ['image_pull_progress_timeout = "3m"'])


def test_the_later_of_two_imports_wins_and_imports_of_imports_come_last() -> None:
    deep = "/etc/containerd/deep.toml"
    sets = "[plugins.'io.containerd.cri.v1.images']\nimage_pull_progress_timeout = '1m'\n"
    first = regular("/etc/containerd/conf.d/10-a.toml", 'imports = ["../deep.toml"]\n' + sets)
    found = containerd("2.1.0", regular(CONTAINERD, V3), first, regular(EXTRA, sets), regular(deep, sets))
    assert [edit.path for edit in change(found).files] == [deep]
    assert [edit.path for edit in change(with_files(found, regular(deep, ""))).files] == [EXTRA]


def test_a_relative_pattern_is_refused_where_releases_resolve_it_differently() -> None:
    """Found with a real containerd 1.6.20, which resolves it below its working directory; 1.7.24 beside the file."""
    text = V2.replace("/etc/containerd/conf.d/*.toml", "conf.d/*.toml")
    with pytest.raises(LayoutError, match="relative pattern"):
        change(containerd("1.7.24", regular(CONTAINERD, text)))


def test_an_unlisted_import_is_refused() -> None:
    text = V3.replace('imports = ["/etc/containerd/conf.d/*.toml"]', 'imports = ["/opt/site.toml"]')
    assert "does not contain /opt/site.toml" in str(refused(containerd("2.1.0", regular(CONTAINERD, text))))


def test_an_import_that_is_missing_is_told_with_the_file_that_names_it() -> None:
    first = regular(EXTRA, "imports = ['/etc/containerd/gone.toml']\n")
    found = containerd("2.1.0", regular(CONTAINERD, V3), first, absent("/etc/containerd/gone.toml"))
    assert f"{EXTRA} imports /etc/containerd/gone.toml" in str(refused(found))


def test_a_table_of_another_config_version_is_refused() -> None:
    stray = V3 + '[plugins."io.containerd.grpc.v1.cri"]\nimage_pull_progress_timeout = "1m"\n'
    assert refused(containerd("2.3.4", regular(CONTAINERD, stray))).reference == "containerd-config"


@pytest.mark.parametrize(
    ("version", "does"), [("2.0.0", "ignores the tables of version 2"), ("2.3.4", "does not start")]
)
def test_an_import_of_a_higher_version_is_refused(version: str, does: str) -> None:
    """Seen with a real 2.1.9: the version given last is that of all files, so the main file's table had no effect."""
    newer = regular(EXTRA, "version = 3\n[ttrpc]\nuid = 0\n")
    assert does in str(refused(containerd(version, regular(CONTAINERD, V2), newer)))


@pytest.mark.parametrize(("version", "home"), [("2.1.9", CONTAINERD), ("2.3.4", EXTRA)])
def test_up_to_2_2_a_table_of_version_2_overrides_one_of_version_3_in_a_later_file(version: str, home: str) -> None:
    main = V2.replace("sandbox_image =", 'image_pull_progress_timeout = "9m0s"\n    sandbox_image =')
    later = "[plugins.'io.containerd.cri.v1.images']\nimage_pull_progress_timeout = '8m0s'\n"
    (edit,) = change(containerd(version, regular(CONTAINERD, main), regular(EXTRA, later))).files
    assert edit.path == home


@pytest.mark.parametrize("last", ["", "version = 3\n"])
def test_a_table_of_version_2_that_containerd_2_1_ignores_is_refused(last: str) -> None:
    older = '[plugins."io.containerd.grpc.v1.cri"]\nimage_pull_progress_timeout = "1m"\n'
    first, second = regular("/etc/containerd/conf.d/10-a.toml", older), regular(EXTRA, last)
    mixed = (regular(CONTAINERD, V3), first, second)
    assert "ignores" in str(refused(containerd("2.1.9", *mixed)))
    assert [edit.path for edit in change(containerd("2.3.4", *mixed)).files] == [first.path]


def test_an_import_of_a_lower_version_makes_containerd_2_1_read_tables_of_both() -> None:
    older = 'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\nmax_concurrent_downloads = 5\n'
    found = containerd("2.1.9", regular(CONTAINERD, V3), regular(EXTRA, older))
    assert [edit.path for edit in change(found).files] == [CONTAINERD]
    (edit,) = change(found, wanted(maxConcurrentDownloads=6)).files
    assert (edit.path, added(edit)) == (EXTRA, ["max_concurrent_downloads = 6"])


def test_up_to_2_2_a_registry_table_of_version_2_replaces_that_of_version_3() -> None:
    main = V3 + "\n[plugins.'io.containerd.cri.v1.images'.registry]\n  config_path = '/etc/site/certs.d'\n"
    older = "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.registry]\n  headers = {}\n"
    mirrors = wanted(registryMirrors={"docker.io": ["https://m.example"]})
    found = change(containerd("2.1.9", regular(CONTAINERD, main), regular(EXTRA, older), absent("/etc/site")), mirrors)
    assert [edit.path for edit in found.files] == [EXTRA, "/etc/containerd/certs.d/docker.io/hosts.toml"]
    found = change(containerd("2.3.4", regular(CONTAINERD, main), regular(EXTRA, older), absent("/etc/site")), mirrors)
    assert [edit.path for edit in found.files] == ["/etc/site/certs.d/docker.io/hosts.toml"]


# ----------------------------------------------------------------------------------------- the transfer service's trap


def test_from_2_1_downloads_are_set_in_the_transfer_service_and_the_plan_gives_the_reason() -> None:
    found = change(containerd("2.1.0", regular(CONTAINERD, V3)), wanted(maxConcurrentDownloads=6))
    assert added(found.files[0]) == ["[plugins.'io.containerd.transfer.v1.local']", "max_concurrent_downloads = 6"]
    assert found.notes[0] == "maxConcurrentDownloads raises the limit: 3 (containerd's default) → 6"
    assert "fall back to local pulls" in found.notes[1]


@pytest.mark.parametrize(
    "line",
    [
        "use_local_image_pull = true",
        "disable_snapshot_annotations = false",
        "discard_unpacked_layers = true",
        "image_pull_with_sync_fs = true",
        "max_concurrent_downloads = 5",
        "registry.mirrors.'docker.io'.endpoint = ['https://m.example']",
    ],
)
def test_a_containerd_that_pulls_locally_reads_the_cri_table(line: str) -> None:
    text = V3.replace("snapshotter =", f"{line}\n    snapshotter =")
    found = change(containerd("2.1.0", regular(CONTAINERD, text)), wanted(maxConcurrentDownloads=6))
    assert added(found.files[0]) == ["max_concurrent_downloads = 6"]
    assert "pulls locally because of" in found.notes[1]


@pytest.mark.parametrize(("version", "local"), [("2.1.9", True), ("2.2.7", True), ("2.3.4", False)])
def test_keys_of_version_2_beside_the_runtimes_move_with_those_of_all_files_up_to_2_2(
    version: str, local: bool
) -> None:
    """From 2.3 on they move with the runtimes of their own file (``migrateConfig``)."""
    table = '[plugins."io.containerd.grpc.v1.cri".containerd'
    main = f"version = 2\nimports = ['{EXTRA}']\n{table}]\n  discard_unpacked_layers = true\n"
    gpu = f'version = 2\n{table}.runtimes.nvidia]\n  runtime_type = "io.containerd.runc.v2"\n'
    found = containerd(version, regular(CONTAINERD, main), regular(EXTRA, gpu))
    (edit,) = change(found, wanted(maxConcurrentDownloads=6)).files
    assert (b"transfer" not in edit.after) == local


def test_three_in_the_cri_table_would_change_how_it_pulls_and_is_refused() -> None:
    text = V3.replace("snapshotter =", "max_concurrent_downloads = 5\n    snapshotter =")
    assert "would end that" in str(
        refused(containerd("2.1.0", regular(CONTAINERD, text)), wanted(maxConcurrentDownloads=3))
    )


def test_limits_of_the_deadline_with_the_transfer_service_are_reported() -> None:
    assert "hangs before the first layer" in change(containerd("2.1.0", regular(CONTAINERD, V3))).notes[1]
    assert len(change(containerd("2.0.0", regular(CONTAINERD, V3))).notes) == 1


# ------------------------------------------------------------------------------------------------------------ the unit


@pytest.mark.parametrize("flag", ["--config ", "--config=", "-config ", "-config=", "-c ", "-c=", "--c "])
def test_another_config_by_flag_is_the_one_that_is_edited(flag: str) -> None:
    """Read with Go's own ``flag``, in 1.x and 2.x: ``config, c`` after one dash or two."""
    command = f"/usr/bin/containerd -l info {flag}/etc/site/containerd.toml"
    found = with_service(
        containerd("2.1.0", regular("/etc/site/containerd.toml", V3)), "containerd.service", f"[Service]\nExecStart={command}\n", command
    )  # fmt: skip
    assert [edit.path for edit in change(found).files] == ["/etc/site/containerd.toml"]


def test_a_containerd_that_differs_from_its_unit_is_refused() -> None:
    found = with_service(
        containerd("2.1.0"),
        "containerd.service",
        "[Service]\nExecStart=/usr/bin/containerd\n",
        "/usr/bin/containerd -l debug",
    )
    assert refused(found).reference == "layout-drifted"


def test_no_unit_no_process_and_a_pending_reload_are_refused() -> None:
    text, command = "[Service]\nExecStart=/usr/bin/containerd\n", "/usr/bin/containerd"
    none = node(Runtime.UNKNOWN, "1")
    none = replace(none, runtimes={"containerd": "containerd v2.1.0"})
    assert refused(none).reference == "no-runtime-unit"
    stale = with_service(containerd("2.1.0"), "containerd.service", text, command, NeedDaemonReload="yes")
    assert refused(stale).reference == "need-daemon-reload"


@pytest.mark.parametrize("version", ["1.7.3", "2.0.0", "2.3.4"])
def test_editing_twice_is_editing_once(version: str) -> None:
    everything = wanted(
        imagePullProgressDeadline="3m", maxConcurrentDownloads=6, registryMirrors={"docker.io": ["https://m.example"]}
    )
    found = containerd(version, regular(CONTAINERD, V3 if version[0] == "2" else V2))
    once = change(found, everything)
    again = change(applied(found, once), everything)
    assert (again.files, again.units, again.disruption) == ((), (), Disruption.NONE)

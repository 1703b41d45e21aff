"""Registry mirrors on containerd: hosts.toml without a restart, config.toml where containerd does not read it."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.plan import Change
from rollout.core.model.playbook import Disruption
from rollout.core.model.snapshot import FileState
from rollout.kubelet.node.layout import LayoutError
from rollout.kubelet.runtimes.containerd import mirrors
from rollout.kubelet.runtimes.description import Runtime
from tests.kubelet.nodes import regular
from tests.kubelet.runtimes.nodes import CERTS, CONTAINERD, V2, V3, added, changed, directory, node, wanted

MIRRORS = wanted(registryMirrors={"docker.io": ["https://a.example", "http://b.example:5000"]})
HOSTS = f"{CERTS}/docker.io/hosts.toml"
SET = '\n    [plugins."io.containerd.grpc.v1.cri".registry]\n      config_path = "{}"\n'
OURS = """\
[host."https://a.example"]
  capabilities = ["pull", "resolve"]

[host."http://b.example:5000"]
  capabilities = ["pull", "resolve"]
"""


def v2(paths: str) -> FileState:
    return regular(CONTAINERD, V2 + SET.format(paths))


def v3(more: str = "") -> FileState:
    return regular(CONTAINERD, V3.replace("snapshotter =", f"{more}\n    snapshotter ="))


def change(version: str, *files: FileState) -> Change:
    return changed(node(Runtime.CONTAINERD, version, *files), Runtime.CONTAINERD, MIRRORS)


def refused(version: str, *files: FileState) -> LayoutError:
    with pytest.raises(LayoutError) as error:
        change(version, *files)
    return error.value


@pytest.mark.parametrize("version", ["1.6.39", "1.7.24", "2.0.0", "2.3.4"])
def test_with_config_path_only_hosts_toml_changes_and_nothing_restarts(version: str) -> None:
    found = change(version, v2(CERTS))
    assert [(edit.path, edit.before, edit.after.decode()) for edit in found.files] == [(HOSTS, None, OURS)]
    assert (found.units, found.hangups, found.disruption) == ((), (), Disruption.NONE)
    assert found.files[0].reasons == (
        "mirrors of docker.io: none → https://a.example, http://b.example:5000 (playbook p)",
    )


@pytest.mark.parametrize(("version", "main"), [("1.7.24", regular(CONTAINERD, V2)), ("2.0.0", v3()), ("2.1.0", v3())])
def test_without_config_path_config_toml_changes_too_and_containerd_restarts(version: str, main: FileState) -> None:
    found = change(version, main)
    assert [edit.path for edit in found.files] == [CONTAINERD, HOSTS]
    assert added(found.files[0])[-1] == f'config_path = "{CERTS}"'
    assert (found.units, found.disruption) == (("containerd.service",), Disruption.RESTART_RUNTIME)


def test_the_default_of_several_directories_does_not_work_with_the_transfer_service() -> None:
    found = change("2.2.0", v3())
    assert [edit.path for edit in found.files] == [CONTAINERD, HOSTS]
    assert added(found.files[0])[-1] == f'config_path = "{CERTS}"'
    assert "#12415" in found.notes[0]


def test_the_default_of_several_directories_works_with_local_pulls() -> None:
    found = change("2.2.0", v3("use_local_image_pull = true"))
    assert ([edit.path for edit in found.files], found.disruption) == ([HOSTS], Disruption.NONE)


def test_of_several_directories_the_first_with_the_registry_is_edited() -> None:
    docker = "/etc/docker/certs.d"
    there = regular(f"{docker}/docker.io/hosts.toml", '[host."https://old.example"]\n')
    found = change("2.0.0", v2(f"{CERTS}:{docker}"), directory(CERTS), directory(docker), there)
    assert [edit.path for edit in found.files] == [f"{docker}/docker.io/hosts.toml"]


@pytest.mark.parametrize("key", ["mirrors", "configs"])
def test_the_deprecated_form_cannot_be_combined_with_config_path(key: str) -> None:
    old = f'\n[plugins."io.containerd.grpc.v1.cri".registry.{key}."docker.io"]\n  endpoint = ["https://m.example"]\n'
    assert refused("1.7.24", regular(CONTAINERD, V2 + old)).reference == "containerd-old-mirrors"
    assert refused("2.3.4", regular(CONTAINERD, V2 + old)).reference == "containerd-old-mirrors"


def test_a_registry_with_a_port_keeps_its_directory() -> None:
    mirrors = wanted(registryMirrors={"registry.example:5000": ["https://a.example"]})

    def path(*files: FileState) -> str:
        found = node(Runtime.CONTAINERD, "1.7.24", v2(CERTS), directory(CERTS), *files)
        return changed(found, Runtime.CONTAINERD, mirrors).files[0].path

    escaped = f"{CERTS}/registry.example_5000_/hosts.toml"
    assert path() == f"{CERTS}/registry.example:5000/hosts.toml"
    assert path(regular(escaped, 'server = "https://registry.example:5000"\n')) == escaped


def test_a_registry_that_used_the_default_directory_is_reported() -> None:
    default = regular(f"{CERTS}/_default/hosts.toml", '[host."https://all.example"]\n')
    found = change("1.7.24", v2(CERTS), directory(CERTS), default)
    assert [edit.path for edit in found.files] == [HOSTS]
    assert found.notes[0] == f"docker.io no longer uses {CERTS}/_default, which applied to it"


@pytest.mark.parametrize(("version", "empty"), [("2.2.1", True), ("2.2.2", False)])
def test_an_empty_config_path_is_no_directory_to_the_first_two_of_2_2(version: str, empty: bool) -> None:
    """`containerd config default` of 2.1 writes it; local pulls would otherwise read both default directories."""
    lines = "use_local_image_pull = true\n    registry.config_path = ''"
    found = change(version, v3(lines), directory(CERTS))
    assert [edit.path for edit in found.files] == ([CONTAINERD] if empty else []) + [HOSTS]


@pytest.mark.parametrize("spelled", [f"{CERTS}/", "/etc//containerd/certs.d", f"{CERTS}/:/etc/docker/certs.d"])
def test_a_directory_that_is_spelled_otherwise_is_the_same(spelled: str) -> None:
    """A file that is there was planned as a new one, under a path with two slashes."""
    there = regular(f"{CERTS}/docker.io/hosts.toml", 'server = "https://registry-1.docker.io"\n')
    (edit,) = change(
        "2.0.0",
        v3(f"    [plugins.'io.containerd.cri.v1.images'.registry]\n      config_path = '{spelled}'\n"),
        there,
        directory(CERTS),
    ).files
    assert (edit.path, edit.before) == (there.path, there.content)


def test_an_unlisted_directory_is_refused() -> None:
    assert refused("1.7.24", v2("/opt/registries")).reference == "layout-not-understood"


# --------------------------------------------------------------------------------------------------------- hosts.toml

EXISTING = """\
# rack 12's registries
server = "https://registry-1.docker.io"

# the old one, kept until March
[host."https://old.example"]
  capabilities = ["pull"]   # never resolve
  [host."https://old.example".header]
    X-Rack = "12"
"""


def test_our_mirrors_come_before_existing_hosts_which_keep_their_bytes() -> None:
    merged = mirrors.merged(EXISTING, ("https://a.example", "http://b.example:5000"), "hosts.toml")
    head, old = EXISTING.split("# the old one")
    assert merged == f"{head}{OURS}\n# the old one{old}"
    assert mirrors.hosts(merged, "") == ("https://a.example", "http://b.example:5000", "https://old.example")


def test_merging_twice_is_merging_once() -> None:
    once = mirrors.merged(EXISTING, ("https://a.example",), "hosts.toml")
    assert mirrors.merged(once, ("https://a.example",), "hosts.toml") == once
    assert mirrors.merged(once, ("https://a.example/",), "hosts.toml") == once


def test_a_mirror_between_others_is_inserted_in_order() -> None:
    merged = mirrors.merged(OURS, ("https://a.example", "https://m.example", "http://b.example:5000"), "hosts.toml")
    assert mirrors.hosts(merged, "") == ("https://a.example", "https://m.example", "http://b.example:5000")


@pytest.mark.parametrize(
    ("text", "wants", "reference"),
    [
        (OURS, ("http://b.example:5000", "https://a.example"), "mirrors-order"),
        (EXISTING, ("https://old.example",), "mirror-not-capable"),
        ('host = {"https://x.example" = {}}\n', ("https://a.example",), "toml-unprovable"),
        ("host = 5\n", ("https://a.example",), "toml-unprovable"),
        # a host without a header, which containerd 2 ignores
        ("host.'https://a.example'.capabilities = ['pull', 'resolve']\n", ("https://a.example",), "toml-unprovable"),
        ("[host]\n'https://a.example' = {}\n", ("https://a.example",), "toml-unprovable"),
        ("[host\n", ("https://a.example",), "toml-unreadable"),
    ],
)
def test_files_that_are_refused(text: str, wants: tuple[str, ...], reference: str) -> None:
    with pytest.raises(LayoutError) as error:
        mirrors.merged(text, wants, "hosts.toml")
    assert error.value.reference == reference


ROOTED = """\
[host."https://m.example/v2/cache"]
  capabilities = ["pull", "resolve"]
  override_path = true

[host."https://m.example/mirror/v2"]
  capabilities = ["pull", "resolve"]
"""


def test_a_mirror_with_a_path_gets_override_path() -> None:
    """containerd would request the first one at /v2/cache/v2; the path of the second one ends as required."""
    wants = ("https://m.example/v2/cache/", "https://m.example/mirror/v2")
    assert mirrors.merged("", wants, "hosts.toml") == ROOTED
    assert mirrors.merged(ROOTED, wants, "hosts.toml") == ROOTED


def test_an_existing_mirror_without_override_path_is_refused() -> None:
    text = ROOTED.replace("override_path = true", "override_path = false")
    with pytest.raises(LayoutError, match="containerd asks it at /v2/cache/v2") as error:
        mirrors.merged(text, ("https://m.example/v2/cache",), "hosts.toml")
    assert error.value.reference == "mirror-path"


URLS = [f"https://{letter}.example" for letter in "abcde"]


@given(
    st.lists(st.sampled_from(URLS), unique=True, max_size=4),
    st.lists(st.sampled_from(URLS), unique=True, min_size=1, max_size=3),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_any_hosts_toml_gets_our_mirrors_first_and_keeps_the_rest_unless_in_another_order(
    there: list[str], ours: list[str], end: str, closed: bool
) -> None:
    blocks = [f"# {url}{end}[host.'{url}'] # kept{end}  skip_verify = true{end}" for url in there]
    text = (end.join(["server = 'https://r.example'" + end, *blocks])).rstrip("\r\n") + (end if closed else "")
    wanted_order = [*ours, *(url for url in there if url not in ours)]
    if [url for url in wanted_order if url in there] != there:
        with pytest.raises(LayoutError, match="in another order"):
            mirrors.merged(text, tuple(ours), "hosts.toml")
        return
    merged = mirrors.merged(text, tuple(ours), "hosts.toml")
    assert list(mirrors.hosts(merged, "")) == wanted_order
    assert mirrors.merged(merged, tuple(ours), "hosts.toml") == merged
    document = tomllib.loads(merged)
    assert document["server"] == "https://r.example"
    assert all(document["host"][url] == {"skip_verify": True} for url in there)
    kept = iter(merged.splitlines())
    assert all(line in kept for line in text.splitlines())

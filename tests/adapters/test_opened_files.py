"""Files that a project names: no pipe blocks, no device is read without an end, and sizes are bounded."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rollout.adapters import files
from rollout.adapters.endpoints import ClientCertificate, TokenFile, authorities
from rollout.adapters.files import FolderFiles, content_of
from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig
from rollout.adapters.ssh import certificates
from rollout.adapters.ssh.identities import _blob_in
from rollout.adapters.ssh.known_hosts import _read
from rollout.adapters.ssh.ssh_config import SshConfig
from rollout.errors import RolloutError

READERS: tuple[Callable[[Path], object], ...] = (
    SshConfig.read,
    lambda path: SshConfig.read(_including(path)),
    _read,
    certificates.read,
    lambda path: load_kubeconfig(str(path)),
    lambda path: TokenFile(path).read(),
    lambda path: authorities(str(path)),
    lambda path: authorities("", ClientCertificate(str(path))),
)


def _including(path: Path) -> Path:
    config = path.parent / "config"
    config.write_text(f"Include {path}\n")
    config.chmod(0o600)
    return config


@pytest.fixture(params=["pipe", "zero", "socket-like"])
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "odd"
    if request.param == "pipe":
        os.mkfifo(path, 0o600)
    else:
        path.symlink_to("/dev/zero" if request.param == "zero" else "/dev/full")
    return path


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_refused_at_once(odd: Path, reader: Callable[[Path], object]) -> None:
    with pytest.raises((RolloutError, OSError), match=r"not a regular file|must (belong|not be)"):
        reader(odd)


@pytest.mark.root
@pytest.mark.parametrize(
    "reader", [lambda path: content_of(path, 10), lambda path: FolderFiles(path.parent).content("odd")]
)
def test_a_device_is_refused_before_it_is_opened(tmp_path: Path, reader: Callable[[Path], object]) -> None:
    """No driver has this number: to open it would fail with "No such device or address"."""
    path = tmp_path / "odd"
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(250, 77))
    with pytest.raises((RolloutError, OSError), match="not a regular file"):
        reader(path)


def test_a_public_key_that_is_no_file_is_none(odd: Path) -> None:
    assert _blob_in(odd) == b""


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.touch()
    os.truncate(large, 1 << 40)
    with pytest.raises(OSError, match="it is larger than 1024 KiB"):
        content_of(large, files.MOST_KEY_BYTES)
    with pytest.raises(RolloutError, match="larger than"):
        SshConfig.read(large)


def test_dev_null_is_empty_and_a_pipe_of_the_shell_is_read_to_its_end() -> None:
    assert content_of(Path("/dev/null"), 10) == b""
    end, begin = os.pipe()

    def write() -> None:
        os.write(begin, b"one")
        os.write(begin, b"two")
        os.close(begin)

    writer = threading.Thread(target=write)
    writer.start()
    assert content_of(Path(f"/dev/fd/{end}"), 10) == b"onetwo"
    writer.join()
    os.close(end)


@pytest.mark.parametrize("path", ["/*/*/*/*/x", "~/*/*/*/*", "conf.d/*/[a-z]/?/*"])
def test_an_include_that_would_search_the_whole_disk_is_refused(tmp_path: Path, path: str) -> None:
    config = tmp_path / "config"
    config.write_text(f"Include {path}\n")
    with pytest.raises(RolloutError, match=r"config:1:1: .*more than 3 patterns .*ssh-config-not-supported"):
        SshConfig.read(config)

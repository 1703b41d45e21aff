"""Random ssh_configs, read by rollout and by ``ssh -G``: both give the same settings and refuse the same files."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

import pytest

from rollout.adapters.ssh.resolve import DEFAULT_KEYS, Resolver
from rollout.adapters.ssh.ssh_config import SshConfig
from rollout.adapters.ssh.ssh_keywords import hops
from rollout.app.ports import Target
from rollout.errors import InputError, RemoteError
from tests.adapters.ssh.configs import Drawn, drawn
from tests.sampling import sample

pytestmark = pytest.mark.process

CASES, SHARE = 2400, 240
CHUNK = 40
WORDS = {"true": "yes", "false": "no", "off": "no"}
DEFAULTS = {
    "port": "22",
    "addressfamily": "any",
    "connecttimeout": "none",
    "identitiesonly": "no",
    "stricthostkeychecking": "ask",
    "pubkeyauthentication": "yes",
    "verifyhostkeydns": "no",
    "gssapiauthentication": "no",
}


def ours(case: Drawn, path: Path) -> dict[str, object] | None:
    """``None``: refused."""
    try:
        found = SshConfig.read(path).lookup(case.host, user=case.user, local_user=our_name())
    except (InputError, RemoteError):
        return None
    said: dict[str, object] = {key: found.get(key, (value,))[0] for key, value in DEFAULTS.items()}
    for key in ("hostname", "hostkeyalias", "proxycommand", "knownhostscommand", "bindaddress", "identityagent"):
        said[key] = found.get(key, ("",))[0].removeprefix("none")
    said["user"] = found.get("user", (our_name(),))[0]
    said["hostkeyalias"] = str(said["hostkeyalias"]).lower()
    said["proxyjump"] = list(hops(found["proxyjump"][0])) if found.get("proxyjump", ("none",)) != ("none",) else []
    said["identityfile"] = found.get("identityfile", tuple(sorted(DEFAULT_KEYS)))
    said["certificatefile"] = found.get("certificatefile", ())
    said["known_hosts"] = known_hosts(case, path)
    return said


def known_hosts(case: Drawn, path: Path) -> str:
    """The files with their tokens expanded. Nothing if another setting makes the target unusable."""
    try:
        found = Resolver.reading(path).resolve(Target("n", case.host, case.user, None))
    except RemoteError:
        return ""
    return " ".join(map(str, found.known_hosts))


def theirs(case: Drawn, path: Path) -> dict[str, object] | None:
    user = ("-l", case.user) if case.user else ()
    done = subprocess.run(["ssh", "-G", "-F", path, *user, case.host], capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    found: dict[str, tuple[str, ...]] = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition(" ")
        found[key] = (*found.get(key, ()), value)
    said: dict[str, object] = {key: found.get(key, (value,))[0] for key, value in DEFAULTS.items()}
    said |= {key: WORDS.get(str(said[key]), said[key]) for key in DEFAULTS}
    for key in (
        "hostname",
        "hostkeyalias",
        "proxycommand",
        "knownhostscommand",
        "bindaddress",
        "identityagent",
        "user",
    ):
        said[key] = found.get(key, ("",))[0].removeprefix("none")
    said["proxyjump"] = [hop for text in found.get("proxyjump", ()) for hop in hops(text)]
    given = found.get("identityfile", ())
    said["identityfile"] = tuple(sorted(DEFAULT_KEYS)) if set(DEFAULT_KEYS) <= set(given) else given
    said["certificatefile"] = found.get("certificatefile", ())
    lists = (found.get(f"{whose}knownhostsfile", ("",))[0] for whose in ("user", "global"))
    files = " ".join(names for names in lists if names not in ("", "none"))
    said["known_hosts"] = files.replace(pwd.getpwuid(os.getuid()).pw_dir + "/", os.environ["HOME"] + "/")
    return said


def our_name() -> str:
    return pwd.getpwuid(os.getuid()).pw_name


@pytest.mark.parametrize("first", sample("ssh_configs", range(0, CASES, CHUNK), SHARE // CHUNK))
def test_settings_are_those_of_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    for seed in range(first, first + CHUNK):
        home = tmp_path / str(seed)
        monkeypatch.setenv("HOME", str(home))
        case = drawn(seed)
        path = case.write(home)
        our, their = ours(case, path), theirs(case, path)
        if our and their and not our["known_hosts"]:
            their["known_hosts"] = ""
        assert our == their, f"seed {seed}, host {case.host}, user {case.user}: {case.files}"

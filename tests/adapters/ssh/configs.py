"""Random ssh_configs: files that include each other, conditions, first and later values, and every spelling of words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeVar

T = TypeVar("T")

HOSTS = ("rack1-n1", "rack1-n2", "rack2-n1", "Rack1-N1", "n1.example.net", "10.0.0.1", "fd00:0::1", "127.1", "10.0x1.1")
PATTERNS = ("rack1-n1", "rack1-*", "rack?-n1", "*-n2", "*.example.net", "10.*", "fd00::1", "*", "RACK1-*", "127.0.0.1")
USERS = ("root", "ops", "sre")
NAMES = ("%h", "%h.example.net", "10.0.0.9", "N1.Example.net", "fd00:00::9", "x%%y", "rack2-n1", "0X7f.1", "012.1")
TIMES = ("5", "1m30s", "1M", "2h", "none", "0", "90s5", "1w2d3h4m5s")
BAD_VALUES = (
    "Port many", "Port 0", "Port 70000", "Port 22 23", "Port", "ConnectTimeout 5x", "ConnectTimeout 1.5", "ConnectTimeout m",
    "User \"open", "Host \"\"", "Match", "Match all host x", "Match usr x", "Match host", "IdentitiesOnly maybe", "IdentityFile",
    "AddressFamily inet4", "StrictHostKeyChecking perhaps", "ProxyJump a:b:c", "ProxyJump @x", "HostName a b", "Bogus yes",
    "UserKnownHostsFile none /a", "UserKnownHostsFile \"\"", "Match user", "User ''", "Include \"\"", "PubkeyAuthentication ask",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drawn:
    """``files`` by name; the first is the main file. Names are relative to ``~/.ssh``."""

    files: dict[str, str]
    host: str
    user: str | None

    def write(self, home: Path) -> Path:
        folder = home / ".ssh"
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_text(text.replace("{home}", str(home)), encoding="utf-8")
            path.chmod(0o600)
        return folder / next(iter(self.files))


def drawn(seed: int) -> Drawn:
    return _Draw(Random(f"ssh_config/{seed}")).all()  # noqa: S311 - reproducible on purpose


class _Draw:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._files: dict[str, str] = {}

    def all(self) -> Drawn:
        self._files["config"] = ""
        above = self._one(("", "", "IgnoreUnknown b?gus,x\nBogus 1\n"))  # for some hosts only: refused
        self._files["config"] = above + self._file(depth=0)
        return Drawn(self._files, self._one(HOSTS), self._one((None, None, None, "root")))

    def _one(self, of: tuple[T, ...]) -> T:
        return self._random.choice(of)

    def _chance(self, of_a_hundred: int) -> bool:
        return self._random.randrange(100) < of_a_hundred

    def _file(self, depth: int) -> str:
        lines: list[str] = []
        for _ in range(self._random.randint(1, 4)):
            if lines or self._chance(60):
                lines.append(self._condition())
            lines += [self._line(depth) for _ in range(self._random.randint(0, 5))]
        if self._chance(3):
            lines.insert(self._random.randint(0, len(lines)), self._one(BAD_VALUES))
        return "\n".join(lines) + self._one(("\n", "", "\r\n", "\n\n# the end"))

    def _condition(self) -> str:
        if self._chance(55):
            patterns = [
                ("!" if self._chance(20) else "") + self._one(PATTERNS) for _ in range(self._random.randint(1, 3))
            ]
            return self._spelt("Host", " ".join(self._quoted(pattern) for pattern in patterns))
        return self._spelt("Match", self._match())

    def _match(self) -> str:
        if self._chance(15):
            return self._one(("all", "all # everybody", "canonical all", "final all", "!all", "ALL"))
        criteria = []
        for _ in range(self._random.randint(1, 3)):
            name = self._one(("host", "originalhost", "user", "localuser", "host", "user", "canonical", "final"))
            negated = "!" if self._chance(25) and name != "final" else ""
            argument = ""
            if name in ("host", "originalhost"):
                argument = self._list(PATTERNS)
            elif name in ("user", "localuser"):
                argument = self._list((*USERS, "r*", "?ps"))
            mark = self._one((" ", " ", "=", "  ")) if argument else ""
            criteria.append(f"{negated}{self._cased(name)}{mark}{argument}")
        return " ".join(criteria) + self._one(("", "", " # why", "\t"))

    def _list(self, of: tuple[str, ...]) -> str:
        text = ",".join(("!" if self._chance(20) else "") + self._one(of) for _ in range(self._random.randint(1, 3)))
        return f'"{text}"' if self._chance(15) else text

    def _line(self, depth: int) -> str:
        if self._chance(12):
            return self._include(depth)
        if self._chance(8):
            return self._one(
                (
                    "",
                    "  ",
                    "# Host *",
                    "\t# User root",
                    "ServerAliveInterval 5m",
                    "SendEnv LANG LC_*",
                )
            )
        keyword, value = self._one(
            (
                ("HostName", self._one(NAMES)),
                ("User", self._quoted(self._one(USERS))),
                ("Port", self._one(("22", "2222", "0022", "65535"))),
                ("ConnectTimeout", self._one(TIMES)),
                ("IdentityFile", self._quoted(self._one(("~/.ssh/a", "/k/%h-%r", "/with blank/k", "~/.ssh/b", "none")))),
                ("CertificateFile", self._one(("~/.ssh/a-cert.pub", "/c"))),
                ("IdentitiesOnly", self._one(("yes", "no", "true", "False", "YES"))),
                ("AddressFamily", self._one(("any", "inet", "INET6"))),
                ("HostKeyAlias", self._one(("Alias", "%h", "other"))),
                ("StrictHostKeyChecking", self._one(("yes", "no", "ask", "accept-new", "off", "True"))),
                ("UserKnownHostsFile", self._one(("/k1 /k2", '"/k 1" ~/.ssh/k2', "/k/%h-%n-%p-%r-%u-%%-%i", "none", "/${HOME}/k", "/k/%k"))),
                ("GlobalKnownHostsFile", self._one(("/g1 /g2", "/g/%h", "~/g", "none"))),
                ("ProxyJump", self._one(("none", "b", "root@b:2200", "a,root@b:22", "[fd00::5]:22", "ssh://u@b:23", "%h-b", "a,b # way"))),
                ("ProxyCommand", self._one(("none", "nc %h %p", "= nc 'a b' # no comment"))),
                ("PubkeyAuthentication", self._one(("yes", "no", "unbound", "host-bound", "true"))),
                ("GSSAPIAuthentication", self._one(("yes", "no"))),
                ("CanonicalizeHostname", self._one(("no", "False"))),
                ("KnownHostsCommand", "/bin/x %H"),
                ("BindAddress", "10.0.0.7"),
                ("IdentityAgent", self._one(("none", "SSH_AUTH_SOCK", "/a/socket"))),
            )
        )  # fmt: skip
        return self._spelt(keyword, value)

    def _include(self, depth: int) -> str:
        words = []
        for _ in range(self._random.randint(1, 2)):
            name = f"{self._one(('', 'd/', 'e/'))}{self._random.randrange(3)}.conf"
            if depth < 3 and name not in self._files:
                self._files[name] = ""
                self._files[name] = self._file(depth + 1)
            absent = self._one(("nothing/*.conf", "~nobody-at-all/x", "d/absent"))
            words.append(
                self._one((name, name, f"~/.ssh/{name}", f"{{home}}/.ssh/{name}", absent)) if depth < 3 else absent
            )
        return self._spelt("Include", " ".join(map(self._quoted, words)))

    def _spelt(self, keyword: str, value: str) -> str:
        head = self._one(("", "", "  ", "\t"))
        mark = self._one((" ", " ", " ", "=", " = ", "\t", "  "))
        tail = (
            self._one(("", "", "", " ", "\f"))
            if keyword in ("ProxyCommand", "KnownHostsCommand")
            else self._one(("", "", "", " # why", " #x", "\t"))
        )
        if keyword == "ProxyJump":  # OpenSSH 9.2 takes "none # why" for a host
            tail = ""
        return f"{head}{self._cased(keyword)}{mark}{value}{tail}"

    def _cased(self, word: str) -> str:
        return self._one((word, word, word.lower(), word.upper()))

    def _quoted(self, word: str) -> str:
        if " " in word:
            return self._one((f'"{word}"', f"'{word}'", word.replace(" ", "\\ ")))
        return self._one((word, word, word, f'"{word}"', f"'{word}'", f'{word[:-1]}"{word[-1:]}"'))

"""The agent's protocol: verbs with their arguments and payloads, the lines of answers, references, and what a receipt may become.

These tables are the only place. The controller's requests (``agent_call``) and its reading of answers (``agent_lines``) use them. ``python -m
tests.agent.protocol`` writes from them the agent's part ``rollout/agent/protocol.sh`` and the diagram in ``docs/agent.md``; ``make site`` makes
the page of the protocol.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rollout.core.model.frozen import dataclass


@dataclass(frozen=True, slots=True)
class WordKind:
    """What one word of a line may be. ``what`` names it in an error after "not"; ``shown`` is its form in the reference."""

    shown: str
    pattern: re.Pattern[str]
    what: str = ""


def _kind(shown: str, pattern: str, what: str = "") -> WordKind:
    return WordKind(shown, re.compile(pattern), what)


def _choice(*words: str) -> WordKind:
    return WordKind("|".join(words), re.compile("|".join(map(re.escape, words))))


def _or_none(kind: WordKind, shown: str = "-") -> WordKind:
    """The same, or ``-`` where it does not apply."""
    return WordKind(
        kind.shown if shown == "-" else f"{kind.shown}|{shown}", re.compile(f"{shown}|(?:{kind.pattern.pattern})")
    )


# What the controller sends. Every word is of one small alphabet, so that no shell ever parses a value.

WORD: Final = _kind("WORD", r"[A-Za-z0-9_./:@%+=,-]+", "a word the agent takes")
NAME: Final = _kind("NAME", r"[A-Za-z0-9_][A-Za-z0-9_.@-]*", "a name the agent takes")
TX: Final = _kind(
    "TX", r"[A-Za-z0-9_][A-Za-z0-9_.-]*", "a transaction the agent takes"
)  # "@" would mean a template of a unit
NUMBER: Final = _kind("N", r"[0-9]{1,15}", "a number the agent takes")
FLAG: Final = _kind("1", r"1", "a flag")
MACHINE: Final = _kind("ID", r"[0-9a-f]{32}", "a machine id the agent takes")
PATH: Final = _kind("PATH", r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9_.:@%+=,-]+){2,}", "an absolute, plain path")
DIGEST: Final = _kind("SHA256", r"[0-9a-f]{64}", "a digest the agent takes")
BEFORE: Final = _kind("SHA256|absent", r"[0-9a-f]{64}|absent", "a digest the agent takes")
MODE: Final = _kind("MODE", r"[0-7]{3,4}", "a mode the agent takes")
BASE64: Final = _kind("BASE64", r"[A-Za-z0-9+/]+={0,2}|-", "base64")
PULLS: Final = _choice("refuse", "override")

# What a node answers. Other patterns, since nothing here trusts a node.

TEXT: Final = _kind("TEXT", r".*")  # all words to the end of the line
REFERENCE: Final = _kind("REFERENCE", r"[a-z][a-z0-9-]{0,40}")
COUNT: Final = _kind("N", r"[0-9]{1,18}")
ID: Final = _kind("TX", r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")  # the agent can be asked for it again
KEY: Final = _kind("KEY", r"[A-Za-z0-9_.@:-]{1,200}")
ABSOLUTE: Final = _kind("PATH", r"/[ -~]*")
EXIT: Final = _kind("code=CODE, status=STATUS", r"code=(?:exited|killed|dumped), status=[0-9A-Za-z/-]{1,60}")
_IMAGE = r"(?:[A-Za-z0-9_./:@%+=,-]{1,300}|\(unnamed\))"
IMAGES: Final = _kind("-|IMAGE…", rf"-|{_IMAGE}(?: {_IMAGE})*")
NAMES: Final = _kind(
    "-|NAME…", r"-|[A-Za-z0-9_./:@%+=,-]{1,400}(?: [A-Za-z0-9_./:@%+=,-]{1,400}){0,255}"
)  # to the end of the line
EXTENT: Final = _choice("whole", "cut")
SYSCTL: Final = _kind("PATH", r"[a-z_]{1,40}(?:/[a-z_]{1,40}){1,3}")
INTEGER: Final = _kind("N", r"-?[0-9]{1,18}")
FILE_SYSTEM: Final = _kind("KIND", r"[A-Za-z0-9_./-]{1,40}")
ENCODED: Final = _kind("BASE64", r"\S*")  # decoded strictly


@dataclass(frozen=True, slots=True)
class Argument:
    """``default``: what the agent takes where the request has none; ``None``: each verb that has it requires it."""

    kind: WordKind
    default: str | None
    meaning: str


ARGUMENTS: Final[Mapping[str, Argument]] = MappingProxyType(
    {
        "tx": Argument(TX, "", "the transaction"),
        "run": Argument(NAME, "", "the run, or the freeze, that has this token"),
        "counter": Argument(NUMBER, "", "the token's number: it only grows"),
        "machine": Argument(MACHINE, "", "the machine id of the plan's snapshot"),
        "guard": Argument(NUMBER, "120", "seconds until the guard fires"),
        "keep": Argument(NUMBER, "3", "how many confirmed transactions stay on the node"),
        "unit": Argument(NAME, "kubelet.service", "the kubelet's unit"),
        "healthz": Argument(NUMBER, "0", "the kubelet's health port; 0: not requested"),
        "force": Argument(
            FLAG,
            "0",
            "status: take the node over from a live claim. revert: also over foreign bytes or another kubelet",
        ),
        "claim": Argument(FLAG, "0", "accept the token"),
        "measure": Argument(FLAG, "0", "measure units, processes, health and files"),
        "unread": Argument(FLAG, "0", "a kubelet with an unreadable log may be healthy"),
        "evidence": Argument(FLAG, "0", "tell the last log lines from before the revert"),
        "void": Argument(FLAG, "0", "with a claim: where TX has no receipt, refuse a later apply of it"),
        "strays": Argument(FLAG, "0", "list our files outside the state, as a cleanup does"),
        "roles": Argument(
            FLAG, "0", "tell what shows a node of the control plane: static pods, and the kubelet's unit"
        ),
        "pulls": Argument(PULLS, "", "refuse while images are pulled, or only name the pulls"),
    }
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a payload or of an answer: a word, then these. ``fields``: what each of them is called in the reference, and its kind."""

    fields: tuple[tuple[str, WordKind], ...]
    meaning: str

    def shown(self, word: str) -> str:
        return " ".join((word, *(name or kind.shown for name, kind in self.fields)))


PAYLOADS: Final[Mapping[str, Line]] = MappingProxyType(
    {
        "file": Line(
            (("", NUMBER), ("", PATH), ("BEFORE", BEFORE), ("AFTER", DIGEST), ("", MODE), ("", BASE64)),
            "PATH gets these bytes, N from 1. BEFORE is the digest expected now, AFTER that of the new bytes. MODE counts only if PATH is absent",
        ),
        "unit": Line((("", NAME),), "restart it, in this order (a runtime before the kubelet)"),
        "hangup": Line((("", NAME),), "send SIGHUP to its main process, before any restart"),
        "argument": Line((("", BASE64),), "must be one word of the kubelet's command line after the restart"),
        "path": Line((("", PATH),), "report this file"),
        "command": Line((("", NAME), ("SECONDS", NUMBER), ("", BASE64)), "a command gate: run this shell command line"),
        "who": Line((("", BASE64),), "the operator"),
        "why": Line((("", BASE64),), "the reason"),
    }
)

_RECEIPT = "tx=TX run=RUN counter=N state=STATE cause=CAUSE left=SECONDS finished=0|1"

ANSWERS: Final[Mapping[str, Line]] = MappingProxyType(
    {
        "refused": Line(
            (("", REFERENCE), ("", TEXT)),
            "refused, and nothing was touched (but see `too-late`, `receipt-unreadable`, and `still-needed` after its `left` lines)",
        ),
        "failed": Line((("", REFERENCE), ("", TEXT)), "a revert that has not ended; its receipt stays `reverting`"),
        "say": Line((("", TEXT),), "REFERENCE TEXT: evidence for people"),
        "token": Line(
            (("COUNTER", COUNT), ("RUN", _or_none(ID)), ("", _choice("live", "ended"))),
            "the newest claim that this node accepted (`token 0 - ended`: none)",
        ),
        "voided": Line((("", ID),), "no receipt of TX, and stored durably: a later apply of it is refused"),
        "receipt": Line(((_RECEIPT, TEXT),), "of the transaction in the request; no line: there is none"),
        "history": Line(((_RECEIPT, TEXT),), "all transactions, newest first, at most 8"),
        "healthy": Line(
            (("", _choice("yes", "no")), ("", TEXT)),
            "the checks after a restart; the last line counts. confirm and status report only a `no`: after a revert, a unit does not run with the old files",
        ),
        "exited": Line((("", EXIT),), "the last exit that systemd reported before the old files were in force"),
        "log": Line((("", ENCODED),), "the last lines in the journal before that, at most 20 and 4,000 bytes"),
        "fact": Line((("", KEY), ("", TEXT)), "see the facts below"),
        "unit": Line(
            (("", KEY), ("PROPERTY", KEY), ("", TEXT)), "a property of the kubelet's unit, as systemd prints it"
        ),
        "process": Line((("PID", COUNT), ("", ENCODED)), "the kubelet's `/proc/PID/cmdline`"),
        "service": Line((("", KEY), ("PROPERTY", KEY), ("", TEXT)), "the same of a runtime's unit that is loaded"),
        "serving": Line((("", KEY), ("PID", COUNT), ("", ENCODED)), "the command line of such a unit's main process"),
        "pulls": Line(
            (("", IMAGES),), "the pulls under way, at most 20, `(unnamed)` for one without a name; no line: unknown"
        ),
        "healthz": Line(
            (("", TEXT),),
            "`ok`, `off`, `refused`, `timeout`, `no-answer`, `status NNN`, `not-its-own`, `not-observed`; no line: no program for the request",
        ),
        "lenient": Line(
            (("", COUNT),),
            "warnings of this process that it ignores a part of its configuration; no line: its log cannot be read",
        ),
        "took": Line(
            (("MILLISECONDS", COUNT),), "from the beginning of the verb to its measurement, by the node's clock"
        ),
        "file": Line(
            (
                ("KIND", _choice("regular", "absent", "directory", "symlink", "other")),
                ("MODE", _or_none(COUNT)),
                ("UID:GID", _or_none(KEY)),
                ("SIZE", _or_none(COUNT)),
                ("SHA256", _or_none(DIGEST)),
                ("", ABSOLUTE),
                ("", _choice("+", "-")),
            ),
            "`+`: its bytes are in the next `content` line (regular files up to 128 KiB); `-` where a field does not apply; a regular file without a digest could not be read",
        ),
        "content": Line(
            (("", ENCODED),), "the bytes of all files with `+` since the last such line, one after the other"
        ),
        "command": Line(
            (("", KEY), ("STATUS", COUNT), ("", ENCODED)),
            "a command gate's exit status (124: timed out); unless that is 0, the last 200 bytes of its output (`-`: none)",
        ),
        "left": Line(
            (("", TEXT),),
            "a path or unit of rollout that still exists, or may again after a power cut; no line: nothing is left",
        ),
        "expected": Line(
            (
                ("", ID),
                ("STATE", KEY),
                ("SEQ", COUNT),
                ("PLACE", COUNT),
                ("BEFORE", _or_none(DIGEST, "absent")),
                ("AFTER", _or_none(DIGEST, "absent")),
                ("MODE", _or_none(COUNT)),
                ("OWNER", _or_none(KEY)),
                ("", ABSOLUTE),
            ),
            "a file of a transaction, and the places of its apply and of its requested revert (0: none) among all of the node",
        ),
        "stale": Line(
            (("", _choice("edited", "replaced")), ("SECONDS", COUNT), ("UNIT", KEY), ("", ABSOLUTE)),
            "PATH changed so long after the start of UNIT's process, which reads it at its start: its content, or only its inode",
        ),
        "kubelet": Line(
            (("TX", KEY), ("BEFORE", KEY), ("NOW", KEY)),
            "SIZE-MTIME of the kubelet's binary at the newest transaction, and now (`unknown`: not found)",
        ),
        "kubelet-root": Line((("", ABSOLUTE),), "the running kubelet's `--root-dir`, or its default"),
        "cgroups": Line(
            (("", EXTENT), ("PATH…", NAMES)),
            "control groups at the top, and slices in a slice, but none of pods; of v1 those that each hierarchy has",
        ),
        "sockets": Line((("", EXTENT), ("PATH…", NAMES)), "UNIX sockets `*.sock` that a process listens at"),
        "devices": Line(
            (("", EXTENT), ("PATH…", NAMES)),
            "those of NVIDIA's driver: `/dev/nvidia*`, `/run/nvidia/driver/dev/nvidia*`, `/proc/driver/nvidia/gpus/*`",
        ),
        "manifests": Line(
            (("FOLDER", ABSOLUTE), ("", EXTENT), ("NAME…", NAMES)), "files in a folder that may have static pods"
        ),
        "sysctl": Line((("PATH", SYSCTL), ("", INTEGER)), "a kernel setting, below `/proc/sys`"),
        "swaps": Line((("", EXTENT), ("DEVICE:KIND:KIB:USED…", NAMES)), "the swap in use"),
        "room": Line(
            (
                ("kubelet|UNIT", KEY),
                ("", ABSOLUTE),
                ("", FILE_SYSTEM),
                ("KIB", COUNT),
                ("FREE", COUNT),
                ("INODES", COUNT),
                ("FREE", COUNT),
            ),
            "the file system of the kubelet's root, or of the images of a runtime; free for users other than root",
        ),
        "inhibit-delay": Line((("MICROSECONDS", COUNT),), "logind's InhibitDelayMaxSec in force"),
        "processes": Line(
            (("UNIT", KEY), ("", EXTENT), ("NAME:COUNT…", NAMES)), "in the control group of a runtime's unit, by name"
        ),
        "started": Line((("SECONDS", COUNT),), "the age of the unit's process"),
        "end": Line((("VERB", REFERENCE),), "the last line; without it the answer was cut off"),
    }
)

FACTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "machine-id, boot-id, uptime": "of the node",
        "frozen": "TOKEN NAME OPERATOR REASON of a freeze in force; the last two in base64",
        "kubelet-version, systemd, runtime-NAME": "the version, as printed",
        "room-kib, state-dir-fs": "free space and kind of the state's file system",
        "hostname, os": "`/etc/hostname`; ID of `/etc/os-release`",
        "manager-NAME": "marks of a tool that configures this node",
        "cgroup": "`v1` or `v2`",
        "kubeadm-upgraded SECONDS PATH": "the newest copy that kubeadm kept of a configuration that it rewrote",
        "config-dir-alpha": "the kubelet's process has `KUBELET_CONFIG_DROPIN_DIR_ALPHA`",
        "reboot-pending": "the mark of a reboot to come",
        "hard-links": "files that are shown and have more names",
        "loaded.UNIT": "the confirmed transaction that started the process of UNIT",
        "odd-names": "COUNT PATH: files that are read here and have names outside the alphabet; the first of them",
        "WHAT-truncated": "more than 64 files match",
    }
)


@dataclass(frozen=True, slots=True)
class VerbForm:
    """``needs`` and ``takes``: its arguments. ``answers``: the lines that its answer may have, and in addition ``refused``, ``say`` and ``end``."""

    needs: tuple[str, ...]
    takes: tuple[str, ...]
    payload: tuple[str, ...]
    answers: tuple[str, ...]
    meaning: str
    reads: bool = False
    """It changes nothing on the node."""


_STATE = ("token", "history", "fact")
_MEASURED = ("unit", "process", "service", "pulls", "healthz", "lenient", "file")
_SURROUNDINGS = (
    "kubelet-root", "cgroups", "sockets", "devices", "manifests", "sysctl", "swaps", "room", "inhibit-delay", "processes",
)  # fmt: skip
_REVERTED = ("receipt", "healthy", "exited", "log", "failed")

VERBS: Final[Mapping[str, VerbForm]] = MappingProxyType(
    {
        "snapshot": VerbForm(
            (),
            ("unit", "healthz"),
            (),
            (*_STATE, *_MEASURED, "serving", "content", "stale", *_SURROUNDINGS),
            "what a plan needs of the node",
            reads=True,
        ),
        "status": VerbForm(
            (),
            ("tx", "strays", "roles", "claim", "run", "counter", "force", "void", "measure", "unit", "healthz"),
            ("path", "command"),
            (*_STATE, *_REVERTED, "voided", "left", "manifests", *_MEASURED, "command"),
            "token and receipts; with `claim`, `measure`, `strays` or `roles` more. Without a claim it changes nothing, but starts a guard again that somebody stopped",
        ),
        "verify": VerbForm(
            (),
            ("unit", "healthz"),
            ("path",),
            (*_STATE, *_MEASURED, "expected", "kubelet", "stale", "started"),
            "for each path that a transaction here touched, what it held before and after, and what it contains",
            reads=True,
        ),
        "apply": VerbForm(
            ("tx", "run", "counter"),
            ("machine", "guard", "keep", "unit", "healthz", "unread", "pulls", "measure"),
            ("file", "unit", "hangup", "argument", "path"),
            ("token", "fact", *_REVERTED, *_MEASURED, "took"),
            "stage, arm, replace the files, restart, check. Repeated, it only reports the receipt",
        ),
        "confirm": VerbForm(
            ("tx", "run", "counter"),
            ("keep",),
            (),
            ("receipt", "healthy"),
            "the change stays: receipt first, then the guard. Too late, it reverts. It prunes older transactions",
        ),
        "revert": VerbForm(
            ("tx", "run", "counter"),
            ("force", "evidence"),
            (),
            _REVERTED,
            "the old files, to the end: restart and check too",
        ),
        "freeze": VerbForm(
            ("run", "counter"),
            (),
            ("who", "why"),
            ("fact",),
            "from now on refuse every apply and forget, whichever controller asks; it fences no run",
        ),
        "unfreeze": VerbForm(
            ("run", "counter"),
            (),
            ("who", "why"),
            ("fact",),
            "lift it; the mark stays, so that a delayed freeze is fenced",
        ),
        "cleanup": VerbForm(
            ("run", "counter"),
            (),
            (),
            ("left",),
            "end the claim, and remove what finished transactions left outside the state; durable when answered",
        ),
        "forget": VerbForm(
            ("run", "counter"), (), (), ("fact", "left"), "remove all of the state; refused while anything needs it"
        ),
    }
)
"""The verbs of the controller."""

TRIGGERS: Final = ("guard", "watch", "boot", "leave", "try")
"""The verbs of the node's own units."""

REFUSED: Final = (
    "torn-program",
    "shell-not-supported",
    "program-failed",
    "bad-argument",
    "no-flock",
    "locked",
    "fenced",
    "ended-here",
    "claimed",
    "frozen",
    "voided",
    "machine-id-changed",
    "state-not-writable",
    "state-not-ours",
    "state-not-persistent",
    "systemd-not-answering",
    "need-daemon-reload",
    "unit-masked",
    "unit-not-found",
    "unit-not-running",
    "guard-too-short",
    "no-room",
    "read-only",
    "staging-failed",
    "not-a-regular-file",
    "not-renameable",
    "not-as-persistent",
    "not-a-home",
    "not-durable",
    "durability-unknown",
    "sync-without-names",
    "drifted",
    "pulls-in-flight",
    "guard-not-proven",
    "too-late",
    "not-finished",
    "not-as-ordered",
    "receipt-unreadable",
    "token-unreadable",
    "foreign-bytes",
    "kubelet-changed",
    "no-transaction",
    "armed-by-another",
    "still-needed",
)
FAILED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "not-given-back": "a step that gives an old file back failed; all else was tried",
        "not-restarted": "a unit was not seen with a process younger than its old files",
        "not-durable": "a sync failed",
        "durability-unknown": "a sync has no result; it is left to the guard to write the old files again",
    }
)
SAID: Final = (
    "token-not-stored",
    "boot-unit-not-armed",
    "boot-unit-remembered",
    "reload-failed",
    "restart-failed",
    "foreign-bytes",
    "revert-unfinished",
)

CAUSES: Final = ("guard", "boot", "health", "not-durable", "asked")
"""What began a revert: its guard, the next boot, a step or a health check that failed, a disk that may not have the change, or a request."""

BECOMES: Final = (
    ("", "armed", "apply: everything staged, durable"),
    ("armed", "confirmed", "confirm, before the deadline"),
    ("armed", "reverting", "health check failed, not durable, guard, boot, revert"),
    ("confirmed", "reverting", "revert"),
    ("reverting", "reverted", "old files read back, units restarted, durable"),
)
"""What a receipt may become: its state, the next one, and by what. There is no other way."""

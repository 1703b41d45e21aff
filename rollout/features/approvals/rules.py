"""Approval of a plan by other people: what a project asks for, the text that they sign, and whether a plan has the approvals that it needs."""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from rollout.core.model.approvals import Approval
from rollout.core.model.conditions import Condition
from rollout.core.model.frozen import dataclass
from rollout.core.text.terminal import counted, printable
from rollout.errors import Place, Problem

# What a project asks for, and the text that people sign.

NAMESPACE = "plan-approval@rollout"
"""Of the SSH signature: one that was made for another purpose is no approval."""


@dataclass(frozen=True, slots=True)
class ApprovalRule(Condition):
    """``count`` signatures by keys in the file ``signers``; of ``people`` (``()``: anybody in it); see ``place``.

    ``besides_applier``: the person that applies the plan does not count.
    """

    place: Place
    count: int
    signers: str
    people: tuple[str, ...] = ()
    besides_applier: bool = True

    key = "approvals"
    passed = "plans need approvals here; a rollback needs none"

    @property
    def files(self) -> tuple[str, ...]:
        return (self.signers,)

    def lines(self) -> Iterator[str]:
        whose = f" by {printable(', '.join(self.people), 200)}" if self.people else ""
        yield f"needs {counted(self.count, 'approval')}{whose} ({self.place.file}): `rollout approve`"


LONGEST = 90 * 86_400.0
"""Seconds for which an approval may be good at most."""

_NOT_AFTER = "not after: "


def statement(cluster: str, digest: str, not_after: str) -> bytes:
    """What is signed: short, so that people can read it, and bound to the plan by its SHA-256 (64 hex digits).

    ``not_after``: see ``moment``; ``""``: an older version signed no end.
    """
    end = f"{_NOT_AFTER}{not_after}\n" if not_after else ""
    return f"I approve this plan of rollout.\ncluster: {cluster}\nplan: {digest}\n{end}".encode()


def moment(at: float) -> str:
    """Epoch seconds as they stand in a statement: UTC, whole seconds."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def seconds_of(moment: str) -> float | None:
    """Epoch seconds of a moment; ``None``: it is none."""
    try:
        return datetime.strptime(moment, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def kept(not_after: str, armoured: str) -> str:
    """A signature with the end that it covers, as one text."""
    return f"{_NOT_AFTER}{not_after}\n{armoured}"


def parts_of(kept: str) -> tuple[str, str]:
    """The end and the armoured signature. The end is ``""`` for a signature of an older version."""
    first, _, rest = kept.partition("\n")
    return (first.removeprefix(_NOT_AFTER), rest) if first.startswith(_NOT_AFTER) else ("", kept)


def is_by(person: str, logins: Collection[str]) -> bool:
    """Whether a person of a file of signers is the user with one of these login names: ``alice`` or ``alice@…``, in any case."""
    folded = {login.casefold() for login in logins}
    return not folded.isdisjoint((person.casefold(), person.casefold().partition("@")[0]))


# The form of SSH signatures, and the verdict over all of them.

_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_MAGIC = b"SSHSIG"


@dataclass(frozen=True, slots=True)
class SignatureHead:
    """What a signature names: its namespace, and the fingerprint of its key as OpenSSH prints it.

    A certificate counts as the key that it certifies. ``names``: the principals in it; ``()``: no certificate.
    """

    namespace: str
    key: str
    names: tuple[str, ...] = ()


def head_of(armoured: str) -> SignatureHead | None:
    """``None``: not an SSH signature. The format is OpenSSH's PROTOCOL.sshsig."""
    lines = armoured.strip().splitlines()
    if len(lines) < 3 or lines[0] != _BEGIN or lines[-1] != _END:
        return None
    try:
        blob = base64.b64decode("".join(lines[1:-1]), validate=True)
        if not blob.startswith(_MAGIC) or struct.unpack_from(">I", blob, len(_MAGIC)) != (1,):
            return None
        key, rest = _string(blob[len(_MAGIC) + 4 :])
        namespace, _ = _string(rest)
        plain, names = _certified(key)
        return SignatureHead(namespace.decode(), _fingerprint(plain), names)
    except (ValueError, struct.error, IndexError):
        return None


_CERTIFICATE = "-cert-v01"
_FIELDS = {"ssh-ed25519": 1, "ssh-rsa": 2, "ssh-dss": 4, "sk-ssh-ed25519": 2, "sk-ecdsa-sha2-nistp256": 3}
"""The fields of a public key of each kind, after its kind; 2 for those of ECDSA."""


def _certified(key: bytes) -> tuple[bytes, tuple[str, ...]]:
    """The plain key in a certificate, and its principals; a plain key itself. The format is OpenSSH's PROTOCOL.certkeys."""
    if _CERTIFICATE.encode() not in key[:64]:
        return key, ()
    kind, rest = _string(key)
    named, _, vendor = kind.decode().partition(_CERTIFICATE)
    _nonce, rest = _string(rest)
    plain = f"{named}{vendor if named.startswith('sk-') else ''}".encode()
    fields = [plain]
    for _ in range(_FIELDS.get(named, 2)):
        field, rest = _string(rest)
        fields.append(field)
    _key_id, rest = _string(rest[12:])  # a serial number and a type are before it
    principals, _ = _string(rest)
    names = []
    while principals:
        name, principals = _string(principals)
        names.append(name.decode())
    return b"".join(struct.pack(">I", len(field)) + field for field in fields), tuple(names)


def _fingerprint(key: bytes) -> str:
    return f"SHA256:{base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip('=')}"


def names_of(key: str, signers: str) -> tuple[str, ...]:
    """All principals of a key in the text of a file of signers, whether they are valid now or not.

    ``key``: its fingerprint. OpenSSH reports those of the first line with the key only.
    """
    names: dict[str, None] = {}
    for words in map(str.split, signers.splitlines()):
        if any(_is_key(word, key) for word in words[1:]):
            names |= dict.fromkeys(words[0].replace('"', "").split(","))
    return tuple(names)


def _is_key(word: str, key: str) -> bool:
    try:
        return _fingerprint(base64.b64decode(word, validate=True)) == key
    except ValueError:
        return False


def _string(data: bytes) -> tuple[bytes, bytes]:
    """A length and so many bytes, and the rest."""
    (length,) = struct.unpack_from(">I", data)
    if len(data) < 4 + length:
        raise IndexError(length)
    return data[4 : 4 + length], data[4 + length :]


@dataclass(frozen=True, slots=True)
class Examined:
    """One signature in the light of one rule. ``source`` is its file; ``approval`` ``None``: refused with ``reference``.

    ``names``: all names of the person that signed: a key may have several in the file of signers.
    """

    source: str
    approval: Approval | None
    reference: str = ""
    message: str = ""
    names: tuple[str, ...] = ()

    def is_by(self, logins: Collection[str]) -> bool:
        """Whether one of the names is that of a user with one of these login names."""
        return any(is_by(name, logins) for name in self._all_names())

    def is_also(self, other: Examined) -> bool:
        """Whether the other signature is by the same person, or with the same key."""
        return bool(self._all_names() & other._all_names()) or (
            self.approval is not None and other.approval is not None and self.approval.key == other.approval.key
        )

    def _all_names(self) -> frozenset[str]:
        return frozenset(self.names) | ({self.approval.person} if self.approval else frozenset())


def why_not_now(not_after: str, at: float) -> tuple[str, str]:
    """The reference and the reason why an approval with this end is not good at a time; ``("", "")``: it is.

    ``at``: epoch seconds.
    """
    if not not_after:
        return "approval-expired", "it has no end: an older version of rollout made it"
    end = seconds_of(not_after)
    if end is None:
        return "approval-malformed", f"its end is not a time: {printable(not_after, 40)}"
    if end < at:
        return "approval-expired", f"it was valid until {not_after}"
    if end > at + LONGEST:
        return "approval-malformed", f"it is valid until {not_after}, which is in more than {LONGEST / 86_400:.0f} days"
    return "", ""


def form_of(armoured: str, source: str) -> SignatureHead | Examined:
    """The head of a signature, or its refusal."""
    head = head_of(armoured)
    if head is None:
        return Examined(source, None, "approval-malformed", "it is not an SSH signature")
    if head.namespace != NAMESPACE:
        said = printable(head.namespace, 60)
        return Examined(source, None, "approval-malformed", f"it was made for `{said}`, not for `{NAMESPACE}`")
    return head


def refusals(
    rules: Sequence[ApprovalRule], found: Sequence[Sequence[Examined]], appliers: Collection[str], how: str
) -> tuple[Problem, ...]:
    """Why a plan may not be applied; ``()``: it may. ``found``: per rule, every signature. ``how``: what helps."""
    problems: dict[Problem, None] = {}
    for examined in zip(*found, strict=True):
        if all(each.approval is None for each in examined):
            first = examined[0]
            hint = f"remove it; {how}"
            problems[Problem(first.reference, f"{printable(first.source, 200)}: {first.message}", hint=hint)] = None
    for rule, of_rule in zip(rules, found, strict=True):
        good = [each for each in of_rule if each.approval is not None]
        problems |= dict.fromkeys(_twice(good, how))
        problems |= dict.fromkeys(_short(rule, good, appliers, how))
    return tuple(problems)


def _twice(good: Sequence[Examined], how: str) -> Iterator[Problem]:
    """One person, or one key, counts once; a second signature is refused."""
    for at, each in enumerate(good):
        first = next((earlier for earlier in good[:at] if earlier.is_also(each)), None)
        if first is not None and first.approval is not None:
            message = f"{printable(each.source, 200)}: {printable(first.approval.person, 80)} approved it already"
            yield Problem("approval-same-signer", message, hint=f"remove it; {how}")
            return


def _short(rule: ApprovalRule, good: Sequence[Examined], appliers: Collection[str], how: str) -> Iterator[Problem]:
    own = [each for each in good if rule.besides_applier and each.is_by(appliers)]
    others = [each for each in good if each not in own]
    have = sum(not any(earlier.is_also(each) for earlier in others[:at]) for at, each in enumerate(others))
    if have < rule.count:
        people = ", ".join(each.approval.person for each in own if each.approval)
        not_own = f"; {printable(people, 200)} applies it and does not count" if own else ""
        whose = f" by {printable(', '.join(rule.people), 200)}" if rule.people else ""
        message = (
            f"the plan has {have} of {counted(rule.count, 'approval')}{whose} that {rule.place.file} asks for{not_own}"
        )
        yield Problem("approval-missing", message, rule.place, how)


def all_good(
    rules: Iterable[ApprovalRule], found: Iterable[Sequence[Examined]], appliers: Collection[str]
) -> tuple[Approval, ...]:
    """Each approval that counts, once, to be journaled.

    A resume cannot know every login name of the person that applied the plan: so the person's own approval is left out.
    """
    good = (
        each.approval
        for rule, of_rule in zip(rules, found, strict=True)
        for each in of_rule
        if each.approval is not None and not (rule.besides_applier and each.is_by(appliers))
    )
    return tuple(dict.fromkeys(good))

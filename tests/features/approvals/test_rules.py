"""Approvals without processes: the form of signatures, and which sets of them are enough."""

from __future__ import annotations

import base64
import hashlib
import struct
from dataclasses import replace

import pytest

from rollout.core.model.approvals import Approval
from rollout.errors import Place
from rollout.features.approvals.rules import (
    LONGEST,
    NAMESPACE,
    ApprovalRule,
    Examined,
    SignatureHead,
    all_good,
    form_of,
    head_of,
    kept,
    moment,
    names_of,
    parts_of,
    refusals,
    statement,
    why_not_now,
)

MADE_BY_OPENSSH = """\
-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgFhOSjHX4UjRQ4K0ieADy9J6fR2
RuERlFbEylspRkwG8AAAAVcGxhbi1hcHByb3ZhbEByb2xsb3V0AAAAAAAAAAZzaGE1MTIA
AABTAAAAC3NzaC1lZDI1NTE5AAAAQImL25oy0tmKIU+ANyIB6IE0NysklcQw/9wqJpBJVb
I0dQ1oE9gSXrZE3bnNCL/8DepLwb16YvOWVhhwRmmf3QA=
-----END SSH SIGNATURE-----
"""
KEY = "SHA256:mofkHkJrP5birT13p5vVVuXFuNnh5uHIV18q633hvUs"
RULE = ApprovalRule(Place("inventories/rno.yaml", 4, 10), 1, "allowed_signers")
HOW = "another person: `rollout approve p.plan.json --key FILE`"


def armoured(blob: bytes) -> str:
    text = base64.b64encode(blob).decode()
    return f"-----BEGIN SSH SIGNATURE-----\n{text}\n-----END SSH SIGNATURE-----\n"


def string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def signed(person: str, key: str = "", source: str = "") -> Examined:
    return Examined(source or f"{person}.sig", Approval(person, key or f"SHA256:{person}", "…"))


def refused(*found: Examined, rule: ApprovalRule = RULE, appliers: tuple[str, ...] = ("carol",)) -> list[str]:
    return [str(problem) for problem in refusals((rule,), (found,), appliers, HOW)]


def test_a_signature_of_openssh_is_read() -> None:
    assert head_of(MADE_BY_OPENSSH) == SignatureHead(NAMESPACE, KEY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "junk",
        MADE_BY_OPENSSH.replace("BEGIN SSH", "BEGIN PGP"),
        MADE_BY_OPENSSH.replace("U1NI", "é!!!"),
        armoured(b"SSHSIG"),
        armoured(b"SSHSIG" + struct.pack(">I", 2) + string(b"k") + string(b"n")),
        armoured(b"SSHSIG" + struct.pack(">I", 1) + struct.pack(">I", 1 << 31)),
        armoured(b"SSHSIG" + struct.pack(">I", 1) + string(b"k") + string(b"\xff")),
        armoured(b"another" * 20),
    ],
    ids=str,
)
def test_what_is_no_signature_is_malformed(text: str) -> None:
    found = form_of(text, "x.sig")
    assert isinstance(found, Examined)
    assert (found.reference, found.message) == ("approval-malformed", "it is not an SSH signature")


def test_a_signature_for_another_purpose_is_malformed() -> None:
    found = form_of(armoured(b"SSHSIG" + struct.pack(">I", 1) + string(b"k") + string(b"git") + string(b"")), "x.sig")
    assert isinstance(found, Examined)
    assert found.message == f"it was made for `git`, not for `{NAMESPACE}`"


def test_the_statement_is_bound_to_cluster_and_plan() -> None:
    approved = b"I approve this plan of rollout.\ncluster: rno\nplan: ab12\n"
    assert statement("rno", "ab12", "") == approved
    assert statement("rno", "ab12", moment(0)) == approved + b"not after: 1970-01-01T00:00:00Z\n"
    assert parts_of(kept(moment(0), MADE_BY_OPENSSH)) == ("1970-01-01T00:00:00Z", MADE_BY_OPENSSH)
    assert parts_of(MADE_BY_OPENSSH) == ("", MADE_BY_OPENSSH)


def test_enough_people_may_apply() -> None:
    assert refused(signed("alice@x")) == []
    assert refused(signed("alice@x"), signed("bob@x"), rule=replace(RULE, count=2)) == []


def test_too_few_are_refused_with_what_is_missing() -> None:
    assert refused() == [
        f"inventories/rno.yaml:4:10: the plan has 0 of 1 approval that inventories/rno.yaml asks for ({HOW}) [approval-missing]"
    ]
    (said,) = refused(signed("alice@x"), rule=replace(RULE, count=2, people=("alice@x", "bob@x")))
    assert "has 1 of 2 approvals by alice@x, bob@x" in said


@pytest.mark.parametrize("applier", ["alice", "alice@x"])
def test_the_person_that_applies_does_not_count(applier: str) -> None:
    (said,) = refused(signed("alice@x"), appliers=(applier, "root"))
    assert "has 0 of 1 approval" in said
    assert "; alice@x applies it and does not count" in said
    assert refused(signed("alice@x"), signed("bob@x"), appliers=(applier,)) == []
    assert refused(signed("alice@x"), rule=replace(RULE, besides_applier=False), appliers=(applier,)) == []


@pytest.mark.parametrize("kind", ["ssh-ed25519", "ssh-rsa", "sk-ssh-ed25519", "ecdsa-sha2-nistp256"])
def test_a_certificate_counts_as_the_key_in_it_with_its_principals(kind: str) -> None:
    """Its form is OpenSSH's PROTOCOL.certkeys: the fields of the key, a serial number and a type, an id, the principals."""
    vendor = "@openssh.com" if kind.startswith("sk-") else ""
    fields = b"".join(string(bytes([65 + at])) for at in range({"ssh-ed25519": 1}.get(kind, 2)))
    principals = string(string(b"alice@x") + string(b"alice@y"))
    certificate = (
        string(f"{kind}-cert-v01@openssh.com".encode())
        + string(b"nonce")
        + fields
        + struct.pack(">QI", 7, 1)
        + string(b"id")
        + principals
    )
    signature = b"SSHSIG" + struct.pack(">I", 1) + string(certificate) + string(NAMESPACE.encode())
    plain = hashlib.sha256(string(f"{kind}{vendor}".encode()) + fields).digest()
    key = "SHA256:" + base64.b64encode(plain).decode().rstrip("=")
    assert head_of(armoured(signature)) == SignatureHead(NAMESPACE, key, ("alice@x", "alice@y"))


@pytest.mark.parametrize(
    ("not_after", "reference"),
    [
        ("", "approval-expired"),
        ("soon", "approval-malformed"),
        (moment(999), "approval-expired"),
        (moment(1000), ""),
        (moment(1000 + LONGEST), ""),
        (moment(1001 + LONGEST), "approval-malformed"),
    ],
)
def test_an_approval_is_good_until_its_end_and_for_no_longer_than_the_longest(not_after: str, reference: str) -> None:
    assert why_not_now(not_after, 1000.0)[0] == reference


@pytest.mark.parametrize(
    "other", [signed("alice@x", "SHA256:another", "b.sig"), signed("bob@x", "SHA256:alice@x", "b.sig")]
)
def test_one_person_or_one_key_counts_once(other: Examined) -> None:
    found = refused(signed("alice@x", source="a.sig"), other, rule=replace(RULE, count=2))
    assert found[0].startswith("b.sig: ")
    assert found[0].endswith(f"(remove it; {HOW}) [approval-same-signer]")


TWO_NAMES = replace(signed("anna@x"), names=("anna@x", "Alice@x"))


def test_a_key_with_two_names_is_one_person() -> None:
    (said,) = refused(TWO_NAMES, appliers=("alice",))
    assert "has 0 of 1 approval" in said
    assert "; anna@x applies it and does not count" in said
    assert all_good((RULE,), ((TWO_NAMES,),), ("alice",)) == ()
    found = refused(TWO_NAMES, signed("Alice@x", "SHA256:another"), rule=replace(RULE, count=2))
    assert ["approval-same-signer" in found[0], "has 1 of 2 approvals" in found[1]] == [True, True]


def test_all_names_of_a_key_are_found_on_every_line() -> None:
    blob, other = (base64.b64encode(string(b"ssh-ed25519") + string(name * 32)).decode() for name in (b"a", b"b"))
    fingerprint = "SHA256:" + base64.b64encode(hashlib.sha256(base64.b64decode(blob)).digest()).decode().rstrip("=")
    signers = (
        f"# carol@x ssh-ed25519 {other}\n"
        f'anna@x,"root@x" namespaces="n" ssh-ed25519 {blob} a comment\n\n'
        f"bob@x ssh-ed25519 {other}\n"
        f"alice@x valid-before=20200101 ssh-ed25519 {blob}\n"
    )
    assert names_of(fingerprint, signers) == ("anna@x", "root@x", "alice@x")


def test_one_bad_signature_refuses_the_plan_even_beside_enough_good_ones() -> None:
    bad = Examined("c.sig", None, "approval-other-plan", "carol@x signed another plan")
    found = refused(signed("alice@x"), bad)
    assert found == [f"c.sig: carol@x signed another plan (remove it; {HOW}) [approval-other-plan]"]


def test_a_signature_for_one_of_two_rules_is_good() -> None:
    bad = Examined("a.sig", None, "approval-unknown-signer", "not known")
    found = [[signed("alice@x", source="a.sig"), replace(bad, source="b.sig")], [bad, signed("bob@x", source="b.sig")]]
    rules = (RULE, replace(RULE, signers="others"))
    assert refusals(rules, found, (), HOW) == ()
    assert [each.person for each in all_good(rules, found, ())] == ["alice@x", "bob@x"]


@pytest.mark.parametrize("besides", [True, False])
def test_the_approval_of_the_person_that_applies_is_journaled_only_where_it_counts(besides: bool) -> None:
    rules, found = (replace(RULE, besides_applier=besides),), [[signed("alice@x"), signed("bob@x")]]
    good = [each.person for each in all_good(rules, found, ("root", "alice"))]
    assert good == (["bob@x"] if besides else ["alice@x", "bob@x"])

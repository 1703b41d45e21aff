"""Approvals with real keys and the real ssh-keygen: each wrong signature is refused with its own reference."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rollout.adapters.approval_files import MOST_BYTES, folder_of, keep_signature, signatures_beside
from rollout.adapters.files import FolderFiles
from rollout.adapters.ssh_signatures import SshSignatures
from rollout.app.approvals import Approvals
from rollout.core.model.approvals import NAMESPACE, Approval, ApprovalRule, statement
from rollout.core.plans import plan_codec
from rollout.errors import InputError, Place, UsageError
from tests.app.site import SMALL

pytestmark = pytest.mark.process

RULE = ApprovalRule(Place("playbooks/p.yaml", 5, 9), 1, "allowed_signers")
OTHER = replace(SMALL, limit="n1")


@dataclass(frozen=True)
class People:
    """Keys of alice and bob; ``folder`` is the project with the file of signers."""

    folder: Path

    def allow(self, *lines: str) -> None:
        (self.folder / "allowed_signers").write_text("".join(f"{line}\n" for line in lines))

    def public(self, name: str) -> str:
        return (self.folder / f"{name}.pub").read_text().strip()

    def sign(self, name: str, plan: object = SMALL) -> str:
        assert isinstance(plan, type(SMALL))
        text = statement(plan.cluster, plan_codec.digest(plan))
        return SshSignatures().sign(str(self.folder / name), text)

    def checked(self, signed: Mapping[str, str], rule: ApprovalRule = RULE) -> tuple[Approval, ...]:
        return Approvals(FolderFiles(self.folder), SshSignatures()).checked(SMALL, (rule,), signed, {"carol"}, "HOW")

    def references(self, signed: Mapping[str, str], rule: ApprovalRule = RULE) -> list[str]:
        with pytest.raises(InputError) as raised:
            self.checked(signed, rule)
        return [problem.reference for problem in raised.value.problems]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("alice", "bob"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    return folder


@pytest.fixture
def people(keys: Path) -> People:
    found = People(keys)
    found.allow(f'alice@x namespaces="{NAMESPACE}" {found.public("alice")}', f"bob@x {found.public('bob')}")
    return found


def test_a_good_signature_names_the_person_and_the_key(people: People) -> None:
    armoured = people.sign("alice")
    (approval,) = people.checked({"a.sig": armoured})
    shown = subprocess.run(
        ["ssh-keygen", "-lf", people.folder / "alice.pub"], capture_output=True, text=True, check=True
    )
    assert (approval.person, approval.key, approval.signature) == ("alice@x", shown.stdout.split()[1], armoured)


def test_a_signature_over_another_plan(people: People) -> None:
    assert people.references({"a.sig": people.sign("alice", OTHER)}) == ["approval-other-plan", "approval-missing"]


def test_a_malformed_signature(people: People) -> None:
    whole = people.sign("alice")
    assert people.references({"a.sig": "junk"})[0] == "approval-malformed"
    assert people.references({"a.sig": whole.replace("U1NI", "AAAA")})[0] == "approval-malformed"


def test_a_signature_with_changed_bytes_is_good_for_nothing(people: People) -> None:
    lines = people.sign("alice").splitlines()
    lines[4] = lines[4][:10] + ("A" if lines[4][10] != "A" else "B") + lines[4][11:]
    assert people.references({"a.sig": "\n".join(lines) + "\n"})[0] in {
        "approval-other-plan",
        "approval-unknown-signer",
    }


def test_an_unknown_signer(people: People) -> None:
    people.allow(f"alice@x {people.public('alice')}")
    assert people.references({"b.sig": people.sign("bob")})[0] == "approval-unknown-signer"


def test_a_signer_that_the_rule_does_not_name(people: People) -> None:
    rule = replace(RULE, people=("alice@x",))
    assert people.references({"b.sig": people.sign("bob")}, rule)[0] == "approval-unknown-signer"


@pytest.mark.parametrize("line", ["*@x {}", 'alice@x namespaces="git" {}', "alice@x cert-authority {}"])
def test_a_pattern_another_purpose_or_an_authority_makes_nobody_known(people: People, line: str) -> None:
    people.allow(line.format(people.public("alice")))
    assert people.references({"a.sig": people.sign("alice")})[0] == "approval-unknown-signer"


@pytest.mark.parametrize("when", ['valid-before="20200101"', 'valid-after="20990101"'])
def test_an_expired_key(people: People, when: str) -> None:
    people.allow(f"alice@x {when} {people.public('alice')}")
    assert people.references({"a.sig": people.sign("alice")})[0] == "approval-expired"


def test_the_same_signer_twice(people: People) -> None:
    people.allow(f"alice@x {people.public('alice')}", f"alice@x {people.public('bob')}")
    two = {"a.sig": people.sign("alice"), "b.sig": people.sign("bob")}
    assert people.references(two, replace(RULE, count=2)) == ["approval-same-signer", "approval-missing"]
    one = people.sign("alice")
    assert people.references({"a.sig": one, "b.sig": one}) == ["approval-same-signer"]


def test_without_a_file_of_signers_nothing_is_approved(people: People) -> None:
    assert people.references({"a.sig": people.sign("alice")}, replace(RULE, signers="no_such_file")) == ["file-missing"]


def test_a_key_that_cannot_sign_is_reported(people: People) -> None:
    with pytest.raises(UsageError) as raised:
        SshSignatures().sign(str(people.folder / "nobody"), b"text")
    assert raised.value.reference == "not-signed"


def test_signatures_are_kept_beside_the_plan_once_for_each_key(tmp_path: Path) -> None:
    plan, approval = tmp_path / "p.plan.json", Approval("alice@x", "SHA256:ab/cd+ef", "text\n")
    assert signatures_beside(plan) == {}
    path = keep_signature(plan, approval)
    assert path == tmp_path / "p.plan.json.approvals" / "alice@x-abcdef.sig"
    assert signatures_beside(plan) == {str(path): "text\n"}
    with pytest.raises(InputError, match=r"approved it already \[approval-same-signer\]"):
        keep_signature(plan, approval)


@pytest.mark.parametrize("what", ["link", "folder", "large", "many"])
def test_what_is_no_small_regular_file_is_refused(tmp_path: Path, what: str) -> None:
    plan = tmp_path / "p.plan.json"
    folder_of(plan).mkdir()
    path = folder_of(plan) / "a.sig"
    match what:
        case "link":
            path.symlink_to("/etc/hostname")
        case "folder":
            path.mkdir()
        case "large":
            path.write_text("A" * (MOST_BYTES + 1))
        case _:
            for number in range(70):
                (folder_of(plan) / f"{number}.sig").touch()
    with pytest.raises(InputError) as raised:
        signatures_beside(plan)
    assert raised.value.problems[0].reference == "approval-file"

"""Approvals with real keys and the real ssh-keygen: each wrong signature is refused with its own reference."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rollout.adapters.files import FolderFiles
from rollout.core.model.approvals import Approval
from rollout.core.plans import plan_codec
from rollout.errors import InputError, Place, UsageError
from rollout.features.approvals.asking import Approvals
from rollout.features.approvals.client.files import MOST_BYTES, folder_of, keep_signature, signatures_beside
from rollout.features.approvals.client.signatures import SshSignatures
from rollout.features.approvals.rules import LONGEST, NAMESPACE, ApprovalRule, kept, moment, statement
from tests.app.site import SMALL

pytestmark = pytest.mark.process

RULE = ApprovalRule(Place("playbooks/p.yaml", 5, 9), 1, "allowed_signers")
NOW = 1_800_000_000.0
END = moment(NOW + 3600)
OTHER = replace(SMALL, limit="n1")


@dataclass(frozen=True)
class People:
    """Keys of alice and bob; ``folder`` is the project with the file of signers."""

    folder: Path

    def allow(self, *lines: str) -> None:
        (self.folder / "allowed_signers").write_text("".join(f"{line}\n" for line in lines))

    def public(self, name: str) -> str:
        return (self.folder / f"{name}.pub").read_text().strip()

    def sign(self, name: str, plan: object = SMALL, end: str = END) -> str:
        assert isinstance(plan, type(SMALL))
        armoured = SshSignatures().sign(str(self.folder / name), statement(plan.cluster, plan_codec.digest(plan), end))
        return kept(end, armoured) if end else armoured

    def certify(self, name: str, *principals: str) -> str:
        """A certificate by the authority for a key of ours, as the name of its file."""
        words = ["-q", "-s", "authority", "-I", "id", "-n", ",".join(principals), f"{name}.pub"]
        subprocess.run(["ssh-keygen", *words], cwd=self.folder, check=True)
        made = f"{name}-{principals[0].partition('@')[0]}"
        for suffix in ("", "-cert.pub"):
            shutil.copy(self.folder / f"{name}{suffix}", self.folder / f"{made}{suffix}")
        return f"{made}-cert.pub"

    def checked(
        self, signed: Mapping[str, str], rule: ApprovalRule = RULE, at: float | None = NOW
    ) -> tuple[Approval, ...]:
        approvals = Approvals(FolderFiles(self.folder), SshSignatures())
        return approvals.checked(SMALL, (rule,), signed, {"carol"}, "HOW", at)

    def references(self, signed: Mapping[str, str], rule: ApprovalRule = RULE, at: float = NOW) -> list[str]:
        with pytest.raises(InputError) as raised:
            self.checked(signed, rule, at)
        return [problem.reference for problem in raised.value.problems]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("alice", "bob", "authority"):
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
    lines[5] = lines[5][:10] + ("A" if lines[5][10] != "A" else "B") + lines[5][11:]
    assert people.references({"a.sig": "\n".join(lines) + "\n"})[0] in {
        "approval-other-plan",
        "approval-unknown-signer",
    }


def test_an_unknown_signer(people: People) -> None:
    people.allow(f"alice@x {people.public('alice')}")
    assert people.references({"b.sig": people.sign("bob")})[0] == "approval-unknown-signer"


def test_an_approval_is_good_until_its_end_and_a_run_that_began_with_it_goes_on(people: People) -> None:
    signed = {"a.sig": people.sign("alice")}
    assert people.checked(signed, at=NOW + 3600)
    assert people.references(signed, at=NOW + 3601) == ["approval-expired", "approval-missing"]
    assert people.checked(signed, at=None), "an approval carries the resumes of its run"


def test_the_end_is_part_of_what_was_signed(people: People) -> None:
    _, _, armoured = people.sign("alice").partition("\n")
    later = kept(moment(NOW + 7200), armoured)
    assert people.references({"a.sig": later}) == ["approval-other-plan", "approval-missing"]
    assert people.references({"a.sig": armoured}) == ["approval-expired", "approval-missing"], "its end cut off"
    with pytest.raises(InputError):
        people.checked({"a.sig": armoured}, at=None)


def test_an_approval_without_an_end_is_of_an_older_version_and_only_its_run_goes_on(people: People) -> None:
    signed = {"a.sig": people.sign("alice", end="")}
    assert people.references(signed) == ["approval-expired", "approval-missing"]
    assert people.checked(signed, at=None)


@pytest.mark.parametrize("end", [moment(NOW + LONGEST + 1), "never", "2027-01-15", "2027-01-15T08:00:00+00:00"])
def test_an_end_that_is_no_moment_or_very_far_away_is_malformed(people: People, end: str) -> None:
    assert people.references({"a.sig": people.sign("alice", end=end)})[0] == "approval-malformed"


def test_one_key_with_two_certificates_is_one_person(people: People) -> None:
    """Whatever names an authority gives it, and also beside a line with the key itself."""
    people.allow(f"alice@x,bob@x cert-authority {people.public('authority')}", f"dave@x {people.public('alice')}")
    two = replace(RULE, count=2)
    as_alice, as_bob = (people.sign(people.certify("alice", name)) for name in ("alice@x", "bob@x"))
    assert [each.person for each in people.checked({"a.sig": as_alice})] == ["alice@x"]
    assert people.references({"a.sig": as_alice, "b.sig": as_bob}, two) == ["approval-same-signer", "approval-missing"]
    plain = people.sign("alice")
    assert people.references({"a.sig": as_bob, "b.sig": plain}, two) == ["approval-same-signer", "approval-missing"]
    bob = people.sign(people.certify("bob", "bob@x"))
    assert len(people.checked({"a.sig": as_alice, "b.sig": bob}, two)) == 2


def test_two_keys_with_certificates_for_one_name_are_one_person(people: People) -> None:
    people.allow(f"alice@x,bob@x cert-authority {people.public('authority')}")
    signed = {
        "a.sig": people.sign(people.certify("alice", "alice@x")),
        "b.sig": people.sign(people.certify("bob", "alice@x")),
    }
    assert people.references(signed, replace(RULE, count=2)) == ["approval-same-signer", "approval-missing"]


def test_every_name_in_a_certificate_is_one_of_its_person(people: People) -> None:
    people.allow(f"alice@x cert-authority {people.public('authority')}")
    signed = {"a.sig": people.sign(people.certify("alice", "alice@x", "carol"))}
    assert people.references(signed) == ["approval-missing"], "carol applies it"


@pytest.mark.parametrize("kind", [("ed25519",), ("rsa", "-b", "2048"), ("ecdsa", "-b", "256"), ("ecdsa", "-b", "521")])
def test_a_certificate_of_each_kind_counts_as_its_key(people: People, kind: tuple[str, ...], tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-N", "", "-f", tmp_path / "key", "-t", *kind], check=True)
    for end in ("", ".pub"):
        (people.folder / f"any{end}").unlink(missing_ok=True)
        shutil.copy(tmp_path / f"key{end}", people.folder / f"any{end}")
    people.allow(f"any@x cert-authority {people.public('authority')}")
    (approval,) = people.checked({"a.sig": people.sign(people.certify("any", "any@x"))})
    shown = subprocess.run(["ssh-keygen", "-lf", tmp_path / "key.pub"], capture_output=True, text=True, check=True)
    assert approval.key == shown.stdout.split()[1]


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
    path = keep_signature(plan, approval, _any)
    assert path == tmp_path / "p.plan.json.approvals" / "alice@x-abcdef.sig"
    assert signatures_beside(plan) == {str(path): "text\n"}
    with pytest.raises(InputError, match=r"approved it already \[approval-same-signer\]"):
        keep_signature(plan, approval, _any)


def test_a_file_that_is_no_approval_now_is_no_second_one(tmp_path: Path) -> None:
    """It has expired, or was written in part."""
    plan, approval = tmp_path / "p.plan.json", Approval("alice@x", "SHA256:ab/cd+ef", "text\n")
    path = keep_signature(plan, approval, _any)
    path.write_text("")
    assert keep_signature(plan, approval, bool) == path
    assert signatures_beside(plan) == {str(path): "text\n"}
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="approval-file"):
        keep_signature(plan, approval, _any)
    folder_of(plan).joinpath("x").write_text("")
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match="approval-file"):
        keep_signature(plan, approval, _any)


def _any(_text: str) -> bool:
    return True


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

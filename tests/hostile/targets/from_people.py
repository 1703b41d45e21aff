"""Input from people: inventories, playbooks, templates, nodesets, durations, selectors, and the output of Ansible."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Collection, Mapping
from functools import cache

from rollout.adapters.clock import SystemZones
from rollout.core.model.conditions import of_kind
from rollout.core.model.inventory import Inventory
from rollout.core.model.settings import Setting
from rollout.core.reading import ansible_inventory
from rollout.core.reading.ansible_inventory import filled_in
from rollout.core.reading.found_nodes import FoundNode, FoundNodes
from rollout.core.reading.inventory_draft import draft_of, finish
from rollout.core.reading.inventory_file import load_inventory
from rollout.core.reading.label_selectors import SelectorError, matches, parse
from rollout.core.reading.node_sources import FromAnsible
from rollout.core.reading.playbook_file import load_playbook
from rollout.core.reading.precedence import parse_override
from rollout.core.reading.rendering import KUBELET_CONFIG, render, undefined_variables
from rollout.core.text import durations
from rollout.core.text.nodesets import Names, NodesetError, evaluate, expand, fold
from rollout.core.text.yaml_source import read_yaml
from rollout.errors import InputError, Place
from rollout.features.approvals.rules import ApprovalRule, Examined, form_of, refusals
from rollout.features.change_windows.asking import zoned
from rollout.features.change_windows.rules import ChangeCalendar, answer
from rollout.features.init.asking import drafted, nodes_of_ansible, refreshed_texts
from rollout.features.init.rules.guesses import Guessed
from rollout.features.init.rules.tables import read_names
from rollout.features.init.words.ssh_config import ssh_config_text
from rollout.kubelet import homes
from tests.app.test_ansible_inventories import HOSTS
from tests.hostile.property import Target
from tests.places import ROOT

NODE = {"name": "n1", "rack": "r1", "zone": "z1", "labels": {"gpu": "true"}}
VARIABLES = {"fields": {"maxPods": 110, "clusterDNS": ["10.0.0.10"]}, "node": NODE}
ANSIBLE = {"path": "x", "rack": "rack", "zoneGroups": "zone_", "labels": "node_labels", "registry": "registry"}
SMALL = """\
cluster: small
apiServer: "1.29"
ssh: {user: admin, port: 22}
racks: {a: "small-[001-010]", b: "small-[011-020]"}
groups:
  gpu: {nodes: "small-[003,007]", settings: {maxPods: 60}}
settings: {serializeImagePulls: false, --v: 2}
"""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _shipped(folder: str, pattern: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted((ROOT / folder).glob(pattern)))


@cache
def _templates() -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((ROOT / "templates").glob("*.j2"))}


def _inventory(data: bytes) -> tuple[str, ...]:
    draft = draft_of(_text(data), "i.yaml")
    found = finish(draft) if draft.source is None else load_inventory(_text(data), "i.yaml")
    return *found.nodes, *(str(problem) for level in found.levels for problem in homes.check(level.settings))


def _playbook(data: bytes) -> tuple[str, ...]:
    policy = load_playbook(_text(data), "p.yaml", _templates())
    return tuple(str(problem) for problem in homes.check(policy.settings))


def _template(data: bytes) -> tuple[str, ...]:
    """A template gives bytes for a file; only its errors are shown."""
    said = tuple(str(problem) for problem in undefined_variables(_text(data), "t.j2", KUBELET_CONFIG))
    render(_text(data), "t.j2", VARIABLES)
    return said


def _nodeset(data: bytes) -> tuple[str, ...]:
    names = Names(tuple(f"n{number:03d}" for number in range(50)), {"r1": frozenset({"n001"})})
    try:
        evaluate(_text(data), names)
    except NodesetError as error:
        said: tuple[str, ...] = tuple(flaw.message + flaw.hint for flaw in error.flaws)
    else:
        said = ()
    found = expand(_text(data))
    return *said, *found[:100], fold(found)


def _duration(data: bytes) -> tuple[str, ...]:
    return (durations.go_format(durations.parse(_text(data))),)


def _selector(data: bytes) -> tuple[str, ...]:
    matches(parse(_text(data)), {"a": "b"})
    return ()


def _override(data: bytes) -> tuple[str, ...]:
    setting: Setting = parse_override(_text(data))
    return tuple(str(problem) for problem in homes.check({setting.name: setting}))


def _ansible(data: bytes) -> tuple[str, ...]:
    draft = draft_of(json.dumps({"cluster": "c", "apiServer": "v1.34.1", "nodesFrom": {"ansible": ANSIBLE}}), "c.yaml")
    assert isinstance(draft.source, FromAnsible)
    inventory = finish(
        draft, ansible_inventory.found_nodes(ansible_inventory.read_hosts(_text(data), "ansible"), draft.source)
    )
    return *inventory.nodes, *(node.address for node in inventory.nodes.values())


class _Printed:
    """What a hostile inventory prints; Ansible fills each template with the same text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def ansible(self, path: str) -> str:
        return self._text

    def ansible_values(self, path: str, templates: Mapping[str, Collection[str]]) -> Mapping[str, Mapping[str, object]]:
        return {host: dict.fromkeys(names, self._text[:200]) for host, names in templates.items()}

    def live(self, kubeconfig: str, context: str) -> tuple[()]:
        raise AssertionError


def _drafted(guessed: Guessed) -> tuple[str, ...]:
    made = drafted("c", guessed, "v1.34.1", "")
    return (
        *map(str, made.notes),
        *guessed.told,
        *made.texts["inventories/c.yaml"].splitlines(),
        *ssh_config_text(guessed).splitlines(),
    )


def _new_of_ansible(data: bytes) -> tuple[str, ...]:
    return _drafted(nodes_of_ansible(_Printed(_text(data)), "hosts", "/here"))


def _new_of_names(data: bytes) -> tuple[str, ...]:
    return _drafted(read_names(_text(data), "fleet.csv"))


def _refreshed(data: bytes) -> tuple[str, ...]:
    nodes = tuple(FoundNode(f"small-{number:03}", rack="c") for number in range(2, 30, 3))
    found = Guessed(FoundNodes("hosts", nodes, {"gpu": ["small-029"]}), ())
    made = refreshed_texts("i", found, _text(data), None)
    return *(line for _, text in made.texts.values() for line in text.splitlines()), *made.notes


def _ansible_debug(data: bytes) -> tuple[str, ...]:
    """People see only the values that were asked for; of the other names so much that an odd one is seen."""
    return tuple(f"{host!a} {ascii(sorted(values))[:400]}" for host, values in filled_in(_text(data)).items())


ANSWERS = b"""\
n1 | SUCCESS => {
    "msg": {"ansible_host": "10.0.0.1", "ansible_port": 22}
}
n2 | FAILED! => {
    "msg": "'rack' is undefined"
}
"""

OLD = b"""\
cluster: i
apiServer: v1.34.1
nodes:
  small-[001-002]: {}
  small-005: {}
  x1: {}
racks:
  c: 'small-[001-002,005]'
  d: x1
groups:
  gpu: {nodes: [x1, small-002]}
"""
NEW = {
    "_meta": {
        "hostvars": {
            "n1": {
                "ansible_ssh_common_args": "-o ProxyCommand='ssh -i /k -W %h:%p u@b' -J a,b -p 22",
                "ansible_become_user": "x",
            },
            "n2": {"ansible_ssh_private_key_file": "k", "ansible_ssh_port": "22", "rack": "{{ a }}"},
            "b": {"ansible_host": "192.0.2.9"},
        }
    },
    "kube_node": ["n1", "n2"],
    "bastion": ["b"],
    "zone_a": {"hosts": ["n1"]},
}
TABLES = (
    b"name,ip,rack,zone,region,role,labels,port\nn1,10.0.0.1,r1,z1,e,worker,a=b;c=d,22\n",
    b'n1;10.0.0.1;rack1\n"n2";10.0.0.2;rack2\n',
    b"n[1-3],m1 # more\n",
)


def _yaml(data: bytes) -> tuple[str, ...]:
    document = read_yaml(_text(data), "f.yaml")
    if document.problems:
        raise InputError(document.problems)
    return ()


INSTANTS = (0.0, 1_774_745_999.5, 1_774_746_000.0, 1_793_494_800.0, 1_798_761_600.0, 4_102_444_800.0)
"""In seconds since the epoch: both changes of European clocks in 2026, the turn of that year, and a far year."""

CALENDARS = (
    b"""\
name: c
settings: {maxPods: 60}
changeWindows:
  zone: Europe/Zurich
  windows:
    - {days: [mon, tue, sun], from: "22:00", to: "04:00"}
    - {from: "02:15", to: "02:45"}
  freezes:
    - {first: 2026-12-20, last: 2027-01-04, reason: year end}
""",
    b'name: c\nsettings: {maxPods: 60}\nchangeWindows: {zone: UTC, windows: [{from: "00:00", to: "24:00"}]}\n',
    b"name: c\nsettings: {maxPods: 60}\nchangeWindows: {zone: Australia/Lord_Howe, freezes: [{first: 1970-01-01, last: 2199-12-31}]}\n",
)


def _calendar(data: bytes) -> tuple[str, ...]:
    """What it says until a time, it no longer says at that time."""
    policy = load_playbook(_text(data), "p.yaml", _templates())
    found = zoned(of_kind(policy.conditions, ChangeCalendar), SystemZones())
    said = [(at, answer(found, at)) for at in INSTANTS]
    for at, each in said:
        if each.until is not None:
            assert each.until > at
            assert answer(found, each.until).is_open is not each.is_open, (at, each)
    return tuple(each.why for _, each in said)


def _signature(data: bytes) -> tuple[str, ...]:
    """A file beside a plan, in the light of a rule with other signers."""
    found = form_of(data.decode("ascii", "replace"), "a.sig")
    said = found.message if isinstance(found, Examined) else found.key
    refused = found if isinstance(found, Examined) else Examined("a.sig", None, "approval-unknown-signer", found.key)
    rule = ApprovalRule(Place("p.yaml", 1, 1), 1, "signers", (), besides_applier=True)
    return said, *(str(problem) for problem in refusals((rule,), ((refused,),), ("ann",), "another person"))


def _armoured(namespace: bytes) -> bytes:
    parts = (b"\0\0\0\x0bssh-ed25519" + b"\0\0\0\x20" + bytes(32), namespace, b"", b"sha512", bytes(83))
    blob = b"SSHSIG\0\0\0\1" + b"".join(struct.pack(">I", len(part)) + part for part in parts)
    lines = base64.encodebytes(blob).decode()
    return f"-----BEGIN SSH SIGNATURE-----\n{lines}-----END SSH SIGNATURE-----\n".encode()


def small() -> Inventory:
    return load_inventory(SMALL, "small.yaml")


TARGETS = (
    Target(
        "inventory", _inventory, lambda: (SMALL.encode(), *(text[:4000] for text in _shipped("inventories", "*.yaml")))
    ),
    Target("playbook", _playbook, lambda: _shipped("playbooks", "*.yaml"), examples=60),
    Target(
        "template",
        _template,
        lambda: (
            *_shipped("templates", "*.j2"),
            b"{% for a in range(9) %}{{ a * 2 + 1 }}{% if a %}{{ node.labels | list | sort | join(',') }}{% endif %}{% endfor %}",
            b"{% set x = [1, 2] %}{{ x | map('upper') | select('string') | unique | first | default('a') }}",
        ),
    ),
    Target(
        "yaml",
        _yaml,
        lambda: (SMALL.encode(), b'a: &x [1, "\\u0041", {b: c}]\nd: *x\n"e": |\n  text\n', b"a: [1, 2\nb: c\n"),
    ),
    Target(
        "nodeset", _nodeset, lambda: (b"n[001-010,012]&@r1!n00?", b"a-[1-9/2]-[01-02],b", b"@all^n*"), (NodesetError,)
    ),
    Target("duration", _duration, lambda: (b"1h2m3.5s", b"-5ms", b"100us"), (durations.DurationError,)),
    Target("selector", _selector, lambda: (b"a=b,!c,d!=e,f in (g,h),i notin (j)",), (SelectorError,)),
    Target("override", _override, lambda: (b"maxPods=110", b"--v=3", b"evictionHard={memory.available: 5%}")),
    Target("calendar", _calendar, lambda: CALENDARS, examples=60),
    Target("signature", _signature, lambda: (_armoured(b"plan-approval@rollout"), _armoured(b"file"))),
    Target("new-of-ansible", _new_of_ansible, lambda: (json.dumps(NEW).encode(),)),
    Target("new-of-names", _new_of_names, lambda: TABLES),
    Target("ansible-debug", _ansible_debug, lambda: (ANSWERS,)),
    Target("refreshed", _refreshed, lambda: (OLD,)),
    Target("ansible", _ansible, lambda: (json.dumps(HOSTS).encode(), json.dumps(HOSTS, indent=1).encode())),
)

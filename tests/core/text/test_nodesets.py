"""Nodesets: their meaning, what is refused, and that the algebra is ClusterShell's."""

from __future__ import annotations

import re

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.inventory import Inventory, Node
from rollout.core.text.nodesets import Names, NodesetError, evaluate, expand, fold, is_name, select
from rollout.errors import UsageError

NODES = [f"n{number:03d}" for number in range(1, 61)]
SETS = {
    "rack1": frozenset(NODES[:30]),
    "rack2": frozenset(NODES[30:]),
    "gpu": frozenset({"n007", "n040"}),
    "kubelet-1.20": frozenset(NODES[::2]),
}
INVENTORY = Inventory(
    cluster="c",
    api_server="v1.23.17",
    nodes={name: Node(name, name, "r", "z") for name in reversed(NODES)},
    nodesets={**SETS, "all": frozenset(NODES)},
    levels=(),
    digest="",
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ("n1",)),
        ("n[001-003]", ("n001", "n002", "n003")),
        ("n[001-010/4]", ("n001", "n005", "n009")),
        ("b,a , n[2,1]", ("b", "a", "n1", "n2")),
        ("n[1-2]-ib[1-2]", ("n1-ib1", "n1-ib2", "n2-ib1", "n2-ib2")),
        ("a,a", ("a",)),
        ("node-1.example.net", ("node-1.example.net",)),
    ],
)
def test_expand_keeps_the_order_written(text: str, names: tuple[str, ...]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    ("text", "reference", "message"),
    [
        ("", "bad-nodeset", "the nodeset is empty"),
        (" ", "bad-nodeset", "the nodeset is empty"),
        ("a,,b", "bad-nodeset", "`a,,b`: a name is missing after `,`"),
        ("a,", "bad-nodeset", "`a,`: a name is missing after `,`"),
        (",a", "bad-nodeset", "`,a`: a name is missing at the beginning"),
        ("n[1-3", "bad-nodeset", "`n[1-3`: a `[` without its partner"),
        ("[", "bad-nodeset", "`[`: a `[` without its partner"),
        ("n1-3]", "bad-nodeset", "`n1-3]`: a `]` without its partner"),
        ("n[3-1]", "bad-nodeset", "`n[3-1]`: the range 3-1 runs backwards"),
        (
            "n[01-5]",
            "bad-nodeset",
            "`n[01-5]`: the numbers of the range 01-5 have different widths; write 01-05 or 1-5",
        ),
        (
            "n[1,0-005/5]",
            "bad-nodeset",
            "`n[1,0-005/5]`: the numbers of the range 0-005/5 have different widths; write 000-005 or 0-5",
        ),
        (
            "n[01-100]",
            "bad-nodeset",
            "`n[01-100]`: the numbers of the range 01-100 have different widths; write 001-100 or 1-100",
        ),
        ("n[1-2][3-4]", "bad-nodeset", "`n[1-2][3-4]`: two ranges need a character between them, such as `-`"),
        ("n[1-3/0]", "bad-nodeset", "`n[1-3/0]`: the range 1-3/0 has a step of 0"),
        ("n[a-b]", "bad-nodeset", "`n[a-b]`: `a-b` is not a range such as 0001-0060"),
        ("n[]", "bad-nodeset", "`n[]`: `` is not a range such as 0001-0060"),
        ("n%s", "bad-nodeset", "`n%s`: `n%s` is not a name; names are letters, digits, `-`, `_` and `.`"),
        (
            "-oProxyCommand",
            "bad-nodeset",
            "`-oProxyCommand`: `-oProxyCommand` is not a name; names are letters, digits, `-`, `_` and `.`",
        ),
        ("a b", "bad-nodeset", "`a b`: `a b` is not a name; names are letters, digits, `-`, `_` and `.`"),
        ("a&b", "bad-nodeset", "`a&b`: `&` has no meaning here; write the names"),
        ("@rack1", "bad-nodeset", "`@rack1`: `@` has no meaning here; write the names"),
        ("n*", "bad-nodeset", "`n*`: `*` has no meaning here; write the names"),
        ("n[1-999999999]", "nodeset-too-large", "the nodeset means 999999999 names; the most is 200000"),
        ("n[1-999]m[1-999]", "nodeset-too-large", "the nodeset means 998001 names; the most is 200000"),
        (",".join(["n[1-100000]"] * 3), "nodeset-too-large", "the nodeset means 300000 names; the most is 200000"),
        ("a[1]" * 5, "nodeset-too-large", "`a[1]a[1]a[1]a[1]a[1]` has more than 4 ranges"),
        ("a" * 300_000, "nodeset-too-large", "the nodeset is longer than 262144 characters"),
    ],
)
def test_expand_refuses(text: str, reference: str, message: str) -> None:
    with pytest.raises(NodesetError) as caught:
        expand(text)
    assert [(flaw.reference, flaw.message) for flaw in caught.value.flaws] == [(reference, message)]


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("n001", "n001"),
        ("@rack1&@gpu", "n007"),
        ("@rack1&@gpu!n007,n001", "n001"),
        ("@gpu^n007", "n040"),
        ("@rack[1-2]!@rack2&@gpu", "n007"),
        ("@all!n[002-060]", "n001"),
        ("@*!n[002-060]", "n001"),
        ("n00?!n[001-008]", "n009"),
        ("n[00-01]*&@kubelet-1.20", "n[001-019/2]"),
        (" @gpu , n001 ", "n[001,007,040]"),
    ],
)
def test_select(expression: str, chosen: str) -> None:
    assert fold(select(expression, INVENTORY)) == chosen


def test_select_answers_in_inventory_order() -> None:
    assert select("n001,@gpu", INVENTORY) == ("n040", "n007", "n001")


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("@gpu&n001", "`@gpu&n001` selects no node of cluster c [empty-limit]"),
        ("x*", "`x*` selects no node of cluster c [empty-limit]"),
        ("@gpv", "there is no rack, zone or group `@gpv` (did you mean `@gpu`?) [unknown-group]"),
        ("@", "`@`: `` is not a name; names are letters, digits, `-`, `_` and `.` [bad-nodeset]"),
        ("n61", "no node `n61` in the inventory [unknown-node]"),
        ("@rack1!n[061-062]", "no nodes `n[061-062]` in the inventory (did you mean `n060`?) [unknown-node]"),
        (
            "@x,@y,zzzzzzzz",
            "there is no rack, zone or group `@x`; there is no rack, zone or group `@y`; no node `zzzzzzzz` in the inventory [unknown-group]",
        ),
        ("", "the nodeset is empty [bad-nodeset]"),
    ],
)
def test_select_refuses(expression: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        select(expression, INVENTORY)
    assert str(caught.value) == complaint


TERMS = st.one_of(
    st.sampled_from(["@rack1", "@rack2", "@gpu", "@kubelet-1.20", "n001"]),
    st.tuples(st.integers(1, 60), st.integers(1, 60)).map(lambda ends: f"n[{min(ends):03d}-{max(ends):03d}]"),
)
EXPRESSIONS = st.lists(st.tuples(st.sampled_from(",&!^"), TERMS), min_size=1, max_size=6)


def by_clustershell(expression: list[tuple[str, str]]) -> set[str]:
    """The same expression with every group written out, evaluated by ClusterShell alone."""
    result = NodeSet(resolver=RESOLVER_NOGROUP)
    update = {
        ",": result.update,
        "&": result.intersection_update,
        "!": result.difference_update,
        "^": result.symmetric_difference_update,
    }
    for at, (sign, term) in enumerate(expression):
        names = (
            NodeSet.fromlist(sorted(SETS[term[1:]]), resolver=RESOLVER_NOGROUP)
            if term[0] == "@"
            else NodeSet(term, resolver=RESOLVER_NOGROUP)
        )
        update[sign if at else ","](names)
    return set(result)


@given(EXPRESSIONS)
def test_the_algebra_is_clustershells(expression: list[tuple[str, str]]) -> None:
    text = "".join((sign if at else "") + term for at, (sign, term) in enumerate(expression))
    assert evaluate(text, Names(NODES, SETS)) == by_clustershell(expression)


@given(st.sets(st.integers(0, 9_999), min_size=1, max_size=50))
def test_fold_and_expand_are_inverse(numbers: set[int]) -> None:
    names = {f"tess-node-{number:04d}" for number in numbers}
    assert set(expand(fold(names))) == names


PARTS = st.sampled_from(["n", "node", "-", ".", "_", "0", "1", "07", "9", "12", "9" * 15, "1" * 16, "9" * 101])


@given(st.sets(st.lists(PARTS, min_size=1, max_size=9).map("".join).filter(is_name), max_size=20))
def test_whatever_nodes_are_called_folded_names_are_read_back(names: set[str]) -> None:
    assert set(expand(fold(names))) == names if names else fold(names) == ""


def folded_by_clustershell(names: list[str]) -> str:
    """Each name read by itself."""
    found = NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP, autostep=6)
    found.fold_axis = tuple(range(4))
    return str(found)


def _is_foldable(name: str) -> bool:
    """Names with longer numbers are kept as they are."""
    return is_name(name) and not re.search("[0-9]{16}", name)


SHORT = st.sampled_from(["n", "node", "-", ".", "_", "0", "00", "1", "07", "9", "12", "9" * 15])
ONE_NUMBER = st.builds(
    "{}{}{}".format, st.sampled_from(["n", "node-", "n.", "-n"]), st.integers(0, 200), st.sampled_from(["", "-x", ".b"])
)
PADDED = st.builds(
    "{}{:04d}{}".format, st.sampled_from(["n", "node-"]), st.integers(0, 200), st.sampled_from(["", "-x"])
)
NAMES = ONE_NUMBER | PADDED | st.lists(SHORT, min_size=1, max_size=6).map("".join).filter(_is_foldable)


@given(st.lists(NAMES, max_size=60))
def test_names_are_folded_as_clustershell_folds_them_one_by_one(names: list[str]) -> None:
    assert fold(names) == folded_by_clustershell(names)


@given(st.text(alphabet="n01-9[],&!^@*?/ %ab.", max_size=30))
def test_any_text_is_a_nodeset_or_a_flaw(text: str) -> None:
    try:
        names = evaluate(text, Names(NODES, SETS))
    except NodesetError:
        return
    assert names <= {*NODES}


@pytest.mark.parametrize("text", ["n[1-2]" + "0" * 9, "9" * 5_000 + "[1-2]", "n[1-2]" + "9" * 5_000, "9" * 5_000])
def test_numbers_that_are_too_long_are_a_flaw(text: str) -> None:
    with pytest.raises(NodesetError):
        evaluate(text, Names(NODES, SETS))


def test_fold() -> None:
    assert fold([f"tess-node-{number:04d}" for number in (*range(1, 61), 62)]) == "tess-node-[0001-0060,0062]"
    assert fold([]) == ""


@pytest.mark.parametrize(
    ("text", "good"),
    [("a", True), ("a-b_c.d1", True), ("", False), ("-a", False), ("a-", False), ("a\n", False), ("a" * 254, False)],
)
def test_names(text: str, good: bool) -> None:
    assert is_name(text) is good

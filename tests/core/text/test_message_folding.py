"""Messages that differ only in each node's own name or address become one."""

from __future__ import annotations

from rollout.core.text.message_folding import folded, for_all, nameless


def test_names_and_addresses_are_each_nodes_own() -> None:
    reasons = {
        "n1": "no answer (at 10.0.0.1:22); see it",
        "n2": "no answer (at n2.example.net:22); see it",
        "n3": "n3 is full",
    }
    assert folded(reasons) == {
        "no answer (at the address of NODE); see it": ["n1", "n2"],
        "NODE is full": ["n3"],
    }


def test_the_address_of_a_bastion_is_not_a_nodes_own() -> None:
    text = "bastion ops@b: its host key is not known (at 10.0.0.9:22); see it"
    assert nameless(text, "n1") == text


def test_a_single_node_has_its_name_put_back() -> None:
    assert for_all(nameless("no answer (at 10.0.0.1:22)", "n1"), ["n1"]) == "no answer (at the address of n1)"


def test_what_is_nameless_stays_so() -> None:
    text = nameless("no answer (at 10.0.0.1:22)", "n1")
    assert nameless(text, "n1") == text

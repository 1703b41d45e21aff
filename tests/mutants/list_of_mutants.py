"""The mutants: one line each of what the laws stand on."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

AGENT = "rollout/agent/agent.sh"
SEEDS = "tests/adapters/simulation/test_seeds.py::test_drawn_seeds_keep_every_law"
CHAOS = "tests/chaos/test_a_few_runs.py"
REPLAY = "tests/core/run/test_replay.py"
TRANSACTION = "tests/agent/test_transaction.py"

MUTANTS = (
    Mutant(
        "acts-before-writing",
        "rollout/app/driver.py",
        "            self._write(state, lines)\n        self._submit(commands)\n",
        "            pass\n        self._submit(commands)\n",
        "a controller that dies leaves nodes of which no journal knows",
        (SEEDS,),
    ),
    Mutant(
        "fenced-goes-on",
        "rollout/core/run/machine.py",
        "        draft.fenced(event.node, event.reference, event.message)\n        return\n",
        "        return\n",
        "two controllers work on one fleet",
        (SEEDS,),
    ),
    Mutant(
        "lease-not-asked",
        "rollout/adapters/journal/journal.py",
        "            self._leases.check(connection, run)\n",
        "",
        "a controller that slept through its lease writes into another's run",
        (
            "tests/adapters/journal/test_races.py::test_who_takes_a_lease_over_waits_for_a_write_that_is_under_way_and_none_comes_after",
        ),
    ),
    Mutant(
        "old-token-accepted",
        AGENT,
        '    refuse fenced "this node has accepted token $k_counter of run $k_run"\n',
        "    :\n",
        "an old controller changes nodes that a newer run has",
        (f"{TRANSACTION}::test_an_older_token_is_fenced",),
    ),
    Mutant(
        "drift-overwritten",
        AGENT,
        'check_before() { is_as "$3" "$2" ||',
        "check_before() { true ||",
        "bytes that others wrote since the plan are lost",
        (f"{TRANSACTION}::test_a_drifted_file_is_not_touched",),
    ),
    Mutant(
        "guard-that-only-looks",
        AGENT,
        "  guard_locked 9>&-\n",
        "",
        "a node whose controller died keeps what nobody confirmed",
        (f"{CHAOS}::test_the_controller_is_killed_between_two_renames_of_a_node",),
    ),
    Mutant(
        "boot-that-only-looks",
        AGENT,
        "        take_back boot files || return 1\n",
        "        :\n",
        "after a power cut a node runs with half of a change",
        (f"{CHAOS}::test_a_node_loses_its_power_while_it_is_armed", "tests/agent/test_power_cuts.py"),
    ),
    Mutant(
        "late-confirm-accepted",
        AGENT,
        '      if [ "$r_boot" != "$boot" ] || [ "$now" -ge "$r_deadline" ]; then\n',
        "      if false; then\n",
        "a change is confirmed that the guard is taking back",
        (f"{TRANSACTION}::test_confirm_after_the_deadline_reverts",),
    ),
    Mutant(
        "receipt-not-synced",
        AGENT,
        'mv -f "$T/next/$1" "$T/receipt" && flush "$T"',
        'mv -f "$T/next/$1" "$T/receipt"',
        "after a power cut the node does not know that it is in a transaction",
        ("tests/agent/test_syncs.py",),
    ),
    Mutant(
        "one-too-many",
        "rollout/core/run/capacity.py",
        "        return most_of(order, area) - busy[area]\n",
        "        return most_of(order, area) - busy[area] + 1\n",
        "more of a rack are away than its limit",
        (SEEDS,),
    ),
    Mutant(
        "unknown-is-good",
        "rollout/app/node_gates.py",
        "Verdict.UNKNOWN: Trigger.GATES_UNKNOWN}",
        "Verdict.UNKNOWN: Trigger.GATES_PASSED}",
        "a node is confirmed that nobody could ask",
        ("tests/adapters/kubernetes/test_node_gates.py::test_a_gate_that_may_not_look_is_unknown",),
    ),
    Mutant(
        "silent-not-owed",
        "rollout/core/run/transitions.py",
        "    (S.UNKNOWN, Sharp.GIVEN_UP): Move(S.UNREACHABLE, charge=_GONE, owed=True),\n",
        "    (S.UNKNOWN, Sharp.GIVEN_UP): Move(S.UNREACHABLE, charge=_GONE),\n",
        "a node that could not be reached is forgotten",
        (SEEDS,),
    ),
    Mutant(
        "cordon-left",
        "rollout/core/run/drain_rounds.py",
        "            draft.ask(name, Verb.UNCORDON)\n",
        "            pass\n",
        "nodes stay cordoned after the run",
        (SEEDS,),
    ),
    Mutant(
        "names-decide-the-order",
        "rollout/core/run/state.py",
        '        object.__setattr__(self, "nodes", {name: self.nodes[name] for name in names})\n',
        "        del names\n",
        "status and resume tell another story than the run",
        (SEEDS, f"{REPLAY}::test_names_that_sort_otherwise_than_they_stand_replay_to_the_same_run"),
    ),
    Mutant(
        "ticks-not-in-the-journal",
        "rollout/core/run/machine.py",
        "    return replace(event, at=state.now) if event.at < state.now and not isinstance(event, Resumed) else event\n",
        "    return event\n",
        "a resumed run goes by another clock than the run that died",
        (SEEDS, f"{REPLAY}::test_an_answer_that_was_made_before_a_tick_that_changed_nothing_carries_its_time"),
    ),
    Mutant(
        "confirm-without-digests",
        AGENT,
        "        check_ordered\n",
        "",
        "a node is confirmed that holds half of a change, or somebody else's bytes",
        ("tests/agent/test_ordered.py",),
    ),
    Mutant(
        "restart-not-awaited",
        AGENT,
        '    is_seen_restarted "$name" || unrestarted="$unrestarted${unrestarted:+ }$name"\n',
        "    :\n",
        "a node is told as reverted whose kubelet still runs the new configuration",
        ("tests/agent/test_guard_bounds.py::test_a_systemd_that_hangs_delays_no_file_and_ends_at_the_limit",),
    ),
    Mutant(
        "flush-that-cannot-fail",
        AGENT,
        "|| { undurable=1 && return 1; }",
        "|| :",
        "what a disk has lost is told as done",
        ("tests/agent/test_lost_writes.py",),
    ),
    Mutant(
        "one-file-stops-the-others",
        AGENT,
        'give_back "$n" || kept="$kept${kept:+ }$f_path"',
        'give_back "$n" || { kept=$f_path && return 1; }',
        "a file that cannot be renamed leaves a node between two configurations",
        ("tests/agent/test_fixed_files.py",),
    ),
    Mutant(
        "sent-after-the-end",
        "rollout/adapters/ssh/outlet.py",
        "            if self._closed:\n                return\n",
        "",
        "a real OpenSSH bastion ends the connection, and every node behind it is lost",
        ("tests/adapters/ssh/test_outlet.py::test_what_comes_after_the_end_is_not_sent",),
    ),
    Mutant(
        "end-overtakes-data",
        "rollout/adapters/ssh/outlet.py",
        "            if self._sending:\n                return\n",
        "",
        "a real OpenSSH bastion ends the connection, and every node behind it is lost",
        ("tests/adapters/ssh/test_outlet.py::test_what_is_being_sent_goes_before_the_end_and_holds_up_nobody",),
    ),
)

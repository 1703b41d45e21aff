"""The mutants: each removes one line that the laws depend on."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SEEDS = "tests/simulator/test_seeds.py::test_drawn_seeds_keep_every_law"
CHAOS = "tests/chaos/test_a_few_runs.py"
REPLAY = "tests/core/run/test_replay.py"
TRANSACTION = "tests/agent/test_transaction.py"

MUTANTS = (
    Mutant(
        "acts-before-writing",
        "rollout/app/driver.py",
        "            self._write(state, lines)\n        self._submit(commands)\n",
        "            pass\n        self._submit(commands)\n",
        "a controller that dies leaves changed nodes that no journal records",
        (SEEDS,),
    ),
    Mutant(
        "fenced-goes-on",
        "rollout/core/run/machine.py",
        "        fenced(builder, event.node, event.reference, event.message)\n",
        "",
        "two controllers work on one fleet",
        (SEEDS,),
    ),
    Mutant(
        "lease-not-asked",
        "rollout/adapters/journal/journal.py",
        "            self._leases.check(connection, run)\n",
        "",
        "a controller with an expired lease writes into another's run",
        (
            "tests/adapters/journal/test_races.py::test_a_takeover_of_a_lease_waits_for_a_write_in_progress_and_no_write_follows",
        ),
    ),
    Mutant(
        "old-token-accepted",
        "rollout/agent/lock.sh",
        '    refuse fenced "this node has accepted token $k_counter of run $k_run"\n',
        "    :\n",
        "an old controller changes nodes of a newer run",
        (f"{TRANSACTION}::test_an_older_token_is_fenced",),
    ),
    Mutant(
        "drift-overwritten",
        "rollout/agent/checks.sh",
        'check_before() { is_as "$3" "$2" ||',
        "check_before() { true ||",
        "bytes that others wrote since the plan are lost",
        (f"{TRANSACTION}::test_a_drifted_file_is_not_touched",),
    ),
    Mutant(
        "guard-that-only-looks",
        "rollout/agent/triggers.sh",
        "  guard_locked 9>&-\n",
        "",
        "a node keeps an unconfirmed change after its controller died",
        (f"{CHAOS}::test_the_controller_is_killed_between_two_renames_of_a_node",),
    ),
    Mutant(
        "boot-that-only-looks",
        "rollout/agent/triggers.sh",
        "        take_back boot files || return 1\n",
        "        :\n",
        "after a power cut a node runs with half of a change",
        (f"{CHAOS}::test_a_node_loses_its_power_while_it_is_armed", "tests/agent/test_power_cuts.py"),
    ),
    Mutant(
        "late-confirm-accepted",
        "rollout/agent/confirm.sh",
        '      if [ "$r_boot" != "$boot" ] || [ "$now" -ge "$r_deadline" ]; then\n',
        "      if false; then\n",
        "a change is confirmed while the guard reverts it",
        (f"{TRANSACTION}::test_confirm_after_the_deadline_reverts",),
    ),
    Mutant(
        "receipt-not-synced",
        "rollout/agent/receipt.sh",
        'esac && flush "$T"',
        "esac",
        "after a power cut the node does not know that it is in a transaction",
        ("tests/agent/test_syncs.py",),
    ),
    Mutant(
        "one-too-many",
        "rollout/core/run/capacity.py",
        "        return layout.most[place] - records.count(Count.UNAVAILABLE, place)\n",
        "        return layout.most[place] - records.count(Count.UNAVAILABLE, place) + 1\n",
        "more nodes of a rack are unavailable than its limit allows",
        (SEEDS,),
    ),
    Mutant(
        "list-forgotten",
        "rollout/core/run/records.py",
        "                listed[each] ^= 1 << at\n",
        "                pass\n",
        "decisions look at lists of nodes that are not what the records say",
        (SEEDS,),
    ),
    Mutant(
        "unknown-is-good",
        "rollout/app/node_gates.py",
        "Verdict.UNKNOWN: Trigger.GATES_UNKNOWN}",
        "Verdict.UNKNOWN: Trigger.GATES_PASSED}",
        "a node is confirmed although a gate could not measure it",
        ("tests/adapters/kubernetes/test_node_gates.py::test_a_gate_that_may_not_look_is_unknown",),
    ),
    Mutant(
        "unreachable-forgotten",
        "rollout/core/run/transitions.py",
        "    (S.UNKNOWN, ResolvedTrigger.GIVEN_UP): Move(S.UNREACHABLE, charge=_GONE, owed=True),\n",
        "    (S.UNKNOWN, ResolvedTrigger.GIVEN_UP): Move(S.UNREACHABLE, charge=_GONE),\n",
        "an unreachable node is not recorded as a pending recovery",
        (SEEDS,),
    ),
    Mutant(
        "cordon-left",
        "rollout/core/run/drain_rounds.py",
        "            ask(builder, name, Verb.UNCORDON)\n",
        "            pass\n",
        "nodes stay cordoned after the run",
        (SEEDS,),
    ),
    Mutant(
        "names-decide-the-order",
        "rollout/core/run/state.py",
        '        object.__setattr__(self, "nodes", {name: self.nodes[name] for name in names})\n',
        "        del names\n",
        "status and resume differ from the run",
        (SEEDS, f"{REPLAY}::test_names_that_sort_in_another_order_replay_to_the_same_run"),
    ),
    Mutant(
        "ticks-not-in-the-journal",
        "rollout/core/run/machine.py",
        "    return replace(event, at=state.now) if event.at < state.now and not isinstance(event, Resumed) else event\n",
        "    return event\n",
        "a resumed run uses another clock than the run that died",
        (SEEDS, f"{REPLAY}::test_an_answer_made_before_a_tick_that_changed_nothing_gets_the_ticks_time"),
    ),
    Mutant(
        "confirm-without-digests",
        "rollout/agent/confirm.sh",
        "        check_ordered\n",
        "",
        "a node with half of a change, or with foreign bytes, is confirmed",
        ("tests/agent/test_ordered.py",),
    ),
    Mutant(
        "restart-not-awaited",
        "rollout/agent/restarts.sh",
        '    is_seen_restarted "$name" || unrestarted="$unrestarted${unrestarted:+ }$name"\n',
        "    :\n",
        "a node is reported as reverted while its kubelet still runs the new configuration",
        ("tests/agent/test_guard_bounds.py::test_a_systemd_that_hangs_delays_no_file_and_ends_at_the_limit",),
    ),
    Mutant(
        "flush-that-cannot-fail",
        "rollout/agent/words.sh",
        "|| { undurable=1 && return 1; }",
        "|| :",
        "a write that the disk has lost is reported as done",
        ("tests/agent/test_lost_writes.py",),
    ),
    Mutant(
        "one-file-stops-the-others",
        "rollout/agent/revert.sh",
        'give_back "$n" || kept="$kept${kept:+ }$f_path"',
        'give_back "$n" || { kept=$f_path && return 1; }',
        "a file that cannot be renamed leaves a node between two configurations",
        ("tests/agent/test_fixed_files.py",),
    ),
    Mutant(
        "nonce-not-compared",
        "rollout/kubelet/agent/conversation.py",
        """    if not any(head.startswith(output[: len(head)]) for head in (f"begin {nonce}\\n".encode(), mark(nonce))):
        raise ValueError("the node's output is not an answer to this request")
    for found in OVER.finditer(output):
        if found[1] == nonce.encode():
            return Answer(output[: found.start()], int(found[2]), output[found.end() :])
""",
        """    for found in OVER.finditer(output):
        return Answer(output[: found.start()], int(found[2]), output[found.end() :])
""",
        "an older answer of a node counts as the answer to a newer request",
        (
            "tests/agent/test_conversation.py::test_another_answer_is_no_answer",
            "tests/adapters/ssh/test_conversations.py::test_an_answer_in_doubt_is_lost_and_ends_the_connection",
        ),
    ),
    Mutant(
        "talks-on-after-a-doubt",
        "rollout/adapters/ssh/conversation.py",
        "        self.usable, first = False, not self._begun\n",
        "        first = not self._begun\n",
        "a connection serves the next request, too, after an answer that was in doubt or late",
        ("tests/adapters/ssh/test_conversations.py::test_after_a_doubt_not_even_a_good_answer_counts",),
    ),
    Mutant(
        "a-verb-takes-its-shells-name",
        "rollout/agent/lock.sh",
        '  printf \'%s %s\\n\' "$self" "$born"',
        '  printf \'%s %s\\n\' "$$" "$born"',
        "a guard that waits for a verb kills the conversation, and the verb goes on beside it",
        ("tests/agent/test_conversation.py::test_a_verb_is_the_holder_of_the_lock_and_not_the_conversation",),
    ),
    Mutant(
        "sent-after-the-end",
        "rollout/adapters/ssh/transport.py",
        "            if self._closed:\n                return\n",
        "",
        "a real OpenSSH bastion ends the connection, and every node behind it is lost",
        ("tests/adapters/ssh/test_outlet.py::test_data_after_the_close_is_not_sent",),
    ),
    Mutant(
        "end-overtakes-data",
        "rollout/adapters/ssh/transport.py",
        "            if self._sending:\n                return\n",
        "",
        "a real OpenSSH bastion ends the connection, and every node behind it is lost",
        ("tests/adapters/ssh/test_outlet.py::test_data_in_progress_is_sent_before_the_close_and_blocks_no_thread",),
    ),
    Mutant(
        "header-outside-the-chain",
        "rollout/adapters/journal/reads.py",
        "    return beginning(header) if header else GENESIS\n",
        "    return GENESIS\n",
        "a change of a run's order or reason in the database is not detected",
        ("tests/adapters/journal/test_contract.py::test_a_header_that_was_changed_is_refused",),
    ),
    Mutant(
        "head-not-looked-at",
        "rollout/adapters/journal/reads.py",
        "        self._check_kept(run, kept, after + len(bodies), hashes)\n",
        "",
        "a journal without its last events is accepted as the whole run",
        (
            "tests/adapters/journal/test_contract.py::test_a_truncated_chain_is_detected_by_the_head_outside_the_database",
        ),
    ),
    Mutant(
        "sorted-keys",
        "rollout/core/run/state.py",
        "        names = sorted(self.nodes, key=lambda name: (place.get(name, len(place)), name))\n",
        "        names = sorted(self.nodes)\n",
        "nodes are changed in the order of their names in the journal, not in the order of the plan's waves",
        (f"{REPLAY}::test_nodes_go_in_the_order_of_the_waves_whatever_the_order_of_the_mapping",),
    ),
    Mutant(
        "stuck-is-busy",
        "rollout/core/run/events.py",
        "        return Trigger.STUCK\n    return _of_receipt",
        "        return Trigger.BUSY\n    return _of_receipt",
        "a node with a revert that cannot end is reported as busy, without a reason",
        ("tests/core/run/test_events.py::test_the_meaning_of_an_answer",),
    ),
    Mutant(
        "pulls-not-looked-for",
        "rollout/agent/apply.sh",
        "  refuse_pulls\n",
        "",
        "a restart cancels the image pulls of its node",
        (
            "tests/agent/test_pulls.py::test_an_apply_that_would_cancel_a_pull_is_refused_and_leaves_nothing",
            "tests/real/test_docker_fleet.py::test_a_node_that_pulls_images_is_changed_last_after_its_pulls",
        ),
    ),
    Mutant(
        "sandbox-of-others",
        "rollout/agent/guard.sh",
        "NoExecPaths= ProtectSystem=no ",
        "NoExecPaths= ",
        "under a drop-in for all services the node's change is refused, or its guard cannot write",
        (
            "tests/real/test_foreign_drop_ins.py::test_an_unconfirmed_change_is_reverted_under_a_drop_in_for_all_services",
        ),
    ),
    Mutant(
        "guard-that-tried-nothing",
        "rollout/agent/guard.sh",
        """  [ "$outcome_there" = complete ] || return 1
""",
        "",
        "a guard that cannot write is armed: its node keeps an unconfirmed change for ever",
        ("tests/agent/test_guard_proof.py::test_a_unit_that_cannot_do_what_a_revert_does_is_refused",),
    ),
    Mutant(
        "drop-in-after-ours",
        "rollout/agent/guard.sh",
        """  case $last in *"/$SHIELD") ;; *) why=""",
        """  case $last in *) ;; none) why=""",
        "a drop-in that sorts last takes from the guard's service or the boot unit what a revert needs",
        ("tests/agent/test_guard_proof.py::test_a_drop_in_that_sorts_after_ours_is_named",),
    ),
    Mutant(
        "limited-guard",
        "rollout/agent/guard.sh",
        """  [ -z "$odd" ] || {""",
        """  true || {""",
        "a guard with too little time, memory or tasks is armed, and ends in the middle of a revert",
        ("tests/agent/test_guard_proof.py::test_what_no_drop_in_of_ours_can_reset_is_refused",),
    ),
    Mutant(
        "forgotten-file-of-a-guard",
        "rollout/agent/cleanup.sh",
        """  [ -z "$files_of_idle" ] || rm -rf $files_of_idle
""",
        "",
        "files of a guard stay in /run after a run that reports a complete cleanup",
        ("tests/agent/test_guard_proof.py::test_a_file_of_a_guard_that_systemd_has_forgotten_is_removed",),
    ),
    Mutant(
        "left-for-ever",
        "rollout/app/maintenance.py",
        """        if report.token and report.leftovers and name not in moving
""",
        """        if False
""",
        "a copy that a run could not remove stays beside the kubelet's files, and no command removes it",
        ("tests/app/test_maintenance.py::test_a_node_is_littered_where_something_is_left_that_no_guard_needs",),
    ),
    Mutant(
        "measured-once-for-ever",
        "rollout/app/node_worker.py",
        "found = self.just_measured.pop(ask.node, None)",
        "found = self.just_measured.get(ask.node)",
        "a soak judges a node by what it was right after its change",
        ("tests/app/test_node_worker.py::test_a_measurement_counts_once_and_only_for_its_own_transaction",),
    ),
)

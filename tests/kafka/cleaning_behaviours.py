"""Behaviours 79 and 86 to 95: what Kafka's log cleaner leaves of a partition, and the tests that show it here.

A compaction writes segments anew and commits to the partition log what takes whose place.  There are no empty batches:
what they keep in Kafka (sequences, epochs, the end of the log) has names and entries of its own.
"""

from __future__ import annotations

from tests.kafka.behaviour import Behaviour

CLEANER = "unit/compaction/test_log_cleaner.py"
CLEANING = "unit/compaction/test_cleaning.py"
CRASHES = "simulation/test_compaction_crashes.py"
HISTORIES = "simulation/test_compaction.py"
PARTITION_LOG = "unit/partition/test_partition_log.py"
REMOVAL = "unit/partition/test_removal.py"
REWRITING = "unit/partition/test_rewriting_effects.py"
ELIGIBLE = "unit/compaction/test_eligible.py"
STATE_ENTRY = "unit/partition/test_state_entry.py"

BEHAVIOURS = (
    Behaviour(
        "79",
        "Producer state is rebuilt after compaction, from empty batches too, and after truncation.",
        {
            PARTITION_LOG: [
                "test_state_is_the_same_live_from_a_checkpoint_and_folded_from_zero",
                "test_compaction_changes_nothing_that_producers_and_bounds_are_decided_on",
            ],
            REMOVAL: ["test_state_entry_is_complete_through_the_next_offset"],
            HISTORIES: ["test_nobody_notices_a_compaction_in_any_history"],
        },
        "No empty batches, no snapshots, nothing is truncated: the commit that removes data carries its state on.",
    ),
    Behaviour(
        "86",
        "What is not decided is not cleaned, and nothing behind it.",
        {
            CLEANER: [
                "test_undecided_data_is_not_cleaned_nor_what_stands_behind_it",
                "test_open_transaction_holds_back_only_what_is_behind_its_first_record",
            ],
            ELIGIBLE: ["test_open_transaction_ends_what_is_eligible"],
        },
        "Neither is what was decided less than snapshot_retention_ms ago.",
    ),
    Behaviour(
        "87",
        "Cleaning keeps the last committed values; aborted ones go, and hide none.",
        {
            CLEANER: [
                "test_last_committed_values_stay_and_an_aborted_one_hides_none",
                "test_aborted_tombstone_deletes_nothing",
            ],
            HISTORIES: ["test_nobody_notices_a_compaction_in_any_history"],
            "unit/admin/test_create_partitions.py": [
                "test_compacted_topic_gets_more_partitions_only_while_it_has_had_no_record"
            ],
        },
        "A compacted topic that has had records gets no more partitions: none of a key would be the last.",
    ),
    Behaviour(
        "88",
        "A transaction over several segments, cleaned in several passes, keeps its outcome.",
        {
            CLEANER: ["test_transaction_over_several_segments_is_cleaned_in_several_rounds"],
            REMOVAL: ["test_marker_goes_with_the_last_row_in_the_topic_that_waits_for_it"],
            CRASHES: ["test_compaction_killed_anywhere_loses_nothing_and_the_next_one_leaves_what_one_would_have"],
        },
        "There is no index of aborted transactions: a row that outlives its marker says itself that it is committed.",
    ),
    Behaviour(
        "89",
        "A commit marker stays while data of its transaction does; it goes two passes later, after a horizon.",
        {
            CLEANER: ["test_marker_stays_while_data_of_its_transaction_waits_for_it_and_goes_with_it"],
            REMOVAL: ["test_marker_goes_with_the_last_row_in_the_topic_that_waits_for_it"],
        },
        "It goes in the same commit as the last row that waits for it, in all partitions at once: no reader of that "
        "version needs it, and readers of older ones have it in theirs.",
    ),
    Behaviour(
        "90",
        "Of an aborted transaction the data goes first, the marker after the horizon.",
        {
            CLEANER: ["test_marker_stays_while_data_of_its_transaction_waits_for_it_and_goes_with_it"],
            REWRITING: ["test_only_what_an_abort_marker_ended_is_taken_away_as_aborted"],
        },
        "Both go in one commit.",
    ),
    Behaviour(
        "91",
        "The marker that is a producer's last word is kept with an empty batch: for commits and for aborts.",
        {
            CLEANER: ["test_producer_is_fenced_and_goes_on_as_before_when_its_data_and_its_marker_are_gone"],
            REWRITING: ["test_zombie_of_a_transaction_whose_rows_and_marker_are_gone_is_refused"],
        },
        "The state entry of the partition keeps epoch and sequences; no row of the producer is needed.",
    ),
    Behaviour(
        "92",
        "Empty batches go when their sequences are used again.",
        note="There are no empty batches; a state entry is replaced by the next one.",
    ),
    Behaviour(
        "93",
        "The last sequence is kept, of an aborted transaction too: a batch sent again is known after cleaning.",
        {
            CLEANER: ["test_idempotent_producer_goes_on_with_its_sequence_when_all_its_records_were_superseded"],
            REWRITING: [
                "test_batch_sent_again_after_it_was_merged_away_is_answered_with_its_first_offsets",
                "test_open_transaction_goes_on_across_a_compaction_of_everything_else",
            ],
        },
        "Of an aborted transaction the raised epoch is kept, under which sequences begin at 0.",
    ),
    Behaviour(
        "94",
        "A key with the bytes of a marker's key is a key like any other.",
        {CLEANER: ["test_key_that_looks_like_a_markers_is_a_key_like_any_other"]},
        "Markers are rows of the log and no records: they have no keys.",
    ),
    Behaviour(
        "95",
        "An empty batch at the high watermark is kept, others are not; tombstones stay until their horizon.",
        {
            CLEANER: [
                "test_log_of_which_no_record_is_left_keeps_its_end_and_its_lso",
                "test_tombstone_stays_for_its_retention_after_the_first_cleaning_that_saw_it",
            ],
            STATE_ENTRY: ["test_tombstone_goes_when_the_first_cleaning_over_it_is_old_enough"],
            CLEANING: ["test_tombstones_go_below_the_last_cleaning_that_is_their_retention_ago"],
        },
        "The end of the log is a named number and needs no batch.",
    ),
)

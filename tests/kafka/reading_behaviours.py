"""Behaviours 73 to 78, 84, 85, 102 to 104 and 118: reading, and the tests that show it here.

There is no abort index and no filter in the client: whole segments are visible or not, and the public table says which.
"""

from __future__ import annotations

from tests.kafka.behaviour import Behaviour

CONSUMER = "unit/consumer/test_consumer.py"
MACHINE = "unit/consumer/test_consumer_machine.py"
OFFSETS = "unit/consumer/test_consumer_offsets.py"
RETRIES = "unit/producer/test_transaction_retries.py"
STABLE_OFFSET = "unit/partition/test_last_stable_offset.py"
VIEW = "unit/partition/test_topic_view.py"

BEHAVIOURS = (
    Behaviour(
        "73",
        "A read_committed read stops at the last stable offset, also while the high watermark rises.",
        {
            CONSUMER: ["test_only_committed_records_below_the_last_stable_offset_are_returned_at_read_committed"],
            MACHINE: ["TestConsumer"],
        },
    ),
    Behaviour(
        "74",
        "The first unstable offset is that of the first open transaction with data.",
        {
            STABLE_OFFSET: [
                "test_end_of_the_first_transaction_moves_it_to_the_next_open_one_and_the_last_to_the_end",
                "test_transaction_holds_back_only_the_partitions_with_its_data",
                "test_marker_without_data_holds_nothing_back_and_takes_an_offset",
            ]
        },
        "Logs are never truncated.",
    ),
    Behaviour(
        "75",
        "The last stable offset is never below the log start offset.",
        {
            STABLE_OFFSET: [
                "test_never_below_the_log_start_and_the_same_for_who_opens_the_log_anew",
                "test_data_that_retention_took_whole_holds_back_no_partition_any_more",
            ],
            "unit/partition/test_log_start.py": [
                "test_open_transaction_does_not_block_retention_and_the_stable_offset_is_the_log_start"
            ],
            "unit/admin/test_delete_records.py": ["test_stable_offset_is_never_below_the_log_start"],
        },
    ),
    Behaviour(
        "76",
        "Plain records above an open transaction wait for it, too.",
        {
            CONSUMER: ["test_only_committed_records_below_the_last_stable_offset_are_returned_at_read_committed"],
            VIEW: ["test_levels_differ_in_what_an_open_transaction_holds_back"],
        },
    ),
    Behaviour(
        "77",
        "All segments of an aborted transaction are known to be aborted.",
        {
            CONSUMER: ["test_interleaved_transactions_are_returned_in_offset_order_without_those_aborted"],
            VIEW: ["test_each_level_plans_exactly_what_a_naive_reader_finds"],
        },
        "There is no index of aborted transactions to write: an aborted segment is not in the public table.",
    ),
    Behaviour(
        "78",
        "When what tells readers of an abort cannot be written, the last stable offset stays until it is.",
        {
            RETRIES: ["test_marker_that_could_not_be_written_does_not_fail_the_commit"],
            CONSUMER: ["test_transaction_of_a_producer_that_died_after_its_decision_is_completed_by_who_polls"],
        },
    ),
    Behaviour(
        "84",
        "Offsets by time, and the special times earliest and latest.",
        {
            OFFSETS: [
                "test_time_lookup_finds_the_first_record_shown_and_never_an_aborted_one",
                "test_seek_to_the_end_and_the_beginning_go_to_the_bounds",
            ]
        },
        "On purpose: a lookup never answers with the offset of a marker or of an aborted record. No leader epochs.",
    ),
    Behaviour(
        "85",
        "The index of aborted transactions: order, lookup, truncation, a missing file.",
        note="There is no such index.",
    ),
    Behaviour(
        "102",
        "Of transactions to two topics read_committed shows those that committed, read_uncommitted all.",
        {CONSUMER: ["test_committed_and_aborted_transactions_of_two_topics_are_told_apart_by_level"]},
    ),
    Behaviour(
        "103",
        "read_committed never shows what is undecided, wakes when it is decided, and ends at the last stable offset.",
        {
            CONSUMER: ["test_transaction_decided_while_polled_appears_in_parts_and_in_order"],
            OFFSETS: [
                "test_latest_is_the_default_and_begins_at_the_last_stable_offset",
                "test_ends_are_the_last_stable_offset_or_the_high_watermark_by_level",
            ],
            "unit/consumer/test_consumer_calls.py": ["test_waiting_poll_returns_as_soon_as_there_is_something"],
        },
    ),
    Behaviour(
        "104",
        "Of interleaved transactions of two producers the aborted one is left out.",
        {CONSUMER: ["test_interleaved_transactions_are_returned_in_offset_order_without_those_aborted"]},
    ),
    Behaviour(
        "118",
        "The position moves over markers, aborted records and gaps; lag counts to the last stable offset.",
        {
            CONSUMER: [
                "test_position_passes_markers_and_aborted_records_when_nothing_is_returned",
                "test_position_is_the_bound_after_everything_below_it_was_returned",
                "test_position_is_behind_the_last_record_returned_when_the_poll_was_cut",
            ],
            MACHINE: ["TestConsumer"],
            "unit/compaction/test_log_cleaner.py": [
                "test_consumer_in_the_middle_goes_on_behind_what_it_has_read",
            ],
        },
        "The client filters nothing.",
    ),
)

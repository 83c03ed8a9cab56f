"""Behaviours 50 to 72 and 80 to 83: producer state and the log of a partition, and the tests that show them here.

There are no replicas and no local files: what is in the partition log is durable, and producer state is a fold of it.
"""

from __future__ import annotations

from tests.kafka.behaviour import Behaviour

CALLS = "unit/producer/test_producer_calls.py"
COMMIT = "unit/log/test_commit.py"
DELETION = "unit/admin/test_delete_records.py"
DELIVERY = "unit/producer/test_delivery.py"
EXPIRATION = "unit/partition/test_expiration.py"
EXPIRY = "unit/upkeep/test_coordinator_expiry.py"
HANGING = "unit/admin/test_transaction_admin.py"
JOB = "unit/upkeep/test_coordinator_job.py"
LOG_START = "unit/partition/test_log_start.py"
LOG_STATE = "unit/log/test_state.py"
PARTITION_LOG = "unit/partition/test_partition_log.py"
PRODUCER = "unit/producer/test_producer.py"
PRODUCER_STATE = "unit/partition/test_producer_state.py"
RETENTION = "unit/topics/test_retention.py"
RETRIES = "unit/producer/test_producer_retries.py"
ROWS = "unit/partition/test_rows_of_segments.py"
SEQUENCES = "unit/partition/test_sequences.py"
SHARD = "unit/coordinator/test_transaction_shard.py"
STABLE_OFFSET = "unit/partition/test_last_stable_offset.py"
TRANSACTION_RETRIES = "unit/producer/test_transaction_retries.py"
VERIFICATION = "unit/coordinator/test_verification.py"
WAREHOUSE = "unit/test_warehouse.py"

TRUTH_TABLE = ["test_batch_is_answered_by_epoch_and_sequence"]

BEHAVIOURS = (
    Behaviour(
        "50",
        "The first append sets epoch and sequence; a gap, an older epoch and an old duplicate are errors.",
        {PRODUCER_STATE: TRUTH_TABLE},
    ),
    Behaviour(
        "51",
        "Sequences begin again at 0 after 2147483647, also inside of a batch.",
        {SEQUENCES: ["test_sequences_go_on_where_kafkas_begin_again"]},
        "They have 64 bits and go on; 0 after the last 32-bit number is out of order.",
    ),
    Behaviour(
        "52",
        "Loading takes any first sequence and any gap.",
        {
            SEQUENCES: ["test_replay_takes_what_the_log_holds_and_checks_nothing"],
            PARTITION_LOG: ["test_state_is_the_same_live_from_a_checkpoint_and_folded_from_zero"],
        },
    ),
    Behaviour(
        "53",
        "The marker of an unknown producer makes state that fences its epoch and wants sequence 0.",
        {
            SEQUENCES: ["test_marker_of_an_unknown_producer_demands_the_raised_epoch_and_sequence_zero"],
            PARTITION_LOG: ["test_marker_goes_to_an_enrolled_partition_without_data_and_fences_it"],
        },
    ),
    Behaviour(
        "54",
        "A marker raises the epoch; the old line of sequences is then out of order.",
        {PRODUCER_STATE: ["test_marker_raises_the_epoch_and_forgets_the_batches", *TRUTH_TABLE]},
    ),
    Behaviour(
        "55",
        "A batch outside of the producer's open transaction is INVALID_TXN_STATE.",
        {
            PRODUCER_STATE: TRUTH_TABLE,
            SEQUENCES: ["test_batch_outside_of_the_producers_open_transaction_is_refused_in_that_partition_only"],
        },
    ),
    Behaviour(
        "56",
        "The first offset of an open transaction is known without reading an index.",
        {
            PARTITION_LOG: ["test_offsets_are_contiguous_and_the_lso_is_safe"],
            WAREHOUSE: ["test_description_of_topics_tells_what_an_open_transaction_holds_back"],
        },
        "There is no index file: it is part of the folded state.",
    ),
    Behaviour(
        "57",
        "The first unstable offset follows open transactions, the high watermark and truncation.",
        {
            PARTITION_LOG: ["test_offsets_are_contiguous_and_the_lso_is_safe"],
            STABLE_OFFSET: [
                "test_transaction_holds_back_only_the_partitions_with_its_data",
                "test_never_below_the_log_start_and_the_same_for_who_opens_the_log_anew",
            ],
        },
        "No replicas: what is appended is replicated, and nothing is ever truncated.",
    ),
    Behaviour(
        "58",
        "When a transaction ends, the stable offset moves to the next open one or behind the marker.",
        {
            STABLE_OFFSET: [
                "test_end_of_the_first_transaction_moves_it_to_the_next_open_one_and_the_last_to_the_end",
                "test_end_of_a_later_transaction_leaves_it_where_the_first_one_holds_it",
            ]
        },
    ),
    Behaviour(
        "59",
        "Markers without data complete nothing; several transactions can end in one append.",
        {
            STABLE_OFFSET: ["test_marker_without_data_holds_nothing_back_and_takes_an_offset"],
            PARTITION_LOG: ["test_group_commit_gives_offsets_in_decision_order"],
        },
    ),
    Behaviour(
        "60",
        "Producer state survives a snapshot, with transactions open, ended and empty.",
        {
            PARTITION_LOG: ["test_state_is_the_same_live_from_a_checkpoint_and_folded_from_zero"],
            ROWS: ["test_state_entry_is_read_as_written"],
        },
        "The snapshot is the log's checkpoint; all of the last five batches survive it, not only the last one.",
    ),
    Behaviour(
        "61",
        "A damaged snapshot is deleted and an older one taken; stray ones are removed.",
        {
            LOG_STATE: [
                "test_log_is_refused_when_its_checkpoint_is_truncated",
                "test_cold_start_finds_the_newest_checkpoint_when_the_hint_is_missing_or_wrong",
            ],
            ROWS: ["test_row_that_can_not_be_read_is_refused_by_who_opens_a_checkpoint"],
        },
        "A damaged checkpoint is refused and never passed over: the entries below it may be gone.",
    ),
    Behaviour(
        "62",
        "Idle producers are forgotten, those with an open transaction never; a fencing marker keeps its producer.",
        {
            EXPIRATION: [
                "test_idle_producer_is_forgotten_and_a_busy_one_stays",
                "test_producer_with_an_open_transaction_is_never_forgotten_where_its_data_is",
                "test_marker_keeps_a_producer_for_another_expiration_time",
            ]
        },
        "By commits, so that every client forgets at the same version; not at a reload.",
    ),
    Behaviour(
        "63",
        "A marker of an old epoch is refused; the same marker again is taken when no transaction is open.",
        {
            PRODUCER_STATE: ["test_marker_of_an_earlier_epoch_changes_nothing"],
            PARTITION_LOG: ["test_second_completer_writes_nothing"],
        },
        "Markers come from decisions in the transaction log; the second writer of one finds it and writes nothing.",
    ),
    Behaviour(
        "64",
        "A marker of an old coordinator epoch is refused, also after a reload.",
        {
            JOB: [
                "test_markers_are_refused_on_the_reading_of_the_transaction_log_that_shows_anothers_lease",
                "test_fenced_job_writes_nothing_after_the_commit_at_which_it_noticed",
                "test_marker_carries_the_epoch_of_the_lease_whoever_writes_it",
            ],
            PARTITION_LOG: ["test_second_completer_writes_nothing"],
        },
        "Anyone may write a marker that is owed, and all write the same; only the job stops when it lost its lease.",
    ),
    Behaviour(
        "65",
        "Appends to the offsets topic are not checked for sequences.",
        {SHARD: ["test_enrol_refuses_another_epoch_as_data_or_as_offsets"]},
        "Offsets are rows of the offset log and have no sequences.",
    ),
    Behaviour(
        "66",
        "A control batch without a record is ignored; transactions that are late are found, also after a reload.",
        {
            HANGING: [
                "test_find_hanging_finds_an_open_transaction_whose_id_is_gone",
                "test_find_hanging_looks_only_at_what_is_open_for_longer_than_the_limit",
            ]
        },
        "A marker is a row and cannot be empty.",
    ),
    Behaviour(
        "67",
        "While an append is verified, the lowest sequence seen is kept, and a higher one waits for it.",
        {
            PRODUCER: ["test_zombie_that_appends_after_its_verification_is_refused_at_its_slot"],
            RETRIES: ["test_append_is_refused_at_its_second_attempt_when_the_transaction_was_aborted_meanwhile"],
        },
        "Nothing is kept between verification and append: every attempt is verified anew, on a newer reading.",
    ),
    Behaviour(
        "68",
        "A transaction of a producer unknown to the partition, or of a new epoch, starts at sequence 0.",
        {PRODUCER_STATE: TRUTH_TABLE, EXPIRATION: ["test_forgotten_transactional_producer_starts_at_zero"]},
    ),
    Behaviour(
        "69",
        "A repeated append of one or many batches is answered with its first offsets; producers are told apart.",
        {
            SEQUENCES: [
                "test_append_of_many_partitions_sent_again_is_answered_partition_by_partition",
                "test_duplicates_of_several_producers_in_one_partition_are_told_apart",
                "test_append_that_is_new_in_part_writes_only_the_new_part",
            ],
            PARTITION_LOG: ["test_repeated_append_answers_the_original_offsets_and_writes_nothing"],
            DELIVERY: ["test_metadata_tells_the_time_of_the_first_record"],
        },
        "No followers. Times are the caller's own, or those of the upload, which a repeated append has again.",
    ),
    Behaviour(
        "70",
        "Several producers in one append are followed apart.",
        {
            SEQUENCES: [
                "test_producers_of_one_partition_have_sequences_of_their_own",
                "test_partitions_of_one_producer_have_sequences_of_their_own",
            ]
        },
        "An append is of one producer here; several follow one another in the log.",
    ),
    Behaviour(
        "71",
        "An old epoch is rejected, in data and in markers; a marker under the raised epoch is fine.",
        {
            PRODUCER_STATE: ["test_marker_of_an_earlier_epoch_changes_nothing", *TRUTH_TABLE],
            TRANSACTION_RETRIES: [
                "test_sequences_start_at_zero_in_every_transaction_and_markers_carry_the_raised_epoch"
            ],
            ROWS: ["test_row_that_can_not_be_read_is_refused_by_who_follows_the_log"],
        },
    ),
    Behaviour(
        "72",
        "A zombie coordinator is fenced even for a transaction without data.",
        {JOB: ["test_job_that_lost_its_lease_while_idle_stops_before_any_write"]},
    ),
    Behaviour(
        "80",
        "Retention, DeleteRecords and compaction delete obsolete snapshots; producer ids go with their segments.",
        {
            LOG_START: [
                "test_producer_is_remembered_without_its_data",
                "test_any_history_without_its_beginning_is_the_same_for_everyone",
            ],
            RETENTION: ["test_producers_are_answered_as_before_when_their_data_is_gone"],
            DELETION: ["test_later_producers_and_transactions_go_on"],
        },
        "Producers do not go with their segments: the commit that removes data carries their state on, and they go "
        "when they are idle for producer.id.expiration.ms.",
    ),
    Behaviour(
        "81",
        "The log start offset never passes the high watermark.",
        {
            DELETION: ["test_deletion_is_refused_before_any_partition_is_changed"],
            LOG_START: [
                "test_log_starts_at_the_high_watermark_when_nothing_is_left",
                "test_any_history_without_its_beginning_is_the_same_for_everyone",
            ],
        },
    ),
    Behaviour(
        "82",
        "The verification guard: made at the first append, cleared by markers, also those of empty transactions.",
        {
            VERIFICATION: ["test_append_is_refused_when_no_transaction_is_ongoing"],
            RETRIES: ["test_append_is_refused_at_its_second_attempt_when_the_transaction_was_aborted_meanwhile"],
        },
        "There is no guard to keep: every attempt of every append is verified, and that cannot be turned off.",
    ),
    Behaviour(
        "83",
        "A stale epoch met with data is an error that the producer recovers from by aborting.",
        {
            PRODUCER: ["test_zombie_is_refused_by_what_it_does_first"],
            "unit/producer/test_producer_timeouts.py": ["test_late_producer_whose_send_was_refused_aborts_and_goes_on"],
        },
    ),
)

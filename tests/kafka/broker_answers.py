"""What a running Kafka answers where common belief errs, its client's states, and its retry matrix.

The Java client under transaction version 2 is the reference.  Where this project differs on purpose, the note says so.
"""

from __future__ import annotations

from tests.kafka.behaviour import Behaviour

ABORT = "unit/admin/test_transaction_abort.py"
CALLS = "unit/producer/test_producer_calls.py"
CLIENT_STATE = "unit/producer/test_client_state.py"
COMPLETION = "unit/test_completion.py"
DELETION = "unit/admin/test_delete_records.py"
DELIVERY = "unit/producer/test_delivery.py"
FENCE = "unit/admin/test_fence_producers.py"
FENCING = "unit/producer/test_producer_fencing.py"
PRODUCER = "unit/producer/test_producer.py"
PRODUCER_STATE = "unit/partition/test_producer_state.py"
RECORD_SIZE = "unit/producer/test_record_size.py"
RETRIES = "unit/producer/test_transaction_retries.py"
SEQUENCES = "unit/partition/test_sequences.py"
SHARD = "unit/coordinator/test_transaction_shard.py"
TIMEOUTS = "unit/producer/test_producer_timeouts.py"
TWO_PHASE = "unit/producer/test_two_phase.py"
WAREHOUSE = "unit/test_warehouse.py"

RETRY_MATRIX = ["test_end_answers_as_the_retry_matrix_says"]

ANSWERS = (
    Behaviour(
        "10.1",
        "A commit returns before its data is visible.",
        {
            PRODUCER: ["test_committed_transaction_is_visible_in_every_topic_when_commit_returns"],
            RETRIES: ["test_marker_that_could_not_be_written_does_not_fail_the_commit"],
            COMPLETION: ["test_snapshot_completes_what_was_decided_before_it"],
        },
        "On purpose: the producer completes its own commit before it returns. Only when the store fails just then it "
        "is left to others, and the commit has succeeded all the same.",
    ),
    Behaviour(
        "10.2",
        "begin is local, and an empty transaction never reaches the broker: even a zombie's succeeds.",
        {
            FENCING: ["test_empty_transaction_ends_without_a_request_even_for_a_zombie"],
            PRODUCER: ["test_epoch_rises_at_every_decision_and_not_for_an_empty_transaction"],
        },
    ),
    Behaviour(
        "10.3",
        "Asked directly, a commit of an Empty id is INVALID_TXN_STATE; an abort raises the epoch.",
        {SHARD: RETRY_MATRIX},
    ),
    Behaviour(
        "10.4",
        "A repeated end under the old epoch is answered like the first; the opposite one is INVALID_TXN_STATE.",
        {SHARD: [*RETRY_MATRIX, "test_late_end_never_touches_the_next_transaction_of_the_same_producer"]},
    ),
    Behaviour(
        "10.5",
        "The epoch rises at every end, sequences start at 0 in every transaction, markers carry the raised epoch.",
        {
            PRODUCER: ["test_epoch_rises_at_every_decision_and_not_for_an_empty_transaction"],
            RETRIES: ["test_sequences_start_at_zero_in_every_transaction_and_markers_carry_the_raised_epoch"],
        },
    ),
    Behaviour(
        "10.6",
        "Taking over an id raises its epoch by two when a transaction is open, by one when it is idle.",
        {
            FENCING: [
                "test_id_with_an_open_transaction_rises_by_two_epochs_at_its_next_init",
                "test_idle_id_keeps_its_producer_id_and_rises_by_one_epoch_at_each_init",
            ]
        },
    ),
    Behaviour(
        "10.7",
        "A zombie's send is INVALID_PRODUCER_EPOCH, abortable; then its commit repeats that, and its abort is "
        "PRODUCER_FENCED. Its commit without a send is PRODUCER_FENCED at once.",
        {
            PRODUCER: ["test_zombie_is_refused_by_what_it_does_first"],
            FENCING: ["test_zombie_whose_send_failed_hears_it_again_at_its_commit_and_is_fenced_at_its_abort"],
        },
    ),
    Behaviour(
        "10.8",
        "An epoch above the id's is fenced like one below; another producer id is INVALID_PRODUCER_ID_MAPPING.",
        {
            SHARD: [
                *RETRY_MATRIX,
                "test_enrol_refuses_another_epoch_as_data_or_as_offsets",
                "test_end_is_refused_when_the_id_is_unknown_or_of_another_producer",
            ]
        },
    ),
    Behaviour(
        "10.9",
        "Fencing by an admin creates an unknown id, and overwrites the timeout of a known one.",
        {FENCE: ["test_fence_keeps_the_timeout_of_the_id_and_creates_an_unknown_one"]},
        "On purpose: the id keeps its timeout.",
    ),
    Behaviour(
        "10.10",
        "An init that names the epoch just before is a retry only when the same producer raised it; else it is fenced.",
        {
            SHARD: ["test_init_is_fenced_when_the_caller_is_no_longer_the_producer"],
            FENCING: ["test_init_of_unknown_outcome_is_made_again_and_has_the_id"],
        },
        "Always fenced: no producer here inits again, since its abort raises the epoch. An init of unknown outcome is "
        "asked again without a name.",
    ),
    Behaviour(
        "10.11",
        "The timeout counts from the first partition that joins; later sends do not extend it.",
        {
            TIMEOUTS: [
                "test_clock_starts_when_the_first_partition_joins_and_not_at_begin",
                "test_later_sends_and_partitions_do_not_extend_the_timeout",
                "test_next_transaction_has_a_clock_of_its_own",
            ]
        },
    ),
    Behaviour(
        "10.12",
        "A late producer: its commit is INVALID_TXN_STATE, fatal; its abort succeeds and it works on; its send is "
        "INVALID_PRODUCER_EPOCH, abortable; its offsets are PRODUCER_FENCED.",
        {
            PRODUCER: [
                "test_commit_after_the_timeout_is_refused_for_good",
                "test_timed_out_transaction_is_aborted_by_whoever_looks_and_its_producer_can_go_on",
            ],
            TIMEOUTS: ["test_late_producer_whose_send_was_refused_aborts_and_goes_on"],
            SHARD: ["test_enrol_refuses_another_epoch_as_data_or_as_offsets"],
            "unit/producer/test_transactional_offsets.py": [
                "test_offsets_of_a_fenced_producer_are_refused_and_never_pending"
            ],
        },
    ),
    Behaviour(
        "10.13",
        "A timeout above the maximum is INVALID_TRANSACTION_TIMEOUT; with 0 the client's init just times out.",
        {
            CALLS: ["test_timeout_out_of_bounds_is_refused"],
            SHARD: [
                "test_init_is_refused_when_the_timeout_is_out_of_bounds",
                "test_init_accepts_the_smallest_and_the_largest_timeout",
            ],
        },
        "On purpose: 0 and less are INVALID_TRANSACTION_TIMEOUT at once.",
    ),
    Behaviour(
        "10.14",
        "An orderly close aborts the open transaction; a crash leaves it, and it holds back the stable offset.",
        {
            CALLS: ["test_close_aborts_the_open_transaction"],
            WAREHOUSE: ["test_description_of_topics_tells_what_an_open_transaction_holds_back"],
        },
    ),
    Behaviour(
        "10.20",
        "A send that failed makes its transaction abortable, also when only the client refused it; a wrong argument "
        "does not. Calls out of order are ILLEGAL_STATE and harm nothing.",
        {
            CALLS: [
                "test_send_to_an_unknown_topic_or_partition_spoils_the_transaction",
                "test_wrong_argument_is_named_and_the_transaction_goes_on",
                "test_every_call_out_of_order_is_an_illegal_state_and_harms_nothing",
            ],
            RECORD_SIZE: ["test_record_that_is_too_large_spoils_its_transaction"],
        },
    ),
    Behaviour(
        "10.21",
        "An idempotent producer whose batch was refused goes on under a raised epoch from sequence 0.",
        {
            RETRIES: ["test_idempotent_producer_goes_on_under_a_raised_epoch_from_zero_when_a_batch_was_refused"],
            DELIVERY: ["test_refused_batch_of_an_idempotent_producer_fails_with_the_cause_and_the_producer_goes_on"],
        },
    ),
    Behaviour(
        "10.22",
        "One of the last five batches sent again is answered with its offset, whatever its payload; an older one and "
        "an overlapping one are OUT_OF_ORDER_SEQUENCE_NUMBER.",
        {
            SEQUENCES: [
                "test_batch_sent_again_is_answered_with_the_first_offset_and_another_of_its_numbers_is_out_of_order",
                "test_only_the_last_five_batches_are_answered_and_older_or_overlapping_ones_are_out_of_order",
            ],
            PRODUCER_STATE: ["test_only_the_last_five_batches_of_the_epoch_are_remembered"],
        },
        "Better on purpose: the very same upload is known by its path, however many batches came after it; another one "
        "under the same numbers is OUT_OF_ORDER_SEQUENCE_NUMBER: its sender would be told that it is stored.",
    ),
    Behaviour(
        "10.23",
        "A producer unknown to the partition starts at any sequence when idempotent, at 0 in a transaction; sequences "
        "begin again after 2147483647.",
        {
            PRODUCER_STATE: ["test_batch_is_answered_by_epoch_and_sequence"],
            SEQUENCES: ["test_sequences_go_on_where_kafkas_begin_again"],
        },
        "Sequences have 64 bits and go on.",
    ),
    Behaviour(
        "10.24",
        "A batch sent again after its transaction ended is INVALID_PRODUCER_EPOCH.",
        {SEQUENCES: ["test_batch_sent_again_after_its_transaction_ended_is_of_an_old_epoch"]},
    ),
    Behaviour(
        "10.25",
        "Partitions join all or none: an unknown one keeps the others out.",
        {
            RETRIES: [
                "test_transaction_in_many_partitions_joins_them_at_once_and_ends_them_by_one_entry_of_each_topic"
            ],
            CALLS: [
                "test_send_to_an_unknown_topic_or_partition_spoils_the_transaction",
                "test_append_to_a_topic_that_was_deleted_and_created_again_is_refused",
            ],
        },
        "One entry lets all of a flush join. An unknown partition is refused before, at its send; a topic that was "
        "deleted since is refused at its append.",
    ),
    Behaviour(
        "10.26",
        "An abort drops records that were not sent yet: nothing of them reaches the log.",
        {RETRIES: ["test_abort_drops_what_was_not_sent_yet_and_writes_nothing"]},
    ),
    Behaviour(
        "10.29",
        "delete_records may go beyond the last stable offset, into an open transaction, which can commit all the same.",
        {DELETION: ["test_deletion_cuts_through_an_open_transaction_whose_commit_succeeds_without_the_records"]},
    ),
    Behaviour(
        "10.30",
        "An admin's abort writes a marker in one partition only, and the producer's later commit succeeds.",
        {
            ABORT: [
                "test_abort_by_place_decides_in_the_transaction_log",
                "test_abort_by_id_refuses_the_commit_of_the_producer_for_good",
                "test_abort_by_id_lets_the_producer_abort_and_go_on",
            ]
        },
        "On purpose: it decides in the transaction log, so that the later commit fails instead of half succeeding.",
    ),
    Behaviour(
        "10.31",
        "With delete_records in the middle of an aborted transaction the rest of it stays filtered.",
        {DELETION: ["test_rest_of_an_aborted_transaction_stays_filtered_when_its_beginning_is_deleted"]},
    ),
    Behaviour(
        "1.5",
        "The client's states: uninitialised, ready, in a transaction, prepared, committing or aborting; after an "
        "abortable error only abort, after a fatal one only close. An end waits for what is in flight.",
        {
            CLIENT_STATE: [
                "test_grid_has_every_state_and_every_call",
                "test_call_leads_where_the_grid_says_or_is_illegal",
                "test_fatal_failure_is_repeated_for_ever",
            ],
            "unit/producer/test_producer_retries.py": [
                "test_transaction_holds_every_record_when_an_upload_failed_once",
                "test_send_is_refused_while_the_commit_is_unknown",
            ],
            TWO_PHASE: ["test_nothing_can_be_added_once_prepared"],
        },
        "PREPARING is ours: preparing writes to the log here, so it can have an unknown outcome. Kafka's INITIALIZING "
        "is the time inside of the call.",
    ),
    Behaviour(
        "retry matrix",
        "What commit and abort answer in every state, under the current epoch, as a retry, and under others.",
        {
            SHARD: [
                *RETRY_MATRIX,
                "test_end_after_another_producers_init_learns_only_of_its_commit_or_by_token",
            ],
            FENCING: ["test_zombies_decision_before_its_fencing_stands"],
        },
        "Two cells differ on purpose. A commit is told to its own producer also after another's init: the truth helps, "
        "and the caller is fenced at its next request. A commit retried after a timeout aborted it is "
        "INVALID_TXN_STATE as long as nobody took the id over since, and PRODUCER_FENCED after that.",
    ),
)

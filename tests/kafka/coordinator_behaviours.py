"""Behaviours 1 to 28: what Kafka's transaction coordinator answers to producers, and the tests that show it here.

There is no coordinator server: each client runs the same pure functions on the row at the head of the transaction
log and writes the result at the next slot.  So there is no owner of an id, and nothing pending.
"""

from __future__ import annotations

from tests.kafka.behaviour import Behaviour

ADMIN = "unit/admin/test_transaction_admin.py"
COMPLETION = "unit/test_completion.py"
CRASHES = "simulation/test_crashes.py"
EPOCHS = "unit/coordinator/test_epochs.py"
FENCE = "unit/admin/test_fence_producers.py"
FENCING = "unit/producer/test_producer_fencing.py"
IDS = "unit/coordinator/test_producer_ids.py"
PRODUCER = "unit/producer/test_producer.py"
RETRIES = "unit/producer/test_transaction_retries.py"
SHARD = "unit/coordinator/test_transaction_shard.py"
VERIFICATION = "unit/coordinator/test_verification.py"

NO_OVERFLOW = "Epochs have 64 bits: no epoch is the last one, and an id keeps its producer id until it expires."
RETRY_MATRIX = ["test_end_answers_as_the_retry_matrix_says"]

BEHAVIOURS = (
    Behaviour(
        "1",
        "Producers without a transactional id get producer ids of their own, under epoch 0.",
        {
            FENCING: ["test_producers_without_an_id_get_ids_of_their_own_under_epoch_zero"],
            IDS: ["test_ids_begin_at_zero_when_none_was_given", "test_ids_go_on_without_overlap_when_asked_again"],
        },
    ),
    Behaviour(
        "2",
        "An empty transactional id is an invalid request, whatever is asked for it.",
        {
            FENCING: ["test_empty_transactional_id_is_an_invalid_request_and_takes_nothing"],
            SHARD: ["test_init_is_refused_when_the_id_is_empty"],
            ADMIN: ["test_describe_transactions_refuses_an_empty_id_and_what_is_no_list"],
            FENCE: ["test_fence_refuses_an_empty_id_and_what_is_no_list_and_fences_none"],
        },
        "A producer with an empty id cannot get beyond init, so joining and ending are never asked under one.",
    ),
    Behaviour(
        "3",
        "The first init of an id answers epoch 0, the second epoch 1 under the same producer id.",
        {FENCING: ["test_idle_id_keeps_its_producer_id_and_rises_by_one_epoch_at_each_init"]},
    ),
    Behaviour(
        "4",
        "An init that names a producer of old for an unknown id makes a new producer id.",
        {SHARD: ["test_init_makes_an_empty_row_and_takes_a_producer_id_when_the_id_is_unknown"]},
    ),
    Behaviour(
        "5",
        "Where epochs are used up, the id goes on under another producer id from epoch 0.",
        {EPOCHS: ["test_init_raises_any_epoch_and_keeps_the_producer_id"]},
        NO_OVERFLOW,
    ),
    Behaviour(
        "6",
        "A broker that does not own the id, or is loading it, says so.",
        note="No brokers: every client reads the transaction log itself, and nobody owns an id.",
    ),
    Behaviour(
        "7",
        "Joining partitions under an unknown id is INVALID_PRODUCER_ID_MAPPING.",
        {SHARD: ["test_enrol_is_refused_when_the_id_is_unknown_or_of_another_producer"]},
    ),
    Behaviour(
        "8",
        "Joining partitions while the last transaction is decided and not complete is CONCURRENT_TRANSACTIONS.",
        {
            SHARD: ["test_enrol_is_refused_when_the_transaction_is_prepared_or_decided"],
            COMPLETION: ["test_transaction_decided_while_another_is_completed_gets_its_marker_later"],
        },
        "A client that is told so completes that transaction itself, and asks again: the user does not see it.",
    ),
    Behaviour(
        "9",
        "Joining partitions under another epoch is fenced.",
        {
            SHARD: ["test_enrol_refuses_another_epoch_as_data_or_as_offsets"],
            FENCING: ["test_fenced_producer_is_refused_before_its_first_append_of_a_transaction"],
        },
        "INVALID_PRODUCER_EPOCH for data, as a partition leader says under TV2; PRODUCER_FENCED for offsets.",
    ),
    Behaviour(
        "10",
        "Joining partitions that have joined already succeeds and writes nothing.",
        {
            SHARD: ["test_enrol_writes_nothing_when_all_is_known"],
            RETRIES: ["test_partition_joins_a_transaction_once_however_often_it_is_appended_to"],
        },
    ),
    Behaviour(
        "11",
        "Partitions can join from Empty, Ongoing, CompleteCommit and CompleteAbort.",
        {
            SHARD: [
                "test_enrol_opens_a_transaction_when_none_is_open",
                "test_enrol_adds_to_an_ongoing_transaction_and_keeps_its_start",
            ]
        },
    ),
    Behaviour(
        "12",
        "Verifying an append: joined is fine, not joined is abortable, decided is CONCURRENT_TRANSACTIONS.",
        {
            VERIFICATION: [
                "test_append_goes_on_when_its_partitions_are_enrolled",
                "test_append_must_abort_when_a_partition_is_not_enrolled",
                "test_append_is_refused_when_no_transaction_is_ongoing",
            ]
        },
    ),
    Behaviour(
        "13",
        "Ending an unknown id or another producer id is INVALID_PRODUCER_ID_MAPPING; another epoch is fenced.",
        {SHARD: ["test_end_is_refused_when_the_id_is_unknown_or_of_another_producer", *RETRY_MATRIX]},
    ),
    Behaviour(
        "14",
        "A commit met in CompleteCommit succeeds only as a retry of that commit's epoch.",
        {SHARD: [*RETRY_MATRIX, "test_late_end_never_touches_the_next_transaction_of_the_same_producer"]},
    ),
    Behaviour(
        "15",
        "An abort met in CompleteAbort under the current epoch raises it again; as a retry it does not.",
        {SHARD: RETRY_MATRIX},
    ),
    Behaviour("16", "A commit met in CompleteAbort is INVALID_TXN_STATE.", {SHARD: RETRY_MATRIX}),
    Behaviour(
        "17",
        "An abort of an Empty id raises the epoch; a commit of one is INVALID_TXN_STATE.",
        {SHARD: RETRY_MATRIX},
        "Beyond Kafka: a commit that carries a batch id is granted there, so that an empty run is remembered.",
    ),
    Behaviour(
        "18",
        "An end whose answer was lost while the producer id changed is answered with the new one.",
        {
            EPOCHS: ["test_end_at_any_epoch_is_answered_again_with_the_same_producer_id"],
            RETRIES: ["test_end_of_unknown_outcome_is_made_again_and_never_switched"],
        },
        NO_OVERFLOW,
    ),
    Behaviour(
        "19",
        "Joining partitions while a change of the producer id waits for its completion is CONCURRENT_TRANSACTIONS.",
        {SHARD: ["test_enrol_is_refused_when_the_transaction_is_prepared_or_decided"]},
        NO_OVERFLOW,
    ),
    Behaviour("20", "Ending an Ongoing id writes PrepareCommit or PrepareAbort.", {SHARD: RETRY_MATRIX}),
    Behaviour(
        "21",
        "An init that meets an open transaction aborts it and is asked again; later it succeeds.",
        {
            SHARD: [
                "test_init_aborts_an_ongoing_transaction_and_fences_its_producer",
                "test_init_waits_for_completion_when_the_transaction_is_decided",
            ],
            PRODUCER: ["test_open_transaction_of_the_id_is_aborted_by_the_next_init"],
            CRASHES: ["test_take_over_killed_anywhere_leaves_the_id_usable_and_the_old_transaction_aborted"],
        },
        "The client completes the abort and asks again by itself.",
    ),
    Behaviour(
        "22",
        "An init that names an older epoch during an open transaction is fenced.",
        {SHARD: ["test_init_is_fenced_when_the_caller_is_no_longer_the_producer"]},
    ),
    Behaviour(
        "23",
        "A fencing that could not be written does not raise the epoch again at each try.",
        {
            FENCING: [
                "test_fencing_raises_the_epoch_once_when_a_put_of_it_is_answered_wrongly",
                "test_third_producer_works_when_the_second_could_not_finish_its_fencing",
            ]
        },
    ),
    Behaviour(
        "24",
        "Under TV2 the epoch may be raised once more after a failed write.",
        {FENCING: ["test_init_of_unknown_outcome_is_made_again_and_has_the_id"]},
    ),
    Behaviour(
        "25",
        "The last epoch is kept for fencing: a timeout, a late abort or an init at it never overflows.",
        {
            EPOCHS: [
                "test_fencing_raises_any_epoch_and_can_be_done_again_by_the_next",
                "test_timed_out_transaction_of_any_epoch_leaves_an_id_that_works",
            ]
        },
        NO_OVERFLOW,
    ),
    Behaviour(
        "26",
        "An init that names the current epoch raises it, the one before is a retry, an older one is fenced.",
        {
            SHARD: [
                "test_init_raises_the_epoch_and_keeps_the_decision_when_no_transaction_is_open",
                "test_init_is_fenced_when_the_caller_is_no_longer_the_producer",
            ],
            FENCING: ["test_init_of_unknown_outcome_is_made_again_and_has_the_id"],
        },
        "The epoch before is fenced too: an abort raises the epoch here, so no producer ever names its old one, and an "
        "init of unknown outcome is asked again without a name, which raises once more and harms nobody.",
    ),
    Behaviour(
        "27",
        "An init asked again after the producer id changed is answered with the same new one.",
        {EPOCHS: ["test_init_raises_any_epoch_and_keeps_the_producer_id"]},
        NO_OVERFLOW,
    ),
    Behaviour(
        "28",
        "A caller that names another producer id than the id's is fenced.",
        {SHARD: ["test_init_is_fenced_when_the_caller_is_no_longer_the_producer"]},
    ),
)

"""Behaviours 106 to 116 and 119: producers and admins end to end, and the tests that show them here."""

from __future__ import annotations

from tests.kafka.behaviour import Behaviour

CALLS = "unit/producer/test_producer_calls.py"
CLIENT_STATE = "unit/producer/test_client_state.py"
CRASHES = "simulation/test_crashes.py"
EPOCHS = "unit/coordinator/test_epochs.py"
EXPIRATION = "unit/partition/test_expiration.py"
EXPIRY = "unit/upkeep/test_coordinator_expiry.py"
FENCE = "unit/admin/test_fence_producers.py"
FENCING = "unit/producer/test_producer_fencing.py"
OFFSETS = "unit/producer/test_transactional_offsets.py"
PARTITION_LOG = "unit/partition/test_partition_log.py"
PRODUCER = "unit/producer/test_producer.py"
RETRIES = "unit/producer/test_transaction_retries.py"
SHARD = "unit/coordinator/test_transaction_shard.py"
TIMEOUTS = "unit/producer/test_producer_timeouts.py"
UNREACHABLE = "unit/producer/test_producer_retries.py"
VERIFICATION = "unit/coordinator/test_verification.py"

BEHAVIOURS = (
    Behaviour(
        "106",
        "A new producer of an id fences the old one: at its send, at joining, with offsets, at its commit.",
        {
            PRODUCER: ["test_zombie_is_refused_by_what_it_does_first"],
            FENCING: ["test_fenced_producer_is_refused_before_its_first_append_of_a_transaction"],
            SHARD: ["test_enrol_refuses_another_epoch_as_data_or_as_offsets"],
            VERIFICATION: ["test_append_is_refused_when_its_epoch_is_another"],
            OFFSETS: ["test_offsets_of_a_fenced_producer_are_refused_and_never_pending"],
            "unit/consumer/test_offset_commits.py": ["test_newer_producer_fences_who_sends_offsets"],
        },
    ),
    Behaviour(
        "107",
        "A timed-out transaction fences: its first record is the only one in the log, and not visible.",
        {TIMEOUTS: ["test_only_what_was_sent_before_the_timeout_is_in_the_log_and_none_of_it_is_visible"]},
    ),
    Behaviour(
        "108",
        "Init, sending offsets, commit and abort end with an error that can be retried when nothing answers.",
        {
            RETRIES: ["test_call_says_that_the_store_is_away_and_the_producer_works_on_when_it_is_back"],
            UNREACHABLE: ["test_commit_stays_unknown_when_the_store_is_unreachable_at_the_second_try"],
        },
    ),
    Behaviour(
        "109",
        "Markers of many partitions go out together.",
        {
            RETRIES: [
                "test_transaction_in_many_partitions_joins_them_at_once_and_ends_them_by_one_entry_of_each_topic"
            ],
            PARTITION_LOG: ["test_group_commit_gives_offsets_in_decision_order"],
        },
    ),
    Behaviour(
        "110",
        "A second init of the same producer is illegal.",
        {CALLS: ["test_every_call_out_of_order_is_an_illegal_state_and_harms_nothing"]},
    ),
    Behaviour(
        "111",
        "Producers recover when the epochs of an id run out.",
        {EPOCHS: ["test_fencing_raises_any_epoch_and_can_be_done_again_by_the_next"]},
        "Epochs have 64 bits: they do not run out.",
    ),
    Behaviour(
        "112",
        "After an append that timed out the abort raises the epoch; a third producer works when a fencing failed.",
        {
            PRODUCER: ["test_append_of_unknown_outcome_allows_only_abort"],
            FENCING: ["test_third_producer_works_when_the_second_could_not_finish_its_fencing"],
            CRASHES: ["test_take_over_killed_anywhere_leaves_the_id_usable_and_the_old_transaction_aborted"],
        },
    ),
    Behaviour(
        "113",
        "An empty abort right after a commit does not fence its own producer.",
        {RETRIES: ["test_empty_abort_after_any_ending_does_not_fence_its_own_producer"]},
    ),
    Behaviour(
        "114",
        "An expired id is fatal to its producer and free for a new one; expiry of a producer id keeps its id.",
        {
            EXPIRY: [
                "test_idle_id_expires_its_producer_is_told_and_a_new_one_gets_a_new_producer_id",
                "test_idle_producer_id_is_forgotten_by_its_partitions_while_its_transactional_id_stays",
            ]
        },
    ),
    Behaviour(
        "115",
        "An idempotent producer that was forgotten comes back; the expiration time can be set and survives a restart.",
        {
            EXPIRY: ["test_idempotent_producer_goes_on_after_its_partition_forgot_it"],
            EXPIRATION: [
                "test_producer_is_idle_from_the_expiration_time_on",
                "test_forgotten_idempotent_producer_goes_on_at_any_sequence",
            ],
            "unit/test_warehouse.py": ["test_created_warehouse_is_opened_with_its_settings"],
        },
        "The time is a setting of the warehouse, kept in its transaction log.",
    ),
    Behaviour(
        "116",
        "An admin's fencing before or after a commit makes the old producer fail.",
        {
            FENCE: [
                "test_fence_before_the_commit_makes_the_old_producer_fail",
                "test_fence_after_the_commit_makes_the_old_producer_fail_at_its_next_transaction",
            ]
        },
        "The call has no timeout: an id that others keep busy is CONCURRENT_TRANSACTIONS after some rounds.",
    ),
    Behaviour(
        "119",
        "A commit after a failed send is refused, an abort is not; an end of unknown outcome is asked again and never "
        "switched; each error is fatal, abortable or retriable.",
        {
            CALLS: ["test_send_to_an_unknown_topic_or_partition_spoils_the_transaction"],
            PRODUCER: ["test_append_of_unknown_outcome_allows_only_abort"],
            RETRIES: [
                "test_end_of_unknown_outcome_is_made_again_and_never_switched",
                "test_commit_of_unknown_outcome_that_never_arrived_is_refused_after_the_timeout",
            ],
            CLIENT_STATE: [
                "test_every_error_says_to_the_caller_what_kafkas_does",
                "test_error_of_a_send_leads_where_its_kind_says",
                "test_error_of_an_end_leads_where_its_kind_says",
                "test_failure_is_repeated_by_every_call_but_abort_until_it_is_aborted",
            ],
        },
    ),
)

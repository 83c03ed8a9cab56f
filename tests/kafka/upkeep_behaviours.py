"""Behaviours 29 to 49: what Kafka's transaction coordinator does by itself and with its log, and the tests for it here.

Anyone does what Kafka's coordinator does by itself; a job with a lease does it by the clock.  There is no cached row
beside the log: a view is a fold of it.
"""

from __future__ import annotations

from tests.kafka.behaviour import Behaviour

ADMIN = "unit/admin/test_transaction_admin.py"
CALLS = "unit/producer/test_producer_calls.py"
COMMIT = "unit/log/test_commit.py"
COMMIT_ERRORS = "unit/log/test_commit_errors.py"
CRASHES = "simulation/test_crashes.py"
EXPIRY = "unit/upkeep/test_coordinator_expiry.py"
FENCING = "unit/producer/test_producer_fencing.py"
WORLDS = "simulation/test_campaign.py"
JOB = "unit/upkeep/test_coordinator_job.py"
LOG_STATE = "unit/log/test_state.py"
MACHINE = "unit/coordinator/test_transaction_machine.py"
PARTITION_LOG = "unit/partition/test_partition_log.py"
PRODUCER = "unit/producer/test_producer.py"
RETRIES = "unit/producer/test_transaction_retries.py"
ROW = "unit/coordinator/test_transaction.py"
STATES = "unit/coordinator/test_transaction_state.py"
TIMEOUTS = "unit/producer/test_producer_timeouts.py"
UPKEEP = "unit/coordinator/test_transaction_upkeep.py"

BEHAVIOURS = (
    Behaviour(
        "29",
        "An Ongoing transaction past its timeout is aborted under a raised epoch; nothing else ever is.",
        {
            UPKEEP: ["test_time_out_aborts_only_an_ongoing_transaction_whose_timeout_has_passed"],
            TIMEOUTS: ["test_timeout_spares_what_is_not_open"],
            JOB: ["test_round_aborts_what_timed_out_and_completes_what_was_decided"],
        },
    ),
    Behaviour(
        "30",
        "A timeout leaves alone what changes at that moment; when it cannot be written, no epoch rises.",
        {
            TIMEOUTS: [
                "test_timeout_does_not_hit_a_transaction_that_began_while_it_was_decided",
                "test_timeout_that_could_not_be_written_leaves_the_transaction_and_its_epoch",
            ]
        },
    ),
    Behaviour(
        "31",
        "The old epoch is refused while the abort of a timeout is under way.",
        {TIMEOUTS: ["test_old_epoch_is_refused_while_the_timeouts_abort_waits_for_its_completion"]},
    ),
    Behaviour(
        "32",
        "Describing an unknown or expired id is TRANSACTIONAL_ID_NOT_FOUND.",
        {ADMIN: ["test_describe_transactions_says_not_found_of_an_unknown_id"]},
        "An expired id has no row; nothing is ever loading.",
    ),
    Behaviour(
        "33",
        "Listing filters by state, producer id, duration and pattern; a bad pattern or state is an error.",
        {
            ADMIN: [
                "test_list_transactions_holds_every_filter_that_is_given",
                "test_list_transactions_refuses_a_filter_that_is_none",
            ]
        },
        "An unknown state is an error that names those known; Kafka returns such names beside the list.",
    ),
    Behaviour(
        "34",
        "Any order of operations on many ids leaves log and cache equal.",
        {
            MACHINE: ["TestTransactionalId"],
            WORLDS: ["test_every_check_holds_in_every_world_and_weather"],
        },
        "The cache is a view folded from the log: the simulation compares it with the whole history.",
    ),
    Behaviour(
        "35",
        "Loading and unloading while requests run loses nothing.",
        {
            COMMIT: ["test_reader_starts_again_when_the_log_is_cleaned_up_under_its_cold_start"],
            COMMIT_ERRORS: ["test_view_is_opened_again_when_its_opening_broke_off"],
        },
        "No ownership moves. What remains is a view that is opened while the log changes under it.",
    ),
    Behaviour(
        "36",
        "Of inits that race one is the producer in the end, and the others are fenced.",
        {
            FENCING: [
                "test_init_that_was_overtaken_by_another_is_the_producer_and_the_other_is_fenced",
                "test_take_over_that_was_overtaken_by_the_commit_leaves_it_committed",
            ]
        },
    ),
    Behaviour(
        "37",
        "An id that is used while it expires stays.",
        {EXPIRY: ["test_id_that_is_used_while_it_expires_stays"]},
    ),
    Behaviour(
        "38",
        "What goes wrong with a write of the log reaches the client as an error that says what to do.",
        {
            COMMIT: ["test_commit_is_unknown_when_the_store_can_not_be_reached"],
            COMMIT_ERRORS: ["test_commit_is_refused_when_it_never_could_be_put"],
            RETRIES: ["test_call_says_that_the_store_is_away_and_the_producer_works_on_when_it_is_back"],
        },
        "COMMIT_STATE_UNKNOWN: it may have happened, make the same call again; STORE_UNAVAILABLE: it did not.",
    ),
    Behaviour(
        "39",
        "After a write that may be tried again nothing else is granted for the id; after others all is as before.",
        {
            RETRIES: ["test_end_of_unknown_outcome_is_made_again_and_never_switched"],
            COMMIT: ["test_commit_decides_on_its_own_late_landing_when_called_again_after_unknown"],
        },
        "Nothing is pending in the log: only the producer object that asked is held to the same call.",
    ),
    Behaviour(
        "40",
        "A row that changed while its successor was written is noticed.",
        {
            COMMIT: ["test_commit_is_decided_again_when_another_took_the_slot"],
            PRODUCER: ["test_zombie_that_appends_after_its_verification_is_refused_at_its_slot"],
        },
        "A write goes to exactly the slot after the state it was decided on: else it is decided again.",
    ),
    Behaviour(
        "41",
        "What is found in PrepareCommit or PrepareAbort is completed after a crash.",
        {
            CRASHES: [
                "test_transaction_killed_after_its_decision_is_committed",
                "test_completion_killed_anywhere_is_finished_by_another",
            ]
        },
    ),
    Behaviour(
        "42",
        "A completion is written once, however many complete at the same time.",
        {
            UPKEEP: ["test_complete_ends_a_decided_transaction_once"],
            RETRIES: ["test_two_that_complete_at_once_write_one_marker_and_one_completion"],
            PARTITION_LOG: ["test_second_completer_writes_nothing"],
        },
    ),
    Behaviour(
        "43",
        "Markers go out in groups; what has no owner any more is skipped, what cannot be reached waits.",
        {
            PARTITION_LOG: ["test_group_commit_gives_offsets_in_decision_order"],
            CALLS: ["test_transaction_over_a_deleted_topic_completes_in_the_others"],
            RETRIES: ["test_marker_that_could_not_be_written_does_not_fail_the_commit"],
            JOB: ["test_one_transaction_that_fails_does_not_stop_the_others_and_is_done_by_the_next_round"],
        },
        "The group is the topic: one entry of its log holds all markers that it is owed.",
    ),
    Behaviour(
        "44",
        "A coordinator that lost its partition drops the markers it had queued.",
        {JOB: ["test_job_fenced_after_the_work_of_completions_writes_no_complete"]},
        "Nothing is queued; a coordinator job that sees that it lost its lease writes nothing more.",
    ),
    Behaviour(
        "45",
        "A completion that could not be written is tried again, unless someone else is the coordinator by now.",
        {
            JOB: [
                "test_one_transaction_that_fails_does_not_stop_the_others_and_is_done_by_the_next_round",
                "test_fenced_job_writes_nothing_after_the_commit_at_which_it_noticed",
            ]
        },
    ),
    Behaviour(
        "46",
        "Only ids without a transaction expire, in commits of bounded size; one that cannot be written keeps its ids.",
        {
            UPKEEP: ["test_expire_lets_go_only_of_an_idle_id_without_a_transaction"],
            EXPIRY: [
                "test_open_prepared_and_decided_transactions_never_expire",
                "test_many_ids_expire_in_few_commits_and_few_questions",
            ],
            JOB: ["test_task_that_failed_is_due_again_in_the_next_round"],
        },
    ),
    Behaviour(
        "47",
        "A damaged state log ends its loading; unknown versions of records are skipped.",
        {
            COMMIT: ["test_log_is_refused_when_an_entry_is_damaged_or_foreign"],
            LOG_STATE: ["test_log_is_refused_when_its_checkpoint_is_truncated"],
            ROW: [
                "test_row_is_damage_when_a_field_contradicts_the_format",
                "test_row_is_refused_when_of_a_newer_format",
            ],
        },
        "What is not known is refused and never skipped: a client that skips a row would decide without it.",
    ),
    Behaviour(
        "48",
        "A partition can come back to a broker that resigned from it.",
        {JOB: ["test_restarted_job_does_not_need_the_one_before"]},
        "No ownership; the coordinator job keeps nothing, so any one can follow any other.",
    ),
    Behaviour(
        "49",
        "Every transition that is not in the table is refused and changes nothing.",
        {
            STATES: ["test_next_state_follows_the_grid_for_every_cell"],
            ROW: ["test_illegal_transition_raises_and_leaves_the_row"],
            MACHINE: ["TestTransactionalId"],
        },
    ),
)

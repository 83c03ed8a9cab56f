"""Behaviours 96 to 101, 105, 117 and 120: offsets of groups, and the tests that show them here."""

from __future__ import annotations

from tests.kafka.behaviour import Behaviour

ADMIN = "unit/admin/test_group_admin.py"
COMMITS = "unit/consumer/test_offset_commits.py"
COPIES = "integration/test_copy.py"
WORLDS = "simulation/test_campaign.py"
CRASHES = "simulation/test_group_crashes.py"
EXPIRY = "unit/upkeep/test_offset_expiry.py"
FENCING = "unit/coordinator/test_group_fencing.py"
OFFSETS = "unit/producer/test_transactional_offsets.py"
OWNERSHIP = "unit/consumer/test_group_ownership.py"
PIPELINES = "spark/test_pipeline_kills.py"
SHARD = "unit/coordinator/test_offset_shard.py"
SNAPSHOTS = "unit/test_committed_offsets.py"
UPKEEP = "unit/coordinator/test_offset_upkeep.py"

BEHAVIOURS = (
    Behaviour(
        "96",
        "Offsets of a transaction are refused for an unknown group or member, a generation or an epoch of old.",
        {
            FENCING: [
                "test_member_commits_what_it_has_owned_without_a_break_since_it_read",
                "test_metadata_of_a_generation_that_the_group_has_not_had_is_refused",
                "test_static_member_that_was_replaced_is_fenced_and_its_successor_commits",
                "test_who_is_no_member_commits_plainly_only_while_the_group_has_none",
                "test_member_of_a_group_that_is_gone_is_refused",
            ],
            SHARD: ["test_offsets_and_who_may_commit_them_are_one_decision"],
            OWNERSHIP: [
                "test_offsets_of_a_stranger_are_refused_and_their_transaction_can_be_aborted",
                "test_what_was_lost_since_it_was_read_can_not_be_committed_even_when_it_is_had_again",
                "test_join_elsewhere_refuses_no_range_that_is_worked_on_for_hours",
            ],
        },
        "There is one set of errors, Kafka's newest: what is stale is so by the ownership of the partition (KIP-1251).",
    ),
    Behaviour(
        "97",
        "Who requires a stable offset is refused while one is pending; others, and lists, get what is committed.",
        {
            SHARD: ["test_pending_offset_holds_back_only_who_requires_a_stable_one"],
            ADMIN: [
                "test_offset_of_an_open_transaction_is_not_listed_and_waited_for_only_when_stable_is_required",
            ],
            COMMITS: ["test_committed_waits_for_an_open_transaction_and_says_so_when_it_does_not_end"],
            "unit/consumer/test_group_positions.py": [
                "test_poll_does_not_wait_for_a_transaction_with_offsets_and_reads_the_other_partitions"
            ],
        },
        "A transaction that is decided holds nobody back: it is settled by whoever reads.",
    ),
    Behaviour(
        "98",
        "A COMMIT makes a pending offset count, an ABORT drops it; against plain commits the latest request wins.",
        {
            SHARD: [
                "test_offset_of_a_transaction_counts_when_it_commits",
                "test_later_request_counts_although_its_transaction_commits_first",
                "test_plain_commit_and_transaction_are_ordered_by_their_requests",
            ],
            OFFSETS: [
                "test_offsets_count_when_the_transaction_commits",
                "test_offsets_are_dropped_when_the_transaction_aborts",
            ],
        },
    ),
    Behaviour(
        "99",
        "Deleting an offset, a topic or a group takes pending offsets along; expiry never removes what has one.",
        {
            UPKEEP: [
                "test_deleted_offset_takes_its_pending_ones_along",
                "test_group_is_deleted_with_all_its_offsets",
                "test_pending_offset_is_never_lost_by_expiry_and_keeps_its_group",
            ],
            ADMIN: [
                "test_deleted_offsets_are_gone_with_those_that_are_pending",
                "test_deletion_takes_groups_with_their_pending_offsets_and_tells_what_stays",
                "test_deleted_topic_takes_its_offsets_in_all_groups_along",
            ],
            EXPIRY: ["test_pending_offsets_never_expire"],
        },
    ),
    Behaviour(
        "100",
        "A text that is too long refuses its partition; an offset of a topic that was created again is none.",
        {
            SHARD: [
                "test_too_long_metadata_refuses_its_partition_only",
                "test_range_of_a_topic_that_was_created_again_begins_without_an_offset",
            ],
            OFFSETS: ["test_too_long_text_is_refused_before_anything_is_sent"],
            ADMIN: ["test_offset_of_a_topic_created_again_is_none"],
            COMMITS: [
                "test_commit_refuses_what_no_group_can_hold_or_this_member_does_not_own",
                "test_offset_of_a_topic_that_was_made_again_is_none",
            ],
        },
        "The client refuses the call when one of its texts is too long, before anything is sent.",
    ),
    Behaviour(
        "101",
        "Sent offsets are verified against the transaction; a completion that fails midway is done again, and once.",
        {
            OFFSETS: [
                "test_offsets_of_a_fenced_producer_are_refused_and_never_pending",
                "test_offsets_are_settled_by_others_when_their_producer_died_after_its_decision",
            ],
            CRASHES: [
                "test_copy_and_its_offset_are_one_wherever_it_dies_and_its_rerun_makes_it_exactly_once",
                "test_aborted_offset_never_counts_and_is_not_left_pending_wherever_it_dies",
            ],
            COMMITS: ["test_committed_settles_what_is_decided_and_was_left_by_a_dead_producer"],
        },
    ),
    Behaviour(
        "105",
        "Copying with offsets in the transaction: output and offsets are one, and the text beside an offset is kept.",
        {
            SNAPSHOTS: [
                "test_at_every_position_a_copy_has_as_many_records_as_its_group_has_committed",
                "test_snapshot_shows_what_is_committed_with_its_text_and_nothing_pending",
            ],
            OFFSETS: ["test_offsets_count_when_the_transaction_commits"],
            COMMITS: [
                "test_copy_and_its_offsets_are_one_decision",
                "test_committed_offset_keeps_its_text_and_goes_backwards_and_beyond_the_end_as_in_kafka",
            ],
        },
        "A snapshot shows both as of one position, which Kafka cannot.",
    ),
    Behaviour(
        "117",
        "Whatever is killed while it copies: one copy of each record, in order, none missing.",
        {
            CRASHES: ["test_copy_and_its_offset_are_one_wherever_it_dies_and_its_rerun_makes_it_exactly_once"],
            WORLDS: ["test_every_check_holds_in_every_world_and_weather"],
        },
        "There are no brokers: clients are killed, at each of their storage calls.",
    ),
    Behaviour(
        "120",
        "Copiers of a group are killed, paused and joined by others, beside a committed reader: the copy is whole.",
        {
            COPIES: ["test_copy_is_the_original_when_copiers_are_killed_and_paused_at_every_moment"],
            WORLDS: ["test_every_check_holds_in_every_world_and_weather"],
            PIPELINES: ["test_copy_and_sums_are_right_when_the_job_is_killed_in_a_transaction"],
        },
        "There are no brokers to bounce, and one version of the format: mixed ones come with its second.",
    ),
)

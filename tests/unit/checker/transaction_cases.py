"""Histories about transactions and who may end them (8, 9, 13-15, 18, 19, 23)."""

from __future__ import annotations

from tests.checker.operations import Level
from tests.unit.checker.story import INFO, Cases, Story, batch, decision, epoch, marker, place, stored

CASES = Cases()
flagged, passes = CASES.flagged, CASES.passes
ONE, TWO, THREE = (7, 0), (7, 1), (7, 2)
P0 = place("t0")


@flagged(8)
def two_transactions_have_read_from_each_other(story: Story) -> None:
    story.sends("a@t0:0", "t1", span=(1, 2))
    story.sends("b@t0:1", "t2", span=(1, 2))
    story.ends("t1", commit=True, span=(3, 9))
    story.ends("t2", commit=True, span=(3, 9))
    story.polls("c1", "b@t0:1", txn="t1", span=(4, 5))
    story.polls("c2", "a@t0:0", txn="t2", span=(4, 5))


@passes(8)
def one_of_two_that_read_from_each_other_was_aborted(story: Story) -> None:
    story.sends("a@t0:0", "t1", span=(1, 2))
    story.sends("b@t0:1", "t2", span=(1, 2))
    story.ends("t1", commit=True, span=(3, 9))
    story.ends("t2", commit=False, span=(6, 9))
    story.polls("c2", "a@t0:0", txn="t2", span=(4, 5))


@passes(8)
def transactions_have_read_from_one_another_in_a_line(story: Story) -> None:
    story.commits("t1", "a@t0:0")
    story.polls("c1", "a@t0:0", txn="t2")
    story.commits("t2", "b@t0:2")
    story.polls("c2", "a@t0:0 b@t0:2", txn="t3")
    story.commits("t3", "c@t0:4")


@flagged(9)
def two_transactions_stand_in_different_orders(story: Story) -> None:
    story.sends("a@t0:0 c@t1:1", "t1")
    story.sends("b@t1:0 d@t0:1", "t2")
    story.ends("t1", commit=True)
    story.ends("t2", commit=True)


@passes(9)
def two_transactions_stand_in_one_order(story: Story) -> None:
    story.commits("t1", "a@t0:0 b@t1:0")
    story.aborts("t2", "c@t1:2 d@t0:2")
    story.commits("t3", "e@t0:4 f@t1:4")


@flagged(13, 4)
def a_record_of_a_transaction_is_seen_and_another_never(story: Story) -> None:
    story.commits("t1", "a@t0:0 b@t1", outcome=INFO)
    story.reads("a@t0:0", "t0=0,2,2 t1=0,2,2", final=True)


@passes(13)
def what_is_not_seen_of_a_transaction_was_not_acknowledged(story: Story) -> None:
    story.sends("a@t0:0", "t1")
    story.sends("b@t1", "t1", outcome=INFO)
    story.ends("t1", commit=True)
    story.reads("a@t0:0", "t0=0,2,2 t1=0,2,2", final=True)


@passes(13)
def what_is_not_seen_of_a_transaction_may_be_gone_or_elsewhere(story: Story) -> None:
    story.has(scratch=frozenset({"s"}), compacted=frozenset({"c"}))
    story.commits("t1", "a@t0:0 b@s0 c@c0 d@u0 e@v0 f@v0:1", outcome=INFO)
    story.polls("c1", "a@t0:0")
    story.reads("a@t0:0", "t0=0,2,2 s0=0,2,2 c0=0,2,2 v0=2,2,2", final=True)


@passes(13)
def the_last_look_of_committed_records_is_missing(story: Story) -> None:
    story.commits("t1", "a@t0:0 b@t1:0")
    story.polls("c1", "a@t0:0")
    story.reads("a@t0:0 b@t1:0", "t0=0,2,2 t1=0,2,2", Level.UNCOMMITTED, final=True)


@flagged(14)
def a_record_is_stored_as_another_transactions(story: Story) -> None:
    story.sends("a@t0:0", "t1", owner=ONE)
    story.shows(records=stored("a@t0:0", TWO))


@flagged(14)
def a_late_end_has_decided_the_next_transaction(story: Story) -> None:
    story.aborts("t1", "a@t0:0", owner=ONE)
    story.shows(
        decisions=(decision(ONE, False, 5, "t0"), decision(TWO, False, 8, "t0")),
        markers=(marker(ONE, False, 8, "t0"),),
    )


@passes(14)
def records_are_stored_as_their_own_transactions(story: Story) -> None:
    story.commits("t1", "a@t0:0", owner=ONE)
    story.sends("b@t0:2", "t2", owner=TWO)
    story.shows(
        records=stored("b@t0:2", TWO) + stored("a@t0:0", None),
        decisions=(decision(ONE, True, 5, "t0"),),
        markers=(marker(ONE, True, 5, "t0"),),
    )


@flagged(15)
def the_client_was_told_committed_and_it_is_aborted(story: Story) -> None:
    story.commits("t1", "a@t0:0", owner=ONE)
    story.shows(decisions=(decision(ONE, False, 5),))


@flagged(15)
def the_client_was_told_aborted_and_it_is_committed(story: Story) -> None:
    story.aborts("t1", "a@t0:0", owner=ONE)
    story.shows(decisions=(decision(ONE, True, 5),))


@flagged(15, 3, 30)
def the_client_was_told_committed_and_nothing_of_it_is_there(story: Story) -> None:
    story.commits("t1", "a@t0:0")
    story.reads("", "t0=0,2,2", final=True)


@flagged(15)
def the_client_was_told_committed_and_aborted(story: Story) -> None:
    story.commits("t1", "a@t0:0")
    story.ends("t1", commit=False)


@flagged(15)
def a_token_passed_for_a_committed_ones_after_a_later_transaction_and_it_is_aborted(story: Story) -> None:
    story.sends("a@t0:0", "t1", owner=ONE)
    story.commits("t2", "b@t0:2", owner=TWO)
    story.ends("t1", commit=True)
    story.shows(decisions=(decision(ONE, False, 5), decision(TWO, True, 7)))


@passes(15)
def a_token_passed_for_a_committed_ones_after_a_later_transaction_and_it_is_committed(story: Story) -> None:
    story.sends("a@t0:0", "t1", owner=ONE)
    story.ends("t1", commit=True, outcome=INFO)
    story.commits("t2", "b@t0:2", owner=TWO)
    story.ends("t1", commit=True)
    story.shows(decisions=(decision(ONE, True, 5), decision(TWO, True, 7)))


@passes(15)
def the_client_was_told_committed_and_all_of_it_may_be_gone(story: Story) -> None:
    story.has(scratch=frozenset({"s"}), compacted=frozenset({"c"}))
    story.commits("t1", "a@s0:0")
    story.commits("t2", "b@c0:0")
    story.sends("c@t0", "t3", outcome=INFO)
    story.ends("t3", commit=True)
    story.reads("", "s0=0,2,2 c0=0,2,2 t0=0,1,1", final=True)


@passes(15)
def the_client_was_told_committed_and_all_of_it_was_deleted_since(story: Story) -> None:
    story.commits("t1", "a@t0:0", owner=ONE)
    story.commits("t2", "b@t0:2", owner=TWO, outcome=INFO)
    story.reads("", "t0=4,4,4", final=True)
    story.shows(decisions=(decision(ONE, True, 5), decision(TWO, False, 6)))


@passes(15)
def an_epoch_without_effects_was_used_again(story: Story) -> None:
    story.sends("a@t0", "t1", owner=ONE, outcome=INFO)
    story.ends("t1", commit=False, owner=ONE)
    story.commits("t2", "b@t0:0", owner=ONE)
    story.shows(decisions=(decision(ONE, True, 5),), whole=True)


@flagged(18)
def a_fenced_producer_has_appended(story: Story) -> None:
    story.inits("id", ONE)
    story.inits("id", TWO)
    story.sends("a@t0:0", "t1", owner=ONE)


@flagged(18)
def a_fenced_producer_has_committed(story: Story) -> None:
    story.inits("id", ONE)
    story.sends("a@t0:0", "t1", owner=ONE)
    story.inits("id", TWO)
    story.ends("t1", commit=True, owner=ONE)


@flagged(18)
def a_fenced_producer_has_sent_offsets(story: Story) -> None:
    story.inits("id", ONE)
    story.sends("a@t0:0", "t1", owner=ONE)
    story.inits("id", (8, 0))
    story.stands("g", "q0=4", txn="t1")


@flagged(18)
def a_record_stands_above_the_end_of_its_epoch(story: Story) -> None:
    story.shows(
        batches=(batch(ONE, "t0", 0, 0), batch(ONE, "t0", 5, 1)),
        decisions=(decision(ONE, False, 5, "t0"),),
        markers=(marker(ONE, False, 5, "t0", offset=1),),
    )


@flagged(18)
def a_decision_stands_above_the_next_epoch(story: Story) -> None:
    story.shows(decisions=(decision(ONE, True, 9),), epochs=(epoch(ONE, 3), epoch(TWO, 6), epoch(THREE, 10)))


@passes(18)
def a_call_was_under_way_when_the_next_epoch_was_given(story: Story) -> None:
    story.inits("id", ONE, span=(1, 2))
    story.sends("a@t0:0", "t1", owner=ONE, span=(3, 4))
    story.ends("t1", commit=True, owner=ONE, span=(5, 9))
    story.inits("id", THREE, span=(6, 8))
    story.sends("b@t0:2", "t2", owner=TWO, outcome=INFO)
    story.sends("c@t0:2", "t3", owner=THREE)
    story.shows(decisions=(decision(ONE, True, 5),), epochs=(epoch(ONE, 3), epoch(TWO, 5), epoch(THREE, 7)))


@passes(18)
def a_fenced_producer_has_done_nothing_new(story: Story) -> None:
    story.inits("id", ONE)
    story.commits("t1", "a@t0:0", owner=ONE, outcome=INFO)
    story.inits("id", THREE)
    story.ends("t1", commit=True, owner=ONE)
    story.ends("t2", commit=False, owner=TWO)
    story.sends("", "t2", owner=TWO)
    story.sends("b@t0:2", owner=TWO)


@passes(18)
def another_ids_producer_was_given_a_newer_epoch(story: Story) -> None:
    story.inits("id", ONE)
    story.inits("other", (8, 5))
    story.commits("t1", "a@t0:0", owner=ONE)


@flagged(19)
def an_epoch_was_given_twice(story: Story) -> None:
    story.inits("id", ONE)
    story.inits("id", ONE)


@flagged(19)
def an_epoch_fell(story: Story) -> None:
    story.inits("id", TWO)
    story.inits("id", ONE)


@flagged(19)
def two_transactions_have_one_epoch(story: Story) -> None:
    story.commits("t1", "a@t0:0", owner=ONE)
    story.commits("t2", "b@t0:2", owner=ONE)


@flagged(19)
def a_producer_id_belongs_to_two(story: Story) -> None:
    story.shows(epochs=(epoch(ONE, 3), epoch(TWO, 5, "other")))


@flagged(19)
def an_epoch_fell_in_the_log(story: Story) -> None:
    story.shows(epochs=(epoch(TWO, 3), epoch(ONE, 5)))


@passes(19)
def who_takes_a_prepared_transaction_over_has_its_epoch(story: Story) -> None:
    story.inits("id", ONE)
    story.sends("a@t0:0", "t1", owner=ONE)
    story.inits("id", ONE, kept=True)
    story.ends("t1", commit=True, owner=ONE)
    story.inits("id", THREE)
    story.inits("other", (8, 0))


@flagged(23)
def a_transaction_is_decided_twice(story: Story) -> None:
    story.shows(decisions=(decision(ONE, True, 5), decision(ONE, False, 6)))


@flagged(23)
def markers_do_not_agree(story: Story) -> None:
    story.shows(markers=(marker(ONE, True, 5, "t0"), marker(ONE, False, 5, "t1")))


@flagged(23)
def a_marker_is_against_its_decision(story: Story) -> None:
    story.shows(decisions=(decision(ONE, True, 5, "t0"),), markers=(marker(ONE, False, 5, "t0"),))


@flagged(23)
def a_marker_stands_where_nothing_was_enrolled(story: Story) -> None:
    story.shows(
        decisions=(decision(ONE, True, 5, "t0"),), markers=(marker(ONE, True, 5, "t0"), marker(ONE, True, 5, "t1"))
    )


@flagged(23)
def a_marker_is_missing_where_something_was_enrolled(story: Story) -> None:
    story.shows(decisions=(decision(ONE, True, 5, "t0 t1"),), markers=(marker(ONE, True, 5, "t0"),), whole=True)


@flagged(23)
def a_commit_marker_has_no_decision(story: Story) -> None:
    story.shows(markers=(marker(ONE, True, 5, "t0"),), whole=True)


@flagged(23)
def one_partition_has_two_markers(story: Story) -> None:
    both = (marker(ONE, True, 5, "t0"), marker(ONE, True, 5, "t0", offset=11))
    story.shows(decisions=(decision(ONE, True, 5, "t0"),), markers=both)


@passes(23)
def every_partition_has_its_marker_and_what_hung_was_aborted(story: Story) -> None:
    both = (marker(ONE, True, 5, "t0"), marker(ONE, True, 5, "t1"))
    story.shows(
        decisions=(decision(ONE, True, 5, "t0 t1"), decision(TWO, False, 7)),
        markers=(*both, marker((9, 4), False, 11, "t0", offset=15)),
        whole=True,
    )


@passes(23)
def the_decisions_were_cleaned_up(story: Story) -> None:
    story.shows(markers=(marker(ONE, True, 5, "t0"),))


@passes(23)
def a_topic_was_deleted_before_it_got_its_marker(story: Story) -> None:
    story.has(scratch=frozenset({"u"}))
    story.shows(decisions=(decision(ONE, True, 5, "t0 u0"),), markers=(marker(ONE, True, 5, "t0"),), whole=True)

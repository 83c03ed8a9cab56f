"""Histories about records as they were written (1-4, 12, 20, 27, 28)."""

from __future__ import annotations

from tests.checker.operations import Level
from tests.unit.checker.story import FAIL, INFO, Cases, Story, batch, decision, entry, stored

CASES = Cases()
flagged, passes = CASES.flagged, CASES.passes
ONE, TWO = (7, 0), (7, 1)


@flagged(1)
def two_readers_saw_different_values_at_one_offset(story: Story) -> None:
    story.sends("a@t0:0 b@t0")
    story.polls("c1", "a@t0:0")
    story.polls("c2", "b@t0:0")


@flagged(1)
def two_producers_were_told_one_offset(story: Story) -> None:
    story.sends("a@t0:0")
    story.sends("b@t0:0", producer="other")


@flagged(1)
def the_store_has_another_value_than_was_read(story: Story) -> None:
    story.sends("a@t0 b@t0")
    story.polls("c1", "a@t0:0")
    story.shows(records=stored("b@t0:0", None))


@passes(1)
def one_offset_of_two_partitions(story: Story) -> None:
    story.sends("a@t0:0 b@t1:0")
    story.polls("c1", "a@t0:0")
    story.polls("c2", "b@t1:0 a@t0:0")


@passes(1)
def one_offset_of_a_topic_that_was_made_again(story: Story) -> None:
    story.has(scratch=frozenset({"t"}))
    story.sends("a@t0:0")
    story.polls("c1", "a@t0:0")
    story.sends("b@t0:0")
    story.polls("c1", "b@t0:0")


@flagged(2)
def a_value_was_read_at_two_offsets(story: Story) -> None:
    story.sends("a@t0")
    story.polls("c1", "a@t0:0")
    story.polls("c2", "a@t0:1")


@flagged(2)
def a_value_was_read_elsewhere_than_it_was_acknowledged(story: Story) -> None:
    story.sends("a@t0:0")
    story.polls("c1", "a@t0:1")


@passes(2)
def a_value_was_read_twice_at_its_offset(story: Story) -> None:
    story.sends("a@t0:0")
    story.polls("c1", "a@t0:0")
    story.polls("c1", "a@t0:0", assignment=1)
    story.polls("c2", "a@t0:0")


@flagged(3, 30)
def nobody_ever_saw_a_record_below_the_bounds_of_a_read(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1")
    story.reads("b@t0:1", "t0=0,2,2")


@flagged(3, 7, 13, 30)
def nobody_ever_saw_a_record_whose_append_its_commit_has_acknowledged(story: Story) -> None:
    story.sends("a@t0", "t1", outcome=INFO, buffered=True)
    story.sends("b@t0:0 c@t0:2", "t1")
    story.ends("t1", commit=True)
    story.shows(records=stored("a@t0:1", None))
    story.reads("b@t0:0 c@t0:2", "t0=0,4,4", final=True)


@passes(3)
def a_dead_record_was_compacted_by_key(story: Story) -> None:
    story.has(compacted=frozenset({"t"}))
    story.sends("a@t0:0", key="k", dead=True)
    story.sends("b@t0:1", key="l")
    story.reads("b@t0:1", "t0=0,2,2")


@passes(3)
def a_record_was_buffered_and_its_commit_has_an_unknown_outcome(story: Story) -> None:
    story.sends("a@t0", "t1", outcome=INFO, buffered=True)
    story.ends("t1", commit=True, outcome=INFO)
    story.reads("", "t0=0,4,4", final=True)


@passes(3)
def a_record_whose_append_may_have_failed_was_not_seen(story: Story) -> None:
    story.sends("a@t0", outcome=INFO)
    story.sends("b@t0:1")
    story.reads("b@t0:1", "t0=0,2,2")


@passes(3)
def a_record_whose_commit_may_have_failed_was_not_seen(story: Story) -> None:
    story.commits("t1", "a@t0:0", outcome=INFO)
    story.sends("b@t0:2")
    story.reads("b@t0:2", "t0=0,3,3")


@passes(3)
def a_record_below_the_log_start_was_not_seen(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1")
    story.maintains("delete_records")
    story.reads("b@t0:1", "t0=1,2,2")


@passes(3)
def a_record_was_compacted_by_key(story: Story) -> None:
    story.has(compacted=frozenset({"t"}))
    story.sends("a@t0:0 b@t0:1", key="k")
    story.reads("b@t0:1", "t0=0,2,2")


@flagged(3, 30)
def the_newest_of_a_key_was_compacted(story: Story) -> None:
    story.has(compacted=frozenset({"t"}))
    story.sends("a@t0:0", key="k")
    story.sends("b@t0:1", key="l")
    story.reads("b@t0:1", "t0=0,2,2")


@flagged(4, 30)
def the_last_look_ends_below_a_record(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1")
    story.reads("a@t0:0", "t0=0,1,1", final=True)


@flagged(4)
def the_last_look_lacks_what_was_acknowledged_without_offset(story: Story) -> None:
    story.sends("a@t0:0 b@t0")
    story.reads("a@t0:0", "t0=0,1,1", final=True)


@passes(4)
def the_last_look_ends_below_what_was_aborted(story: Story) -> None:
    story.sends("a@t0:0")
    story.aborts("t1", "b@t0:1")
    story.reads("a@t0:0", "t0=0,3,3", final=True)


@passes(4)
def an_earlier_look_is_held_back(story: Story) -> None:
    story.commits("t1", "a@t0:0")
    story.sends("b@t0:2", "t2")
    story.commits("t3", "c@t0:3")
    story.reads("a@t0:0", "t0=0,2,5")
    story.ends("t2", commit=True)
    story.reads("a@t0:0 b@t0:2 c@t0:3", "t0=0,6,6", final=True)


@passes(4)
def the_last_look_is_at_another_topic_or_where_records_were_deleted(story: Story) -> None:
    story.has(scratch=frozenset({"s"}), compacted=frozenset({"c"}))
    story.sends("a@t0:0 b@t0 x@s0 y@c0")
    story.reads("", "u0=0,0,0", final=True)
    story.reads("", "t0=1,1,1 s0=0,0,0 c0=0,0,0", final=True)


@passes(4)
def the_last_look_shows_what_was_acknowledged_without_offset(story: Story) -> None:
    story.sends("a@t0 b@t1")
    story.reads("a@t0:0 b@t1:0", "t0=0,1,1 t1=0,1,1", final=True)


@flagged(12)
def a_later_send_stands_lower(story: Story) -> None:
    story.sends("a@t0:5", producer="one")
    story.sends("b@t0:4", producer="one")


@flagged(12)
def a_later_record_of_one_send_stands_lower(story: Story) -> None:
    story.sends("a@t0:5 b@t0:4")


@passes(12)
def another_producers_record_stands_between(story: Story) -> None:
    story.sends("a@t0:3 b@t0:5", producer="one")
    story.sends("c@t0:4 d@t1:0", producer="other")
    story.sends("e@t0:6 f@t1:2", producer="one")


@passes(12)
def two_sends_of_a_producer_overlapped(story: Story) -> None:
    story.sends("a@t0:5", producer="one", span=(1, 9))
    story.sends("b@t0:4", producer="one", span=(2, 8))


@passes(12)
def a_send_was_tried_again(story: Story) -> None:
    story.sends("a@t0", producer="one", outcome=INFO)
    story.sends("a@t0:3", producer="one")
    story.sends("a@t0:3 b@t0:4", producer="one")


@flagged(20)
def the_first_sequence_is_not_0(story: Story) -> None:
    story.shows(batches=(batch(ONE, "t0", 0, 1),))


@flagged(20)
def a_sequence_has_a_gap(story: Story) -> None:
    story.shows(batches=(batch(ONE, "t0", 0, 0), batch(ONE, "t0", 1, 2)))


@flagged(20)
def a_sequence_comes_again(story: Story) -> None:
    story.shows(batches=(batch(ONE, "t0", 0, 0), batch(ONE, "t0", 1, 0)))


@flagged(20)
def a_send_tried_again_was_told_another_offset(story: Story) -> None:
    story.sends("a@t0:3")
    story.maintains("compact")
    story.sends("a@t0:4")


@flagged(20)
def a_producer_without_transactions_has_a_gap(story: Story) -> None:
    story.shows(batches=(batch(ONE, "t0", 0, 0, transactional=False), batch(ONE, "t0", 1, 7, transactional=False)))


@flagged(20)
def a_forgotten_producers_transaction_has_a_gap(story: Story) -> None:
    story.has(forgetful=True)
    story.shows(batches=(batch(ONE, "t0", 0, 0), batch(ONE, "t0", 1, 7)))


@flagged(20)
def a_forgotten_producer_goes_back(story: Story) -> None:
    story.has(forgetful=True)
    story.shows(batches=(batch(ONE, "t0", 0, 5, transactional=False), batch(ONE, "t0", 1, 4, transactional=False)))


@passes(20)
def a_producer_that_promises_at_least_once_has_no_sequences(story: Story) -> None:
    story.shows(batches=(batch(None, "t0", 0, None), batch(None, "t0", 1, None)))


@passes(20)
def sequences_begin_again_in_each_epoch_and_partition(story: Story) -> None:
    batches = (batch(ONE, "t0", 0, 0, records=3), batch(ONE, "t0", 3, 3), batch(ONE, "t1", 0, 0))
    story.shows(batches=(*batches, batch(TWO, "t0", 5, 0)))


@passes(20)
def a_forgotten_producer_without_transactions_goes_on_higher(story: Story) -> None:
    story.has(forgetful=True)
    story.shows(batches=(batch(ONE, "t0", 0, 0), batch(ONE, "t0", 1, 7, transactional=False)))


@flagged(27)
def one_commit_stands_at_two_versions(story: Story) -> None:
    story.shows(entries=(entry(0, "x", None), entry(1, "y", "x"), entry(2, "x", "y")))


@flagged(27)
def one_segment_is_registered_twice(story: Story) -> None:
    story.shows(batches=(batch(ONE, "t0", 0, 0, path="same"), batch(ONE, "t0", 1, 1, path="same")))


@passes(27)
def two_commits_of_two_segments(story: Story) -> None:
    story.shows(entries=(entry(0, "x", None), entry(1, "y", "x"), entry(2, "z", "y")))
    story.shows(batches=(batch(ONE, "t0", 0, 0), batch(ONE, "t0", 1, 1)))


@flagged(28)
def what_was_refused_was_read(story: Story) -> None:
    story.sends("a@t0", outcome=FAIL)
    story.polls("c1", "a@t0:0")


@flagged(28)
def a_refused_commit_is_in_the_log(story: Story) -> None:
    story.commits("t1", "a@t0:0", owner=ONE, outcome=FAIL)
    story.shows(decisions=(decision(ONE, True, 5),))


@flagged(28)
def an_acknowledged_commit_is_not_in_the_log(story: Story) -> None:
    story.commits("t1", "a@t0:0", owner=ONE)
    story.shows(whole=True)


@passes(28)
def a_commit_of_unknown_outcome_is_in_the_log(story: Story) -> None:
    story.sends("b@t0", outcome=INFO)
    story.commits("t1", "a@t0:0", owner=ONE, outcome=INFO)
    story.polls("c1", "a@t0:0 b@t0:3")
    story.shows(whole=True, decisions=(decision(ONE, True, 5),))


@flagged(28)
def a_commit_of_unknown_outcome_was_asked_for_again_and_refused_and_it_is_committed(story: Story) -> None:
    story.commits("t1", "a@t0:0", owner=ONE, outcome=INFO)
    story.commits("t2", "b@t0:2", owner=TWO)
    story.ends("t1", commit=True, owner=ONE, outcome=FAIL)
    story.polls("c1", "a@t0:0")
    story.shows(whole=True, decisions=(decision(ONE, True, 5), decision(TWO, True, 7)))


@passes(28)
def a_commit_of_unknown_outcome_was_asked_for_again_after_a_later_one_and_is_unknown(story: Story) -> None:
    story.commits("t1", "a@t0:0", owner=ONE, outcome=INFO)
    story.commits("t2", "b@t0:2", owner=TWO)
    story.ends("t1", commit=True, owner=ONE, outcome=INFO)
    story.shows(whole=True, decisions=(decision(ONE, True, 5), decision(TWO, True, 7)))


@passes(28)
def a_commit_of_unknown_outcome_was_asked_for_again_and_refused_and_it_is_aborted(story: Story) -> None:
    story.commits("t1", "a@t0:0", owner=ONE, outcome=INFO)
    story.ends("t1", commit=True, owner=ONE, outcome=FAIL)
    story.shows(whole=True, decisions=(decision(ONE, False, 5),))


@passes(28)
def nobody_knows_whose_an_acknowledged_commit_was(story: Story) -> None:
    story.commits("t1", "a@t0:0")
    story.sends("b@t0:2", "t2", owner=ONE)
    story.ends("t2", commit=True, outcome=INFO)
    story.shows(whole=True)


@passes(28)
def an_acknowledged_commit_without_anything_in_it(story: Story) -> None:
    story.ends("t1", commit=True, owner=ONE)
    story.reads("", "t0=0,0,0", Level.UNCOMMITTED)
    story.shows(whole=True)

"""Histories about what one consumer gets, one poll after the other (10, 11, 32)."""

from __future__ import annotations

from tests.checker.operations import Level
from tests.unit.checker.story import FAIL, INFO, Cases, Story

CASES = Cases()
flagged, passes = CASES.flagged, CASES.passes
ONE = (7, 0)


@flagged(10)
def a_consumer_passes_over_a_record(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1 c@t0:2")
    story.polls("c1", "a@t0:0")
    story.polls("c1", "c@t0:2")


@flagged(10)
def a_poll_passes_over_a_record_of_a_committed_transaction(story: Story) -> None:
    story.commits("t1", "b@t0:1")
    story.sends("a@t0:0 c@t0:3")
    story.polls("c1", "a@t0:0 c@t0:3")


@passes(10)
def a_consumer_passes_over_markers_and_aborted_records(story: Story) -> None:
    story.sends("a@t0:0")
    story.aborts("t1", "b@t0:1")
    story.commits("t2", "c@t0:3", outcome=INFO)
    story.sends("d@t0:5")
    story.polls("c1", "a@t0:0")
    story.polls("c1", "d@t0:5")


@passes(10)
def a_consumer_passes_over_a_record_because_it_was_moved(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1 c@t0:2 d@t1:0")
    story.polls("c1", "a@t0:0 d@t1:0")
    story.polls("c1", "c@t0:2", assignment=1)


@passes(10)
def a_consumer_passes_over_a_record_that_was_deleted(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1 c@t0:2")
    story.polls("c1", "a@t0:0", "t0=0,3,3")
    story.polls("c1", "c@t0:2", "t0=2,3,3")


@passes(10)
def a_snapshot_is_polled_that_does_not_have_a_record(story: Story) -> None:
    story.commits("t1", "a@t0:0")
    story.commits("t2", "b@t0:2")
    story.sends("c@t0:4")
    story.polls("c1", "a@t0:0 c@t0:4", level=Level.SNAPSHOT)


@flagged(11)
def a_consumer_gets_a_record_again(story: Story) -> None:
    story.sends("a@t0:0")
    story.polls("c1", "a@t0:0")
    story.polls("c1", "a@t0:0")


@flagged(11)
def one_poll_goes_back(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1")
    story.polls("c1", "b@t0:1 a@t0:0")


@passes(11)
def a_consumer_gets_a_record_again_because_it_was_moved(story: Story) -> None:
    story.sends("a@t0:0 b@t1:0")
    story.polls("c1", "a@t0:0")
    story.polls("c1", "b@t1:0")
    story.polls("c1", "a@t0:0", assignment=1)


@flagged(32)
def a_consumer_goes_on_without_rewinding_after_an_abort(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1 c@t0:2")
    story.stands("g", "t0=1")
    story.polls("c1", "b@t0:1")
    story.rewinds("c1", "g")
    story.polls("c1", "c@t0:2", assignment=1)


@flagged(32)
def a_consumer_goes_on_behind_the_offsets_of_the_aborted_transaction(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1 c@t0:2")
    story.stands("g", "t0=1")
    story.polls("c1", "b@t0:1")
    story.stands("g", "t0=2", txn="t1")
    story.ends("t1", commit=False)
    story.rewinds("c1", "g")
    story.polls("c1", "c@t0:2", assignment=1)


@flagged(32)
def a_consumer_goes_on_where_a_refused_commit_would_have_set_it(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1 c@t0:2")
    story.stands("g", "t0=1")
    story.stands("g", "t0=2", outcome=FAIL)
    story.rewinds("c1", "g")
    story.polls("c1", "c@t0:2", assignment=1)


@flagged(32)
def a_consumer_goes_below_what_its_group_has_committed(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1 c@t0:2")
    story.stands("g", "t0=1")
    story.rewinds("c1", "g")
    story.polls("c1", "a@t0:0", assignment=1)


@passes(32)
def a_consumer_goes_below_the_offset_of_a_topic_that_was_made_again(story: Story) -> None:
    story.has(scratch=frozenset({"t"}))
    story.sends("a@t0:0 b@t0:1")
    story.stands("g", "t0=5")
    story.rewinds("c1", "g")
    story.polls("c1", "b@t0:1", assignment=1)


@passes(32)
def a_consumer_rewinds_and_gets_nothing_more(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1")
    story.stands("g", "t0=1")
    story.polls("c1", "a@t0:0")
    story.rewinds("c1", "g")
    story.rewinds("c2", "g")


@passes(32)
def a_consumer_was_moved_again_after_it_was_rewound(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1 c@t0:2")
    story.stands("g", "t0=1")
    story.rewinds("c1", "g")
    story.polls("c1", "", assignment=1)
    story.polls("c1", "a@t0:0", assignment=2)


@passes(32)
def a_consumer_goes_back_to_what_its_group_has_committed(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1 c@t0:2")
    story.stands("g", "t0=1")
    story.polls("c1", "b@t0:1 c@t0:2")
    story.stands("g", "t0=3", txn="t1")
    story.ends("t1", commit=False)
    story.rewinds("c1", "g")
    story.polls("c1", "", assignment=1)
    story.polls("c1", "b@t0:1 c@t0:2", assignment=1)


@passes(32)
def a_consumer_goes_on_where_a_commit_of_unknown_outcome_may_have_set_it(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1 c@t0:2")
    story.stands("g", "t0=1")
    story.stands("g", "t0=2", outcome=INFO)
    story.rewinds("c1", "g")
    story.polls("c1", "c@t0:2", assignment=1)

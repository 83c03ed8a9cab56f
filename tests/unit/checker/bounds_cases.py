"""Histories about how far reads reach: bounds and stale reads (21, 30)."""

from __future__ import annotations

from tests.checker.operations import Level
from tests.unit.checker.story import INFO, Cases, Story

CASES = Cases()
flagged, passes = CASES.flagged, CASES.passes
ONE = (7, 0)


@flagged(21)
def a_last_stable_offset_is_above_the_high_watermark(story: Story) -> None:
    story.reads("", "t0=0,3,2")


@flagged(21)
def a_last_stable_offset_is_above_an_open_transaction(story: Story) -> None:
    story.sends("a@t0:0", "t1")
    story.polls("c1", "", "t0=0,1,1")
    story.ends("t1", commit=True)


@flagged(21)
def a_record_is_shown_above_the_last_stable_offset(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1")
    story.polls("c1", "a@t0:0 b@t0:1", "t0=0,1,2")


@flagged(21)
def a_last_stable_offset_fell_between_two_reads(story: Story) -> None:
    story.sends("a@t0:0", "t1")
    story.reads("", "t0=0,2,2")
    story.reads("", "t0=0,1,2")


@flagged(21)
def a_read_does_not_show_what_its_bounds_pass(story: Story) -> None:
    story.sends("a@t0:0", span=(1, 9))
    story.reads("", "t0=0,1,1", span=(2, 4))
    story.maintains("compact")
    story.reads("a@t0:0", "t0=0,1,1", span=(3, 5))


@flagged(21)
def a_last_stable_offset_fell_for_a_consumer(story: Story) -> None:
    story.sends("a@t0:0", "t1")
    story.polls("c1", "", "t0=0,2,2")
    story.polls("c1", "", "t0=0,1,2")


@flagged(21)
def a_high_watermark_fell_for_a_consumer(story: Story) -> None:
    story.sends("a@t0:0", "t1")
    story.polls("c1", "", "t0=0,0,3")
    story.polls("c1", "", "t0=0,0,2")


@flagged(21)
def a_record_is_shown_below_the_log_start(story: Story) -> None:
    story.sends("a@t0:0")
    story.reads("a@t0:0", "t0=1,1,1")


@flagged(21)
def a_snapshot_shows_a_record_above_the_high_watermark(story: Story) -> None:
    story.sends("a@t0:0")
    story.snapshot(5, "a@t0:0", "t0=0,0,0", as_of=True)


@passes(21)
def a_consumer_gets_what_it_had_fetched_before_it_was_deleted(story: Story) -> None:
    story.sends("a@t0:0")
    story.polls("c1", "a@t0:0", "t0=1,1,1")
    story.polls("c2", "", "t0=0,0,0")
    story.polls("c3", "a@t0:0", "t0=1,1,1", level=Level.UNCOMMITTED)


@passes(21)
def a_last_stable_offset_stands_at_an_open_transaction_and_rises_when_it_ends(story: Story) -> None:
    story.sends("a@t0:0")
    story.sends("b@t0:1 c@t0:2", "t1")
    story.reads("a@t0:0", "t0=0,1,3")
    story.polls("c1", "a@t0:0", "t0=0,1,3")
    story.ends("t1", commit=True)
    story.polls("c1", "b@t0:1 c@t0:2", "t0=0,4,4")
    story.reads("a@t0:0 b@t0:1 c@t0:2", "t0=0,4,4")


@passes(21)
def a_read_that_overlaps_is_told_less(story: Story) -> None:
    story.sends("a@t0:0")
    story.reads("a@t0:0", "t0=0,3,3", span=(3, 9))
    story.reads("a@t0:0", "t0=0,2,2", span=(4, 10))
    story.reads("a@t0:0", "t0=0,1,1", as_of=True)


@flagged(30)
def a_read_does_not_reach_what_was_acknowledged(story: Story) -> None:
    story.commits("t1", "a@t0:0")
    story.reads("", "t0=0,0,0")
    story.polls("c1", "a@t0:0")


@flagged(30)
def a_snapshot_is_below_an_acknowledged_commit(story: Story) -> None:
    story.commits("t1", "a@t0:0", position=5)
    story.snapshot(4, "", "t0=0,2,2")


@flagged(30)
def a_read_is_held_back_by_a_transaction_that_has_ended(story: Story) -> None:
    story.sends("a@t0:0")
    story.aborts("t1", "b@t0:1")
    story.commits("t2", "c@t0:3")
    story.reads("a@t0:0", "t0=0,1,5")


@passes(30)
def a_read_is_held_back_by_a_transaction_whose_end_is_not_known(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1")
    story.commits("t1", "c@t0:2", outcome=INFO)
    story.reads("a@t0:0 b@t0:1", "t0=0,2,3")


@passes(30)
def a_read_is_held_back_below_the_log_start(story: Story) -> None:
    story.sends("x@t0:0", "open")
    story.commits("t1", "a@t0:1")
    story.reads("", "t0=1,1,3")


@passes(30)
def a_snapshot_of_the_past_reaches_less(story: Story) -> None:
    story.sends("b@t0:0")
    story.commits("t1", "a@t0:1", position=5)
    story.snapshot(4, "", "t0=0,0,0", as_of=True)


@passes(30)
def a_read_is_held_back_by_an_open_transaction(story: Story) -> None:
    story.sends("a@t0:0", "t1")
    story.sends("x@t0:1", "open")
    story.ends("t1", commit=True)
    story.commits("t2", "b@t0:3")
    story.reads("a@t0:0", "t0=0,1,5")


@passes(30)
def a_read_began_before_the_commit_was_acknowledged(story: Story) -> None:
    story.sends("a@t0:0", "t1", span=(1, 2))
    story.ends("t1", commit=True, position=5, span=(3, 9))
    story.snapshot(4, "", "t0=0,2,2", span=(8, 10))
    story.reads("", "t0=0,0,0", span=(8, 10))


@passes(30)
def a_reader_that_may_not_write_stands_at_the_published_position(story: Story) -> None:
    story.commits("t1", "a@t0:0", position=5)
    story.snapshot(4, "", "t0=0,2,2", as_of=True)

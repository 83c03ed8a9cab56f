"""Histories about which records readers saw (5-7, 24, 31, 34), and which nobody did (3)."""

from __future__ import annotations

from tests.checker.operations import Level
from tests.unit.checker.story import FAIL, INFO, Cases, Story, decision

CASES = Cases()
flagged, passes = CASES.flagged, CASES.passes
ONE = (7, 0)


@flagged(5, 13, 15)
def a_record_of_an_aborted_transaction_was_read(story: Story) -> None:
    story.aborts("t1", "a@t0:0")
    story.polls("c1", "a@t0:0")


@flagged(5, 13)
def a_record_of_a_refused_commit_was_read(story: Story) -> None:
    story.commits("t1", "a@t0:0", outcome=FAIL)
    story.polls("c1", "a@t0:0")


@flagged(5, 13)
def a_record_of_a_transaction_that_never_ended_was_read(story: Story) -> None:
    story.sends("a@t0:0", "t1")
    story.polls("c1", "a@t0:0")


@flagged(5, 13)
def a_record_was_read_whose_transaction_the_log_says_is_aborted(story: Story) -> None:
    story.commits("t1", "a@t0:0", owner=ONE, outcome=INFO)
    story.polls("c1", "a@t0:0")
    story.shows(decisions=(decision(ONE, False, 5),))


@flagged(5)
def a_record_was_read_that_nobody_wrote(story: Story) -> None:
    story.polls("c1", "a@t0:0")


@passes(5)
def an_aborted_record_was_read_uncommitted(story: Story) -> None:
    story.aborts("t1", "a@t0:0")
    story.polls("c1", "a@t0:0", level=Level.UNCOMMITTED)


@passes(5)
def a_record_was_read_whose_commit_has_an_unknown_outcome(story: Story) -> None:
    story.commits("t1", "a@t0:0", outcome=INFO)
    story.polls("c1", "a@t0:0")


@flagged(6)
def a_transaction_read_its_own_record(story: Story) -> None:
    story.sends("a@t0:0", "t1")
    story.ends("t1", commit=True, span=(5, 9))
    story.polls("c1", "a@t0:0", txn="t1", span=(6, 10))


@flagged(6)
def a_record_was_read_before_its_commit_was_asked_for(story: Story) -> None:
    story.sends("a@t0:0", "t1")
    story.polls("c1", "a@t0:0")
    story.ends("t1", commit=True)


@flagged(6)
def a_record_was_read_before_it_was_sent(story: Story) -> None:
    story.polls("c1", "a@t0:0")
    story.sends("a@t0:0")


@passes(6)
def transactions_read_what_is_not_theirs_or_not_committed(story: Story) -> None:
    story.sends("a@t0:0")
    story.sends("b@t0:1", "t1")
    story.polls("c1", "a@t0:0", txn="t1")
    story.polls("c2", "a@t0:0 b@t0:1", txn="t1", level=Level.UNCOMMITTED)
    story.polls("c3", "a@t0:0")
    story.ends("t1", commit=True)


@passes(6)
def a_record_was_read_while_its_commit_was_under_way(story: Story) -> None:
    story.sends("a@t0:0", "t1", span=(1, 2))
    story.ends("t1", commit=True, span=(3, 9))
    story.polls("c1", "a@t0:0", txn="t2", span=(4, 5))


@flagged(7, 3, 30)
def a_snapshot_shows_a_part_of_a_transaction(story: Story) -> None:
    story.commits("t1", "a@t0:0 b@t1:0", position=5)
    story.snapshot(5, "a@t0:0", "t0=0,2,2 t1=0,2,2")


@flagged(3, 30)
def a_snapshot_lacks_a_record_of_no_transaction(story: Story) -> None:
    story.sends("a@t0:0")
    story.snapshot(5, "", "t0=0,1,1")


@passes(3)
def a_snapshot_of_the_past_lacks_a_record_of_no_transaction(story: Story) -> None:
    story.sends("a@t0:0")
    story.snapshot(5, "", "t0=0,1,1", as_of=True)


@flagged(7)
def a_snapshot_lacks_what_a_higher_one_shows(story: Story) -> None:
    story.commits("t1", "a@t0:0", outcome=INFO, owner=ONE)
    story.snapshot(6, "a@t0:0", "t0=0,2,2", span=(5, 9))
    story.snapshot(5, "", "t0=0,2,2", span=(5, 9))
    story.shows(decisions=(decision(ONE, True, 5),))


@flagged(7, 3, 30)
def a_snapshot_of_no_known_position_lacks_an_acknowledged_record(story: Story) -> None:
    story.commits("t1", "a@t0:0")
    story.snapshot(None, "", "t0=0,2,2")


@passes(7)
def a_snapshot_lacks_what_may_be_above_it(story: Story) -> None:
    story.commits("t1", "a@t0:0")
    story.snapshot(5, "", "t0=0,2,2", as_of=True)
    story.snapshot(5, "", "t0=0,2,2", span=(1, 9))
    story.polls("c1", "a@t0:0")


@flagged(7)
def a_snapshot_shows_what_was_decided_above_it(story: Story) -> None:
    story.commits("t1", "a@t0:0", position=5)
    story.snapshot(4, "a@t0:0", "t0=0,2,2", as_of=True)


@flagged(7)
def a_read_shows_a_part_of_a_transaction_that_nobody_was_told_of(story: Story) -> None:
    story.commits("t1", "a@t0:0 b@t1:0", outcome=INFO)
    story.polls("c1", "b@t1:0", span=(5, 9))
    story.reads("a@t0:0", "t0=0,2,2 t1=0,2,2", span=(5, 9))


@flagged(7, 30)
def a_committed_read_shows_a_part_of_a_transaction(story: Story) -> None:
    story.commits("t1", "a@t0:0 b@t1:0")
    story.polls("c1", "b@t1:0")
    story.reads("a@t0:0", "t0=0,2,2 t1=0,2,2", span=(5, 9))


@passes(7)
def a_committed_read_shows_a_part_and_is_held_back_in_another_partition(story: Story) -> None:
    story.sends("x@t1:0", "open")
    story.commits("t1", "a@t0:0 b@t1:1", position=5)
    story.reads("a@t0:0", "t0=0,2,2 t1=0,0,3")
    story.snapshot(5, "a@t0:0 b@t1:1", "t0=0,2,2 t1=0,0,3")
    story.snapshot(4, "", "t0=0,2,2 t1=0,0,3", as_of=True)


@passes(7)
def a_snapshot_shows_a_part_because_records_were_deleted(story: Story) -> None:
    story.commits("t1", "a@t0:0 b@t1:0", position=5)
    story.snapshot(5, "a@t0:0", "t0=0,2,2 t1=1,2,2")


@flagged(3)
def nobody_saw_a_commit_that_nobody_was_told_of(story: Story) -> None:
    story.commits("t1", "a@t0:0", outcome=INFO, owner=ONE)
    story.reads("", "t0=0,2,2")
    story.shows(decisions=(decision(ONE, True, 5),))


@flagged(24)
def a_record_was_shown_and_is_not_later(story: Story) -> None:
    story.sends("a@t0:0", span=(1, 99))
    story.reads("a@t0:0", "t0=0,1,1", span=(2, 3))
    story.reads("", "t0=0,1,1", span=(4, 5))


@flagged(24, 7)
def a_snapshot_does_not_show_what_a_lower_one_has_shown(story: Story) -> None:
    story.commits("t1", "a@t0:0", outcome=INFO, position=5, owner=ONE)
    story.shows(decisions=(decision(ONE, True, 5),))
    story.snapshot(5, "a@t0:0", "t0=0,2,2")
    story.snapshot(6, "", "t0=0,2,2", as_of=True)


@passes(24)
def a_record_was_shown_and_deleted_later(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1")
    story.reads("a@t0:0 b@t0:1", "t0=0,2,2")
    story.maintains("delete_records")
    story.reads("b@t0:1", "t0=1,2,2")


@passes(24)
def a_snapshot_of_before_does_not_show_a_record(story: Story) -> None:
    story.commits("t1", "a@t0:0", position=5)
    story.sends("b@t0:2")
    story.reads("a@t0:0 b@t0:2", "t0=0,3,3")
    story.snapshot(4, "", "t0=0,3,3", as_of=True)


@flagged(31)
def a_snapshot_shows_one_side_of_a_transfer(story: Story) -> None:
    story.has(accounts=frozenset({"t"}))
    story.sends("a@t0:0", "t1", amount=5)
    story.sends("b@t1:0", "t1", amount=-4)
    story.ends("t1", commit=True, position=5)
    story.snapshot(5, "a@t0:0 b@t1:0", "t0=0,2,2 t1=0,2,2")


@flagged(31)
def the_last_look_shows_one_side_of_a_transfer(story: Story) -> None:
    story.has(accounts=frozenset({"t"}))
    story.sends("a@t0:0", amount=5)
    story.sends("x@u0:0 y@t7", outcome=INFO)
    story.reads("a@t0:0", "t0=0,1,1", final=True)


@passes(31)
def one_side_of_a_transfer_was_deleted_or_is_not_read(story: Story) -> None:
    story.has(accounts=frozenset({"t"}))
    story.sends("a@t0:0", amount=5)
    story.sends("b@t1:0", amount=-5)
    story.snapshot(5, "a@t0:0", "t0=0,1,1 t1=1,1,1")
    story.snapshot(5, "a@t0:0", "t0=0,1,1")
    story.reads("a@t0:0 b@t1:0", "t0=0,1,1 t1=0,1,1", final=True)


@passes(31)
def snapshots_show_transfers_whole_and_committed_reads_do_not(story: Story) -> None:
    story.has(accounts=frozenset({"t"}))
    story.sends("x@t1:0", "open")
    story.sends("a@t0:0", "t1", amount=5)
    story.sends("b@t1:1", "t1", amount=-5)
    story.ends("t1", commit=True, position=5)
    story.snapshot(5, "a@t0:0 b@t1:1", "t0=0,2,2 t1=0,0,3")
    story.snapshot(4, "", "t0=0,2,2 t1=0,0,3", as_of=True)
    story.reads("a@t0:0", "t0=0,2,2 t1=0,0,3")
    story.snapshot(5, "a@t0:0", "t0=0,2,2")


@flagged(34, 24, 30)
def a_record_is_gone_after_maintenance(story: Story) -> None:
    story.sends("a@t0:0 b@t0:1")
    story.reads("a@t0:0 b@t0:1", "t0=0,2,2")
    story.maintains("compact")
    story.reads("b@t0:1", "t0=0,2,2")


@flagged(24, 30)
def a_record_was_gone_without_maintenance_in_between(story: Story) -> None:
    story.sends("a@t0:0")
    story.maintains("compact")
    story.reads("a@t0:0", "t0=0,1,1")
    story.reads("", "t0=0,1,1")
    story.maintains("compact")


@flagged(34, 2)
def a_record_stands_elsewhere_after_maintenance(story: Story) -> None:
    story.sends("a@t0")
    story.reads("a@t0:0", "t0=0,3,3")
    story.maintains("compact")
    story.reads("a@t0:1", "t0=0,3,3")


@passes(34)
def reads_show_the_same_after_maintenance(story: Story) -> None:
    story.sends("a@t0:0 b@t0:2")
    story.reads("b@t0:2 a@t0:0", "t0=0,3,3")
    story.maintains("compact")
    story.maintains("retention")
    story.reads("b@t0:2", "t0=2,3,3")


@passes(34)
def maintenance_takes_an_older_record_of_a_key(story: Story) -> None:
    story.has(compacted=frozenset({"t"}))
    story.sends("a@t0:0 b@t0:1", key="k")
    story.reads("a@t0:0 b@t0:1", "t0=0,2,2")
    story.maintains("compact")
    story.reads("b@t0:1", "t0=0,2,2")


@passes(34)
def what_was_open_is_unseen_by_all(story: Story) -> None:
    story.sends("a@t0:0", "t1", outcome=INFO)
    story.reads("", "t0=0,0,0")
    story.maintains("compact")
    story.reads("", "t0=0,0,0")

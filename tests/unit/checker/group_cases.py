"""Histories about consumer groups and what is copied by them (16, 17, 33)."""

from __future__ import annotations

from tests.unit.checker.story import FAIL, INFO, Cases, Story, place

CASES = Cases()
flagged, passes = CASES.flagged, CASES.passes
ONE, TWO, THREE = (7, 0), (7, 1), (7, 2)
P0 = place("t0")


@flagged(16)
def a_snapshot_shows_records_without_their_offsets(story: Story) -> None:
    story.stands("g", "q0=4", txn="t1")
    story.commits("t1", "a@t0:0", position=5)
    story.snapshot(5, "a@t0:0", "t0=0,2,2", group="g", stands="q0=3", as_of=True)


@flagged(16)
def a_snapshot_shows_records_and_the_group_has_no_offset(story: Story) -> None:
    story.stands("g", "q0=4", txn="t1")
    story.commits("t1", "a@t0:0", position=5)
    story.snapshot(5, "a@t0:0", "t0=0,2,2", group="g", stands="")


@flagged(16)
def a_snapshot_shows_offsets_without_their_records(story: Story) -> None:
    story.stands("g", "q0=4", txn="t1")
    story.commits("t1", "a@t0:0", position=5)
    story.snapshot(4, "", "t0=0,2,2", group="g", stands="q0=4", as_of=True)


@passes(16)
def snapshots_show_records_and_offsets_together(story: Story) -> None:
    story.stands("g", "q0=4", txn="t1")
    story.commits("t1", "a@t0:0", position=5)
    story.stands("g", "q0=6", txn="t2")
    story.commits("t2", "b@t0:2", position=7)
    story.snapshot(4, "", "t0=0,4,4", group="g", stands="", as_of=True)
    story.snapshot(5, "a@t0:0", "t0=0,4,4", group="g", stands="q0=4", as_of=True)
    story.snapshot(7, "a@t0:0 b@t0:2", "t0=0,4,4", group="g", stands="q0=6")


@passes(16)
def offsets_are_there_and_their_records_may_be_gone_or_elsewhere(story: Story) -> None:
    story.has(scratch=frozenset({"s"}), compacted=frozenset({"c"}))
    story.stands("g", "q0=4", txn="t1")
    story.sends("a@s0:0 b@c0:0 d@u0:0 e@t0:0", "t1")
    story.sends("f@t0", "t1", outcome=INFO)
    story.ends("t1", commit=True, position=5)
    story.snapshot(5, "", "s0=0,2,2 c0=0,2,2 t0=2,2,2", group="g", stands="q0=4")


@passes(16)
def two_transactions_have_committed_one_offset(story: Story) -> None:
    story.stands("g", "q0=4", txn="t1")
    story.commits("t1", "a@t0:0", position=5)
    story.stands("g", "q0=4", txn="t2")
    story.commits("t2", "b@t0:2", position=7)
    story.snapshot(5, "a@t0:0", "t0=0,4,4", group="g", stands="q0=4", as_of=True)


@passes(16)
def records_are_there_and_their_offsets_were_refused_or_are_of_others(story: Story) -> None:
    story.has(scratch=frozenset({"s"}))
    story.stands("g", "q0=4 s0=9", txn="t1")
    story.stands("g", "q0=8", txn="t1", outcome=FAIL)
    story.stands("other", "q0=9", txn="t1")
    story.sends("x@t0:0")
    story.commits("t1", "a@t0:1", position=5)
    story.snapshot(5, "x@t0:0 a@t0:1", "t0=0,3,3", group="g", stands="q0=4 s0=1")


@passes(16)
def the_offsets_of_an_idle_group_have_expired(story: Story) -> None:
    story.has(forgetful=True)
    story.stands("g", "q0=4", txn="t1")
    story.commits("t1", "a@t0:0", position=5)
    story.snapshot(5, "a@t0:0", "t0=0,2,2", group="g", stands="")
    story.fetches("g", "", asked="q0")


@passes(16)
def a_committed_read_is_of_no_one_moment(story: Story) -> None:
    story.stands("g", "q0=4", txn="t1")
    story.sends("a@t0:0", "t1", span=(3, 4))
    story.ends("t1", commit=True, span=(5, 9))
    story.reads("", "t0=0,0,1", offsets={("g", place("q0")): 4}, groups=frozenset({"g"}), span=(6, 8))


@passes(16)
def an_admin_has_reset_the_group_since(story: Story) -> None:
    story.stands("g", "q0=4", txn="t1")
    story.commits("t1", "a@t0:0", position=5)
    story.stands("g", "q0=0", reset=True)
    story.snapshot(5, "a@t0:0", "t0=0,2,2", group="g", stands="q0=0")


def copied(story: Story) -> None:
    """Three records of topic s, of which group g has read two and copied them to topic t."""
    story.has(copies={"t": ("s", "g")})
    story.sends("a@s0:0 b@s0:1 c@s0:2")
    story.stands("g", "s0=2", txn="t1")
    story.sends("x@t0:0", "t1", source=(place("s0"), 0))
    story.sends("y@t0:1", "t1", source=(place("s0"), 1))


@flagged(17)
def a_record_was_copied_twice(story: Story) -> None:
    copied(story)
    story.sends("z@t0:2", "t1", source=(place("s0"), 1))
    story.ends("t1", commit=True, position=5)
    shown = "a@s0:0 b@s0:1 c@s0:2 x@t0:0 y@t0:1 z@t0:2"
    story.snapshot(5, shown, "s0=0,3,3 t0=0,4,4", group="g", stands="s0=2")


@flagged(17)
def a_record_that_was_read_was_not_copied(story: Story) -> None:
    copied(story)
    story.stands("g", "s0=3", txn="t1")
    story.ends("t1", commit=True, position=5)
    story.snapshot(5, "a@s0:0 b@s0:1 c@s0:2 x@t0:0 y@t0:1", "s0=0,3,3 t0=0,3,3", group="g", stands="s0=3")


@flagged(17)
def a_record_was_copied_that_the_group_has_not_read(story: Story) -> None:
    copied(story)
    story.sends("z@t0:2", "t1", source=(place("s0"), 2))
    story.ends("t1", commit=True, position=5)
    shown = "a@s0:0 b@s0:1 c@s0:2 x@t0:0 y@t0:1 z@t0:2"
    story.snapshot(5, shown, "s0=0,3,3 t0=0,4,4", group="g", stands="s0=2")


@flagged(17)
def records_were_copied_out_of_order(story: Story) -> None:
    story.has(copies={"t": ("s", "g")})
    story.sends("a@s0:0 b@s0:1")
    story.stands("g", "s0=2", txn="t1")
    story.sends("y@t0:0", "t1", source=(place("s0"), 1))
    story.sends("x@t0:1", "t1", source=(place("s0"), 0))
    story.ends("t1", commit=True, position=5)
    story.snapshot(5, "a@s0:0 b@s0:1 y@t0:0 x@t0:1", "s0=0,2,2 t0=0,3,3", group="g", stands="s0=2")


@passes(17)
def a_copy_that_is_not_read_with_its_group_and_its_source_is_not_judged(story: Story) -> None:
    copied(story)
    story.ends("t1", commit=True, position=5)
    shown, both = "a@s0:0 b@s0:1 c@s0:2 x@t0:0 y@t0:1", "s0=0,3,3 t0=0,3,3"
    story.snapshot(5, shown, both, group="other")
    story.snapshot(5, "a@s0:0 b@s0:1 c@s0:2", "s0=0,3,3", group="g", stands="s0=2")
    story.snapshot(5, "x@t0:0 y@t0:1", "t0=0,3,3", group="g", stands="s0=2")
    story.reads(shown, both)
    story.reads("a@s0:0 b@s0:1 c@s0:2 x@t0:0 y@t0:1", both, groups=frozenset({"g"}))


@passes(17)
def records_of_a_copy_were_deleted_and_others_were_added(story: Story) -> None:
    copied(story)
    story.sends("z@t0:2", "t1")
    story.ends("t1", commit=True, position=5)
    story.snapshot(5, "a@s0:0 b@s0:1 c@s0:2 y@t0:1 z@t0:2", "s0=0,3,3 t0=1,4,4", group="g", stands="s0=2")


@passes(17)
def what_a_group_has_read_was_copied_once(story: Story) -> None:
    copied(story)
    story.snapshot(4, "a@s0:0 b@s0:1 c@s0:2", "s0=0,3,3 t0=0,0,2", group="g", stands="", as_of=True)
    story.ends("t1", commit=True, position=5)
    story.snapshot(5, "a@s0:0 b@s0:1 c@s0:2 x@t0:0 y@t0:1", "s0=0,3,3 t0=0,3,3", group="g", stands="s0=2")


@flagged(33)
def a_groups_offset_went_back(story: Story) -> None:
    story.stands("g", "t0=5")
    story.fetches("g", "t0=4")


@flagged(33)
def a_groups_offset_went_back_between_two_looks(story: Story) -> None:
    story.stands("g", "t0=5", outcome=INFO)
    story.fetches("g", "t0=5")
    story.fetches("g", "t0=4")


@flagged(33)
def a_groups_offset_went_back_between_two_snapshots(story: Story) -> None:
    story.snapshot(5, "", "t0=0,0,0", group="g", stands="q0=4")
    story.snapshot(6, "", "t0=0,0,0", group="g", stands="q0=3")


@flagged(33)
def a_groups_offset_went_back_after_a_reset(story: Story) -> None:
    story.stands("g", "t0=0", reset=True)
    story.stands("g", "t0=5")
    story.stands("g", "t0=0", reset=True, outcome=FAIL)
    story.fetches("g", "t0=4")


@flagged(33)
def a_groups_offset_is_gone(story: Story) -> None:
    story.stands("g", "t0=5", txn="t1")
    story.ends("t1", commit=True)
    story.fetches("g", "", asked="t0")


@flagged(33)
def a_member_has_committed_what_was_given_to_another(story: Story) -> None:
    story.joins("g", "m1", 1, "t0")
    story.joins("g", "m2", 2, "t0")
    story.stands("g", "t0=5", member="m1", generation=1)


@passes(33)
def a_group_was_deleted_and_its_generations_begin_again(story: Story) -> None:
    story.joins("g", "m1", 1, "t0")
    story.joins("g", "m2", 2, "t0")
    story.stands("g", "t0=0", reset=True)
    story.joins("g", "m3", 1, "t0")
    story.stands("g", "t0=5", member="m3", generation=1)


@passes(33)
def a_groups_offset_was_reset(story: Story) -> None:
    story.stands("g", "t0=5")
    story.fetches("g", "t0=5")
    story.stands("g", "t0=0", reset=True)
    story.fetches("g", "t0=0", asked="t0")
    story.stands("g", "t0=2")
    story.fetches("g", "t0=2")


@passes(33)
def a_reset_was_under_way(story: Story) -> None:
    story.stands("g", "t0=0", reset=True, span=(1, 9))
    story.stands("g", "t0=5", span=(2, 4))
    story.fetches("g", "t0=0", span=(10, 11))
    story.stands("g", "t0=0", reset=True, span=(12, None), outcome=INFO)
    story.stands("g", "t0=6", span=(20, 21))
    story.fetches("g", "t0=0", span=(22, 23))


@passes(33)
def a_higher_offset_was_refused_or_is_of_the_past(story: Story) -> None:
    story.stands("g", "t0=3")
    story.stands("g", "t0=5", outcome=FAIL)
    story.fetches("g", "t0=3")
    story.stands("g", "t0=6")
    story.snapshot(2, "", "u0=0,0,0", group="g", stands="t0=3", as_of=True)


@passes(33)
def offsets_are_committed_without_a_member(story: Story) -> None:
    story.joins("g", "m1", 1, "t0")
    story.stands("g", "t0=5", txn="t1")
    story.stands("g", "t0=5", member="m2")


@passes(33)
def a_higher_offset_was_not_committed_for_certain(story: Story) -> None:
    story.stands("g", "t0=3", span=(1, 2))
    story.stands("g", "t0=5", span=(3, None), outcome=INFO)
    story.stands("g", "t0=6", txn="t1", span=(5, 6))
    story.ends("t1", commit=False)
    story.stands("g", "t0=7", span=(8, 20))
    story.fetches("g", "t0=3", asked="t0 t1", span=(10, 12))


@passes(33)
def a_member_that_keeps_its_partition_commits_with_an_older_generation(story: Story) -> None:
    story.joins("g", "m1", 1, "t0 t1")
    story.joins("g", "m1", 2, "t0")
    story.joins("g", "m2", 2, "t1")
    story.stands("g", "t0=5", member="m1", generation=1)
    story.stands("g", "t1=5", member="m2", generation=2)

"""Histories about what the store shows in the end (22, 25, 26, 29)."""

from __future__ import annotations

from tests.checker.evidence import Recreated
from tests.unit.checker.story import Cases, Story, bounds, decision, entry, file, place

CASES = Cases()
flagged, passes = CASES.flagged, CASES.passes
ONE = (7, 0)
DAY_MS = 86_400_000
LOG = (entry(0, "x", None), entry(1, "y", "x"), entry(2, "z", "y"))


@flagged(22)
def a_transaction_is_open_in_the_end(story: Story) -> None:
    story.shows(undecided=frozenset({(place("t0"), *ONE)}))


@flagged(22)
def the_last_look_is_held_back(story: Story) -> None:
    story.sends("a@t0:0")
    story.reads("a@t0:0", "t0=0,1,3", final=True)


@flagged(22)
def a_partition_is_held_back_in_the_end(story: Story) -> None:
    story.shows(bounds=bounds("t0=0,1,3"))


@passes(22)
def a_look_before_the_last_is_held_back(story: Story) -> None:
    story.sends("a@t0:0")
    story.reads("a@t0:0", "t0=0,1,3")
    story.reads("a@t0:0", "t0=0,4,4", final=True)
    story.shows(bounds=bounds("t0=0,4,4 t1=2,2,2"))


@flagged(25)
def two_clients_know_one_version_otherwise(story: Story) -> None:
    story.looks("log", 5, "abc")
    story.looks("log", 5, "abd")


@flagged(25)
def a_client_knows_a_version_otherwise_than_it_is_stored(story: Story) -> None:
    story.looks("log", 5, "abc")
    story.shows(entries=(entry(5, "x", "w"), entry(6, "y", "x", chain="abd", computed="abd")))


@flagged(25)
def two_entries_have_one_version(story: Story) -> None:
    story.shows(entries=(entry(5, "x", "w"), entry(5, "y", "w")))


@flagged(25)
def an_entry_was_made_on_other_bytes(story: Story) -> None:
    story.shows(entries=(entry(0, "x", None), entry(1, "y", "x", chain="abc", computed="abd")))


@flagged(25)
def a_version_is_missing(story: Story) -> None:
    story.shows(entries=(LOG[0], LOG[2]))


@passes(25)
def clients_know_versions_and_logs_alike(story: Story) -> None:
    story.looks("log", 5, "abc")
    story.looks("log", 5, "abc")
    story.looks("log", 6, "def")
    story.looks("other", 5, "ghi")
    story.shows(entries=(entry(5, "x", "before"), entry(6, "y", "x", chain="abc", computed="abc")))


@flagged(26)
def a_slot_was_freed_and_taken_within_a_day(story: Story) -> None:
    story.shows(entries=LOG, recreated=(Recreated("log", 1, "late", "x", DAY_MS - 1),))


@flagged(26)
def a_commit_was_built_on_one_in_a_freed_slot(story: Story) -> None:
    late, next_one = Recreated("log", 1, "late", "x", DAY_MS), Recreated("log", 2, "more", "late", DAY_MS)
    story.shows(entries=LOG, recreated=(late, next_one))


@flagged(26)
def an_entry_was_made_on_another_than_is_there(story: Story) -> None:
    story.shows(entries=(*LOG[:2], entry(2, "z", "lost")))


@flagged(26)
def a_commit_was_acknowledged_at_another_version(story: Story) -> None:
    story.commits("t1", "a@t0:0", owner=ONE, position=5)
    story.shows(decisions=(decision(ONE, True, 6),))


@flagged(26, 28)
def an_acknowledged_commit_is_nowhere(story: Story) -> None:
    story.commits("t1", "a@t0:0", owner=ONE, position=5)
    story.shows(entries=LOG, whole=True)


@passes(26)
def a_late_put_landed_in_a_slot_that_was_cleaned_up(story: Story) -> None:
    story.shows(entries=LOG, recreated=(Recreated("log", 1, "late", "x", DAY_MS),))


@passes(26)
def entries_stand_on_each_other(story: Story) -> None:
    story.commits("t1", "a@t0:0", owner=ONE, position=5)
    story.shows(entries=LOG, decisions=(decision(ONE, True, 5),))


@passes(26)
def the_oldest_entries_were_cleaned_up(story: Story) -> None:
    story.shows(entries=LOG[1:])


@flagged(29)
def a_file_that_is_named_is_missing(story: Story) -> None:
    story.shows(references=(file("f", 10, None),))


@flagged(29)
def a_file_has_another_size_than_is_named(story: Story) -> None:
    story.shows(references=(file("f", 10, 9),))


@flagged(29)
def a_file_that_nobody_names_stays(story: Story) -> None:
    story.shows(orphans={"f": 101}, orphan_age_ms=100)


@passes(29)
def files_are_as_they_are_named_and_others_are_young(story: Story) -> None:
    story.shows(references=(file("f", 10, 10),), orphans={"g": 99}, orphan_age_ms=100)


@passes(29)
def the_age_of_files_is_not_judged(story: Story) -> None:
    story.shows(orphans={"g": 10**9})

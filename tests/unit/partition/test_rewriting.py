"""Merged segments take the place of their sources, decided at the slot (PROTOCOL.md §5.8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.partition.history import RETENTION_MS, TOPIC_ID, published
from tests.unit.partition.rewriting_site import (
    EVE,
    MERGED_THROUGH,
    Site,
    adds,
    lose,
    raised,
    removed,
    settled_site,
)
from txntable.coordinator.manifest import LONGEST_UPLOAD_MS
from txntable.log.actions import Add, Remove, Txn
from txntable.log.table_state import TableState
from txntable.partition.batch import Batch, batch_of
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.projection import project
from txntable.partition.rewriting import (
    Rewrite,
    RewriteDecision,
    RewriteRequest,
    decide_rewrite,
    decided_of,
)
from txntable.segments.segment import MergedSegment
from txntable.topics.topic_creation import decide_deletion


@pytest.fixture
def site() -> Site:
    return settled_site()


# -- what takes the place -----------------------------------------------------------------------


def test_merged_row_has_the_offsets_of_its_records_the_decisions_inside_and_nobodys_sequences(site: Site) -> None:
    rewrite = site.merge(site.plain, site.ann, site.cid)

    decision = site.decided(rewrite)

    (add,), (output,) = adds(decision), rewrite.outputs
    assert batch_of(add) == Batch(
        path=output.segment.path,
        partition=0,
        base_offset=0,
        last_offset=7,
        records=6,
        producer=None,
        transactional=False,
        first_sequence=None,
        first_timestamp_ms=output.segment.first_timestamp_ms,
        max_timestamp_ms=output.segment.max_timestamp_ms,
        appended_at_ms=25,
        digest=output.segment.digest,
        decided=(0, 3),
    )
    assert not add.data_change
    assert (add.size, add.stats) == (output.segment.size, output.segment.stats)
    assert {site.plain, site.ann, site.cid} <= removed(decision)
    assert decision.done == (rewrite,)


def test_merged_row_of_young_sources_says_when_it_was_written(site: Site) -> None:
    rewrite = replace(site.merge(site.plain), eligible=False)

    (add,) = adds(site.decided(rewrite))

    assert batch_of(add).uploaded_at_ms == rewrite.outputs[0].segment.uploaded_at_ms


def test_merged_row_takes_the_place_of_its_oldest_source_in_time(site: Site) -> None:
    rows = [site.history.topic.segments.table.files.get(path) for path in (site.ann, site.cid)]
    times = [row.modification_time for row in rows if row is not None]

    (add,) = adds(site.decided(site.merge(site.cid, site.ann)))

    assert add.modification_time == min(times) < max(times)


@pytest.mark.parametrize(
    ("sources", "decided"),
    [
        (["plain"], (0, 0)),
        (["ann"], (1, 1)),
        (["plain", "ann"], (0, 1)),
        (["ann", "cid"], (1, 3)),
        (["cid", "plain"], (0, 3)),
    ],
)
def test_decisions_inside_are_the_lowest_and_the_highest_of_the_sources(
    site: Site, sources: list[str], decided: tuple[int, int]
) -> None:
    paths = [getattr(site, name) for name in sources]

    (add,) = adds(site.decided(site.merge(*paths)))
    site.history.rewrite(RewriteRequest(TOPIC_ID, (site.merge(*paths),)))

    assert batch_of(add).decided == decided
    logs, table = site.history.topic.segments.fold, site.history.topic.segments.table
    merged = [batch_of(row) for row in table.files if batch_of_data(row) and batch_of(row).decided]
    assert decided_of(logs, merged) == decided


def batch_of_data(row: Add) -> bool:
    return row.partition_values["_control"] is None


@pytest.mark.parametrize(
    ("sources", "left_out_for", "through"),
    [
        (["plain"], 0, []),
        (["ann"], 0, []),
        (["plain", "ann"], 0, [1]),
        (["ann", "cid"], 0, [3]),
        (["ann"], 3, [3]),
        (["ann", "cid"], 2, [3]),
    ],
)
def test_snapshots_below_a_merge_of_several_decisions_or_without_what_they_showed_can_not_be_read(
    site: Site, sources: list[str], left_out_for: int, through: list[int]
) -> None:
    decision = site.decided(site.merge(*(getattr(site, name) for name in sources), left_out_for=left_out_for))

    assert raised(decision) == through


def test_position_below_which_snapshots_end_never_falls(site: Site) -> None:
    site.write([Txn(MERGED_THROUGH, 2)])

    assert raised(site.decided(site.merge(site.plain, site.ann))) == []
    assert raised(site.decided(site.merge(site.ann, site.cid))) == [3]


def test_rewrite_of_which_no_record_is_left_removes_its_sources(site: Site) -> None:
    decision = site.decided(Rewrite(0, (site.plain, site.ann), ()))

    assert (adds(decision), removed(decision) & set(site.history.segments)) == ([], {site.plain, site.ann})


def test_rewrite_reaches_the_public_table_with_the_next_projection(site: Site) -> None:
    rewrite = site.merge(site.plain, site.ann)

    site.history.rewrite(RewriteRequest(TOPIC_ID, (rewrite,)))
    site.history.publish()

    assert (
        published(site.history.topic)
        == site.history.visible()
        == {
            rewrite.outputs[0].segment.path: 1,
            site.ann_elsewhere: 1,
            site.cid: 3,
        }
    )


def test_merge_is_no_change_of_data_in_the_public_table(site: Site) -> None:
    """Else streams that follow it would see the records once more, or die of the removal."""
    logs, public = site.history.topic.segments, site.history.topic.public.table
    rewrite = site.merge(site.plain, site.ann)
    site.write(site.decided(rewrite).actions)

    actions = [a for a in project(logs.fold, logs.table, public, 5) if isinstance(a, Add | Remove)]

    assert {(type(action), action.path) for action in actions} == {
        (Add, f"_segments/{rewrite.outputs[0].segment.path}"),
        (Remove, f"_segments/{site.plain}"),
        (Remove, f"_segments/{site.ann}"),
    }
    assert not any(action.data_change for action in actions)


# -- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("lost", ["plain", "ann"])
def test_rewrite_is_left_out_whole_when_one_of_its_sources_is_gone(site: Site, lost: str) -> None:
    rewrite = site.merge(site.plain, site.ann)
    lose(site, getattr(site, lost))

    decision = site.decided(rewrite)

    assert (decision.actions, decision.done) == ((), ())


@pytest.mark.parametrize("source", ["bob", "dan"])
def test_segment_that_is_not_committed_is_no_source(site: Site, source: str) -> None:
    assert site.decided(site.merge(site.plain, getattr(site, source))).actions == ()


def test_segment_that_was_aborted_after_it_was_read_is_no_source_although_the_public_table_had_it(site: Site) -> None:
    """It cannot be: but a public table that is wrong must not make an aborted record visible for ever."""
    wrong = site.history.topic.public.table
    shown = wrong.files.get(f"_segments/{site.plain}")
    assert shown is not None
    wrong.files.put(replace(shown, path=f"_segments/{site.bob}"))

    assert site.decided(site.merge(site.plain, site.bob)).actions == ()


def test_segment_that_is_not_published_yet_is_no_source_and_is_not_settled(site: Site) -> None:
    """Readers of the public table, streams above all, would take a merged one for nothing new."""
    site.history.append(None, [(0, 2)], transactional=False)
    site.history.append(EVE, [(2, 2)], transactional=False)
    new, new_of_a_producer = list(site.history.segments)[-2:]

    assert site.decided(site.merge(site.plain, new)).actions == ()
    assert site.decided(settled=[new_of_a_producer]).actions == ()


def test_output_that_was_tombstoned_takes_nobodys_place(site: Site) -> None:
    rewrite = site.merge(site.plain, site.ann)
    site.write([Remove(rewrite.outputs[0].segment.path, 9, False)])

    assert site.decided(rewrite).actions == ()


@pytest.mark.parametrize(("late_ms", "done"), [(0, True), (1, False)])
def test_output_whose_upload_began_too_long_ago_takes_nobodys_place(site: Site, late_ms: int, done: bool) -> None:
    """Vacuum may have tombstoned it, deleted it, and the log may have forgotten that."""
    rewrite = site.merge(site.plain, site.ann)
    site.history.time_ms = rewrite.outputs[0].segment.uploaded_at_ms + LONGEST_UPLOAD_MS + late_ms

    assert bool(site.decided(rewrite).done) == done


@pytest.mark.parametrize("first", [True, False])
def test_of_two_rewrites_of_a_segment_the_first_one_wins_and_the_second_writes_nothing(site: Site, first: bool) -> None:
    rewrites = [site.merge(site.plain, site.ann), site.merge(site.ann, site.cid)]
    one, other = rewrites if first else rewrites[::-1]
    site.write(site.decided(one).actions)

    assert site.decided(other) == RewriteDecision()


def test_rewrite_that_lost_takes_the_later_ones_of_its_partition_along_and_no_others(site: Site) -> None:
    lose(site, site.plain)
    lost, later = site.merge(site.plain), site.merge(site.ann)
    elsewhere = site.merge(site.ann_elsewhere, partition=1)

    decision = site.decided(lost, later, elsewhere)

    assert decision.done == (elsewhere,)
    assert removed(decision) == {site.ann_elsewhere}


def test_rewrite_that_is_in_the_log_already_is_done_and_written_once(site: Site) -> None:
    """The answer of a commit was lost: the same call is made again."""
    rewrite, later = site.merge(site.plain, site.ann), site.merge(site.cid)
    site.write(site.decided(rewrite).actions)

    again = site.decided(rewrite, later)

    assert again.done == (rewrite, later)
    assert [add.path for add in adds(again)] == [later.outputs[0].segment.path]


def test_rewrite_of_which_only_some_outputs_are_live_is_not_done(site: Site) -> None:
    """Another compaction took one of them on: the rest of its sources are long gone."""
    rewrite = site.merge(site.plain, site.ann)
    two = replace(rewrite, outputs=(*rewrite.outputs, MergedSegment(site.history.staged(0, 1), 9, 9)))
    site.write(site.decided(rewrite).actions)

    assert site.decided(two) == RewriteDecision()


@pytest.mark.parametrize("case", ["deleted", "another id", "never there"])
def test_topic_that_is_not_the_one_that_was_read_has_nothing_to_rewrite(site: Site, case: str) -> None:
    logs, public = site.history.topic.segments, site.history.topic.public.table
    topic_id = "b" * 32 if case == "another id" else TOPIC_ID
    request = RewriteRequest(topic_id, (site.merge(site.plain, site.ann), Rewrite(1, (), (), by_key=1)))
    if case == "deleted":
        site.history.commit(lambda table: decide_deletion(logs.fold, table, 9, RETENTION_MS))
    fold, table = (PartitionLogs("t"), TableState()) if case == "never there" else (logs.fold, logs.table)

    assert decide_rewrite(fold, table, public, request, 5) == RewriteDecision()

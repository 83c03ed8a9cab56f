"""Merged segments take the place of their sources, decided at the slot (PROTOCOL.md §5.8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from tests.unit.log.world import World
from tests.unit.partition.history import RETENTION_MS, TOPIC_ID, History, published, refusal, topic_settings
from txntable.log.actions import Action, Add, Remove, Txn
from txntable.log.table_state import TableState
from txntable.partition.append import AppendRequest, SequencedSegment, decide_append
from txntable.partition.batch import Batch, ProducerEpoch, batch_of
from txntable.partition.condemnation import LONGEST_UPLOAD_MS
from txntable.partition.markers import Control
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.projection import project
from txntable.partition.rewriting import (
    MergedSegment,
    Rewrite,
    RewriteDecision,
    RewriteRequest,
    decide_rewrite,
    decided_of,
)
from txntable.partition.state_entry import Cleaning
from txntable.topic_creation import decide_deletion
from txntable.topic_log import TopicLog

ANN, BOB, CID, DAN, EVE = (ProducerEpoch(7 + number, 0) for number in range(5))
MERGED_THROUGH = f"merged_through/{TOPIC_ID}"
DAY_MS = 86_400_000


@dataclass
class Site:
    """Partition 0: a plain segment, Ann's and Cid's committed, Bob's aborted, Dan's open; partition 1: Ann's."""

    history: History
    plain: str
    ann: str
    ann_elsewhere: str
    bob: str
    cid: str
    dan: str

    def decided(self, *rewrites: Rewrite, **more: Sequence[str]) -> RewriteDecision:
        logs, public = self.history.topic.segments, self.history.topic.public.table
        request = RewriteRequest(TOPIC_ID, rewrites, **{name: tuple(paths) for name, paths in more.items()})
        return decide_rewrite(logs.fold, logs.table, public, request, self.history.time_ms)

    def merge(self, *sources: str, partition: int = 0, left_out_for: int = 0) -> Rewrite:
        return replace(self.history.merged(partition, sources), left_out_for=left_out_for)

    def write(self, actions: Sequence[Action]) -> None:
        self.history.commit(lambda table: actions)


@pytest.fixture
def site() -> Site:
    history = History(TopicLog(World().process().context, "t"), tick_ms=10)
    history.create(topic_settings())
    history.append(None, [(0, 2)], transactional=False)
    for producer in (ANN, BOB, CID):
        history.append(producer, [(0, 2), *([(1, 2)] if producer is ANN else [])], transactional=True)
    for producer in (ANN, BOB, CID):
        history.decide(producer, Control.ABORT if producer is BOB else Control.COMMIT)
    history.append(DAN, [(0, 2)], transactional=True)
    history.publish()
    plain, ann, ann_elsewhere, bob, cid, dan = history.segments
    return Site(history, plain, ann, ann_elsewhere, bob, cid, dan)


def adds(decision: RewriteDecision) -> list[Add]:
    return [a for a in decision.actions if isinstance(a, Add) and a.partition_values["_control"] is None]


def removed(decision: RewriteDecision) -> set[str]:
    return {action.path for action in decision.actions if isinstance(action, Remove)}


def raised(decision: RewriteDecision) -> list[int]:
    return [a.version for a in decision.actions if isinstance(a, Txn) and a.app_id == MERGED_THROUGH]


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
        decided=(0, 3),
    )
    assert not add.data_change
    assert (add.size, add.stats) == (output.segment.size, output.segment.stats)
    assert {site.plain, site.ann, site.cid} <= removed(decision)
    assert decision.done == (rewrite,)


def test_merged_row_of_young_sources_says_when_it_was_written(site: Site) -> None:
    rewrite = replace(site.merge(site.plain), ripe=False)

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


def lose(site: Site, path: str) -> None:
    row = site.history.topic.segments.table.files.get(path)
    assert row is not None
    site.write([Remove(path, 9, False, row.partition_values, row.size)])


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
    """It can not be: but a public table that is wrong must not make an aborted record visible for ever."""
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


def test_output_that_was_condemned_takes_nobodys_place(site: Site) -> None:
    rewrite = site.merge(site.plain, site.ann)
    site.write([Remove(rewrite.outputs[0].segment.path, 9, False)])

    assert site.decided(rewrite).actions == ()


@pytest.mark.parametrize(("late_ms", "done"), [(0, True), (1, False)])
def test_output_whose_upload_began_too_long_ago_takes_nobodys_place(site: Site, late_ms: int, done: bool) -> None:
    """Vacuum may have condemned it, deleted it, and the log may have forgotten that."""
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


# -- what was aborted, what is settled ----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "goes"), [("bob", True), ("ann", False), ("dan", False), ("plain", False), ("not there", False)]
)
def test_only_what_an_abort_marker_ended_is_taken_away_as_aborted(site: Site, name: str, goes: bool) -> None:
    path = getattr(site, name, name)

    assert (path in removed(site.decided(aborted=[path]))) == goes


def test_merged_segment_is_not_taken_away_as_aborted(site: Site) -> None:
    rewrite = site.merge(site.plain, site.ann)
    site.write(site.decided(rewrite).actions)

    assert site.decided(aborted=[rewrite.outputs[0].segment.path]).actions == ()


@pytest.mark.parametrize(
    ("name", "decided"), [("ann", (1, 1)), ("plain", None), ("bob", None), ("dan", None), ("not there", None)]
)
def test_only_what_is_published_of_a_producer_is_settled(
    site: Site, name: str, decided: tuple[int, int] | None
) -> None:
    found = adds(site.decided(settled=[getattr(site, name, name)]))

    assert [batch_of(add).decided for add in found] == ([] if decided is None else [decided])


def test_segment_that_was_settled_is_settled_no_more(site: Site) -> None:
    site.write(site.decided(settled=[site.ann, site.ann_elsewhere]).actions)

    assert site.decided(settled=[site.ann]).actions == ()


def test_settled_segment_is_still_a_source_of_its_decision(site: Site) -> None:
    site.write(site.decided(settled=[site.ann, site.ann_elsewhere]).actions)
    assert (ANN.producer_id, ANN.epoch) not in site.history.topic.segments.fold.markers

    (add,) = adds(site.decided(site.merge(site.plain, site.ann)))

    assert batch_of(add).decided == (0, 1)


def test_source_that_is_to_be_settled_too_is_only_replaced(site: Site) -> None:
    rewrite = site.merge(site.plain, site.ann)

    decision = site.decided(rewrite, settled=[site.ann, site.ann_elsewhere])

    assert {add.path for add in adds(decision)} == {site.ann_elsewhere, rewrite.outputs[0].segment.path}


def test_settled_segment_stays_in_the_public_table_as_it_is(site: Site) -> None:
    public = site.history.topic.public
    before = {add.path: add for add in public.table.files}

    site.history.rewrite(RewriteRequest(TOPIC_ID, (), (), (site.ann, site.ann_elsewhere, site.cid)))
    site.history.publish()

    assert {add.path: add for add in public.table.files} == before


# -- by key -------------------------------------------------------------------------------------


def test_compaction_by_key_is_remembered_with_the_time_at_which_it_holds(site: Site) -> None:
    site.history.time_ms = 500

    site.write(site.decided(Rewrite(0, (), (), by_key=8)).actions)

    assert site.history.topic.segments.fold.cleanings == {0: (Cleaning(8, 500),)}


def test_compaction_by_key_that_lost_a_rewrite_is_not_remembered(site: Site) -> None:
    lose(site, site.plain)

    decision = site.decided(site.merge(site.plain), Rewrite(0, (), (), by_key=8))

    assert (decision.actions, decision.done) == ((), ())


def test_two_compactions_by_key_in_one_commit_are_both_remembered(site: Site) -> None:
    site.history.time_ms = 500
    actions = site.decided(Rewrite(0, (), (), by_key=4), Rewrite(0, (), (), by_key=8)).actions
    site.write(actions)

    assert site.history.topic.segments.fold.cleanings == {0: (Cleaning(4, 500), Cleaning(8, 500))}


@pytest.mark.parametrize(
    ("last_ms", "kept"),
    [(600 + DAY_MS, [4, 8]), (599 + DAY_MS, [2, 4, 8]), (499 + DAY_MS, [2, 4, 8]), (700, [2, 4, 8])],
)
def test_compactions_by_key_are_kept_until_no_tombstone_needs_them(site: Site, last_ms: int, kept: list[int]) -> None:
    """The retention of tombstones is a day; the last one that is older tells of all before."""
    for through, at_ms in ((2, 500), (4, 600), (8, last_ms)):
        site.history.time_ms = at_ms
        site.write(site.decided(Rewrite(0, (), (), by_key=through)).actions)

    assert [one.through for one in site.history.topic.segments.fold.cleanings[0]] == kept


# -- producers whose data was merged away -------------------------------------------------------


def test_batch_sent_again_after_it_was_merged_away_is_answered_with_its_first_offsets(site: Site) -> None:
    history, logs = site.history, site.history.topic.segments
    request = AppendRequest(TOPIC_ID, EVE, False, (SequencedSegment(history.staged(2, 3), 0),))
    history.commit(lambda table: decide_append(logs.fold, table, request, history.time_ms).actions)
    history.publish()
    path = request.segments[0].segment.path
    history.segments[path], history.records[path] = (EVE, False), (2, frozenset(range(3)))
    site.write(site.decided(site.merge(path, partition=2)).actions)

    again = decide_append(logs.fold, logs.table, request, history.time_ms)

    assert path not in logs.table.files
    assert (again.actions, again.base_offsets) == ((), (0,))


def test_zombie_of_a_transaction_whose_rows_and_marker_are_gone_is_refused(site: Site) -> None:
    history = site.history
    site.write(site.decided(aborted=[site.bob]).actions)
    assert (BOB.producer_id, BOB.epoch) not in history.topic.segments.fold.markers

    assert refusal(lambda: history.append(BOB, [(0, 1)], transactional=True)) == "INVALID_PRODUCER_EPOCH"


def test_open_transaction_goes_on_across_a_compaction_of_everything_else(site: Site) -> None:
    history = site.history
    rewrite = site.merge(site.plain, site.ann, site.cid)
    site.write(site.decided(rewrite, aborted=[site.bob], settled=[site.ann_elsewhere]).actions)

    history.append(DAN, [(0, 2), (1, 1)], transactional=True)
    history.decide(DAN, Control.COMMIT)
    history.publish()

    assert published(history.topic)[site.dan] == 4
    assert list(history.topic.segments.fold.markers) == [(DAN.producer_id, DAN.epoch)]

"""What a rewrite takes away and settles beside, and what it leaves of producers and keys (PROTOCOL.md §5.8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.partition.history import TOPIC_ID, published, refusal
from tests.unit.partition.rewriting_site import (
    ANN,
    BOB,
    DAN,
    DAY_MS,
    EVE,
    Site,
    adds,
    lose,
    removed,
    settled_site,
)
from txntable.partition.append import AppendRequest, SequencedSegment, decide_append
from txntable.partition.batch import batch_of
from txntable.partition.markers import Control
from txntable.partition.rewriting import (
    Rewrite,
    RewriteRequest,
)
from txntable.partition.state_entry import Cleaning


@pytest.fixture
def site() -> Site:
    return settled_site()


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


@pytest.mark.parametrize(("policy", "holds"), [("compact", True), ("compact,delete", True), ("delete", False)])
def test_rewrite_that_drops_records_holds_only_while_the_topic_is_compacted(policy: str, holds: bool) -> None:
    site = settled_site(policy)
    dropping = replace(site.merge(site.plain), drops=True)
    remembering = Rewrite(0, (), (), by_key=8)

    assert site.decided(dropping, remembering).done == ((dropping, remembering) if holds else ())
    merging = site.merge(site.plain)
    assert site.decided(merging).done == (merging,)


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
    other = replace(request, segments=(SequencedSegment(history.staged(2, 3), 0),))
    assert refusal(lambda: decide_append(logs.fold, logs.table, other, history.time_ms)) == (
        "OUT_OF_ORDER_SEQUENCE_NUMBER"
    )


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

"""Rows of S, P and O that contradict their neighbours, or T, are found, and named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.simulation.site import Site
from tests.unit.admin.administering import row_of
from tests.unit.producer.producing import row
from tests.unit.verification.stored import U, appended, copied, damages, kinds, only, write
from txntable.coordinator.group_offsets import CommittedOffset, OffsetRow, PendingOffset
from txntable.format.layout import OFFSET_LOG_ROOT, commit_path
from txntable.log.actions import Action, Remove, Txn
from txntable.log.keyed_table import keyed_add
from txntable.log.table_state import TableState
from txntable.offsets.offset_rows import columns_of
from txntable.partition.batch import batch_add, batch_of
from txntable.partition.offsets import DECIDED_THROUGH, NEXT_OFFSET, REFLECTS, next_offset, per_partition, per_topic
from txntable.topics.topic_log import TopicLog
from txntable.verification.damage import DamageKind
from txntable.warehouse.warehouse import Warehouse


@pytest.mark.parametrize(("owner", "found"), [("x-x", set()), ("7-3", {DamageKind.ROW})])
def test_segment_of_sparks_writer_has_its_producer_in_its_path_and_no_partition(
    owner: str, found: set[DamageKind], site: Site, warehouse: Warehouse, u: TopicLog
) -> None:
    name = "part-00000-00000000-0000-4000-8000-000000000000-c000.zstd.parquet"
    copied(warehouse, u, path=f"parts/{owner}/{name}")

    assert kinds(site) == found


def test_hole_in_the_offsets_is_found(site: Site, warehouse: Warehouse, u: TopicLog) -> None:
    offset = next_offset(u.segments.refresh().numbers, u.settings().topic_id, 0) + 5
    copied(warehouse, u, base_offset=offset, last_offset=offset)

    assert kinds(site) == {DamageKind.OFFSETS}


def test_segments_that_overlap_are_found(site: Site, warehouse: Warehouse, u: TopicLog) -> None:
    path = copied(warehouse, u, base_offset=0, last_offset=0)

    assert (DamageKind.OFFSETS, path) in {(one.kind, one.path) for one in damages(site)}


def test_segment_that_is_appended_twice_is_found(site: Site, warehouse: Warehouse, u: TopicLog) -> None:
    appended(u, lambda batch: batch)

    assert DamageKind.OFFSETS in kinds(site)


def test_high_watermark_below_the_last_record_is_found(site: Site, warehouse: Warehouse, u: TopicLog) -> None:
    copied(warehouse, u)
    topic_id = u.settings().topic_id
    name = per_partition(NEXT_OFFSET, topic_id, 0)
    write(u, lambda table: [Txn(name, next_offset(table.numbers, topic_id, 0) - 1)], project=False)

    assert kinds(site) == {DamageKind.NUMBER, DamageKind.OFFSETS}


def test_sequence_that_does_not_follow_is_found(site: Site, warehouse: Warehouse, u: TopicLog) -> None:
    with warehouse.producer() as producer:
        producer.send("u", row=row("x"))
    newest = max(
        (add for add in u.segments.refresh().files if add.partition_values["_control"] is None),
        key=lambda add: int(add.partition_values["_base_offset"] or 0),
    )
    path = newest.path.replace(newest.path[-40:-8], "f" * 32)
    found = warehouse.store.get(f"{U}/{newest.path}")
    assert found is not None
    warehouse.store.put(f"{U}/{path}", found.data)
    topic_id = u.settings().topic_id

    def decide(table: TableState) -> Sequence[Action]:
        offset = next_offset(table.numbers, topic_id, 0)
        batch = replace(batch_of(newest), path=path, base_offset=offset, last_offset=offset, first_sequence=9)
        return [
            batch_add(batch, newest.size, newest.stats),
            Txn(per_partition(NEXT_OFFSET, topic_id, 0), offset + 1),
        ]

    write(u, decide)

    assert only(site)[0] is DamageKind.SEQUENCE


# -- P ----------------------------------------------------------------------------------------


def test_committed_segment_that_the_public_table_lacks_is_found(site: Site, warehouse: Warehouse, u: TopicLog) -> None:
    public = u.public.refresh()
    gone = next(iter(public.files))

    def decide(table: TableState) -> Sequence[Action]:
        return [Remove(gone.path, 0, False, gone.partition_values, gone.size), Txn(REFLECTS, table.number(REFLECTS))]

    u.public.commit("TEST", decide)

    assert only(site) == (DamageKind.PROJECTION, f"topics/u/{gone.path}")


@pytest.mark.parametrize(("column", "value"), [("_commit", "999"), ("_base_offset", "77")])
def test_public_row_that_says_something_else_is_found(
    site: Site, warehouse: Warehouse, u: TopicLog, column: str, value: str
) -> None:
    one = next(iter(u.public.refresh().files))
    changed = replace(one, partition_values={**one.partition_values, column: value})
    u.public.commit("TEST", lambda table: [changed, Txn(REFLECTS, table.number(REFLECTS))])

    assert only(site) == (DamageKind.PROJECTION, f"topics/u/{one.path}")


def test_public_table_that_shows_what_its_topic_does_not_have_is_a_witness_of_what_the_topic_lost(
    site: Site, warehouse: Warehouse, u: TopicLog
) -> None:
    u.public.refresh()
    u.public.commit("TEST", lambda table: [Txn(REFLECTS, 10**6)])

    assert only(site) == (DamageKind.LOG_END, "topics/u/_segments")


@pytest.mark.parametrize("missing", [1, 2])
def test_public_table_is_not_to_be_deleted_when_the_newest_entries_of_its_source_are_lost(
    site: Site, warehouse: Warehouse, u: TopicLog, missing: int
) -> None:
    head = u.segments.refresh().next_version - 1
    for lost in range(head - missing + 1, head + 1):
        site.objects.delete(commit_path(u.segments.root, lost))

    found = damages(site)

    assert (DamageKind.LOG_END, u.segments.root) in {(one.kind, one.path) for one in found}
    assert not [one for one in found if "delete that log" in one.remedy]


def test_public_table_that_differs_from_a_damaged_log_is_not_to_be_deleted(
    site: Site, warehouse: Warehouse, u: TopicLog
) -> None:
    one = next(iter(u.public.refresh().files))
    changed = replace(one, partition_values={**one.partition_values, "_commit": "999"})
    u.public.commit("TEST", lambda table: [changed, Txn(REFLECTS, table.number(REFLECTS))])
    name = per_partition(NEXT_OFFSET, u.settings().topic_id, 0)
    u.segments.commit("TEST", lambda table: [Txn(name, table.number(name) - 1)])

    found = damages(site)

    assert DamageKind.NUMBER in {one.kind for one in found}
    assert not [one for one in found if "delete that log" in one.remedy]


def test_entry_of_the_public_table_that_is_no_projection_is_found(
    site: Site, warehouse: Warehouse, u: TopicLog
) -> None:
    name = per_topic(DECIDED_THROUGH, u.settings().topic_id)
    u.public.refresh()
    u.public.commit("TEST", lambda table: [Txn(name, table.number(name))])

    assert only(site)[0] is DamageKind.PROJECTION


# -- O ----------------------------------------------------------------------------------------


def offset_row(warehouse: Warehouse, change: Callable[[OffsetRow], OffsetRow]) -> None:
    warehouse.offsets.refresh()
    seen = warehouse.offsets.log.fold.offsets["readers"]["u", 0]

    def decide(table: TableState) -> Sequence[Action]:
        return [keyed_add(columns_of(change(replace(seen, position=table.next_version))), 0)]

    warehouse.offsets.commit("TEST", decide)


def test_committed_offset_that_no_decision_has_is_found(site: Site, warehouse: Warehouse) -> None:
    offset_row(warehouse, lambda seen: replace(seen, committed=CommittedOffset(2, "", "", 1, 1)))

    assert only(site) == (DamageKind.COMMITTED_OFFSET, OFFSET_LOG_ROOT)


def test_pending_offset_of_a_settled_transaction_is_found(site: Site, warehouse: Warehouse) -> None:
    pending = PendingOffset("etl", row_of(warehouse).producer_id, 1, 2, "", 1)
    offset_row(warehouse, lambda seen: replace(seen, pending=(pending,)))

    assert only(site) == (DamageKind.PENDING_OFFSET, OFFSET_LOG_ROOT)


def test_offset_row_that_another_version_wrote_is_found(site: Site, warehouse: Warehouse) -> None:
    offset_row(warehouse, lambda seen: replace(seen, position=1))

    assert only(site)[0] is DamageKind.ROW

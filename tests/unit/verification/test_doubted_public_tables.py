"""A public table that differs is not to be made again from a log that is not to be believed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.simulation.site import Site
from tests.unit.producer.producing import accounts, row
from tests.unit.verification.stored import U, copied, damages, delete_newest, only, plain_segment
from txntable.format.layout import commit_path, state_path
from txntable.log.actions import Txn
from txntable.partition.offsets import HIGH_WATERMARK, NEXT_OFFSET, REFLECTS, per_partition
from txntable.topics.topic_log import TopicLog
from txntable.verification.damage import Damage, DamageKind
from txntable.verification.doubted_projections import doubted
from txntable.warehouse.warehouse import Warehouse

DOUBTED = {DamageKind.PROJECTION_OR_LOG}


def deletes_public_table(found: Sequence[Damage]) -> list[Damage]:
    return [one for one in found if "delete that log whole" in one.remedy or "publishes again" in one.remedy]


def change_public_row(u: TopicLog) -> str:
    """Let P say something else of one segment, and return where."""
    one = next(iter(u.public.refresh().files))
    changed = replace(one, partition_values={**one.partition_values, "_commit": "999"})
    u.public.commit("TEST", lambda table: [changed, Txn(REFLECTS, table.number(REFLECTS))])
    return f"topics/u/{one.path}"


def of_public(found: Sequence[Damage]) -> set[DamageKind]:
    kinds = {DamageKind.PROJECTION, DamageKind.PROJECTION_OR_LOG, DamageKind.PUBLICATION}
    return {one.kind for one in found if one.kind in kinds}


def test_public_table_is_not_to_be_deleted_when_another_entry_took_the_place_of_the_newest_of_its_source(
    site: Site, warehouse: Warehouse, u: TopicLog
) -> None:
    with warehouse.producer() as producer:
        producer.send("u", row=row("only in the public table"))
    delete_newest(site, U, 1)
    again = site.open().topic_log("u")
    name = per_partition(NEXT_OFFSET, again.settings().topic_id, 0)
    again.segments.commit("TEST", lambda table: [Txn(name, table.number(name))])

    found = damages(site)

    assert "it shows a segment that S does not show" in {one.problem for one in found}
    assert of_public(found) == DOUBTED
    assert deletes_public_table(found) == []
    assert "only in the public table" in accounts(site, "u")


def test_segment_that_only_the_public_table_shows_is_never_a_reason_to_delete_it(
    site: Site, warehouse: Warehouse, u: TopicLog
) -> None:
    one = next(iter(u.public.refresh().files))
    u.public.commit("TEST", lambda table: [replace(one, path=f"{one.path}x"), Txn(REFLECTS, table.number(REFLECTS))])

    (found,) = [one for one in damages(site) if one.problem == "it shows a segment that S does not show"]

    assert found.kind is DamageKind.PROJECTION_OR_LOG
    for said in ("delete nothing of the public table", "compare", "to a new topic", "any Delta reader"):
        assert said in found.remedy


def test_number_of_the_public_table_that_its_source_has_not_reached_is_never_a_reason_to_delete_it(
    site: Site, warehouse: Warehouse, u: TopicLog
) -> None:
    name = per_partition(HIGH_WATERMARK, u.settings().topic_id, 0)
    u.public.refresh()
    u.public.commit("TEST", lambda table: [Txn(name, 10**6), Txn(REFLECTS, table.number(REFLECTS))])

    assert only(site)[0] is DamageKind.PROJECTION_OR_LOG


def _lose_file(site: Site, warehouse: Warehouse, u: TopicLog) -> None:
    site.objects.delete(f"{U}/{plain_segment(u).path}")


def _lose_marker_file(site: Site, warehouse: Warehouse, u: TopicLog) -> None:
    site.objects.delete(next(meta.path for meta in site.objects.below(f"{U}/markers")))


def _overlap(site: Site, warehouse: Warehouse, u: TopicLog) -> None:
    copied(warehouse, u, base_offset=0, last_offset=0)


def _spoil_checkpoint(site: Site, warehouse: Warehouse, u: TopicLog) -> None:
    u.segments.refresh()
    version = u.segments.write_checkpoint()
    path = next(meta.path for meta in site.objects.below(f"{U}/_delta_log") if f"{version:020}.checkpoint" in meta.path)
    site.objects.put(path, b"PAR1")


@pytest.mark.parametrize("spoil", [_lose_file, _lose_marker_file, _overlap, _spoil_checkpoint])
def test_public_table_that_differs_is_doubted_when_anything_of_its_source_is_damaged(
    site: Site, warehouse: Warehouse, u: TopicLog, spoil: Callable[[Site, Warehouse, TopicLog], None]
) -> None:
    spoil(site, warehouse, u)
    assert damages(site)
    change_public_row(u)

    found = damages(site)

    assert of_public(found) == DOUBTED
    assert deletes_public_table(found) == []


def test_public_table_that_differs_is_not_doubted_when_another_topic_is_damaged(
    site: Site, warehouse: Warehouse, u: TopicLog
) -> None:
    path = change_public_row(u)
    t = warehouse.topic_log("t")
    t.settings()
    name = per_partition(NEXT_OFFSET, t.settings().topic_id, 0)
    t.segments.commit("TEST", lambda table: [Txn(name, table.number(name) + 1)])

    assert (DamageKind.PROJECTION, path) in {(one.kind, one.path) for one in damages(site)}


def test_end_of_a_public_table_is_not_published_again_when_its_source_is_damaged(
    site: Site, warehouse: Warehouse, u: TopicLog
) -> None:
    delete_newest(site, "topics/u", 3)
    _lose_file(site, warehouse, u)

    found = damages(site)

    assert of_public(found) == DOUBTED
    assert not [one for one in found if "no record is lost" in one.remedy]
    assert deletes_public_table(found) == []


@pytest.mark.parametrize("kind", [DamageKind.PROJECTION, DamageKind.PUBLICATION])
@pytest.mark.parametrize(
    ("beside", "is_doubted"),
    [
        (Damage(DamageKind.MARKER_MISSING, commit_path(U, 3), ""), True),
        (Damage(DamageKind.HANGING, U, ""), True),
        (Damage(DamageKind.CONSTANT_FILE, f"{U}/{state_path(0)}", ""), True),
        (Damage(DamageKind.PROJECTION_OR_LOG, "topics/u/_segments/x.parquet", ""), True),
        (Damage(DamageKind.PROJECTION, "topics/u/_segments/x.parquet", ""), False),
        (Damage(DamageKind.OLDER_SEGMENT, "topics/u/_segments/x.parquet", ""), False),
        (Damage(DamageKind.ENTRY_MISSING, commit_path("topics/u", 3), ""), False),
        (Damage(DamageKind.HANGING, "topics/u2/_segments", ""), False),
        (Damage(DamageKind.LOG_END, "system/offset_log", ""), False),
    ],
)
def test_doubt_of_a_public_table_comes_from_what_is_said_of_its_own_source(
    kind: DamageKind, beside: Damage, is_doubted: bool
) -> None:
    one = Damage(kind, "topics/u", "it differs")

    found = doubted([one, beside])

    assert replace(one, kind=DamageKind.PROJECTION_OR_LOG if is_doubted else kind) in found
    assert len(found) == 2
    assert beside in found or beside.kind is DamageKind.PROJECTION

"""Segments that only older versions and deleted topics name are read as long as vacuum keeps them, and no longer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from tests.doubles.manual_environment import ManualEnvironment
from tests.doubles.memory_store import MemoryStore
from tests.simulation.site import Site
from tests.simulation.test_erasure_crashes import SOUGHT, erase_in
from tests.unit.reading import commit, site_with_topic, transactional
from tests.unit.verification.stored import HOUR_MS, U, only, verified
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.runtime.environment import Instant
from txntable.verification.damage import DamageKind
from txntable.warehouse.stored_warehouse import verify_stored
from txntable.warehouse.warehouse import Warehouse

MONTH_MS = 30 * 24 * HOUR_MS
# In topic u, by `fill`.
ABORTED = 1
Change = Callable[[Site, str], None]


def older(site: Site, topic: str = "u") -> list[str]:
    """The segments' files that the public table has named, and does not name any more."""
    public = site.open().topic_log(topic).public
    public.refresh()
    return sorted(f"{public.root}/{path}" for path in public.table.tombstones)


def merged(site: Site, topic: str = "u") -> list[str]:
    """Let compaction merge what can be; return what it took away."""
    site.advance_ms(2 * HOUR_MS)
    compact(site.open(), [topic])
    found = older(site, topic)
    assert len(found) > 1
    return found


def take_away(site: Site, path: str) -> None:
    site.objects.delete(path)


def cut(site: Site, path: str) -> None:
    site.objects.put(path, site.objects.snapshot()[path].data[:-1])


def flip(site: Site, path: str) -> None:
    data = site.objects.snapshot()[path].data
    site.objects.put(path, data[:100] + bytes([data[100] ^ 1]) + data[101:])


def test_merged_segments_are_counted_and_nothing_is_found(site: Site, warehouse: Warehouse) -> None:
    before = verified(site)

    sources = merged(site)

    found = verified(site)
    assert found.damages == ()
    # Compaction has made one of them all, and has taken away what was aborted, which no version shows.
    assert found.segments == before.segments + 1 - ABORTED
    assert found.bytes >= sum(len(site.objects.snapshot()[path].data) for path in sources)


@pytest.mark.parametrize("change", [take_away, cut, flip])
def test_damage_of_a_merged_segment_is_found_and_names_the_right_file(
    site: Site, warehouse: Warehouse, change: Change
) -> None:
    path = merged(site)[0]
    right = site.objects.snapshot()[path].data

    change(site, path)

    assert only(site) == (DamageKind.OLDER_SEGMENT, path)
    (damage,) = verified(site).damages
    digest = hashlib.sha256(right).hexdigest()
    assert damage.problem.endswith(f"; the right one has bytes={len(right)} digest=sha256:{digest}")
    assert "`vacuum_retention_ms`" in damage.remedy


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "created again"])
def test_lost_segment_of_a_deleted_topic_is_found(site: Site, warehouse: Warehouse, again: bool) -> None:
    warehouse.admin().delete_topic("u")
    if again:
        warehouse.admin().create_topic("u", partitions=3)
    path = older(site)[0]
    assert verified(site).damages == ()

    site.objects.delete(path)

    assert only(site) == (DamageKind.OLDER_SEGMENT, path)


def test_lost_segment_is_found_where_the_log_begins_with_a_checkpoint_below(site: Site, warehouse: Warehouse) -> None:
    site.advance_ms(31 * 24 * HOUR_MS)
    view = warehouse.topic_log("u")
    view.settings()
    for log in (view.segments, view.public):
        log.write_checkpoint()
    public = "topics/u/_delta_log"
    newest = max(meta.path for meta in site.objects.below(public) if meta.path.endswith(".json"))
    for meta in site.objects.below(public):
        if meta.path.endswith(".json") and meta.path < newest:
            site.objects.delete(meta.path)
    path = merged(site)[0]
    assert verified(site).damages == ()

    site.objects.delete(path)

    assert only(site) == (DamageKind.OLDER_SEGMENT, path)


def test_nothing_is_found_of_what_vacuum_has_deleted(site: Site, warehouse: Warehouse) -> None:
    gone = merged(site)
    site.advance_ms(MONTH_MS + HOUR_MS)

    vacuum(site.open(), execute=True)

    assert set(gone).isdisjoint(site.objects.snapshot())
    assert verified(site).damages == ()


class _VacuumedMeanwhile(ManualEnvironment):
    """A clock; as soon as somebody knows the time, an hour passes, and vacuum runs."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self._site, self.asked = site, 0

    def instant(self) -> Instant:
        now = self._site.time.instant()
        self.asked += 1
        if self.asked == 1:
            self._site.advance_ms(HOUR_MS)
            vacuum(self._site.open(), execute=True)
        return now


def test_nothing_is_found_of_what_vacuum_deletes_meanwhile(site: Site, warehouse: Warehouse) -> None:
    gone = merged(site)
    site.advance_ms(MONTH_MS - HOUR_MS // 2)
    clock = _VacuumedMeanwhile(site)

    found = verify_stored(MemoryStore(site.objects), ["u"], environment=clock)

    assert set(gone).isdisjoint(site.objects.snapshot())
    assert (found.damages, clock.asked) == ((), 2)


def test_clock_that_is_behind_does_not_hold_what_vacuum_has_deleted(site: Site, warehouse: Warehouse) -> None:
    merged(site)
    site.advance_ms(MONTH_MS + HOUR_MS)
    vacuum(site.open(), execute=True)
    with warehouse.producer() as producer:
        producer.send("u", row={"account": "later", "amount": 1})

    site.time.advance_wall_ms(-2 * HOUR_MS)

    assert verified(site).damages == ()


def test_name_that_vacuum_tombstoned_and_no_version_had_is_not_looked_for(site: Site, warehouse: Warehouse) -> None:
    view = warehouse.topic_log("u")
    segment = next(path for path in site.objects.snapshot() if path.startswith(f"{U}/p0"))
    left = segment.replace(segment.rsplit("-", 1)[1], "f" * 32 + ".parquet")
    site.objects.put(left, b"left by a writer that was killed")
    site.advance_ms(8 * 24 * HOUR_MS)

    vacuum(site.open(), execute=True)

    view.segments.refresh()
    assert left.removeprefix(f"{U}/") in view.segments.table.tombstones
    assert left not in site.objects.snapshot()
    assert verified(site).damages == ()


def test_nothing_is_found_after_a_purge_has_erased_older_versions() -> None:
    site, warehouse = site_with_topic()
    commit(transactional(warehouse), SOUGHT, "bob")
    held = set(site.objects.snapshot())

    assert erase_in(site, site.open()).proof is not None

    assert any("/p0" in path for path in held - set(site.objects.snapshot()))
    assert verified(site).damages == ()

"""Nothing is found in a warehouse that nobody has harmed, whatever has happened in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.doubles.memory_store import MemoryStore
from tests.simulation.onlookers import DAY_MS
from tests.simulation.site import Site
from tests.simulation.small_limits import small_limits
from tests.simulation.turns import Turns
from tests.simulation.worlds import WORLDS
from tests.unit.admin.administering import decide_only, opened
from tests.unit.golden_logs import GOLDEN
from tests.unit.producer.producing import row
from tests.unit.verification.stored import HOUR_MS, damages, fill, maintain, verified
from txntable.errors import InvalidTopicError, UnknownTopicOrPartitionError, WarehouseNotFoundError
from txntable.storage.local_folder import LocalFolder
from txntable.storage.object_store import ObjectMeta, StoreSpec
from txntable.verification.damage import REMEDIES, DamageKind
from txntable.warehouse.stored_warehouse import verify_stored


def test_nothing_is_found_after_transactions_of_every_kind(site: Site) -> None:
    fill(site)

    found = verified(site)

    assert found.damages == ()
    assert (found.logs, found.segments) == (8, 10)
    assert found.bytes == sum(len(one.data) for path, one in site.objects.snapshot().items() if "/p0" in path)


def test_nothing_is_found_after_compaction_checkpoints_and_cleanup(site: Site) -> None:
    fill(site)
    site.advance_ms(40 * 24 * HOUR_MS)
    maintain(site)
    fill(site)

    found = verified(site)

    assert found.damages == ()
    assert found.checkpoints > 0


def test_nothing_is_found_while_transactions_are_open_or_decided(site: Site) -> None:
    warehouse = site.open()
    opened(warehouse, "open")
    decide_only(warehouse, opened(warehouse, "decided"))

    assert damages(site) == []


def test_nothing_is_found_in_topics_that_were_deleted_and_created_again(site: Site) -> None:
    warehouse = fill(site)
    warehouse.admin().delete_topic("u")
    warehouse.admin().create_topic("u", partitions=3)
    warehouse.admin().delete_topic("t")
    with warehouse.producer() as producer:
        producer.send("u", b"new")

    assert damages(site) == []


@pytest.mark.parametrize("name", WORLDS)
def test_nothing_is_found_after_a_simulated_history(name: str) -> None:
    """Crashes, races, compaction, restarts: what the simulation judges by its own reader is judged here by ours."""
    world, turns = WORLDS[name], Turns(None, 1)
    world.played(turns)

    with small_limits(DAY_MS):
        assert damages(turns.site) == []


@pytest.mark.parametrize("folder", ["format-1-groups", "format-1-maintained"])
def test_golden_warehouse_lacks_its_files_and_nothing_else(folder: str) -> None:
    """What is kept of the golden warehouses are their logs."""
    found = verify_stored(LocalFolder(StoreSpec(str(GOLDEN / folder))))

    assert {one.kind for one in found.damages} <= {DamageKind.SEGMENT_MISSING, DamageKind.CONSTANT_FILE}


def test_only_the_topics_asked_for_are_read(site: Site) -> None:
    fill(site)

    found = verified(site, ["u"])

    assert (found.logs, found.segments) == (4, 7)


@pytest.mark.parametrize(
    ("topics", "error"), [(["nope"], UnknownTopicOrPartitionError), (["no/topic"], InvalidTopicError)]
)
def test_topic_that_is_none_is_refused(site: Site, topics: Sequence[str], error: type[Exception]) -> None:
    with pytest.raises(error):
        verified(site, topics)


def test_verification_of_a_place_without_a_warehouse_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WarehouseNotFoundError):
        verify_stored(LocalFolder(StoreSpec(str(tmp_path))))


def test_progress_is_told_of_logs_and_of_files(site: Site) -> None:
    fill(site)
    told: list[str] = []

    verify_stored(MemoryStore(site.objects), progress=told.append, environment=site.time)

    assert any(one.startswith("system/transaction_log: entry") for one in told)
    assert "topics/u/_segments: segment 7 of 7" in told


class _WritingMeanwhile(MemoryStore):
    """A store in which a transaction is committed, and the jobs run, whenever a topic's folder is listed."""

    def __init__(self, site: Site) -> None:
        super().__init__(site.objects)
        self._site, self.left = site, 3

    def list(self, prefix: str):
        if prefix.startswith("topics/") and self.left:
            self.left -= 1
            warehouse = self._site.open()
            with warehouse.producer() as producer:
                producer.send("u", row=row("meanwhile"))
            fill(self._site)
            maintain(self._site)
        return super().list(prefix)


def test_nothing_is_found_while_others_write_and_compact(site: Site) -> None:
    fill(site)
    store = _WritingMeanwhile(site)

    assert verify_stored(store, environment=site.time).damages == ()
    assert store.left == 0


class _CleanedMeanwhile(MemoryStore):
    """A store in which log entries go between the listing and the reading."""

    def __init__(self, site: Site) -> None:
        super().__init__(site.objects)
        self._site, self.cleaned = site, False

    def list(self, prefix: str):
        found: list[ObjectMeta] = list(super().list(prefix))
        if prefix == "system/transaction_log/_delta_log" and not self.cleaned:
            self.cleaned = True
            self._site.advance_ms(31 * 24 * HOUR_MS)
            self._site.open().coordinator().run_once()
        return iter(found)


def test_log_that_is_cleaned_up_meanwhile_is_read_from_its_new_beginning(site: Site) -> None:
    warehouse = fill(site)
    site.advance_ms(HOUR_MS)
    warehouse.transactions.log.write_checkpoint()
    before = set(site.objects.snapshot())

    assert verify_stored(_CleanedMeanwhile(site), environment=site.time).damages == ()

    gone = before - set(site.objects.snapshot())
    assert any("transaction_log/_delta_log" in path for path in gone)


def test_remedy_restores_what_is_damaged_alone_before_it_speaks_of_fencing() -> None:
    fencing = [text for text in REMEDIES.values() if "fence-all" in text]

    assert REMEDIES[DamageKind.ENTRY_MISSING] in fencing
    for text in fencing:
        places = [text.find(said) for said in ("verify again", "restore the whole warehouse", "fence-all")]
        assert min(places) >= 0
        assert places == sorted(places)


def test_every_kind_of_damage_has_a_remedy() -> None:
    assert set(REMEDIES) == set(DamageKind)

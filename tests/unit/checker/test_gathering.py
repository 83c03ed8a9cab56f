"""What an independent reader finds in a store: all that was decided, appended and is still open."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

import pytest

from tests.checker import gathering
from tests.checker.evidence import Decision, Evidence, Recreated
from tests.checker.gathering import Folder, Stored, gather
from tests.checker.operations import Bounds
from tests.simulation.site import TWO_COLUMNS, Site
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

PLACE = ("accounts", 0)


def row_value(row: gathering.Row) -> str:
    return str(row["account"])


@pytest.fixture
def site() -> Site:
    """A committed transaction, an aborted one, one that is open, and a record without."""
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("accounts", partitions=1, schema=TWO_COLUMNS)
    producer = warehouse.producer("x")
    producer.init_transactions()
    send(producer, "ann", commit=True)
    send(producer, "bob", commit=False)
    producer.begin_transaction()
    producer.send("accounts", row={"account": "eve", "amount": 1})
    producer.flush()
    append(warehouse, "ida")
    return site


def send(producer: Producer, account: str, *, commit: bool) -> None:
    producer.begin_transaction()
    producer.send("accounts", row={"account": account, "amount": 1})
    producer.flush()
    if commit:
        producer.commit_transaction()
    else:
        producer.abort_transaction()


def append(warehouse: Warehouse, account: str) -> None:
    with warehouse.producer() as plain:
        plain.send("accounts", row={"account": account, "amount": 1})


def objects_of(site: Site) -> dict[str, bytes]:
    return {path: found.data for path, found in site.objects.snapshot().items()}


def gathered(objects: dict[str, bytes]) -> Evidence:
    return gather(Stored(objects, value_of=row_value))


def test_gather_finds_every_decision_with_what_was_enrolled(site: Site) -> None:
    found = gathered(objects_of(site)).decisions

    assert [(each.epoch, each.committed) for each in found] == [(0, True), (1, False)]
    assert {(each.transactional_id, each.producer_id) for each in found} == {("x", 0)}
    assert all({place for _, place in each.enrolled} == {PLACE} for each in found)


def test_gather_finds_a_batch_with_nothing_in_it_that_was_committed() -> None:
    site = Site()
    producer = site.create().producer("x")
    producer.init_transactions()
    producer.begin_transaction("monday")
    producer.commit_transaction()

    (found,) = gathered(objects_of(site)).decisions

    assert found == Decision("x", 0, 0, True, found.position)


def test_gather_finds_batches_and_markers_where_they_stand(site: Site) -> None:
    found = gathered(objects_of(site))

    assert [(each.base, each.transactional, each.epoch) for each in found.batches] == [
        (0, True, 0),
        (2, True, 1),
        (4, True, 2),
        (5, False, 0),
    ]
    assert [(each.offset, each.committed, each.epoch) for each in found.markers] == [(1, True, 0), (3, False, 1)]


def test_gather_finds_records_of_any_outcome_and_whose_they_are(site: Site) -> None:
    found = gathered(objects_of(site))

    assert [(each.offset, each.value, each.epoch) for each in found.records] == [
        (0, "ann", 0),
        (2, "bob", 1),
        (4, "eve", 2),
        (5, "ida", 0),
    ]


def test_gather_finds_what_is_open_and_holds_back_the_last_stable_offset(site: Site) -> None:
    found = gathered(objects_of(site))

    assert found.undecided == {(PLACE, 0, 2)}
    assert found.bounds == {PLACE: Bounds(0, 4, 6)}


def test_gather_finds_that_a_named_file_is_gone(site: Site) -> None:
    objects = objects_of(site)
    (gone, _) = [path for path in objects if "/p00000/" in path and "-0-" in path][:2]
    del objects[gone]

    missing = [each for each in gathered(objects).references if each.found_size is None]

    assert {each.path for each in missing} == {gone}


def test_gather_computes_the_chain_from_the_bytes_below(site: Site) -> None:
    objects = objects_of(site)
    below = "system/transaction_log/_delta_log/00000000000000000001.json"

    entries = [each for each in gathered(objects).entries if each.log == "system/transaction_log"]

    assert entries[2].computed == hashlib.sha256(objects[below]).hexdigest()
    assert all(each.chain == each.computed for each in entries)


def test_gather_reads_entries_that_are_cleaned_up_from_what_is_remembered(site: Site) -> None:
    entries = objects_of(site)
    slot = "system/transaction_log/_delta_log/00000000000000000000.json"
    left = {path: data for path, data in entries.items() if path != slot}

    found = gather(Stored(left, entries, value_of=row_value))

    assert next(each.version for each in found.entries if each.log == "system/transaction_log") == 0
    with pytest.raises(ValueError, match="not known"):
        gathered(left)


def test_gather_tells_what_landed_in_freed_slots_beside_the_log(site: Site) -> None:
    objects = objects_of(site)
    slot = "system/transaction_log/_delta_log/00000000000000000001.json"
    late = b'{"commitInfo":{"commitId":"late","previous":"one","operation":"COMMIT"}}'

    found = gather(Stored(objects, recreated=[(slot, late, 5)], value_of=row_value))

    assert found.recreated == (Recreated("system/transaction_log", 1, "late", "one", 5),)
    assert found.entries == gathered(objects).entries
    with pytest.raises(ValueError, match="not the slot of a log"):
        gather(Stored(objects, recreated=[("system/clock", late, 5)], value_of=row_value))


def test_gather_finds_files_that_no_log_names_with_their_ages(site: Site) -> None:
    objects = objects_of(site)
    named = next(path for path in objects if "/p00000/" in path)
    left = "topics/accounts/_segments/p00000/left.parquet"

    found = gather(Stored(objects | {left: b"junk"}, ages_ms={left: 7, named: 7}, value_of=row_value), orphan_age_ms=5)

    assert found.orphans == {left: 7}


def test_folder_shows_the_objects_of_a_local_warehouse(tmp_path: Path, site: Site) -> None:
    objects = objects_of(site)
    for path, data in objects.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)

    assert dict(Folder(tmp_path)) == objects


def test_gathering_shares_no_code_with_the_product() -> None:
    tree = ast.parse(Path(gathering.__file__).read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert not {name for name in imported if name.split(".")[0] in ("txntable", "coordinator", "compaction", "jobs")}

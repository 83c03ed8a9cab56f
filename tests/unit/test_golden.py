"""The logs of format 1, as they were written once (tests/golden/README.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.site import Site
from tests.unit.golden_logs import changed, entries, golden_objects
from txntable.coordinator.assignors import Assignor
from txntable.coordinator.decision import Decision, Outcome
from txntable.coordinator.group import GroupRow, GroupTopic
from txntable.coordinator.group_member import GroupMember
from txntable.coordinator.group_offsets import CommittedOffset, OffsetRow, PendingOffset
from txntable.coordinator.group_state import GroupState
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import DamagedDataError, TransactionAbortableError, UnsupportedFormatError
from txntable.partition.append import AppendRequest, SequencedSegment, decide_append
from txntable.partition.batch import ProducerEpoch, batch_of
from txntable.partition.markers import Control
from txntable.partition.offsets import decided_through, merged_through, next_offset
from txntable.partition.producer_state import BatchMetadata, ProducerEntry
from txntable.partition.projection import project
from txntable.partition.stable_offset import last_stable_offset
from txntable.partition.state_entry import Cleaning
from txntable.segments.segment import StagedSegment
from txntable.warehouse.warehouse import Warehouse

GOLDEN = Path(__file__).parent.parent / "golden" / "format-1"
GROUPS = GOLDEN.parent / "format-1-groups"
MAINTAINED = GOLDEN.parent / "format-1-maintained"
TOPIC_ID = "bd82a28b1f088b3a186737712fb16fe7"


@pytest.fixture(params=["entries", "checkpoints"])
def warehouse(request: pytest.FixtureRequest) -> Warehouse:
    site = Site()
    for path in GOLDEN.rglob("*.json"):
        site.objects.put(str(path.relative_to(GOLDEN)), path.read_bytes())
    found = site.open()
    if request.param == "checkpoints":
        topic = found.topic_log("orders")
        for log in (found.transactions.log, found.offsets.log, topic.segments, topic.public):
            log.write_checkpoint()
        found = site.open()
    found.transactions.refresh()
    found.offsets.refresh()
    found.topic_log("orders").segments.refresh()
    found.topic_log("orders").public.refresh()
    return found


def test_topic_settings_are_as_written(warehouse: Warehouse) -> None:
    settings = warehouse.topic_log("orders").settings()

    assert (settings.topic_id, settings.partitions, settings.key) == (TOPIC_ID, 2, ("account",))
    assert dict(settings.config) == {"retention.ms": "86400000"}
    assert [(field.name, str(field.type), field.nullable) for field in settings.schema] == [
        ("account", "string", False),
        ("amount", "int64", True),
    ]


def test_partition_logs_fold_to_the_same_state(warehouse: Warehouse) -> None:
    logs = warehouse.topic_log("orders").segments.fold
    table = warehouse.topic_log("orders").segments.table

    assert table.version == 9
    assert [next_offset(table.numbers, TOPIC_ID, partition) for partition in (0, 1)] == [8, 1]
    assert (decided_through(table.numbers, TOPIC_ID), merged_through(table.numbers, TOPIC_ID)) == (9, 6)
    assert [last_stable_offset(logs, table, TOPIC_ID, partition) for partition in (0, 1)] == [7, 1]
    assert {key: (m.control, m.position, m.offsets) for key, m in logs.markers.items()} == {
        (0, 0): (Control.COMMIT, 3, {0: 2}),
        (0, 1): (Control.COMMIT, 6, {0: 4}),
        (0, 2): (Control.ABORT, 9, {0: 6}),
    }
    time_ms = 1_700_000_000_000
    assert logs.producers == {
        (1, 1): ProducerEntry(0, (BatchMetadata(0, 0, 0, 0, "3e73599650206e2796fa5fc8897cc0dd"),), time_ms, None, 0),
        (0, 0): ProducerEntry(3, (BatchMetadata(0, 0, 7, 7, "cf7d4568358ba9b2e166c9bfccf814a1"),), time_ms, 0, 7),
    }
    assert {key: t.first_offsets for key, t in logs.open.items()} == {(0, 3): {0: 7}}


def test_tombstoned_name_is_remembered_and_refused_to_an_append(warehouse: Warehouse) -> None:
    segments = warehouse.topic_log("orders").segments
    staged = StagedSegment("p00001/tombstoned.parquet", 1, 1, 100, "{}", 1, 2, None, 3, f"sha256:{0:064x}")
    request = AppendRequest(TOPIC_ID, None, False, (SequencedSegment(staged, None),))

    assert staged.path in segments.table.tombstones
    with pytest.raises(TransactionAbortableError, match=r"path=p00001/tombstoned\.parquet"):
        decide_append(segments.fold, segments.table, request, 5)


def test_public_table_reflects_them(warehouse: Warehouse) -> None:
    topic = warehouse.topic_log("orders")
    rows = {add.path.rsplit("/", 1)[1][:6]: dict(add.partition_values) for add in topic.public.table.files}

    assert rows == {
        "merged": {"_partition": "0", "_base_offset": "0", "_last_offset": "3", "_commit": "6"},
        TOPIC_ID[:6]: {"_partition": "1", "_base_offset": "0", "_last_offset": "0", "_commit": "0"},
    }
    assert topic.public.table.numbers["reflects"] == 9
    assert topic.public.table.numbers[f"lso/{TOPIC_ID}/0"] == 7
    assert project(topic.segments.fold, topic.segments.table, topic.public.table, 0) == []


def test_transaction_log_folds_to_the_same_rows(warehouse: Warehouse) -> None:
    row = warehouse.transactions.row("etl")

    assert row is not None
    assert (row.producer_id, row.producer_epoch, row.state) == (0, 3, TransactionState.ONGOING)
    assert row.topics[TOPIC_ID].partitions == frozenset({0})
    assert row.decision == Decision(2, Outcome.ABORT, 9, None)
    assert list(warehouse.transactions.log.fold.under_way) == ["etl"]
    assert warehouse.transactions.memory("etl", "2026-11-20").name_known
    assert warehouse.transactions.memory("etl", 8).last_integer == 7
    assert warehouse.transactions.log.table.numbers["next_producer_id"] == 1001


def test_offset_log_folds_to_the_same_rows(warehouse: Warehouse) -> None:
    pending = PendingOffset("etl", 0, 3, 15, "m", 1)

    assert warehouse.offsets.log.fold.offsets["g"] == {
        ("orders", 0): OffsetRow("g", "orders", 0, 1, CommittedOffset(12, "", TOPIC_ID, 1, 4), (pending,)),
        ("orders", 1): OffsetRow("g", "orders", 1, 1, None, (PendingOffset("etl", 0, 3, 2, "", 1),)),
    }
    assert warehouse.offsets.log.table.numbers["decided_through"] == 4


@pytest.mark.parametrize(
    ("log", "old", "new"),
    [
        ("topics/orders/_segments", '"records":1', '"recordz":1'),
        ("topics/orders/_segments", '{\\"v\\":1,\\"records', '{\\"v\\":2,\\"records'),
        ("topics/orders/_segments", '"_control":"COMMIT"', '"_control":"MAYBE"'),
        ("topics/orders/_segments", '"txntable.format":"1"', '"txntable.format":"9"'),
        ("topics/orders/_segments", '"tags":{"txntable"', '"tags":{"other"'),
        ("system/transaction_log", '"_kind":"id"', '"_kind":"what"'),
        ("system/transaction_log", '"_producer_epoch":"0"', '"_producer_epoch":"5"'),
        ("system/offset_log", '"_kind":"offset"', '"_kind":"group9"'),
        ("system/offset_log", '"_offset":"12"', '"_offset":"13"'),
    ],
)
def test_log_is_refused_when_it_says_what_this_version_does_not_know(log: str, old: str, new: str) -> None:
    objects, site, found = golden_objects("format-1"), Site(), 0
    for path in entries("format-1", log):
        text = objects[path].decode()
        old_text = old if old in text else old.replace('"', '\\"')
        found += old_text in text
        text = text.replace(old_text, new if old_text == old else new.replace('"', '\\"'))
        objects = changed(objects, path, text.encode())
    assert found
    for path, data in objects.items():
        site.objects.put(path, data)

    def read_all() -> None:
        found = site.open()
        found.offsets.refresh()
        found.topic_log("orders").segments.refresh()

    with pytest.raises((DamagedDataError, UnsupportedFormatError)):
        read_all()


# -- groups -------------------------------------------------------------------------------------


@pytest.fixture(params=["entries", "checkpoints"])
def of_groups(request: pytest.FixtureRequest) -> Warehouse:
    site = Site()
    for path in GROUPS.rglob("*.json"):
        site.objects.put(str(path.relative_to(GROUPS)), path.read_bytes())
    found = site.open()
    found.offsets.refresh()
    if request.param == "checkpoints":
        found.offsets.log.write_checkpoint()
        found = site.open()
        found.offsets.refresh()
    return found


def test_groups_fold_to_the_same_rows(of_groups: Warehouse) -> None:
    first, second, topics = ("orders", 0), ("orders", 1), {"orders": GroupTopic(TOPIC_ID, 2)}
    assignors, time_ms = (Assignor.RANGE, Assignor.COOPERATIVE_STICKY), 1_700_000_000_000
    held = GroupMember(
        *("a", ("orders",), assignors, 45_000, time_ms, 1, "static", "client-a", "here"),
        owned={first: 1, second: 1},
        target=frozenset({first}),
    )
    waiting = GroupMember(
        *("b", ("orders",), assignors, 45_000, time_ms + 1_000, 2, None, "client-b", "here"), target=frozenset({second})
    )

    assert of_groups.offsets.log.fold.groups == {
        "readers": GroupRow("readers", 2, GroupState.RECONCILING, 4, Assignor.RANGE, topics, {"a": held, "b": waiting}),
        "left": GroupRow("left", 2, GroupState.EMPTY, 7),
    }


def test_offsets_of_groups_fold_to_the_same_rows(of_groups: Warehouse) -> None:
    pending = PendingOffset("etl", 0, 1, 15, "", 5, TOPIC_ID)

    assert of_groups.offsets.log.fold.offsets == {
        "readers": {
            ("orders", 0): OffsetRow(
                "readers", "orders", 0, 5, CommittedOffset(12, "note", TOPIC_ID, 1, 3), (pending,)
            ),
            ("orders", 1): OffsetRow("readers", "orders", 1, 2, CommittedOffset(4, "", TOPIC_ID, 1, 3)),
        },
        "simple": {("orders", 1): OffsetRow("simple", "orders", 1, 8, CommittedOffset(7, "", TOPIC_ID, 8, 0))},
    }
    assert of_groups.offsets.log.table.numbers["decided_through"] == 3


def test_old_group_goes_on(of_groups: Warehouse) -> None:
    of_groups.admin().remove_members_from_consumer_group("readers", ["static"])

    (found,) = of_groups.admin().describe_consumer_groups(["readers"]).values()
    assert [(member.member_id, len(member.assignment)) for member in found.members] == [("b", 2)]


# -- after maintenance --------------------------------------------------------------------------


@pytest.fixture(params=["entries", "checkpoints"])
def maintained(request: pytest.FixtureRequest) -> Warehouse:
    site = Site()
    for path in MAINTAINED.rglob("*.json"):
        site.objects.put(str(path.relative_to(MAINTAINED)), path.read_bytes())
    # The last of these entries was written nine days after the first.
    site.advance_ms(10 * 86_400_000)
    found = site.open()
    for name in ("ledger", "accounts"):
        topic = found.topic_log(name)
        topic.settings()
        topic.public.refresh()
        if request.param == "checkpoints":
            topic.segments.write_checkpoint()
            topic.public.write_checkpoint()
    found = site.open()
    for name in ("ledger", "accounts"):
        found.topic_log(name).settings()
        found.topic_log(name).public.refresh()
    return found


def test_merged_and_cut_partition_folds_to_the_same_state(maintained: Warehouse) -> None:
    logs, table = maintained.topic_log("ledger").segments.fold, maintained.topic_log("ledger").segments.table
    rows = {
        int(add.partition_values["_base_offset"] or ""): batch_of(add)
        for add in table.files
        if add.partition_values["_control"] is None
    }

    assert {name.partition("/")[0]: number for name, number in table.numbers.items()} == {
        "next_offset": 16,
        "decided_through": 25,
        "merged_through": 25,
        "log_start": 2,
    }
    assert {base: (b.last_offset, b.records, b.producer, b.decided) for base, b in rows.items()} == {
        3: (12, 6, None, (0, 25)),
        14: (14, 1, ProducerEpoch(1001, 0), None),
        15: (15, 1, ProducerEpoch(2001, 0), None),
    }
    assert logs.markers == {}
    assert logs.producers[0, 0] == ProducerEntry(8, (), 1_700_007_200_004, 0, 13)
    assert logs.producers[0, 1] == ProducerEntry(
        0, (BatchMetadata(0, 0, 11, 11, "e80b62be7340a444a192e48225f001e6"),), 1_700_000_000_000, None, 11
    )
    assert {key: t.first_offsets for key, t in logs.open.items()} == {(2001, 0): {0: 15}}


def test_name_that_vacuum_tombstoned_is_remembered(maintained: Warehouse) -> None:
    tombstones = maintained.topic_log("ledger").segments.table.tombstones

    assert [path for path in tombstones if path.endswith(f"x-x-{'e' * 32}.parquet")] == [
        f"p00001/{TOPIC_ID}-x-x-{'e' * 32}.parquet"
    ]


def test_partition_compacted_by_key_folds_to_the_same_state(maintained: Warehouse) -> None:
    topic = maintained.topic_log("accounts")
    public = sorted(tuple(dict(add.partition_values).values()) for add in topic.public.table.files)

    assert topic.segments.fold.cleanings == {0: (Cleaning(13, 1_700_007_200_000),)}
    assert topic.segments.fold.markers == {}
    assert public == [("0", "13", "13", "22"), ("0", "4", "11", "18")]
    assert project(topic.segments.fold, topic.segments.table, topic.public.table, 0) == []

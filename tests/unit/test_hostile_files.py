"""Checkpoints and segments that a foreign hand made: refused by an error that names the object."""

from __future__ import annotations

import io
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.golden_logs import entries, golden_objects
from tests.unit.hostile import REFUSED, answer_to, read_everything, stays_inside, warehouse_of
from txntable.format.layout import last_checkpoint_path
from txntable.log import checkpoint
from txntable.log.checkpoint import encode_hint

S = "topics/orders/_segments"
LOGS = (S, "topics/orders", "system/transaction_log", "system/offset_log")


def with_checkpoints() -> tuple[dict[str, bytes], dict[str, str]]:
    """Return a golden warehouse that is opened from checkpoints, and the checkpoint's path of each log."""
    objects = golden_objects("format-1")
    site, _ = warehouse_of(objects)
    warehouse = site.open()
    topic = warehouse.topic_log("orders")
    paths = {}
    for log in (topic.segments, topic.public, warehouse.transactions.log, warehouse.offsets.log):
        log.refresh()
        version = log.write_checkpoint()
        paths[log.root] = f"{log.root}/_delta_log/{version:020d}.checkpoint.parquet"
    return {path: found.data for path, found in site.objects.snapshot().items()}, paths


OBJECTS, CHECKPOINTS = with_checkpoints()


def parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def rows_of(log: str) -> list[dict[str, Any]]:
    """Return the rows of a log's checkpoint."""
    return pq.read_table(pa.BufferReader(OBJECTS[CHECKPOINTS[log]])).to_pylist()


def changed(log: str, kind: str, change: dict[str, Any]) -> bytes:
    """Return a checkpoint in which each row of a kind says something else."""
    rows = [row | {kind: row[kind] | change} if row[kind] is not None else row for row in rows_of(log)]
    schema = pq.read_schema(pa.BufferReader(OBJECTS[CHECKPOINTS[log]]))
    return parquet(pa.Table.from_pylist(rows, schema))


def refusal_of(log: str, data: bytes) -> str:
    """Return what is said when a log's checkpoint is this; no other error is allowed, nor any path outside."""
    site, store = warehouse_of(OBJECTS | {CHECKPOINTS[log]: data})
    refusal = answer_to(lambda: read_everything(site, store))
    assert stays_inside(store)
    return str(refusal)


def test_warehouse_is_read_from_the_checkpoints_as_they_were_written() -> None:
    site, store = warehouse_of(OBJECTS)

    read_everything(site, store)

    assert set(CHECKPOINTS.values()) <= set(store.asked)


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("add", {"path": None}),
    ("add", {"path": "../../x"}),
    ("add", {"path": "s3://other/x"}),
    ("add", {"path": "/etc/passwd"}),
    ("add", {"path": "%2e%2e/x"}),
    ("add", {"path": "p00000/.."}),
    ("add", {"path": "x" * 600}),
    ("add", {"path": "the/same"}),
    ("add", {"size": None}),
    ("add", {"size": -1}),
    ("add", {"modificationTime": 2**62}),
    ("add", {"dataChange": None}),
    ("add", {"partitionValues": None}),
    ("add", {"partitionValues": []}),
    ("add", {"partitionValues": [("_kind", "id"), ("_kind", "batch"), ("_partition", "0"), ("_partition", "1")]}),
    ("txn", {"appId": None}),
    ("txn", {"version": None}),
    ("metaData", {"configuration": []}),
    ("metaData", {"configuration": [("txntable.format", "1"), ("txntable.format", "1")]}),
    ("metaData", {"partitionColumns": [None]}),
    ("metaData", {"createdTime": -1}),
    ("protocol", {"minReaderVersion": 9}),
    ("protocol", {"writerFeatures": None}),
    ("protocol", {"writerFeatures": ["deletionVectors"]}),
]


def has(log: str, kind: str) -> bool:
    """Whether a log's checkpoint holds an action of that kind."""
    names = pq.read_schema(pa.BufferReader(OBJECTS[CHECKPOINTS[log]])).names
    return kind in names and any(row[kind] for row in rows_of(log))


@pytest.mark.parametrize(
    ("log", "kind", "change"),
    [(log, kind, change) for log in LOGS for kind, change in CHANGES if has(log, kind)],
)
def test_checkpoint_with_what_no_log_of_ours_can_say_is_refused(log: str, kind: str, change: dict[str, Any]) -> None:
    refusal = refusal_of(log, changed(log, kind, change))

    # The checkpoint, or, where a row is looked at only when it is needed, the row, or the table.
    assert any(name in refusal for name in (CHECKPOINTS[log], "path=", f"table={log}", "table=orders"))


def of_the_entry(table: pa.Table) -> pa.Table:
    """Return a table that names the entry that the checkpoint of S is of: of another one no row is looked at."""
    return table.replace_schema_metadata(pq.read_schema(pa.BufferReader(OBJECTS[CHECKPOINTS[S]])).metadata)


STRANGE = [
    pa.table({}),
    pa.table({"add": ["x"]}),
    pa.table({name: pa.array([1]) for name in ("protocol", "metaData", "txn", "add", "remove")}),
    pa.table({"add": pa.array([{"path": 1}])}),
    pa.table([pa.array([1]), pa.array([2])], names=["add", "add"]),
]


@pytest.mark.parametrize("table", STRANGE)
def test_checkpoint_with_other_columns_is_refused(table: pa.Table) -> None:
    assert CHECKPOINTS[S] in refusal_of(S, parquet(of_the_entry(table)))


@pytest.mark.parametrize("table", STRANGE)
def test_checkpoint_that_is_of_no_entry_is_passed_over_whatever_it_holds(table: pa.Table) -> None:
    assert refusal_of(S, parquet(table)) == "None"


def test_checkpoint_that_claims_more_rows_than_one_can_have_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "LARGEST_ROWS", 3)

    assert "claims to be larger" in refusal_of(S, OBJECTS[CHECKPOINTS[S]])


def test_checkpoint_that_grows_out_of_all_proportion_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "LARGEST_BYTES", 1 << 20)
    bomb = parquet(of_the_entry(pa.table({"add": [b"\0" * (16 << 20)]})), compression="zstd", use_dictionary=False)

    assert len(bomb) < 64 << 10
    assert "claims to be larger" in refusal_of(S, bomb)


changes = st.lists(st.tuples(st.integers(0, 10**6), st.binary(min_size=1, max_size=6)), min_size=1, max_size=4)


def altered(data: bytes, places: list[tuple[int, bytes]]) -> bytes:
    """Return data with some bytes replaced."""
    new = bytearray(data)
    for place, block in places:
        new[place % len(data) : place % len(data) + len(block)] = block
    return bytes(new)


@given(st.sampled_from(LOGS), changes)
def test_checkpoint_with_any_bytes_changed_is_read_or_refused(log: str, places: list[tuple[int, bytes]]) -> None:
    refusal_of(log, altered(OBJECTS[CHECKPOINTS[log]], places))


def test_checkpoint_that_a_hostile_hint_names_is_looked_for_in_its_log_only() -> None:
    site, store = warehouse_of(OBJECTS | {last_checkpoint_path(S): encode_hint(10**17, 1)})

    read_everything(site, store)

    assert stays_inside(store)
    assert entries("format-1", S)[0] in store.asked or CHECKPOINTS[S] in store.asked


# -- segments -------------------------------------------------------------------------------


def written() -> tuple[Site, str]:
    """Return a warehouse with one segment, and the segment's path."""
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("t", schema=TWO_COLUMNS)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    with producer.transaction() as txn:
        for number in range(20):
            # Nothing that compresses: a foreign file of the same size finds room.
            txn.send("t", row={"account": random.Random(number).randbytes(300).hex(), "amount": number})
    (path,) = [path for path in site.objects.snapshot() if "/_segments/p00000/" in path]
    return site, path


SITE, SEGMENT = written()


def read_segment(data: bytes) -> int:
    """Return how many records a client reads when the segment is this."""
    site = SITE.copy()
    site.objects.put(SEGMENT, data)
    return site.open().read_arrow("t").read_all().num_rows


def test_segment_as_it_was_written_is_read() -> None:
    assert read_segment(SITE.objects.snapshot()[SEGMENT].data) == 20


@given(changes)
def test_segment_with_any_bytes_changed_is_read_or_refused(places: list[tuple[int, bytes]]) -> None:
    data = altered(SITE.objects.snapshot()[SEGMENT].data, places)

    refusal = answer_to(lambda: read_segment(data))

    assert refusal is None or SEGMENT.rsplit("/", 1)[1] in str(refusal)


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"account": ["x"] * 20},
        {"_offset_delta": [str(n) for n in range(20)], "_timestamp": ["x"] * 20, "account": ["x"] * 20},
        {"_offset_delta": [{"x": n} for n in range(20)], "_timestamp": [0] * 20, "account": [None] * 20},
        {"account": [["x"]] * 20, "amount": [{"y": 1}] * 20, "_offset_delta": list(range(20)), "_timestamp": [0] * 20},
    ],
)
def test_segment_with_other_columns_is_refused(columns: dict[str, list[Any]]) -> None:
    data = parquet(pa.table(columns))
    # As long as the log says, so that it is looked into: what stands between the pages and the footer is nobody's.
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    missing = len(SITE.objects.snapshot()[SEGMENT].data) - len(data)

    with pytest.raises(REFUSED, match="a segment cannot be read") as refusal:
        read_segment(data[:footer] + b"\0" * missing + data[footer:])

    assert "another size" not in str(refusal.value)

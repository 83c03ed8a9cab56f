"""The streaming sink without Spark's processes: which micro-batches commit, and which are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from txntable.errors import BatchOutOfOrderError
from txntable.spark.datasource import stream_sink
from txntable.spark.datasource.stream_sink import stream_committer, stream_writer
from txntable.spark.datasource.write_options import write_options
from txntable.warehouse.warehouse import Warehouse

SCHEMA = pa.schema([pa.field("account", pa.string(), nullable=False), pa.field("amount", pa.int64())])
COLUMNS = StructType().add("amount", "long").add("account", "string")


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic("t", partitions=2, schema=SCHEMA, key=["account"])
    yield made
    stream_sink._open_warehouses.clear()


def run_batch(warehouse: Warehouse, batch_id: int, *accounts: str) -> None:
    """What Spark does with one micro-batch of one task: a writer uploads, another one commits."""
    options = write_options(
        {"warehouse": warehouse.url, "topic": "t", "durability": "page-cache", "transactionalId": "stream"}
    )
    rows = pa.record_batch({"amount": pa.array([1] * len(accounts), pa.int64()), "account": pa.array(accounts)})
    message = stream_writer(options, COLUMNS).write(iter([rows] if accounts else []))
    stream_committer(options).commit([message], batch_id)


def run_unnamed(warehouse: Warehouse, checkpoint: Path, batch_id: int, *accounts: str) -> None:
    """One micro-batch of a stream that has no transactional id but its checkpoint's."""
    checkpoint.mkdir(exist_ok=True)
    (checkpoint / "metadata").write_text(json.dumps({"id": checkpoint.name}))
    options = write_options(
        {"warehouse": warehouse.url, "topic": "t", "durability": "page-cache", "checkpointLocation": str(checkpoint)}
    )
    rows = pa.record_batch({"amount": pa.array([1] * len(accounts), pa.int64()), "account": pa.array(accounts)})
    message = stream_writer(options, COLUMNS).write(iter([rows] if accounts else []))
    stream_committer(options).commit([message], batch_id)


def written(warehouse: Warehouse) -> list[str]:
    return sorted(warehouse.read_arrow("t", columns=["account"]).read_all().column("account").to_pylist())


def test_batches_commit_once_each(warehouse: Warehouse) -> None:
    run_batch(warehouse, 0, "a")
    run_batch(warehouse, 1, "b")

    run_batch(warehouse, 1, "b")
    run_batch(warehouse, 2, "c")

    assert written(warehouse) == ["a", "b", "c"]


def test_batch_without_records_is_no_transaction(warehouse: Warehouse) -> None:
    run_batch(warehouse, 0, "a")
    run_batch(warehouse, 1)

    assert not warehouse.producer("stream").is_committed(1)


def test_stream_that_begins_again_with_an_empty_batch_is_refused_and_loses_no_later_one(warehouse: Warehouse) -> None:
    run_batch(warehouse, 0, "a")
    run_batch(warehouse, 1, "b")

    with pytest.raises(BatchOutOfOrderError, match="a transactional id of its own"):
        run_batch(warehouse, 0)


def test_stream_may_begin_with_an_empty_batch(warehouse: Warehouse) -> None:
    run_batch(warehouse, 0)
    run_batch(warehouse, 1, "b")

    assert written(warehouse) == ["b"]


# -- streams that only their checkpoint names -----------------------------------------------------


def test_stream_under_a_new_checkpoint_warns_that_its_records_may_be_there_twice(
    warehouse: Warehouse, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_unnamed(warehouse, tmp_path / "first", 0, "a")
    run_unnamed(warehouse, tmp_path / "first", 1, "b")
    assert caplog.messages == []

    run_unnamed(warehouse, tmp_path / "second", 0, "a")

    (told,) = caplog.messages
    assert "is there twice" in told
    assert "transactional_id=stream-second earlier=stream-first" in told
    assert "transactionalId" in told
    assert written(warehouse) == ["a", "a", "b"], "a warning, no refusal"


def test_stream_that_goes_on_after_its_first_batch_warns_no_more(
    warehouse: Warehouse, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_unnamed(warehouse, tmp_path / "first", 0, "a")
    run_unnamed(warehouse, tmp_path / "second", 0, "a")
    caplog.clear()

    run_unnamed(warehouse, tmp_path / "second", 1, "b")

    assert caplog.messages == []


def test_stream_beside_named_ones_or_in_another_topic_warns_of_nothing(
    warehouse: Warehouse, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    warehouse.admin().create_topic("other")
    run_batch(warehouse, 0, "a")
    with warehouse.producer("stream-elsewhere") as elsewhere:
        elsewhere.init_transactions()
        with elsewhere.transaction() as transaction:
            transaction.send("other", b"a")

    run_unnamed(warehouse, tmp_path / "first", 0, "a")

    assert caplog.messages == []

"""The batch sink without Spark's processes: what is checked, what is uploaded, and what becomes visible."""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import DataSourceArrowWriter
from pyspark.sql.types import StructType

from txntable.errors import (
    BatchOutOfOrderError,
    InvalidRequestError,
    InvalidTransactionTimeoutError,
    SchemaMismatchError,
    TxnTableError,
    UnknownTopicOrPartitionError,
)
from txntable.partition.batch import ProducerEpoch
from txntable.producer.transaction import Transaction
from txntable.segments.segment import StagedSegment
from txntable.spark.datasource.data_sink import SkippingWriter, TopicWriter, UploadedSegments
from txntable.spark.datasource.data_source import TxnTableSource
from txntable.warehouse.warehouse import Warehouse

SCHEMA = pa.schema([pa.field("account", pa.string(), nullable=False), pa.field("amount", pa.int64())])
COLUMNS = StructType().add("amount", "long").add("account", "string")
AS_READ = (
    StructType()
    .add("account", "string")
    .add("amount", "long")
    .add("_partition", "integer")
    .add("_offset", "long")
    .add("_timestamp", "timestamp")
    .add("_commit", "long")
)
AS_READ_ARROW = pa.schema(
    [
        ("account", pa.string()),
        ("amount", pa.int64()),
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_timestamp", pa.timestamp("us", "America/New_York")),
        ("_commit", pa.int64()),
    ]
)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """One topic of two partitions."""
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic("t", partitions=2, schema=SCHEMA, key=["account"])
    return made


def writer_of(
    warehouse: Warehouse,
    options: Mapping[str, str] | None = None,
    *,
    schema: StructType = COLUMNS,
    overwrite: bool = False,
) -> DataSourceArrowWriter:
    """The writer, as it arrives in another process."""
    where = {"warehouse": warehouse.url, "topic": "t", "durability": "page-cache"}
    made = TxnTableSource({**where, **(options or {})}).writer(schema, overwrite)
    assert isinstance(made, DataSourceArrowWriter)
    return travelled(made)


def run(batch_id: str) -> dict[str, str]:
    return {"transactionalId": "etl", "batchId": batch_id}


def travelled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


def rows(*accounts: str | None) -> pa.RecordBatch:
    return pa.record_batch({"amount": pa.array([1] * len(accounts), pa.int64()), "account": pa.array(accounts)})


def uploaded(writer: DataSourceArrowWriter, *tasks: list[pa.RecordBatch]) -> Any:
    return [travelled(writer.write(iter(batches))) for batches in tasks]


def write(writer: DataSourceArrowWriter, *tasks: list[pa.RecordBatch]) -> None:
    writer.commit(uploaded(writer, *tasks))


def accounts(warehouse: Warehouse) -> list[str]:
    return sorted(warehouse.read_arrow("t", columns=["account"]).read_all().column("account").to_pylist())


def segment_files(warehouse: Warehouse) -> list[Path]:
    return list(Path(warehouse.url).glob("topics/*/_segments/p*/*.parquet"))


def segments_version(warehouse: Warehouse) -> int:
    version = warehouse.topic_log("t").segments.refresh().version
    assert version is not None
    return version


# -- what becomes visible -----------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"transactionalId": "etl"}, {"transactionalId": "etl", "batchId": "7"}])
def test_all_tasks_become_visible_at_the_commit_and_nothing_before(
    warehouse: Warehouse, options: dict[str, str]
) -> None:
    writer = writer_of(warehouse, options)
    messages = uploaded(writer, [rows("a", "b"), rows("c")], [], [rows("d")])
    before = accounts(warehouse)
    version = segments_version(warehouse)

    writer.commit(messages)

    assert (before, accounts(warehouse)) == ([], ["a", "b", "c", "d"])
    committed = segments_version(warehouse) - version
    assert committed == 1, "one append; that of a transaction with its marker"


@pytest.mark.parametrize("options", [{}, run("7")], ids=["without", "with"])
def test_write_without_a_name_says_that_it_is_written_twice_when_it_runs_twice(
    warehouse: Warehouse, caplog: pytest.LogCaptureFixture, options: dict[str, str]
) -> None:
    with caplog.at_level("INFO", logger="txntable.spark.datasource.data_sink"):
        for _ in range(2):
            writer = writer_of(warehouse, options)
            writer.commit(uploaded(writer, [rows("a")]))

    told = [message for message in caplog.messages if "a job that runs twice writes everything twice" in message]
    assert (accounts(warehouse), len(told)) == ((["a", "a"], 2) if not options else (["a"], 0))


def test_segments_carry_the_identity_of_the_transaction_that_appends_them(warehouse: Warehouse) -> None:
    write(writer_of(warehouse, {"transactionalId": "etl"}), [rows("a", "b", "c")])

    log = warehouse.topic_log("t").segments.refresh()
    named = {tuple(path.stem.split("-")[1:3]) for path in segment_files(warehouse)}
    appended = {
        (add.partition_values["_producer_id"], add.partition_values["_producer_epoch"])
        for add in log.files
        if add.partition_values["_control"] is None
    }
    assert named == appended
    assert len(appended) == 1


def test_more_segments_than_one_commit_takes_become_visible_by_one_decision(warehouse: Warehouse) -> None:
    writer = writer_of(warehouse)
    topic_id = warehouse.topic_log("t").settings().topic_id
    now_ms = warehouse.context.clock.now_ms()
    many = tuple(
        StagedSegment(
            f"p00000/{topic_id}-0-0-{number:032x}.parquet", 0, 1, 100, "{}", 1, 1, None, now_ms, f"sha256:{number:064x}"
        )
        for number in range(10_001)
    )

    writer.commit([UploadedSegments(many[:1]), UploadedSegments(many[1:])])

    published = warehouse.topic_log("t").public.refresh().files
    assert len(published) == 10_001
    assert len({add.partition_values["_commit"] for add in published} - {"0"}) == 1, "a decision's position"


def test_nothing_is_visible_when_the_job_failed(warehouse: Warehouse) -> None:
    writer = writer_of(warehouse, {"transactionalId": "etl"})
    messages = uploaded(writer, [rows("a")])

    writer.abort([*messages, None])

    assert accounts(warehouse) == []
    assert [shown.state.value for shown in warehouse.admin().list_transactions()] == ["EMPTY"]


# -- exactly once -------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_id", ["2026-11-20", "7"])
def test_batch_is_skipped_without_an_upload_when_it_has_committed(warehouse: Warehouse, batch_id: str) -> None:
    options = run(batch_id)
    write(writer_of(warehouse, options), [rows("a")])
    files = segment_files(warehouse)

    again = writer_of(warehouse, options)
    write(again, [rows("a")])

    assert isinstance(again, SkippingWriter)
    assert (accounts(warehouse), segment_files(warehouse)) == (["a"], files)


def test_batch_that_has_committed_fences_nobody(warehouse: Warehouse) -> None:
    write(writer_of(warehouse, run("2026-11-19")), [rows("a")])
    running = writer_of(warehouse, run("2026-11-20"))

    writer_of(warehouse, run("2026-11-19"))
    write(running, [rows("b")])

    assert accounts(warehouse) == ["a", "b"]


def test_empty_batch_is_remembered(warehouse: Warehouse) -> None:
    options = run("7")

    write(writer_of(warehouse, options), [])

    assert isinstance(writer_of(warehouse, options), SkippingWriter)


def test_batch_below_the_last_one_is_refused_and_not_skipped(warehouse: Warehouse) -> None:
    write(writer_of(warehouse, run("7")), [rows("a")])

    with pytest.raises(BatchOutOfOrderError, match="last=7"):
        writer_of(warehouse, run("6"))


def test_only_the_newer_of_two_runs_commits_when_both_run(warehouse: Warehouse) -> None:
    options = run("7")
    zombie = writer_of(warehouse, options)
    late = uploaded(zombie, [rows("a")])
    newer = writer_of(warehouse, options)

    with pytest.raises(TxnTableError) as refused:
        zombie.commit(late)
    write(newer, [rows("a")])

    assert refused.value.code in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
    assert accounts(warehouse) == ["a"]


def test_run_that_died_between_append_and_decision_leaves_nothing_to_the_next(warehouse: Warehouse) -> None:
    options = run("7")
    dead = writer_of(warehouse, options)
    assert isinstance(dead, TopicWriter)
    producer = warehouse.producer("etl")
    assert dead.target.plan.producer is not None
    producer.resume(ProducerEpoch(*dead.target.plan.producer))
    producer.begin_transaction(7)
    producer.send("t", row={"account": "half", "amount": 1})
    producer.flush()

    write(writer_of(warehouse, options), [rows("a")])

    assert accounts(warehouse) == ["a"]


# -- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "options", "refusal", "said"),
    [
        (StructType().add("amount", "long"), {}, SchemaMismatchError, "missing=account"),
        (StructType([*COLUMNS.fields]).add("x", "integer"), {}, SchemaMismatchError, "unknown=x"),
        (StructType().add("account", "string").add("amount", "double"), {}, SchemaMismatchError, "found=double"),
        (StructType([*COLUMNS.fields]).add("_offset", "long"), {}, SchemaMismatchError, "unknown=_offset"),
        (COLUMNS, {"topic": "absent"}, UnknownTopicOrPartitionError, "topic=absent"),
        (
            COLUMNS,
            {"transactionalId": "etl", "transactionTimeoutMs": "99999999"},
            InvalidTransactionTimeoutError,
            "99999999",
        ),
    ],
)
def test_write_is_refused_before_anything_is_uploaded(
    warehouse: Warehouse,
    schema: StructType,
    options: dict[str, str],
    refusal: type[TxnTableError],
    said: str,
) -> None:
    with pytest.raises(refusal, match=said):
        writer_of(warehouse, options, schema=schema)

    assert segment_files(warehouse) == []


def test_overwriting_is_refused_with_what_to_do_instead(warehouse: Warehouse) -> None:
    with pytest.raises(InvalidRequestError, match=r"mode\('append'\)"):
        writer_of(warehouse, overwrite=True)


def test_null_in_a_required_column_is_refused_at_the_commit_by_the_columns_name(warehouse: Warehouse) -> None:
    writer = writer_of(warehouse)
    messages = uploaded(writer, [rows("a")], [rows("b", None)])

    with pytest.raises(SchemaMismatchError, match="column=account"):
        writer.commit(messages)

    assert accounts(warehouse) == []


def test_commit_is_refused_when_the_topic_was_made_again(warehouse: Warehouse) -> None:
    writer = writer_of(warehouse)
    messages = uploaded(writer, [rows("a")])
    warehouse.admin().delete_topic("t")
    warehouse.admin().create_topic("t", partitions=2, schema=SCHEMA, key=["account"])

    with pytest.raises(UnknownTopicOrPartitionError, match="created again"):
        writer.commit(messages)


# -- what INSERT INTO hands over ----------------------------------------------------------------


def as_inserted(**given: Any) -> pa.RecordBatch:
    columns = {"account": ["a", "b"], "amount": [1, None], **given}
    arrays = [pa.array(columns.get(field.name, [None, None]), field.type) for field in AS_READ_ARROW]
    return pa.RecordBatch.from_arrays(arrays, schema=AS_READ_ARROW)


def test_columns_of_a_records_place_are_left_out_when_an_insert_leaves_them_null(warehouse: Warehouse) -> None:
    write(writer_of(warehouse, schema=AS_READ), [as_inserted()])

    found = warehouse.read_arrow("t").read_all()
    assert sorted(found.column("account").to_pylist()) == ["a", "b"]
    assert found.column("_timestamp").null_count == 0


def test_times_that_an_insert_gives_are_kept(warehouse: Warehouse) -> None:
    at = dt.datetime(2020, 1, 2, 3, 4, 5, tzinfo=dt.UTC)

    write(writer_of(warehouse, schema=AS_READ), [as_inserted(_timestamp=[at, None])])

    times = warehouse.read_arrow("t", columns=["_timestamp"]).read_all().column(0).to_pylist()
    earlier, later = sorted(times)
    assert earlier == at
    assert later.year > at.year


@pytest.mark.parametrize("column", ["_partition", "_offset", "_commit"])
def test_insert_by_position_is_refused_where_it_gives_a_records_place(warehouse: Warehouse, column: str) -> None:
    writer = writer_of(warehouse, schema=AS_READ)
    messages = uploaded(writer, [as_inserted(**{column: [None, 0]})])

    with pytest.raises(SchemaMismatchError, match=f"BY NAME.*column={column}"):
        writer.commit(messages)

    assert segment_files(warehouse) == []


# -- what only a read is told, and topics that are not there ---------------------------------------


@pytest.mark.parametrize("write", ["writer", "streamWriter"])
def test_write_with_options_of_reading_is_refused_before_anything_is_opened(write: str) -> None:
    source = TxnTableSource({"warehouse": "/nowhere", "topic": "t", "startingOffsets": "latest"})

    with pytest.raises(InvalidRequestError, match="topic=t options=startingOffsets"):
        getattr(source, write)(COLUMNS, False)


def test_insert_into_a_view_passes_over_what_it_says_for_reading(warehouse: Warehouse) -> None:
    write(writer_of(warehouse, {"isolationLevel": "read_committed", "filters": '[["amount", ">", 5]]'}, schema=AS_READ))

    assert accounts(warehouse) == []


@pytest.mark.parametrize("write", ["writer", "streamWriter"])
def test_write_to_a_mistyped_topic_is_answered_with_the_one_that_was_meant(warehouse: Warehouse, write: str) -> None:
    warehouse.admin().create_topic("orders", partitions=1)
    source = TxnTableSource({"warehouse": warehouse.url, "topic": "order", "transactionalId": "etl"})

    with pytest.raises(UnknownTopicOrPartitionError) as refused:
        getattr(source, write)(COLUMNS, False)

    assert refused.value.__notes__ == ["(did you mean orders?)"]


def test_dataframe_for_a_mistyped_topic_is_answered_with_the_one_that_was_meant(warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("orders", partitions=1)
    dataframe = SimpleNamespace(mapInArrow=None)

    with pytest.raises(UnknownTopicOrPartitionError) as refused:
        Transaction(warehouse.producer()).write("order", dataframe)

    assert refused.value.__notes__ == ["(did you mean orders?)"]

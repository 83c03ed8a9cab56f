"""Streams: each record of the source is in the topics exactly once, whoever dies and wherever."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

from tests.doubles.fault_plan import WRITES, Fault, Rule, Step
from tests.doubles.stepping_store import ProcessKilled, SteppingStore
from tests.simulation.crash_points import crash_point
from tests.spark.crashing import AFTER_COMMIT, INIT, TRAP, CrashingSource, has_sprung, set_trap
from tests.spark.stream_source import (
    RECORDS_IN_A_FILE,
    SETTLE_SECONDS,
    create_topics,
    drain,
    numbers_in,
    numbers_stream,
    write_files,
)
from tests.spark.streaming_program import EACH, SINK, UPLOADS
from txntable.producer.producer import Producer
from txntable.runtime.environment import SystemEnvironment
from txntable.spark.writing.batch_writer import BatchWriter
from txntable.storage.open import open_store
from txntable.warehouse.warehouse import Warehouse, open_on

ROOT = Path(__file__).parents[2]
FILES = 9
# The trap has to know the group that it kills, which is there when the program is.
WAIT_FOR_THE_TRAP = "import runpy; input(); runpy.run_module('tests.spark.streaming_program', run_name='__main__')"
# What the process does that commits; segments are uploaded by tasks.
COMMITTING = ["a constant file", "T COMMIT", "S MARKERS", "P PROJECT"]


def made(tmp_path: Path, *topics: str) -> Warehouse:
    warehouse = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    create_topics(warehouse, *topics)
    return warehouse


def sink(stream: Any, warehouse: Warehouse, topic: str, **options: str) -> Any:
    given = {"warehouse": warehouse.url, "topic": topic, "durability": "page-cache", **options}
    return stream.writeStream.format("txntable").options(**given)


def write_both(transaction: Any, numbers: Any) -> None:
    transaction.write("all", numbers)
    transaction.write("even", numbers.where("number % 2 = 0"))


def check_whole_batches(warehouse: Warehouse, topic: str, where: str) -> None:
    """What is visible are whole micro-batches, once."""
    found = numbers_in(warehouse, topic)
    assert set(found.values()) <= {1}, where
    assert set(Counter(number // RECORDS_IN_A_FILE for number in found).values()) <= {RECORDS_IN_A_FILE}, where


def even(numbers: Iterable[int]) -> Counter[int]:
    return Counter(number for number in numbers if number % 2 == 0)


# -- wherever a process dies ----------------------------------------------------------------


def test_each_record_is_in_both_topics_once_wherever_the_process_of_foreach_batch_dies(
    spark: Any, tmp_path: Path
) -> None:
    """The n-th run dies after the n-th write of a micro-batch; the next begins at the checkpoint with a new handle."""
    warehouse = made(tmp_path, "all", "even")
    sent = write_files(tmp_path / "source", FILES)
    stream = numbers_stream(spark, tmp_path / "source")
    died_after, writing = [], threading.Event()

    def write(transaction: Any, numbers: Any) -> None:
        writing.set()
        write_both(transaction, numbers)

    def run(*plan: Rule) -> SteppingStore:
        writing.clear()
        store = SteppingStore(open_store(warehouse.store.spec), plan)
        writer = open_on(store, SystemEnvironment()).batch_writer("stream", write)
        with suppress(StreamingQueryException):
            drain(stream.writeStream.foreachBatch(dying_as_spark_sees_it(writer)), tmp_path / "checkpoint")
        return store

    for deadly in itertools.count(1):
        store = run(nth_write_while(writing, deadly))
        if not store.killed:
            break
        died_after.append(point_of(store.steps[-1], warehouse))
        check_whole_batches(warehouse, "all", died_after[-1])
        assert numbers_in(warehouse, "even") == even(numbers_in(warehouse, "all")), died_after

    assert numbers_in(warehouse, "all") == Counter(sent)
    assert numbers_in(warehouse, "even") == even(sent)
    assert set(died_after) == set(COMMITTING)


def nth_write_while(event: threading.Event, number: int) -> Rule:
    return Rule(Fault.KILL_AFTER, lambda step: event.is_set() and step.operation in WRITES, number)


def dying_as_spark_sees_it(writer: BatchWriter) -> Callable[[Any, int], None]:
    """The callback, of which Spark sees an error when its process is dead; it goes on without."""

    def call(frame: Any, batch_id: int) -> None:
        try:
            writer(frame, batch_id)
        except ProcessKilled as killed:
            raise RuntimeError("the process is dead") from killed

    return call


def point_of(step: Step, warehouse: Warehouse) -> str:
    found = warehouse.store.get(step.path)
    assert found is not None
    return str(crash_point(step, {step.path: found}))


def test_each_record_is_in_the_topic_once_wherever_a_process_of_the_sink_is_killed(spark: Any, tmp_path: Path) -> None:
    """Each run ends by the death of the worker that made one of a micro-batch's writes."""
    warehouse = made(tmp_path, "all")
    sent = write_files(tmp_path / "source", FILES)
    spark.dataSource.register(CrashingSource)
    trap = tmp_path / "trap"
    query = sink(numbers_stream(spark, tmp_path / "source"), warehouse, "all", **{TRAP: str(trap)})

    for deadly in [INIT, "a segment", *COMMITTING, AFTER_COMMIT]:
        set_trap(trap, f"after {deadly}")
        with pytest.raises(StreamingQueryException):
            drain(query.format(CrashingSource.name()), tmp_path / "checkpoint")
        assert has_sprung(trap), deadly
        check_whole_batches(warehouse, "all", deadly)
    set_trap(trap, None)
    drain(query, tmp_path / "checkpoint")

    assert numbers_in(warehouse, "all") == Counter(sent)


# What dies with the whole program, JVM and all, and in which of its two streams.
DEADLY = [
    (EACH, f"before {UPLOADS}"),
    (SINK, "after a segment"),
    (SINK, "after S MARKERS"),
    (EACH, "after T COMMIT"),
    (SINK, f"after {AFTER_COMMIT}"),
    (EACH, f"after {AFTER_COMMIT}"),
]


@pytest.mark.nightly
def test_each_record_is_in_all_topics_once_when_the_program_is_killed_between_any_two_steps(tmp_path: Path) -> None:
    warehouse = made(tmp_path, "all", "even", "sunk")
    sent: list[int] = []

    for number, (stream, deadly) in enumerate(DEADLY):
        sent += write_files(tmp_path / "source", 1, first=number)
        assert run_program(tmp_path, {stream: deadly}) == -signal.SIGKILL, (stream, deadly)
        assert has_sprung(tmp_path / stream)
        for topic in ("all", "sunk"):
            check_whole_batches(warehouse, topic, deadly)
        assert numbers_in(warehouse, "even") == even(numbers_in(warehouse, "all")), deadly
    assert run_program(tmp_path, {}) == 0

    assert numbers_in(warehouse, "all") == numbers_in(warehouse, "sunk") == Counter(sent)
    assert numbers_in(warehouse, "even") == even(sent)


def run_program(folder: Path, deadly: dict[str, str]) -> int:
    with open(folder / "program.log", "ab") as log:
        program = subprocess.Popen(
            [sys.executable, "-c", WAIT_FOR_THE_TRAP, str(folder)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        for stream in (EACH, SINK):
            set_trap(folder / stream, deadly.get(stream), group=program.pid)
        program.communicate(b"go\n", timeout=SETTLE_SECONDS)
    return program.returncode


# -- a checkpoint that is gone, another one -------------------------------------------------


def each(stream: Any, warehouse: Warehouse, transactional_id: str) -> Any:
    writer = warehouse.batch_writer(transactional_id, lambda transaction, numbers: transaction.write("all", numbers))
    return stream.writeStream.foreachBatch(writer)


def sunk(stream: Any, warehouse: Warehouse, transactional_id: str) -> Any:
    return sink(stream, warehouse, "all", transactionalId=transactional_id)


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("writer", [each, sunk])
def test_a_stream_is_refused_when_it_begins_again_under_an_id_that_has_committed(
    writer: Callable[..., Any], batches: int, spark: Any, tmp_path: Path
) -> None:
    warehouse = made(tmp_path, "all")
    sent = write_files(tmp_path / "source", batches)
    stream = numbers_stream(spark, tmp_path / "source")
    drain(writer(stream, warehouse, "etl"), tmp_path / "first")

    with pytest.raises(StreamingQueryException, match="a transactional id of its own"):
        drain(writer(stream, warehouse, "etl"), tmp_path / "second")

    assert numbers_in(warehouse, "all") == Counter(sent)


def test_the_second_of_two_queries_with_one_batch_writer_is_refused_and_the_first_goes_on(
    spark: Any, tmp_path: Path
) -> None:
    warehouse = made(tmp_path, "all")
    sent = write_files(tmp_path / "source", 2)
    stream = numbers_stream(spark, tmp_path / "source")
    writer = warehouse.batch_writer("etl", lambda transaction, numbers: transaction.write("all", numbers))
    # The second query is at the number that the first one has next.
    drain(stream.writeStream.foreachBatch(lambda numbers, batch_id: None), tmp_path / "second")
    drain(stream.writeStream.foreachBatch(writer), tmp_path / "first")
    more = write_files(tmp_path / "source", 1, first=2)

    with pytest.raises(StreamingQueryException, match="a transactional id of its own"):
        drain(stream.writeStream.foreachBatch(writer), tmp_path / "second")
    drain(stream.writeStream.foreachBatch(writer), tmp_path / "first")

    assert numbers_in(warehouse, "all") == Counter([*sent, *more])


# -- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batchId": "1", "transactionalId": "etl"}, "batches of a stream have Spark's numbers"),
        ({"distributionMode": "hash"}, "cannot shuffle"),
        ({"speed": "high"}, "unknown=speed"),
    ],
)
def test_the_sink_refuses_options_that_streams_do_not_have(
    options: dict[str, str], message: str, spark: Any, tmp_path: Path
) -> None:
    warehouse = made(tmp_path, "all")
    write_files(tmp_path / "source", 1)

    with pytest.raises(StreamingQueryException, match=message):
        drain(sink(numbers_stream(spark, tmp_path / "source"), warehouse, "all", **options), tmp_path / "checkpoint")


def test_the_sink_asks_for_a_transactional_id_when_it_is_not_told_the_checkpoint(spark: Any, tmp_path: Path) -> None:
    warehouse = made(tmp_path, "all")
    write_files(tmp_path / "source", 1)
    spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path / "checkpoints"))
    try:
        query = sink(numbers_stream(spark, tmp_path / "source"), warehouse, "all").trigger(availableNow=True).start()
        with pytest.raises(StreamingQueryException, match="give the option transactionalId"):
            query.awaitTermination(SETTLE_SECONDS)
    finally:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")


def test_the_sink_refuses_to_replace_what_is_there(spark: Any, tmp_path: Path) -> None:
    warehouse = made(tmp_path, "all")
    write_files(tmp_path / "source", 1)
    counts = numbers_stream(spark, tmp_path / "source").groupBy("number").count().selectExpr("number")

    with pytest.raises(StreamingQueryException, match="outputMode\\('append'\\)"):
        drain(sink(counts, warehouse, "all").outputMode("complete"), tmp_path / "checkpoint")


def test_a_stream_of_other_columns_is_refused_before_anything_is_uploaded(spark: Any, tmp_path: Path) -> None:
    warehouse = made(tmp_path, "all")
    write_files(tmp_path / "source", 1)
    renamed = numbers_stream(spark, tmp_path / "source").withColumnRenamed("number", "digit")

    with pytest.raises(StreamingQueryException, match="unknown=digit"):
        drain(sink(renamed, warehouse, "all"), tmp_path / "checkpoint")

    assert not list((tmp_path / "wh" / "topics" / "all" / "_segments").glob("p*/*.parquet"))


# -- from topic to topic --------------------------------------------------------------------


def test_committed_records_go_from_topic_to_topic_once_over_restarts(spark: Any, tmp_path: Path) -> None:
    """Several files of each transaction come in several micro-batches; aborted and open ones never come."""
    warehouse = made(tmp_path, "source", "sunk", "all", "even")
    producer = warehouse.producer("upstream", transaction_timeout_ms=900_000)
    producer.init_transactions()
    stream = warehouse.read_stream(spark, "source", {"maxFilesPerTrigger": "1"}).select("number")
    batches = []

    def write(transaction: Any, numbers: Any) -> None:
        batches.append(numbers.count())
        write_both(transaction, numbers)

    def copy() -> None:
        # Each time with a new handle, as by a program that was started again.
        writer = Warehouse.open(warehouse.url, durability="page-cache").batch_writer("copy", write)
        drain(stream.writeStream.foreachBatch(writer), tmp_path / "each")
        drain(sink(stream, warehouse, "sunk"), tmp_path / "sink")

    with producer.transaction():
        send(producer, range(10))
        send(producer, range(10, 20))
    copy()
    producer.begin_transaction()
    send(producer, range(100, 110))
    copy()
    producer.abort_transaction()
    with producer.transaction():
        send(producer, range(20, 30))
        copy()
    copy()

    for topic in ("source", "sunk", "all"):
        assert numbers_in(warehouse, topic) == Counter(range(30)), topic
    assert numbers_in(warehouse, "even") == even(range(30))
    # An aborted transaction makes a version of the table without records: a micro-batch without any.
    assert [size for size in batches if size] == [5] * 6


def send(producer: Producer, numbers: Iterable[int]) -> None:
    for number in numbers:
        producer.send("source", row={"number": number}, partition=number % 2)
    producer.flush()


def test_running_streams_go_on_when_a_column_is_added(spark: Any, tmp_path: Path) -> None:
    warehouse = made(tmp_path, "sunk", "all", "even")
    write_files(tmp_path / "source", 1)
    numbers = numbers_stream(spark, tmp_path / "source").selectExpr("CAST(number AS INT) AS number")

    for file in range(2):
        drain(numbers.writeStream.foreachBatch(warehouse.batch_writer("copy", write_both)), tmp_path / "each")
        drain(sink(numbers, warehouse, "sunk"), tmp_path / "sink")
        for topic in ("sunk", "all", "even"):
            warehouse.admin().add_columns(topic, [pa.field("note", pa.string())])
        write_files(tmp_path / "source", 1, file + 1)

    for topic in ("sunk", "all"):
        assert numbers_in(warehouse, topic) == Counter(range(2 * RECORDS_IN_A_FILE)), topic


def test_nothing_of_a_batch_is_visible_when_its_function_fails(spark: Any, tmp_path: Path) -> None:
    warehouse = made(tmp_path, "all", "even")
    sent = write_files(tmp_path / "source", 1)
    stream = numbers_stream(spark, tmp_path / "source")

    def fail(transaction: Any, numbers: Any) -> None:
        write_both(transaction, numbers)
        transaction.flush()
        raise ValueError("no more of this")

    with pytest.raises(StreamingQueryException, match="no more of this"):
        drain(stream.writeStream.foreachBatch(warehouse.batch_writer("etl", fail)), tmp_path / "checkpoint")
    assert not numbers_in(warehouse, "all")

    drain(stream.writeStream.foreachBatch(warehouse.batch_writer("etl", write_both)), tmp_path / "checkpoint")
    assert numbers_in(warehouse, "all") == Counter(sent)
    assert numbers_in(warehouse, "even") == even(sent)

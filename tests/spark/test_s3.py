"""What Spark does with a warehouse on S3: jobs by their command lines, Delta's reader, ``format("txntable")``, streams.

Credentials are only in the storage options; the session is told of them by the jobs.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from typer.testing import CliRunner

from tests.spark.compacting import later_clock
from tests.spark.stream_source import create_topics, numbers_in
from txntable.cli.main import application
from txntable.format.layout import segments_root
from txntable.spark.s3a import s3a_settings
from txntable.spark.session import add_hadoop_settings
from txntable.spark.writing.writer_choice import SWITCH, UNREACHABLE, Wish
from txntable.testing.moto_server import LockedMotoServer
from txntable.warehouse.warehouse import Warehouse

pytestmark = pytest.mark.s3
URL = "s3://lake/wh"
TRIPS = "lake/wh/topics/trips"
RECORDS = 24
NUMBERS = pa.schema([pa.field("number", pa.int64())])
SECRET = "a-secret-of-storage"
# Spark by itself does not take it for a secret.
KEY_ID = "an-access-key-of-storage"


@pytest.fixture(scope="module")
def server() -> Iterator[LockedMotoServer]:
    with LockedMotoServer("lake") as running:
        yield running


@pytest.fixture(scope="module")
def options(server: LockedMotoServer) -> dict[str, str]:
    return {**server.storage_options, "AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET}


@pytest.fixture(scope="module")
def warehouse(options: dict[str, str]) -> Warehouse:
    """Trips in many small segments, with aborted ones among them."""
    made = Warehouse.create(URL, options)
    create_topics(made, "trips", "copied", "sums", "numbers")
    producer = made.producer("etl")
    producer.init_transactions()
    for number in range(RECORDS // 2 * 3 // 2):
        producer.begin_transaction()
        for partition in range(2):
            producer.send("trips", row={"number": number}, partition=partition)
        (producer.abort_transaction if number % 3 == 1 else producer.commit_transaction)()
    return made


@pytest.fixture
def told_session(spark: Any, warehouse: Warehouse) -> Any:
    """The session that was told of the warehouse's store, as jobs tell theirs."""
    add_hadoop_settings(spark, s3a_settings(URL, warehouse.store.spec.options))
    return spark


def told(options: dict[str, str], *arguments: str, url: str = URL) -> str:
    """What a command prints."""
    given = [word for name, value in options.items() for word in ("--storage-option", f"{name}={value}")]
    result = CliRunner().invoke(application, [*arguments, "--warehouse", url, *given, "--output", "json"])
    assert result.exit_code == 0, result.stderr
    assert SECRET not in result.stdout + result.stderr
    return result.stdout


def asked(options: dict[str, str], *arguments: str, url: str = URL) -> Any:
    """The answer of a command, as JSON."""
    return json.loads(told(options, *arguments, url=url))


def drain(writer: Any, checkpoint: str) -> None:
    """Run a stream to the end of its source."""
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    try:
        query.awaitTermination(120)
    finally:
        query.stop()


@pytest.mark.nightly
def test_demo_holds_every_check_it_makes(spark: Any, options: dict[str, str]) -> None:
    report = asked(options, "demo", "--months", "1", url="s3://lake/demo")

    assert len(report["checks"]) > 0
    assert [check for check in report["checks"] if not check["holds"]] == []


def test_pipeline_reads_each_record_once(spark: Any, warehouse: Warehouse, options: dict[str, str]) -> None:
    pipeline = ("pipeline", "--once", "--group", "sums", "--source", "trips")
    query = "sums=SELECT sum(number) AS number FROM trips"

    for _ in range(2):
        told(options, *pipeline, "--sql", query)

    assert numbers_in(warehouse, "sums") == {sum(numbers_in(warehouse, "trips").elements()): 1}


def test_compaction_on_executors_and_vacuum_and_the_coordinator_leave_every_record(
    spark: Any, warehouse: Warehouse, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    later_clock(monkeypatch)

    compacted = asked(options, "compact", "--once", "--engine", "spark", "--topic", "trips")
    told(options, "vacuum", "--execute")
    told(options, "transactions", "run", "--once")

    assert compacted[0]["merged_segments"] > compacted[0]["written_segments"] > 0
    assert asked(options, "sql", "SELECT count(*) AS trips FROM trips") == [{"trips": RECORDS}]


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_delta_spark_reads_the_public_table_and_its_past(told_session: Any, scheme: str) -> None:
    table = told_session.read.format("delta")

    assert table.load(f"{scheme}://{TRIPS}").count() == RECORDS
    assert table.option("versionAsOf", 0).load(f"{scheme}://{TRIPS}").count() == 0


def test_stream_of_the_public_table_reaches_another_topic_with_its_checkpoint_on_s3(
    told_session: Any, warehouse: Warehouse, options: dict[str, str]
) -> None:
    sink = {"warehouse": URL, "topic": "copied", **of_source(options)}
    stream = told_session.readStream.format("delta").load(f"s3://{TRIPS}").select("number")

    # No transactional id: the sink makes one of what the checkpoint says.
    drain(stream.writeStream.format("txntable").options(**sink), "s3a://lake/checkpoints/copy")
    drain(stream.writeStream.format("txntable").options(**sink), "s3a://lake/checkpoints/copy")

    assert numbers_in(warehouse, "copied") == numbers_in(warehouse, "trips")


def of_source(options: dict[str, str]) -> dict[str, str]:
    return {f"storage.{name}": value for name, value in options.items()}


def test_web_identity_that_the_options_name_is_asked_of_the_token_service(
    spark: Any, server: LockedMotoServer, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("header.claims.signature")
    server.make_bucket("identified")
    server.ask("PUT", "identified/empty")
    here = {name: server.storage_options[name] for name in ("AWS_REGION", "AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP")}
    role = {"role_arn": "arn:aws:iam::123456789012:role/reader", "web_identity_token_file": str(token)}
    settings = s3a_settings("s3://identified", {**here, **role, "sts_endpoint": server.endpoint})
    posts = server.requests["POST"]

    # A JVM of its own would have been started with these.
    for option in shlex.split(settings["spark.driver.extraJavaOptions"]):
        spark._jvm.java.lang.System.setProperty(*option.removeprefix("-D").split("=", 1))
    add_hadoop_settings(spark, settings)

    assert spark.read.text("s3://identified/empty").count() == 0
    assert server.requests["POST"] == posts + 1


@contextmanager
def event_log(spark: Any, folder: Path) -> Iterator[None]:
    """Let Spark write its event log while the block runs, as with ``spark.eventLog.enabled``."""
    context, jvm = spark.sparkContext._jsc.sc(), spark._jvm
    settings = context.getConf().set("spark.eventLog.compress", "false")
    place = (context.applicationId(), jvm.scala.Option.empty(), jvm.java.net.URI(folder.as_uri()))
    log = jvm.org.apache.spark.scheduler.EventLoggingListener(*place, settings, context.hadoopConfiguration())
    log.start()
    context.addSparkListener(log)
    try:
        yield
    finally:
        context.listenerBus().waitUntilEmpty()
        context.removeSparkListener(log)
        log.stop()


def create_view(spark: Any, name: str, given: dict[str, str]) -> None:
    told = ", ".join(f"`{option}` '{value}'" for option, value in given.items())
    spark.sql(f"CREATE TEMPORARY VIEW {name} USING txntable OPTIONS ({told})")


def test_secret_is_in_no_plan_no_event_and_no_error(
    told_session: Any,
    warehouse: Warehouse,
    options: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spark = told_session
    given = {"warehouse": URL, "topic": "numbers", **of_source(options)}
    (tmp_path / "any").touch()

    with event_log(spark, tmp_path):
        spark.range(3).withColumnRenamed("id", "number").write.format("txntable").options(**given).mode("append").save()
        spark.read.format("txntable").options(**given).load().explain(True)
        create_view(spark, "numbers", given)
        spark.sql("INSERT INTO numbers (number) VALUES (4)")
        spark.sql("SELECT * FROM numbers").collect()
        with pytest.raises(PySparkException, match="there is no such storage option") as refused:
            create_view(spark, "refused", {**given, "storage.azure_account_key": SECRET})
        # It tells the session's settings anew, and Hadoop's.
        spark.sparkContext.addFile(str(tmp_path / "any"))
    spark.catalog.dropTempView("numbers")

    events = "".join(path.read_text() for path in tmp_path.rglob("events_*"))
    assert "fs.s3a.bucket.lake.secret.key" in events
    assert "CreateTempViewUsing" in events
    shown = capsys.readouterr().out + str(spark.sparkContext.getConf().getAll()) + str(spark.sql("SET").collect())
    seen = events + shown + str(refused.value)
    assert [key for key in (SECRET, KEY_ID) if key in seen] == []


@pytest.fixture
def told_always(told_session: Any) -> Iterator[Any]:
    """The session, with Spark's writer for DataFrames of any size."""
    told_session.conf.set(SWITCH, Wish.ALWAYS.value)
    yield told_session
    told_session.conf.unset(SWITCH)


def test_sparks_writer_writes_to_s3_with_the_sessions_client(told_always: Any, options: dict[str, str]) -> None:
    warehouse = Warehouse.open(URL, options)
    warehouse.admin().create_topic("written", partitions=2, schema=NUMBERS)
    producer = warehouse.producer("by spark")
    producer.init_transactions()

    with producer.transaction() as transaction:
        written = transaction.write("written", told_always.range(0, 100, 1, 3).selectExpr("id AS number"))

    assert written.segments_by == "spark"
    numbers = warehouse.read_arrow("written", columns=["number"]).read_all()["number"].to_pylist()
    assert sorted(numbers) == list(range(100))
    paths = [meta.path for meta in warehouse.store.list(segments_root("written"))]
    assert sum("/parts/" in path for path in paths) == 3


def test_what_sparks_client_does_not_reach_is_written_in_python(told_always: Any, options: dict[str, str]) -> None:
    with LockedMotoServer("mirror") as other:
        warehouse = Warehouse.create("s3://mirror/wh", other.storage_options)
        warehouse.admin().create_topic("written", schema=NUMBERS)
        # Spark is told of a place where no server is.
        nowhere = s3a_settings("s3://mirror/wh", {**options, "AWS_ENDPOINT_URL": "http://127.0.0.1:1"})
        patience = {f"spark.hadoop.fs.s3a.bucket.mirror.{name}": "1" for name in ("attempts.maximum", "retry.limit")}
        add_hadoop_settings(told_always, {**nowhere, **patience})
        producer = warehouse.producer("by python")
        producer.init_transactions()

        with producer.transaction() as transaction:
            written = transaction.write("written", told_always.range(0, 100, 1, 3).selectExpr("id AS number"))

        assert written.segments_by == f"python: {UNREACHABLE}"
        assert warehouse.read_arrow("written").read_all().num_rows == 100

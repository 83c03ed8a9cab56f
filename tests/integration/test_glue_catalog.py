"""Topics in AWS Glue's Data Catalog: the documents that engines expect, pages, rivals, bad moments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from moto.glue.models import glue_backends
from typer.testing import CliRunner, Result

from tests.doubles.manual_environment import ManualEnvironment
from tests.integration.glue_server import MOST_ON_A_PAGE, GlueServer, document, glue_server
from txntable.catalog.glue_catalog import GlueCatalog
from txntable.catalog.plan import Action
from txntable.catalog.synchronisation import Outcome, SyncOptions, synchronise
from txntable.errors import InvalidConfigError, InvalidRequestError, StorePermissionError, StoreUnavailableError
from txntable.jobs.catalog import application
from txntable.storage.glue_tables import GlueTables
from txntable.storage.object_store import StoreSpec
from txntable.warehouse.warehouse import Warehouse

pytestmark = pytest.mark.s3
FLIGHTS = pa.schema(
    [
        pa.field("Carrier", pa.string(), nullable=False),
        pa.field("price", pa.decimal128(9, 2)),
        pa.field("left_at", pa.timestamp("us")),
        pa.field("stops", pa.list_(pa.field("element", pa.string()))),
    ]
)
PARTITION_KEYS = [
    {"Name": "_partition", "Type": "int"},
    {"Name": "_base_offset", "Type": "bigint"},
    {"Name": "_last_offset", "Type": "bigint"},
    {"Name": "_commit", "Type": "bigint"},
]
Call = Callable[..., Result]


@pytest.fixture(scope="module")
def running() -> Iterator[GlueServer]:
    with glue_server("lake") as started:
        yield started


@pytest.fixture
def glue(running: GlueServer) -> GlueServer:
    running.empty()
    return running


@pytest.fixture
def warehouse(glue: GlueServer, request: pytest.FixtureRequest) -> Warehouse:
    url = f"s3://lake/{re.sub('[^a-z0-9]', '-', request.node.name)}"
    made = Warehouse.create(url, storage_options=glue.server.storage_options)
    made.admin().create_topic("flights.2013", schema=FLIGHTS)
    return made


@pytest.fixture
def call(glue: GlueServer, warehouse: Warehouse) -> Call:
    """Call ``txntable catalog sync --glue`` on the warehouse."""
    options = [part for pair in glue.server.storage_options.items() for part in ("--storage-option", "=".join(pair))]
    where = ["--warehouse", warehouse.url, *options, "--database", "lake", "--endpoint", glue.server.endpoint]

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(application, ["sync", "--glue", *where, "--output", "json", *arguments])

    return run


def tables_of(glue: GlueServer, warehouse: Warehouse, database: str = "lake") -> GlueTables:
    return GlueTables(warehouse.store.spec, database, glue.server.endpoint, ManualEnvironment())


def sync(glue: GlueServer, warehouse: Warehouse) -> list[Outcome]:
    catalog = GlueCatalog(tables_of(glue, warehouse))
    return synchronise(warehouse, catalog, SyncOptions())


def shown(glue: GlueServer, name: str = "flights_2013") -> dict[str, Any]:
    return dict(glue.client.get_table(DatabaseName="lake", Name=name)["Table"])


def test_table_is_as_athena_spark_and_glue_know_a_delta_table(glue: GlueServer, warehouse: Warehouse) -> None:
    sync(glue, warehouse)

    settings = warehouse.admin().describe_topics()[0].settings
    location = f"{warehouse.url}/topics/flights.2013"
    assert document(shown(glue)) == {
        "Name": "flights_2013",
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {
            "EXTERNAL": "TRUE",
            "classification": "delta",
            "spark.sql.sources.provider": "delta",
            "table_type": "DELTA",
            "txntable.warehouse_id": warehouse.identity.warehouse_id,
            "txntable.prefix": "",
            "txntable.topic": "flights.2013",
            "txntable.topic_id": settings.topic_id,
        },
        "PartitionKeys": PARTITION_KEYS,
        "StorageDescriptor": {
            "Columns": [
                {"Name": "carrier", "Type": "string"},
                {"Name": "price", "Type": "decimal(9,2)"},
                {"Name": "left_at", "Type": "timestamp"},
                {"Name": "stops", "Type": "array<string>"},
                {"Name": "_offset_delta", "Type": "bigint"},
                {"Name": "_timestamp", "Type": "timestamp"},
            ],
            "Location": location,
            "InputFormat": "org.apache.hadoop.mapred.SequenceFileInputFormat",
            "OutputFormat": "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
            "SerdeInfo": {
                "SerializationLibrary": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
                "Parameters": {"serialization.format": "1", "path": location},
            },
        },
    }


def test_columns_in_glue_are_those_of_the_delta_log(glue: GlueServer, warehouse: Warehouse) -> None:
    sync(glue, warehouse)

    table = shown(glue)
    log = DeltaTable(table["StorageDescriptor"]["Location"], storage_options=glue.server.storage_options)
    keys = [each["Name"] for each in table["PartitionKeys"]]
    names = [each["Name"] for each in table["StorageDescriptor"]["Columns"]]
    assert keys == log.metadata().partition_columns
    assert [*names, *keys] == [field.name.lower() for field in log.schema().fields]


def test_second_run_asks_once_and_changes_nothing(glue: GlueServer, warehouse: Warehouse) -> None:
    sync(glue, warehouse)
    before = shown(glue)
    glue.asked.clear()

    (outcome,) = sync(glue, warehouse)

    assert (outcome.change.action, glue.asked) == (Action.KEEP, ["GetTables"])
    assert shown(glue) == before


def test_update_keeps_what_others_gave_the_table(glue: GlueServer, warehouse: Warehouse) -> None:
    sync(glue, warehouse)
    table = document(shown(glue))
    table["Description"], table["Parameters"]["team"] = "of 2013", "air"
    table["StorageDescriptor"]["Columns"][0]["Comment"] = "two letters"
    glue.client.update_table(DatabaseName="lake", TableInput=table)
    assert [one.change.action for one in sync(glue, warehouse)] == [Action.KEEP]

    warehouse.admin().add_columns("flights.2013", [pa.field("Seats", pa.int32())])
    (outcome,) = sync(glue, warehouse)

    after = document(shown(glue))
    assert (outcome.change.action, outcome.executed) == (Action.UPDATE, True)
    assert (after["Description"], after["Parameters"]["team"]) == ("of 2013", "air")
    columns = {each["Name"]: each for each in after["StorageDescriptor"]["Columns"]}
    assert columns["carrier"] == {"Name": "carrier", "Type": "string", "Comment": "two letters"}
    assert columns["seats"] == {"Name": "seats", "Type": "int"}


def _without_provider(table: dict[str, Any]) -> None:
    del table["Parameters"]["spark.sql.sources.provider"]


def _as_parquet(table: dict[str, Any]) -> None:
    table["StorageDescriptor"]["InputFormat"] = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"


def _without_path(table: dict[str, Any]) -> None:
    table["StorageDescriptor"]["SerdeInfo"]["Parameters"].pop("path")


def _without_columns(table: dict[str, Any]) -> None:
    table["StorageDescriptor"]["Columns"] = [{"Name": "col", "Type": "array<string>"}]


@pytest.mark.parametrize("spoil", [_without_provider, _as_parquet, _without_path, _without_columns])
def test_table_that_an_engine_would_take_for_something_else_is_mended(
    glue: GlueServer, warehouse: Warehouse, spoil: Callable[[dict[str, Any]], None]
) -> None:
    sync(glue, warehouse)
    right = document(shown(glue))
    spoiled = document(shown(glue))
    spoil(spoiled)
    glue.client.update_table(DatabaseName="lake", TableInput=spoiled)

    (outcome,) = sync(glue, warehouse)

    assert outcome.change.action is Action.UPDATE
    assert document(shown(glue)) == right


def test_tables_are_found_on_every_page(glue: GlueServer, warehouse: Warehouse) -> None:
    sync(glue, warehouse)
    for number in range(MOST_ON_A_PAGE + 20):
        # They are listed in the order they were made in: the first table again, as the last one.
        glue.client.create_table(DatabaseName="lake", TableInput={"Name": f"theirs_{number}"})
    ours = document(shown(glue))
    glue.client.delete_table(DatabaseName="lake", Name="flights_2013")
    glue.client.create_table(DatabaseName="lake", TableInput=ours)
    glue.asked.clear()

    assert [one.change.action for one in sync(glue, warehouse)] == [Action.KEEP]
    assert glue.asked == ["GetTables", "GetTables"]


def test_update_gives_way_to_who_was_first_and_decides_again(glue: GlueServer, warehouse: Warehouse) -> None:
    sync(glue, warehouse)
    warehouse.admin().add_columns("flights.2013", [pa.field("seats", pa.int32())])
    theirs = document(shown(glue))
    theirs["Description"] = "written in between"
    backend_update = _past_the_server(glue, theirs)
    glue.before_update = backend_update

    (outcome,) = sync(glue, warehouse)

    after = document(shown(glue))
    assert (outcome.change.action, outcome.executed) == (Action.UPDATE, True)
    assert glue.asked.count("UpdateTable") == 2
    assert after["Description"] == "written in between"
    assert {"Name": "seats", "Type": "int"} in after["StorageDescriptor"]["Columns"]


def _past_the_server(glue: GlueServer, table: dict[str, Any]) -> Callable[[], None]:
    """Return what changes a table while the server's one request is being answered."""
    backend = glue_backends["123456789012"]["us-east-1"]
    return lambda: backend.update_table("lake", table["Name"], table)


def test_busy_glue_is_asked_again(glue: GlueServer, warehouse: Warehouse) -> None:
    glue.busy = 4

    assert [one.executed for one in sync(glue, warehouse)] == [True]
    assert glue.busy == 0


def test_glue_that_stays_busy_is_an_error_that_may_pass(glue: GlueServer, warehouse: Warehouse) -> None:
    glue.busy = 10_000

    with pytest.raises(StoreUnavailableError, match=r"action=glue:GetTables .*Rate exceeded"):
        sync(glue, warehouse)


def test_database_that_is_not_there_is_named(glue: GlueServer, warehouse: Warehouse) -> None:
    with pytest.raises(InvalidRequestError, match="database=none"):
        list(tables_of(glue, warehouse, "none").list())


def test_endpoint_without_encryption_must_be_allowed(glue: GlueServer, warehouse: Warehouse) -> None:
    options = {**glue.server.storage_options, "AWS_ALLOW_HTTP": "false"}

    with pytest.raises(InvalidConfigError, match="option=endpoint"):
        GlueTables(StoreSpec("s3://lake/wh", options), "lake", glue.server.endpoint, ManualEnvironment())


def test_without_keys_nothing_is_asked(glue: GlueServer) -> None:
    with pytest.raises(StorePermissionError, match="AWS_ACCESS_KEY_ID"):
        GlueTables(StoreSpec("s3://lake/wh", {}), "lake", None, ManualEnvironment())


def test_command_says_what_it_would_do_does_it_and_then_has_nothing_to_do(
    glue: GlueServer, warehouse: Warehouse, call: Call
) -> None:
    dry, done, again = call("--dry-run"), call(), call()

    assert [result.exit_code for result in (dry, done, again)] == [0, 0, 0]
    told = [json.loads(result.stdout)[0] for result in (dry, done, again)]
    assert [(one["action"], one["executed"]) for one in told] == [("create", False), ("create", True), ("keep", False)]
    assert told[0]["topic"] == "flights.2013"


def test_command_refuses_a_name_that_is_taken_does_the_rest_and_fails(
    glue: GlueServer, warehouse: Warehouse, call: Call
) -> None:
    glue.client.create_table(DatabaseName="lake", TableInput={"Name": "flights_2013", "Description": "mine"})
    before = shown(glue)
    warehouse.admin().create_topic("new", schema=FLIGHTS)

    refused, prefixed = call(), call("--prefix", "wh_")

    assert (refused.exit_code, prefixed.exit_code) == (1, 0)
    assert {one["table"]: one["action"] for one in json.loads(refused.stdout)} == {
        "flights_2013": "refuse",
        "new": "create",
    }
    assert shown(glue) == before
    assert {one["table"] for one in json.loads(prefixed.stdout)} == {"wh_flights_2013", "wh_new"}


def test_warehouse_in_a_folder_is_refused_before_glue_is_asked(tmp_path) -> None:
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")

    result = CliRunner().invoke(application, ["sync", "--glue", "--warehouse", made.url, "--database", "lake"])

    assert result.exit_code == 1
    assert "s3 only" in result.stderr

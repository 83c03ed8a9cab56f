"""Topics in Unity Catalog, by its REST interface."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from tests.doubles.manual_environment import ManualEnvironment
from tests.integration.unity_double import TOKEN, UnityDouble, unity_double
from txntable.catalog.plan import Action
from txntable.catalog.synchronisation import Outcome, SyncOptions, synchronise
from txntable.catalog.unity_catalog import UnityCatalog
from txntable.catalog.unity_server import UnityServer
from txntable.errors import InvalidConfigError, InvalidRequestError, StorePermissionError, StoreUnavailableError
from txntable.jobs.catalog import TOKEN_VARIABLE, application
from txntable.warehouse.warehouse import Warehouse

SCHEMA = pa.schema(
    [
        pa.field("Carrier", pa.string(), nullable=False),
        pa.field("price", pa.decimal128(9, 2)),
        pa.field("at", pa.timestamp("us")),
        pa.field("parts", pa.struct([pa.field("Of", pa.list_(pa.field("element", pa.int16())))])),
        pa.field("tags", pa.map_(pa.string(), pa.int8())),
    ]
)


@pytest.fixture
def unity() -> Iterator[UnityDouble]:
    with unity_double() as running:
        yield running


@pytest.fixture
def warehouse(tmp_path) -> Warehouse:
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic("flights.2013", schema=SCHEMA)
    return made


def server_of(unity: UnityDouble, schema: str = "lake", token: str | None = TOKEN) -> UnityServer:
    return UnityServer(unity.url, ("unity", schema), token, ManualEnvironment())


def sync(unity: UnityDouble, warehouse: Warehouse) -> list[Outcome]:
    return synchronise(warehouse, UnityCatalog(server_of(unity)), SyncOptions(transactions=True))


def command(unity: UnityDouble, warehouse: Warehouse, *arguments: str) -> Result:
    where = ["--warehouse", warehouse.url, "--endpoint", unity.url, "--database", "unity.lake", "--output", "json"]
    return CliRunner(env={TOKEN_VARIABLE: TOKEN}).invoke(application, ["sync", "--unity", *where, *arguments])


def test_table_is_external_delta_with_the_columns_of_the_log(unity: UnityDouble, warehouse: Warehouse) -> None:
    sync(unity, warehouse)

    table = unity.tables["unity.lake.flights_2013"]
    columns = {column["name"]: column for column in table["columns"]}
    assert (table["table_type"], table["data_source_format"]) == ("EXTERNAL", "DELTA")
    assert table["storage_location"].startswith("file:///")
    assert table["storage_location"].endswith("/wh/topics/flights.2013")
    assert columns["Carrier"] == {
        "name": "Carrier",
        "type_text": "string",
        "type_json": '{"name":"Carrier","type":"string","nullable":false,"metadata":{}}',
        "type_name": "STRING",
        "position": 0,
        "nullable": False,
    }
    assert (columns["price"]["type_precision"], columns["price"]["type_scale"]) == (9, 2)
    assert [column["type_name"] for column in table["columns"]] == [
        *("STRING", "DECIMAL", "TIMESTAMP_NTZ", "STRUCT", "MAP", "LONG", "TIMESTAMP"),
        *("INT", "LONG", "LONG", "LONG"),
    ]
    assert {name: column["partition_index"] for name, column in columns.items() if "partition_index" in column} == {
        "_partition": 0,
        "_base_offset": 1,
        "_last_offset": 2,
        "_commit": 3,
    }


def test_catalog_follows_and_a_second_run_only_lists(unity: UnityDouble, warehouse: Warehouse) -> None:
    sync(unity, warehouse)
    unity.asked.clear()
    assert {one.change.action for one in sync(unity, warehouse)} == {Action.KEEP}
    assert set(unity.asked) == {"GET"}
    unity.tables["unity.lake.flights_2013"]["comment"] = "mine"
    unity.tables["unity.lake.flights_2013"]["properties"]["team"] = "air"

    warehouse.admin().add_columns("flights.2013", [pa.field("seats", pa.int32())])
    sync(unity, warehouse)
    changed = unity.tables["unity.lake.flights_2013"]
    warehouse.admin().delete_topic("flights.2013")
    sync(unity, warehouse)

    assert (changed["comment"], changed["properties"]["team"]) == ("mine", "air")
    assert "seats" in {column["name"] for column in changed["columns"]}
    assert unity.tables.keys() == {"unity.lake.txntable_transactions"}


def test_tables_of_others_on_any_page_are_seen_and_stay(unity: UnityDouble, warehouse: Warehouse) -> None:
    for name in ("a", "b", "c", "flights_2013"):
        unity.tables[f"unity.lake.{name}"] = {"name": name, "table_type": "MANAGED", "columns": None}
    before = json.dumps(unity.tables)

    result = command(unity, warehouse)

    assert result.exit_code == 1
    assert [(one["table"], one["action"]) for one in json.loads(result.stdout)] == [("flights_2013", "refuse")]
    assert json.dumps(unity.tables) == before


def test_command_registers_with_the_token_of_the_environment(unity: UnityDouble, warehouse: Warehouse) -> None:
    result = command(unity, warehouse, "--prefix", "p_")

    assert (result.exit_code, list(unity.tables)) == (0, ["unity.lake.p_flights_2013"])
    assert TOKEN not in result.output


def test_server_that_fails_is_asked_again(unity: UnityDouble, warehouse: Warehouse) -> None:
    unity.failing = 3

    assert all(one.executed for one in sync(unity, warehouse))


def test_server_that_keeps_failing_is_an_error_that_may_pass(unity: UnityDouble, warehouse: Warehouse) -> None:
    unity.failing = 10_000

    with pytest.raises(StoreUnavailableError, match="503"):
        sync(unity, warehouse)


def test_wrong_token_is_refused_and_not_shown(unity: UnityDouble) -> None:
    with pytest.raises(StorePermissionError, match="UNAUTHENTICATED") as raised:
        list(server_of(unity, token="wrong-token").list())
    assert "wrong-token" not in str(raised.value)


def test_schema_that_is_not_there_is_named(unity: UnityDouble) -> None:
    with pytest.raises(InvalidRequestError, match="schema=none"):
        list(server_of(unity, "none").list())


@pytest.mark.parametrize("url", ["unity.example", "ftp://unity.example", "http://unity.example"])
def test_url_that_is_no_servers_or_would_show_the_token_is_refused(url: str) -> None:
    with pytest.raises(InvalidConfigError, match="endpoint="):
        UnityServer(url, ("unity", "lake"), TOKEN, ManualEnvironment())

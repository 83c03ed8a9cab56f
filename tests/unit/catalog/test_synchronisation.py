"""A catalog follows a warehouse, whoever comes in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from deltalake import DeltaTable

from tests.doubles.memory_catalog import MemoryCatalog
from tests.simulation.site import TWO_COLUMNS
from tests.unit.catalog.wanting import by_hand
from txntable.catalog.plan import Action
from txntable.catalog.synchronisation import ATTEMPTS, Outcome, SyncOptions, synchronise
from txntable.catalog.table import FoundTable
from txntable.errors import StorePermissionError
from txntable.format.layout import TRANSACTION_LOG_ROOT
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture
def warehouse(tmp_path) -> Warehouse:
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    for topic in ("debits", "credits"):
        made.admin().create_topic(topic, schema=TWO_COLUMNS)
    return made


def sync(warehouse: Warehouse, catalog: MemoryCatalog, prefix: str = "", *, execute: bool = True) -> list[Outcome]:
    return synchronise(warehouse, catalog, SyncOptions(prefix, execute=execute))


def actions(outcomes: list[Outcome]) -> dict[str, Action]:
    return {outcome.change.table: outcome.change.action for outcome in outcomes}


def test_catalog_follows_topics_that_are_new_changed_deleted_and_made_again(warehouse: Warehouse) -> None:
    catalog, admin = MemoryCatalog(), warehouse.admin()

    assert actions(sync(warehouse, catalog)) == {"credits": Action.CREATE, "debits": Action.CREATE}
    first = dict(catalog.has)
    assert actions(sync(warehouse, catalog)) == {"credits": Action.KEEP, "debits": Action.KEEP}
    assert catalog.has == first

    admin.delete_topic("debits")
    admin.delete_topic("credits")
    admin.create_topic("credits", schema=TWO_COLUMNS)
    admin.create_topic("refunds", schema=TWO_COLUMNS)
    expected = {"credits": Action.UPDATE, "debits": Action.DROP, "refunds": Action.CREATE}
    assert actions(sync(warehouse, catalog, execute=False)) == expected
    assert catalog.has == first
    assert actions(sync(warehouse, catalog)) == expected
    assert catalog.has.keys() == {"credits", "refunds"}
    assert catalog.has["credits"].marks != first["credits"].marks


def test_added_column_comes_into_the_catalog(warehouse: Warehouse) -> None:
    catalog = MemoryCatalog()
    sync(warehouse, catalog)

    warehouse.admin().add_columns("debits", [TWO_COLUMNS.field("amount").with_name("fee")])

    assert actions(sync(warehouse, catalog))["debits"] is Action.UPDATE
    assert ("fee", "bigint") in (catalog.has["debits"].columns or ())


def test_two_prefixes_in_one_database_leave_each_other_alone(warehouse: Warehouse) -> None:
    catalog = MemoryCatalog()
    sync(warehouse, catalog)
    sync(warehouse, catalog, "p_")
    warehouse.admin().delete_topic("debits")

    sync(warehouse, catalog)

    assert catalog.has.keys() == {"credits", "p_credits", "p_debits"}


def test_table_of_somebody_else_stays_and_keeps_no_other_from_being_registered(warehouse: Warehouse) -> None:
    theirs = by_hand("credits")
    catalog = MemoryCatalog(theirs)

    outcomes = sync(warehouse, catalog)

    assert actions(outcomes) == {"credits": Action.REFUSE, "debits": Action.CREATE}
    assert [outcome.is_good for outcome in outcomes] == [False, True]
    assert catalog.has["credits"] == theirs


def test_table_that_fails_keeps_no_other_from_being_registered(warehouse: Warehouse) -> None:
    catalog = MemoryCatalog()
    catalog.refuses["credits"] = StorePermissionError("refused")

    outcomes = sync(warehouse, catalog)

    assert [(one.change.table, one.executed, one.is_good) for one in outcomes] == [
        ("credits", False, False),
        ("debits", True, True),
    ]


def _registers(catalog: MemoryCatalog, warehouse: Warehouse) -> None:
    sync(warehouse, catalog)


def _takes_the_name(catalog: MemoryCatalog, warehouse: Warehouse) -> None:
    catalog.has["debits"] = by_hand("debits")


@pytest.mark.parametrize(
    ("rival", "action", "executed"),
    [(_registers, Action.KEEP, False), (_takes_the_name, Action.REFUSE, False)],
)
def test_creation_gives_way_to_who_was_first(
    warehouse: Warehouse, rival: Callable[[MemoryCatalog, Warehouse], None], action: Action, executed: bool
) -> None:
    warehouse.admin().delete_topic("credits")
    catalog = MemoryCatalog()
    catalog.before = lambda: rival(catalog, warehouse)

    (outcome,) = sync(warehouse, catalog)

    assert (outcome.change.action, outcome.executed) == (action, executed)


def _recreates_the_topic(catalog: MemoryCatalog, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("debits", schema=TWO_COLUMNS)
    sync(warehouse, catalog)


def _drops(catalog: MemoryCatalog, warehouse: Warehouse) -> None:
    del catalog.has["debits"]


@pytest.mark.parametrize(
    ("rival", "action", "has"),
    [
        (_recreates_the_topic, Action.WAIT, True),
        (_takes_the_name, Action.WAIT, True),
        (_drops, Action.DROP, False),
    ],
)
def test_drop_gives_way_to_what_the_table_has_become(
    warehouse: Warehouse, rival: Callable[[MemoryCatalog, Warehouse], None], action: Action, has: bool
) -> None:
    catalog = MemoryCatalog()
    sync(warehouse, catalog)
    warehouse.admin().delete_topic("debits")
    catalog.before = lambda: rival(catalog, warehouse)

    outcomes = sync(warehouse, catalog)

    assert actions(outcomes)["debits"] is action
    assert ("debits" in catalog.has) is has


def test_table_that_others_keep_changing_is_left_to_the_next_run(warehouse: Warehouse) -> None:
    warehouse.admin().delete_topic("credits")
    catalog = MemoryCatalog()
    sync(warehouse, catalog)
    looks = []

    def restless(name: str) -> FoundTable | None:
        # Each look shows another version than the change meets.
        looks.append(name)
        found = replace(catalog.has[name], columns=())
        catalog.has[name] = replace(found, version=f"{len(looks)}-changed")
        return found

    catalog.table = restless  # type: ignore[method-assign]
    catalog.has["debits"] = replace(catalog.has["debits"], columns=())

    (outcome,) = sync(warehouse, catalog)

    assert (outcome.change.action, outcome.executed, len(looks)) == (Action.WAIT, False, ATTEMPTS)


def test_topic_that_another_run_registers_meanwhile_is_not_dropped(warehouse: Warehouse) -> None:
    """The catalog is listed before the topics: the other way round, this run would not know the topic of a table."""
    catalog = MemoryCatalog()
    listed = catalog.tables

    def registered_meanwhile() -> list[FoundTable]:
        catalog.tables = listed  # type: ignore[method-assign]
        warehouse.admin().create_topic("refunds", schema=TWO_COLUMNS)
        sync(warehouse, catalog)
        return list(listed())

    catalog.tables = registered_meanwhile  # type: ignore[method-assign]

    outcomes = sync(warehouse, catalog)

    assert actions(outcomes) == dict.fromkeys(("credits", "debits", "refunds"), Action.KEEP)
    assert catalog.has.keys() == {"credits", "debits", "refunds"}


def test_transaction_log_is_a_table_while_it_is_asked_for(warehouse: Warehouse) -> None:
    catalog = MemoryCatalog()

    synchronise(warehouse, catalog, SyncOptions("p_", transactions=True))
    table = catalog.has["p_txntable_transactions"]
    again = synchronise(warehouse, catalog, SyncOptions("p_", transactions=True))
    without = sync(warehouse, catalog, "p_")

    log = DeltaTable(f"{warehouse.url}/{TRANSACTION_LOG_ROOT}")
    assert (table.location or "").endswith("/wh/system/transaction_log")
    assert [name for name, _ in table.columns or ()] == [field.name for field in log.schema().fields]
    assert actions(again)["p_txntable_transactions"] is Action.KEEP
    assert actions(without)["p_txntable_transactions"] is Action.DROP

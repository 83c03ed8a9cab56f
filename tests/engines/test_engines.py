"""Engines that know nothing of us see exactly the committed rows of public tables: `make engines`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.servers import MissingPartError
from tests.engines.session import ENGINES, Rows, Session, opened, read_by_kernel
from tests.engines.shop import CLOSED, LATEST, ORDERS, PAYMENTS, Shop, names_of, whole, write_shop
from txntable.format.layout import public_root
from txntable.warehouse.warehouse import Warehouse

TOPICS = (ORDERS, PAYMENTS, LATEST, CLOSED)
LATER = "later"
# PROTOCOL.md §10.
POSITION = """SELECT coalesce(min(_decision) FILTER (WHERE _state IN ('PREPARE_COMMIT', 'PREPARE_ABORT')) - 1,
max(_position)) AS position FROM transactions"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("engines")


@pytest.fixture(scope="session")
def shop(folder: Path) -> Shop:
    return write_shop(folder / "shop")


@pytest.fixture(scope="session")
def live(folder: Path) -> Warehouse:
    """Another warehouse, which is written while engines read it."""
    warehouse = Warehouse.create(str(folder / "live"), durability="page-cache")
    warehouse.admin().create_topic(LATER, partitions=1)
    return warehouse


@pytest.fixture(scope="session", params=ENGINES)
def session(request: pytest.FixtureRequest, shop: Shop, live: Warehouse, folder: Path) -> Iterator[Session]:
    tables = {topic: f"{shop.warehouse.url}/{public_root(topic)}" for topic in TOPICS}
    tables |= {"transactions": f"{shop.warehouse.url}/system/transaction_log"}
    tables |= {LATER: f"{live.url}/{public_root(LATER)}"}
    try:
        with opened(request.param, tables, folder) as found:
            yield found
    except MissingPartError as missing:
        pytest.skip(str(missing))


# -- what an engine makes of a value ----------------------------------------------------------


def as_shown_by(engine: str, row: dict[str, Any]) -> dict[str, Any]:
    """What docs/how-to/sql.md says that an engine cannot show."""
    shown = dict(row)
    if engine == "clickhouse":
        # It has no null of these, and no time without a zone.
        if "address" in shown and shown["address"] is None:
            shown["address"] = dict.fromkeys(("street", "tags", "city"))
        if "address" in shown and shown["address"]["tags"] is None:
            shown["address"] = shown["address"] | {"tags": []}
        shown |= {name: [] for name in ("numbers", "lines") if name in shown and shown[name] is None}
        shown |= {"counts": {}} if "counts" in shown and shown["counts"] is None else {}
        shown |= {"local": f"{shown['local']}+00:00"} if shown.get("local") is not None else {}
    if engine == "trino" and shown.get("at") is not None:
        assert shown["at"] == "2013-03-31T01:59:59.999999+00:00", "it has milliseconds of a time with a zone"
        shown["at"] = "2013-03-31T02:00:00.000000+00:00"
    return shown


def by_offset(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: (row["_partition"], row["_offset"]))


def wanted(shop: Shop, topic: str, engine: str, position: int | None = None) -> Rows:
    rows = [row for row in shop.expected[topic] if position is None or row["_commit"] <= position]
    return by_offset([as_shown_by(engine, whole(topic, row)) for row in rows])


def found(topic: str, rows: Rows) -> Rows:
    """Rows of an engine, with the offset that SQL computes, and with our names: some have lower case only."""
    known = {name.lower(): name for name in ("_partition", "_offset", "_timestamp", *names_of(topic))}
    for row in rows:
        row["_offset"] = row["_base_offset"] + row["_offset_delta"]
        assert row["_base_offset"] <= row["_offset"] <= row["_last_offset"]
    return by_offset([{known[n.lower()]: v for n, v in row.items() if n.lower() in known} for row in rows])


# -- the rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", TOPICS)
def test_engine_sees_the_committed_rows_and_nothing_else(session: Session, shop: Shop, topic: str) -> None:
    assert found(topic, session.rows(f"SELECT * FROM {topic}")) == wanted(shop, topic, session.engine)


@pytest.mark.parametrize("topic", TOPICS)
def test_delta_kernel_sees_the_committed_rows_and_nothing_else(shop: Shop, topic: str) -> None:
    try:
        rows = read_by_kernel(f"{shop.warehouse.url}/{public_root(topic)}")
    except MissingPartError as missing:
        pytest.skip(str(missing))

    assert found(topic, rows) == wanted(shop, topic, "kernel")


def test_engine_sees_a_transaction_that_commits_between_two_statements(session: Session, live: Warehouse) -> None:
    def count() -> int:
        (row,) = session.rows(f"SELECT count(*) AS n FROM {LATER}")
        n: int = row["n"]
        return n

    before = count()
    with live.producer("later") as producer:
        producer.init_transactions()
        for outcome in (producer.commit_transaction, producer.abort_transaction):
            producer.begin_transaction()
            producer.send(LATER, value=b"x")
            producer.flush()
            outcome()

    assert count() == before + 1


# -- filters ----------------------------------------------------------------------------------

CONDITIONS = {
    "_partition = 1": lambda row: row["_partition"] == 1,
    "amount > 9 AND amount <= 41": lambda row: 9 < row["amount"] <= 41,
    "account = 'a2'": lambda row: row["account"] == "a2",
    "price < 0": lambda row: row["price"] is not None and row["price"] < 0,
    "paid IS NULL": lambda row: row["paid"] is None,
    "note IS NULL": lambda row: row.get("note") is None,
    "note = 'n40'": lambda row: row.get("note") == "n40",
    "address.city = 'Köln'": lambda row: row["address"] is not None and row["address"].get("city") == "Köln",
    "day < DATE '1970-01-01'": lambda row: row["day"] is not None,
    "single > 1e30": lambda row: row["single"] is not None and row["single"] > 0,
    "isnan(ratio)": lambda row: row["ratio"] is not None and row["ratio"] != row["ratio"],
}

IS_NAN = {"trino": "is_nan", "clickhouse": "isNaN"}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_engine_finds_the_same_rows_where_it_prunes_files(session: Session, shop: Shop, condition: str) -> None:
    rows = [row for row in shop.expected[ORDERS] if CONDITIONS[condition](row)]
    spelled = condition.replace("isnan", IS_NAN.get(session.engine, "isnan"))

    answer = session.rows(f"SELECT _partition, _base_offset + _offset_delta AS _offset FROM {ORDERS} WHERE {spelled}")

    assert rows
    assert by_offset(answer) == by_offset([{name: row[name] for name in ("_partition", "_offset")} for row in rows])


# What skips row groups by footers that leave NaN out, although it takes NaN for larger, or for not smaller.
HIDDEN = {
    ("duckdb", "ratio > 5"),
    ("duckdb", "NOT (ratio < 5)"),
    ("clickhouse", "NOT (ratio < 5)"),
}


@pytest.mark.parametrize("condition", ["ratio > 5", "ratio >= 0", "NOT (ratio < 5)"])
def test_engine_compares_nan_alike_whether_it_prunes_or_not(session: Session, condition: str) -> None:
    """But where docs/how-to/sql.md says that it does not: then rows with a NaN are missing, and no others."""
    columns = "_partition, _base_offset + _offset_delta AS _offset, CAST(ratio AS DOUBLE) AS ratio"
    filtered = session.rows(f"SELECT {columns} FROM {ORDERS} WHERE {condition}")
    shown = session.rows(f"SELECT {columns}, CASE WHEN {condition} THEN 1 ELSE 0 END AS hit FROM {ORDERS}")

    hits = by_offset([row for row in shown if row.pop("hit")])
    missing = [row for row in hits if row not in filtered]

    assert filtered
    assert by_offset([*filtered, *missing]) == hits
    assert all(row["ratio"] == "nan" for row in missing)
    assert bool(missing) == ((session.engine, condition) in HIDDEN)


# -- two topics as of one moment --------------------------------------------------------------


def test_position_in_sql_is_below_a_transaction_that_is_in_one_table_only(session: Session, shop: Shop) -> None:
    assert session.rows(POSITION) == [{"position": shop.published}]
    assert wanted(shop, PAYMENTS, session.engine) != wanted(shop, PAYMENTS, session.engine, shop.published)


@pytest.mark.parametrize("topic", [ORDERS, PAYMENTS])
def test_engine_sees_the_snapshot_at_every_decision(session: Session, shop: Shop, topic: str) -> None:
    decisions = {row["_commit"] for row in shop.expected[topic]} | {shop.published}

    positions = [each for each in sorted(decisions) if shop.merged_through <= each <= shop.published]

    assert len(positions) > 3
    for position in positions:
        rows = session.rows(f"SELECT * FROM {topic} WHERE _commit <= {position}")
        assert found(topic, rows) == wanted(shop, topic, session.engine, position)


def test_one_statement_over_two_topics_sees_whole_transactions(session: Session, shop: Shop) -> None:
    """Orders and payments of a transaction have the same amounts, with opposite signs."""

    def balances(condition: str) -> set[int]:
        both = " UNION ALL ".join(
            f"SELECT _commit, amount FROM {topic} WHERE {condition}" for topic in (ORDERS, PAYMENTS)
        )
        rows = session.rows(
            f"SELECT _commit, CAST(sum(amount) AS BIGINT) AS balance FROM ({both}) AS t GROUP BY _commit"
        )
        return {row["balance"] for row in rows}

    since = f"_commit > {shop.merged_through}"
    (row,) = session.rows(POSITION)

    assert balances(f"{since} AND _commit <= {row['position']}") == {0}
    assert balances(since) == {0, -(45 + 46 + 47)}, "without the position a part of a transaction is seen"

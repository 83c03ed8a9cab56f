"""Two topics as of one moment in other engines ÷ the two tables as they are: what the position costs there.

Both sum a column over 100 segments of each of two topics; the snapshot asks for the position first, and compares
`_commit` with it.  The engines are those of ``make engines``, which sets them up; one that is not there is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.measurement import Figure, alternate_costs, paired_ratio
from tests.engines.servers import MissingPartError
from tests.engines.session import ENGINES, Session, opened
from tests.engines.test_engines import POSITION
from tests.simulation.site import TWO_COLUMNS
from txntable.format.layout import public_root
from txntable.warehouse.warehouse import Warehouse

_TOPICS, _TRANSACTIONS, _ROWS, _RUNS = ("debit", "credit"), 100, 1_000, 15


def measure(folder: Path) -> list[Figure]:
    """Return the ratios of both in each engine, of wall and of CPU seconds."""
    warehouse = _written(folder / "wh")
    tables = {topic: f"{warehouse.url}/{public_root(topic)}" for topic in _TOPICS}
    tables["transactions"] = f"{warehouse.url}/system/transaction_log"
    return [figure for engine in ENGINES for figure in _measured(engine, tables, folder)]


def _written(folder: Path) -> Warehouse:
    warehouse = Warehouse.create(str(folder), durability="page-cache")
    for topic in _TOPICS:
        warehouse.admin().create_topic(topic, partitions=1, schema=TWO_COLUMNS)
    with warehouse.producer("etl") as producer:
        producer.init_transactions()
        for number in range(_TRANSACTIONS):
            with producer.transaction():
                for topic, sign in zip(_TOPICS, (-1, 1), strict=True):
                    for row in range(_ROWS):
                        producer.send(topic, row={"account": f"a{row}", "amount": sign * number})
    return warehouse


def _measured(engine: str, tables: dict[str, str], folder: Path) -> Iterator[Figure]:
    try:
        with opened(engine, tables, folder) as session:
            costs = alternate_costs(_RUNS, lambda: _sum_of_snapshot(session), lambda: _sum(session, ""))
    except MissingPartError as missing:
        print(f"{engine} is left out: {missing}")
        return
    for (pinned, plain), what in zip(costs, ("wall", "CPU"), strict=True):
        yield paired_ratio(f"{engine}: one position ÷ tables, {what}", pinned, plain)


def _sum(session: Session, condition: str) -> None:
    both = " UNION ALL ".join(f"SELECT amount FROM {topic} {condition}" for topic in _TOPICS)
    rows = session.rows(f"SELECT CAST(sum(amount) AS BIGINT) AS balance, count(*) AS n FROM ({both}) AS t")
    assert rows == [{"balance": 0, "n": len(_TOPICS) * _TRANSACTIONS * _ROWS}]


def _sum_of_snapshot(session: Session) -> None:
    (row,) = session.rows(POSITION)
    _sum(session, f"WHERE _commit <= {row['position']}")

"""A retention is set too short, or records are deleted below a wrong offset, and the page is followed as it stands.

Lost: nothing, until vacuum takes the files.  What is gone is read at a moment before, and written again, once.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.drills.runbook import Shell, sections
from tests.simulation.site import TWO_COLUMNS
from txntable.compaction.compactor import compact
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse

TITLE = "A retention set too short"
DAY_MS = 86_400_000


def set_too_short(warehouse: Warehouse) -> None:
    warehouse.admin().alter_configs("paid", {"retention.ms": str(DAY_MS)})
    compact(warehouse)


def delete_too_much(warehouse: Warehouse) -> None:
    warehouse.admin().delete_records({TopicPartition("paid", partition): 2 for partition in range(2)})


def amounts(warehouse: Warehouse) -> dict[int, dt.datetime]:
    """What is there, with its times."""
    found = warehouse.read_arrow("paid").read_all()
    assert found.num_rows == len(set(found["amount"].to_pylist())), "something is there twice"
    return dict(zip(found["amount"].to_pylist(), found["_timestamp"].to_pylist(), strict=True))


@pytest.mark.parametrize("mistake", [set_too_short, delete_too_much])
def test_records_that_are_gone_are_read_before_the_mistake_and_written_again(
    tmp_path: Path, mistake: Callable[[Warehouse], object]
) -> None:
    place = str(tmp_path / "warehouse")
    warehouse = Warehouse.create(place, durability="page-cache")
    warehouse.admin().create_topic("paid", partitions=2, schema=TWO_COLUMNS)
    old_ms = warehouse.context.clock.now_ms() - 3 * DAY_MS
    with warehouse.producer("etl") as producer:
        producer.init_transactions()
        for amount in range(6):
            with producer.transaction() as txn:
                txn.send(
                    "paid", row={"account": str(amount), "amount": amount}, partition=amount % 2, timestamp_ms=old_ms
                )
        with producer.transaction() as txn:
            txn.send("paid", row={"account": "new", "amount": 6}, partition=0)
    before = amounts(warehouse)
    moment = dt.datetime.fromtimestamp(warehouse.context.clock.now_ms() / 1000, tz=dt.UTC)
    mistake(warehouse)
    assert len(amounts(warehouse)) < len(before) == 7

    meant = {
        "s3://my-lake/warehouse": place,
        "datetime(2026, 11, 27, 9, 0, tzinfo=UTC)": f'datetime.fromisoformat("{moment.isoformat()}")',
    }
    shell = Shell(tmp_path, {"TXNTABLE_WAREHOUSE": place}, meant)
    (program,) = sections()[TITLE].programs
    for shown, here in meant.items():
        program = program.replace(shown, here)
    (tmp_path / "bring_back.py").write_text(program)
    shell.follow(TITLE)
    shell.run("python bring_back.py")
    shell.run("python bring_back.py", code=1)
    compact(Warehouse.open(place))

    assert amounts(Warehouse.open(place)) == before

"""A retention is set too short, records are deleted below a wrong offset, or the file that compaction made is lost.

The page is followed as it stands.  Lost: nothing, until vacuum takes the files.  What is gone is read at a moment
before, and written again, once; and a group that had read it does not read it again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.drills.runbook import Shell, sections
from tests.simulation.rubbish import merge
from tests.simulation.site import TWO_COLUMNS
from txntable.compaction.compactor import compact
from txntable.errors import DamagedDataError
from txntable.format.records import TopicPartition
from txntable.log.actions import Add
from txntable.partition.batch import batch_of
from txntable.warehouse.warehouse import Warehouse

TITLE = "A retention set too short"
DAY_MS = 86_400_000


def set_too_short(warehouse: Warehouse) -> None:
    warehouse.admin().alter_configs("paid", {"retention.ms": str(DAY_MS)})
    compact(warehouse)


def delete_too_much(warehouse: Warehouse) -> None:
    warehouse.admin().delete_records({TopicPartition("paid", partition): 2 for partition in range(2)})


def lose_merged_segment(warehouse: Warehouse) -> None:
    """Lose what compaction made of the first partition, and do what the page says of a lost segment."""
    merge(warehouse, "paid")
    paid = warehouse.topic_log("paid")
    (lost,) = [batch_of(add) for add in paid.segments.refresh().files if is_merged(add)]
    warehouse.store.delete([f"{paid.segments.root}/{lost.path}"])
    with pytest.raises(DamagedDataError):
        warehouse.read_arrow("paid").read_all()
    warehouse.admin().delete_records({TopicPartition("paid", 0): lost.last_offset + 1})


def is_merged(add: Add) -> bool:
    return add.partition_values["_control"] is None and batch_of(add).partition == 0 and batch_of(add).records > 1


def read_on(warehouse: Warehouse) -> list[int]:
    """What the group reads next, and commits."""
    with warehouse.consumer(group_id="reports", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["paid"])
        polled = [consumer.poll(timeout_ms=timeout_ms) for timeout_ms in (10_000, 0, 0)]
        consumer.commit()
        return sorted(record.row["amount"] for found in polled for each in found.values() for record in each)


def amounts(warehouse: Warehouse) -> dict[int, dt.datetime]:
    """What is there, with its times."""
    found = warehouse.read_arrow("paid").read_all()
    assert found.num_rows == len(set(found["amount"].to_pylist())), "something is there twice"
    return dict(zip(found["amount"].to_pylist(), found["_timestamp"].to_pylist(), strict=True))


def send_seven(warehouse: Warehouse) -> None:
    """Six records of three days ago, each in its transaction, and one of now."""
    warehouse.admin().create_topic("paid", partitions=2, schema=TWO_COLUMNS)
    old_ms = warehouse.context.clock.now_ms() - 3 * DAY_MS
    with warehouse.producer("etl") as producer:
        producer.init_transactions()
        for amount in range(6):
            row = {"account": str(amount), "amount": amount}
            with producer.transaction() as txn:
                txn.send("paid", row=row, partition=amount % 2, timestamp_ms=old_ms)
        with producer.transaction() as txn:
            txn.send("paid", row={"account": "new", "amount": 6}, partition=0)


@pytest.mark.parametrize("mistake", [set_too_short, delete_too_much, lose_merged_segment])
def test_records_that_are_gone_are_read_before_the_mistake_and_written_again(
    tmp_path: Path, mistake: Callable[[Warehouse], object]
) -> None:
    place = str(tmp_path / "warehouse")
    warehouse = Warehouse.create(place, durability="page-cache")
    send_seven(warehouse)
    before = amounts(warehouse)
    assert read_on(warehouse) == list(range(7))
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
    shell.follow(TITLE, 1)
    compact(Warehouse.open(place))

    assert amounts(Warehouse.open(place)) == before
    with Warehouse.open(place).producer() as later:
        later.send("paid", row={"account": "later", "amount": 7}, partition=0)
    assert read_on(Warehouse.open(place)) == [7]

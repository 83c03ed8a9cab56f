"""Each log without its newest entries, and everybody who might go on: nobody puts an entry in the place of a lost one.

As long as the places are free, whoever restores the entries has everything again.  What was lost of each log was
acknowledged: a decision, offsets that count, records that are published.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa
import pytest

from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.lost_ends import entries_of
from tests.unit.reading import TOPIC, leave_open, plain, site_with_topic, transactional
from tests.unit.upkeep.coordinating import DAY_MS, run_once
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.consumer.consumer import Consumer
from txntable.errors import BatchAlreadyCommittedError, TopicAlreadyExistsError, TxnTableError
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT
from txntable.format.records import TopicPartition
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

FIRST = TopicPartition(TOPIC, 0)
GROUP = "readers"
OTHER = "v"
S = f"topics/{TOPIC}/_segments"


def transfer(producer: Producer, batch_id: str | None = None, offset: int | None = None, topic: str = TOPIC) -> None:
    with producer.transaction(batch_id) as transaction:
        transaction.send(topic, row={"account": "ann", "amount": 1})
        if offset is not None:
            producer.send_offsets_to_transaction({FIRST: offset}, GROUP)


def site_with_entries(*, has_groups: bool) -> Site:
    """Three transactions of one id, with or without offsets, behind an open one; and a record of no transaction."""
    site, warehouse = site_with_topic(partitions=1)
    warehouse.admin().create_topic(OTHER, schema=TWO_COLUMNS)
    leave_open(site.open(), "open")
    plain(site.open(), "eve")
    producer = transactional(warehouse)
    for number in range(ALL):
        transfer(producer, f"batch-{number}", number + 1 if has_groups else None)
    producer.close()
    return site


def consume(warehouse: Warehouse, begin: Callable[[Consumer], object]) -> None:
    consumer = warehouse.consumer(group_id=GROUP, background_heartbeat=False, auto_offset_reset="earliest")
    begin(consumer)
    consumer.poll()
    consumer.commit()
    consumer.close()


ACTORS: dict[str, Callable[[Site], object]] = {
    "the same id": lambda site: transfer(transactional(site.open())),
    "the same id in another topic": lambda site: transfer(transactional(site.open()), topic=OTHER),
    "the same batch": lambda site: transfer(transactional(site.open()), "batch-2"),
    "the same id with offsets": lambda site: transfer(transactional(site.open()), offset=9),
    "another id": lambda site: transfer(transactional(site.open(), "another")),
    "a producer without an id": lambda site: plain(site.open(), "eve"),
    "a member of the group": lambda site: consume(site.open(), lambda it: it.subscribe([TOPIC])),
    "an assigned consumer of the group": lambda site: consume(site.open(), lambda it: it.assign([FIRST])),
    "the job": run_once,
    "compaction": lambda site: compact(site.open()),
    "vacuum": lambda site: vacuum(site.open(), execute=True),
    "completion": lambda site: site.open().complete(),
    "a snapshot": lambda site: site.open().snapshot(),
    "a reader": lambda site: site.open().read_arrow(TOPIC, isolation_level="read_committed").read_all(),
    "an abort": lambda site: site.open().admin().abort_transaction("open"),
    "a fence": lambda site: site.open().admin().fence_producers(["etl", "open", "another"]),
    "new settings": lambda site: site.open().admin().alter_warehouse({"vacuum_retention_ms": 40 * DAY_MS}),
    "new settings of the topic": lambda site: site.open().admin().alter_configs(TOPIC, {"retention.ms": DAY_MS}),
    "more partitions": lambda site: site.open().admin().create_partitions({TOPIC: 2}),
    "a new column": lambda site: site.open().admin().add_columns(TOPIC, [pa.field("note", pa.string())]),
    "a deletion of records": lambda site: site.open().admin().delete_records({FIRST: 1}),
    "a deletion of the topic": lambda site: site.open().admin().delete_topic(TOPIC),
    "its creation": lambda site: site.open().admin().create_topic(TOPIC, schema=TWO_COLUMNS),
    "a reset of offsets": lambda site: site.open().admin().alter_consumer_group_offsets(GROUP, {FIRST: 1}),
    "a deletion of the group": lambda site: site.open().admin().delete_consumer_groups([GROUP]),
}
REFUSED = frozenset({"the same batch", "its creation"})
# In a warehouse without groups a producer looks at nothing before its first entry, but at the topics of its id's last
# decision, where that is left (decision 167).
UNSEEN = frozenset({"another id", "a producer without an id"})
UNSEEN_WITH_ALL_DECISIONS_LOST = UNSEEN | {
    "the same id", "the same id in another topic", "the same batch", "the same id with offsets", "a fence"
}  # fmt: skip
ALL = 3


def lost(site: Site, log: str, count: int) -> list[str]:
    """Delete the newest entries of a log, of T as many decisions with all that follows; return their paths."""
    root = {"T": TRANSACTION_LOG_ROOT, "O": OFFSET_LOG_ROOT, "S": S}[log]
    entries = entries_of(site, root)
    if log == "T":
        decisions = [path for path in entries if b'"operation":"COMMIT"' in site.objects.snapshot()[path].data]
        entries = [path for path in entries if path >= decisions[-count]]
    else:
        entries = entries[-count:]
    for path in entries:
        site.objects.delete(path)
    return entries


def taken(site: Site, entries: list[str]) -> list[str]:
    return sorted({*entries} & {*site.objects.snapshot()})


@pytest.fixture(scope="module")
def sites() -> dict[bool, Site]:
    return {has_groups: site_with_entries(has_groups=has_groups) for has_groups in (True, False)}


@pytest.mark.parametrize("who", ACTORS)
@pytest.mark.parametrize("count", [1, 2, ALL])
@pytest.mark.parametrize(("log", "has_groups"), [("T", True), ("O", True), ("S", True), ("T", False), ("S", False)])
def test_no_place_of_a_lost_entry_is_taken(
    sites: dict[bool, Site], log: str, has_groups: bool, count: int, who: str
) -> None:
    site = sites[has_groups].copy()
    entries = lost(site, log, count)

    for _ in range(2):
        with suppress(TxnTableError):
            ACTORS[who](site)

    unseen = UNSEEN_WITH_ALL_DECISIONS_LOST if count == ALL else UNSEEN
    assert bool(taken(site, entries)) == (log == "T" and not has_groups and who in unseen)


@pytest.mark.parametrize("who", sorted({*ACTORS} - REFUSED))
@pytest.mark.parametrize("has_groups", [True, False])
def test_everybody_goes_on_where_nothing_is_lost(sites: dict[bool, Site], has_groups: bool, who: str) -> None:
    ACTORS[who](sites[has_groups].copy())


@pytest.mark.parametrize("who", sorted(REFUSED))
def test_what_was_done_is_refused_where_nothing_is_lost(sites: dict[bool, Site], who: str) -> None:
    with pytest.raises((TopicAlreadyExistsError, BatchAlreadyCommittedError)):
        ACTORS[who](sites[True].copy())

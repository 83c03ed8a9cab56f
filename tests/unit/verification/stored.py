"""A warehouse in which everything has happened once, and rows that no writer would write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.doubles.memory_store import MemoryStore
from tests.simulation.site import Site
from tests.unit.producer.producing import row, started
from txntable.compaction.compactor import compact
from txntable.format.layout import segment_path
from txntable.format.records import TopicPartition
from txntable.log.actions import Action, Add, Txn
from txntable.log.table_state import TableState
from txntable.partition.batch import Batch, batch_add, batch_of
from txntable.partition.offsets import NEXT_OFFSET, next_offset, per_partition
from txntable.segments.segment_digest import digest_of
from txntable.topics.topic_log import TopicLog
from txntable.verification.damage import Damage, DamageKind, Verification
from txntable.warehouse.stored_warehouse import verify_stored
from txntable.warehouse.warehouse import Warehouse

FIRST = TopicPartition("u", 0)
HOUR_MS = 3_600_000
U = "topics/u/_segments"


def verified(site: Site, topics: Sequence[str] | None = None) -> Verification:
    return verify_stored(MemoryStore(site.objects), topics, environment=site.time)


def delete_all(site: Site, folder: str) -> None:
    for meta in site.objects.below(folder):
        site.objects.delete(meta.path)


def delete_newest(site: Site, root: str, count: int) -> list[tuple[str, bytes]]:
    """Lose the newest entries of a log, and return them."""
    entries = {meta.path for meta in site.objects.below(f"{root}/_delta_log") if meta.path.endswith(".json")}
    lost = [(path, site.objects.snapshot()[path].data) for path in sorted(entries)[-count:]]
    for path, _ in lost:
        site.objects.delete(path)
    return lost


def damages(site: Site) -> list[Damage]:
    return list(verified(site).damages)


def kinds(site: Site) -> set[DamageKind]:
    return {one.kind for one in damages(site)}


def fill(site: Site) -> Warehouse:
    """Transactions that carried their segments and others, an abort, a batch id, offsets, records of no transaction."""
    warehouse = site.open()
    with warehouse.producer() as producer:
        for amount in range(3):
            producer.send("u", row=row("plain", amount))
            producer.flush()
    with started(warehouse) as producer:
        for outcome in ("carried", "flushed", "aborted"):
            producer.begin_transaction()
            for topic in ("t", "u"):
                producer.send(topic, row=row(outcome))
            if outcome != "carried":
                producer.flush()
            if outcome == "flushed":
                producer.send_offsets_to_transaction({FIRST: 2}, "readers")
            producer.abort_transaction() if outcome == "aborted" else producer.commit_transaction()
        with producer.transaction(batch_id=warehouse.context.environment.new_id()) as transaction:
            transaction.send("u", row=row("batch"))
    warehouse.admin().alter_consumer_group_offsets("others", {FIRST: 1})
    return warehouse


def maintain(site: Site) -> None:
    """Let time pass, and the jobs run."""
    for _ in range(2):
        site.advance_ms(2 * HOUR_MS)
        compact(site.open())
        site.open().coordinator().run_once()


def write(topic: TopicLog, decide: Callable[[TableState], Sequence[Action]], *, project: bool = True) -> None:
    """Write to S what nobody has decided by the rules, and let P follow."""
    topic.settings()
    topic.segments.commit("TEST", decide)
    if project:
        topic.project()


def plain_segment(topic: TopicLog) -> Add:
    """The row of a segment of no transaction."""
    topic.settings()
    return next(add for add in topic.segments.table.files if _is_plain(add))


def _is_plain(add: Add) -> bool:
    return add.partition_values["_control"] is None and not batch_of(add).transactional


def copied(
    warehouse: Warehouse, topic: TopicLog, data: bytes | None = None, *, stats: str | None = None, **changes: Any
) -> str:
    """Append another segment with the records of one that is there, and a row that says something else.

    Returns
    -------
    str
        Its path in the warehouse.
    """
    source = plain_segment(topic)
    found = warehouse.store.get(f"{topic.segments.root}/{source.path}")
    assert found is not None
    data = found.data if data is None else data
    topic_id = topic.settings().topic_id
    path = changes.pop("path", None) or segment_path(topic_id, 0, None, warehouse.context.environment.new_id())
    warehouse.store.put(f"{topic.segments.root}/{path}", data)

    def decide(table: TableState) -> Sequence[Action]:
        base = next_offset(table.numbers, topic_id, 0)
        batch = replace(batch_of(source), path=path, producer=None, first_sequence=None)
        batch = replace(batch, base_offset=base, last_offset=base + batch.records - 1)
        said: dict[str, Any] = {"digest": digest_of(data), **changes}
        batch = replace(batch, **said)
        add = batch_add(batch, len(data), source.stats if stats is None else stats)
        return [add, Txn(per_partition(NEXT_OFFSET, topic_id, 0), max(base, batch.last_offset + 1))]

    write(topic, decide)
    return f"{topic.segments.root}/{path}"


def appended(topic: TopicLog, change: Callable[[Batch], Batch], *, next_is: int | None = None) -> None:
    """Append a row for the file of a segment that is there, changed, to S alone."""
    source = plain_segment(topic)
    topic_id = topic.settings().topic_id

    def decide(table: TableState) -> Sequence[Action]:
        base = next_offset(table.numbers, topic_id, 0)
        whole = replace(batch_of(source), base_offset=base, last_offset=base + batch_of(source).records - 1)
        batch = change(whole)
        last = batch.last_offset + 1 if next_is is None else next_is
        return [batch_add(batch, source.size, source.stats), Txn(per_partition(NEXT_OFFSET, topic_id, 0), last)]

    write(topic, decide)


def only(site: Site) -> tuple[DamageKind, str]:
    """The kind and the object of the only damage."""
    (found,) = damages(site)
    assert found.remedy
    return found.kind, found.path


def other_number(state: TableState) -> TableState:
    """The state with a number that no entry has."""
    return replace(state, numbers={**state.numbers, next(iter(state.numbers)): 10**6})

"""Offsets of a group in a transaction: pending until decided, settled at completion, fenced by the log."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import Fault, Operation, Rule, on
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import TWO_COLUMNS, Site
from txntable.coordinator.group_offsets import CommittedOffset
from txntable.errors import (
    AbortableError,
    OffsetMetadataTooLargeError,
    ProducerFencedError,
    StoreUnavailableError,
    TransactionAbortableError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
)
from txntable.format.records import TopicPartition
from txntable.offsets.group_commit import OffsetAndMetadata
from txntable.storage.object_store import ObjectStore
from txntable.warehouse.warehouse import Warehouse

IN = TopicPartition("in", 0)


@pytest.fixture
def site() -> Site:
    site = Site()
    admin = site.create().admin()
    admin.create_topic("in", partitions=2, schema=TWO_COLUMNS)
    admin.create_topic("out", partitions=2, schema=TWO_COLUMNS)
    return site


def producer_of(warehouse: Warehouse, transactional_id: str = "etl"):
    producer = warehouse.producer(transactional_id)
    producer.init_transactions()
    return producer


def committed(site: Site) -> CommittedOffset | None:
    offsets = site.open().offsets
    offsets.refresh()
    row = offsets.offsets("g").get(IN)
    return None if row is None else row.committed


def test_offsets_count_when_the_transaction_commits(site: Site) -> None:
    warehouse = site.open()
    producer = producer_of(warehouse)
    producer.begin_transaction()
    producer.send("out", row={"account": "a", "amount": 1})

    producer.send_offsets_to_transaction({IN: OffsetAndMetadata(7, "note")}, "g")

    assert committed(site) is None
    producer.commit_transaction()
    found = committed(site)
    row = warehouse.transactions.row("etl")
    assert found is not None
    assert row is not None
    assert row.decision is not None
    assert (found.offset, found.metadata, found.position) == (7, "note", row.decision.position)
    assert row.groups == ()
    assert site.open().offsets.log.refresh().number("decided_through") == row.decision.position


def test_offsets_are_dropped_when_the_transaction_aborts(site: Site) -> None:
    producer = producer_of(site.open())
    with producer.transaction():
        producer.send_offsets_to_transaction({IN: 3}, "g")
    producer.begin_transaction()
    producer.send_offsets_to_transaction({IN: 9}, "g")

    producer.abort_transaction()

    found = committed(site)
    assert found is not None
    assert found.offset == 3


def test_offsets_without_records_are_a_transaction(site: Site) -> None:
    producer = producer_of(site.open())

    with producer.transaction():
        producer.send_offsets_to_transaction({IN: 3}, "g")

    assert committed(site) is not None


def test_offsets_of_a_fenced_producer_are_refused_and_never_pending(site: Site) -> None:
    zombie = producer_of(site.open())
    zombie.begin_transaction()
    producer_of(site.open())

    with pytest.raises(ProducerFencedError):
        zombie.send_offsets_to_transaction({IN: 3}, "g")

    assert committed(site) is None
    offsets = site.open().offsets
    offsets.refresh()
    assert not offsets.log.fold.pending


def test_offsets_that_were_verified_before_their_producer_was_fenced_lose_the_slot(site: Site) -> None:
    """A pause between the look at T and the put to O: what landed there would be pending for ever."""
    warehouse = site.open()
    zombie = producer_of(warehouse)
    zombie.begin_transaction()
    heirs: list[object] = []

    def take_over(store: ObjectStore, path: str) -> None:
        heirs.append(producer_of(site.open()))

    plan(warehouse, on(Operation.PUT_IF_ABSENT, "offset_log/_delta_log", Fault.TAKEN, intruder=take_over))

    with pytest.raises(ProducerFencedError):
        zombie.send_offsets_to_transaction({IN: 3}, "g")

    assert len(heirs) == 1
    assert nothing_is_pending(site)


def test_offsets_whose_put_lands_after_the_abort_are_in_no_slot(site: Site) -> None:
    warehouse = site.open()
    producer = producer_of(warehouse)
    producer.begin_transaction()
    late = on(Operation.PUT_IF_ABSENT, "offset_log/_delta_log", Fault.LATE_LANDING, occurrence=None)
    store = plan(warehouse, late)
    with pytest.raises(TransactionAbortableError):
        producer.send_offsets_to_transaction({IN: 3}, "g")
    plan(warehouse)

    producer.abort_transaction()
    store.land()

    assert nothing_is_pending(site)


def plan(warehouse: Warehouse, *rules: Rule) -> SteppingStore:
    store = warehouse.store
    assert isinstance(store, SteppingStore)
    store.plan = rules
    return store


def nothing_is_pending(site: Site) -> bool:
    offsets = site.open().offsets
    offsets.refresh()
    return not offsets.log.fold.pending


def test_offsets_of_a_dead_producer_are_dropped_by_the_next_one(site: Site) -> None:
    dead = producer_of(site.open())
    dead.begin_transaction()
    dead.send_offsets_to_transaction({IN: 3}, "g")

    producer_of(site.open())

    offsets = site.open().offsets
    offsets.refresh()
    assert offsets.offsets("g") == {}


def test_offsets_are_settled_by_others_when_their_producer_died_after_its_decision(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = site.open()
    producer = producer_of(warehouse)
    producer.begin_transaction()
    producer.send_offsets_to_transaction({IN: 3}, "g")

    def killed() -> int:
        raise UnstableOffsetCommitError("killed")

    monkeypatch.setattr(warehouse.completer, "settle_offsets", killed)
    producer.commit_transaction()
    assert committed(site) is None

    site.open().complete()

    found = committed(site)
    assert found is not None
    assert found.offset == 3


def test_too_long_text_is_refused_before_anything_is_sent(site: Site) -> None:
    producer = producer_of(site.open())
    producer.begin_transaction()

    with pytest.raises(OffsetMetadataTooLargeError):
        producer.send_offsets_to_transaction({IN: OffsetAndMetadata(3, "x" * 4097)}, "g")

    producer.commit_transaction()
    assert committed(site) is None


def test_offsets_of_an_unknown_topic_are_refused_and_harm_nothing(site: Site) -> None:
    producer = producer_of(site.open())
    producer.begin_transaction()

    with pytest.raises(UnknownTopicOrPartitionError):
        producer.send_offsets_to_transaction({TopicPartition("nowhere", 0): 3}, "g")

    producer.send_offsets_to_transaction({IN: 4}, "g")
    producer.commit_transaction()
    found = committed(site)
    assert found is not None
    assert found.offset == 4


def test_one_enrolment_serves_records_and_offsets(site: Site) -> None:
    warehouse = site.open()
    producer = producer_of(warehouse)
    producer.begin_transaction()
    before = warehouse.transactions.refresh()
    producer.send("out", row={"account": "a", "amount": 1})

    producer.send_offsets_to_transaction({IN: 7}, "g")

    assert warehouse.transactions.refresh() == before + 1


def test_records_are_uploaded_beside_the_enrolment_of_offsets_and_only_decided_at_the_commit(site: Site) -> None:
    warehouse = site.open()
    producer = producer_of(warehouse)
    with producer.transaction() as txn:
        txn.send("out", row={"account": "a", "amount": 1})
    producer.begin_transaction()
    producer.send("out", row={"account": "b", "amount": 1})
    store = plan(warehouse)
    store.steps.clear()

    producer.send_offsets_to_transaction({IN: 7}, "g")
    sent = [shape(step.path) for step in store.steps]
    store.steps.clear()
    producer.commit_transaction()

    assert {"T", "marker", "segment"} <= set(sent[: sent.index("O")])
    assert shape(store.steps[0].path) == "T"
    assert "segment" not in [shape(step.path) for step in store.steps]
    assert committed(site) is not None


def shape(path: str) -> str:
    """What an object is, by its path."""
    kinds = {"system/transaction_log/": "T", "system/offset_log/": "O", "/markers/": "marker", "/p0": "segment"}
    return next(
        (kind for part, kind in kinds.items() if part in path), "S" if "/_segments/_delta_log/" in path else "P"
    )


def test_topic_is_not_read_again_for_its_offsets_once_the_transaction_has_read_it(site: Site) -> None:
    warehouse = site.open()
    producer = producer_of(warehouse)
    producer.begin_transaction()
    producer.send("in", row={"account": "a", "amount": 1})
    store = plan(warehouse, on(Operation.GET, "topics/in/_segments/_delta_log", Fault.FAIL_BEFORE, occurrence=None))

    with pytest.raises(StoreUnavailableError):
        producer.partitions_for("in")
    store.steps.clear()
    with pytest.raises(StoreUnavailableError):
        producer.send_offsets_to_transaction({IN: 7}, "g")

    # It got as far as the upload, beside which the topic is read for the decision.
    assert "segment" in [shape(step.path) for step in store.steps]


def test_partition_that_came_since_the_transaction_began_takes_an_offset(site: Site) -> None:
    producer = producer_of(site.open())
    producer.begin_transaction()
    producer.send("in", row={"account": "a", "amount": 1}, partition=0)
    site.open().admin().create_partitions({"in": 3})

    producer.send_offsets_to_transaction({TopicPartition("in", 2): 5}, "g")
    producer.commit_transaction()

    offsets = site.open().offsets
    offsets.refresh()
    assert offsets.offsets("g").keys() == {("in", 2)}


@pytest.mark.parametrize("what", ["a second passes", "a record follows"])
def test_commit_looks_at_its_topics_again_when_it_is_not_next_after_the_offsets(site: Site, what: str) -> None:
    producer = producer_of(site.open())
    producer.begin_transaction()
    producer.send("out", row={"account": "a", "amount": 1})
    producer.send_offsets_to_transaction({IN: 7}, "g")
    site.open().admin().delete_topic("out")

    if what == "a second passes":
        site.advance_ms(1_000)
        with pytest.raises(UnknownTopicOrPartitionError):
            producer.commit_transaction()
    else:
        with pytest.raises(UnknownTopicOrPartitionError):
            producer.send("out", row={"account": "b", "amount": 1})
        with pytest.raises(AbortableError):
            producer.commit_transaction()
    producer.abort_transaction()

    assert committed(site) is None


def test_commit_looks_at_a_topic_again_whose_last_record_was_uploaded_since_the_offsets(site: Site) -> None:
    producer = site.open().producer("etl", batch_size=1)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("out", row={"account": "a", "amount": 1})
    producer.send_offsets_to_transaction({IN: 7}, "g")
    producer.send("out", row={"account": "b", "amount": 1})
    site.open().admin().delete_topic("out")

    with pytest.raises(UnknownTopicOrPartitionError):
        producer.commit_transaction()

    producer.abort_transaction()
    assert committed(site) is None


def test_topic_that_is_deleted_between_its_offsets_and_the_commit_counts_as_done(site: Site) -> None:
    """As one that is deleted beside the decision (PROTOCOL.md §6.3)."""
    producer = producer_of(site.open())
    producer.begin_transaction()
    producer.send("out", row={"account": "a", "amount": 1})
    producer.send_offsets_to_transaction({IN: 7}, "g")
    site.open().admin().delete_topic("out")

    producer.commit_transaction()

    found = committed(site)
    assert found is not None
    assert found.offset == 7


def test_offsets_that_are_settled_are_not_written_again_however_far_the_transaction_log_has_moved(site: Site) -> None:
    warehouse = site.open()
    producer = producer_of(warehouse)
    producer.begin_transaction()
    producer.send_offsets_to_transaction({IN: 3}, "g")
    plan(warehouse, on(Operation.PUT_IF_ABSENT, "offset_log/_delta_log", Fault.FAIL_BEFORE, occurrence=None))
    producer.commit_transaction()
    plan(warehouse)
    bystander = site.open()
    bystander.transactions.refresh()
    bystander.completer.settle_offsets()
    settled = bystander.offsets.refresh()
    producer_of(site.open(), "another")
    bystander.transactions.refresh()

    bystander.completer.settle_offsets()

    assert bystander.offsets.refresh() == settled


def test_transaction_without_offsets_is_completed_without_those_that_have_some(site: Site) -> None:
    """The same work completes several transactions, but none whose offsets nobody has settled."""
    warehouse = site.open()
    plain, copying = producer_of(warehouse, "plain"), producer_of(warehouse, "copying")
    for producer in (plain, copying):
        producer.begin_transaction()
        producer.send("out", row={"account": "a", "amount": 1})
    copying.send_offsets_to_transaction({IN: 3}, "g")
    plan(warehouse, on(Operation.PUT_IF_ABSENT, "topics/out/_segments", Fault.FAIL_BEFORE, occurrence=None))
    copying.commit_transaction()
    plan(warehouse)
    plain.flush()
    plain.commit_transaction()
    assert [each.transactional_id for each in warehouse.transactions.log.fold.incomplete()] == ["copying"]

    site.open().complete()

    found = committed(site)
    assert found is not None
    assert found.offset == 3


def test_view_that_is_opened_again_has_forgotten_what_others_removed(site: Site) -> None:
    warehouse = site.open()
    producer = producer_of(warehouse)
    producer.begin_transaction()
    producer.send_offsets_to_transaction({IN: 3}, "g")
    other = site.open()
    other.admin().delete_consumer_groups(["g"])
    other.offsets.log.write_checkpoint()
    site.advance_ms(301_000)

    warehouse.offsets.refresh()

    assert warehouse.offsets.log.fold.pending == {}
    assert warehouse.offsets.names() == []

"""Producers over a store in memory: Kafka's outcomes (PROTOCOL.md §6)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.simulation.site import TWO_COLUMNS, Site, published
from txntable.client.producer import Producer
from txntable.errors import (
    BatchAlreadyCommittedError,
    BatchOutOfOrderError,
    CommitStateUnknownError,
    IllegalStateError,
    InvalidConfigError,
    InvalidProducerEpochError,
    InvalidRequestError,
    InvalidTransactionTimeoutError,
    InvalidTxnStateError,
    ProducerFencedError,
    SchemaMismatchError,
    UnknownTopicOrPartitionError,
)
from txntable.testing.fault_plan import Fault, Operation, on
from txntable.testing.stepping_store import SteppingStore
from txntable.warehouse import Warehouse

PUT = Operation.PUT_IF_ABSENT
T_LOG = "transaction_log/_delta_log"


@pytest.fixture
def site() -> Site:
    site = Site()
    admin = site.create().admin()
    admin.create_topic("t", partitions=2, schema=TWO_COLUMNS, key=["account"])
    admin.create_topic("u", partitions=1, schema=TWO_COLUMNS)
    admin.create_topic("raw", partitions=2)
    return site


def door(warehouse: Warehouse) -> SteppingStore:
    assert isinstance(warehouse.store, SteppingStore)
    return warehouse.store


def started(warehouse: Warehouse, transactional_id: str = "etl", transaction_timeout_ms: int = 60_000) -> Producer:
    producer = warehouse.producer(transactional_id, transaction_timeout_ms=transaction_timeout_ms)
    producer.init_transactions()
    return producer


def row(account: str, amount: int = 1) -> dict:
    return {"account": account, "amount": amount}


def accounts(site: Site, topic: str) -> list[str]:
    return [found["account"] for found in published(site.open(), topic)]


# -- transactions -------------------------------------------------------------------------------


def test_committed_transaction_is_visible_in_every_topic_when_commit_returns(site: Site) -> None:
    producer = started(site.open())
    with producer.transaction() as txn:
        first = txn.send("t", row=row("a"))
        txn.send("u", row=row("b"))

    assert (accounts(site, "t"), accounts(site, "u")) == (["a"], ["b"])
    assert first.offset == 0
    assert producer.state == "READY"


def test_aborted_transaction_is_invisible_and_its_offsets_are_a_gap(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction()
    producer.send("u", row=row("gone"))
    producer.flush()
    producer.abort_transaction()
    with producer.transaction() as txn:
        kept = txn.send("u", row=row("kept"))

    assert accounts(site, "u") == ["kept"]
    assert kept.offset == 2, "one aborted record and its marker lie below"


def test_epoch_rises_at_every_decision_and_not_for_an_empty_transaction(site: Site) -> None:
    producer = started(site.open())
    seen = [producer.producer_epoch]
    for sends, ends in (
        (True, producer.commit_transaction),
        (True, producer.abort_transaction),
        (False, producer.commit_transaction),
    ):
        producer.begin_transaction()
        if sends:
            producer.send("u", row=row("x"))
            producer.flush()
        ends()
        seen.append(producer.producer_epoch)

    assert seen == [0, 1, 2, 2]


def test_exception_in_the_block_aborts_and_is_raised(site: Site) -> None:
    producer = started(site.open())

    def fail() -> None:
        with producer.transaction() as txn:
            txn.send("u", row=row("x"))
            txn.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert accounts(site, "u") == []
    assert producer.state == "READY"


def test_open_transaction_of_the_id_is_aborted_by_the_next_init(site: Site) -> None:
    old = started(site.open())
    old.begin_transaction()
    old.send("u", row=row("old"))
    old.flush()

    new = started(site.open())
    with new.transaction() as txn:
        txn.send("u", row=row("new"))

    assert accounts(site, "u") == ["new"]
    assert new.producer_epoch == 3, "abort raised it by one, init by one, the commit by one"


@pytest.mark.parametrize(
    ("call", "error", "state"),
    [
        ("flush", InvalidProducerEpochError, "ABORTABLE_ERROR"),
        ("commit", ProducerFencedError, "FATAL_ERROR"),
        ("abort", ProducerFencedError, "FATAL_ERROR"),
    ],
)
def test_zombie_is_refused_by_what_it_does_first(site: Site, call: str, error: type[Exception], state: str) -> None:
    zombie = started(site.open())
    zombie.begin_transaction()
    zombie.send("u", row=row("zombie"))
    zombie.flush()
    started(site.open())

    if call == "flush":
        zombie.send("u", row=row("again"))
    calls = {"flush": zombie.flush, "commit": zombie.commit_transaction, "abort": zombie.abort_transaction}
    with pytest.raises(error):
        calls[call]()

    assert zombie.state == state
    assert accounts(site, "u") == []


def test_zombie_that_appends_after_its_verification_is_refused_at_its_slot(site: Site) -> None:
    """The fencing lands between the zombie's reading of T and its append: the slot is taken by the marker."""
    warehouse = site.open()
    zombie = started(warehouse)
    zombie.begin_transaction()
    zombie.send("u", row=row("first"))
    zombie.flush()
    zombie.send("u", row=row("late"))
    fenced: list[int] = []

    def fence(step) -> None:
        if step.operation is PUT and "u/_segments/_delta_log" in step.path and not fenced:
            fenced.append(1)
            started(site.open())

    door(warehouse).on_step = fence
    with pytest.raises(InvalidProducerEpochError):
        zombie.flush()

    assert fenced
    assert accounts(site, "u") == []


def test_timed_out_transaction_is_aborted_by_whoever_looks_and_its_producer_can_go_on(site: Site) -> None:
    producer = started(site.open(), transaction_timeout_ms=10_000)
    producer.begin_transaction()
    producer.send("u", row=row("late"))
    producer.flush()

    other = site.open()
    assert other.complete() == 0
    site.advance_ms(10_001)
    assert other.complete() == 1

    producer.abort_transaction()
    with producer.transaction() as txn:
        txn.send("u", row=row("next"))
    assert accounts(site, "u") == ["next"]


def test_commit_after_the_timeout_is_refused_for_good(site: Site) -> None:
    producer = started(site.open(), transaction_timeout_ms=10_000)
    producer.begin_transaction()
    producer.send("u", row=row("late"))
    producer.flush()
    site.advance_ms(10_001)
    site.open().complete()

    with pytest.raises(InvalidTxnStateError):
        producer.commit_transaction()
    assert producer.state == "FATAL_ERROR"


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.EXISTS_LOST, Fault.FAIL_BEFORE, Fault.CONFLICT_409])
def test_transaction_commits_once_when_any_put_of_it_is_answered_wrongly(site: Site, fault: Fault) -> None:
    trial = site.copy().open()
    with started(trial).transaction() as txn:
        txn.send("u", row=row("x"))
    puts = [step for step in door(trial).steps if step.operation is PUT]

    for number in range(1, len(puts) + 1):
        crashed = site.copy()
        warehouse = crashed.open(on(PUT, lambda path: True, fault, occurrence=number))
        with started(warehouse).transaction() as txn:
            txn.send("u", row=row("x"))
        assert accounts(crashed, "u") == ["x"], puts[number - 1]


def test_commit_of_unknown_outcome_can_only_be_asked_again_and_then_tells(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    producer.begin_transaction()
    producer.send("u", row=row("x"))
    producer.flush()
    lose_answers(warehouse, applied=True)

    with pytest.raises(CommitStateUnknownError):
        producer.commit_transaction()
    with pytest.raises(IllegalStateError, match="call commit_transaction again"):
        producer.abort_transaction()
    door(warehouse).plan = ()
    producer.commit_transaction()

    assert accounts(site, "u") == ["x"]
    assert producer.state == "READY"


def test_append_of_unknown_outcome_allows_only_abort(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    producer.begin_transaction()
    producer.send("u", row=row("x"))
    door(warehouse).plan = unreachable("u/_segments/_delta_log")

    with pytest.raises(CommitStateUnknownError):
        producer.flush()
    door(warehouse).plan = ()
    with pytest.raises(CommitStateUnknownError):
        producer.commit_transaction()
    producer.abort_transaction()

    assert accounts(site, "u") == []


def lose_answers(warehouse: Warehouse, *, applied: bool) -> None:
    """From here on every answer about T's entries is lost; the first put is applied."""
    door(warehouse).plan = (
        on(PUT, T_LOG, Fault.LOST_ANSWER if applied else Fault.FAIL_BEFORE, occurrence=None),
        on(Operation.GET, T_LOG, Fault.FAIL_BEFORE, occurrence=None),
    )


def unreachable(path: str) -> tuple:
    return (
        on(PUT, path, Fault.FAIL_BEFORE, occurrence=None),
        on(Operation.GET, path, Fault.FAIL_BEFORE, occurrence=None),
    )


# -- batch ids ----------------------------------------------------------------------------------


def test_named_batch_is_refused_before_any_work_once_it_committed(site: Site) -> None:
    producer = started(site.open())
    with producer.transaction(batch_id="run") as txn:
        txn.send("u", row=row("x"))

    with pytest.raises(BatchAlreadyCommittedError):
        started(site.open()).begin_transaction(batch_id="run")
    producer.begin_transaction(batch_id="another run")


def test_aborted_batch_may_be_run_again(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction(batch_id="run")
    producer.send("u", row=row("x"))
    producer.flush()
    producer.abort_transaction()

    producer.begin_transaction(batch_id="run")


def test_empty_run_with_a_batch_id_is_remembered(site: Site) -> None:
    producer = started(site.open())
    with producer.transaction(batch_id="empty"):
        pass

    assert producer.is_committed("empty")
    with pytest.raises(BatchAlreadyCommittedError):
        producer.begin_transaction(batch_id="empty")


@pytest.mark.parametrize(
    ("batch_id", "error"), [(6, BatchAlreadyCommittedError), (5, BatchOutOfOrderError), (7, None), (9, None)]
)
def test_integer_batch_is_a_sequence(site: Site, batch_id: int, error: type[Exception] | None) -> None:
    producer = started(site.open())
    with producer.transaction(batch_id=6) as txn:
        txn.send("u", row=row("x"))

    if error is None:
        producer.begin_transaction(batch_id=batch_id)
    else:
        with pytest.raises(error):
            producer.begin_transaction(batch_id=batch_id)


# -- wrong use ----------------------------------------------------------------------------------


def test_every_call_out_of_order_is_an_illegal_state_and_harms_nothing(site: Site) -> None:
    producer = site.open().producer("etl")
    for call in (producer.begin_transaction, producer.commit_transaction, producer.abort_transaction, producer.flush):
        with pytest.raises(IllegalStateError):
            call()
    producer.init_transactions()
    for call in (producer.init_transactions, producer.commit_transaction, producer.abort_transaction):
        with pytest.raises(IllegalStateError):
            call()
    with pytest.raises(IllegalStateError):
        producer.send("u", row=row("x"))
    producer.begin_transaction()
    for call in (producer.init_transactions, producer.begin_transaction):
        with pytest.raises(IllegalStateError):
            call()
    producer.send("u", row=row("x"))
    producer.commit_transaction()

    assert accounts(site, "u") == ["x"]


def test_closed_producer_says_so(site: Site) -> None:
    producer = started(site.open())
    producer.close()

    with pytest.raises(IllegalStateError, match="closed"):
        producer.begin_transaction()


def test_close_aborts_the_open_transaction(site: Site) -> None:
    warehouse = site.open()
    with started(warehouse) as producer:
        producer.begin_transaction()
        producer.send("u", row=row("x"))
        producer.flush()

    assert accounts(site, "u") == []
    assert not site.open().transactions.log.fold.under_way


def test_transaction_calls_need_a_transactional_id(site: Site) -> None:
    with pytest.raises(IllegalStateError, match="transactional_id"):
        site.open().producer().init_transactions()


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_timeout_out_of_bounds_is_refused(site: Site, timeout_ms: int) -> None:
    with pytest.raises(InvalidTransactionTimeoutError):
        started(site.open(), transaction_timeout_ms=timeout_ms)


def test_transactional_producer_without_idempotence_is_refused(site: Site) -> None:
    with pytest.raises(InvalidConfigError):
        site.open().producer("etl", enable_idempotence=False)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"topic": "nowhere", "row": {}}, UnknownTopicOrPartitionError),
        ({"topic": "t", "row": {"account": "a"}, "partition": 2}, UnknownTopicOrPartitionError),
        ({"topic": "t", "row": {"account": "a"}, "partition": -1}, InvalidRequestError),
        ({"topic": "t", "row": {"account": None}}, SchemaMismatchError),
        ({"topic": "t", "row": {"account": 7}}, SchemaMismatchError),
        ({"topic": "t", "row": {"account": "a", "amonut": 1}}, SchemaMismatchError),
        ({"topic": "t", "rows": pa.table({"account": ["a"], "amount": ["1"]})}, SchemaMismatchError),
        ({"topic": "t", "value": b"x"}, InvalidRequestError),
        ({"topic": "raw", "value": b"x", "timestamp_ms": -1}, InvalidRequestError),
        ({"topic": "raw", "value": b"x", "row": {}}, InvalidRequestError),
    ],
)
def test_wrong_argument_is_named_and_the_transaction_goes_on(
    site: Site, arguments: dict, error: type[Exception]
) -> None:
    producer = started(site.open())
    producer.begin_transaction()

    with pytest.raises(error):
        producer.send(**arguments)
    producer.send("u", row=row("fine"))
    producer.commit_transaction()

    assert accounts(site, "u") == ["fine"]


# -- without transactions -----------------------------------------------------------------------


@pytest.mark.parametrize("idempotent", [True, False])
def test_plain_append_is_visible_when_flush_returns(site: Site, idempotent: bool) -> None:
    producer = site.open().producer(enable_idempotence=idempotent)
    first = producer.send("u", row=row("a"))
    second = producer.send("u", row=row("b"))
    with pytest.raises(IllegalStateError, match="flush"):
        _ = first.offset
    producer.flush()

    assert accounts(site, "u") == ["a", "b"]
    assert (first.offset, second.offset) == (0, 1)
    assert (producer.producer_id is not None) is idempotent


def test_idempotent_flush_repeated_after_an_unknown_outcome_appends_once(site: Site) -> None:
    warehouse = site.open()
    producer = warehouse.producer()
    producer.send("u", row=row("x"))
    log = "u/_segments/_delta_log"
    door(warehouse).plan = (
        on(PUT, log, Fault.LOST_ANSWER, occurrence=None),
        on(Operation.GET, log, Fault.FAIL_BEFORE, occurrence=None),
    )
    with pytest.raises(CommitStateUnknownError):
        producer.flush()

    door(warehouse).plan = ()
    producer.flush()

    assert accounts(site, "u") == ["x"]


def test_keyed_records_keep_their_order_in_their_partition(site: Site) -> None:
    with site.open().producer() as producer:
        sent = [producer.send("t", row=row(f"k{number % 5}", number)) for number in range(50)]

    found = published(site.open(), "t")
    by_key: dict[str, list[int]] = {}
    for record in found:
        by_key.setdefault(record["account"], []).append(record["amount"])
    assert all(amounts == sorted(amounts) for amounts in by_key.values())
    where = {(record["_partition"], record["_offset"]): record["amount"] for record in found}
    assert [where[metadata.partition, metadata.offset] for metadata in sent] == list(range(50))


def test_default_topic_takes_keys_values_headers_and_tombstones(site: Site) -> None:
    with site.open().producer() as producer:
        producer.send("raw", b"v", key=b"k", headers=[("h", b"1")], partition=1)
        producer.send("raw", None, key=b"k", partition=1)

    found = published(site.open(), "raw")
    assert [(r["key"], r["value"]) for r in found] == [(b"k", b"v"), (b"k", None)]
    assert found[0]["headers"] == [{"key": "h", "value": b"1"}]


def test_append_to_a_topic_that_was_deleted_and_created_again_is_refused(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction()
    producer.send("u", row=row("old"))
    admin = site.open().admin()
    admin.delete_topic("u")
    admin.create_topic("u", schema=TWO_COLUMNS)

    with pytest.raises(UnknownTopicOrPartitionError, match="created again"):
        producer.flush()
    producer.abort_transaction()

    assert accounts(site, "u") == []


def test_transaction_over_a_deleted_topic_completes_in_the_others(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction()
    producer.send("t", row=row("a"))
    producer.send("u", row=row("b"))
    producer.flush()
    site.open().admin().delete_topic("u")

    producer.commit_transaction()

    assert accounts(site, "t") == ["a"]
    assert not site.open().transactions.log.fold.under_way

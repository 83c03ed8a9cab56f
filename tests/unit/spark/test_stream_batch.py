"""Which micro-batches are written, which are passed over, and which are refused."""

from __future__ import annotations

import pytest

from tests.simulation.site import TWO_COLUMNS, Site
from txntable.coordinator.batch_memory import CommittedBatches
from txntable.errors import BatchOutOfOrderError, InvalidProducerEpochError, TxnTableError
from txntable.producer.producer import Producer
from txntable.spark.writing.stream_batch import batch_id_of, commit_batch
from txntable.warehouse.warehouse import Warehouse

STREAM = "76e05d6a-1111-4222-8333-0123456789ab"
OTHER = "0b5b2f52-4444-4555-8666-ba9876543210"


@pytest.fixture
def warehouse() -> Warehouse:
    warehouse = Site().create()
    warehouse.admin().create_topic("orders", partitions=1, schema=TWO_COLUMNS)
    return warehouse


def started(warehouse: Warehouse) -> Producer:
    producer = warehouse.producer("etl")
    producer.init_transactions()
    return producer


def commit(producer: Producer, batch_id: int, stream: str | None = STREAM) -> None:
    row = {"account": f"{stream}/{batch_id}", "amount": batch_id}
    commit_batch(producer, batch_id, lambda: stream, lambda transaction: transaction.send("orders", row=row))


def written(warehouse: Warehouse) -> list[str]:
    return [str(account) for account in warehouse.read_arrow("orders").read_all()["account"].to_pylist()]


@pytest.mark.parametrize("last", [0, 1, 7])
def test_the_last_batch_is_passed_over_when_the_stream_is_started_again(last: int, warehouse: Warehouse) -> None:
    producer = started(warehouse)
    for batch_id in range(last + 1):
        commit(producer, batch_id)

    restarted = started(warehouse)
    commit(restarted, last)
    commit(restarted, last + 1)

    assert written(warehouse) == [f"{STREAM}/{batch_id}" for batch_id in range(last + 2)]


@pytest.mark.parametrize("stream", [STREAM, OTHER, None])
def test_a_stream_that_begins_again_is_refused_when_later_batches_have_committed(
    stream: str | None, warehouse: Warehouse
) -> None:
    producer = started(warehouse)
    for batch_id in (0, 1):
        commit(producer, batch_id)

    with pytest.raises(BatchOutOfOrderError, match="a transactional id of its own"):
        commit(started(warehouse), 0, stream)

    assert written(warehouse) == [f"{STREAM}/0", f"{STREAM}/1"]


@pytest.mark.parametrize("number", [0, 1, 2, 7])
@pytest.mark.parametrize("committed", [[0], [0, 1], [5], [5, 6]])
def test_another_stream_is_refused_whatever_has_committed_and_whatever_number_it_is_at(
    committed: list[int], number: int, warehouse: Warehouse
) -> None:
    for batch_id in committed:
        commit(started(warehouse), batch_id, STREAM)

    with pytest.raises(BatchOutOfOrderError, match="each of two streams"):
        commit(started(warehouse), number, OTHER)

    commit(started(warehouse), committed[-1] + 1, STREAM)
    assert written(warehouse) == [f"{STREAM}/{batch_id}" for batch_id in [*committed, committed[-1] + 1]]


def test_batch_that_another_stream_has_committed_meanwhile_is_refused_and_not_passed_over(
    warehouse: Warehouse,
) -> None:
    early = started(warehouse)
    for batch_id in (4, 5):
        commit(started(warehouse), batch_id, OTHER)

    with pytest.raises(TxnTableError):
        commit(early, 5, STREAM)


def test_stream_goes_on_under_an_id_whose_names_are_forgotten() -> None:
    assert batch_id_of(CommittedBatches(last_integer=7), STREAM, 8, {}) == 8
    assert batch_id_of(CommittedBatches(last_integer=7), STREAM, 7, {}) == 7


def test_names_of_jobs_are_not_taken_for_streams() -> None:
    names = frozenset({"2026/11", "nightly", f"{STREAM}/x", f"{STREAM}/1/2"})

    assert batch_id_of(CommittedBatches(names=names), STREAM, 3, {}) == f"{STREAM}/3"


@pytest.mark.parametrize("stream", [OTHER, None])
def test_lower_batch_than_the_first_that_committed_is_refused(stream: str | None) -> None:
    committed = CommittedBatches(names=frozenset({f"{OTHER}/3"}))

    with pytest.raises(BatchOutOfOrderError):
        batch_id_of(committed, stream, 2, {})


def test_unknown_stream_goes_on_above_what_has_committed_and_never_repeats_it() -> None:
    committed = CommittedBatches(names=frozenset({f"{OTHER}/3"}))

    assert batch_id_of(committed, None, 4, {}) == 4
    with pytest.raises(BatchOutOfOrderError):
        batch_id_of(committed, None, 3, {})


def test_a_first_batch_of_an_unknown_stream_is_refused_when_there_was_one_before(warehouse: Warehouse) -> None:
    """It may be the same one again, or another one: passing over it could lose records."""
    commit(started(warehouse), 0, None)

    with pytest.raises(BatchOutOfOrderError):
        commit(started(warehouse), 0, None)


def test_a_batch_is_aborted_when_writing_it_fails(warehouse: Warehouse) -> None:
    producer = started(warehouse)

    def fail(transaction: object) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        commit_batch(producer, 3, lambda: STREAM, fail)
    commit(producer, 3)

    assert written(warehouse) == [f"{STREAM}/3"]


def test_a_batch_is_refused_when_a_newer_producer_has_taken_the_stream_over(warehouse: Warehouse) -> None:
    fenced = started(warehouse)
    commit(started(warehouse), 4)

    with pytest.raises(InvalidProducerEpochError):
        commit(fenced, 5)

    assert written(warehouse) == [f"{STREAM}/4"]

"""Where a stream's id comes from, and what travels with what writes its batches."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.site import TWO_COLUMNS
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import (
    BatchOutOfOrderError,
    InvalidConfigError,
    InvalidProducerEpochError,
    InvalidRequestError,
    TxnTableError,
)
from txntable.spark.writing import batch_writer
from txntable.spark.writing.streaming_query import checkpoint_query_id, task_query_id
from txntable.storage.object_store import StoreSpec
from txntable.warehouse.warehouse import Warehouse

LOCAL = StoreSpec("/warehouse")
REMOTE = StoreSpec("s3://bucket/wh", {"aws_region": "eu-central-1", "aws_secret_access_key": "secret"})


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
@pytest.mark.parametrize("store", [LOCAL, REMOTE])
def test_the_id_is_read_from_the_checkpoint(scheme: str, store: StoreSpec, tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"0f8fad5b-d9cb-469f-a165-70867728950e"}')

    assert checkpoint_query_id(f"{scheme}{tmp_path}", store) == "0f8fad5b-d9cb-469f-a165-70867728950e"


@pytest.mark.parametrize("content", [None, "", "v1", "{}", "[]", '"id"'])
def test_the_transactional_id_is_asked_for_when_a_checkpoint_does_not_tell_the_id(
    content: str | None, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "metadata").write_text(content)

    with pytest.raises(InvalidRequestError, match="transactionalId") as refused:
        checkpoint_query_id(str(tmp_path), LOCAL)

    assert refused.value.facts["checkpoint"] == str(tmp_path)


@pytest.mark.parametrize("location", [None, "hdfs://name/checkpoint", "dbfs:/checkpoint"])
def test_the_transactional_id_is_asked_for_when_a_checkpoint_can_not_be_reached(location: str | None) -> None:
    with pytest.raises(InvalidRequestError, match="transactionalId"):
        checkpoint_query_id(location, LOCAL)


def test_there_is_no_query_outside_of_a_task() -> None:
    assert task_query_id() is None


FIRST_QUERY, SECOND_QUERY = "0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"


@dataclass(frozen=True)
class MicroBatch:
    """What stands for a DataFrame: what is to be written, and a session that tells its query."""

    account: str
    sparkSession: str = FIRST_QUERY  # noqa: N815  Spark's name


@pytest.fixture(autouse=True)
def _session_tells_its_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_writer, "running_query_id", str)
    monkeypatch.setattr(batch_writer, "session_id", str)


def send_one(transaction: Any, batch: MicroBatch) -> None:
    """What a user would write."""
    transaction.send("orders", row={"account": batch.account, "amount": 1})


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    warehouse.admin().create_topic("orders", partitions=1, schema=TWO_COLUMNS)
    return warehouse


def accounts(warehouse: Warehouse) -> list[str]:
    return [str(account) for account in warehouse.read_arrow("orders").read_all()["account"].to_pylist()]


def test_a_batch_writer_travels_and_takes_the_stream_over_where_it_arrives(warehouse: Warehouse) -> None:
    writer: Any = warehouse.batch_writer("etl", send_one)
    writer(MicroBatch("first"), 1)

    travelled = pickle.loads(pickle.dumps(writer))
    travelled(MicroBatch("passed over"), 1)
    travelled(MicroBatch("second"), 2)

    with pytest.raises(InvalidProducerEpochError):
        writer(MicroBatch("fenced"), 3)
    assert accounts(warehouse) == ["first", "second"]


@pytest.mark.parametrize("last", [0, 1])
def test_a_batch_writer_that_is_used_again_under_a_new_checkpoint_is_refused(last: int, warehouse: Warehouse) -> None:
    writer: Any = warehouse.batch_writer("etl", send_one)
    for batch_id in range(last + 1):
        writer(MicroBatch("kept"), batch_id)

    with pytest.raises(BatchOutOfOrderError):
        writer(MicroBatch("again", SECOND_QUERY), 0)

    writer(MicroBatch("kept"), last + 1)
    assert accounts(warehouse) == ["kept"] * (last + 2)


@pytest.mark.parametrize("number", [0, 1, 2, 5])
def test_another_query_with_the_same_batch_writer_is_refused_at_any_number(number: int, warehouse: Warehouse) -> None:
    """Also at the number that the first one has next: its records would have taken the place of the first one's."""
    writer: Any = warehouse.batch_writer("etl", send_one)
    writer(MicroBatch("first"), 0)
    writer(MicroBatch("first"), 1)

    with pytest.raises(BatchOutOfOrderError, match="a transactional id of its own"):
        writer(MicroBatch("second", SECOND_QUERY), number)
    writer(MicroBatch("first"), 2)

    assert accounts(warehouse) == ["first"] * 3


def test_a_batch_writer_goes_on_after_a_batch_that_failed(warehouse: Warehouse) -> None:
    failing = iter([ValueError("no"), None])

    def write(transaction: Any, batch: MicroBatch) -> None:
        send_one(transaction, batch)
        if (error := next(failing)) is not None:
            raise error

    writer: Any = warehouse.batch_writer("etl", write)
    with pytest.raises(ValueError, match="no"):
        writer(MicroBatch("aborted"), 1)
    writer(MicroBatch("written"), 1)

    assert accounts(warehouse) == ["written"]
    assert warehouse.admin().list_transactions()[0].state is TransactionState.COMPLETE_COMMIT


def test_a_batch_that_can_not_be_committed_is_aborted_at_once(warehouse: Warehouse) -> None:
    def write(transaction: Any, batch: MicroBatch) -> None:
        send_one(transaction, batch)
        transaction.flush()
        send_one(transaction, batch)
        warehouse.admin().delete_topic("orders")

    writer: Any = warehouse.batch_writer("etl", write)
    with pytest.raises(TxnTableError):
        writer(MicroBatch("lost"), 1)

    assert warehouse.admin().list_transactions()[0].state is TransactionState.COMPLETE_ABORT


def test_credentials_are_never_shown(warehouse: Warehouse) -> None:
    assert repr(warehouse.batch_writer("etl", send_one)) == f"BatchWriter({warehouse.url!r}, 'etl')"


def test_wrong_settings_are_refused_before_the_stream_begins(warehouse: Warehouse) -> None:
    with pytest.raises(InvalidConfigError):
        warehouse.batch_writer("etl", send_one, transaction_timeout_ms="soon")  # type: ignore[arg-type]

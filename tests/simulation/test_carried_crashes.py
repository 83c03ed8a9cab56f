"""A kill before and after every storage call of a commit whose decision carries all of its segments."""

from __future__ import annotations

from tests.simulation.test_crashes import (
    BATCH,
    TIMEOUT_MS,
    committed_transfers,
    complete,
    kills,
    prepared,
    recover,
    send,
)
from txntable.errors import BatchAlreadyCommittedError
from txntable.partition.markers import Control
from txntable.warehouse.warehouse import Warehouse

TOPICS = ("debit", "credit")


def carry(warehouse: Warehouse) -> None:
    """One transaction over two topics that appends nothing before it is decided, by batch id: safe to run again."""
    producer = warehouse.producer("etl", transaction_timeout_ms=TIMEOUT_MS)
    producer.init_transactions()
    try:
        producer.begin_transaction(batch_id=BATCH)
    except BatchAlreadyCommittedError:
        return
    send(producer, "done")
    send(producer, "more")
    producer.commit_transaction()


def appended(warehouse: Warehouse) -> tuple[int, int]:
    """How many segments, and how many markers, the partition logs of both topics have."""
    rows = [add for name in TOPICS for add in warehouse.topic_log(name).segments.ensure_fresh().files]
    markers = [add for add in rows if add.partition_values["_control"] == Control.COMMIT.value]
    segments = [add for add in rows if add.partition_values["_control"] is None]
    return len(segments), len(markers)


def test_carried_transaction_is_whole_or_nothing_and_its_rerun_makes_it_exactly_once() -> None:
    whole = prepared()
    carry(whole.open())
    segments = appended(whole.open())[0]
    outcomes = []
    for crashed, where in kills(prepared(), carry):
        recover(crashed)
        outcomes.append(committed_transfers(crashed, where))
        assert appended(crashed.open()) in {(0, 0), (segments, len(TOPICS))}, where
        carry(crashed.open())
        assert committed_transfers(crashed, where) == 1, where
        assert appended(crashed.open()) == (segments, len(TOPICS)), where
    assert set(outcomes) == {0, 1}, "the kills must lie on both sides of the decision"


def test_nothing_of_a_carried_transaction_is_open_in_a_partition_log_wherever_it_dies() -> None:
    for crashed, where in kills(prepared(), carry):
        for name in TOPICS:
            segments = crashed.open().topic_log(name).segments
            segments.refresh()
            assert not segments.fold.open, where


def test_completion_of_a_carried_transaction_killed_anywhere_is_finished_by_another() -> None:
    decided = next(
        crashed
        for crashed, where in kills(prepared(), carry)
        if "transaction_log/_delta_log" in where and crashed.open().transactions.log.fold.decided()
    )

    halves = set()
    for crashed, where in kills(decided, complete):
        halves.add(appended(crashed.open())[1])
        recover(crashed)
        assert committed_transfers(crashed, where) == 1, where
        assert appended(crashed.open())[1] == len(TOPICS), where

    assert halves == {0, 1, 2}, "the kills must lie before, between and behind the topics"

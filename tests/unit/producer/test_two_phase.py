"""Prepared transactions: what a producer may do with one, before and after a restart."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import Fault, on
from tests.simulation.site import Site
from tests.unit.producer.producing import PUT, T_LOG, accounts, lose_answers, row, started, store_of
from tests.unit.upkeep.coordinating import SETTINGS, run_once
from txntable.errors import (
    BatchAlreadyCommittedError,
    CommitStateUnknownError,
    IllegalStateError,
    InvalidProducerEpochError,
    InvalidRequestError,
    InvalidTxnStateError,
    StoreUnavailableError,
    TransactionOutcomeUnknownError,
)
from txntable.producer.producer import Producer


def prepared(producer: Producer, batch_id: str | None = None) -> str:
    producer.begin_transaction(batch_id)
    producer.send("u", row=row("x"))
    return producer.prepare_transaction()


def heir_of(site: Site) -> Producer:
    heir = site.open().producer("etl")
    heir.init_transactions(keep_prepared=True)
    return heir


def test_completion_with_the_token_commits(site: Site) -> None:
    producer = started(site.open())
    token = prepared(producer)
    assert accounts(site, "u") == []

    producer.complete_transaction(token)

    assert accounts(site, "u") == ["x"]
    assert producer.state == "READY"


@pytest.mark.parametrize("token", [None, "earlier"])
def test_completion_without_the_token_aborts(site: Site, token: str | None) -> None:
    producer = started(site.open())
    if token is not None:
        token = prepared(producer)
        producer.complete_transaction(token)
    prepared(producer)

    heir = heir_of(site)
    heir.complete_transaction(token)

    assert accounts(site, "u") == ["x"] * (token is not None)


@pytest.mark.parametrize("took_over", [True, False])
def test_completion_leaves_alone_what_another_process_has_prepared_since(site: Site, took_over: bool) -> None:
    """Bug: it asked for an abort, and was told that its committed transaction had been decided otherwise."""
    producer = started(site.open())
    token = prepared(producer)
    if not took_over:
        producer.complete_transaction(token)
    late = heir_of(site)
    if took_over:
        late_heir = heir_of(site)
        late_heir.complete_transaction(token)
    next_one = started(site.open())
    next_token = prepared(next_one)

    late.complete_transaction(token)

    next_one.complete_transaction(next_token)
    assert accounts(site, "u") == ["x", "x"]


def test_completion_by_who_lost_the_id_commits_what_another_process_has_prepared_and_committed_outside(
    site: Site,
) -> None:
    """Bug: it asked under its own epoch, and was told that the transaction had been decided otherwise."""
    late = heir_of(site)
    token = prepared(started(site.open()), "monday")

    late.complete_transaction(token)

    assert accounts(site, "u") == ["x"]
    assert site.open().producer("etl").is_committed("monday")
    with pytest.raises(InvalidProducerEpochError):
        prepared(late)


@pytest.mark.parametrize(("call", "seen"), [("commit_transaction", ["x"]), ("abort_transaction", [])])
def test_prepared_transaction_can_be_decided_by_its_own_producer(site: Site, call: str, seen: list[str]) -> None:
    producer = started(site.open())
    prepared(producer)

    getattr(producer, call)()

    assert accounts(site, "u") == seen


def test_nothing_can_be_added_once_prepared(site: Site) -> None:
    producer = started(site.open())
    prepared(producer)

    for call in (lambda: producer.send("u", row=row("y")), producer.flush, producer.begin_transaction):
        with pytest.raises(IllegalStateError, match="complete_transaction"):
            call()
    with pytest.raises(IllegalStateError):
        producer.init_transactions()


def test_closed_producer_leaves_its_prepared_transaction_to_its_heir(site: Site) -> None:
    with started(site.open()) as producer:
        token = prepared(producer)

    heir = heir_of(site)
    assert heir.state == "PREPARED_TRANSACTION"
    heir.complete_transaction(token)

    assert accounts(site, "u") == ["x"]


def test_exception_in_the_block_leaves_the_transaction_prepared(site: Site) -> None:
    """Whether the external database committed is not known where its commit failed."""
    producer = started(site.open())
    tokens = []

    def both() -> None:
        with producer.transaction() as txn:
            txn.send("u", row=row("x"))
            tokens.append(txn.prepare())
            raise OSError("the database did not answer")

    with pytest.raises(OSError, match="database") as raised:
        both()
    assert "complete it with the token" in raised.value.__notes__[0]

    heir_of(site).complete_transaction(tokens[0])

    assert accounts(site, "u") == ["x"]


def test_batch_id_of_a_prepared_transaction_survives_the_process(site: Site) -> None:
    token = prepared(started(site.open()), "monday")
    heir = heir_of(site)

    heir.complete_transaction(token)

    assert heir.is_committed("monday")
    with pytest.raises(BatchAlreadyCommittedError):
        heir.begin_transaction("monday")


def test_prepared_producer_is_told_when_its_heir_has_decided_otherwise(site: Site) -> None:
    producer = started(site.open())
    token = prepared(producer)
    heir = heir_of(site)
    heir.complete_transaction(None)
    heir.begin_transaction()
    heir.send("u", row=row("heir"))
    heir.flush()

    with pytest.raises(InvalidTxnStateError, match="decided otherwise"):
        producer.commit_transaction()
    heir.commit_transaction()

    assert token
    assert accounts(site, "u") == ["heir"]


@pytest.mark.parametrize("committed", [True, False])
def test_heir_and_who_prepared_never_write_under_one_epoch(site: Site, committed: bool) -> None:
    """Bug: both learned of the one decision and went on under its epoch; a batch of one passed for the other's."""
    producer, heir = started(site.open()), site.open().producer("etl")
    token = prepared(producer)
    heir.init_transactions(keep_prepared=True)
    heir.complete_transaction(token if committed else None)
    producer.commit_transaction() if committed else producer.abort_transaction()
    heir.begin_transaction()
    producer.begin_transaction()

    producer.send("u", row=row("zombie"))
    with pytest.raises(InvalidProducerEpochError):
        producer.flush()
    heir.send("u", row=row("heir"))
    heir.commit_transaction()

    assert accounts(site, "u") == [*["x"] * committed, "heir"]


def test_heir_whose_begin_was_not_answered_begins_again(site: Site) -> None:
    token = prepared(started(site.open()))
    warehouse = site.open()
    heir = warehouse.producer("etl")
    heir.init_transactions(keep_prepared=True)
    heir.complete_transaction(token)
    lose_answers(warehouse, applied=True)
    with pytest.raises(CommitStateUnknownError):
        heir.begin_transaction()

    store_of(warehouse).plan = ()
    heir.begin_transaction()
    heir.send("u", row=row("heir"))
    heir.commit_transaction()

    assert accounts(site, "u") == ["x", "heir"]


def test_id_with_tokens_outlives_the_expiration_of_ids_so_that_they_are_answered(site: Site) -> None:
    producer = started(site.open())
    token = prepared(producer)
    producer.complete_transaction(token)
    site.advance_ms(SETTINGS.batch_retention_ms - 1)
    assert run_once(site).expired_transactional_ids == 0

    heir_of(site).complete_transaction(token)


def test_token_from_before_the_id_expired_is_answered_by_unknown_never_by_silence(site: Site) -> None:
    """Bug: a transaction that an admin had aborted, committed outside, was passed over once the id had expired."""
    token = prepared(started(site.open()))
    site.open().admin().abort_transaction("etl")
    site.advance_ms(SETTINGS.batch_retention_ms)
    assert run_once(site).expired_transactional_ids == 1

    with pytest.raises(TransactionOutcomeUnknownError, match="look whether its records are there"):
        heir_of(site).complete_transaction(token)
    heir = heir_of(site)
    heir.complete_transaction(None)

    assert heir.state == "READY"


@pytest.mark.parametrize("later", ["commit", "abort", "init", "prepare"])
@pytest.mark.parametrize("times", [1, 3])
def test_token_of_an_aborted_transaction_is_told_however_much_came_later(site: Site, later: str, times: int) -> None:
    """Bug: one later transaction of the id was enough, and the difference was passed over in silence."""
    token = prepared(started(site.open()))
    site.open().admin().abort_transaction("etl")
    for _ in range(times):
        producer = started(site.open())
        if later == "prepare":
            producer.complete_transaction(prepared(producer))
        elif later != "init":
            producer.begin_transaction()
            producer.send("u", row=row("later"))
            producer.flush()
            getattr(producer, f"{later}_transaction")()

    with pytest.raises(InvalidTxnStateError, match="aborted although"):
        heir_of(site).complete_transaction(token)


def test_token_of_a_committed_transaction_is_recognised_however_much_came_later(site: Site) -> None:
    producer = started(site.open())
    tokens = []
    for _ in range(3):
        tokens.append(prepared(producer))
        producer.complete_transaction(tokens[-1])
    prepared(producer)

    for token in tokens:
        heir_of(site).complete_transaction(token)

    assert accounts(site, "u") == ["x"] * 3, "the last one was not committed outside"


def test_completion_after_init_does_nothing_when_nothing_was_prepared(site: Site) -> None:
    producer = started(site.open())
    token = prepared(producer)
    producer.complete_transaction(token)

    heir = heir_of(site)
    heir.complete_transaction(token)
    heir.complete_transaction(None)

    assert heir.state == "READY"
    assert accounts(site, "u") == ["x"]


def test_prepare_of_unknown_outcome_is_asked_again_with_the_same_token(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    producer.begin_transaction()
    producer.send("u", row=row("x"))
    producer.flush()
    lose_answers(warehouse, applied=True)
    with pytest.raises(CommitStateUnknownError):
        producer.prepare_transaction()
    with pytest.raises(IllegalStateError, match="prepare_transaction again"):
        producer.abort_transaction()

    store_of(warehouse).plan = ()
    token = producer.prepare_transaction()

    stored = site.open().transactions
    stored.refresh()
    found = stored.row("etl")
    assert found is not None
    assert found.token == token
    producer.complete_transaction(token)
    assert accounts(site, "u") == ["x"]


def test_prepare_that_did_not_happen_leaves_the_transaction_open(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    producer.begin_transaction()
    producer.send("u", row=row("x"))
    store_of(warehouse).plan = (
        on(PUT, "u/_segments/p", Fault.FAIL_BEFORE),
        on(None, "u/_segments/p", Fault.FAIL_BEFORE),
    )

    with pytest.raises(StoreUnavailableError):
        producer.prepare_transaction()

    assert producer.state == "IN_TRANSACTION"
    store_of(warehouse).plan = ()
    producer.complete_transaction(producer.prepare_transaction())
    assert accounts(site, "u") == ["x"]


def test_completion_of_unknown_outcome_may_only_be_asked_again(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    token = prepared(producer)
    lose_answers(warehouse, applied=True)
    store_of(warehouse).plan = (store_of(warehouse).plan[0], on(None, T_LOG, Fault.FAIL_BEFORE, occurrence=None))
    with pytest.raises((CommitStateUnknownError, StoreUnavailableError)):
        producer.complete_transaction(token)

    store_of(warehouse).plan = ()
    producer.complete_transaction(token)

    assert producer.state == "READY"
    assert accounts(site, "u") == ["x"]


def test_token_of_another_transactional_id_is_refused_and_nothing_ends(site: Site) -> None:
    other = started(site.open(), "other")
    wrong = prepared(other)
    producer = started(site.open())
    token = prepared(producer)

    with pytest.raises(InvalidRequestError, match="another producer id"):
        producer.complete_transaction(wrong)

    producer.complete_transaction(token)
    assert accounts(site, "u") == ["x"]


def test_empty_transaction_can_be_prepared(site: Site) -> None:
    producer = started(site.open())
    producer.begin_transaction("nothing today")

    producer.complete_transaction(producer.prepare_transaction())

    assert producer.is_committed("nothing today")

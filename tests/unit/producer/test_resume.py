"""A producer that goes on with the identity that another process got (a driver whose steps are processes)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.site import Site
from tests.unit.producer.producing import accounts, row, started
from txntable.errors import (
    BatchAlreadyCommittedError,
    BatchOutOfOrderError,
    IllegalStateError,
    InvalidRequestError,
    TxnTableError,
)
from txntable.partition.batch import ProducerEpoch
from txntable.producer.producer import Producer


def identity_of(producer: Producer) -> ProducerEpoch:
    assert producer.producer_id is not None
    assert producer.producer_epoch is not None
    return ProducerEpoch(producer.producer_id, producer.producer_epoch)


def test_transaction_commits_when_another_process_resumes_the_identity(site: Site) -> None:
    identity = identity_of(started(site.open()))
    producer = site.open().producer("etl")

    producer.resume(identity)
    with producer.transaction() as transaction:
        transaction.send("t", row=row("a"))

    assert accounts(site, "t") == ["a"]
    assert identity_of(producer) == ProducerEpoch(identity.producer_id, identity.epoch + 1)


@pytest.mark.parametrize("batch_id", [None, "2026-11-20"])
def test_resumed_identity_is_refused_when_a_newer_producer_has_the_id(site: Site, batch_id: str | None) -> None:
    identity = identity_of(started(site.open()))
    started(site.open())
    producer = site.open().producer("etl")
    producer.resume(identity)

    with pytest.raises(TxnTableError) as refused, producer.transaction(batch_id) as transaction:
        transaction.send("t", row=row("zombie"))

    assert refused.value.code in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
    assert accounts(site, "t") == []


def test_records_without_a_transaction_are_sent_under_a_resumed_identity(site: Site) -> None:
    first = site.open().producer()
    first.send("t", row=row("never flushed"))
    producer = site.open().producer()

    producer.resume(identity_of(first))
    producer.send("t", row=row("a"))
    producer.close()

    assert accounts(site, "t") == ["a"]


def with_identity(site: Site) -> Producer:
    return started(site.open())


def that_has_sent(site: Site) -> Producer:
    producer = site.open().producer()
    producer.send("t", row=row("a"))
    return producer


def at_least_once(site: Site) -> Producer:
    return site.open().producer(enable_idempotence=False)


@pytest.mark.parametrize("made", [with_identity, that_has_sent, at_least_once])
def test_resume_is_refused_when_the_producer_has_or_needs_no_identity(
    site: Site, made: Callable[[Site], Producer]
) -> None:
    producer = made(site)
    before = producer.producer_id

    with pytest.raises(IllegalStateError):
        producer.resume(ProducerEpoch(77, 0))

    assert producer.producer_id == before


@pytest.mark.parametrize(
    ("batch_id", "refusal"),
    [(6, BatchOutOfOrderError), (7, BatchAlreadyCommittedError), ("a", BatchAlreadyCommittedError)],
)
def test_batch_is_refused_without_fencing_anybody_when_it_can_not_commit_any_more(
    site: Site, batch_id: str | int, refusal: type[TxnTableError]
) -> None:
    running = started(site.open())
    for committed in (7, "a"):
        with running.transaction(committed):
            pass
    running.begin_transaction()

    with pytest.raises(refusal):
        site.open().producer("etl").check_batch(batch_id)

    running.send("t", row=row("still running"))
    running.commit_transaction()
    assert accounts(site, "t") == ["still running"]


def test_name_of_digits_alone_is_refused_before_anything_begins(site: Site) -> None:
    producer = started(site.open())

    for call in (producer.begin_transaction, producer.check_batch, producer.is_committed):
        with pytest.raises(InvalidRequestError, match=r"digits alone .*, or pass an int"):
            call("20261120")

    with producer.transaction(20261120):
        producer.send("t", row=row("a"))
    assert producer.is_committed(20261120)


@pytest.mark.parametrize("batch_id", [8, "b"])
def test_batch_that_may_commit_passes_the_check(site: Site, batch_id: str | int) -> None:
    running = started(site.open())
    for committed in (7, "a"):
        with running.transaction(committed):
            pass

    running.check_batch(batch_id)

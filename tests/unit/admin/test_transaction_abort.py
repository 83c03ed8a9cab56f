"""An admin's abort of what is open, and what the producer meets then (a real broker's 12 and 30)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.site import Site
from tests.unit.admin.administering import (
    PLACE,
    decide_only,
    is_stable,
    names,
    opened,
    prepare,
    row_of,
)
from tests.unit.producer.producing import PUT, T_LOG, accounts, lose_answers, row, started, store_of
from txntable.coordinator.decision import Outcome
from txntable.coordinator.open_epoch_status import OpenEpochStatus
from txntable.coordinator.transaction_state import TransactionState as S
from txntable.errors import (
    CommitStateUnknownError,
    InvalidProducerEpochError,
    InvalidRequestError,
    InvalidTxnStateError,
    TransactionalIdNotFoundError,
    UnknownTopicOrPartitionError,
)

# -- by the id ----------------------------------------------------------------------------------


@pytest.mark.parametrize("prepared", [False, True])
def test_abort_by_id_ends_an_open_transaction_prepared_or_not(site: Site, prepared: bool) -> None:
    warehouse = site.open()
    producer = opened(warehouse)
    if prepared:
        prepare(warehouse)

    aborted = site.open().admin().abort_transaction("etl")

    assert (aborted.producer_id, aborted.producer_epoch) == (producer.producer_id, producer.producer_epoch)
    assert (aborted.transactional_id, aborted.status) == ("etl", OpenEpochStatus.OPEN)
    assert row_of(warehouse).state is S.COMPLETE_ABORT
    assert (accounts(site, "u"), is_stable(site)) == ([], True)


def test_abort_by_id_refuses_the_commit_of_the_producer_for_good(site: Site) -> None:
    """Better than a broker, where the commit half succeeds (30)."""
    producer = opened(site.open())
    site.open().admin().abort_transaction("etl")

    with pytest.raises(InvalidTxnStateError):
        producer.commit_transaction()

    assert (producer.state, accounts(site, "u")) == ("FATAL_ERROR", [])


def test_abort_by_id_lets_the_producer_abort_and_go_on(site: Site) -> None:
    producer = opened(site.open())
    site.open().admin().abort_transaction("etl")

    producer.abort_transaction()
    with producer.transaction() as txn:
        txn.send("u", row=row("next"))

    assert accounts(site, "u") == ["next"]


def test_abort_by_id_makes_the_next_send_an_old_epochs(site: Site) -> None:
    producer = opened(site.open())
    site.open().admin().abort_transaction("etl")

    producer.send("u", row=row("late"))
    with pytest.raises(InvalidProducerEpochError):
        producer.flush()

    assert producer.state == "ABORTABLE_ERROR"


def test_abort_by_id_of_what_has_timed_out_is_the_timeouts(site: Site) -> None:
    """Whoever is first decides; the other finds nothing open."""
    opened(site.open(), transaction_timeout_ms=10_000)
    site.advance_ms(10_001)
    site.open().complete()

    with pytest.raises(InvalidTxnStateError, match="state=COMPLETE_ABORT"):
        site.open().admin().abort_transaction("etl")


def test_abort_by_id_after_the_timeout_aborts_what_nobody_has_seen_to(site: Site) -> None:
    opened(site.open(), transaction_timeout_ms=10_000)
    site.advance_ms(10_001)

    site.open().admin().abort_transaction("etl")

    assert site.open().complete() == 0


def test_abort_by_id_only_says_what_it_would_do_when_it_validates(site: Site) -> None:
    producer = opened(site.open())
    before = dict(site.objects.snapshot())

    aborted = site.open().admin().abort_transaction("etl", validate_only=True)

    assert aborted.status is OpenEpochStatus.OPEN
    assert {path for path in site.objects.snapshot() if path not in before} == set()
    producer.commit_transaction()
    assert accounts(site, "u") == ["open"]


@pytest.mark.parametrize("validate_only", [False, True])
def test_abort_by_id_says_that_nothing_is_open(site: Site, validate_only: bool) -> None:
    started(site.open())

    with pytest.raises(InvalidTxnStateError, match=r"nothing to abort .*transactional_id=etl state=EMPTY"):
        site.open().admin().abort_transaction("etl", validate_only=validate_only)


def test_abort_by_id_leaves_a_decision_to_its_completion(site: Site) -> None:
    warehouse = site.open()
    decide_only(warehouse, opened(warehouse))

    with pytest.raises(InvalidTxnStateError, match="waits only for completion"):
        site.open().admin().abort_transaction("etl")

    site.open().complete()
    assert accounts(site, "u") == ["open"]


def test_abort_by_id_says_not_found_of_an_unknown_id(site: Site) -> None:
    with pytest.raises(TransactionalIdNotFoundError, match="transactional_id=nobody"):
        site.open().admin().abort_transaction("nobody")


def test_abort_by_id_of_unknown_outcome_is_found_to_be_done_by_the_same_call(site: Site) -> None:
    opened(site.open())
    warehouse = site.open()
    admin = warehouse.admin()
    lose_answers(warehouse, applied=True)

    with pytest.raises(CommitStateUnknownError):
        admin.abort_transaction("etl")
    store_of(warehouse).plan = ()
    with pytest.raises(InvalidTxnStateError, match="state=PREPARE_ABORT"):
        admin.abort_transaction("etl")

    site.open().complete()
    assert is_stable(site)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"transactional_id": ""},
        {"transactional_id": 3},
        {"transactional_id": "etl", **PLACE, "start_offset": 0},
        {"transactional_id": "etl", "producer_id": 0},
        PLACE,
        {"topic": "u", "start_offset": 0},
        {**PLACE, "producer_id": 0},
        {**PLACE, "producer_epoch": 0},
        {**PLACE, "start_offset": 0, "producer_id": 0, "producer_epoch": 0},
        {**PLACE, "start_offset": -1},
        {**PLACE, "start_offset": "0"},
        {"topic": "u", "partition": -1, "start_offset": 0},
    ],
)
def test_abort_refuses_arguments_that_name_no_transaction_or_two(site: Site, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError):
        site.open().admin().abort_transaction(**arguments)


# -- by the place -------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["offset", "epoch"])
def test_abort_by_place_decides_in_the_transaction_log(site: Site, way: str) -> None:
    warehouse = site.open()
    producer = opened(warehouse)

    aborted = site.open().admin().abort_transaction(**names(warehouse, way))

    decision = row_of(warehouse).decision
    assert decision is not None
    assert (decision.epoch, decision.outcome) == (producer.producer_epoch, Outcome.ABORT)
    assert (aborted.transactional_id, aborted.status) == ("etl", OpenEpochStatus.OPEN)
    with pytest.raises(InvalidTxnStateError):
        producer.commit_transaction()
    assert is_stable(site)


@pytest.mark.parametrize("way", ["offset", "epoch"])
def test_abort_by_place_never_touches_a_later_transaction_of_the_id(site: Site, way: str) -> None:
    warehouse = site.open()
    producer = opened(warehouse)
    named = names(warehouse, way)
    producer.commit_transaction()
    producer.begin_transaction()
    producer.send("u", row=row("later"))
    producer.flush()

    with pytest.raises(InvalidTxnStateError, match="no such transaction is open"):
        site.open().admin().abort_transaction(**named)
    producer.commit_transaction()

    assert accounts(site, "u") == ["open", "later"]


def test_abort_by_place_that_loses_its_slot_to_the_commit_leaves_the_later_transaction_alone(site: Site) -> None:
    """Between the admin's reading and its put, the producer commits and begins again."""
    warehouse, admins = site.open(), site.open()
    producer = opened(warehouse)
    admin = admins.admin()

    def overtake(step: Any) -> None:
        is_decision = step.operation is PUT and T_LOG in step.path
        if is_decision and producer.producer_epoch == 0:
            producer.commit_transaction()
            producer.begin_transaction()
            producer.send("u", row=row("later"))
            producer.flush()

    store_of(admins).on_step = overtake
    admin.abort_transaction(**PLACE, start_offset=0)

    assert producer.producer_epoch == 1, "the race was not played"
    producer.commit_transaction()
    assert accounts(site, "u") == ["open", "later"]


def test_abort_by_place_completes_what_is_decided(site: Site) -> None:
    warehouse = site.open()
    decide_only(warehouse, opened(warehouse))

    aborted = site.open().admin().abort_transaction(**PLACE, start_offset=0)

    assert aborted.status is OpenEpochStatus.DECIDED
    assert (accounts(site, "u"), row_of(warehouse).state) == (["open"], S.COMPLETE_COMMIT)


@pytest.mark.parametrize(
    "place",
    [{**PLACE, "start_offset": 1}, {**PLACE, "producer_id": 0, "producer_epoch": 9}, {"partition": 0, "topic": "t"}],
)
def test_abort_by_place_says_that_nothing_is_open_there(site: Site, place: dict[str, Any]) -> None:
    opened(site.open())
    named = place if len(place) > 2 else {**place, "start_offset": 0}

    with pytest.raises(InvalidTxnStateError, match="producers to see all"):
        site.open().admin().abort_transaction(**named)


@pytest.mark.parametrize("place", [{"topic": "u", "partition": 1}, {"topic": "nowhere", "partition": 0}])
def test_abort_by_place_says_that_there_is_no_such_partition(site: Site, place: dict[str, Any]) -> None:
    with pytest.raises(UnknownTopicOrPartitionError):
        site.open().admin().abort_transaction(**place, start_offset=0)

"""Who has a transactional id: first and later inits, races between them, and what zombies are told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.doubles.fault_plan import Fault, Step, on
from tests.simulation.site import Site
from tests.unit.producer.producing import PUT, T_LOG, accounts, row, started, store_of, unreachable
from txntable.errors import (
    CommitStateUnknownError,
    InvalidConfigError,
    InvalidProducerEpochError,
    ProducerFencedError,
    StoreUnavailableError,
    TxnTableError,
)
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse


def transaction_log_entries(site: Site) -> int:
    return len([path for path in site.objects_below("system/transaction_log/_delta_log") if path.endswith(".json")])


def with_data(warehouse: Warehouse, account: str) -> Producer:
    """A producer whose transaction has data in the log."""
    producer = started(warehouse)
    producer.begin_transaction()
    producer.send("u", row=row(account))
    producer.flush()
    return producer


def before_first_put_of_t(warehouse: Warehouse, overtake: Callable[[], object]) -> None:
    """Let something else happen just before the next entry of T is put."""
    done: list[str] = []

    def on_step(step: Step) -> None:
        if step.operation is PUT and T_LOG in step.path and not done:
            done.append(step.path)
            overtake()

    store_of(warehouse).on_step = on_step


# -- identities ---------------------------------------------------------------------------------


def test_producers_without_an_id_get_ids_of_their_own_under_epoch_zero(site: Site) -> None:
    one_process, other = site.open(), site.open()
    producers = [one_process.producer(), one_process.producer(), other.producer(), started(other)]
    for producer in producers[:3]:
        producer.send("u", row=row("x"))

    assert len({producer.producer_id for producer in producers}) == len(producers)
    assert {producer.producer_epoch for producer in producers} == {0}


def test_empty_transactional_id_is_an_invalid_request_and_takes_nothing(site: Site) -> None:
    before = transaction_log_entries(site)

    with pytest.raises(InvalidConfigError, match="transactional id"):
        site.open().producer("").init_transactions()

    assert transaction_log_entries(site) == before


def test_idle_id_keeps_its_producer_id_and_rises_by_one_epoch_at_each_init(site: Site) -> None:
    identities = [(p.producer_id, p.producer_epoch) for p in (started(site.open()) for _ in range(3))]

    assert identities == [(identities[0][0], epoch) for epoch in range(3)]


def test_id_with_an_open_transaction_rises_by_two_epochs_at_its_next_init(site: Site) -> None:
    with_data(site.open(), "old")

    assert started(site.open()).producer_epoch == 2


def test_transactional_ids_do_not_touch_one_another(site: Site) -> None:
    one, other = started(site.open(), "one"), started(site.open(), "other")
    one.begin_transaction()
    other.begin_transaction()
    one.send("u", row=row("one"))
    other.send("u", row=row("other"))
    other.flush()
    one.flush()
    one.abort_transaction()
    other.commit_transaction()

    assert accounts(site, "u") == ["other"]
    assert one.producer_id != other.producer_id


# -- races between inits ------------------------------------------------------------------------


@pytest.mark.parametrize("known", [False, True], ids=["new id", "known id"])
def test_init_that_was_overtaken_by_another_is_the_producer_and_the_other_is_fenced(site: Site, known: bool) -> None:
    if known:
        started(site.open())
    slow = site.open()
    winners: list[Producer] = []
    before_first_put_of_t(slow, lambda: winners.append(started(site.open())))

    last = started(slow)

    (first,) = winners
    assert (last.producer_id, last.producer_epoch) == (first.producer_id, (first.producer_epoch or 0) + 1)
    first.begin_transaction()
    first.send("u", row=row("fenced"))
    with pytest.raises(InvalidProducerEpochError):
        first.flush()
    with last.transaction() as txn:
        txn.send("u", row=row("last"))
    assert accounts(site, "u") == ["last"]


def test_take_over_that_was_overtaken_by_the_commit_leaves_it_committed(site: Site) -> None:
    producer = with_data(site.open(), "kept")
    slow = site.open()
    before_first_put_of_t(slow, producer.commit_transaction)

    heir = started(slow)

    assert accounts(site, "u") == ["kept"]
    assert heir.producer_epoch == 2, "the commit raised it by one, init by one"


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.EXISTS_LOST, Fault.FAIL_BEFORE, Fault.CONFLICT_409])
@pytest.mark.parametrize("occurrence", [1, 2, 3])
def test_fencing_raises_the_epoch_once_when_a_put_of_it_is_answered_wrongly(
    site: Site, fault: Fault, occurrence: int
) -> None:
    with_data(site.open(), "old")
    warehouse = site.open(on(PUT, T_LOG, fault, occurrence=occurrence))

    assert started(warehouse).producer_epoch == 2


def test_init_of_unknown_outcome_is_made_again_and_has_the_id(site: Site) -> None:
    """Kafka may raise the epoch once more for it, and so do we: nobody was told of the first one."""
    old = with_data(site.open(), "old")
    warehouse = site.open()
    heir = warehouse.producer("etl")
    store_of(warehouse).plan = (on(PUT, T_LOG, Fault.LOST_ANSWER, occurrence=None), unreachable(T_LOG)[1])
    with pytest.raises((CommitStateUnknownError, StoreUnavailableError)):
        heir.init_transactions()
    assert heir.state == "UNINITIALIZED"

    store_of(warehouse).plan = ()
    heir.init_transactions()
    with heir.transaction() as txn:
        txn.send("u", row=row("heir"))

    assert accounts(site, "u") == ["heir"]
    with pytest.raises(ProducerFencedError):
        old.commit_transaction()


def test_third_producer_works_when_the_second_could_not_finish_its_fencing(site: Site) -> None:
    zombie = with_data(site.open(), "old")
    second = site.open(on(None, "markers/", Fault.FAIL_BEFORE, occurrence=None))
    with pytest.raises(StoreUnavailableError):
        started(second)

    with started(site.open()).transaction() as txn:
        txn.send("u", row=row("third"))

    assert accounts(site, "u") == ["third"]
    with pytest.raises(ProducerFencedError):
        zombie.commit_transaction()


# -- zombies ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (started, "a newer producer has the transactional id, or an admin has fenced it: abort"),
        (
            lambda other: other.admin().abort_transaction("etl"),
            "its timeout had passed, an admin aborted it, or another",
        ),
    ],
    ids=["newer producer", "admin"],
)
def test_refusal_by_a_partition_names_the_id_and_who_ended_the_transaction(
    site: Site, end: Callable[[Warehouse], object], said: str
) -> None:
    zombie = with_data(site.open(), "zombie")
    end(site.open())
    zombie.send("u", row=row("again"))

    with pytest.raises(InvalidProducerEpochError, match=said) as refused:
        zombie.commit_transaction()

    assert refused.value.facts["transactional_id"] == "etl"
    assert "the partition has seen a newer epoch" in str(refused.value.__cause__)


def test_refusal_by_a_partition_stays_as_it_is_when_who_ended_the_transaction_cannot_be_read(site: Site) -> None:
    warehouse = site.open()
    zombie = with_data(warehouse, "zombie")
    started(site.open())
    zombie.send("u", row=row("again"))
    store_of(warehouse).plan = unreachable(T_LOG)

    with pytest.raises(InvalidProducerEpochError, match="the partition has seen a newer epoch"):
        zombie.commit_transaction()


def test_zombie_whose_send_failed_hears_it_again_at_its_commit_and_is_fenced_at_its_abort(site: Site) -> None:
    zombie = with_data(site.open(), "zombie")
    started(site.open())
    told: list[tuple[str, str]] = []

    zombie.send("u", row=row("again"))
    for call in (zombie.flush, zombie.commit_transaction, zombie.abort_transaction, zombie.begin_transaction):
        with pytest.raises(TxnTableError) as refused:
            call()
        told.append((refused.value.code, zombie.state))

    assert told == [
        ("INVALID_PRODUCER_EPOCH", "ABORTABLE_ERROR"),
        ("INVALID_PRODUCER_EPOCH", "ABORTABLE_ERROR"),
        ("PRODUCER_FENCED", "FATAL_ERROR"),
        ("PRODUCER_FENCED", "FATAL_ERROR"),
    ]
    assert accounts(site, "u") == []


def test_fenced_producer_is_refused_before_its_first_append_of_a_transaction(site: Site) -> None:
    """Joining a partition is refused, not only the append."""
    fenced = started(site.open())
    started(site.open())
    fenced.begin_transaction()
    fenced.send("u", row=row("x"))
    before = transaction_log_entries(site)

    with pytest.raises(InvalidProducerEpochError):
        fenced.flush()

    assert fenced.state == "ABORTABLE_ERROR"
    assert transaction_log_entries(site) == before
    assert not [path for path in site.objects_below("topics/u/_segments/_delta_log") if path.endswith("1.json")]


@pytest.mark.parametrize("call", ["commit_transaction", "abort_transaction"])
def test_empty_transaction_ends_without_a_request_even_for_a_zombie(site: Site, call: str) -> None:
    zombie = started(site.open())
    started(site.open())
    before = transaction_log_entries(site)
    zombie.begin_transaction()

    getattr(zombie, call)()

    assert zombie.state == "READY"
    assert transaction_log_entries(site) == before


def test_zombies_decision_before_its_fencing_stands(site: Site) -> None:
    """Its commit was granted, only its answer came after the fencing."""
    warehouse = site.open()
    zombie = with_data(warehouse, "kept")
    store_of(warehouse).plan = (on(PUT, T_LOG, Fault.LOST_ANSWER, occurrence=None), unreachable(T_LOG)[1])
    with pytest.raises(CommitStateUnknownError):
        zombie.commit_transaction()
    started(site.open())

    store_of(warehouse).plan = ()
    zombie.commit_transaction()

    assert accounts(site, "u") == ["kept"]
    zombie.begin_transaction()
    zombie.send("u", row=row("no more"))
    with pytest.raises(InvalidProducerEpochError):
        zombie.flush()

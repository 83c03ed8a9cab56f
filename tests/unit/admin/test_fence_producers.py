"""An admin takes transactional ids from their producers (behaviour 116)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.site import Site
from tests.unit.admin.administering import (
    decide_only,
    is_stable,
    opened,
    prepare,
    row_of,
)
from tests.unit.producer.producing import accounts, row, started
from txntable.coordinator.transaction_state import TransactionState as S
from txntable.errors import (
    InvalidProducerEpochError,
    InvalidRequestError,
    InvalidTxnStateError,
    ProducerFencedError,
)


def test_fence_before_the_commit_makes_the_old_producer_fail(site: Site) -> None:
    producer = opened(site.open())

    fenced = site.open().admin().fence_producers(["etl"])

    assert fenced == {"etl": (producer.producer_id, 2)}, "the abort raised it by one, the fencing by one"
    with pytest.raises(ProducerFencedError):
        producer.commit_transaction()
    assert (accounts(site, "u"), is_stable(site)) == ([], True)


def test_fence_after_the_commit_makes_the_old_producer_fail_at_its_next_transaction(site: Site) -> None:
    producer = started(site.open())
    with producer.transaction() as txn:
        txn.send("u", row=row("a"))

    site.open().admin().fence_producers(["etl"])
    producer.begin_transaction()
    producer.send("u", row=row("b"))

    with pytest.raises(InvalidProducerEpochError):
        producer.flush()
    with pytest.raises(ProducerFencedError):
        producer.abort_transaction()
    assert accounts(site, "u") == ["a"]


def test_fence_completes_what_is_decided(site: Site) -> None:
    warehouse = site.open()
    decide_only(warehouse, opened(warehouse))

    site.open().admin().fence_producers(["etl"])

    assert (accounts(site, "u"), row_of(warehouse).state) == (["open"], S.EMPTY)


def test_fence_keeps_the_timeout_of_the_id_and_creates_an_unknown_one(site: Site) -> None:
    warehouse = site.open()
    started(warehouse, transaction_timeout_ms=5_000)

    fenced = site.open().admin().fence_producers(["etl", "new", "etl"])

    assert list(fenced) == ["etl", "new"]
    assert (row_of(warehouse).timeout_ms, row_of(warehouse).producer_epoch) == (5_000, 1)
    assert (row_of(warehouse, "new").timeout_ms, fenced["new"][1]) == (60_000, 0)


def test_fence_refuses_a_prepared_transaction_before_it_fences_any(site: Site) -> None:
    warehouse = site.open()
    started(warehouse, "other")
    opened(warehouse)
    prepare(warehouse)

    with pytest.raises(InvalidTxnStateError, match="abort it first"):
        site.open().admin().fence_producers(["other", "etl"])

    assert row_of(warehouse, "other").producer_epoch == 0
    assert row_of(warehouse).state is S.PREPARED


@pytest.mark.parametrize("ids", ["etl", [""], ["fine", 3], None])
def test_fence_refuses_an_empty_id_and_what_is_no_list_and_fences_none(site: Site, ids: Any) -> None:
    with pytest.raises(InvalidRequestError):
        site.open().admin().fence_producers(ids)

    assert site.open().admin().list_transactions() == []

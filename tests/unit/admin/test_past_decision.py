"""How a transaction was decided that its id has left behind."""

from __future__ import annotations

from tests.simulation.site import Site
from tests.unit.producer.producing import row, started
from txntable.admin.past_decision import past_decision
from txntable.admin.restoration import Restoration
from txntable.coordinator.decision import Outcome
from txntable.format.layout import TRANSACTION_LOG_ROOT, commit_path
from txntable.warehouse.warehouse import open_on


def run(site: Site, outcome: Outcome, topic: str = "u") -> None:
    producer = started(site.open())
    producer.begin_transaction()
    producer.send(topic, row=row("one"))
    producer.flush()
    producer.commit_transaction() if outcome is Outcome.COMMIT else producer.abort_transaction()


def test_decision_is_found_below_those_of_later_epochs_and_of_other_ids(site: Site) -> None:
    for outcome in (Outcome.COMMIT, Outcome.ABORT, Outcome.COMMIT):
        run(site, outcome)
        started(site.open(), "other").close()
    transactions = site.open().transactions
    transactions.refresh()
    owner = transactions.row("etl")
    assert owner is not None

    decisions = [past_decision(transactions, owner.producer_id, epoch) for epoch in range(owner.producer_epoch + 2)]

    found = [(one.epoch, one.outcome) for one in decisions if one is not None]
    assert [outcome for _, outcome in found] == [Outcome.COMMIT, Outcome.ABORT, Outcome.COMMIT]
    assert past_decision(transactions, owner.producer_id + 100, 0) is None


def test_decision_of_an_entry_that_is_void_is_none(site: Site) -> None:
    producer = started(site.open())
    backup, transactions = site.objects.snapshot(), site.open().transactions
    head = transactions.refresh()
    owner = transactions.row("etl")
    assert owner is not None
    producer.begin_transaction()
    producer.send("u", row=row("lost"))
    producer.flush()
    producer.commit_transaction()
    lost = past_decision(site.open().transactions, owner.producer_id, owner.producer_epoch)
    assert lost is not None
    assert (lost.outcome, lost.position) == (Outcome.COMMIT, head + 2)
    stray = site.objects.get(commit_path(TRANSACTION_LOG_ROOT, lost.position))
    assert stray is not None
    site.objects.restore(backup)
    site.advance_ms(900_000)
    started(site.open(), "new").close()
    site.objects.put(commit_path(TRANSACTION_LOG_ROOT, lost.position), stray.data)
    recovering = open_on(site.store(), site.environment(), recovering=True)
    Restoration(recovering.completer, recovering.admin()).fence_all()

    assert past_decision(site.open().transactions, owner.producer_id, owner.producer_epoch) is None

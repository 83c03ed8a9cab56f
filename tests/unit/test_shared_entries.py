"""Transactions of several producers of one process, decided by one entry of T (PROTOCOL.md §4.2 rule 14, §6.2)."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import pytest

from tests.doubles.crowded_lock import CrowdedLock
from tests.doubles.fault_plan import Fault, on
from tests.doubles.manual_environment import ManualEnvironment
from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.producer.producing import PUT, T_LOG, accounts, lose_answers, row, started, store_of
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import CommitStateUnknownError, ProducerFencedError, TxnTableError
from txntable.format.layout import commit_path
from txntable.format.records import TopicPartition
from txntable.log.actions import Add, decode_commit
from txntable.log.keyed_table import KIND
from txntable.producer.producer import Producer
from txntable.storage.object_store import ObjectStore
from txntable.transactions.transaction_log import TransactionLog
from txntable.transactions.transaction_rows import ID_KIND, id_row_of
from txntable.warehouse.warehouse import Warehouse

IDS = ("a", "b", "c")


@pytest.fixture
def site() -> Site:
    """A warehouse with two topics."""
    site = Site()
    admin = site.create().admin()
    for topic in ("t", "u"):
        admin.create_topic(topic, partitions=1, schema=TWO_COLUMNS)
    return site


class Company:
    """Producers of one process that commit at the same time.

    Parameters
    ----------
    site : Site
        Where.
    ids : sequence of str
        Of the producers, each in a transaction with a record of its own.
    """

    def __init__(self, site: Site, ids: tuple[str, ...] = IDS) -> None:
        with patch.object(ManualEnvironment, "lock", lambda _: CrowdedLock()):
            self.warehouse = site.open()
        self.producers = {each: started(self.warehouse, each) for each in ids}
        self.failures: dict[str, TxnTableError] = {}
        for each, producer in self.producers.items():
            producer.begin_transaction()
            producer.send("t" if each != "c" else "u", row=row(each))

    def commit(self) -> None:
        """Let all commit, as those after the first wait while it has T."""
        lock = self.warehouse.transactions.log.lock
        assert isinstance(lock, CrowdedLock)
        first, *others = self.producers
        for each in others:
            lock.will_come(self._committing(each))
        self._committing(first)()
        for thread in lock.threads:
            thread.join()

    def _committing(self, each: str) -> Callable[[], None]:
        def commit() -> None:
            try:
                self.producers[each].commit_transaction()
            except TxnTableError as error:
                self.failures[each] = error

        return commit


def decisions(site: Site) -> list[list[str]]:
    """The ids that each entry of T decides, where it decides any."""
    return [ids for ids in map(_decided, _entries(site.open())) if ids]


def _entries(warehouse: Warehouse) -> list[tuple[int, bytes]]:
    root, head = warehouse.transactions.log.root, warehouse.transactions.refresh()
    found = [(version, warehouse.store.get(commit_path(root, version))) for version in range(head + 1)]
    return [(version, entry.data) for version, entry in found if entry is not None]


def _decided(entry: tuple[int, bytes]) -> list[str]:
    version, data = entry
    adds = [one for one in decode_commit(version, data, "T").actions if isinstance(one, Add)]
    rows = [id_row_of(one) for one in adds if one.partition_values[KIND] == ID_KIND]
    assert all(one.position == version for one in rows)
    return [one.transactional_id for one in rows if one.state.is_decided]


def test_transactions_that_commit_at_the_same_time_are_decided_by_one_entry(site: Site) -> None:
    Company(site).commit()

    assert decisions(site) == [["a", "b", "c"]]
    assert accounts(site, "t") == ["a", "b"]
    assert accounts(site, "u") == ["c"]


def test_decisions_of_one_entry_are_completed_by_one_commit_of_each_topic(site: Site) -> None:
    company = Company(site)
    before = company.warehouse.topic_log("t").segments.refresh().version or 0

    company.commit()

    assert company.warehouse.topic_log("t").segments.refresh().version == before + 1


def test_snapshot_at_the_shared_position_shows_all_and_the_one_below_it_none(site: Site) -> None:
    Company(site).commit()
    warehouse = site.open()
    position = warehouse.transactions.row("a").decision.position  # type: ignore[union-attr]

    shown = [warehouse.snapshot(as_of).read_arrow("t").read_all().num_rows for as_of in (position - 1, position)]

    assert shown == [0, 2]


def test_decisions_of_one_entry_are_completed_by_others_when_their_process_dies(site: Site) -> None:
    company = Company(site)
    store_of(company.warehouse).plan = (on(PUT, "_segments/_delta_log", Fault.FAIL_BEFORE, occurrence=None),)
    company.commit()
    assert accounts(site, "t") == []

    site.open().complete()

    assert accounts(site, "t") == ["a", "b"]
    assert accounts(site, "u") == ["c"]
    states = {each: site.open().transactions.row(each).state for each in IDS}  # type: ignore[union-attr]
    assert set(states.values()) == {TransactionState.COMPLETE_COMMIT}


def test_checkpoint_of_decisions_that_share_a_position_says_of_each_that_it_is_owed(site: Site) -> None:
    company = Company(site)
    store_of(company.warehouse).plan = (on(PUT, "_segments/_delta_log", Fault.FAIL_BEFORE, occurrence=None),)
    company.commit()
    site.open().transactions.log.write_checkpoint()

    fold = site.open().transactions
    fold.refresh()

    assert [one.transactional_id for one in fold.log.fold.incomplete()] == ["a", "b", "c"]
    assert fold.log.fold.decided_at_ms.keys() == {"a", "b", "c"}


def test_producer_that_was_fenced_is_refused_and_the_others_of_its_entry_commit(site: Site) -> None:
    company = Company(site)
    started(site.open(), "b").close()

    company.commit()

    assert isinstance(company.failures.pop("b"), ProducerFencedError)
    assert company.failures == {}
    assert decisions(site) == [["a", "c"]]
    assert accounts(site, "t") == ["a"]


def test_producer_that_is_fenced_as_the_slot_is_lost_is_refused_and_the_others_commit(site: Site) -> None:
    company = Company(site)

    def fence(store: ObjectStore, path: str) -> None:
        started(site.open(), "b").close()

    store_of(company.warehouse).plan = (on(PUT, T_LOG, Fault.TAKEN, intruder=fence),)

    company.commit()

    assert isinstance(company.failures.pop("b"), ProducerFencedError)
    assert company.failures == {}
    assert decisions(site) == [["a", "c"]]


def test_answer_that_is_lost_for_good_is_unknown_to_all_and_the_same_call_finds_all_committed(site: Site) -> None:
    company = Company(site)
    lose_answers(company.warehouse, applied=True)

    company.commit()
    store_of(company.warehouse).plan = ()

    assert {each: type(error) for each, error in company.failures.items()} == dict.fromkeys(
        IDS, CommitStateUnknownError
    )
    for producer in company.producers.values():
        producer.commit_transaction()
    assert decisions(site) == [["a", "b", "c"]]
    assert accounts(site, "t") == ["a", "b"]


def test_new_ids_that_init_at_the_same_time_have_producer_ids_of_their_own(site: Site) -> None:
    with patch.object(ManualEnvironment, "lock", lambda _: CrowdedLock()):
        warehouse = site.open()
    producers = [warehouse.producer(each) for each in IDS]
    lock = warehouse.transactions.log.lock
    assert isinstance(lock, CrowdedLock)
    for producer in producers[1:]:
        lock.will_come(producer.init_transactions)

    producers[0].init_transactions()
    for thread in lock.threads:
        thread.join()

    assert len({producer.producer_id for producer in producers}) == len(IDS)


def test_offsets_of_several_groups_are_committed_by_one_entry(site: Site) -> None:
    with patch.object(ManualEnvironment, "lock", lambda _: CrowdedLock()):
        warehouse = site.open()
    before = warehouse.offsets.refresh()
    lock = warehouse.offsets.log.lock
    assert isinstance(lock, CrowdedLock)
    admin, moved = warehouse.admin(), {TopicPartition("t", 0): 5}

    def move(group: str) -> None:
        admin.alter_consumer_group_offsets(group, moved)

    lock.will_come(lambda: move("h"))

    move("g")
    for thread in lock.threads:
        thread.join()

    assert warehouse.offsets.refresh() == before + 1
    assert {group: len(site.open().admin().list_consumer_group_offsets(group)) for group in "gh"} == {"g": 1, "h": 1}


def test_job_that_lost_its_lease_writes_nothing_for_anybody_of_its_entry(site: Site) -> None:
    warehouse = site.open()
    leased = warehouse.transactions.leased("a" * 32)
    warehouse.transactions.claim_lease("b" * 32)

    assert isinstance(leased, TransactionLog)
    with pytest.raises(TxnTableError, match="lease"):
        leased.request("PROBE", "etl", lambda row, position: pytest.fail("decided without the lease"))


def test_series_of_shared_entries_needs_no_complete_in_between(site: Site) -> None:
    company = Company(site)
    company.commit()
    for each, producer in company.producers.items():
        producer.begin_transaction()
        producer.send("t", row=row(each * 2))

    company.commit()

    said = [decode_commit(version, data, "T").info.operation for version, data in _entries(site.open())]
    series = said[said.index("COMMIT") :]
    assert set(series) == {"COMMIT"}
    assert len(series) <= 1 + len(IDS)
    assert sorted(accounts(site, "t")) == ["a", "aa", "b", "bb", "cc"]


def _closed(producers: dict[str, Producer]) -> None:
    for producer in producers.values():
        producer.close()


def test_close_of_producers_that_shared_an_entry_completes_each(site: Site) -> None:
    company = Company(site)
    company.commit()

    _closed(company.producers)

    warehouse = site.open()
    warehouse.transactions.refresh()
    assert warehouse.transactions.log.fold.decided() == []

"""Offsets of a group in a snapshot: one state with the records of all topics, now and in the past."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.admin.group_members import IN, sent, site_with_topics, started
from tests.unit.reading import read_only
from txntable.errors import OffsetOutOfRangeError
from txntable.log.cleanup import clean_up
from txntable.offsets.group_commit import OffsetAndMetadata
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

DAY_MS = 86_400_000


@pytest.fixture
def site() -> Site:
    return site_with_topics()


def offset_in(warehouse: Warehouse, as_of: int | dt.datetime | None = None, group: str = "g") -> int | None:
    found = warehouse.snapshot(as_of).committed_offsets(group).get(IN)
    return None if found is None else found.offset


def copied_in(warehouse: Warehouse, as_of: int | None = None) -> int:
    """How many records of the input the output shows at a position."""
    snapshot = warehouse.snapshot(as_of)
    return sum(batch.num_rows for batch in snapshot.read_arrow("out"))


def leave_to_others(warehouse: Warehouse, producer: Producer, *, settled: bool) -> None:
    """Commit, and die after the decision: before the offsets are settled, or just after."""
    store = warehouse.store
    assert isinstance(store, SteppingStore)
    path = "transaction_log/_delta_log" if settled else "offset_log/_delta_log"
    occurrence = 2 if settled else None
    store.plan = (on(Operation.PUT_IF_ABSENT, path, Fault.FAIL_BEFORE, occurrence=occurrence),)
    producer.commit_transaction()
    store.plan = ()


# -- now ----------------------------------------------------------------------------------------


def test_snapshot_shows_what_is_committed_with_its_text_and_nothing_pending(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    with producer.transaction():
        producer.send_offsets_to_transaction({IN: OffsetAndMetadata(7, "note")}, "g")
    sent(site.open(), 9, "other")

    snapshot = warehouse.snapshot()

    assert snapshot.committed_offsets("g") == {IN: OffsetAndMetadata(7, "note")}
    assert snapshot.committed_offsets("nobody") == {}


def test_snapshot_keeps_its_offsets_when_later_ones_are_settled_before_it_looks(site: Site) -> None:
    producer = sent(site.open(), 7)
    producer.commit_transaction()
    snapshot = site.open().snapshot()

    producer.begin_transaction()
    producer.send_offsets_to_transaction({IN: 9}, "g")
    producer.commit_transaction()

    assert snapshot.committed_offsets("g")[IN].offset == 7
    assert snapshot.committed_offsets("g") == snapshot.committed_offsets("g")
    assert offset_in(site.open()) == 9


def test_decided_offset_counts_although_nobody_could_settle_it(site: Site) -> None:
    warehouse = site.open()
    leave_to_others(warehouse, sent(warehouse, 7), settled=False)
    reader = site.open(on(Operation.PUT_IF_ABSENT, "offset_log/_delta_log", Fault.FAIL_BEFORE, occurrence=None))
    snapshot = _pinned_without_completing(reader)

    assert snapshot.committed_offsets("g")[IN].offset == 7


def _pinned_without_completing(warehouse: Warehouse):
    """As a process sees it that pinned the position, and was overtaken before it completed anything."""
    warehouse.completer.bring_rows = lambda rows: None  # type: ignore[method-assign]
    return warehouse.snapshot()


def test_reader_that_may_not_write_sees_the_offsets_of_what_is_published(site: Site) -> None:
    warehouse = site.open()
    producer = sent(warehouse, 7)
    producer.commit_transaction()
    producer.begin_transaction()
    producer.send_offsets_to_transaction({IN: 9}, "g")
    leave_to_others(warehouse, producer, settled=False)

    assert offset_in(read_only(site)) == 7


def test_plain_commits_have_no_position_and_count_as_they_are(site: Site) -> None:
    site.open().admin().alter_consumer_group_offsets("g", {IN: 3})

    assert offset_in(site.open()) == 3


def test_offset_of_an_earlier_topic_of_the_name_is_none(site: Site) -> None:
    warehouse = site.open()
    sent(warehouse, 7).commit_transaction()
    admin = site.open().admin()
    admin.delete_topic("in")
    assert offset_in(site.open()) is None

    admin.create_topic("in", partitions=2, schema=TWO_COLUMNS)

    assert offset_in(site.open()) is None


# -- the past -----------------------------------------------------------------------------------


def test_past_before_the_first_offset_has_none(site: Site) -> None:
    before = site.open().transactions.refresh()
    site.advance_ms(5_000)
    sent(site.open(), 7).commit_transaction()
    site.open().admin().alter_consumer_group_offsets("h", {IN: 3})

    assert offset_in(site.open(), before) is None
    assert offset_in(site.open(), before, "h") is None
    assert offset_in(site.open()) == 7


def test_past_shows_plain_commits_as_they_were_then(site: Site) -> None:
    admin = site.open().admin()
    admin.alter_consumer_group_offsets("g", {IN: 3})
    started(site.open())
    position = site.open().transactions.refresh()
    site.advance_ms(5_000)
    started(site.open())
    admin.alter_consumer_group_offsets("g", {IN: 4})

    assert (offset_in(site.open(), position), offset_in(site.open())) == (3, 4)


def test_past_as_of_a_time_shows_plain_commits_as_they_were_by_then(site: Site) -> None:
    admin = site.open().admin()
    started(site.open())
    moments = {}
    for offset in (3, 4):
        site.advance_ms(5_000)
        admin.alter_consumer_group_offsets("g", {IN: offset})
        site.advance_ms(5_000)
        moments[offset] = dt.datetime.fromtimestamp(site.open().context.clock.now_ms() / 1000, tz=dt.UTC)

    assert {offset: offset_in(site.open(), moment) for offset, moment in moments.items()} == {3: 3, 4: 4}


def test_past_whose_entries_are_cleaned_up_is_refused(site: Site) -> None:
    warehouse = site.open()
    producer = sent(warehouse, 7)
    producer.commit_transaction()
    position = warehouse.transactions.refresh()
    site.advance_ms(1_000)
    producer.begin_transaction()
    producer.send_offsets_to_transaction({IN: 9}, "g")
    producer.commit_transaction()
    for log in (warehouse.transactions.log, warehouse.offsets.log):
        log.refresh()
        log.write_checkpoint()
    site.advance_ms(40 * DAY_MS)
    for log in (warehouse.transactions.log, warehouse.offsets.log):
        clean_up(warehouse.context, log.root, DAY_MS)

    with pytest.raises(OffsetOutOfRangeError, match="cleaned up"):
        site.open().snapshot(position).committed_offsets("g")


# -- the property -------------------------------------------------------------------------------


class Copier:
    """Copies the input record by record, each time in a new process."""

    def __init__(self, site: Site) -> None:
        self.site, self.copied = site, 0

    def begun(self, records: int = 1) -> tuple[Warehouse, Producer]:
        warehouse = self.site.open()
        producer = started(warehouse)
        producer.begin_transaction()
        for _ in range(records):
            producer.send("out", row={"account": "copy", "amount": 1})
        producer.send_offsets_to_transaction({IN: self.copied + records}, "g")
        return warehouse, producer

    def commit(self) -> None:
        self.begun(2)[1].commit_transaction()
        self.copied += 2

    def abort(self) -> None:
        self.begun()[1].abort_transaction()

    def leave(self) -> None:
        self.begun()

    def die_before_settling(self) -> None:
        leave_to_others(*self.begun(), settled=False)
        self.copied += 1

    def die_after_settling(self) -> None:
        leave_to_others(*self.begun(), settled=True)
        self.copied += 1

    def commit_another_group(self) -> None:
        sent(self.site.open(), 77, "elsewhere", "h").commit_transaction()

    def commit_without_offsets(self) -> None:
        with started(self.site.open(), "elsewhere").transaction() as transaction:
            transaction.send("in", row={"account": "x", "amount": 1})

    def settle_in_the_past_of_another(self) -> None:
        """Two transactions decided one after the other are settled by one commit."""
        other = self.site.open()
        leave_to_others(other, sent(other, 78, "elsewhere", "h"), settled=False)
        self.commit()

    def checkpoint(self) -> None:
        offsets = self.site.open().offsets
        offsets.refresh()
        offsets.log.write_checkpoint()

    def pass_time(self) -> None:
        self.site.advance_ms(3_000)


STEPS = [name for name in vars(Copier) if not name.startswith("_") and name != "begun"]


@settings(max_examples=25, deadline=None)
@given(plan=st.lists(st.sampled_from(STEPS), min_size=1, max_size=8))
def test_at_every_position_a_copy_has_as_many_records_as_its_group_has_committed(plan: list[str]) -> None:
    copier = Copier(site_with_topics())
    for step in plan:
        getattr(copier, step)()

    reader = copier.site.open()
    positions = range(1, reader.transactions.refresh() + 1)
    seen = [(offset_in(reader, position) or 0, copied_in(reader, position)) for position in positions]

    assert all(offset == records for offset, records in seen), seen
    assert (offset_in(reader) or 0, copied_in(reader)) == (copier.copied, copier.copied)

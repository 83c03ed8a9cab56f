"""What a writer does with what others commit: it reads little of it, and leaves to others what they are doing."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.unit.log.world import plant
from tests.unit.producer.producing import row
from txntable.coordinator.transaction import TransactionMetadata, first_row
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import DamagedDataError, InvalidRequestError
from txntable.format.layout import public_root
from txntable.log.keyed_table import POSITION, ROW, keyed_add
from txntable.producer.producer import Producer
from txntable.transactions.transaction_rows import STATE, id_columns
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture
def site() -> Site:
    site = Site()
    admin = site.create().admin()
    for topic in ("t", "other"):
        admin.create_topic(topic, partitions=1, schema=TWO_COLUMNS)
    return site


def writer(warehouse: Warehouse, name: str) -> Producer:
    producer = warehouse.producer(name)
    producer.init_transactions()
    return producer


def commit(producer: Producer, topic: str) -> None:
    with producer.transaction() as txn:
        txn.send(topic, row=row("a"))


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids whose rows were read, in all processes."""
    read: list[str] = []
    decode = TransactionMetadata.from_json

    def counted(text: str) -> TransactionMetadata:
        found = decode(text)
        read.append(found.transactional_id)
        return found

    monkeypatch.setattr(TransactionMetadata, "from_json", counted)
    return read


def test_commit_reads_no_row_of_ids_that_have_enrolled_other_topics(site: Site, rows_read: list[str]) -> None:
    mine, others = writer(site.open(), "mine"), writer(site.open(), "others")
    commit(mine, "t")
    for _ in range(5):
        commit(others, "other")
    rows_read.clear()

    commit(mine, "t")

    assert {*rows_read} == {"mine"}


def test_commit_reads_each_row_that_it_completes_for_another_once(site: Site, rows_read: list[str]) -> None:
    mine, others = writer(site.open(), "mine"), [writer(site.open(), name) for name in ("ann", "bob")]
    for each in others:
        commit(each, "t")
    rows_read.clear()

    commit(mine, "t")
    commit(mine, "t")

    assert sorted(name for name in rows_read if name != "mine") in (["ann", "bob"], [])


def test_row_whose_columns_contradict_it_is_refused_when_it_is_looked_at(site: Site) -> None:
    warehouse = site.open()
    add = keyed_add(id_columns(first_row("etl", 1, 1000, 1)), 0)
    plant(warehouse.transactions.log, replace(add, partition_values={**add.partition_values, POSITION: "7"}))

    late = site.open()

    with pytest.raises(DamagedDataError, match="columns=_position"):
        late.transactions.row("etl")


@pytest.mark.parametrize("state", [None, "DEAD", "SLEEPING"])
def test_row_of_an_id_without_a_state_is_refused_at_once(site: Site, state: str | None) -> None:
    warehouse = site.open()
    add = keyed_add(id_columns(first_row("etl", 1, 1000, 1)), 0)
    plant(warehouse.transactions.log, replace(add, partition_values={**add.partition_values, STATE: state}))

    with pytest.raises(DamagedDataError, match="no state"):
        site.open()


@pytest.mark.parametrize("state", [state for state in TransactionState if state.is_decided])
def test_decided_row_that_spells_its_topics_with_escapes_is_refused_where_a_topic_is_completed(
    site: Site, state: TransactionState
) -> None:
    """It may be of any topic: so it is read, and has not the one spelling."""
    warehouse = site.open()
    topic_id = warehouse.topic_log("t").settings().topic_id
    text = first_row("etl", 1, 1000, 1).to_json().replace("EMPTY", state.value)
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in topic_id)
    text = text[:-1] + f',"partitions":{{"{escaped}":{{"name":"t","partitions":"0"}}}}}}'
    add = keyed_add(id_columns(first_row("etl", 1, 1000, 1)), 0)
    values = {**add.partition_values, STATE: state.value, ROW: text}
    plant(warehouse.transactions.log, replace(add, partition_values=values))
    fold = site.open().transactions.log.fold

    with pytest.raises(DamagedDataError):
        fold.incomplete_of(topic_id, 0)


def test_row_that_nobody_could_read_is_not_written_though_nobody_looks_at_it(site: Site) -> None:
    log = site.open().transactions.log
    before = log.table.version
    add = keyed_add(id_columns(first_row("etl", 1, 1000, 1)), 0)
    wrong = replace(add, partition_values={**add.partition_values, POSITION: "7"})

    with pytest.raises(InvalidRequestError, match="nobody could read"):
        log.commit("PROBE", lambda table: [wrong])

    assert log.refresh().version == before


def test_decision_that_another_completes_while_one_waits_for_the_turn_is_written_once(site: Site) -> None:
    waiting, other = site.open(), site.open()
    producer, completer = writer(waiting, "mine"), other.completer
    commit(producer, "t")
    asked: list[str] = []

    def turn(folder: str) -> AbstractContextManager[bool] | None:
        if folder != public_root("t"):
            return nullcontext(False)
        asked.append(folder)
        if len(asked) == 2:
            completer.complete_decided()
        return None

    waiting.store.turn = turn  # type: ignore[method-assign]
    log = waiting.topic_log("t")
    before = log.segments.table.version

    commit(producer, "t")

    assert before is not None
    assert log.segments.refresh().version == before + 1
    # The second time nobody has the turn any more: what it is for was done.
    assert len(asked) == 3
    assert len(published(site.open(), "t")) == 2


def test_who_had_to_wait_for_the_turn_completes_what_others_have_decided_meanwhile(site: Site) -> None:
    first, second = site.open(), site.open()
    ann, bob = writer(first, "ann"), writer(second, "bob")
    for each in (ann, bob):
        commit(each, "t")
    store, log, waits = second.store, site.open().topic_log("t"), iter([True])
    assert isinstance(store, SteppingStore)
    before = log.segments.refresh().version

    def turn(folder: str) -> AbstractContextManager[bool] | None:
        if folder == public_root("t") and next(waits, False):
            # Bob decides, and does not get to completing it.
            store.plan = (on(Operation.PUT_IF_ABSENT, "_segments/_delta_log", Fault.FAIL_BEFORE, occurrence=None),)
            commit(bob, "t")
            return None
        return nullcontext(True)

    first.store.turn = turn  # type: ignore[method-assign]

    commit(ann, "t")

    assert before is not None
    assert log.segments.refresh().version == before + 1
    assert len(published(site.open(), "t")) == 4

"""What is known complete without a row that says so: series, inits, a late COMPLETE, readers (PROTOCOL.md §6.4)."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import Operation, Step
from tests.doubles.manual_environment import ManualEnvironment
from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.producer.producing import accounts, lose_answers, row, started, store_of
from tests.unit.reading import read_only
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import StoreUnavailableError
from txntable.log.actions import decode_commit
from txntable.producer.producer import Producer
from txntable.transactions.completion_linger import LINGER_MS, CompletionLinger
from txntable.transactions.transaction_log import TransactionLogFold

T_LOG = "system/transaction_log/_delta_log/"


@pytest.fixture
def site() -> Site:
    site = Site()
    site.create().admin().create_topic("t", partitions=1, schema=TWO_COLUMNS)
    return site


def commit(producer: Producer, account: str) -> None:
    with producer.transaction() as txn:
        txn.send("t", row=row(account))


def operations(site: Site) -> list[str]:
    found = (site.objects.get(path) for path in sorted(site.objects.snapshot()) if path.startswith(T_LOG))
    entries = [entry.data for entry in found if entry is not None and entry.data.startswith(b'{"commitInfo"')]
    return [decode_commit(version, data, T_LOG).info.operation for version, data in enumerate(entries)]


def state_in_t(site: Site) -> TransactionState:
    """The state of the id's row as it is written, whatever is known."""
    log = site.open().transactions.log
    return log.fold.under_way["etl"].state if "etl" in log.fold.under_way else TransactionState.COMPLETE_COMMIT


# -- the id's next entry --------------------------------------------------------------------


def test_series_of_transactions_takes_one_entry_each(site: Site) -> None:
    producer = started(site.open())

    for account in "abc":
        commit(producer, account)

    assert operations(site)[-3:] == ["COMMIT", "COMMIT", "COMMIT"]
    assert accounts(site, "t") == ["a", "b", "c"]


def test_close_writes_complete_for_the_last_of_a_series_and_once(site: Site) -> None:
    producer = started(site.open())
    commit(producer, "a")
    commit(producer, "b")

    producer.close()
    producer.close()

    assert operations(site)[-3:] == ["COMMIT", "COMMIT", "COMPLETE"]


def test_block_that_fails_writes_complete_for_what_it_committed_before(site: Site) -> None:
    producer = started(site.open())

    def work() -> None:
        with producer:
            commit(producer, "a")
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        work()

    assert operations(site)[-2:] == ["COMMIT", "COMPLETE"]


def test_init_of_another_process_goes_on_from_what_it_sees_published(site: Site) -> None:
    commit(started(site.open()), "a")
    other = site.open()

    commit(started(other), "b")

    assert operations(site)[-3:] == ["COMMIT", "INIT", "COMMIT"]
    markers = {step.path.removesuffix(".parquet")[-4:] for step in store_of(other).steps if "/markers/" in step.path}
    assert markers == {"-0-2"}, "of its own transaction only"
    assert accounts(site, "t") == ["a", "b"]


def test_init_of_another_process_does_what_is_owed_before_it_goes_on(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    producer.begin_transaction()
    producer.send("t", row=row("a"))
    producer.flush()
    warehouse.completer.bring = lambda transactional_id: None  # type: ignore[method-assign]
    producer.commit_transaction()
    assert accounts_shown_without_writing(site) == []

    started(site.open())

    assert operations(site)[-2:] == ["COMMIT", "INIT"]
    assert accounts_shown_without_writing(site) == ["a"]


def accounts_shown_without_writing(site: Site) -> list[str]:
    view = site.open().topic_log("t").public
    return ["a" for add in view.refresh().files if add.partition_values["_commit"] != "0"]


# -- knowledge ------------------------------------------------------------------------------


def test_knowledge_of_an_older_decision_says_nothing_of_the_next_one(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    commit(producer, "a")
    older = warehouse.transactions.log.fold.decided()[0].position
    warehouse.completer.bring = lambda transactional_id: None  # type: ignore[method-assign]
    commit(producer, "b")
    fold = warehouse.transactions.log.fold

    fold.know_complete("etl", older)

    assert [each.position for each in fold.incomplete()] == [each.position for each in fold.decided()]


def test_what_is_known_stays_known_when_the_log_is_read_anew(site: Site) -> None:
    warehouse = site.open()
    commit(started(warehouse), "a")
    log = warehouse.transactions.log
    fold: TransactionLogFold = log.fold

    fold.restore(log.table)

    assert (len(fold.unrecorded()), fold.incomplete()) == (1, [])


def test_what_another_thread_reads_of_during_the_work_is_not_known_complete_by_it(site: Site) -> None:
    """Knowledge is of what was decided when the work was begun, whatever the shared view has come to know since."""
    warehouse, other = site.open(), site.open()
    for each in (warehouse, other):
        each.completer.bring = lambda transactional_id: None  # type: ignore[method-assign]
    first, second = started(warehouse, "etl"), started(other, "second")
    commit(first, "a")
    completing = site.open()

    def decide_the_second(step: Step) -> None:
        if step.operation is Operation.PUT_IF_ABSENT and "_segments/_delta_log" in step.path and not decided:
            decided.append(step.path)
            commit(second, "b")
            completing.transactions.refresh()

    decided: list[str] = []
    store_of(completing).on_step = decide_the_second
    completing.completer.bring_decided()

    assert [row.transactional_id for row in completing.transactions.log.fold.unrecorded()] == ["etl"]
    assert [row.transactional_id for row in completing.transactions.log.fold.incomplete()] == ["second"]
    completing.completer.bring_decided()
    assert accounts(site, "t") == ["a", "b"]


def test_late_complete_writes_nothing_when_the_id_has_gone_on(site: Site) -> None:
    producer, late = started(site.open()), site.open()
    commit(producer, "a")
    late.completer.bring_decided()
    commit(producer, "b")
    before = operations(site)

    assert late.completer.record() == 0

    assert operations(site) == before
    assert state_in_t(site) is TransactionState.PREPARE_COMMIT


def test_reader_that_meets_what_is_published_writes_nothing(site: Site) -> None:
    commit(started(site.open()), "a")
    reader = site.open()

    found = reader.read_arrow("t").read_all()

    assert found["account"].to_pylist() == ["a"]
    assert reader.snapshot().position == reader.transactions.log.table.version
    assert not [step for step in store_of(reader).steps if step.operation is Operation.PUT_IF_ABSENT]
    assert [each.state for each in reader.transactions.rows()] == [TransactionState.COMPLETE_COMMIT]


def test_reader_of_one_topic_looks_at_no_other(site: Site) -> None:
    site.open().admin().create_topic("other", partitions=1, schema=TWO_COLUMNS)
    commit(started(site.open()), "a")
    reader = site.open()

    assert reader.read_arrow("other").read_all().num_rows == 0

    assert not [step.path for step in store_of(reader).steps if step.path.startswith("topics/t/")]


def test_reader_of_one_topic_who_may_not_write_stays_below_what_the_topic_is_owed(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    commit(producer, "a")
    warehouse.completer.bring = lambda transactional_id: None  # type: ignore[method-assign]
    commit(producer, "b")
    (owed,) = warehouse.transactions.log.fold.incomplete()

    snapshot = read_only(site).snapshot_of("t")

    assert snapshot.position == owed.position - 1
    assert snapshot.read_arrow("t").read_all()["account"].to_pylist() == ["a"]
    writer = site.open()
    assert writer.snapshot_of("t").position == owed.position
    assert writer.read_arrow("t").read_all()["account"].to_pylist() == ["a", "b"]


def test_admin_of_another_process_shows_what_is_published_as_complete(site: Site) -> None:
    commit(started(site.open()), "a")
    admin = site.open().admin()

    states = {listed.transactional_id: listed.state for listed in admin.list_transactions()}

    assert states == {"etl": TransactionState.COMPLETE_COMMIT}
    assert admin.describe_transactions(["etl"])["etl"].state is TransactionState.COMPLETE_COMMIT


def test_commit_whose_answer_is_lost_is_found_although_no_complete_is_between(site: Site) -> None:
    warehouse = site.open()
    producer = started(warehouse)
    commit(producer, "a")
    producer.begin_transaction()
    producer.send("t", row=row("b"))
    lose_answers(warehouse, applied=True)
    with pytest.raises(Exception, match="may have happened"):
        producer.commit_transaction()
    store_of(warehouse).plan = ()

    producer.commit_transaction()

    assert operations(site)[-2:] == ["COMMIT", "COMMIT"]
    assert accounts(site, "t") == ["a", "b"]


def test_close_is_not_held_up_by_a_store_that_does_not_answer(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txntable.producer.coordinator_client._RECORD_PATIENCE_MS", 1_000)
    warehouse = site.open()
    producer = started(warehouse)
    commit(producer, "a")
    lose_answers(warehouse, applied=False)
    began_ms = site.environments[-1].instant().boot_ms

    producer.close()

    assert site.environments[-1].instant().boot_ms - began_ms <= 1_000
    assert operations(site)[-1] == "COMMIT"


# -- the linger -----------------------------------------------------------------------------


class Written:
    """What a linger has written, and the clock that it goes by."""

    def __init__(self) -> None:
        self.time = ManualEnvironment()
        self.ids: list[list[str]] = []
        self.failing = False
        self.linger = CompletionLinger(self.time, self.record)
        # No thread: the test takes the steps.
        self.linger.stop()

    def record(self, ids) -> None:
        self.ids.append(sorted(ids))
        if self.failing:
            raise StoreUnavailableError("no answer")


def test_complete_is_written_when_the_id_was_idle_for_the_time_and_not_before() -> None:
    written = Written()
    written.linger.wait_for("etl")
    written.time.advance_ms(LINGER_MS - 1)

    assert (written.linger.step(), written.ids) == (1, [])
    written.time.advance_ms(1)
    assert (written.linger.step(), written.ids) == (None, [["etl"]])


def test_id_that_goes_on_waits_anew_and_others_do_not() -> None:
    written = Written()
    written.linger.wait_for("busy")
    written.linger.wait_for("idle")
    written.time.advance_ms(LINGER_MS // 2)
    written.linger.wait_for("busy")
    written.time.advance_ms(LINGER_MS // 2)

    assert (written.linger.step(), written.ids) == (LINGER_MS // 2, [["idle"]])


def test_id_that_was_closed_is_left_alone() -> None:
    written = Written()
    written.linger.wait_for("etl")
    written.linger.forget("etl")
    written.time.advance_ms(LINGER_MS)

    assert (written.linger.step(), written.ids) == (None, [])


def test_what_waits_at_the_exit_is_written_whatever_its_age() -> None:
    written = Written()
    written.linger.wait_for("etl")

    written.linger.last_step()

    assert written.ids == [["etl"]]


def test_complete_that_could_not_be_written_is_left_to_others() -> None:
    written = Written()
    written.failing = True
    written.linger.wait_for("etl")
    written.time.advance_ms(LINGER_MS)

    assert (written.linger.step(), written.ids) == (None, [["etl"]])
    assert written.linger.step() is None

"""``txntable produce`` interrupted, or over a store that does not answer: what is left, and what it says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner, Result

from tests.doubles.fault_plan import Step
from tests.simulation.site import Site
from tests.unit.cli.produced import COMMIT, Produce, produce_on, state, values
from tests.unit.producer.producing import PUT, T_LOG, lose_answers, store_of, unreachable
from txntable.cli import produce, produce_run, record_source
from txntable.cli.connection import Connection
from txntable.cli.main import application
from txntable.cli.record_source import Chunk
from txntable.coordinator.decision import Decision, Outcome
from txntable.errors import InvalidRequestError
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture
def topic(warehouse: Warehouse) -> str:
    warehouse.admin().create_topic("orders", partitions=2)
    return "orders"


@pytest.fixture
def run(warehouse: Warehouse) -> Produce:
    return produce_on(warehouse)


def interrupting(chunks: int) -> Callable[..., Iterator[Chunk]]:
    """Reading that is interrupted after some chunks."""

    def read(*arguments) -> Iterator[Chunk]:
        found = record_source.read_records(*arguments)
        for _ in range(chunks):
            yield next(found)
        raise KeyboardInterrupt

    return read


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of two records is appended, then the person interrupts."""
    monkeypatch.setattr(record_source, "CHUNK_RECORDS", 1)
    monkeypatch.setattr(produce_run, "FLUSH_BYTES", 1)
    monkeypatch.setattr(produce, "read_records", interrupting(1))


@pytest.mark.usefixtures("interrupted")
def test_interrupt_aborts_the_transaction(run: Produce, warehouse: Warehouse, topic: str) -> None:
    result = run(topic, *COMMIT, data="a\nb\n")

    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.startswith("interrupted: the transaction is aborted")
    assert values(warehouse, topic) == []
    assert state(warehouse) == "COMPLETE_ABORT"


@pytest.mark.usefixtures("interrupted")
def test_interrupt_tells_what_was_appended_when_nothing_binds_the_records(
    run: Produce, warehouse: Warehouse, topic: str
) -> None:
    result = run(topic, data="a\nb\n")

    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.startswith("interrupted: 1 records were appended")
    assert values(warehouse, topic) == [b"a"]


# -- a store that does not answer -----------------------------------------------------------


@pytest.fixture
def site() -> Site:
    """A store in memory, that every command works on."""
    site = Site()
    site.create().admin().create_topic("orders")
    return site


@pytest.fixture
def opened(site: Site, monkeypatch: pytest.MonkeyPatch) -> list[Warehouse]:
    """The warehouses that commands opened."""
    opened: list[Warehouse] = []

    def open_and_remember(connection: Connection) -> Warehouse:
        opened.append(site.open())
        return opened[-1]

    monkeypatch.setattr(Connection, "open", open_and_remember)
    return opened


def before_the_commit(
    monkeypatch: pytest.MonkeyPatch, opened: list[Warehouse], break_store: Callable[[Warehouse], None]
) -> list[Producer]:
    """Let the store break when the commit is asked first; return who asked, each time."""
    commit = Producer.commit_transaction
    asked: list[Producer] = []

    def break_and_commit(producer: Producer) -> None:
        if not asked:
            break_store(opened[-1])
        asked.append(producer)
        commit(producer)

    monkeypatch.setattr(Producer, "commit_transaction", break_and_commit)
    return asked


def decision(site: Site) -> Decision | None:
    transactions = site.open().transactions
    transactions.refresh()
    row = transactions.row("etl")
    return None if row is None else row.decision


def invoke(*arguments: str, data: str = "") -> Result:
    return CliRunner().invoke(application, ["produce", "orders", "--warehouse", "memory", *arguments], input=data)


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (("--batch-id", "run-1"), "run the command again: the batch id keeps it from being done twice"),
        ((), "before running again, look how it ended: txntable transactions describe etl"),
    ],
)
def test_commit_of_unknown_outcome_says_how_to_go_on(  # noqa: PLR0913 - a truth table
    site: Site,
    opened: list[Warehouse],
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    remedy: str,
    applied: bool,
) -> None:
    before_the_commit(monkeypatch, opened, lambda warehouse: lose_answers(warehouse, applied=applied))

    result = invoke(*COMMIT, *options, data="a\n")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: COMMIT_STATE_UNKNOWN ")
    assert "; it is not known whether the transaction committed: " in result.stderr
    assert remedy in result.stderr
    assert (decision(site) is not None) is applied


def test_append_of_unknown_outcome_aborts_the_transaction(
    site: Site, opened: list[Warehouse], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*arguments) -> Iterator[Chunk]:
        yield from record_source.read_records(*arguments)
        store_of(opened[-1]).plan = unreachable("_segments/_delta_log")

    monkeypatch.setattr(produce, "read_records", read)

    result = invoke(*COMMIT, data="a\n")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: TRANSACTION_ABORTABLE")
    ended = decision(site)
    assert ended is not None
    assert ended.outcome is Outcome.ABORT


def test_failed_publication_still_says_what_was_appended(
    site: Site, opened: list[Warehouse], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*arguments) -> Iterator[Chunk]:
        yield from record_source.read_records(*arguments)
        store_of(opened[-1]).plan = unreachable("topics/orders/_delta_log")

    monkeypatch.setattr(produce, "read_records", read)

    result = invoke(data="a\nb\n")

    assert result.exit_code == 1
    assert result.stderr.rstrip().endswith("appended_records=2")
    site.open().complete()
    assert values(site.open(), "orders") == [b"a", b"b"]


def test_batch_committed_by_another_in_the_meantime_is_nothing_to_do(
    run: Produce, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(topic, *COMMIT, "--batch-id", "run-1", data="a\n")
    monkeypatch.setattr(Producer, "is_committed", lambda producer, batch_id: False)

    result = run(topic, *COMMIT, "--batch-id", "run-1", data="a\n")

    assert result.exit_code == 0
    assert json.loads(result.stdout)["status"] == "already committed: nothing to do"


def test_commit_is_asked_again_when_the_store_did_not_answer_for_a_moment(
    site: Site, opened: list[Warehouse], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = before_the_commit(monkeypatch, opened, lambda warehouse: lose_answers(warehouse, applied=True))
    commit = Producer.commit_transaction

    def commit_and_mend(producer: Producer) -> None:
        try:
            commit(producer)
        finally:
            store_of(opened[-1]).plan = ()

    monkeypatch.setattr(Producer, "commit_transaction", commit_and_mend)

    result = invoke(*COMMIT, "--batch-id", "run-1")

    assert result.exit_code == 0
    assert len(asked) == 2
    assert site.open().producer("etl").is_committed("run-1")


def test_interrupt_of_a_commit_says_where_to_look(
    site: Site, opened: list[Warehouse], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt_the_decision(warehouse: Warehouse) -> None:
        def interrupt(step: Step) -> None:
            if step.operation is PUT and T_LOG in step.path:
                raise KeyboardInterrupt

        store_of(warehouse).on_step = interrupt

    before_the_commit(monkeypatch, opened, interrupt_the_decision)

    result = invoke(*COMMIT, "--batch-id", "run-1")

    assert result.exit_code == 130
    assert result.stderr.startswith("interrupted: run the command again: the batch id")
    assert not site.open().producer("etl").is_committed("run-1")


@pytest.mark.usefixtures("site")
def test_failure_also_says_when_the_transaction_could_not_be_aborted(
    opened: list[Warehouse], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*arguments) -> Iterator[Chunk]:
        yield from record_source.read_records(*arguments)
        lose_answers(opened[-1], applied=False)
        raise InvalidRequestError("the input broke off")

    monkeypatch.setattr(produce_run, "FLUSH_BYTES", 1)
    monkeypatch.setattr(produce, "read_records", read)

    result = invoke(*COMMIT, data="a\n")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: INVALID_REQUEST the input broke off")
    assert "the transaction could not be aborted; its timeout will end it" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_empty_transactional_id_is_refused_before_anything_is_read(
    run: Produce, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(produce, "read_records", lambda *_: pytest.fail("it was read"))

    result = run(topic, "--transactional-id", "", data="a\n")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "INVALID_CONFIG" in result.stderr

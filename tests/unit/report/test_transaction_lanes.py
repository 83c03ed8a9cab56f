"""Transactional ids over time, as the transaction log tells them."""

from __future__ import annotations

import pytest

from tests.simulation.site import Site
from tests.unit.admin.administering import lose_id, prepare
from txntable.admin.restoration import Restoration
from txntable.coordinator.transaction_state import TransactionState
from txntable.format.layout import TRANSACTION_LOG_ROOT, commit_path
from txntable.producer.producer import Producer
from txntable.report.collector import Collector
from txntable.report.lane_drawing import draw_lanes, span_text
from txntable.report.warehouse_report import (
    Bounded,
    EndedBy,
    Lane,
    ReportLimits,
    Span,
    SpanOutcome,
    TransactionHistory,
    WarehouseReport,
)
from txntable.warehouse.warehouse import Warehouse, open_on

MINUTE_MS = 60_000


def begun(
    warehouse: Warehouse, transactional_id: str = "etl", partition: int = 0, timeout_ms: int = 900_000
) -> Producer:
    """A producer with an open transaction that has one record in a partition."""
    producer = warehouse.producer(transactional_id, transaction_timeout_ms=15 * MINUTE_MS)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", value=b"x", partition=partition)
    producer.flush()
    return producer


def looked(warehouse: Warehouse, **limits: int) -> WarehouseReport:
    return Collector(warehouse, ReportLimits(**limits)).collect()


def history_of(warehouse: Warehouse, **limits: int) -> TransactionHistory:
    return looked(warehouse, **limits).history


def lane_of(warehouse: Warehouse, transactional_id: str = "etl", **limits: int) -> Lane:
    (found,) = (
        lane for lane in history_of(warehouse, **limits).lanes.shown if lane.transactional_id == transactional_id
    )
    return found


def end(way: str, site: Site, warehouse: Warehouse, producer: Producer) -> None:
    """Let the open transaction end in one of the ways that there are."""
    match way:
        case "commit":
            producer.commit_transaction()
        case "abort":
            producer.abort_transaction()
        case "newer producer":
            warehouse.producer("etl").init_transactions()
        case "timeout":
            site.advance_ms(60 * MINUTE_MS)
            assert warehouse.complete() >= 1
        case "admin":
            warehouse.admin().abort_transaction(transactional_id="etl")


@pytest.mark.parametrize(
    ("way", "outcome", "ended_by"),
    [
        ("commit", SpanOutcome.COMMITTED, EndedBy.PRODUCER),
        ("abort", SpanOutcome.ABORTED, EndedBy.PRODUCER),
        ("newer producer", SpanOutcome.ABORTED, EndedBy.NEWER_PRODUCER),
        ("timeout", SpanOutcome.ABORTED, EndedBy.TIMEOUT),
        ("admin", SpanOutcome.ABORTED, EndedBy.ADMIN),
    ],
)
def test_lane_tells_how_a_transaction_ended_and_by_whom(
    site: Site, warehouse: Warehouse, way: str, outcome: SpanOutcome, ended_by: EndedBy
) -> None:
    producer = begun(warehouse)
    site.advance_ms(3 * MINUTE_MS)
    end(way, site, warehouse, producer)

    (span,) = lane_of(warehouse).spans

    assert (span.epoch, span.outcome, span.ended_by, span.topics) == (0, outcome, ended_by, ("orders",))
    assert span.started_ms is not None
    assert span.ended_ms is not None
    # Both by the clock of T's entries, which rises by a millisecond with each.
    assert span.ended_ms - span.started_ms > 3 * MINUTE_MS - 1_000


def test_lane_tells_when_a_newer_producer_fences_an_epoch(site: Site, warehouse: Warehouse) -> None:
    begun(warehouse)
    site.advance_ms(MINUTE_MS)
    end("newer producer", site, warehouse, begun(warehouse, "another"))

    first, second = lane_of(warehouse).takeovers

    assert (first.epoch, second.epoch) == (0, 2)
    assert second.at_ms - first.at_ms > MINUTE_MS - 1_000


def test_lane_of_an_open_transaction_tells_since_when_and_what_it_holds_back(site: Site, warehouse: Warehouse) -> None:
    begun(warehouse, partition=1)
    site.advance_ms(MINUTE_MS)

    lane = lane_of(warehouse)

    (span,) = lane.spans
    assert (span.outcome, span.ended_ms, span.position) == (SpanOutcome.OPEN, None, None)
    assert (lane.state, lane.holds_back) == (TransactionState.ONGOING, ("orders-1",))


def test_open_transaction_that_is_older_than_all_that_is_read_has_its_lane(site: Site, warehouse: Warehouse) -> None:
    begun(warehouse, "old")
    site.advance_ms(MINUTE_MS)
    with warehouse.producer("new") as producer:
        producer.init_transactions()
        for _ in range(5):
            with producer.transaction() as transaction:
                transaction.send("orders", value=b"x", partition=1)

    report = looked(warehouse, entries=3, lanes=1)

    (lane,) = report.history.lanes.shown
    assert (lane.transactional_id, lane.holds_back, report.history.lanes.total) == ("old", ("orders-0",), 2)
    (span,) = lane.spans
    assert span.started_ms == report.blocking.shown[0].start_time_ms
    assert report.history.entries_read == 3
    assert report.history.entries > 3


def test_transaction_that_began_before_all_that_is_read_begins_at_the_edge(site: Site, warehouse: Warehouse) -> None:
    producer = begun(warehouse)
    with warehouse.producer("another") as other:
        other.init_transactions()
    producer.commit_transaction()

    history = history_of(warehouse, entries=2)
    drawing = draw_lanes(history, ())

    (span,) = lane_of(warehouse, entries=2).spans
    assert (span.outcome, span.started_ms) == (SpanOutcome.COMMITTED, None)
    (mark,) = (mark for one in drawing.lanes for mark in one.marks if mark.kind == "committed")
    assert mark.start == 0


def test_enrolment_of_one_more_partition_is_no_beginning(site: Site, warehouse: Warehouse) -> None:
    producer = begun(warehouse)
    site.advance_ms(MINUTE_MS)
    producer.send("orders", value=b"x", partition=1)
    producer.flush()
    producer.commit_transaction()

    # Of the second enrolment and the decision.
    (short,) = lane_of(warehouse, entries=2).spans
    (whole,) = lane_of(warehouse).spans

    assert short.started_ms is None
    assert short.ended_ms == whole.ended_ms
    assert whole.started_ms is not None


def test_entry_that_a_restore_has_made_void_tells_nothing(site: Site, warehouse: Warehouse) -> None:
    begun(warehouse).commit_transaction()
    backup = site.objects.snapshot()
    head = warehouse.transactions.refresh()
    begun(site.open(), "lost").commit_transaction()
    stray = site.objects.get(commit_path(TRANSACTION_LOG_ROOT, head + 2))
    assert stray is not None
    site.objects.restore(backup)
    site.advance_ms(15 * MINUTE_MS)
    site.open().producer("new").init_transactions()
    # What a process of before puts after the restore.
    site.objects.put(commit_path(TRANSACTION_LOG_ROOT, head + 2), stray.data)
    recovering = open_on(site.store(), site.environment(), recovering=True)
    Restoration(recovering.completer, recovering.admin()).fence_all()

    history = history_of(site.open())

    assert {lane.transactional_id for lane in history.lanes.shown} == {"etl", "new"}
    assert history.entries_read == history.entries - 1


def test_prepared_transaction_is_told_apart_from_an_open_one(site: Site, warehouse: Warehouse) -> None:
    begun(warehouse)
    prepare(warehouse)

    lane = lane_of(warehouse)

    assert [span.outcome for span in lane.spans] == [SpanOutcome.PREPARED]
    assert lane.holds_back == ("orders-0",)


def test_transaction_that_hangs_holds_back_though_its_id_has_no_lane(site: Site, warehouse: Warehouse) -> None:
    begun(warehouse)
    lose_id(warehouse)

    report = looked(warehouse)

    assert [one.transactional_id for one in report.blocking.shown] == [None]
    (lane,) = report.history.lanes.shown
    assert (lane.state, lane.spans, lane.holds_back) == (TransactionState.DEAD, (), ())
    assert draw_lanes(report.history, report.blocking.shown).held_since is not None


def test_small_transaction_is_a_moment_of_its_own_time(site: Site, warehouse: Warehouse) -> None:
    with warehouse.producer("etl") as producer:
        producer.init_transactions()
        for _ in range(3):
            with producer.transaction() as transaction:
                transaction.send("orders", value=b"x", partition=0)
            site.advance_ms(MINUTE_MS)

    lane = lane_of(warehouse)

    assert [span.outcome for span in lane.spans] == [SpanOutcome.COMMITTED] * 3
    assert all(span.started_ms == span.ended_ms for span in lane.spans)
    assert lane.state is TransactionState.COMPLETE_COMMIT


def test_ids_are_counted_by_the_state_that_they_are_known_in(site: Site, warehouse: Warehouse) -> None:
    begun(warehouse, "open")
    begun(warehouse, "committed").commit_transaction()
    begun(warehouse, "aborted").abort_transaction()
    warehouse.producer("idle").init_transactions()

    # Another process, which has seen nothing of this.
    counted = history_of(site.open()).ids_by_state

    assert counted == {"ONGOING": 1, "COMPLETE_COMMIT": 1, "COMPLETE_ABORT": 1, "EMPTY": 1}


def test_marks_stand_where_their_times_are(site: Site, warehouse: Warehouse) -> None:
    begun(warehouse, "first").commit_transaction()
    site.advance_ms(30 * MINUTE_MS)
    begun(warehouse, "second").commit_transaction()
    site.advance_ms(30 * MINUTE_MS)

    drawing = draw_lanes(history_of(warehouse), ())

    starts = {one.lane.transactional_id: one.marks[-1].start for one in drawing.lanes}
    assert starts["first"] == pytest.approx(0, abs=0.5)
    assert starts["second"] == pytest.approx(50, abs=0.5)
    assert [0 <= x <= 100 for x, _ in drawing.ticks] == [True] * len(drawing.ticks)
    assert 3 <= len(drawing.ticks) <= 9


def test_words_of_a_transaction_say_what_became_of_it(site: Site, warehouse: Warehouse) -> None:
    producer = begun(warehouse)
    site.advance_ms(2 * MINUTE_MS + 30_500)
    end("newer producer", site, warehouse, producer)
    history = history_of(warehouse)

    said = span_text(lane_of(warehouse).spans[0], history)

    assert said.startswith("aborted by a newer producer, which fenced it; ")
    assert "; 2m30s; epoch 0; position " in said
    assert said.endswith("; orders")


def test_words_of_a_transaction_say_from_when_on_is_drawn_when_it_began_before() -> None:
    history = TransactionHistory(10 * MINUTE_MS, 30 * MINUTE_MS, 1, 2, Bounded((), 0), {})
    over = Span(0, SpanOutcome.ABORTED, None, 20 * MINUTE_MS, EndedBy.ADMIN)
    still_open = Span(1, SpanOutcome.OPEN, None)

    assert span_text(over, history) == "aborted by an admin; from before 00:10:00 to 00:20:00; epoch 0"
    assert span_text(still_open, history) == "open; from before 00:10:00 to now; epoch 1"

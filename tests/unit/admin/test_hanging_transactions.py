"""Ending transactions that the transaction log cannot end any more (behaviour 121; PROTOCOL.md §6.5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from tests.doubles.fault_plan import Fault, at
from tests.doubles.memory_store import MemoryStore
from tests.doubles.stepping_store import ProcessKilled
from tests.simulation.site import Site
from tests.unit.admin.administering import (
    PLACE,
    is_stable,
    lose_id,
    names,
    opened,
    replace_row,
    row_of,
)
from tests.unit.producer.producing import PUT, accounts, row, started, store_of
from txntable.admin.past_decision import past_decision
from txntable.admin.transaction_admin import open_now
from txntable.coordinator.enrolment import EnrolledTopic
from txntable.coordinator.open_epoch_status import OpenEpochStatus
from txntable.coordinator.transaction_state import TransactionState as S
from txntable.errors import (
    DamagedDataError,
)
from txntable.format.layout import segments_root
from txntable.partition.markers import Marker
from txntable.partition.offsets import decided_through
from txntable.partition.open_transactions import HangingEpoch
from txntable.partition.stable_offset import high_watermark
from txntable.topics.topic_log import TopicLog
from txntable.verification.damage import DamageKind
from txntable.verification.decision_record import RecordedDecision
from txntable.warehouse.stored_warehouse import verify_stored
from txntable.warehouse.warehouse import Warehouse


def unenrol(warehouse: Warehouse) -> None:
    seen = row_of(warehouse)
    elsewhere = {"f" * 32: EnrolledTopic("t", frozenset({0}))}
    replace_row(warehouse, replace(seen, topics=elsewhere, position=seen.position + 1))


def forget_transaction(warehouse: Warehouse, *, epoch: int) -> None:
    """As from a backup: the id is EMPTY under an epoch."""
    seen = row_of(warehouse)
    empty = replace(
        seen, state=S.EMPTY, topics={}, started_position=None, producer_epoch=epoch, position=seen.position + 1
    )
    replace_row(warehouse, empty)


@pytest.mark.parametrize("way", ["offset", "epoch"])
@pytest.mark.parametrize("status", [OpenEpochStatus.PAST, OpenEpochStatus.UNENROLLED, OpenEpochStatus.IDLE])
def test_abort_by_place_ends_a_hanging_transaction_with_a_marker_of_its_own(
    site: Site, status: OpenEpochStatus, way: str
) -> None:
    warehouse = site.open()
    opened(warehouse)
    named = names(warehouse, way)
    if status is OpenEpochStatus.PAST:
        lose_id(warehouse)
    elif status is OpenEpochStatus.UNENROLLED:
        unenrol(warehouse)
    else:
        forget_transaction(warehouse, epoch=0)
    assert not is_stable(site)

    aborted = site.open().admin().abort_transaction(**named)

    assert aborted.status is status
    assert (accounts(site, "u"), is_stable(site)) == ([], True)
    assert site.open().admin().find_hanging_transactions(max_transaction_timeout_ms=0) == []
    with started(site.open()).transaction() as txn:
        txn.send("u", row=row("next"))
    assert accounts(site, "u") == ["next"]


def test_marker_of_a_hanging_transaction_stands_at_a_position_that_decides_nothing_else(site: Site) -> None:
    warehouse = site.open()
    opened(warehouse)
    lose_id(warehouse)

    site.open().admin().abort_transaction(**PLACE, start_offset=0)

    head = warehouse.transactions.refresh()
    (marker,) = markers_of(site)
    log = warehouse.topic_log("u")
    topic_id = log.settings().topic_id
    assert (marker.position, decided_through(log.segments.table.numbers, topic_id)) == (head, head)


def test_marker_of_a_hanging_transaction_takes_a_new_position_when_later_markers_overtake_it(site: Site) -> None:
    warehouse, admins, other = site.open(), site.open(), site.open()
    opened(warehouse)
    lose_id(warehouse)
    overtaking = opened(other, "other")
    admin = admins.admin()

    def overtake(step: Any) -> None:
        if step.operation is PUT and "u/_segments/_delta_log" in step.path and overtaking.state == "IN_TRANSACTION":
            overtaking.commit_transaction()

    store_of(admins).on_step = overtake
    admin.abort_transaction(**PLACE, start_offset=0)

    assert overtaking.state == "READY", "the race was not played"
    assert (accounts(site, "u"), is_stable(site)) == (["open"], True)
    positions = {marker.producer_id: marker.position for marker in markers_of(site)}
    assert positions[0] > positions[1]


def markers_of(site: Site) -> list[Marker]:
    log = site.open().topic_log("u").segments
    log.refresh()
    return list(log.fold.markers.values())


def test_abort_of_a_hanging_transaction_by_two_admins_writes_one_marker(site: Site) -> None:
    warehouse, first, second = site.open(), site.open(), site.open()
    opened(warehouse)
    lose_id(warehouse)
    others: list[int] = []
    admin, other_admin = first.admin(), second.admin()

    def overtake(step: Any) -> None:
        if step.operation is PUT and "u/_segments/_delta_log" in step.path and not others:
            others.append(1)
            other_admin.abort_transaction(**PLACE, start_offset=0)

    store_of(first).on_step = overtake
    admin.abort_transaction(**PLACE, start_offset=0)

    assert others
    log = warehouse.topic_log("u")
    topic_id = log.settings().topic_id
    assert high_watermark(log.segments.table, topic_id, 0) == 2, "one record, one marker"


def test_abort_of_a_hanging_transaction_only_says_what_it_would_do_when_it_validates(site: Site) -> None:
    warehouse = site.open()
    opened(warehouse)
    lose_id(warehouse)

    aborted = site.open().admin().abort_transaction(**PLACE, start_offset=0, validate_only=True)

    assert (aborted.transactional_id, aborted.status) == (None, OpenEpochStatus.PAST)
    assert not is_stable(site)


def test_abort_of_a_hanging_transaction_can_be_killed_anywhere_and_called_again(site: Site) -> None:
    opened(site.open())
    lose_id(site.open())
    trial = site.copy().open()
    trial.admin().abort_transaction(**PLACE, start_offset=0)

    for number in range(1, len(store_of(trial).steps) + 1):
        for fault in (Fault.KILL_BEFORE, Fault.KILL_AFTER):
            crashed = site.copy()
            with pytest.raises(ProcessKilled):
                crashed.open(at(number, fault)).admin().abort_transaction(**PLACE, start_offset=0)

            if not is_stable(crashed):
                crashed.open().admin().abort_transaction(**PLACE, start_offset=0)

            assert (accounts(crashed, "u"), is_stable(crashed)) == ([], True), (number, fault)


def test_abort_refuses_an_epoch_that_the_transaction_log_never_gave(site: Site) -> None:
    """A transaction log restored from a backup gives the epoch again: a marker now would end that one."""
    warehouse = site.open()
    with started(warehouse).transaction() as txn:
        txn.send("u", row=row("a"))
    opened(warehouse, topic="t")
    forget_transaction(warehouse, epoch=1)
    site.advance_ms(1_000)
    (hanging,) = site.open().admin().find_hanging_transactions(max_transaction_timeout_ms=0)

    assert hanging.status is OpenEpochStatus.AHEAD
    for validate_only in (True, False):
        with pytest.raises(DamagedDataError, match="restore"):
            site.open().admin().abort_transaction(
                topic="t",
                partition=hanging.topic_partition.partition,
                start_offset=hanging.start_offset,
                validate_only=validate_only,
            )


# -- a marker that is lost: the transaction log has committed ----------------------------------


def lose_newest_entry(site: Site, root: str) -> tuple[str, bytes]:
    path = max(path for path in site.objects.snapshot() if path.startswith(f"{root}/_delta_log/0"))
    found = site.objects.get(path)
    assert found is not None
    site.objects.delete(path)
    return path, found.data


def lose_marker(site: Site, *, topic_of_the_next: str = "t", aborts: bool = False) -> tuple[str, bytes]:
    """End a transaction, lose the entry that has the marker, and let the id go on, as if nobody noticed the loss."""
    producer = opened(site.open())
    producer.abort_transaction() if aborts else producer.commit_transaction()
    lost = lose_newest_entry(site, segments_root("u"))
    with mock.patch.object(TopicLog, "require_whole"), started(site.open()).transaction() as txn:
        txn.send(topic_of_the_next, row=row("next"))
    return lost


@pytest.mark.parametrize("validate_only", [True, False])
@pytest.mark.parametrize("topic_of_the_next", ["t", "u"])
def test_abort_of_what_was_committed_and_has_lost_its_marker_is_refused_and_loses_nothing(
    site: Site, validate_only: bool, topic_of_the_next: str
) -> None:
    lose_marker(site, topic_of_the_next=topic_of_the_next)
    logs = {path for path in site.objects.snapshot() if "_delta_log" in path}

    with pytest.raises(DamagedDataError, match="an abort would take its records away"):
        site.open().admin().abort_transaction(**PLACE, start_offset=0, validate_only=validate_only)

    assert {path for path in site.objects.snapshot() if "_delta_log" in path} == logs
    assert not is_stable(site)


def test_entry_with_the_marker_that_is_put_back_ends_what_could_not_be_aborted(site: Site) -> None:
    path, data = lose_marker(site)
    with pytest.raises(DamagedDataError, match="restore the newest entries of the partition log"):
        site.open().admin().abort_transaction(**PLACE, start_offset=0)

    site.objects.put(path, data)

    assert (accounts(site, "u"), is_stable(site)) == (["open"], True)


def test_abort_marker_of_what_was_committed_is_found_by_verification(site: Site) -> None:
    lose_marker(site)
    again = site.open()
    topic, position = again.topic_log("u"), again.transactions.refresh()
    (one,) = open_now(topic)[1]
    hanging = HangingEpoch(one.producer_id, one.producer_epoch, position, 0, 0)
    with mock.patch.object(TopicLog, "require_whole"):
        again.completer.abort_hanging(topic, topic.settings().topic_id, hanging)

    found = verify_stored(MemoryStore(site.objects), environment=site.time).damages

    assert [one.problem for one in found if one.problem.startswith("it is an ABORT of what was decided as COMMIT")]
    assert DamageKind.PROJECTION not in {one.kind for one in found}


def test_lost_marker_of_what_was_aborted_is_written_anew(site: Site) -> None:
    lose_marker(site, aborts=True)

    with mock.patch.object(TopicLog, "require_whole"):
        site.open().admin().abort_transaction(**PLACE, start_offset=0)

    assert (accounts(site, "u"), is_stable(site)) == ([], True)


def test_abort_of_data_in_a_topic_that_the_committed_transaction_did_not_enrol_is_done(site: Site) -> None:
    warehouse = site.open()
    producer = opened(warehouse)
    seen, t = row_of(warehouse), warehouse.topic_log("t").settings()
    enrolled = {t.topic_id: EnrolledTopic("t", frozenset({0}))}
    replace_row(warehouse, replace(seen, topics=enrolled, position=seen.position + 1))
    producer.send("t", row=row("one"), partition=0)
    producer.commit_transaction()
    started(site.open()).close()
    assert not is_stable(site)

    site.open().admin().abort_transaction(**PLACE, start_offset=0)

    assert (accounts(site, "t"), accounts(site, "u"), is_stable(site)) == (["one"], [], True)


def test_abort_of_what_gets_its_marker_back_meanwhile_is_no_damage(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    path, data = lose_marker(site)

    def put_back(*arguments: Any) -> RecordedDecision | None:
        site.objects.put(path, data)
        return past_decision(*arguments)

    monkeypatch.setattr("txntable.admin.transaction_abort.past_decision", put_back)

    site.open().admin().abort_transaction(**PLACE, start_offset=0)

    assert (accounts(site, "u"), is_stable(site)) == (["open"], True)


def test_verification_does_not_say_to_delete_a_public_table_that_alone_has_the_records(site: Site) -> None:
    lose_marker(site, topic_of_the_next="u")

    kinds = {one.kind for one in verify_stored(MemoryStore(site.objects), environment=site.time).damages}

    assert DamageKind.MARKER_MISSING in kinds
    assert DamageKind.PROJECTION not in kinds

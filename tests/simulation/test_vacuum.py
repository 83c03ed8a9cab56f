"""Vacuum: what goes, what stays, and that a dry run changes nothing."""

from __future__ import annotations

import pytest

from tests.doubles.fault_plan import WRITES
from tests.doubles.read_only_store import ReadOnlyStore
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.rubbish import (
    check_whole,
    data_files,
    leave_junk,
    merge,
    needed_files,
    upload_and_die,
)
from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.simulation.test_crashes import (
    DAY_MS,
    abort,
    append_plain,
    prepared,
    send,
    transfer,
)
from tests.unit.admin.group_members import joined
from txntable.compaction.vacuum import vacuum
from txntable.compaction.vacuum_plan import Reason
from txntable.compaction.vacuum_report import VacuumProgress, VacuumReport
from txntable.errors import InvalidRequestError, UnknownTopicOrPartitionError
from txntable.format.layout import PROBE_FOLDER, heartbeat_path
from txntable.warehouse.warehouse import Warehouse, open_on


def untidy() -> Site:
    """Orphans, aborted and merged data, junk; all of it older than any retention."""
    site = prepared()
    transfer(site.open())
    abort(site.open())
    append_plain(site.open())
    upload_and_die(site, "debit")
    merge(site.open(), "debit")
    leave_junk(site, "debit")
    site.advance_ms(31 * DAY_MS)
    return site


def tidy_up(warehouse: Warehouse) -> VacuumReport:
    return vacuum(warehouse, execute=True)


def reasons(report: VacuumReport, topic: str | None = "debit") -> dict[Reason, int]:
    return {line.reason: line.objects for line in report.lines if line.topic == topic}


# -- what goes, what stays --------------------------------------------------------------------


def test_vacuum_leaves_exactly_what_is_needed_once_every_retention_is_over() -> None:
    site = untidy()
    before = {topic: published(site.open(), topic) for topic in ("debit", "credit")}

    report = tidy_up(site.open())

    assert data_files(site) == needed_files(site)
    assert {topic: published(site.open(), topic) for topic in before} == before
    assert {reason for reason in reasons(report) if reason.goes} == {
        Reason.REMOVED,
        Reason.UNNAMED,
        Reason.REFUSED_WRITE,
    }
    assert reasons(report, None) == {Reason.HEARTBEAT: 1, Reason.PROBE: 1}
    assert report.objects == sum(line.objects for line in report.lines if line.reason.goes) > 6
    assert report.bytes > 0


def test_second_vacuum_finds_nothing_to_delete_and_writes_nothing() -> None:
    site = untidy()
    tidy_up(site.open())
    warehouse = site.open()

    report = tidy_up(warehouse)

    assert report.objects == 0
    assert isinstance(warehouse.store, SteppingStore)
    assert {step.path for step in warehouse.store.steps if step.operation in WRITES} <= {"system/clock"}


@pytest.mark.parametrize("execute", [True, False])
@pytest.mark.parametrize(("days", "gone"), [(6, 0), (8, 1)])
def test_upload_that_no_log_names_goes_after_seven_days(execute: bool, days: int, gone: int) -> None:
    site = prepared()
    warehouse = site.open()
    upload_and_die(site, "debit")
    site.advance_ms(days * DAY_MS)

    report = vacuum(warehouse, execute=execute)

    assert reasons(report).get(Reason.UNNAMED, 0) == gone
    assert len([path for path in data_files(site) if "/p00000/" in path]) == (0 if gone and execute else 1)


def test_merged_sources_stay_as_long_as_a_retained_version_of_the_public_table_names_them() -> None:
    site = prepared()
    transfer(site.open())
    append_plain(site.open())
    site.advance_ms(40 * DAY_MS)
    merge(site.open(), "debit")
    site.advance_ms(29 * DAY_MS)

    kept = tidy_up(site.open())
    check_whole(site)
    site.advance_ms(2 * DAY_MS)
    gone = tidy_up(site.open())

    assert reasons(kept)[Reason.RETAINED] >= 2
    assert reasons(kept)[Reason.REMOVED] == 1, "the marker"
    assert reasons(gone)[Reason.REMOVED] >= 2
    check_whole(site)


def test_aborted_data_stays_for_the_retention_of_the_partition_logs_alone() -> None:
    site = prepared()
    abort(site.open())
    merge(site.open(), "debit")
    site.advance_ms(2 * DAY_MS)

    kept = tidy_up(site.open())
    site.advance_ms(2 * DAY_MS)
    gone = tidy_up(site.open())

    assert Reason.REMOVED not in reasons(kept)
    assert reasons(gone)[Reason.REMOVED] >= 2, "the segments and their marker"


def test_upload_of_an_epoch_that_may_still_append_is_never_tombstoned() -> None:
    site = prepared()
    producer = site.open().producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    send(producer, "open")
    producer.flush()
    dying = site.open()
    upload = min(data_files(site))
    orphan = upload.replace(upload[-40:-8], "f" * 32)
    site.objects.put(orphan, b"of the same epoch")
    site.advance_ms(8 * DAY_MS)

    report = vacuum(dying, execute=True, topics=["debit", "credit"])

    assert Reason.CURRENT_EPOCH in {line.reason for line in report.lines}
    assert orphan in data_files(site)
    check_whole(site)


def test_markers_of_complete_transactions_go_although_their_producer_has_the_next_one_open() -> None:
    site = prepared()
    producer = site.open().producer("etl")
    producer.init_transactions()
    for tag in ("first", "second"):
        producer.begin_transaction()
        send(producer, tag)
        producer.commit_transaction()
    merge(site.open(), "debit")
    markers = {path for path in data_files(site) if path.startswith("topics/debit/_segments/markers/")}
    site.advance_ms(8 * DAY_MS)
    producer.begin_transaction()
    send(producer, "open")
    producer.flush()
    # Their tombstones are forgotten.
    site.open().topic_log("debit").segments.write_checkpoint()

    report = tidy_up(site.open())
    producer.commit_transaction()

    assert len(markers) == 2
    assert reasons(report)[Reason.UNNAMED] == 2
    assert not markers & data_files(site)
    check_whole(site)


def test_files_of_a_deleted_topic_go_after_the_public_tables_retention_and_its_logs_stay() -> None:
    site = prepared()
    transfer(site.open())
    site.open().admin().delete_topic("debit")
    site.advance_ms(29 * DAY_MS)
    tidy_up(site.open())
    kept = [path for path in data_files(site) if path.startswith("topics/debit/_segments/p")]
    site.advance_ms(2 * DAY_MS)

    tidy_up(site.open())

    assert kept
    assert not [path for path in data_files(site) if path.startswith("topics/debit/_segments/p")]
    site.open().admin().create_topic("debit", partitions=2, schema=TWO_COLUMNS, key=["account"])
    append_plain(site.open())
    assert len(published(site.open(), "debit")) == 1


def test_what_is_not_of_this_format_is_told_and_stays() -> None:
    site = untidy()
    strange = {"topics/debit/notes.txt", "topics/debit/_segments/backup.tar", "topics/nobody/x.parquet"}
    for path in strange:
        site.objects.put(path, b"?")
    site.advance_ms(100 * DAY_MS)

    report = tidy_up(site.open())

    assert strange <= data_files(site)
    assert {line.example for line in report.lines if line.reason is Reason.UNKNOWN} == {
        "topics/debit/_segments/backup.tar",
        "topics/nobody/x.parquet",
    }


def test_heartbeat_of_a_silent_member_stays_for_as_long_as_its_group_has_it() -> None:
    site = prepared()
    warehouse = site.open()
    member = joined(warehouse, "m", "g", topic="debit")
    site.objects.put(heartbeat_path("g", "left"), b"")
    site.objects.put(f"{PROBE_FOLDER}/young", b"")
    site.advance_ms(8 * DAY_MS)
    site.objects.put(f"{PROBE_FOLDER}/young", b"")

    report = tidy_up(site.open())

    assert member is not None
    assert reasons(report, None) == {Reason.LIVE: 1, Reason.YOUNG: 1, Reason.HEARTBEAT: 1}


def test_vacuum_of_named_topics_leaves_everything_else_alone() -> None:
    site = untidy()
    before = set(site.objects.snapshot())

    report = vacuum(site.open(), execute=True, topics=["debit", "debit"])

    gone = before - set(site.objects.snapshot())
    assert gone
    assert all(path.startswith("topics/debit/") for path in gone)
    assert {line.topic for line in report.lines} == {"debit"}


def test_vacuum_of_a_topic_that_never_was_is_refused_before_anything_is_deleted() -> None:
    site = untidy()
    before = site.objects.snapshot()

    with pytest.raises(UnknownTopicOrPartitionError):
        vacuum(site.open(), execute=True, topics=["credit", "nobody"])

    assert before.keys() <= site.objects.snapshot().keys()


def test_vacuum_of_a_single_name_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="list of names"):
        vacuum(prepared().open(), topics="debit")


def test_progress_tells_place_by_place_what_was_looked_at_and_what_went(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txntable.compaction.vacuum_report._TOLD_EVERY", 1)
    told: list[VacuumProgress] = []

    report = vacuum(untidy().open(), execute=True, progress=told.append)

    last = {progress.topic: progress for progress in told}
    assert list(last) == ["credit", "debit", None]
    assert sum(progress.going for progress in last.values()) == report.objects
    assert sum(progress.listed for progress in last.values()) == sum(line.objects for line in report.lines)


# -- the dry run ------------------------------------------------------------------------------


def test_dry_run_tells_what_the_vacuum_does_and_makes_no_write_at_all() -> None:
    site = prepared()
    looking = site.open()
    transfer(site.open())
    abort(site.open())
    upload_and_die(site, "debit")
    leave_junk(site, "debit")
    site.advance_ms(31 * DAY_MS)

    told = vacuum(looking)
    done = tidy_up(site.open())

    assert isinstance(looking.store, SteppingStore)
    assert not [step for step in looking.store.steps if step.operation in WRITES]
    assert told.lines == done.lines
    assert (told.executed, done.executed) == (False, True)


def test_dry_run_needs_no_permission_to_write() -> None:
    site = untidy()
    reader = open_on(ReadOnlyStore(site.store()), site.environment())

    assert vacuum(reader).executed is False

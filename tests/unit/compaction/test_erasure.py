"""Records are erased from what is stored, what is not decided waits, and what is left is told."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.stepping_store import ProcessKilled
from tests.simulation.rubbish import merge, upload_and_die
from tests.simulation.site import TWO_COLUMNS, Site
from tests.simulation.test_erasure_crashes import SOUGHT, erase_in, holds, objects_with
from tests.unit.reading import (
    TOPIC,
    abort,
    accounts_in,
    commit,
    leave_open,
    places,
    plain,
    read_only,
    send,
    site_with_topic,
    transactional,
)
from txntable.compaction.erasure import erase
from txntable.compaction.erasure_report import ErasedTopic, ErasureReport, Extent, Proof, Trace
from txntable.consumer.consumer import Consumer
from txntable.errors import (
    InvalidRequestError,
    OffsetOutOfRangeError,
    SchemaMismatchError,
    TransactionAbortableError,
    UnknownTopicOrPartitionError,
)
from txntable.format.records import TopicPartition

HOUR_MS = 3_600_000


def purge(site: Site, *values: str, topics: list[str] | None = None) -> ErasureReport:
    """Erase in a process that comes by, and wait with all the others."""
    return erase_in(site, site.open(), *values, topics=topics)


def proof_of(report: ErasureReport) -> Proof:
    assert report.proof is not None
    return report.proof


def test_look_counts_what_is_there_and_needs_no_permission_to_write() -> None:
    site, warehouse = site_with_topic()
    commit(transactional(warehouse), SOUGHT, "bob", SOUGHT)
    before = site.objects.snapshot()

    report = erase(read_only(site), {"account": SOUGHT})

    assert report.topics == (ErasedTopic(TOPIC, records=2, segments=1),)
    assert {one.log for one in report.logs} == {
        f"topics/{TOPIC}/_segments",
        f"topics/{TOPIC}",
        "system/transaction_log",
    }
    assert site.objects.snapshot() == before


def test_rewrite_alone_keeps_older_versions_until_their_retention_is_over() -> None:
    site, warehouse = site_with_topic()
    commit(transactional(warehouse), SOUGHT, "bob")
    older = warehouse.snapshot().position

    report = erase(site.open(), {"account": SOUGHT}, extent=Extent.REWRITE)

    assert (report.topics[0].records, report.topics[0].files, report.proof) == (1, 1, None)
    assert places(site.open().read_arrow(TOPIC)) == [(0, 1, "bob")]
    assert objects_with(site, SOUGHT)
    assert accounts_in(site.open().snapshot(older).read_arrow(TOPIC)) == [SOUGHT, "bob"]


def test_snapshot_of_before_a_purge_is_refused_and_one_of_now_is_read() -> None:
    site, warehouse = site_with_topic()
    etl = transactional(warehouse)
    commit(etl, "bob")
    site.advance_ms(2 * HOUR_MS)
    commit(etl, SOUGHT)
    commit(etl, "cid")
    merge(site.open(), TOPIC)
    older = 2

    assert purge(site).is_proved

    with pytest.raises(OffsetOutOfRangeError):
        site.open().snapshot(older).read_arrow(TOPIC).read_all()
    assert accounts_in(site.open().snapshot().read_arrow(TOPIC)) == ["bob", "cid"]


def test_consumer_goes_on_from_its_position_and_an_open_transaction_of_others_commits() -> None:
    site, warehouse = site_with_topic(partitions=1)
    plain(warehouse, "bob", SOUGHT, "cid")
    consumer = warehouse.consumer(auto_offset_reset="earliest")
    consumer.assign([TopicPartition(TOPIC, 0)])
    consumer.seek(TopicPartition(TOPIC, 0), 1)
    producer = warehouse.producer("open", transaction_timeout_ms=900_000)
    producer.init_transactions()
    producer.begin_transaction()
    send(producer, "open")
    producer.flush()

    assert purge(site).is_proved

    assert [account for _ in range(3) for account in polled(consumer)] == ["cid"]
    send(producer, "more")
    producer.commit_transaction()
    assert accounts_in(site.open().read_arrow(TOPIC)) == ["bob", "cid", "open", "more"]


def polled(consumer: Consumer) -> list[str]:
    found = consumer.poll(timeout_ms=0)
    return [record.row["account"] for part in found.values() for record in part]


def test_records_of_an_open_transaction_are_left_and_told_and_go_once_it_is_decided() -> None:
    site, warehouse = site_with_topic()
    plain(warehouse, SOUGHT, partition=1)
    producer = leave_open(warehouse, SOUGHT, "bob")

    report = purge(site)

    assert not report.is_proved
    assert report.topics[0].records == 1
    assert report.topics[0].undecided == 1
    assert any("not decided" in sentence for sentence in report.waiting)
    assert {one.trace for one in proof_of(report).left} == {Trace.RECORD, Trace.STATISTICS}
    producer.commit_transaction()
    assert purge(site).is_proved
    assert objects_with(site, SOUGHT) == []
    assert accounts_in(site.open().read_arrow(TOPIC)) == ["bob"]


def test_history_of_the_transaction_log_waits_for_a_transaction_that_would_be_timed_out() -> None:
    site, warehouse = site_with_topic()
    commit(transactional(warehouse), SOUGHT)
    producer = warehouse.producer("long", transaction_timeout_ms=900_000)
    producer.init_transactions()
    producer.begin_transaction()
    send(producer, "bob")
    producer.flush()

    report = purge(site)

    assert any("long" in sentence for sentence in report.waiting)
    assert [one.path.partition("/_delta_log")[0] for one in proof_of(report).left] == ["system/transaction_log"]
    again = site.open()
    again.complete()
    assert [row.transactional_id for row in again.transactions.rows() if row.state.is_open] == ["long"]
    warehouse.admin().fence_producers(["long"])
    assert purge(site).is_proved


def test_upload_that_was_never_appended_is_tombstoned_before_it_is_deleted() -> None:
    site, warehouse = site_with_topic()
    plain(warehouse, "bob")
    upload_and_die(site, TOPIC)

    young = purge(site, "orphan")
    site.advance_ms(HOUR_MS)
    report = purge(site, "orphan")

    assert young.topics[0].uploaded + young.topics[0].files == 1
    assert report.is_proved
    assert objects_with(site, "orphan") == []


def test_upload_of_a_killed_writer_is_told_as_that_and_goes_once_its_id_is_fenced() -> None:
    site, warehouse = site_with_topic()
    # The first entry is that of its init; what enrols comes behind the upload.
    dying = site.open(on(Operation.PUT_IF_ABSENT, "system/transaction_log/", Fault.KILL_BEFORE, occurrence=2))
    producer = dying.producer("killed")
    producer.init_transactions()
    producer.begin_transaction()
    send(producer, SOUGHT)
    with pytest.raises(ProcessKilled):
        producer.flush()
    site.advance_ms(HOUR_MS)

    held = purge(site)

    assert (held.topics[0].undecided, held.topics[0].uploaded, held.is_proved) == (0, 1, False)
    assert any("no log names yet" in sentence for sentence in held.waiting)
    warehouse.admin().fence_producers(["killed"])
    assert purge(site).is_proved
    assert objects_with(site, SOUGHT) == []


def test_append_of_an_upload_that_an_erasure_deleted_is_refused() -> None:
    site, warehouse = site_with_topic()
    producer = warehouse.producer()
    send(producer, SOUGHT)
    store = warehouse.store

    def sleep(step: object) -> None:
        if "put-if-absent" in str(step.operation.value) and "_segments/_delta_log" in step.path:  # type: ignore[attr-defined]
            store.on_step = None  # type: ignore[attr-defined]
            site.advance_ms(HOUR_MS)
            assert purge(site).is_proved

    store.on_step = sleep  # type: ignore[attr-defined]
    with pytest.raises(TransactionAbortableError):
        producer.flush()
    assert objects_with(site, SOUGHT) == []


def test_upload_of_a_transaction_that_may_still_append_it_is_left() -> None:
    site, warehouse = site_with_topic()
    producer = transactional(warehouse)
    producer.begin_transaction()
    send(producer, "bob")
    producer.flush()
    send(producer, SOUGHT)
    site.advance_ms(2 * 60_000)

    producer.commit_transaction()

    assert purge(site).is_proved
    assert accounts_in(site.open().read_arrow(TOPIC)) == ["bob"]


def test_topic_that_was_deleted_keeps_no_file_with_the_records() -> None:
    site, warehouse = site_with_topic()
    commit(transactional(warehouse), SOUGHT)
    warehouse.admin().delete_topic(TOPIC)

    assert purge(site).is_proved
    assert objects_with(site, SOUGHT) == []


def test_topic_that_was_created_again_with_another_schema_loses_the_records_of_the_one_before() -> None:
    site, warehouse = site_with_topic()
    plain(warehouse, SOUGHT)
    warehouse.admin().delete_topic(TOPIC)
    schema = pa.schema(
        [pa.field("account", pa.string()), pa.field("amount", pa.string()), pa.field("other", pa.int64())]
    )
    warehouse.admin().create_topic(TOPIC, schema=schema)

    assert purge(site).is_proved
    assert objects_with(site, SOUGHT) == []


def test_compacted_topic_loses_all_records_of_a_key_and_its_tombstone() -> None:
    site = Site()
    warehouse = site.create()
    config = {"cleanup.policy": "compact"}
    warehouse.admin().create_topic(TOPIC, partitions=1, schema=TWO_COLUMNS, key=["account"], config=config)
    with warehouse.producer() as producer:
        for amount in (1, 2, None):
            producer.send(TOPIC, row={"account": SOUGHT, "amount": amount})
        producer.send(TOPIC, row={"account": "bob", "amount": 1})

    report = purge(site)

    assert report.topics[0].records == 3
    assert report.is_proved
    assert places(site.open().read_arrow(TOPIC)) == [(0, 3, "bob")]


def test_records_below_the_log_start_go_too() -> None:
    site, warehouse = site_with_topic(partitions=1)
    producer = leave_open(warehouse, SOUGHT, "bob", "cid")
    warehouse.admin().delete_records({TopicPartition(TOPIC, 0): 1})
    producer.commit_transaction()

    assert purge(site).is_proved
    assert objects_with(site, SOUGHT) == []
    assert accounts_in(site.open().read_arrow(TOPIC)) == ["bob", "cid"]


def test_topics_without_the_column_are_skipped_and_a_named_one_is_refused() -> None:
    site, warehouse = site_with_topic()
    plain(warehouse, SOUGHT)
    warehouse.admin().create_topic("bytes")

    assert purge(site).skipped == ("bytes",)
    with pytest.raises(SchemaMismatchError):
        purge(site, topics=["bytes"])
    with pytest.raises(UnknownTopicOrPartitionError):
        purge(site, topics=["never"])
    with pytest.raises(InvalidRequestError, match="no topic"):
        erase(site.open(), {"nobody": "x"})
    with pytest.raises(InvalidRequestError, match="list"):
        erase(site.open(), {"account": "x"}, topics=TOPIC)


def test_value_in_another_column_or_a_name_is_told_and_not_erased() -> None:
    site, warehouse = site_with_topic()
    plain(warehouse, SOUGHT)
    warehouse.admin().create_topic("bytes")
    with warehouse.producer() as producer:
        producer.send("bytes", key=b"k", value=SOUGHT.encode())
    commit(transactional(warehouse, SOUGHT), "bob")

    report = purge(site)

    assert report.is_proved
    found = {(one.trace, one.column) for one in proof_of(report).traces}
    assert (Trace.OTHER_COLUMN, "value") in found
    assert Trace.NAME in {trace for trace, _ in found}


def test_object_of_no_known_format_that_has_the_value_is_left() -> None:
    site, warehouse = site_with_topic()
    plain(warehouse, "bob")
    site.objects.put(f"topics/{TOPIC}/notes.txt", f"about {SOUGHT}".encode())
    sink = io.BytesIO()
    pq.write_table(pa.table({"account": pa.array([SOUGHT]).dictionary_encode()}), sink)
    site.objects.put(f"topics/{TOPIC}/_change_data/cdc-0.parquet", sink.getvalue())

    left = proof_of(purge(site)).left

    assert [(one.trace, one.path.rsplit("/", 1)[1]) for one in left] == [
        (Trace.OTHER_SOFTWARE, "cdc-0.parquet"),
        (Trace.BYTES, "notes.txt"),
    ]


def test_segment_that_cannot_be_read_is_a_failure_and_no_proof() -> None:
    site, warehouse = site_with_topic(partitions=2)
    plain(warehouse, SOUGHT)
    plain(warehouse, SOUGHT, partition=1)
    path = min(objects_with(site, SOUGHT), key=lambda path: ("/_segments/p00000" not in path, path))
    site.objects.put(path, b"PAR1 is no file PAR1")

    report = purge(site)

    assert not report.is_proved
    assert any("restore it" in sentence for sentence in report.failures)
    assert any(path in sentence for sentence in proof_of(report).unseen)
    whole = {path: found for path, found in site.objects.snapshot().items() if "/_segments/p00001" in path}
    assert not any(holds(one, found.data, SOUGHT.encode()) for one, found in whole.items())


def test_records_that_come_afterwards_are_found_by_the_proof_and_go_with_the_next_erasure() -> None:
    site, warehouse = site_with_topic()
    plain(warehouse, SOUGHT)
    eraser = site.open()
    told: list[str] = []

    def intrude(what: str) -> None:
        if what.startswith("prove") and not told:
            told.append(what)
            plain(site.open(), SOUGHT)

    report = erase(eraser, {"account": SOUGHT}, extent=Extent.PURGE, tell=intrude)

    assert proof_of(report).left
    assert not report.is_proved
    assert purge(site).is_proved


def test_aborted_records_go_with_the_row_that_names_them() -> None:
    site, warehouse = site_with_topic()
    producer = transactional(warehouse)
    abort(producer, SOUGHT)
    commit(producer, "bob")

    assert purge(site).is_proved
    assert objects_with(site, SOUGHT) == []
    assert accounts_in(site.open().read_arrow(TOPIC)) == ["bob"]
    commit(producer, "cid")
    assert accounts_in(site.open().read_arrow(TOPIC)) == ["bob", "cid"]


def test_logs_that_tell_nothing_of_the_records_keep_their_history() -> None:
    site, warehouse = site_with_topic()
    warehouse.admin().create_topic("other", schema=TWO_COLUMNS)
    commit(transactional(warehouse), "bob", topic="other")
    plain(warehouse, SOUGHT)
    kept = {path for path in site.objects.snapshot() if path.startswith(("topics/other/", "system/transaction_log/"))}

    report = purge(site)

    assert report.is_proved
    assert {one.log for one in report.logs} == {f"topics/{TOPIC}/_segments", f"topics/{TOPIC}"}
    assert kept <= site.objects.snapshot().keys()

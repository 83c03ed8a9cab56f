"""What an erasure looks at afterwards: the proof, and what is no trace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.rubbish import merge
from tests.simulation.site import TWO_COLUMNS
from tests.simulation.test_erasure_crashes import SOUGHT, objects_with
from tests.unit.compaction.test_erasure import proof_of, purge
from tests.unit.reading import (
    TOPIC,
    commit,
    plain,
    site_with_topic,
    transactional,
)
from txntable.compaction.erasure import erase
from txntable.compaction.erasure_proof import ErasureProof
from txntable.compaction.erasure_report import Extent, Trace
from txntable.compaction.sought_records import sought_records

HOUR_MS = 3_600_000


def test_records_of_others_that_come_meanwhile_are_no_trace_whatever_their_bounds_leave_open() -> None:
    site, warehouse = site_with_topic()
    commit(transactional(warehouse), SOUGHT, "bob")
    eraser = site.open()

    def intrude(what: str) -> None:
        """Bounds around the value, before each step of the erasure and of its proof."""
        if what.startswith(("prove", "erase: the history")):
            commit(transactional(site.open(), "busy"), "aaa", "zzz")

    report = erase(eraser, {"account": SOUGHT}, extent=Extent.PURGE, tell=intrude)

    assert report.is_proved, report
    assert objects_with(site, SOUGHT) == []


def test_history_whose_new_beginning_has_a_time_ahead_is_left_and_told() -> None:
    site, warehouse = site_with_topic()
    plain(warehouse, SOUGHT)
    site.advance_ms(HOUR_MS)
    erase(site.open(), {"account": SOUGHT}, extent=Extent.REWRITE)
    site.open().topic_log(TOPIC).public.write_checkpoint()
    path = max(path for path in site.objects.snapshot() if path.startswith(f"topics/{TOPIC}/_delta_log/0"))
    entry = path.replace(".checkpoint.parquet", ".json")
    site.objects.put(entry, site.objects.snapshot()[entry].data)
    ahead = site.objects.snapshot()
    ahead[entry] = replace(ahead[entry], last_modified_ms=ahead[entry].last_modified_ms + 24 * HOUR_MS)
    site.objects.restore(ahead)

    report = purge(site)

    assert any("too young" in sentence for sentence in report.waiting)
    assert {one.path.partition("/_delta_log")[0] for one in proof_of(report).left} == {f"topics/{TOPIC}"}


def test_proof_of_a_warehouse_that_was_not_purged_finds_the_file_and_each_log_that_tells_of_it() -> None:
    site, warehouse = site_with_topic()
    commit(transactional(warehouse), SOUGHT)
    erase(site.open(), {"account": SOUGHT}, extent=Extent.REWRITE)
    merge(site.open(), TOPIC)

    found = ErasureProof(site.open().store, sought_records({"account": SOUGHT}), {TOPIC: TWO_COLUMNS}).run(print)

    tables = {one.path.partition("/_delta_log/")[0] for one in found.left if one.trace is Trace.STATISTICS}
    assert tables == {"system/transaction_log", f"topics/{TOPIC}", f"topics/{TOPIC}/_segments"}
    assert [one.path for one in found.left if one.trace is Trace.RECORD] == [
        path for path in objects_with(site, SOUGHT) if "/_delta_log/" not in path
    ]
    told = {one.path for one in found.left}
    assert told == set(objects_with(site, SOUGHT))


@pytest.mark.parametrize(("transactional_id", "traces"), [("etl", set()), ("1", {Trace.NAME})])
def test_number_of_a_partition_or_of_a_generation_is_no_name(transactional_id: str, traces: set[Trace]) -> None:
    site, warehouse = site_with_topic()
    consumer = warehouse.consumer(group_id="g")
    consumer.subscribe([TOPIC])
    consumer.poll(timeout_ms=0)
    commit(transactional(warehouse, transactional_id), "ann", partition=1)

    found = ErasureProof(site.open().store, sought_records({"account": "1"}), {TOPIC: TWO_COLUMNS}).run(print)

    written = b"".join(one.data.replace(b"\\", b"") for one in site.objects.snapshot().values())
    assert b'"owned":{"u":{"1":' in written
    assert b'"offsets":{"1":' in written
    assert b'"partitions":"1"' in written
    assert {one.trace for one in found.traces} == traces

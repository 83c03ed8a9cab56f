"""Reads that sleep between their plan and their files, until what they have planned is merged and vacuumed.

Nothing is damaged: who reads again gets it all, or is told that the past is over; never to restore a backup.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import pyarrow as pa
import pytest

from tests.simulation.site import Site
from txntable.compaction.compactor import compact
from txntable.compaction.rewriter import TopicWork, rewriter_here
from txntable.compaction.spec import RewriteResult, RewriteTask
from txntable.compaction.vacuum import vacuum
from txntable.errors import DamagedDataError, OffsetOutOfRangeError, StoreUnavailableError
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse

DAY_MS, RECORDS = 86_400_000, 6


@pytest.fixture
def site() -> Site:
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("t")
    for number in range(RECORDS):
        with warehouse.producer() as producer:
            producer.send("t", value=str(number).encode())
    return site


def others_merge_and_vacuum(site: Site) -> None:
    site.advance_ms(DAY_MS)
    compact(site.open())
    site.advance_ms(40 * DAY_MS)
    vacuum(site.open(), execute=True)


def committed(warehouse: Warehouse) -> pa.RecordBatchReader:
    return warehouse.read_arrow("t", isolation_level="read_committed")


def uncommitted(warehouse: Warehouse) -> pa.RecordBatchReader:
    return warehouse.read_arrow("t", isolation_level="read_uncommitted")


@pytest.mark.parametrize("read", [committed, uncommitted])
def test_read_is_to_be_made_again_when_it_slept_until_its_files_were_vacuumed(
    site: Site, read: Callable[[Warehouse], pa.RecordBatchReader]
) -> None:
    warehouse = site.open()
    planned = read(warehouse)
    others_merge_and_vacuum(site)

    with pytest.raises(StoreUnavailableError, match="read again"):
        planned.read_all()

    assert read(warehouse).read_all().num_rows == RECORDS


def test_snapshot_is_out_of_range_when_it_slept_until_its_files_were_vacuumed(site: Site) -> None:
    warehouse = site.open()
    snapshot = warehouse.snapshot()
    planned = snapshot.read_arrow("t")
    others_merge_and_vacuum(site)

    with pytest.raises(OffsetOutOfRangeError, match="vacuumed by now"):
        planned.read_all()

    assert warehouse.snapshot().read_arrow("t").read_all().num_rows == RECORDS


def test_consumer_goes_on_when_it_slept_until_its_files_were_vacuumed(site: Site) -> None:
    consumer = site.open().consumer(auto_offset_reset="earliest", prefetch=False)
    consumer.assign([TopicPartition("t", 0)])
    values = [record.value for record in consumer.poll(max_records=1)[TopicPartition("t", 0)]]
    others_merge_and_vacuum(site)

    for _ in range(3 * RECORDS):
        try:
            polled = consumer.poll(max_records=1)
        except StoreUnavailableError:
            continue
        values += [record.value for records in polled.values() for record in records]

    assert values == [str(number).encode() for number in range(RECORDS)]


def test_file_that_the_log_still_names_and_that_is_gone_is_damage(site: Site) -> None:
    warehouse = site.open()
    planned = committed(warehouse)
    (first, *_) = [path for path in site.objects.snapshot() if "/p00000/" in path]
    site.store().delete([first])

    with pytest.raises(DamagedDataError, match="restore"):
        planned.read_all()


def test_compaction_that_slept_until_its_sources_were_vacuumed_has_lost_and_not_failed(site: Site) -> None:
    """Whoever compacts meanwhile takes the same sources."""
    site.advance_ms(DAY_MS)
    warehouse = site.open()
    rewrite = rewriter_here(warehouse.context)

    def slow(work: TopicWork, tasks: Sequence[RewriteTask]) -> Generator[RewriteResult, None, None]:
        others_merge_and_vacuum(site)
        return rewrite(work, tasks)

    reports = compact(warehouse, rewriter=slow)

    assert [text for report in reports for text in report.failures] == []
    assert sum(report.lost for report in reports) == 1

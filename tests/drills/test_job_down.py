"""The scheduled jobs do not run for a month, while producers commit, die and are replaced.

Lost: nothing that was committed.  Meanwhile readers see every transaction, SQL's too (producers publish their own),
logs and small segments pile up, and nothing expires.  The first round catches up in requests that grow with what is
there; who slept through the month over an open transaction is told that it is aborted.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from tests.drills.runbook import Shell, sections
from tests.golden.warehouses import all_of, copy_of
from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.unit.producer.producing import row, started, store_of
from txntable.compaction.compactor import compact
from txntable.errors import InvalidTxnStateError
from txntable.producer.producer import Producer
from txntable.upkeep.coordinator_round import CoordinatorReport
from txntable.warehouse.warehouse import Warehouse

HOUR_MS = 3_600_000
DAYS, COMMITS_A_DAY = 30, 2
MOST_REQUESTS, MOST_MB = 8, 32
"""For each transaction that the first round finds; and at most."""
TITLE = "Jobs that did not run"


def died(site: Site, transactional_id: str) -> Producer:
    """Return a producer that has appended, and does not end its transaction; nobody takes its id again."""
    producer = started(site.open(), transactional_id)
    producer.begin_transaction()
    producer.send("t", row=row("never"))
    producer.flush()
    return producer


class Month:
    """Days without the jobs."""

    def __init__(self) -> None:
        self.site, self.told = Site(), list[str]()
        self.site.create().admin().create_topic("t", schema=TWO_COLUMNS)
        producer = started(self.site.open(), "etl")
        for day in range(1, DAYS + 1):
            for _ in range(COMMITS_A_DAY):
                self.commit(producer)
                self.site.advance_ms(24 // COMMITS_A_DAY * HOUR_MS)
            died(self.site, f"died on day {day}")
        self.site.advance_ms(HOUR_MS)

    def commit(self, producer: Producer) -> None:
        name = str(len(self.told))
        producer.begin_transaction()
        producer.send("t", row=row(name))
        producer.commit_transaction()
        self.told.append(name)

    def round(self) -> tuple[CoordinatorReport, int, float]:
        """Return what a round of a new process does, its requests, and its memory at most, MB."""
        warehouse: Warehouse = self.site.open()
        tracemalloc.start()
        try:
            report = warehouse.coordinator().run_once()
            return report, len(store_of(warehouse).steps), tracemalloc.get_traced_memory()[1] / 1e6
        finally:
            tracemalloc.stop()


@pytest.fixture(scope="module")
def before() -> Month:
    return Month()


@pytest.fixture
def month(before: Month) -> Month:
    before.site = before.site.copy()
    return before


def seen(site: Site) -> list[str]:
    rows = site.open().read_arrow("t").read_all().sort_by("_offset")
    return list(map(str, rows["account"].to_pylist()))


def test_readers_see_every_commit_of_a_month_without_jobs(month: Month) -> None:
    assert seen(month.site) == month.told
    assert [found["account"] for found in published(month.site.open(), "t")] == month.told


def test_first_round_after_a_month_ends_all_that_is_open_and_the_second_finds_nothing(month: Month) -> None:
    first, requests, megabytes = month.round()
    second, _, _ = month.round()

    assert (first.aborted, first.failures) == (DAYS, 0)
    assert second == replace(CoordinatorReport(second.coordinator_epoch))
    assert requests <= MOST_REQUESTS * DAYS * (COMMITS_A_DAY + 1)
    assert megabytes <= MOST_MB
    assert seen(month.site) == month.told


def test_logs_of_a_month_are_cleaned_up_once_their_checkpoints_are_old_enough(month: Month) -> None:
    month.round()
    month.site.advance_ms((DAYS + 2) * 24 * HOUR_MS)

    report, _, _ = month.round()

    assert report.cleaned_log_files > DAYS
    assert report.expired_transactional_ids == DAYS + 1
    assert seen(month.site) == month.told


def test_compaction_after_a_month_changes_nothing_that_is_read(month: Month) -> None:
    month.round()

    (report,) = compact(month.site.open())

    assert report.merged_segments == DAYS * COMMITS_A_DAY
    assert seen(month.site) == month.told
    assert [found["account"] for found in published(month.site.open(), "t")] == month.told


def test_who_slept_over_an_open_transaction_for_a_month_is_told_that_it_is_aborted() -> None:
    site = Site()
    site.create().admin().create_topic("t", schema=TWO_COLUMNS)
    slept = died(site, "etl")
    site.advance_ms(DAYS * 24 * HOUR_MS)
    site.open().coordinator().run_once()

    with pytest.raises(InvalidTxnStateError, match="its timeout had passed"):
        slept.commit_transaction()

    assert seen(site) == []


def read(folder: Path) -> dict[str, list]:
    """What is read, without the positions that compaction makes the same."""
    rows = all_of(Warehouse.open(str(folder), durability="page-cache"))["rows"]
    return {topic: [{**found, "_commit": None} for found in records] for topic, records in rows.items()}


def test_runbook_brings_a_warehouse_that_no_job_has_visited_for_long_up_to_date(tmp_path: Path) -> None:
    folder = copy_of("layers", tmp_path / "lake")
    before = read(folder)
    shell = Shell(tmp_path, {"TXNTABLE_WAREHOUSE": str(folder)})
    late, *_ = sections()[TITLE].blocks[0]

    assert "transactions run" in shell.run(late, code=3)
    shell.follow(TITLE, 1)

    assert read(folder) == before

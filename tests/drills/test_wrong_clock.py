"""A clock is days ahead or behind: a machine's beside a bucket, and the one that a local folder goes by.

Beside a bucket nothing depends on the machine's clock.  A folder's clock that was ahead while the jobs ran: lost are
the records of topics with a retention that had passed by that clock (older versions still have them), open
transactions, ids and memberships; not lost is anything that was told committed in a topic without a retention.  One
that is set back: lost are open transactions; whatever deletes by age waits.  Who loses a transaction is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.doubles.manual_environment import StoreTime
from tests.drills.runbook import Shell, sections
from tests.simulation.site import TWO_COLUMNS, Site
from tests.unit.admin.group_members import joined
from tests.unit.producer.producing import row, started
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.errors import InvalidProducerEpochError, InvalidTxnStateError, ProducerFencedError
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
WEEK_MS = 7 * DAY_MS
DAYS = (-10, 10)
TOPICS = KEPT, FOR_A_WEEK = "kept", "for_a_week"
TITLE = "A wrong clock"


@pytest.fixture
def site() -> Site:
    made = Site()
    admin = made.create().admin()
    admin.create_topic(KEPT, schema=TWO_COLUMNS)
    admin.create_topic(FOR_A_WEEK, schema=TWO_COLUMNS, config={"retention.ms": str(WEEK_MS)})
    return made


def commit(producer: Producer, name: str) -> None:
    """Commit a row to both topics."""
    append(producer, name)
    producer.commit_transaction()


def append(producer: Producer, name: str) -> None:
    producer.begin_transaction()
    for topic in TOPICS:
        producer.send(topic, row=row(name))
    producer.flush()


def seen(site: Site, topic: str, as_of: int | None = None) -> list[str]:
    found = site.open().read_arrow(topic, as_of=as_of).read_all().sort_by("_offset")
    return list(map(str, found["account"].to_pylist()))


def run_jobs(warehouse: Warehouse) -> None:
    warehouse.coordinator().run_once()
    failures = [text for report in compact(warehouse) for text in report.failures]
    assert failures == []
    vacuum(warehouse, execute=True)


def machine(site: Site, days: int) -> Warehouse:
    """The warehouse on a machine whose clock is wrong."""
    warehouse = site.open()
    site.environments[-1].advance_wall_ms(days * DAY_MS)
    return warehouse


def set_folders_clock(site: Site, days: int) -> None:
    """Let the clock that a local folder goes by jump: the store's, and every process's."""
    clock = site.objects.clock
    assert isinstance(clock, StoreTime)
    clock.skew_ms += days * DAY_MS
    for environment in site.environments:
        environment.advance_wall_ms(days * DAY_MS)


@pytest.mark.parametrize("days", DAYS)
def test_nothing_depends_on_a_machines_clock_beside_a_bucket(site: Site, days: int) -> None:
    producer, alive = started(machine(site, days)), started(site.open(), "alive")
    commit(producer, "first")
    append(alive, "open")
    joined(site.open(), topic=KEPT)

    run_jobs(machine(site, days))

    alive.commit_transaction()
    commit(producer, "last")
    for topic in TOPICS:
        assert seen(site, topic) == ["open", "first", "last"] or seen(site, topic) == ["first", "open", "last"]
    (member,) = site.open().admin().describe_consumer_groups(["g"])["g"].members
    assert member.member_id == "m"


def test_new_process_fences_the_old_one_whatever_their_clocks_say(site: Site) -> None:
    old = started(machine(site, 10), "etl")
    commit(old, "old")
    append(old, "never")

    new = started(machine(site, -10), "etl")

    commit(new, "new")
    with pytest.raises((ProducerFencedError, InvalidProducerEpochError)):
        old.commit_transaction()
    assert seen(site, KEPT) == ["old", "new"]


def test_what_a_folders_clock_that_was_ahead_takes_is_what_the_runbook_says(site: Site) -> None:
    producer, alive = started(site.open()), started(site.open(), "alive")
    commit(producer, "before")
    position = site.open().snapshot().position
    append(alive, "open")
    set_folders_clock(site, 10)
    run_jobs(site.open())
    commit(started(site.open()), "during")
    set_folders_clock(site, -10)

    with pytest.raises(InvalidTxnStateError):
        alive.commit_transaction()
    commit(started(site.open()), "after")
    run_jobs(site.open())

    assert seen(site, KEPT) == ["before", "during", "after"]
    assert seen(site, FOR_A_WEEK) == ["during", "after"]
    assert seen(site, FOR_A_WEEK, position) == ["before"]


def test_what_was_written_under_a_clock_that_was_ahead_is_kept_longer_and_then_goes(site: Site) -> None:
    set_folders_clock(site, 10)
    commit(started(site.open()), "during")
    set_folders_clock(site, -10)
    site.advance_ms(8 * DAY_MS)
    run_jobs(site.open())
    waits = seen(site, FOR_A_WEEK)
    site.advance_ms(10 * DAY_MS)
    run_jobs(site.open())

    assert (waits, seen(site, FOR_A_WEEK), seen(site, KEPT)) == (["during"], [], ["during"])


def test_folders_clock_that_is_set_back_takes_open_transactions_and_nothing_else(site: Site) -> None:
    producer, alive = started(site.open()), started(site.open(), "alive")
    commit(producer, "before")
    append(alive, "open")
    set_folders_clock(site, -10)

    run_jobs(site.open())

    with pytest.raises(InvalidTxnStateError):
        alive.commit_transaction()
    commit(producer, "after")
    assert [seen(site, topic) for topic in TOPICS] == [["before", "after"]] * 2


def test_check_of_the_runbook_says_that_a_clock_was_ahead(site: Site, tmp_path: Path) -> None:
    clock = site.objects.clock
    assert isinstance(clock, StoreTime)
    # Decades ahead of this machine's.
    clock.skew_ms = 100 * 365 * DAY_MS
    commit(started(site.open()), "during")
    write(tmp_path / "lake", ((path, found.data) for path, found in site.objects.snapshot().items()))
    shell = Shell(tmp_path, {"TXNTABLE_WAREHOUSE": str(tmp_path / "lake")})
    now, check = sections()[TITLE].blocks[0]

    shell.run(now)

    assert "compare this machine's clock with the store's" in " ".join(shell.run(check, code=3).split())


def write(folder: Path, objects: Iterable[tuple[str, bytes]]) -> None:
    for path, data in objects:
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

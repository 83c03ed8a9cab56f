"""An erasure killed at every storage call, and falling into everything else at each: the next one finishes it.

What is looked for here is the bare value in the bytes of every object, and not what the erasure itself looks for.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import suppress

import pyarrow.parquet as pq
import pytest

from tests.doubles.fault_plan import WRITES, Fault, Operation, Step, on
from tests.doubles.stepping_store import ProcessKilled, SteppingStore
from tests.simulation.rubbish import merge
from tests.simulation.site import Site
from tests.simulation.test_compaction_crashes import deaths
from tests.unit.reading import TOPIC, abort, commit, places, plain, send, site_with_topic, transactional
from txntable.compaction.erasure import erase
from txntable.compaction.erasure_report import ErasureReport, Extent
from txntable.errors import TxnTableError
from txntable.warehouse.warehouse import Warehouse

SOUGHT = "ann-of-the-test"
KEPT = [(0, 0, "bob"), (0, 2, "cid"), (0, 6, "bob"), (0, 9, "eve"), (1, 1, "dan")]
HOUR_MS = 3_600_000


def site_to_erase() -> Site:
    """The value in a decision's manifest, in a merged segment and its old sources, aborted, plain, and in no log."""
    site, warehouse = site_with_topic()
    etl = transactional(warehouse)
    commit(etl, "bob", SOUGHT, "cid")
    abort(etl, SOUGHT)
    commit(etl, "bob")
    plain(warehouse, SOUGHT, "dan", partition=1)
    dying = site.open(on(Operation.PUT_IF_ABSENT, f"topics/{TOPIC}/_segments/_delta_log", Fault.KILL_BEFORE))
    with suppress(ProcessKilled):
        plain(dying, SOUGHT)
    site.advance_ms(2 * HOUR_MS)
    merge(site.open(), TOPIC)
    commit(transactional(warehouse, "later"), SOUGHT, "eve")
    return site


def erase_all(warehouse: Warehouse) -> ErasureReport:
    return erase(warehouse, {"account": SOUGHT}, extent=Extent.PURGE)


class _Everybody:
    """A process's clock that waits with all others of the site."""

    def __init__(self, warehouse: Warehouse, site: Site) -> None:
        self._own, self._site = warehouse.context.environment, site

    def __getattr__(self, name: str) -> object:
        return getattr(self._own, name)

    def sleep_ms(self, milliseconds: float) -> None:
        self._site.advance_ms(int(milliseconds))


def wait_with_all(site: Site, warehouse: Warehouse) -> Warehouse:
    """Return a process of which each wait lets time pass for everybody."""
    object.__setattr__(warehouse.context, "environment", _Everybody(warehouse, site))
    return warehouse


def erase_in(site: Site, warehouse: Warehouse, *values: str, topics: list[str] | None = None) -> ErasureReport:
    """Erase; while it waits the time passes for everybody."""
    return erase(
        wait_with_all(site, warehouse), {"account": list(values or (SOUGHT,))}, topics=topics, extent=Extent.PURGE
    )


def objects_with(site: Site, value: str) -> list[str]:
    """Every object that holds a value: in its bytes, or in a column once it is decoded."""
    return sorted(path for path, found in site.objects.snapshot().items() if holds(path, found.data, value.encode()))


def holds(path: str, data: bytes, value: bytes) -> bool:
    if value in data:
        return True
    return path.endswith(".parquet") and value in str(pq.read_table(io.BytesIO(data)).to_pylist()).encode()


def steps_of(site: Site, operation: Callable[[Warehouse], object]) -> list[Step]:
    """The storage calls of an operation."""
    warehouse = site.copy().open()
    assert isinstance(warehouse.store, SteppingStore)
    operation(warehouse)
    return list(warehouse.store.steps)


def records(site: Site) -> list[tuple[int, int, str]]:
    return places(site.open().read_arrow(TOPIC))


def test_site_has_the_value_wherever_it_can_stand() -> None:
    found = objects_with(site_to_erase(), SOUGHT)

    assert {path.partition("/_delta_log/")[0] for path in found if "/_delta_log/" in path} == {
        "system/transaction_log",
        f"topics/{TOPIC}",
        f"topics/{TOPIC}/_segments",
    }
    assert sum("/_segments/p" in path for path in found) >= 5


def test_erasure_killed_after_anything_that_it_writes_leaves_all_other_records_and_the_next_one_finishes() -> None:
    outcomes = set()
    for crashed, where in deaths(site_to_erase(), erase_all):
        shown = records(crashed)
        assert [row for row in shown if row[2] != SOUGHT] == KEPT, where
        outcomes.add(len(shown) - len(KEPT))

        report = erase_all(crashed.open())

        assert report.is_proved, (where, report)
        assert objects_with(crashed, SOUGHT) == [], where
        assert records(crashed) == KEPT, where
        assert crashed.open().verify().damages == (), where
    assert {0, 3} <= outcomes, "all of it, and none of it"


def test_erasure_again_writes_nothing_but_the_clock() -> None:
    site = site_to_erase()
    erase_all(site.open())
    before = site.objects.snapshot()

    report = erase_all(site.open())

    assert report.is_proved
    assert not report.logs
    changed = {path for path, found in site.objects.snapshot().items() if before.get(path) != found}
    assert changed <= {"system/clock"}
    assert before.keys() == site.objects.snapshot().keys()


# -- raced --------------------------------------------------------------------------------------


def append_other(warehouse: Warehouse) -> None:
    with warehouse.producer() as producer:
        send(producer, "new")


def commit_other(warehouse: Warehouse) -> None:
    producer = transactional(warehouse, "other")
    producer.begin_transaction()
    send(producer, "new")
    producer.commit_transaction()


def merge_all(warehouse: Warehouse) -> None:
    merge(warehouse, TOPIC)


RACING = [append_other, commit_other, merge_all]
RACED_BY = [commit_other, merge_all]


def falling_into(
    site: Site, outer: Callable[[Warehouse], object], inner: Callable[[Site, Warehouse], object], *, every: int
) -> Iterator[Site]:
    """The sites in which `inner` was done as a whole before a write of `outer`, or before each nth other call."""
    for step in steps_of(site, outer):
        # Of many deletions of log entries one is as another.
        if (step.operation not in WRITES or step.operation is Operation.DELETE) and step.number % every:
            continue
        shared = site.copy()
        first, second = shared.open(), shared.open()
        assert isinstance(first.store, SteppingStore)

        def intrude(now: Step, number: int = step.number, shared: Site = shared, second: Warehouse = second) -> None:
            if now.number == number:
                inner(shared, second)

        first.store.on_step = intrude
        with suppress(TxnTableError):
            outer(first)
        yield shared


@pytest.mark.parametrize("other", RACING)
def test_nothing_but_the_records_goes_wherever_an_erasure_falls_into_another_operation(
    other: Callable[[Warehouse], object],
) -> None:
    for shared in falling_into(site_to_erase(), other, erase_in, every=4):
        finished(shared)


@pytest.mark.parametrize("other", RACED_BY)
def test_nothing_but_the_records_goes_wherever_another_operation_falls_into_an_erasure(
    other: Callable[[Warehouse], object],
) -> None:
    for shared in falling_into(site_to_erase(), erase_all, lambda _, racing: other(racing), every=30):
        finished(shared)


def finished(shared: Site) -> None:
    """One more erasure, of a process that comes later, leaves the others' records and nothing else."""
    shared.advance_ms(2 * HOUR_MS)
    report = erase_all(shared.open())
    assert report.is_proved, report
    assert objects_with(shared, SOUGHT) == []
    assert [row for row in records(shared) if row[2] != "new"] == KEPT
    assert shared.open().verify().damages == ()

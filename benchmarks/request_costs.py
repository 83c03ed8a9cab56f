"""What the requests cost at S3's list price, and the tables of ``infra/REQUESTS.md`` that say so.

``python -m benchmarks.request_costs`` writes the tables into the document again; a test holds the document against
them.  Owns prices and arithmetic; what is counted is :mod:`benchmarks.requests`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.limits import limits
from benchmarks.requests import DAY_MS, HOUR_MS, KINDS, SECTIONS, Counted, Place, first_reads, requests_of, transact
from benchmarks.small_segments import counted_reads
from tests.doubles.fault_plan import Step
from tools.documentation.tables import with_tables
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.format.records import TopicPartition
from txntable.upkeep.coordinator_round import CoordinatorReport

DOCUMENT = Path(__file__).parent.parent / "infra" / "REQUESTS.md"
DOLLARS = {"PUT": 0.005 / 1000, "LIST": 0.005 / 1000, "GET": 0.0004 / 1000, "HEAD": 0.0004 / 1000, "DELETE": 0.0}
"""Of one request: S3 Standard, us-east-1, list price."""
DOLLARS_PER_GB_MONTH = 0.023
_MILLION = 1_000_000
# So many that every log has written its share of checkpoints: one for each hundred of its versions.
_STEADY = 100
_QUARTER_MS = HOUR_MS // 4
_QUARTERS = DAY_MS // _QUARTER_MS
# The part of a day that is counted where each quarter of an hour begins new processes.
_PART = 12


def dollars(requests: Counter[str]) -> float:
    """Return what requests cost."""
    return sum(DOLLARS[kind] * number for kind, number in requests.items())


@dataclass(frozen=True, slots=True)
class Rate:
    """What one kind of transaction costs, on average over many.

    Attributes
    ----------
    name : str
        Which transactions.
    requests : dict of str to float
        Of one of them, by kind, checkpoints and the store's clock included.
    log_bytes : float
        By which one makes the logs grow.
    """

    name: str
    requests: dict[str, float]
    log_bytes: float

    @property
    def dollars_per_million(self) -> float:
        """Requests of a million of them."""
        return _MILLION * sum(DOLLARS[kind] * number for kind, number in self.requests.items())

    @property
    def log_dollars_per_month(self) -> float:
        """Storage of the entries and checkpoints of a million of them, a month long."""
        return self.log_bytes * _MILLION / 1e9 * DOLLARS_PER_GB_MONTH


def rates() -> Iterator[Rate]:
    """Yield what steady transactions cost on average."""
    for partitions in (1, 3, 10):
        place = Place(partitions=partitions)
        plural = "" if partitions == 1 else "s"
        yield _rate(f"1 topic, {partitions} partition{plural}", place, ["t0"], partitions)
    yield _rate("3 topics", (place := Place(topics=3)), place.topics)
    yield _rate("1 topic and offsets", Place(), ["t0"], offsets=True)


def _rate(name: str, place: Place, topics: Sequence[str], partitions: int = 1, *, offsets: bool = False) -> Rate:
    producer = place.producer()
    transact(producer, topics, partitions, int(offsets))
    size = place.log_bytes()

    def many() -> None:
        for number in range(_STEADY):
            transact(producer, topics, partitions, (number + 2) * offsets)

    counted = place.count(name, many)
    share = {kind: counted.requests[kind] / _STEADY for kind in KINDS}
    return Rate(name, share, (place.log_bytes() - size) / _STEADY)


@dataclass(frozen=True, slots=True)
class Day:
    """What a day of something that runs and has nothing to do asks for."""

    name: str
    requests: Counter[str]


def days() -> Iterator[Day]:
    """Yield idle days; what comes at short intervals is counted for a part of the day, and taken as often."""
    yield Day("a producer that sends nothing", Counter())
    yield Day("a consumer that polls each second", _polled(None))
    yield Day("a member of a group that polls each second", _polled("g"))
    yield Day("the coordinator job, running all day, 1 topic", _coordinated())
    for topics in (1, 10):
        plural = "" if topics == 1 else "s"
        yield Day(
            f"every 15 minutes: a job of 1 transaction, then the coordinator job, {topics} topic{plural}",
            _scheduled(topics, lambda place: transact(place.producer())),
        )
        yield Day(
            f"the same without the transaction, {topics} topic{plural}",
            _scheduled(topics, lambda place: place.warehouse.admin().list_transactions()),
        )
    yield Day("every hour: compaction, every day: vacuum, 1 topic, nothing to do", _maintained())


def _times(requests: Counter[str], times: int) -> Counter[str]:
    return Counter({kind: number * times for kind, number in requests.items()})


def _polled(group: str | None) -> Counter[str]:
    place = Place()
    consumer = place.warehouse.consumer(
        group_id=group,
        auto_offset_reset="earliest",
        prefetch=False,
        background_heartbeat=False,
        enable_auto_commit=False,
    )
    if group is None:
        consumer.assign([TopicPartition("t0", 0)])
    else:
        consumer.subscribe(["t0"])
    consumer.poll()

    def quarter() -> None:
        for _ in range(_QUARTER_MS // 1000):
            place.machine.advance_ms(1000)
            consumer.poll()

    return _times(place.count("", quarter).requests, _QUARTERS)


def _coordinated() -> Counter[str]:
    place = Place()
    coordinator = place.warehouse.coordinator()
    coordinator.run_once()
    ends_ms = place.machine.instant().boot_ms + HOUR_MS

    def tell(report: CoordinatorReport) -> None:
        assert not report.failures

    counted = place.count("", lambda: coordinator.run(lambda: place.machine.instant().boot_ms >= ends_ms, tell))
    return _times(counted.requests, DAY_MS // HOUR_MS)


def _scheduled(topics: int, job: Callable[[Place], object]) -> Counter[str]:
    place = Place(topics)
    steps: list[Step] = []
    for _ in range(_QUARTERS // _PART):
        place.machine.advance_ms(_QUARTER_MS)
        place.open()
        job(place)
        steps += place.store.steps
        place.open()
        place.warehouse.coordinator().run_once()
        steps += place.store.steps
    return _times(requests_of(steps), _PART)


def _maintained() -> Counter[str]:
    place = Place()
    transact(place.producer())
    steps: list[Step] = []
    for hour in range(DAY_MS // HOUR_MS):
        place.machine.advance_ms(HOUR_MS)
        place.open()
        compact(place.warehouse)
        if not hour:
            vacuum(place.warehouse, execute=True)
        steps += place.store.steps
    return requests_of(steps)


# -- the document ---------------------------------------------------------------------------


def operations_table() -> str:
    """Return the table of what each operation asks for."""
    lines = _header(["Operation", *KINDS, "all", "$ for 1,000 times"])
    for section, operations in SECTIONS.items():
        lines.append(f"| **{section}** |{' |' * (len(KINDS) + 2)}")
        lines += [_operation(counted) for counted in operations()]
    return "\n".join(lines)


def _operation(counted: Counted) -> str:
    numbers = [counted.requests[kind] for kind in KINDS]
    return _row([counted.operation, *numbers, counted.total, f"{1000 * dollars(counted.requests):.4f}"])


def rounds_table() -> str:
    """Return the table of round trips of transactions."""
    lines = _header(["Transaction", "requests", "of these uploads of segments", "round trips from upload to decision"])
    for counted in SECTIONS["Producers"]():
        if counted.operation.startswith("transaction,"):
            name = counted.operation.removeprefix("transaction, ")
            lines.append(_row([name, counted.total, counted.segments, counted.rounds_to_decision]))
    return "\n".join(lines)


def reads_table() -> str:
    """Return the table of round trips of reads."""
    lines = _header(["Read of 150 small segments of a partition", "round trips, the first", "the next one"])
    lines += [_row([read.name, read.cold, read.warm]) for read in counted_reads()]
    return "\n".join(lines)


def first_reads_table() -> str:
    """Return the table of what stands between a new process and its first record."""
    lines = _header(["Warehouse of", "round trips to the first record", "GET but of segments", "$ for 1,000 times"])
    for counted in first_reads():
        cost = f"{1000 * dollars(counted.requests):.4f}"
        lines.append(_row([counted.operation, counted.round_trips, counted.requests["GET"], cost]))
    return "\n".join(lines)


def rates_table() -> str:
    """Return the table of a million transactions."""
    heads = ["Transactions of", "PUT", "GET", "HEAD", "LIST", "$ a million", "kB of log", "$ a month for the logs"]
    lines = _header(heads)
    for rate in rates():
        numbers = [f"{rate.requests[kind]:.2f}" for kind in ("PUT", "GET", "HEAD", "LIST")]
        costs = [f"{rate.dollars_per_million:.2f}", f"{rate.log_bytes / 1000:.1f}", f"{rate.log_dollars_per_month:.2f}"]
        lines.append(_row([rate.name, *numbers, *costs]))
    return "\n".join(lines)


def days_table() -> str:
    """Return the table of idle days."""
    lines = _header(["A day of", "PUT", "GET", "HEAD", "LIST", "$ a day", "$ for 30 days"])
    for day in days():
        cost = dollars(day.requests)
        numbers = [f"{day.requests[kind]:,}" for kind in ("PUT", "GET", "HEAD", "LIST")]
        lines.append(_row([day.name, *numbers, f"{cost:.4f}", f"{30 * cost:.2f}"]))
    return "\n".join(lines)


def limits_table() -> str:
    """Return the table of limits."""
    lines = [_row(["What", "At most", "Beyond that"]), "|---|---|---|"]
    return "\n".join([*lines, *map(_row, limits())])


def _header(names: Sequence[str]) -> list[str]:
    return [_row(names), "|" + "|".join(["---", *["---:"] * (len(names) - 1)]) + "|"]


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


TABLES: dict[str, Callable[[], str]] = {
    "operations": operations_table,
    "round trips": rounds_table,
    "reads": reads_table,
    "first records": first_reads_table,
    "transactions": rates_table,
    "idle days": days_table,
    "limits": limits_table,
}


def main() -> None:
    """Write the tables into the document as they are computed now."""
    tables = {name: f"{make()}\n" for name, make in TABLES.items()}
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text(), tables))


if __name__ == "__main__":
    main()

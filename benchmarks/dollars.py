"""What transactions, bytes and idle days cost in dollars, beside Delta, Iceberg and Kafka, for ``infra/DOLLARS.md``.

``python -m benchmarks.dollars`` writes the tables into the document again; a test holds the document against them.
Owns the prices beside S3's and the arithmetic.  Requests of ours come from :mod:`benchmarks.request_costs`, those of
peers from :mod:`benchmarks.peer_requests`, counted once and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.peer_requests import SIZES, PeerRequests, kept
from benchmarks.request_costs import DOLLARS, DOLLARS_PER_GB_MONTH, Rate, days, rates
from tools.documentation.tables import table, with_tables
from txntable.storage.multipart_upload import PART_BYTES

DOCUMENT = Path(__file__).parent.parent / "infra" / "DOLLARS.md"
MILLION = 1_000_000
TB, GB, GIB = 10**12, 10**9, 2**30
SECONDS_A_DAY, HOURS_A_DAY = 86_400, 24
BROKERS = 3
TOPICS = 3


@dataclass(frozen=True, slots=True)
class Price:
    """A list price of us-east-1, without discounts and free tiers.

    Attributes
    ----------
    dollars : float
        For one unit.
    unit : str
        What is counted.
    publisher : str
        Whose price it is.
    read_in : str
        Where it was read in November 2026.
    """

    dollars: float
    unit: str
    publisher: str
    read_in: str


_LIST = "a public record of AWS's price list, of"
S3_WRITE = Price(1000 * DOLLARS["PUT"], "1,000 PUT, POST, LIST", "Amazon S3", f"{_LIST} October 2025")
S3_READ = Price(1000 * DOLLARS["GET"], "1,000 GET, HEAD", "Amazon S3", f"{_LIST} October 2025")
S3_STORAGE = Price(DOLLARS_PER_GB_MONTH, "GB and month, the first 50 TB", "Amazon S3", f"{_LIST} October 2025")
GLUE = Price(1.0, "million requests, above the first", "AWS Glue", "a public transcript of its page, of October 2026")
BROKER = Price(0.21, "hour of a `kafka.m5.large`", "Amazon MSK", f"{_LIST} April 2026")
BROKER_STORAGE = Price(0.10, "GB and month, of each broker", "Amazon MSK", f"{_LIST} April 2026")
_SERVERLESS = "two public notes of its page, which name no region"
CLUSTER = Price(0.75, "hour of a cluster", "MSK Serverless", _SERVERLESS)
PARTITION = Price(0.0015, "hour of a partition", "MSK Serverless", _SERVERLESS)
DATA_IN = Price(0.10, "GiB in", "MSK Serverless", _SERVERLESS)
DATA_OUT = Price(0.05, "GiB out", "MSK Serverless", _SERVERLESS)
ZONES = Price(
    0.01, "GB between two zones, each way", "Amazon EC2", "a bill of us-west-2, published by The Duckbill Group"
)
PRICES = (S3_WRITE, S3_READ, S3_STORAGE, GLUE, BROKER, BROKER_STORAGE, CLUSTER, PARTITION, DATA_IN, DATA_OUT, ZONES)

# -- arithmetic -----------------------------------------------------------------------------

BROKERS_A_DAY = BROKERS * HOURS_A_DAY * BROKER.dollars
"""Three brokers, without their storage."""
CROSSING = (BROKERS - 1) / BROKERS * 2 * ZONES.dollars
"""A GB that is written: a producer's leader is in another of three zones two times of three, and both ends pay."""


def dollars(requests: Mapping[str, float]) -> float:
    """Return what requests cost: those of S3 by kind, and ``GLUE``."""
    prices = {**DOLLARS, "GLUE": GLUE.dollars / MILLION}
    return sum(prices[kind] * number for kind, number in requests.items())


def serverless_a_day(partitions: int) -> float:
    """Return what a day of a serverless cluster costs that nobody uses."""
    return HOURS_A_DAY * (CLUSTER.dollars + partitions * PARTITION.dollars)


def break_even(dollars_a_day: float, dollars_per_million: float) -> float:
    """Return the transactions a second at which what is paid by the day costs as much as what is paid by the piece."""
    return dollars_a_day / (dollars_per_million / MILLION) / SECONDS_A_DAY


def uploads(size: int) -> int:
    """Return the requests with which one of our segments is uploaded, each at the price of a PUT."""
    return 1 if size < PART_BYTES else -(-size // PART_BYTES) + 2


@dataclass(frozen=True, slots=True)
class Writer:
    """What a transaction costs on S3.

    Attributes
    ----------
    name : str
        Whose.
    one, three : float
        Dollars of a transaction of one record to one topic, and to three: a peer commits three times.
    files : dict of str to float
        Name of a size -> dollars of a transaction with one file of that size.
    metadata_bytes : float
        That it leaves beside its data, at the end of what was counted.
    """

    name: str
    one: float
    three: float
    files: dict[str, float]
    metadata_bytes: float


@cache
def writers() -> tuple[Writer, ...]:
    """Return ours, and the peers."""
    return _ours(), *map(_peer, kept()[1])


def _ours() -> Writer:
    found = {rate.name: rate for rate in rates()}
    one: Rate = found["1 topic, 1 partition"]
    dear = one.dollars_per_million / MILLION
    files = {name: dear + (uploads(size - 1) - 1) * DOLLARS["PUT"] for name, size in SIZES.items()}
    three = found["3 topics"].dollars_per_million / MILLION
    return Writer("txntable", dear, three, files, one.log_bytes)


def _peer(peer: PeerRequests) -> Writer:
    one = dollars(peer.append)
    beside = one - dollars(peer.data_file)
    files = {name: beside + dollars(requests) for name, requests in peer.large_files.items()}
    return Writer(peer.name, one, TOPICS * one, files, peer.metadata_bytes[-1])


# -- the document ---------------------------------------------------------------------------


def prices_table() -> str:
    """Return the table of prices."""
    rows = [(each.publisher, each.unit, f"{each.dollars:g}", each.read_in) for each in PRICES]
    return table(["Publisher", "for one", "$", "read in November 2026 in"], rows)


def requests_table() -> str:
    """Return the table of what peers ask for."""
    kinds = ("PUT", "LIST", "GET", "HEAD", "GLUE")
    rows = [
        (
            peer.name,
            *(f"{peer.append.get(kind, 0):.2f}" for kind in kinds),
            *(f"{size / 1000:.1f}" for size in peer.metadata_bytes),
        )
        for peer in kept()[1]
    ]
    header = ["A transaction of", "PUT, POST", "LIST", "GET", "HEAD", "Glue", "kB, 101 to 200", "kB, 201 to 300"]
    return table(header, rows)


def transactions_table() -> str:
    """Return the table of a million transactions."""
    rows = [
        (each.name, f"{MILLION * each.one:.2f}", f"{MILLION * each.three:.2f}", f"{each.metadata_bytes / 1000:.1f}")
        for each in writers()
    ]
    return table(
        ["$ for a million transactions", "1 topic", f"{TOPICS} topics", "kB each leaves beside its data"], rows
    )


def rates_table() -> str:
    """Return the table of a million transactions by how many there are in a second."""
    speeds = (0.1, 1, 10, 100)
    ours = MILLION * writers()[0].one
    paid_by_day = {
        f"MSK, {BROKERS} brokers, storage and transfer left out": BROKERS_A_DAY,
        "MSK Serverless, 1 partition, data left out": serverless_a_day(1),
    }
    rows = [("txntable, 1 topic", *[f"{ours:.2f}"] * len(speeds), "")]
    for name, day in paid_by_day.items():
        million = [f"{day * MILLION / (speed * SECONDS_A_DAY):.2f}" for speed in speeds]
        rows.append((name, *million, f"{break_even(day, ours):.1f}"))
    return table(["$ for a million, at so many a second", *map(str, speeds), "as much as txntable at"], rows)


def bytes_table() -> str:
    """Return the table of a TB that is written."""
    month = f"{TB / GB * S3_STORAGE.dollars:.2f}"
    rows = [
        (each.name, *(f"{TB / size * each.files[name]:.2f}" for name, size in SIZES.items()), month)
        for each in writers()
    ]
    replicated = f"{BROKERS * TB / GB * BROKER_STORAGE.dollars:.2f}"
    rows.append((f"MSK, {BROKERS} brokers, without their hours", *[f"{TB / GB * CROSSING:.2f}"] * 2, replicated))
    rows.append(("MSK Serverless, without its hours", *[f"{TB / GIB * DATA_IN.dollars:.2f}"] * 2, "not confirmed"))
    return table(["$ for a TB", *(f"written in files of {name}" for name in SIZES), "kept for a month"], rows)


def idle_table() -> str:
    """Return the table of idle days."""
    return table(["An idle day of", "$"], [(name, f"{day:.4f}") for name, day in _idle()])


def _idle() -> Iterator[tuple[str, float]]:
    yield "a warehouse, a Delta or an Iceberg table; nothing runs", 0.0
    ours = {day.name: dollars(day.requests) for day in days()}
    yield "txntable, its coordinator job every 15 minutes", ours["the same without the transaction, 1 topic"]
    yield "a reader that looks each second: txntable", ours["a consumer that polls each second"]
    for peer in kept()[1][:-1]:
        yield f"a reader that looks each second: {peer.name}", SECONDS_A_DAY * dollars(peer.look)
    yield "MSK Serverless, 1 partition", serverless_a_day(1)
    yield f"MSK, {BROKERS} brokers, without their storage", BROKERS_A_DAY


TABLES: dict[str, Callable[[], str]] = {
    "transactions": transactions_table,
    "rates": rates_table,
    "bytes": bytes_table,
    "idle days": idle_table,
    "requests of peers": requests_table,
    "prices": prices_table,
}


def main() -> None:
    """Write the tables into the document as they are computed now."""
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text(), {name: make() for name, make in TABLES.items()}))


if __name__ == "__main__":
    main()

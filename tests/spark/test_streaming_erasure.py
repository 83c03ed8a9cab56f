"""A stream over a topic that is erased from: it goes on, or stops and says what to do; nothing is lost or doubled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from tests.spark.stream_source import create_topics, drain, numbers_in
from txntable.compaction.erasure import erase
from txntable.compaction.erasure_report import Extent
from txntable.warehouse.warehouse import Warehouse

pytestmark = pytest.mark.nightly

# What Delta says, by how often the stream has read.
STOPS = {
    1: "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE.*delete its checkpoint",
    2: "DELTA_MISSING_FILES_UNEXPECTED_VERSION.*new checkpoint",
}


class Copying:
    """A stream from one topic to another, and who writes and erases in the first one."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._folder = folder
        self.warehouse = Warehouse.create(str(folder / "wh"), durability="page-cache")
        create_topics(self.warehouse, "source", "copy")
        self._spark = spark

    def send(self, numbers: Iterable[int]) -> None:
        """One transaction of its own for each number."""
        with self.opened().producer("upstream") as producer:
            producer.init_transactions()
            for number in numbers:
                with producer.transaction() as transaction:
                    transaction.send("source", row={"number": number}, partition=number % 2)

    def opened(self) -> Warehouse:
        return Warehouse.open(self.warehouse.url, durability="page-cache")

    def copy(self, transactional_id: str = "first", where: str = "true") -> None:
        """Run the stream that has an id to its end; its checkpoint has the same name."""
        stream = self.opened().read_stream(self._spark, "source", {"maxFilesPerTrigger": "1"}).where(where)
        writer = self.opened().batch_writer(transactional_id, write)
        drain(stream.select("number").writeStream.foreachBatch(writer), self._folder / transactional_id)

    def erase(self, number: int, extent: Extent) -> Any:
        return erase(self.opened(), {"number": number}, topics=["source"], extent=extent)

    def copied(self) -> Counter[int]:
        return numbers_in(self.opened(), "copy")


def write(transaction: Any, rows: Any) -> None:
    transaction.write("copy", rows)


@pytest.fixture
def copying(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copying:
    # Views of before are not waited for: there are none.
    monkeypatch.setattr("txntable.compaction.erasure._GUARDS", 0)
    return Copying(spark, tmp_path)


def test_stream_that_has_read_beyond_the_rewriting_goes_on_over_a_purge(copying: Copying) -> None:
    for first in (0, 2):
        copying.send(range(first, first + 2))
        copying.copy()

    copying.erase(3, Extent.REWRITE)
    copying.copy()
    assert copying.erase(3, Extent.PURGE).is_proved
    copying.send([4, 5])
    copying.copy()

    assert copying.copied() == Counter(range(6))


@pytest.mark.parametrize("rounds", [1, 2], ids=["in the snapshot that it began with", "beyond it"])
def test_stream_that_is_behind_stops_at_a_purge_and_another_one_takes_what_is_left(
    copying: Copying, rounds: int
) -> None:
    for first in range(rounds):
        copying.send([first])
        copying.copy()
    done = range(rounds)
    copying.send([10, 11, 12])

    assert copying.erase(11, Extent.PURGE).is_proved
    for _ in range(2):
        with pytest.raises(StreamingQueryException, match=STOPS[rounds]):
            copying.copy()
    assert copying.copied() == Counter(done)
    copying.copy("second", where=f"number NOT IN ({', '.join(map(str, done))})")

    assert copying.copied() == Counter([*done, 10, 12])


def test_stream_that_is_behind_reads_on_over_an_erasure_without_a_purge(copying: Copying) -> None:
    copying.send(range(2))
    copying.copy()
    copying.send([2, 3, 4])

    copying.erase(3, Extent.REWRITE)
    copying.copy()

    # What it reads are older versions, which have the record until their retention is over.
    assert copying.copied() == Counter(range(5))

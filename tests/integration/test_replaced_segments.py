"""A segment that is replaced by another valid one of the same size: never served as truth (PROTOCOL.md §5.2, §10)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from txntable import TopicPartition, Warehouse
from txntable.cli.main import application
from txntable.errors import DamagedDataError
from txntable.segments.segment import SegmentPlan
from txntable.segments.segment_columns import segment_columns
from txntable.segments.segment_rewriting import RewritePlan, rewrite_segments
from txntable.storage.object_reader import WHOLE_BYTES
from txntable.verification.damage import DamageKind

COLUMNS = pa.schema([pa.field("value", pa.int64(), nullable=False)])
# Of a number of 8 bytes each that compress badly: more than is fetched by one request.
MANY = WHOLE_BYTES // 8 + 100_000


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse.create(str(tmp_path / "warehouse"), durability="page-cache")
    for name in ("t", "other"):
        warehouse.admin().create_topic(name, partitions=1, schema=COLUMNS)
    return warehouse


def written(warehouse: Warehouse, topic: str, values: list[int]) -> Path:
    """The file of one segment."""
    before = files(warehouse, topic)
    with warehouse.producer(compression_type="none") as producer:
        producer.send(topic, rows=pa.table({"value": values}, COLUMNS), timestamp_ms=1)
    (new,) = files(warehouse, topic) - before
    return new


def files(warehouse: Warehouse, topic: str) -> set[Path]:
    return set(Path(warehouse.url, "topics", topic, "_segments").glob("p*/*.parquet"))


def replaced(warehouse: Warehouse, values: list[int], others: list[int]) -> str:
    """Write a segment, and put another topic's of equal size in its place; return its path in the warehouse."""
    old, new = written(warehouse, "t", values), written(warehouse, "other", others)
    assert old.stat().st_size == new.stat().st_size
    assert old.read_bytes() != new.read_bytes()
    old.write_bytes(new.read_bytes())
    return str(old.relative_to(warehouse.url))


def many_numbers(first: int) -> list[int]:
    """Numbers that do not compress, `first` and its neighbour in each other's place: files of one size."""
    numbers = [number * 6364136223846793005 % 2**63 for number in range(MANY)]
    numbers[first], numbers[first + 1] = numbers[first + 1], numbers[first]
    return numbers


def problems(warehouse: Warehouse) -> list[str]:
    return [one.path for one in warehouse.verify().damages]


def test_replaced_segment_is_refused_by_every_reader_and_found_by_who_verifies(warehouse: Warehouse) -> None:
    written(warehouse, "t", [1, 2])
    path = replaced(warehouse, [3, 4], [5, 6])

    for level in ("snapshot", "read_committed", "read_uncommitted"):
        with pytest.raises(DamagedDataError, match=r"another digest"):
            warehouse.read_arrow("t", isolation_level=level).read_all()
    with warehouse.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("t", 0)])
        consumer.seek(TopicPartition("t", 0), 3)
        with pytest.raises(DamagedDataError, match=path.rsplit("/", 1)[1]):
            consumer.poll(timeout_ms=1_000)
    found = warehouse.verify(["t"])
    assert found.segments == 2
    (damage,) = found.damages
    assert (damage.kind, damage.path) == (DamageKind.SEGMENT_REPLACED, path)
    assert damage.problem.startswith("the file has another digest than its row: it was changed or replaced; the right")


def test_replaced_large_segment_is_found_by_who_verifies(warehouse: Warehouse) -> None:
    """Of a large one readers fetch parts: their pages' checksums and its size are right, and it is not its row's."""
    path = replaced(warehouse, many_numbers(1_000), many_numbers(9_000))

    assert problems(warehouse) == [path]


@pytest.mark.parametrize("change", ["gone", "shorter", "longer"])
def test_file_that_is_gone_or_has_another_size_is_found(warehouse: Warehouse, change: str) -> None:
    small, large = written(warehouse, "t", [1]), written(warehouse, "t", many_numbers(1_000))
    for file in (small, large):
        data = file.read_bytes()
        file.unlink()
        if change != "gone":
            file.write_bytes(data[:-1] if change == "shorter" else data + b"x")

    assert problems(warehouse) == sorted(str(file.relative_to(warehouse.url)) for file in (small, large))


def test_verification_of_what_was_written_finds_nothing(warehouse: Warehouse) -> None:
    written(warehouse, "t", [1, 2])
    written(warehouse, "t", many_numbers(1_000))

    found = warehouse.verify()

    assert (found.segments, found.damages) == (2, ())
    assert found.bytes == sum(file.stat().st_size for file in files(warehouse, "t"))


def test_command_says_which_file_differs_by_its_exit_code_too(warehouse: Warehouse) -> None:
    written(warehouse, "t", [1])
    words = ["warehouse", "verify", "--warehouse", warehouse.url]
    assert CliRunner().invoke(application, words).exit_code == 0
    path = replaced(warehouse, [3], [5])

    ran = CliRunner().invoke(application, [*words, "--output", "json"])

    assert ran.exit_code == 1
    assert path in ran.stdout


def test_public_rows_say_the_digests_of_their_files(warehouse: Warehouse) -> None:
    written(warehouse, "t", [1])
    topic = warehouse.topic_log("t")

    (public,) = segment_columns(topic.public.table.files.to_table(), public=True).between(0, 0, 9)
    (segment,) = segment_columns(topic.segments.table.files.to_table(), public=False).between(0, 0, 9)

    assert public.digest == segment.digest
    assert str(public.digest).startswith("sha256:")


@pytest.mark.parametrize("large", [False, True])
def test_replaced_segment_is_not_written_again_under_a_digest_of_its_own(warehouse: Warehouse, large: bool) -> None:
    values = (many_numbers(1_000), many_numbers(9_000)) if large else ([3], [4])
    replaced(warehouse, *values)
    topic = warehouse.topic_log("t")
    settings = topic.settings()
    sources = list(segment_columns(topic.segments.table.files.to_table(), public=False).between(0, 0, 2**62))
    before = files(warehouse, "t")
    plan = RewritePlan(SegmentPlan(topic.segments.root, settings, None, 1), 2**30, warehouse.context.environment.new_id)

    with pytest.raises(DamagedDataError, match="another digest"):
        rewrite_segments(warehouse.store, plan, sources)

    assert files(warehouse, "t") == before

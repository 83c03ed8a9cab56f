"""What decodes to very much is refused, or read in bounded memory: never an end of memory (PROTOCOL.md §4.1, §5.2)."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.memory_store import MemoryStore
from tests.unit import bombs
from txntable.errors import DamagedDataError, RecordTooLargeError
from txntable.format import parquet_bounds
from txntable.format.layout import WAREHOUSE_FILE
from txntable.format.parquet_bounds import BATCH_BYTES, batch_rows, chunks_of
from txntable.format.parquet_pages import pages_of
from txntable.format.topic import TopicSettings
from txntable.log import actions, checkpoint
from txntable.log.actions import decode_commit, decode_commit_info
from txntable.log.checkpoint import decode_checkpoint, decode_hint
from txntable.segments import segment_writer
from txntable.segments.segment import SegmentPlan
from txntable.segments.segment_columns import PlannedSegment
from txntable.segments.segment_reader import SegmentReader
from txntable.segments.segment_writer import SegmentWriter
from txntable.storage import object_store
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store
from txntable.warehouse.warehouse import Warehouse

# What a process may take beside what it has once everything is imported.
ROOM_BYTES = 600 << 20
PATH = "p00000/bomb.parquet"
TEXT, TEXTS = pa.string(), pa.list_(pa.string())


def settings_of(kind: pa.DataType) -> TopicSettings:
    return TopicSettings("t", "a" * 32, 1, pa.schema([("v", kind)]))


def count(data: bytes, rows: int, kind: pa.DataType = TEXT) -> tuple[int, int]:
    """Read a segment; return how many records it has, and the size of the largest batch."""
    store = MemoryStore()
    store.put(f"root/{PATH}", data)
    reader = SegmentReader(store, "root", settings_of(kind), ["v"])
    found = largest = 0
    for batch in reader.read(PlannedSegment(PATH, 0, 0, rows - 1, 0, len(data), rows, 0, rows)):
        found, largest = found + batch.num_rows, max(largest, batch.nbytes)
    return found, largest


REFUSED = "would decode to more than can be|repeated to more than can be"
PROGRAM = """
import resource
from pathlib import Path
from tests.unit import test_bombs as case
from txntable.format import parquet_bounds
from txntable.errors import DamagedDataError
case.pa.array([1])  # Arrow loads pandas with its first array
parquet_bounds.LARGEST_ROW_GROUP_BYTES = {most}
data = Path({file!r}).read_bytes()
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + case.ROOM_BYTES,) * 2)
try:
    print(case.count(data, {rows}, case.{kind}))
except DamagedDataError as error:
    print("DamagedDataError", error)
"""
GIB = 1 << 30
# Bytes that are quickly made, of more than a process that reads them has.
LARGE = 700 << 20


@pytest.mark.parametrize(
    ("make", "read", "answer"),
    [
        (lambda: bombs.plain_bomb(LARGE), (1, "TEXT", LARGE - 1), REFUSED),
        (lambda: bombs.lying(bombs.plain_bomb(LARGE)), (1, "TEXT", LARGE - 1), REFUSED),
        (lambda: bombs.list_bomb(900_000, 20_000), (1, "TEXTS", GIB), REFUSED),
        (lambda: bombs.lying(bombs.list_bomb(900_000, 20_000)), (1, "TEXTS", GIB), REFUSED),
        # 4.5 GB, and all of them records: they come in batches that fit.
        (lambda: bombs.repeating_bomb(900_000, 5_000), (5_000, "TEXT", GIB), r"\(5000, \d{9}\)"),
    ],
    ids=["plain", "plain, lying", "list", "list, lying", "repeated"],
)
def test_bomb_ends_no_process_of_little_memory(
    tmp_path: Path, make: Callable[[], bytes], read: tuple[int, str, int], answer: str
) -> None:
    data, (rows, kind, most) = make(), read
    assert len(data) < 1 << 20
    (tmp_path / "bomb").write_bytes(data)
    program = PROGRAM.format(file=str(tmp_path / "bomb"), rows=rows, kind=kind, most=most)

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)

    assert re.search(answer, ran.stdout), ran.stdout + ran.stderr
    if answer is REFUSED:
        assert f"path=root/{PATH}" in ran.stdout


@pytest.mark.parametrize("compression", ["none", "zstd", "snappy", "gzip", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_values_of_a_dictionary_are_measured_in_every_codec(compression: str, version: str) -> None:
    sink = io.BytesIO()
    table = pa.table({"v": pa.array(["a", "x" * 10_000, None, "bc"] * 20_000).dictionary_encode()})
    pq.write_table(table, sink, compression=compression, data_page_version=version)
    footer = pq.read_metadata(sink)
    chunks = chunks_of(footer, 0, [0])

    def read(start: int, length: int) -> bytes:
        return sink.getvalue()[start : start + length]

    assert batch_rows(footer, chunks, read, 65_536) == BATCH_BYTES // 10_000
    assert batch_rows(footer, chunks, read, 50) == 50
    (page, *_) = pages_of(read(chunks[0].start, chunks[0].length))
    assert page.is_dictionary


def test_row_groups_of_all_types_are_far_below_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The widest estimate of what a full row group decodes to: of the narrowest values."""
    store = MemoryStore()
    kinds = [pa.bool_(), pa.int8(), TEXT, pa.float64()] * 4
    schema = pa.schema([(f"c{i}", kind) for i, kind in enumerate(kinds)])
    settings = TopicSettings("t", "a" * 32, 1, schema)
    writer = SegmentWriter(store, SegmentPlan("root", settings, None, 5), 0, "b" * 32, keyed=False)
    count = 1 << 20
    arrays = [pa.nulls(count, field.type) for field in schema]
    writer.write(pa.RecordBatch.from_arrays(arrays, schema=schema))
    staged = writer.close()
    reader = SegmentReader(store, "root", settings)
    monkeypatch.setattr(parquet_bounds, "LARGEST_ROW_GROUP_BYTES", GIB // 4)

    wanted = PlannedSegment(staged.path, 0, 0, count - 1, 0, staged.size, count, 0, count)

    assert sum(batch.num_rows for batch in reader.read(wanted)) == count


def test_batch_of_any_size_becomes_row_groups_of_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_writer, "ROW_GROUP_BYTES", 10_000)
    store = MemoryStore()
    writer = SegmentWriter(store, SegmentPlan("root", settings_of(TEXT), None, 5), 0, "b" * 32, keyed=False)
    texts = [*["x" * 100] * 500, "y" * 20_000, "z"]

    writer.write(pa.RecordBatch.from_arrays([pa.array(texts)], names=["v"]))
    staged = writer.close()

    found = store.get(f"root/{staged.path}")
    assert found is not None
    file = pq.ParquetFile(io.BytesIO(found.data))
    groups = [file.read_row_group(index).nbytes for index in range(file.num_row_groups)]
    assert max(groups) < 40_000
    assert len(groups) > 4
    assert file.read().column("v").to_pylist() == texts


def test_record_that_no_reader_would_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_writer, "ROW_GROUP_BYTES", 1_000)
    monkeypatch.setattr(segment_writer, "LARGEST_RECORD_BYTES", 5_000)
    writer = SegmentWriter(MemoryStore(), SegmentPlan("r", settings_of(TEXT), None, 5), 0, "b" * 32, keyed=False)

    with pytest.raises(RecordTooLargeError, match="larger than any segment"):
        writer.write(pa.RecordBatch.from_arrays([pa.array(["a", "x" * 6_000])], names=["v"]))


def test_texts_in_lists_have_no_dictionary() -> None:
    """So that whatever a record's list repeats can be read."""
    store = MemoryStore()
    writer = SegmentWriter(store, SegmentPlan("root", settings_of(TEXTS), None, 5), 0, "b" * 32, keyed=False)
    writer.write(pa.RecordBatch.from_arrays([pa.array([["x" * 100] * 1000])], names=["v"]))

    found = store.get(f"root/{writer.close().path}")

    assert found is not None
    assert not pq.read_metadata(io.BytesIO(found.data)).row_group(0).column(0).has_dictionary_page


# -- logs -----------------------------------------------------------------------------------


def test_checkpoint_that_repeats_a_value_is_not_decoded() -> None:
    table = pa.table({"add": pa.StructArray.from_arrays([bombs.repeated("x" * 900_000, 20_000)], ["stats"])})
    data = bombs.parquet(table, write_statistics=False)

    assert len(data) < 64 << 10
    for bomb in (data, bombs.lying(data)):
        with pytest.raises(DamagedDataError, match="repeated to more than can be") as caught:
            decode_checkpoint(3, bomb, "a checkpoint")
        assert caught.value.facts["path"] == "a checkpoint"


def test_checkpoint_that_grows_out_of_proportion_is_not_decoded_whatever_its_footer_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checkpoint, "_SMALLEST_BOUND", 1 << 20)
    monkeypatch.setattr(checkpoint, "_LARGEST_RATIO", 64)
    data = bombs.parquet(pa.table({"add": [b"\0" * (64 << 20)]}), use_dictionary=False, write_statistics=False)

    for bomb in (data, bombs.lying(data)):
        with pytest.raises(DamagedDataError, match="would decode to more than can be"):
            decode_checkpoint(3, bomb, "a checkpoint")


def test_entry_and_line_that_are_too_large_are_refused_before_they_are_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(actions, "LARGEST_LINE_BYTES", 100)
    monkeypatch.setattr(actions, "LARGEST_WHOLE_BYTES", 1000)
    monkeypatch.setattr(actions, "parse_json", lambda _text: pytest.fail("it was decoded"))

    for data in (b"{" * 101 + b"\n", b"{}\n" * 400):
        for decode in (lambda data: decode_commit(1, data, "p"), lambda data: decode_commit_info(data, "p")):
            with pytest.raises(DamagedDataError, match="larger than any can be"):
                decode(data)


def test_hint_and_identity_that_are_too_long_are_not_parsed(tmp_path: Path) -> None:
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    identity = tmp_path / "wh" / WAREHOUSE_FILE
    identity.write_bytes(identity.read_bytes() + b" " * 70_000)

    assert decode_hint(b'{"version": 3}') == 3
    assert decode_hint(b'{"version": 3}' + b" " * 5000) is None
    with pytest.raises(DamagedDataError, match="cannot be read"):
        Warehouse.open(made.url)


def test_object_that_is_too_large_to_be_read_whole_is_refused_by_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "LARGEST_WHOLE_BYTES", 10)
    for store in (MemoryStore(), open_store(StoreSpec(str(tmp_path))), open_store(StoreSpec("memory://bombs"))):
        store.put("small", b"x" * 10)
        store.put("large", b"x" * 11)

        assert store.get("small") is not None
        for read in (store.get, lambda path, store=store: store.get_many([path, path])):
            with pytest.raises(DamagedDataError, match="larger than any of its kind") as caught:
                read("large")
            assert (caught.value.facts["path"], caught.value.facts["bytes"]) == ("large", 11)
        assert store.get_range("large", 0, 20) == b"x" * 11


@pytest.mark.parametrize("cut", [1, 3, 10, 40])
def test_pages_that_are_cut_or_none_at_all_are_no_pages(cut: int) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"v": list(range(100))}), sink)
    (chunk,) = chunks_of(pq.read_metadata(sink), 0, [0])
    data = sink.getvalue()[chunk.start : chunk.start + chunk.length]

    assert [page.values for page in pages_of(data) if not page.is_dictionary] == [100]
    for broken in (data[:-cut], b"\xff" * cut, b"\x1c" * 40):
        with pytest.raises(ValueError, match="page"):
            list(pages_of(broken))


@given(st.binary(max_size=200))
def test_no_bytes_are_read_for_ever_as_pages(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert len(list(pages_of(data))) <= len(data)


def test_index_page_that_would_end_before_its_header_is_no_page() -> None:
    """A size of minus the header's own seven bytes: whoever goes on behind it is at the same page again."""
    index = b"\x15\x02\x15\x00\x15\x0d\x00"

    with pytest.raises(ValueError, match="size below zero"):
        list(pages_of(index))
    assert list(pages_of(b"\x15\x02\x15\x00\x15\x00\x00")) == []

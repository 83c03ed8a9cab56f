"""Reading an object by ranges: the same bytes as the whole, few requests, and damage that is told."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.memory_store import MemoryStore
from tests.doubles.stepping_store import SteppingStore
from txntable.errors import DamagedDataError, StoreUnavailableError
from txntable.storage.object_reader import WHOLE_BYTES, ObjectReader

SMALL = bytes(range(200))
LARGE = bytes(range(251)) * (WHOLE_BYTES // 250)


def opened(data: bytes, *plan, size: int | None = None) -> tuple[ObjectReader, SteppingStore]:
    inner = MemoryStore()
    inner.put("o", data)
    store = SteppingStore(inner, plan)
    return ObjectReader(store, "o", len(data) if size is None else size), store


moves = st.lists(
    st.tuples(st.sampled_from([io.SEEK_SET, io.SEEK_CUR, io.SEEK_END]), st.integers(-300, 300), st.integers(0, 250)),
    max_size=12,
)


@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
@given(moves=moves)
def test_reader_behaves_as_a_file_of_the_same_bytes(data: bytes, moves: list) -> None:
    reader, _ = opened(data)
    file = io.BytesIO(data)

    for whence, offset, length in moves:
        if whence == io.SEEK_SET or file.tell() + offset < 0:
            offset = abs(offset)
        assert reader.seek(offset, whence) == file.seek(offset, whence)
        assert reader.read(length) == file.read(length)
        assert reader.tell() == file.tell()


def test_small_object_costs_one_request() -> None:
    reader, store = opened(SMALL)

    assert (reader.read(10), reader.read(), reader.read()) == (SMALL[:10], SMALL[10:], b"")
    assert len(store.steps) == 1


def test_footer_of_a_large_object_costs_one_request_and_each_part_one() -> None:
    reader, store = opened(LARGE)

    for back in (8, 500, 40_000):
        reader.seek(-back, io.SEEK_END)
        assert reader.read(8) == (LARGE[-back:])[:8]
    reader.seek(1000)
    assert reader.read(70_000) == LARGE[1000:71_000]

    assert len(store.steps) == 2


def test_range_that_begins_before_the_footer_and_ends_in_it_is_whole() -> None:
    reader, _ = opened(LARGE)

    reader.seek(-100_000, io.SEEK_END)

    assert reader.read() == LARGE[-100_000:]


def test_reader_takes_parquet_from_pyarrow_to_its_hands() -> None:
    table = pa.table({"n": list(range(2_000_000))})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="none", use_dictionary=False)
    data = sink.getvalue().to_pybytes()
    assert len(data) > WHOLE_BYTES
    reader, _ = opened(data)

    assert reader.size() == len(data)
    assert reader.readable()
    assert reader.seekable()
    assert pq.ParquetFile(reader).read() == table


@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(("change", "found"), [("shorter", "another size"), ("gone", "nothing")])
def test_object_of_another_size_than_the_log_says_is_damage(data: bytes, change: str, found: str) -> None:
    reader, store = opened(data[:-1] if change == "shorter" else data, size=len(data))
    if change == "gone":
        store.delete(["o"])

    reader.seek(-8, io.SEEK_END)
    with pytest.raises(DamagedDataError, match=f"path=o expected_size={len(data)} found={found}"):
        reader.read()


@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
def test_object_that_has_grown_is_damage_when_its_end_is_read(data: bytes) -> None:
    reader, _ = opened(data + b"x", size=len(data))

    reader.seek(-8, io.SEEK_END)
    with pytest.raises(DamagedDataError, match="another size"):
        reader.read(1)


def test_store_that_can_not_be_reached_says_so_and_reading_goes_on_after_it() -> None:
    reader, _ = opened(SMALL, on(Operation.GET, "o", Fault.FAIL_BEFORE))

    with pytest.raises(StoreUnavailableError):
        reader.read(10)

    assert reader.read(10) == SMALL[:10]


def test_ranges_that_are_held_cost_one_request_where_they_are_near_and_none_afterwards() -> None:
    reader, store = opened(LARGE)
    ranges = [(1_000_000, 500), (0, 100), (200, 300), (1_000_600, 10), (7, 0)]

    reader.hold(ranges)
    assert len(store.steps) == 2
    for start, length in ranges:
        assert bytes(reader.at(start, length)) == LARGE[start : start + length]
        reader.seek(start)
        assert reader.read(length) == LARGE[start : start + length]
    assert len(store.steps) == 2
    reader.hold([(2_000_000, 10)])
    assert bytes(reader.at(0, 100)) == LARGE[:100]

    assert len(store.steps) == 4, "others are held no more"


def test_bytes_are_not_copied_when_arrow_reads_what_is_held() -> None:
    reader, _ = opened(LARGE)
    reader.hold([(1_000, 100_000)])

    reader.seek(2_000)
    found = pa.PythonFile(reader, "r").read_buffer(50_000)

    assert found.to_pybytes() == LARGE[2_000:52_000]
    assert found.address == pa.py_buffer(reader.at(2_000, 50_000)).address


def test_ranges_of_a_store_that_answers_in_parallel_are_asked_for_in_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryStore, "parallel_reads", 16)
    store = MemoryStore()
    store.put("o", LARGE)
    reader = ObjectReader(store, "o", len(LARGE))
    ranges = [(at, 50) for at in range(0, 3_000_000, 500_000)]

    reader.hold(ranges)

    assert [bytes(reader.at(*each)) for each in ranges] == [LARGE[at : at + length] for at, length in ranges]


def test_range_behind_the_end_is_damage_and_not_asked_for() -> None:
    reader, store = opened(LARGE)

    with pytest.raises(DamagedDataError, match="behind its end"):
        reader.hold([(len(LARGE) - 10, 11)])

    assert store.steps == []


def test_small_object_is_held_whole_anyway() -> None:
    reader, store = opened(SMALL)

    reader.hold([(0, 10)])

    assert (bytes(reader.at(3, 5)), len(store.steps)) == (SMALL[3:8], 1)

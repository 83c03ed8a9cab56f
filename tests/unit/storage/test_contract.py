"""The contract of ``object_store``, on every store."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from txntable.errors import DamagedDataError, InvalidRequestError
from txntable.storage.object_store import BEGINNING_BYTES, ObjectStore, PutOutcome


def paths(store: ObjectStore, prefix: str = "") -> list[str]:
    return [meta.path for meta in store.list(prefix)]


def test_get_and_head_return_none_when_there_is_no_object(store):
    assert store.get("a/b") is None
    assert store.head("a/b") is None
    assert paths(store) == []


def test_get_returns_what_put_if_absent_created(store):
    outcome = store.put_if_absent("a/b.json", b"bytes")

    found, meta = store.get("a/b.json"), store.head("a/b.json")
    assert outcome is PutOutcome.CREATED
    assert found is not None
    assert meta is not None
    assert (found.data, meta.path, meta.size) == (b"bytes", "a/b.json", 5)
    assert found.last_modified_ms == meta.last_modified_ms > 0


@pytest.mark.parametrize(
    ("start", "length", "found"), [(0, 3, b"abc"), (2, 1, b"c"), (0, 6, b"abcdef"), (4, 100, b"ef")]
)
def test_get_range_returns_the_part_and_fewer_bytes_at_the_end(store, start, length, found):
    store.put("a/b", b"abcdef")

    assert store.get_range("a/b", start, length) == found


@pytest.mark.parametrize("start", [6, 700])
def test_get_range_returns_nothing_when_it_begins_at_or_after_the_end(store, start):
    store.put("a/b", b"abcdef")

    assert store.get_range("a/b", start, 5) == b""


def test_get_range_returns_none_when_there_is_no_object(store):
    assert store.get_range("a/b", 0, 5) is None


def test_get_range_of_a_large_object_returns_that_part(store):
    store.put("a/b", bytes(range(256)) * 40_000)

    assert store.get_range("a/b", 5_000_001, 300) == (bytes(range(256)) * 3)[65:365]


def test_put_if_absent_says_exists_and_keeps_the_object_when_another_won(store):
    store.put_if_absent("a", b"first")

    assert store.put_if_absent("a", b"second") is PutOutcome.EXISTS
    assert store.get("a").data == b"first"


def test_put_if_absent_creates_once_when_many_race(store):
    barrier = threading.Barrier(8)

    def race(number: int) -> PutOutcome:
        barrier.wait()
        return store.put_if_absent("log/00.json", b"%d" % number)

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(race, range(8)))

    assert outcomes.count(PutOutcome.CREATED) == 1
    assert store.get("log/00.json").data == b"%d" % outcomes.index(PutOutcome.CREATED)


def test_put_replaces_the_object(store):
    store.put("a", b"first")
    store.put("a", b"")

    assert store.get("a").data == b""


def test_get_many_keeps_the_order_and_says_none_for_absent_ones(store):
    for number in range(12):
        store.put(f"n/{number}", b"%d" % number)

    found = store.get_many([*(f"n/{number}" for number in range(11, -1, -1)), "n/none"])

    assert [None if one is None else one.data for one in found] == [*(b"%d" % n for n in range(11, -1, -1)), None]


def test_folders_names_what_is_directly_below_and_no_objects(store):
    for path in ("topics/b/_delta_log/0", "topics/a/x", "topics/a/y/z", "topics/object"):
        store.put(path, b"")

    assert store.folders("topics") == ["a", "b"]
    assert store.folders("nothing") == []


def test_list_yields_the_folder_sorted_by_path(store):
    written = ["a/b/c", "a-b", "a/b-c/d", "a/b.c", "ab/x", "a/é b=1"]
    for path in written:
        store.put(path, b"12")

    assert paths(store) == sorted(written)
    assert paths(store, "a") == paths(store, "a/") == sorted(path for path in written if path.startswith("a/"))
    assert paths(store, "a/b") == ["a/b/c"]
    assert paths(store, "nothing") == []
    assert {meta.size for meta in store.list("")} == {2}


@pytest.mark.parametrize("call", ["delete", "delete_unordered"])
def test_delete_removes_objects_and_bears_absent_ones(store, call):
    for path in ("a/1", "a/2", "a/3"):
        store.put(path, b"")

    getattr(store, call)(["a/1", "none/none", "a/3"])

    assert paths(store) == ["a/2"]
    assert store.put_if_absent("a/1", b"again") is PutOutcome.CREATED


@pytest.mark.parametrize("path", ["", "/a", "a//b", "a/", "../a", "a/./b", "a\\b", "a\0b", "a/.unfinished-7"])
def test_every_call_refuses_a_path_that_is_none(store, path):
    for call in (store.get, store.head, store.writer, lambda p: store.put(p, b""), lambda p: store.delete([p])):
        with pytest.raises(InvalidRequestError):
            call(path)
    for refuse in (store.put_if_absent, lambda p, data: store.create_all([(p, data)])):
        with pytest.raises(InvalidRequestError):
            refuse(path, b"")


@pytest.mark.parametrize("size", [0, 10, 3_000_000, 20_000_000])
def test_writer_makes_the_object_appear_whole_when_closed(store, size):
    block = bytes(range(250)) * 4000
    written = (block * 20)[:size]

    file = store.writer("w/big")
    for start in range(0, size, 999_999):
        file.write(memoryview(written)[start : start + 999_999])
    before = store.get("w/big"), paths(store)
    file.close()
    file.close()

    assert before == (None, [])
    assert store.get("w/big").data == written
    assert store.head("w/big").size == size


def test_writer_replaces_nothing_that_is_there(store):
    store.put("w/a", b"first")
    file = store.writer("w/a")
    file.write(b"second")

    with pytest.raises(DamagedDataError, match="was not replaced"):
        file.close()

    assert store.get("w/a").data == b"first"
    assert paths(store) == ["w/a"]
    assert list(store.unfinished()) == []


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_create_all_makes_each_object_in_its_folder(store, count):
    objects = [(f"many/p{number % 7}/{number}", f"{number}".encode()) for number in range(count)]

    store.create_all(objects)

    assert {path: store.get(path).data for path in paths(store)} == dict(objects)
    assert list(store.unfinished()) == []


def test_create_all_replaces_nothing_that_is_there(store):
    store.put("w/b", b"first")

    with pytest.raises(DamagedDataError, match="was not replaced"):
        store.create_all([("w/a", b"second"), ("w/b", b"second"), ("w/c", b"second")])

    assert store.get("w/b").data == b"first"


@pytest.mark.parametrize("size", [10, 20_000_000])
@pytest.mark.parametrize("how", ["exception", "collected"])
def test_writer_leaves_nothing_when_given_up(store, size, how):
    def give_up() -> None:
        file = store.writer("w/big")
        file.write(b"x" * size)
        if how == "exception":
            with file:
                raise KeyError

    if how == "exception":
        with pytest.raises(KeyError):
            give_up()
    else:
        give_up()
        gc.collect()

    assert store.get("w/big") is None
    assert paths(store) == []


def test_writer_takes_a_parquet_file_from_pyarrow(store):
    table = pa.table({"n": list(range(1000))})

    with store.writer("t.parquet") as file:
        pq.write_table(table, file)

    assert pq.read_table(pa.BufferReader(store.get("t.parquet").data)) == table


@pytest.mark.parametrize("size", [1, BEGINNING_BYTES, 3 * BEGINNING_BYTES])
def test_put_next_puts_and_returns_the_beginning_of_the_other_object(store, size):
    below = bytes(number % 251 for number in range(size))
    store.put("a/0", below)

    assert store.put_next("a/1", b"1", "a/0") == (PutOutcome.CREATED, below[:BEGINNING_BYTES])
    assert store.put_next("a/1", b"2", "a/0") == (PutOutcome.EXISTS, below[:BEGINNING_BYTES])
    assert store.put_next("a/3", b"3", "a/2") == (PutOutcome.CREATED, None)
    assert [store.get(f"a/{number}").data for number in (1, 3)] == [b"1", b"3"]


def test_get_above_returns_the_objects_and_the_beginning_of_the_other_one(store):
    store.put("a/0", b"0")
    store.put("a/1", b"1")

    (one, two), below = store.get_above(["a/1", "a/2"], "a/0")

    assert (one.data, two, below) == (b"1", None, b"0")
    assert store.get_above(["a/2"], "a/3") == ([None], None)

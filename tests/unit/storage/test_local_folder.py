"""What is particular to a local folder."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import stat
from pathlib import Path
from typing import Any, NoReturn

import pytest

from txntable.errors import (
    InvalidRequestError,
    StorePermissionError,
    StoreUnavailableError,
    StoreUnsuitableError,
    WarehouseReplacedError,
)
from txntable.storage.local_folder import LocalFolder
from txntable.storage.object_store import ObjectStore, PutOutcome, StoreSpec
from txntable.storage.system_calls import MachineCalls, SystemCalls


class FailingCalls(MachineCalls):
    """The machine's calls, of which one fails."""

    def __init__(self, call: str, number: int) -> None:
        def fail(*_: object) -> NoReturn:
            raise OSError(number, os.strerror(number))

        setattr(self, call, fail)


class ShortCalls(MachineCalls):
    """A disk that takes and gives three bytes at a time."""

    def write(self, descriptor: int, data: bytes | memoryview) -> int:  # type: ignore[override]
        return os.write(descriptor, data[:3])

    def read(self, descriptor: int, size: int) -> bytes:
        return os.read(descriptor, min(size, 3))


def act(store: ObjectStore, operation: str) -> None:
    if operation == "list":
        list(store.list("a"))
    elif operation == "writer":
        with store.writer("a/b") as file:
            file.write(b"x" * 2_000_000)
    elif operation == "delete":
        store.delete(["a/b"])
    elif operation.startswith("put"):
        getattr(store, operation)("a/b", b"data")
    else:
        getattr(store, operation)("a/b")


@pytest.fixture
def spec(tmp_path) -> StoreSpec:
    return StoreSpec(str(tmp_path / "deep" / "warehouse"), durability="page-cache")


def local(spec: StoreSpec, calls: SystemCalls | None = None) -> Any:
    return LocalFolder(spec, calls)


def names(folder: str) -> list[str]:
    return sorted(name for _, _, files in os.walk(folder) for name in files)


def test_write_leaves_no_file_but_the_object(spec):
    store = local(spec)

    store.put_if_absent("a/one", b"1")
    store.put_if_absent("a/one", b"2")
    store.put("a/two", b"")
    with pytest.raises(KeyError), store.writer("a/three") as file:  # noqa: PT012
        file.write(b"3")
        raise KeyError

    assert names(spec.url) == ["one", "two"]


def test_left_unfinished_file_is_neither_listed_nor_opened_again(spec):
    store = local(spec)
    store.put_if_absent("a/one", b"1")
    left = f"{spec.url}/a/.unfinished-{os.getpid()}-0"
    os.link(f"{spec.url}/a/one", left)

    LocalFolder(spec).put_if_absent("a/two", b"22")

    assert [meta.path for meta in store.list("")] == ["a/one", "a/two"]
    assert store.get("a/one").data == b"1"
    with open(left, "rb") as file:
        assert file.read() == b"1"


CALLS = ["get", "get_range", "head", "list", "folders", "put", "put_if_absent", "writer", "delete", "unfinished"]


def call(store: ObjectStore, operation: str) -> None:
    match operation:
        case "get_range":
            store.get_range("a/b", 0, 1)
        case "folders":
            store.folders("a")
        case "unfinished":
            list(store.unfinished())
        case _:
            act(store, operation)


@pytest.mark.parametrize("operation", CALLS)
@pytest.mark.parametrize("replaced_by", ["nothing", "an empty folder", "another store"])
def test_every_call_is_refused_and_creates_nothing_when_the_root_is_gone_or_another(spec, operation, replaced_by):
    store = local(spec)
    store.put("a/b", b"data")
    os.rename(spec.url, f"{spec.url}.moved")
    if replaced_by == "an empty folder":
        os.mkdir(spec.url)
    elif replaced_by == "another store":
        local(spec).put("a/b", b"another's")
    before = names(spec.url)

    with pytest.raises(WarehouseReplacedError):
        call(store, operation)

    assert names(spec.url) == before
    assert os.path.exists(spec.url) == (replaced_by != "nothing")


def test_root_that_was_deleted_and_made_again_is_another_also_where_inodes_are_used_again(spec):
    store = local(spec)
    store.put("a/b", b"data")
    for _ in range(20):
        shutil.rmtree(spec.url)
        os.mkdir(spec.url)
        with pytest.raises(WarehouseReplacedError):
            store.put("a/b", b"data")


def test_calls_go_on_when_the_root_is_back(spec):
    store = local(spec)
    store.put("a/b", b"data")
    os.rename(spec.url, f"{spec.url}.moved")
    with pytest.raises(WarehouseReplacedError):
        store.get("a/b")
    os.rename(f"{spec.url}.moved", spec.url)

    assert store.put_if_absent("a/c", b"data") is PutOutcome.CREATED
    assert store.get("a/b").data == b"data"


@pytest.mark.parametrize("opened_by", ["a write", "a read"])
@pytest.mark.parametrize("operation", ["put", "put_if_absent", "writer"])
def test_write_is_refused_when_a_folder_that_was_there_is_gone(spec, opened_by, operation):
    store = local(spec)
    store.put("a/b", b"data")
    store.put("c", b"data")
    if opened_by == "a read":
        store = local(spec)
        store.get("a/b")
    shutil.rmtree(f"{spec.url}/a")

    with pytest.raises(WarehouseReplacedError, match="is not made again"):
        act(store, operation)

    assert not os.path.exists(f"{spec.url}/a")


@pytest.mark.parametrize("operation", ["put", "put_if_absent", "writer"])
def test_nothing_is_published_when_the_root_is_replaced_while_the_file_is_written(spec, operation):
    class Replacing(MachineCalls):
        def write(self, descriptor: int, data: bytes | memoryview) -> int:  # type: ignore[override]
            if not os.path.exists(f"{spec.url}.moved"):
                os.rename(spec.url, f"{spec.url}.moved")
                local(spec).put("a/x", b"another's")
            return os.write(descriptor, data)

    local(spec).put("a/b0", b"data")
    store = local(spec, Replacing())

    with pytest.raises(WarehouseReplacedError):
        act(store, operation)

    assert "b" not in names(spec.url)
    assert "b" not in names(f"{spec.url}.moved")


def test_get_and_head_return_none_when_path_is_a_folder_or_runs_through_a_file(spec):
    store = local(spec)
    store.put("a/one", b"1")

    assert [store.get(path) for path in ("a", "a/one/x")] == [None, None]
    assert [store.head(path) for path in ("a", "a/one/x")] == [None, None]
    assert list(store.list("a/one")) == []


def test_reading_creates_nothing(spec):
    store = local(spec)

    store.get("a")
    list(store.list(""))
    store.delete(["a/b"])

    assert not os.path.exists(spec.url)


def test_files_get_the_usual_permissions(spec):
    LocalFolder(spec).put("a", b"")

    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(os.stat(f"{spec.url}/a").st_mode) == 0o666 & ~mask


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("get", "open"),
        ("get", "fstat"),
        ("get", "read"),
        ("head", "stat"),
        ("list", "entries"),
        ("put", "mkdir"),
        ("put", "rename"),
        ("put_if_absent", "open"),
        ("put_if_absent", "write"),
        ("put_if_absent", "link"),
        ("writer", "open"),
        ("writer", "write"),
        ("delete", "unlink"),
    ],
)
@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.EACCES, StorePermissionError),
        (errno.EROFS, StorePermissionError),
        (errno.EIO, StoreUnavailableError),
        (errno.ENOSPC, StoreUnavailableError),
    ],
)
def test_every_call_raises_by_what_the_caller_can_do(spec, operation, call, number, expected):
    reading = operation not in {"put", "put_if_absent", "writer"}
    if reading:
        LocalFolder(spec).put("a/b", b"data")

    with pytest.raises(expected) as raised:
        act(LocalFolder(StoreSpec(spec.url), FailingCalls(call, number)), operation)

    assert raised.value.facts["path"] in {"a", "a/b"}
    assert isinstance(raised.value.__cause__, OSError)
    assert names(spec.url) == (["b"] if reading else [])


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_is_told_as_such(spec, number):
    with pytest.raises(StoreUnavailableError, match="the disk is full; make room, then try again"):
        act(LocalFolder(StoreSpec(spec.url), FailingCalls("write", number)), "put")


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_put_if_absent_says_unsuitable_when_the_file_system_has_no_hard_links(spec, number):
    with pytest.raises(StoreUnsuitableError, match="hard links"):
        LocalFolder(spec, FailingCalls("link", number)).put_if_absent("a/b", b"")

    assert names(spec.url) == []


def test_objects_are_whole_when_the_disk_takes_and_gives_less_than_asked(spec):
    store = local(spec, ShortCalls())

    store.put_if_absent("a", b"0123456789")

    assert store.get("a").data == b"0123456789"


def test_reprs_name_the_folder(spec):
    assert spec.url in repr(LocalFolder(spec))


def test_store_opens_again_from_its_pickle(spec):
    store = local(spec)
    store.put("a", b"1")

    assert pickle.loads(pickle.dumps(store)).get("a").data == b"1"


@pytest.mark.parametrize("bad", [StoreSpec("relative"), StoreSpec("/x", durability="none")])
def test_opening_is_refused_when_the_spec_is_none(bad):
    with pytest.raises(InvalidRequestError):
        LocalFolder(bad)


def test_child_process_goes_on_after_fork(spec):
    store = local(spec)
    store.put_if_absent("a/0", b"")

    child = os.fork()
    if child == 0:
        os._exit(0 if store.put_if_absent("a/1", b"child") is PutOutcome.CREATED else 1)
    outcome = store.put_if_absent("a/2", b"parent")

    assert os.waitpid(child, 0)[1] == 0
    assert outcome is PutOutcome.CREATED
    assert store.get("a/1").data == b"child"


def test_unfinished_files_are_told_and_discarded_and_objects_are_neither(spec):
    store = LocalFolder(spec)
    store.put("a/b", b"object")
    for left in ("a/.unfinished-1-0", ".unfinished-1-1"):
        Path(spec.url, left).write_bytes(b"abc")

    told = [(meta.path, meta.size) for meta in store.unfinished()]
    store.discard([path for path, _ in told] + ["a/.unfinished-gone"])

    assert told == [(".unfinished-1-1", 3), ("a/.unfinished-1-0", 3)]
    assert not list(store.unfinished())
    assert [meta.path for meta in store.list("")] == ["a/b"]


@pytest.mark.parametrize("path", ["a/b", "../.unfinished-1-0"])
def test_discard_refuses_what_is_no_unfinished_file_of_the_store(spec, path):
    store = LocalFolder(spec)
    store.put("a/b", b"object")

    with pytest.raises(InvalidRequestError):
        store.discard([path])

    assert store.get("a/b") is not None


def test_read_only_file_system_is_said_to_be_one(spec):
    with pytest.raises(StorePermissionError, match="mount it for writing"):
        act(LocalFolder(StoreSpec(spec.url), FailingCalls("open", errno.EROFS)), "put")

"""Objects as files in a local folder (PROTOCOL.md, log rule 10).

An object is written under a name that no reader looks at, synced, and only then linked (which
fails when the name is taken) or renamed into place; then its folder is synced.  So an object is
whole in every state the disk can be found in.  Segments alone are made under their own names: no log says these before
all of it is synced.  With ``durability="page-cache"`` nothing is
synced: objects survive the death of a process, not of the machine.

The folder is held: when another is found at its path, or none, every call fails, and no folder that was there is
made again (:mod:`txntable.storage.held_root`).  A file is published by a link or a rename within its own folder, and
the root is looked at after the file was begun: so it is published in the folder that was looked at, or not at all.

No lock is held but for a turn (:meth:`LocalFolder.turn`), on which nothing depends, so a process may fork at any time;
clients, which know more than a store, may not (:mod:`txntable.runtime.one_process`).
Needs a file system with hard links, shared by one machine.  Must not know what objects mean.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import BinaryIO

from txntable.errors import InvalidRequestError, StoreUnsuitableError
from txntable.format.object_path import TEMPORARY_PREFIX, check_folder, check_path, parent_of
from txntable.runtime.counters import Counters
from txntable.runtime.environment import SystemEnvironment
from txntable.storage.disk_errors import disk_failure, failing_at
from txntable.storage.folder_ledger import FolderLedger
from txntable.storage.held_root import HeldRoot
from txntable.storage.object_store import (
    ObjectMeta,
    ObjectStore,
    PutOutcome,
    StoredObject,
    StoreSpec,
    check_whole_size,
    name_is_taken,
)
from txntable.storage.object_writer import open_writer
from txntable.storage.request_counts import DELETES, GETS, HEADS, LISTS, PUTS, READ_BYTES, WRITTEN_BYTES
from txntable.storage.side_by_side import threads
from txntable.storage.system_calls import MachineCalls, SystemCalls
from txntable.storage.unfinished_file import FileSink, UnfinishedFile

_NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV})
_TAKEN = frozenset({errno.EAGAIN, errno.EACCES})
_ABSENT = (FileNotFoundError, NotADirectoryError)
# A file system puts many files on the disk in one go when it is asked for them at the same time.
_SYNCS_AT_ONCE = 16


class LocalFolder(ObjectStore):
    """A store in a folder of this machine.

    Parameters
    ----------
    spec : StoreSpec
        ``url`` is an absolute path, without ``file://``; no options.
    calls : SystemCalls, optional
        The disk; tests hand in another.

    Raises
    ------
    InvalidRequestError
        The path is not absolute, or the durability unknown.
    """

    counters: Counters

    def __init__(self, spec: StoreSpec, calls: SystemCalls | None = None) -> None:
        if not spec.url.startswith("/"):
            raise InvalidRequestError("a local store needs an absolute path", url=spec.url)
        if spec.durability not in {"full", "page-cache"}:
            raise InvalidRequestError("durability is 'full' or 'page-cache'", durability=spec.durability)
        self.spec = spec
        self._root = os.path.normpath(spec.url)
        self._calls: SystemCalls = calls or MachineCalls()
        self._durable = spec.durability == "full"
        # Two files are synced in little more time than one; unsynced, threads only wait for each other.
        self.parallel_writes = 2 if self._durable and calls is None else 1
        self._syncs_at_once = _SYNCS_AT_ONCE if self._durable and calls is None else 1
        self._takes_turns = calls is None
        self._held = HeldRoot(self._root, self._calls)
        self._folders = FolderLedger(self._root, self._held, self._calls, durable=self._durable)
        self.counters = Counters(SystemEnvironment().ticks_ns)
        self._numbers = itertools.count()
        self._series = threading.local()

    def __repr__(self) -> str:
        return f"LocalFolder({self._root!r}, durability={self.spec.durability!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (LocalFolder, (self.spec,))

    def get(self, path: str) -> StoredObject | None:
        """Return the object, or ``None`` when there is none."""
        return self.get_many([path])[0]

    def get_many(self, paths: Sequence[str]) -> list[StoredObject | None]:
        """Return the objects in the order of `paths`; the folder is looked at once, at the end."""
        found = [self._read(path) for path in paths]
        self._check_root(paths[0] if paths else "")
        for folder in {parent_of(path) for path, one in zip(paths, found, strict=True) if one is not None}:
            self._folders.saw(folder)
        self.counters.add(GETS, len(paths))
        self.counters.add(READ_BYTES, sum(len(one.data) for one in found if one is not None))
        return found

    def _read(self, path: str) -> StoredObject | None:
        try:
            descriptor = self._calls.open(f"{self._root}/{check_path(path)}", os.O_RDONLY)
            try:
                status = self._calls.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    return None
                check_whole_size(path, status.st_size)
                data = self._read_all(descriptor, status.st_size)
            finally:
                self._calls.close(descriptor)
        except _ABSENT:
            return None
        except OSError as error:
            raise disk_failure(error, path) from error
        return StoredObject(data, status.st_mtime_ns // 1_000_000)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Return a part of an object, or ``None`` when there is no object."""
        found: bytes | None = None
        self.counters.add(GETS)
        with failing_at(path), suppress(*_ABSENT):
            descriptor = self._calls.open(f"{self._root}/{check_path(path)}", os.O_RDONLY)
            try:
                found = self._calls.pread(descriptor, length, start)
            finally:
                self._calls.close(descriptor)
        self._check_root(path)
        self.counters.add(READ_BYTES, len(found or b""))
        return found

    def head(self, path: str) -> ObjectMeta | None:
        """Return the object's size and time, or ``None`` when there is none."""
        self.counters.add(HEADS)
        found = self._meta_at(check_path(path))
        self._check_root(path)
        return found

    def _meta_at(self, path: str) -> ObjectMeta | None:
        try:
            status = self._calls.stat(f"{self._root}/{path}")
        except _ABSENT:
            return None
        except OSError as error:
            raise disk_failure(error, path) from error
        if not stat.S_ISREG(status.st_mode):
            return None
        self._folders.saw(parent_of(path))
        return ObjectMeta(path, status.st_size, status.st_mtime_ns // 1_000_000)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object."""
        with self._open(path, self._replace) as file:
            file.write(data)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create an object unless there is one."""
        folder = parent_of(check_path(path))
        self.counters.add(PUTS)
        self.counters.add(WRITTEN_BYTES, len(data))
        with failing_at(path):
            file = self._create_file(folder)
            try:
                file.write(data)
                created = self._create(file, path)
            finally:
                file.remove()
            if created and self._is_in_series():
                # On the disk before the next write is seen, or at the end of the series: as what was read.
                self._folders.saw(folder)
            elif created:
                self._sync_new(folder)
        return PutOutcome.CREATED if created else PutOutcome.EXISTS

    def turn(self, folder: str) -> AbstractContextManager[bool] | None:
        """Ask for the turn of writing to a folder: the kernel's advisory lock of it, which ends with its process."""
        if not self._takes_turns:
            return nullcontext(False)
        try:
            descriptor = os.open(f"{self._root}/{check_folder(folder)}", os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            # What is wrong with the folder is told by who writes to it.
            return nullcontext(False)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            return None if error.errno in _TAKEN else nullcontext(False)
        return _holding(descriptor)

    def sync_read(self) -> None:
        """Sync the folders of all that was read and may be another's, linked and not synced; in a series at its end."""
        with failing_at(self._root):
            if self._is_in_series():
                self._folders.require_sound()
            else:
                self._folders.sync_seen()

    @contextmanager
    def series(self) -> Iterator[None]:
        """Leave the name of each object to this thread's next write, and that of the last to the end of the block."""
        if self._is_in_series():
            yield
            return
        self._series.is_open = True
        try:
            yield
        finally:
            self._series.is_open = False
            # Also after an error: what was put before it was applied, and counts.
            self.sync_read()

    def _is_in_series(self) -> bool:
        return getattr(self._series, "is_open", False)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        """Yield the objects in and below the folder `prefix`, sorted by path."""
        folder = check_folder(prefix)
        self.counters.add(LISTS)
        self._check_root(folder)
        return self._walk(folder)

    def folders(self, prefix: str) -> Sequence[str]:
        """Return the names of the folders directly in the folder `prefix`, sorted."""
        folder = check_folder(prefix)
        self.counters.add(LISTS)
        entries: Sequence[tuple[str, bool]] = []
        with failing_at(folder), suppress(*_ABSENT):
            entries = self._calls.entries(f"{self._root}/{folder}" if folder else self._root)
        self._check_root(folder)
        return sorted(name for name, is_folder in entries if is_folder)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects one after the other; an absent one is no error."""
        self.counters.add(DELETES, len(paths))
        for path in paths:
            self._unlink(check_path(path))
        for folder in dict.fromkeys(parent_of(path) for path in paths):
            with failing_at(folder), suppress(*_ABSENT):
                self._folders.sync(folder)

    def writer(self, path: str) -> BinaryIO:
        """Return a file to stream a new object into; one that is there is not replaced."""
        return self._open(path, self._create_or_raise)

    def create_all(self, objects: Sequence[tuple[str, bytes]]) -> None:
        """Create objects under their names, which no log says before this has returned; all are synced at once."""
        files: list[UnfinishedFile] = []
        self.counters.add(PUTS, len(objects))
        self.counters.add(WRITTEN_BYTES, sum(len(data) for _, data in objects))
        try:
            for path, data in objects:
                with failing_at(path):
                    files.append(self._create_named(path))
                    files[-1].write(data)
            with failing_at(objects[0][0] if objects else ""):
                self._seal_all(files, list(dict.fromkeys(parent_of(path) for path, _ in objects)))
                self._held.check()
        except BaseException:
            for file in files:
                file.remove()
            raise

    def sync_written(self, folder: str, paths: Sequence[str] = ()) -> None:
        """Put what other software has written into a folder on the disk: bytes, names, and the folder's own name."""
        with failing_at(folder):
            self._folders.ensure(check_folder(folder))
            if paths:
                files = [partial(self._sync_file, check_path(path)) for path in paths]
                self._sync((*files, partial(self._sync_new, folder)), at_once=True)
            self._held.check()

    def _sync_file(self, path: str) -> None:
        if not self._durable:
            return
        descriptor = self._calls.open(f"{self._root}/{path}", os.O_RDONLY)
        try:
            self._calls.fsync(descriptor)
        finally:
            self._calls.close(descriptor)

    def _create_named(self, path: str) -> UnfinishedFile:
        self._folders.ensure(parent_of(check_path(path)))
        try:
            return UnfinishedFile(self._calls, f"{self._root}/{path}")
        except FileExistsError:
            raise name_is_taken(path) from None

    def _seal_all(self, files: Sequence[UnfinishedFile], folders: Sequence[str]) -> None:
        """Close the files, and put their bytes and their names on the disk: in any order, since nobody looks yet."""
        seals = [partial(file.seal, durable=self._durable) for file in files]
        names = [partial(self._sync_new, folder) for folder in folders]
        self._sync((*seals, *names), at_once=len(files) > 1)

    def _sync(self, calls: Sequence[Callable[[], None]], *, at_once: bool) -> None:
        if not at_once or self._syncs_at_once < 2:
            for call in calls:
                call()
            return
        with threads(min(self._syncs_at_once, len(calls))) as pool:
            running = [pool.submit(call) for call in calls]
            wait(running)
        for one in running:
            one.result()

    def _open(self, path: str, publish: Callable[[UnfinishedFile, str], None]) -> BinaryIO:
        self.counters.add(PUTS)
        with failing_at(check_path(path)):
            file = self._create_file(parent_of(path))
        return open_writer(FileSink(file, path, publish))

    def unfinished(self) -> Iterator[ObjectMeta]:
        """Yield the files that were never linked or renamed into place, by their paths."""
        self._check_root("")
        return self._walk("", unfinished=True)

    def discard(self, paths: Sequence[str]) -> None:
        """Take the names of such files away: one that is another name of an object is no loss to it."""
        for path in paths:
            folder, _, name = path.rpartition("/")
            if not _is_unfinished(name):
                raise InvalidRequestError("only an unfinished file is discarded; delete objects", path=path)
            self._unlink(f"{check_folder(folder)}/{name}")

    def _unlink(self, path: str) -> None:
        self._check_root(path)
        with failing_at(path), suppress(*_ABSENT):
            self._calls.unlink(f"{self._root}/{path}")

    def _create_file(self, folder: str) -> UnfinishedFile:
        self._folders.ensure(folder)
        while True:
            place = f"{self._root}/{folder}" if folder else self._root
            # process and number: no other living process of this machine has that name
            name = f"{TEMPORARY_PREFIX}{os.getpid()}-{next(self._numbers)}"
            try:
                return UnfinishedFile(self._calls, f"{place}/{name}")
            except FileExistsError:
                continue  # left behind by a dead process that had our id

    def _check_root(self, path: str) -> None:
        with failing_at(path):
            self._held.check()

    def _read_all(self, descriptor: int, size: int) -> bytes:
        data = self._calls.read(descriptor, size)
        if len(data) == size:
            return data
        blocks = [data]
        while block := self._calls.read(descriptor, size):
            blocks.append(block)
        return b"".join(blocks)

    def _link(self, unfinished: str, path: str) -> bool:
        try:
            self._calls.link(unfinished, f"{self._root}/{path}")
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno in _NO_HARD_LINKS:
                raise StoreUnsuitableError(
                    "this file system makes no hard links; choose a folder on another", path=self._root
                ) from error
            raise
        return True

    def _create(self, file: UnfinishedFile, path: str) -> bool:
        seal = partial(file.seal, durable=self._durable)
        self._sync((seal, self._folders.sync_seen), at_once=self._folders.has_unsynced)
        self._held.check()
        return self._link(file.place, path)

    def _create_or_raise(self, file: UnfinishedFile, path: str) -> None:
        if not self._create(file, path):
            raise name_is_taken(path)
        file.remove()
        self._sync_new(parent_of(path))

    def _replace(self, file: UnfinishedFile, path: str) -> None:
        file.seal(durable=self._durable)
        self._folders.sync_seen()
        self._held.check()
        self._calls.rename(file.place, f"{self._root}/{path}")
        self._sync_new(parent_of(path))

    def _sync_new(self, folder: str) -> None:
        # Seen by whoever looks: should it not be synced here, the next write of this process waits for it.
        self._folders.saw(folder)
        self._folders.sync(folder)

    def _walk(self, folder: str, *, unfinished: bool = False) -> Iterator[ObjectMeta]:
        place = f"{self._root}/{folder}" if folder else self._root
        try:
            entries = self._calls.entries(place)
        except _ABSENT:
            self._check_root(folder)
            return
        except OSError as error:
            raise disk_failure(error, folder) from error
        # a folder sorts as its objects do, with the slash: "a-b" before "a/b"
        for name in sorted(f"{name}/" if is_folder else name for name, is_folder in entries):
            path = f"{folder}/{name}" if folder else name
            if name.endswith("/"):
                yield from self._walk(path[:-1], unfinished=unfinished)
            elif _is_unfinished(name) is unfinished and (meta := self._meta_at(path)) is not None:
                yield meta


def _is_unfinished(name: str) -> bool:
    return name.startswith(TEMPORARY_PREFIX)


@contextmanager
def _holding(descriptor: int) -> Iterator[bool]:
    try:
        yield True
    finally:
        os.close(descriptor)

"""A local folder in which one upload of a segment goes wrong: the first after a fault was armed.

Owns what is armed: files beside the warehouse, so that any process may arm a fault, and exactly one attempt of a task
meets it, wherever it runs.  A fault waits for the second partition's segment: the attempt has uploaded another before.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import BinaryIO, NoReturn

from tests.spark.faulty_daemon import EXECUTOR
from txntable.errors import StoreUnavailableError
from txntable.spark.writing import store_cache
from txntable.storage.local_folder import LocalFolder
from txntable.storage.object_store import ObjectStore, StoreSpec
from txntable.storage.object_writer import ObjectSink, open_writer

SECONDS_AT_MOST = 300
_MEETS_FAULTS = "/p00001/"


class Fault(Enum):
    """What happens to an upload."""

    FAILS_MIDWAY = "a part is written, then the store fails"
    FAILS_AFTERWARDS = "the object is there, and the answer says that the store failed"
    HANGS_AFTERWARDS = "the object is there, and no answer comes"
    LANDS_LATE = "no answer comes, and the object is there after land() only"
    KILLS_EXECUTOR = "a part is written, then the executor dies"
    KILLS_DRIVER = "a part is written, then the driver dies and all that it started"


def folder_of(url: str) -> Path:
    """Return where the faults of a warehouse are armed."""
    return Path(f"{url}-faults")


def arm(url: str, fault: Fault) -> None:
    """Let the next upload of a segment meet a fault."""
    folder = folder_of(url)
    folder.mkdir(exist_ok=True)
    (folder / fault.name).touch()


def met(url: str, fault: Fault) -> str | None:
    """Return the path of the object that met an armed fault; ``None`` while none has."""
    place = folder_of(url) / f"{fault.name}-met"
    return place.read_text() if place.exists() else None


def land(url: str) -> None:
    """Let the object appear that is late, and wait until it has."""
    (folder_of(url) / "land").write_bytes(b"")
    (folder_of(url) / "landed").read_bytes()


def install() -> None:
    """Let this process open local folders with faults."""
    store_cache.open_store = open_faulty  # type: ignore[attr-defined]


def open_faulty(spec: StoreSpec) -> ObjectStore:
    """Open a local folder with faults."""
    return FaultyFolder(spec)


class FaultyFolder(LocalFolder):
    """The folder."""

    def writer(self, path: str) -> BinaryIO:
        """Return a file for a new object, or one that will meet the armed fault."""
        file = super().writer(path)
        fault = self._take() if _MEETS_FAULTS in path else None
        if fault is None:
            return file
        folder = folder_of(self.spec.url)
        if fault is Fault.LANDS_LATE:
            for name in ("land", "landed"):
                (folder / name).unlink(missing_ok=True)
                os.mkfifo(folder / name)
        (folder / f"{fault.name}-met").write_text(path)
        return open_writer(_FaultySink(file, fault, folder))

    def create_all(self, objects: Sequence[tuple[str, bytes]]) -> None:
        """Create objects one by one, each of which may meet the armed fault."""
        for path, data in objects:
            with self.writer(path) as file:
                file.write(data)

    def _take(self) -> Fault | None:
        for fault in Fault:
            with contextlib.suppress(FileNotFoundError):
                (folder_of(self.spec.url) / fault.name).unlink()
                return fault
        return None


class _FaultySink(ObjectSink):
    def __init__(self, file: BinaryIO, fault: Fault, folder: Path) -> None:
        self._file, self._fault, self._folder = file, fault, folder

    def write(self, block: bytes) -> None:
        if self._fault in (Fault.FAILS_MIDWAY, Fault.KILLS_EXECUTOR, Fault.KILLS_DRIVER):
            self._file.write(block[: len(block) // 2])
            # Past the writer's buffer: half an object is on the disk.
            self._file._drain()  # type: ignore[attr-defined]
            self._break()
        self._file.write(block)

    def publish(self) -> None:
        if self._fault is Fault.LANDS_LATE:
            self._leave_to_another_process()
            _hang()
        self._file.close()
        if self._fault is Fault.HANGS_AFTERWARDS:
            _hang()
        raise StoreUnavailableError("the test's plan lost this answer; try again", path=str(self._folder))

    def discard(self) -> None:
        self._file.discard()  # type: ignore[attr-defined]

    def _break(self) -> NoReturn:
        executor = int(os.environ[EXECUTOR])
        if self._fault is Fault.KILLS_EXECUTOR:
            os.kill(executor, signal.SIGKILL)
            _hang()
        if self._fault is Fault.KILLS_DRIVER:
            os.killpg(os.getpgid(executor), signal.SIGKILL)
            _hang()
        raise StoreUnavailableError("the test's plan lost this request; try again", path=str(self._folder))

    def _leave_to_another_process(self) -> None:
        """Let a process that outlives this one publish the object: a request that is still on its way to the store."""
        if os.fork():
            return
        try:
            os.setsid()
            signal.alarm(SECONDS_AT_MOST)
            # Both are pipes: each side waits here for the other.
            (self._folder / "land").read_bytes()
            # It stands for the store, which does what it was sent: no fork of a client.
            self._file._made_in = os.getpid()  # type: ignore[attr-defined]
            self._file.close()
            (self._folder / "landed").write_bytes(b"")
        finally:
            os._exit(0)


def _hang() -> NoReturn:
    """Never return: whoever gave this attempt up kills it."""
    while True:
        threading.Event().wait()

"""Kills a process by SIGKILL at a chosen storage call, and with it, where asked, a whole group of processes.

A *trap* is a folder: ``trap.json`` says which point is deadly, ``reached`` has a line for each that was reached, by
whichever process.  Workers of Spark walk into it by the data source ``txntable_crashing``; others by
:func:`walk_in`.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from tests.doubles.fault_plan import Operation, Step
from tests.simulation.crash_points import crash_point
from txntable.spark.datasource.data_source import TxnTableSource
from txntable.storage.local_folder import LocalFolder
from txntable.storage.object_store import StoredObject

TRAP = "trap"
INIT = "T INIT"
AFTER_COMMIT = "the sink's commit"
_DEATH = "death"


def set_trap(folder: Path, deadly: str | None, group: int | None = None) -> None:
    """Choose what is deadly: ``before <crash point>`` or ``after <crash point>``, once a producer was initialised.

    With a process group that one dies, too.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "reached").write_text("")
    (folder / "trap.json").write_text(json.dumps({"deadly": deadly, "group": group}))


def has_sprung(folder: Path) -> bool:
    """Whether someone died since the trap was set."""
    return _DEATH in (folder / "reached").read_text().splitlines()


_trap: Path | None = None
_originals: dict[str, Any] = {}


def walk_in(folder: Path | None) -> None:
    """Let this process's writes to local folders be points; ``None``: no longer."""
    global _trap  # noqa: PLW0603  one process, one trap
    _trap = folder
    if not _originals:
        points = {"put": _put, "put_if_absent": _put_if_absent, "writer": _writer, "create_all": _create_all}
        _originals.update({name: getattr(LocalFolder, name) for name in points})
        for name, replacement in points.items():
            setattr(LocalFolder, name, replacement)


def reached(point: str) -> None:
    """Say that a point which is no storage call was reached."""
    with _met(point):
        pass


@contextmanager
def _met(point: str) -> Iterator[None]:
    if _trap is None:
        yield
        return
    trap = json.loads((_trap / "trap.json").read_text())
    if trap["deadly"] == f"before {point}":
        _die(_trap, trap["group"])
    yield
    _note(_trap, point)
    if trap["deadly"] == f"after {point}":
        _die(_trap, trap["group"])


def _note(trap: Path, point: str) -> None:
    with open(trap / "reached", "a") as file:
        file.write(point + "\n")


def _die(trap: Path, group: int | None) -> None:
    # What others left behind is repaired before a producer is initialised: a crash there is another test's.
    if INIT not in (trap / "reached").read_text().splitlines():
        return
    _note(trap, _DEATH)
    if group is not None:
        os.killpg(group, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _name(operation: Operation, path: str, data: bytes) -> str:
    point = crash_point(Step(1, operation, path), {path: StoredObject(data, 0)})
    assert point is not None
    return point


def _put(store: LocalFolder, path: str, data: bytes) -> None:
    with _met(_name(Operation.PUT, path, data)):
        _originals["put"](store, path, data)


def _put_if_absent(store: LocalFolder, path: str, data: bytes) -> Any:
    with _met(_name(Operation.PUT_IF_ABSENT, path, data)):
        return _originals["put_if_absent"](store, path, data)


def _writer(store: LocalFolder, path: str) -> Any:
    file = _originals["writer"](store, path)
    close: Callable[[], None] = file.close

    def closing() -> None:
        if file.closed:
            return
        with _met(_name(Operation.WRITE, path, b"")):
            close()

    file.close = closing
    return file


def _create_all(store: LocalFolder, objects: Sequence[tuple[str, bytes]]) -> None:
    for path, data in objects:
        with _met(_name(Operation.WRITE, path, b"")):
            _originals["create_all"](store, [(path, data)])


class CrashingSource(TxnTableSource):
    """The sink of streams, with a trap as one more option."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._trap = Path(options[TRAP])
        walk_in(self._trap)
        super().__init__({name: value for name, value in options.items() if name != TRAP})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        walk_in(self._trap)

    @classmethod
    def name(cls) -> str:
        return "txntable_crashing"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        return CrashingWriter(super().streamWriter(schema, overwrite), self._trap)


class CrashingWriter(DataSourceStreamArrowWriter):
    """A writer whose tasks walk into the trap, too."""

    def __init__(self, writer: Any, trap: Path) -> None:
        self._writer, self._trap = writer, trap

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        walk_in(self._trap)
        message: WriterCommitMessage = self._writer.write(iterator)
        return message

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._writer.commit(messages, batchId)
        reached(AFTER_COMMIT)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._writer.abort(messages, batchId)

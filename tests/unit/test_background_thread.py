"""Threads in the background end before the interpreter does, and never hold its end up.

Each in a process of its own: what a thread does while the interpreter is finalised ends the process or does not.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.simulation.site import Site
from tests.unit.cli.reading import NULLABLE, chunks, topic
from txntable.cli.record_source import Reading, RecordFormat
from txntable.log.checkpoint import decode_checkpoint, encode_checkpoint

ROOT = Path(__file__).parents[2]

READING_FOR_EVER = """
import atexit, io, sys, threading
import pyarrow as pa, pyarrow.parquet as pq

atexit.register(lambda: print([each.name for each in threading.enumerate() if each.name.startswith("txntable")]))
from txntable.runtime.background_thread import start_in_background

file = io.BytesIO()
pq.write_table(pa.table({"number": range(20_000), "text": ["text"] * 20_000}), file)
stopped, begun = threading.Event(), threading.Event()

def read():
    while not stopped.is_set():
        pq.read_table(io.BytesIO(file.getvalue()))
        begun.set()

start_in_background("txntable-reading", read, stopped.set)
begun.wait()
"""

STUCK = """
import threading
from txntable.runtime import background_thread

background_thread.PATIENCE_S = 0.0
background_thread.start_in_background("txntable-stuck", threading.Event().wait, lambda: None)
"""

HEARTBEAT = """
import atexit, threading
atexit.register(lambda: print([each.name for each in threading.enumerate() if each.name.startswith("txntable")]))
from txntable.groups.heartbeat_thread import HeartbeatThread
begun = threading.Event()
thread = HeartbeatThread(lambda: begun.set() or 0)
thread.wake()
begun.wait()
"""

LINGER = """
import atexit, logging, sys, threading
atexit.register(lambda: print([each.name for each in threading.enumerate() if each.name.startswith("txntable")]))
from txntable import Warehouse
warehouse = Warehouse.create(sys.argv[1], durability="page-cache")
warehouse.admin().create_topic("raw")
producer = warehouse.producer(linger_ms=1)
for number in range(100):
    producer.send("raw", value=b"value")
# Nobody closes it: what it sent last is lost, which it says.
logging.disable()
"""


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, cwd=ROOT
    )


@pytest.mark.parametrize("code", [READING_FOR_EVER, HEARTBEAT, LINGER], ids=["reading", "heartbeat", "linger"])
def test_thread_has_ended_before_the_interpreter_is_finalised(code: str, tmp_path: Path) -> None:
    result = run(code, str(tmp_path / "warehouse"))

    assert (result.returncode, result.stdout, result.stderr) == (0, "[]\n", "")


def test_thread_that_does_not_stop_holds_up_nothing() -> None:
    result = run(STUCK)

    assert (result.returncode, result.stderr) == (0, "")


@pytest.fixture
def lent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Arrow's threads were given: the exit waits a moment for them when there is something."""
    noted: list[str] = []
    monkeypatch.setattr("txntable.runtime.background_thread._lent_to_arrow", noted)
    return noted


@pytest.mark.parametrize(("smallest", "noted"), [(0, ["large.parquet"]), (2**20, [])], ids=["large", "small"])
def test_checkpoint_is_lent_to_arrow_when_several_threads_decode_it(
    lent: list[str], monkeypatch: pytest.MonkeyPatch, smallest: int, noted: list[str]
) -> None:
    monkeypatch.setattr("txntable.log.checkpoint._SMALL_BYTES", smallest)
    site = Site()
    state = site.create().transactions.log.ensure_fresh()

    decode_checkpoint(state.next_version - 1, encode_checkpoint(state), "large.parquet")

    assert lent == noted


def test_parquet_input_is_lent_to_arrow_which_reads_it_in_threads(lent: list[str]) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": [1], "note": ["x"]}, NULLABLE), file)

    (chunk,) = chunks(file.getvalue(), Reading(RecordFormat.PARQUET), topic(NULLABLE))

    assert (chunk.rows.num_rows, lent) == (1, ["parquet"])

"""Threads in the background end before the interpreter does, and never hold its end up.

Each in a process of its own: what a thread does while the interpreter is finalised ends the process or does not.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
import atexit, sys, threading
atexit.register(lambda: print([each.name for each in threading.enumerate() if each.name.startswith("txntable")]))
from txntable import Warehouse
warehouse = Warehouse.create(sys.argv[1], durability="page-cache")
warehouse.admin().create_topic("raw")
producer = warehouse.producer(linger_ms=1)
for number in range(100):
    producer.send("raw", value=b"value")
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

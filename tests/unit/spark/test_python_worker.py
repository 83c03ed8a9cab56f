"""What is loaded in a worker is no work for the garbage collector."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
import pyarrow.parquet
from txntable.spark.writing.python_worker import freeze_loaded
freeze_loaded()
frozen = gc.get_freeze_count()
loaded_later = [[] for _ in range(1000)]
freeze_loaded()
print(frozen > 10_000, gc.get_freeze_count() == frozen)
"""


def test_what_is_loaded_is_frozen_once_when_a_worker_settles() -> None:
    """In another process: one that tests go on in keeps its collector."""
    seen = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)

    assert seen.stdout.split() == ["True", "True"]

"""What a worker has loaded costs nothing at its next task: neither the garbage collector, nor Python's finders."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

FREEZING = """
import gc
import pyarrow.parquet
from txntable.spark.writing.python_worker import settle_worker
settle_worker()
frozen = gc.get_freeze_count()
loaded_later = [[] for _ in range(1000)]
settle_worker()
print(frozen > 10_000, gc.get_freeze_count() == frozen)
"""


def test_what_is_loaded_is_frozen_once_when_a_worker_settles() -> None:
    """In another process: one that tests go on in keeps its collector."""
    seen = subprocess.run([sys.executable, "-c", FREEZING], capture_output=True, text=True, check=True, timeout=60)

    assert seen.stdout.split() == ["True", "True"]


FINDING = """
import sys
import zipimport
sys.path[:0] = sys.argv[1:]
import pyspark.inner, ofjar.inner, users.inner
from txntable.spark.writing.python_worker import settle_worker
settle_worker()
finders = sys.path_importer_cache.items()
print(sorted({finder.archive for _, finder in finders if isinstance(finder, zipimport.zipimporter)}) == sys.argv[3:])
import pyspark.later
print(pyspark.later.__loader__.archive == sys.argv[1])
"""


def test_finders_of_sparks_archive_and_of_jars_are_forgotten_until_something_is_imported(tmp_path: Path) -> None:
    """Spark 4.1 lets each of them read its archive again before a task; the user's own may have changed."""
    archives = []
    for package, name in (("pyspark", "pyspark.zip"), ("ofjar", "delta.jar"), ("users", "users.zip")):
        archives.append(str(tmp_path / name))
        with zipfile.ZipFile(archives[-1], "w") as archive:
            for module in ("__init__", "inner", "later"):
                archive.writestr(f"{package}/{module}.py", "")

    seen = subprocess.run(
        [sys.executable, "-c", FINDING, *archives], capture_output=True, text=True, check=True, timeout=60
    )

    assert seen.stdout.split() == ["True", "True"]

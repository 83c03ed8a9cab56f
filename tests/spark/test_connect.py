"""Everything of the Spark side works over Spark Connect, whose sessions have no JVM to reach into."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS_AT_MOST = 600


def test_topics_are_written_and_read_over_spark_connect(tmp_path: Path) -> None:
    """In another process: one that has a session of the usual kind can have none of the other."""
    pytest.importorskip("grpc", reason="Spark Connect is an extra: pip install 'txntable[connect]'")

    run = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_session", str(tmp_path / "wh")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS_AT_MOST,
        check=False,
    )

    assert run.returncode == 0, run.stderr[-2000:]
    assert json.loads(run.stdout.splitlines()[-1]) == {
        "session": "pyspark.sql.connect.session",
        "read": {"snapshot": 2, "read_committed": 2, "read_uncommitted": 3},
        "bounded": True,
        "format": ["AA", "UA"],
        "sql": 3,
        "position": True,
    }

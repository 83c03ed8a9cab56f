"""Everything of the Spark side works over Spark Connect, whose sessions have no JVM to reach into."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS_AT_MOST = 600
ONLY_CLASSIC = {"_jvm", "_jdf", "_jsc", "_jsparkSession", "_sc", "rdd", "sparkContext", "SparkContext"}
# What makes a classic session for a program of ours, and ends it.
# They make classic sessions, or ask which one it is before.
CLASSIC = {
    *("session.py", "worker_python.py"),
    *("classic_session.py", "listed_segments.py"),
    *("java_expressions.py", "spark_file_job.py", "spark_session_facts.py"),
    # The mirror's command makes its session.
    "spark_kafka.py",
}
MODULES = sorted(path for folder in ("txntable", "compaction", "jobs") for path in (ROOT / folder).rglob("*.py"))


def test_topics_are_written_read_and_streamed_over_spark_connect(tmp_path: Path) -> None:
    """In another process: one that has a session of the usual kind can have none of the other."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_session", str(tmp_path)],
        cwd=ROOT,
        # The server takes a port that is free, not the one that it always takes.
        env={**os.environ, "SPARK_TESTING": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS_AT_MOST,
        check=False,
    )

    assert run.returncode == 0, run.stderr[-2000:]
    assert json.loads(run.stdout.splitlines()[-1]) == {
        "session": "pyspark.sql.connect.session",
        "refused": ["SchemaMismatchError delay", "SchemaMismatchError carrier"],
        "notes": 2,
        "sent": [["AA", 2], ["DL", 4], ["UA", 1]],
        "streams": {"all": True, "even": True, "copied": True},
        "read": {"snapshot": 4, "read_committed": 4, "read_uncommitted": 5},
        "bounded": True,
        "format": ["AA", "AA", "UA", "UA"],
        "sql": 12,
        "position": True,
        "compacted": True,
    }


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path.name not in CLASSIC], ids=lambda path: str(path.relative_to(ROOT))
)
def test_module_uses_nothing_that_only_classic_sessions_have(path: Path) -> None:
    tree = ast.parse(path.read_text())

    named = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    named |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}

    assert named & ONLY_CLASSIC == set()

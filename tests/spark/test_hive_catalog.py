"""Topics by name in a Hive metastore, through Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS_AT_MOST = 900
NAMES = ("credits", "debits", "lost", "txntable_transactions")
REFUSED = {"taken": "refuse?"}


def test_topics_are_tables_of_a_hive_metastore_and_stay_what_the_warehouse_has(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.spark.hive_session", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=SECONDS_AT_MOST,
        check=False,
    )

    assert run.returncode == 0, run.stderr[-2000:]
    assert json.loads(run.stdout.splitlines()[-1]) == {
        "dry": [1, dict.fromkeys(NAMES, "create?") | REFUSED],
        "first": [1, dict.fromkeys(NAMES, "create") | REFUSED],
        "again": [1, dict.fromkeys(NAMES, "keep?") | REFUSED],
        "taken": ["n"],
        "sum": -7,
        "at_position": [-12, 12],
        "column": True,
        "changed": [
            1,
            {"credits": "update", "debits": "drop", "lost": "drop", "txntable_transactions": "drop"} | REFUSED,
        ],
        "after": [1, {"credits": "keep?"} | REFUSED],
        "tables": ["credits", "taken", "txntable_snapshot"],
        "files_stay": True,
        "new_is_empty": True,
        "no_database": "INVALID_REQUEST",
    }

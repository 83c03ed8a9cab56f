"""A Hive metastore in a Derby database, and a catalog that follows a warehouse in it; prints what was seen, as JSON.

    python -m tests.spark.hive_session FOLDER

In a process of its own: whether a session has a metastore is said when its JVM starts.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from typer.testing import CliRunner

from tests.simulation.site import TWO_COLUMNS
from txntable.catalog.table import TRANSACTIONS
from txntable.format.layout import public_root, segments_root
from txntable.jobs.catalog import application
from txntable.spark.session import build_session
from txntable.warehouse.warehouse import Warehouse

POSITION = """
    SELECT coalesce(min(_decision) FILTER (WHERE _state IN ('PREPARE_COMMIT', 'PREPARE_ABORT')) - 1, max(_position))
      AS position
    FROM lake.{table}
"""


def _session(folder: Path) -> Any:
    derby = f"jdbc:derby:;databaseName={folder / 'metastore'};create=true"
    return build_session(
        "hive",
        master="local[1]",
        settings={
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.javax.jdo.option.ConnectionURL": derby,
            "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
            "spark.driver.memory": "1g",
            "spark.sql.warehouse.dir": str(folder / "managed"),
        },
    )


class Stage:
    """A warehouse and a metastore."""

    def __init__(self, folder: Path) -> None:
        self.warehouse = Warehouse.create(str(folder / "wh"), durability="page-cache")
        self.folder = folder
        self.spark = _session(folder)
        self.spark.sql("CREATE DATABASE lake")

    def sync(self, *arguments: str) -> tuple[int, dict[str, str]]:
        """Call the command; return its exit code, and by table what it did, or would do (with a question mark)."""
        where = ["--warehouse", self.warehouse.url, "--output", "json", "--database", "lake"]
        result = CliRunner().invoke(application, ["sync", "--hive", *where, *arguments])
        assert result.stdout, (result.stderr, result.exception)
        return result.exit_code, {
            one["table"]: one["action"] + ("" if one["executed"] else "?") for one in json.loads(result.stdout)
        }

    def send(self, amount: int) -> None:
        """Let a transaction move an amount between two topics."""
        with self.warehouse.producer(transactional_id="bank") as producer:
            producer.init_transactions()
            with producer.transaction() as transaction:
                transaction.send("debits", row={"account": "ann", "amount": -amount})
                transaction.send("credits", row={"account": "bob", "amount": amount})

    def first(self, query: str) -> Any:
        """Return the one value that a query finds."""
        return self.spark.sql(query).first()[0]


def _ask_what_is_new(stage: Stage, seen: dict[str, Any]) -> None:
    # Fresh by themselves: what a query reads is in the Delta log, and the view's number in T's.
    stage.spark.sql(f"CREATE VIEW lake.txntable_snapshot AS {POSITION.format(table=TRANSACTIONS)}")
    stage.send(5)
    position = stage.first("SELECT position FROM lake.txntable_snapshot")
    seen["at_position"] = [
        stage.first(f"SELECT sum(amount) FROM lake.{topic} WHERE _commit <= {position}")
        for topic in ("debits", "credits")
    ]
    stage.warehouse.admin().add_columns("debits", [pa.field("fee", pa.int64())])
    seen["column"] = "fee" in stage.spark.sql("SELECT * FROM lake.debits").columns


def _follow_deletions(stage: Stage, seen: dict[str, Any]) -> None:
    admin = stage.warehouse.admin()
    admin.delete_topic("debits")
    admin.delete_topic("credits")
    admin.create_topic("credits", schema=TWO_COLUMNS)
    admin.delete_topic("lost")
    shutil.rmtree(stage.folder / "wh" / public_root("lost"))
    seen["changed"] = stage.sync()
    seen["after"] = stage.sync()
    seen["tables"] = sorted(row["tableName"] for row in stage.spark.sql("SHOW TABLES IN lake").collect())
    seen["files_stay"] = (stage.folder / "wh" / segments_root("debits")).is_dir()
    seen["new_is_empty"] = stage.spark.sql("SELECT * FROM lake.credits").count() == 0
    seen["no_database"] = (
        CliRunner()
        .invoke(application, ["sync", "--hive", "--warehouse", stage.warehouse.url, "--database", "none"])
        .stderr.split(" ")[1]
    )


def main() -> None:
    stage = Stage(Path(sys.argv[1]))
    admin, seen = stage.warehouse.admin(), dict[str, Any]()
    for topic in ("debits", "credits", "taken", "lost"):
        admin.create_topic(topic, schema=TWO_COLUMNS)
    stage.spark.sql("CREATE TABLE lake.taken (n INT) USING parquet")
    stage.send(7)

    seen["dry"] = stage.sync("--dry-run", "--transactions")
    seen["first"] = stage.sync("--transactions")
    seen["again"] = stage.sync("--transactions")
    seen["taken"] = stage.spark.sql("SELECT * FROM lake.taken").columns
    seen["sum"] = stage.first("SELECT sum(amount) FROM lake.debits")
    _ask_what_is_new(stage, seen)
    _follow_deletions(stage, seen)
    sys.stdout.write(f"\n{json.dumps(seen)}\n")
    stage.spark.stop()


if __name__ == "__main__":
    main()

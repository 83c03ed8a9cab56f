"""Plain delta-spark on a public table: the committed records, time travel, change feed, catalog tables, streams."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.varied_topic import COLUMNS, HISTORIES, TOPIC, VariedTopic, canonical, make
from txntable.format.layout import commit_path, public_root

OFFSET = "_base_offset + _offset_delta AS _offset"
DAYS_AGO = 20


def rows(frame: Any) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.selectExpr("*", OFFSET).collect()]


def utc(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Spark hands times with a zone out in the session's, without saying so."""
    for row in found:
        row["at"] = row["at"] and row["at"].astimezone(dt.UTC)
    return found


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, VariedTopic]:
    return {history: make(tmp_path_factory.mktemp("histories"), history) for history in HISTORIES}


@pytest.fixture(scope="module")
def topic(histories: dict[str, VariedTopic]) -> VariedTopic:
    return histories["from version 0"]


@pytest.mark.parametrize("history", HISTORIES)
def test_delta_spark_sees_the_committed_records_and_nothing_else(
    spark: Any, histories: dict[str, VariedTopic], history: str
) -> None:
    topic = histories[history]

    found = rows(spark.read.format("delta").load(topic.url))

    assert canonical(utc(found), COLUMNS) == canonical(topic.expected)


# -- time travel ----------------------------------------------------------------------------


def version_of(topic: VariedTopic, position: int) -> int:
    """The first version that shows a decision, by the log itself."""
    for entry in sorted((Path(topic.url) / "_delta_log").glob("*.json")):
        if f'"_commit":"{position}"' in entry.read_text():
            return int(entry.stem)
    raise AssertionError(position)


def time_of(topic: VariedTopic, version: int) -> dt.datetime:
    """The in-commit time of a version."""
    first = Path(topic.warehouse.url, commit_path(public_root(TOPIC), version)).read_text().splitlines()[0]
    return dt.datetime.fromtimestamp(json.loads(first)["commitInfo"]["inCommitTimestamp"] / 1000, dt.UTC)


def seen_at(topic: VariedTopic, position: int) -> list[dict[str, Any]]:
    return canonical([row for row in topic.expected if 0 < row["_commit"] <= position])


def test_earlier_versions_and_times_show_what_was_published_by_then(spark: Any, topic: VariedTopic) -> None:
    for position in sorted({row["_commit"] for row in topic.expected} - {0}):
        version = version_of(topic, position)
        reader = spark.read.format("delta")
        by_version = reader.option("versionAsOf", version).load(topic.url)
        text = time_of(topic, version).isoformat(timespec="milliseconds")
        by_time = spark.read.format("delta").option("timestampAsOf", text).load(topic.url)

        assert canonical(utc(rows(by_version)), COLUMNS) == seen_at(topic, position)
        assert canonical(utc(rows(by_time)), COLUMNS) == seen_at(topic, position)


@pytest.fixture
def old_topic(tmp_path: Path) -> VariedTopic:
    """A topic whose log says that all of it happened weeks ago, and whose files are as old."""
    topic = make(tmp_path, "from version 0")
    back_ms = DAYS_AGO * 86_400_000
    for path in (Path(topic.url) / "_delta_log").glob("*.json"):
        first, *others = path.read_text().splitlines(keepends=True)
        entry = json.loads(first)
        for name in ("inCommitTimestamp", "timestamp"):
            entry["commitInfo"][name] -= back_ms
        path.write_text(json.dumps(entry) + "\n" + "".join(others))
        old = path.stat().st_mtime - back_ms / 1000
        os.utime(path, (old, old))
    return topic


def test_versions_of_weeks_ago_are_travelled_to_by_version_and_by_time(spark: Any, old_topic: VariedTopic) -> None:
    position = min({row["_commit"] for row in old_topic.expected} - {0})
    version = version_of(old_topic, position)
    moment = time_of(old_topic, version)
    sql = f"SELECT count(*) FROM delta.`{old_topic.url}`"

    assert (dt.datetime.fromtimestamp(os.path.getmtime(old_topic.url), dt.UTC) - moment).days >= DAYS_AGO - 1
    count = len(seen_at(old_topic, position))
    assert spark.sql(f"{sql} VERSION AS OF {version}").first()[0] == count
    assert spark.sql(f"{sql} TIMESTAMP AS OF '{moment.isoformat(timespec='milliseconds')}'").first()[0] == count


# -- the catalog ----------------------------------------------------------------------------


@pytest.fixture
def table(spark: Any, topic: VariedTopic) -> Iterator[str]:
    spark.sql(f"CREATE TABLE public_varied USING delta LOCATION '{topic.url}'")
    yield "public_varied"
    spark.sql("DROP TABLE public_varied")


def test_catalog_table_takes_sql(spark: Any, topic: VariedTopic, table: str) -> None:
    found = spark.sql(f"SELECT _commit, sum(amount) AS amount FROM {table} GROUP BY _commit").collect()

    wanted: dict[int, int] = {}
    for row in topic.expected:
        wanted[row["_commit"]] = wanted.get(row["_commit"], 0) + row["amount"]
    assert {row["_commit"]: row["amount"] for row in found} == wanted


def test_catalog_table_tells_its_changes_by_version(spark: Any, topic: VariedTopic, table: str) -> None:
    feed = spark.sql(f"SELECT * FROM table_changes('{table}', 0)")
    first = version_of(topic, min({row["_commit"] for row in topic.expected} - {0}))
    later = spark.sql(f"SELECT * FROM table_changes('{table}', {first + 1})")

    assert {row["_change_type"] for row in feed.collect()} == {"insert"}
    assert canonical(utc(rows(feed)), COLUMNS) == canonical(topic.expected)
    assert later.count() == len(topic.expected) - len(seen_at(topic, min({r["_commit"] for r in topic.expected} - {0})))


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO {table} SELECT * FROM {table}",
        "DELETE FROM {table}",
        "UPDATE {table} SET amount = 0",
        "ALTER TABLE {table} ADD COLUMNS (more INT)",
        "VACUUM {table}",
    ],
)
def test_changes_through_the_catalog_are_refused(spark: Any, topic: VariedTopic, table: str, change: str) -> None:
    before = topic.warehouse.topic_log(TOPIC).public.refresh().version

    with pytest.raises(Exception, match=r"DELTA_UNSUPPORTED_FEATURES_FOR_WRITE|txntable\.exclusiveWriter"):
        spark.sql(change.format(table=table)).collect()

    assert topic.warehouse.topic_log(TOPIC).public.refresh().version == before


# -- streams --------------------------------------------------------------------------------


def test_stream_sees_each_committed_record_once_across_commits_and_restarts(spark: Any, tmp_path: Path) -> None:
    topic = make(tmp_path, "from version 0")
    seen: list[dict[str, Any]] = []

    def drain() -> None:
        query = (
            spark.readStream.format("delta")
            .load(topic.url)
            .writeStream.foreachBatch(lambda frame, _: seen.extend(rows(frame)))
            .option("checkpointLocation", str(tmp_path / "stream"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    drain()
    assert canonical(utc(seen), COLUMNS) == canonical(topic.expected)
    topic.write()
    drain()

    assert canonical(utc(seen), COLUMNS) == canonical(topic.expected)
    drain()
    assert len(seen) == len(topic.expected), "nothing new, nothing twice"

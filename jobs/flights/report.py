"""What the demo shows at its end, and whether it is right: everything is read from the warehouse.

Owns the questions: to the transaction log, to both isolation levels, and to the public table as
any Delta reader sees it, with plain Spark SQL.  Must not know what the pipelines believe they did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from txntable.cli.output import Rows
from txntable.format.isolation import IsolationLevel
from txntable.format.layout import public_root, segments_root
from txntable.jobs.flights import loading as flights_loading
from txntable.jobs.flights import route_delays
from txntable.jobs.flights.source import MISSING, SCHEMA, ColumnDigest, SourceDigest
from txntable.jobs.flights.story import Story
from txntable.spark.scan.reader import spark_url
from txntable.warehouse.warehouse import Warehouse

HOW_THE_FILE_WRITES_TIMES = "yyyy-MM-dd'T'HH:mm:ss'Z'"


class FlightsReport:
    """Asks the warehouse.

    Parameters
    ----------
    warehouse : Warehouse
        What the pipelines have written.
    spark : SparkSession
        With Delta; its time zone is UTC, as the source's times are.
    """

    def __init__(self, warehouse: Warehouse, spark: SparkSession) -> None:
        self._warehouse, self._spark = warehouse, spark

    def transactional_ids(self) -> Rows:
        """Return the state of every transactional id."""
        headers = {
            "transactional_id": "TransactionalId",
            "producer_id": "ProducerId",
            "producer_epoch": "ProducerEpoch",
            "transaction_state": "TransactionState",
        }
        rows = [
            (row.transactional_id, row.producer_id, row.producer_epoch, row.state.value)
            for row in self._warehouse.admin().list_transactions()
        ]
        return Rows(headers, rows, "Transactional ids")

    def transactions(self, topics: Sequence[str]) -> Rows:
        """Return how the transactions of topics ended, as the markers in their partition logs say."""
        headers = {"topic": "Topic", "committed": "Committed", "aborted": "Aborted"}
        rows = []
        for topic in topics:
            counted = self._counted_markers(topic)
            rows.append((topic, counted.get("COMMIT", 0), counted.get("ABORT", 0)))
        return Rows(headers, rows, "Transactions by outcome", counts=("committed", "aborted"))

    def committed(self, topic: str) -> int:
        """Return how many transactions of a topic have committed."""
        return self._counted_markers(topic).get("COMMIT", 0)

    def _counted_markers(self, topic: str) -> dict[str, int]:
        table = self._delta(segments_root(topic))
        found = self._spark.sql(
            f"SELECT _control, count(*) AS transactions FROM {table} "
            "WHERE _control IN ('COMMIT', 'ABORT') GROUP BY _control"
        )
        return {row["_control"]: row["transactions"] for row in found.collect()}

    def records(self, topics: Sequence[str]) -> Rows:
        """Return how many records each topic has at each isolation level."""
        levels = [level.value for level in IsolationLevel]
        headers = {"topic": "Topic", **{level: level for level in levels}, "aborted": "of them aborted"}
        rows = []
        for topic in topics:
            counts = {
                level: self._warehouse.read(self._spark, topic, isolation_level=level).count() for level in levels
            }
            aborted = counts[IsolationLevel.READ_UNCOMMITTED.value] - counts[IsolationLevel.SNAPSHOT.value]
            rows.append((topic, *counts.values(), aborted))
        return Rows(headers, rows, "Records by isolation level", counts=(*levels, "aborted"))

    def public_table(self, topic: str) -> str:
        """Return the name under which plain Spark SQL reads a topic."""
        return self._delta(public_root(topic))

    def _delta(self, root: str) -> str:
        url = spark_url(f"{self._warehouse.url}/{root}").replace("`", "``")
        return f"delta.`{url}`"

    def digest_flights(self, topic: str) -> SourceDigest:
        """Return the checksums of the public table, each value turned back into the source's text."""
        texts = [_source_text(name) for name in SCHEMA.names]
        columns = [f"count(`{name}`), sum(crc32({text}))" for name, text in zip(SCHEMA.names, texts, strict=True)]
        line = f"concat_ws(',', {', '.join(texts)})"
        query = f"SELECT count(*), sum(crc32({line})), {', '.join(columns)} FROM {self.public_table(topic)}"
        rows, lines, *values = (0 if value is None else value for value in self._spark.sql(query).collect()[0])
        pairs = zip(values[::2], values[1::2], strict=True)
        return SourceDigest(rows, lines, dict(zip(SCHEMA.names, (ColumnDigest(*pair) for pair in pairs), strict=True)))

    def compare_delays(self) -> tuple[int, int]:
        """Return how many flights the delays speak of, and in how many rows they differ from those of all flights."""
        delays = route_delays.current_delays(self._warehouse, self._spark)
        expected = route_delays.delays_of(self._warehouse.read(self._spark, flights_loading.TOPIC))
        # A row that differs is there twice, once of each side.
        rows = delays.select(*route_delays.SCHEMA.names, F.lit(1).alias("side")).unionByName(
            expected.select(*route_delays.SCHEMA.names, F.lit(-1).alias("side"))
        )
        different = rows.groupBy(*route_delays.SCHEMA.names).agg(F.sum("side").alias("sides")).where("sides <> 0")
        return delays.agg(F.coalesce(F.sum("flights"), F.lit(0))).collect()[0][0], different.count()

    def versions(self, topics: Sequence[str]) -> dict[str, tuple[int, int | None]]:
        """Return the versions of both tables of topics: what changes when anything of them changes."""
        described = self._warehouse.admin().describe_topics(topics)
        return {topic.settings.name: (topic.version, topic.public_version) for topic in described}


def _source_text(name: str) -> str:
    column = f"`{name}`"
    is_time = name == "time_hour"
    text = f'date_format({column}, "{HOW_THE_FILE_WRITES_TIMES}")' if is_time else f"CAST({column} AS STRING)"
    return f"coalesce({text}, '{MISSING}')"


def columns_table(source: SourceDigest, table: SourceDigest, name: str) -> Rows:
    """Return both sides of each column's checksum.

    Parameters
    ----------
    source, table : SourceDigest
        Of the file, and of the public table.
    name : str
        The public table, as SQL names it.
    """
    headers = {
        "column": "Column",
        "values": "Values",
        "source_checksum": "Checksum of the source file",
        "table_checksum": "Checksum of the table",
        "same": "Same",
    }
    rows: list[tuple[object, ...]] = [
        (
            "every row",
            table.rows,
            shown_checksum(source.lines),
            shown_checksum(table.lines),
            source.lines == table.lines,
        )
    ]
    for column, digest in source.columns.items():
        found = table.columns[column]
        checksums = shown_checksum(digest.checksum), shown_checksum(found.checksum)
        rows.append((column, found.values, *checksums, digest == found))
    return Rows(headers, rows, f"What plain Spark SQL sees in {name}", counts=("values",))


def shown_checksum(checksum: int) -> str:
    """Return a checksum as people compare it."""
    return f"{checksum:013x}"


def checks_table(story: Story) -> Rows:
    """Return what was checked."""
    headers = {"check": "Check", "expected": "Expected", "found": "Found", "holds": "Holds"}
    rows = [(check.about, check.expected, check.found, check.holds) for check in story.checks]
    return Rows(headers, rows, "Checks", counts=("expected", "found"))


def events_table(story: Story) -> Rows:
    """Return what happened."""
    headers = {"who": "Who", "batch": "Batch", "what": "What happened", "outcome": "Outcome"}
    rows = [(event.who, event.batch, event.what, event.outcome) for event in story.events]
    return Rows(headers, rows, "What happened")


def check_flights(story: Story, source: SourceDigest, table: SourceDigest) -> None:
    """Compare the public table with the source."""
    different = [name for name, digest in source.columns.items() if table.columns[name] != digest]
    story.check("rows of the public table, by the source file's own count", source.rows, table.rows)
    story.check("checksum of all rows", shown_checksum(source.lines), shown_checksum(table.lines))
    story.check("columns with another checksum than the source's", "none", ", ".join(different) or "none")


def column_of(rows: Rows, column: str) -> Mapping[object, object]:
    """Return one column of a table, by the table's first column."""
    index = list(rows.headers).index(column)
    return {row[0]: row[index] for row in rows.rows}

"""Topics as tables of a Hive metastore, through Spark SQL.

Owns the statements, and the session that they run in: one whose catalog is Spark's own and not Delta's, which would
look for a table's properties in its Delta log, where marks of a catalog have no place and nobody else may write.  The
table is the same to sessions with Delta's catalog: they read columns and files from the log.
Decides nothing: :mod:`txntable.catalog.plan` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from txntable.catalog.catalog import Catalog
from txntable.catalog.column_types import spark_column
from txntable.catalog.metastore_text import table_in_text
from txntable.catalog.table import FoundTable, WantedTable, engine_root, plain_location
from txntable.errors import InvalidConfigError, InvalidRequestError
from txntable.jobs.session import spark_session
from txntable.storage.object_store import StoreSpec
from txntable.storage.written import Written

METASTORE = "spark.hadoop.hive.metastore.uris"
_OF_START = {"spark.sql.catalogImplementation": "hive"}
_OF_SESSION = {
    "spark.sql.catalog.spark_catalog": "builtin",
    # Delta would refuse a session without its catalog.
    "spark.databricks.delta.requiredSparkConfsCheck.enabled": "false",
}
_EXISTS = frozenset({"TABLE_OR_VIEW_ALREADY_EXISTS", "TABLE_ALREADY_EXISTS"})
_ABSENT = frozenset({"TABLE_OR_VIEW_NOT_FOUND"})


def start_hive(sessions: ExitStack, store: StoreSpec, database: str, metastore: str | None) -> HiveCatalog:
    """Start Spark, and return a database of its Hive metastore.

    Parameters
    ----------
    sessions : ExitStack
        Ends the session.
    store : StoreSpec
        The warehouse's.
    database : str
        The database's name.
    metastore : str, optional
        ``thrift://host:9083``; default: what Spark's configuration says.

    Raises
    ------
    InvalidConfigError
        The session that runs in this process has no Hive metastore.
    MissingDependencyError
        Java or Spark is missing, or does not start.
    """
    wanted = _OF_START if metastore is None else {**_OF_START, METASTORE: metastore}
    spark = sessions.enter_context(spark_session("txntable catalog", store, wanted))
    for name, value in _OF_SESSION.items():
        spark.conf.set(name, value)
    if spark.conf.get("spark.sql.catalogImplementation") != "hive":
        raise InvalidConfigError(
            "the session has no hive metastore; start it with spark.sql.catalogImplementation=hive"
        )
    return HiveCatalog(spark, database)


class HiveCatalog(Catalog):
    """A database of the metastore.

    Parameters
    ----------
    spark : SparkSession
        Of :func:`start_hive`.
    database : str
        The database's name.
    """

    def __init__(self, spark: SparkSession, database: str) -> None:
        self._spark, self._database = spark, database

    def spell(self, column: pa.Field) -> tuple[str, str]:
        """Return name and type in Spark SQL's words."""
        return spark_column(column)

    def root(self, url: str) -> str:
        """Return the warehouse's URL."""
        return engine_root(url, s3="s3a")

    def tables(self) -> Sequence[FoundTable]:
        """Return the database's tables and views."""
        rows = self._asked(f"SHOW TABLE EXTENDED IN {_quoted(self._database)} LIKE '*'")
        return [table_in_text(row["tableName"], row["information"]) for row in rows if not row["isTemporary"]]

    def table(self, name: str) -> FoundTable | None:
        """Return a table as it is now."""
        rows = self._asked(f"SHOW TABLE EXTENDED IN {_quoted(self._database)} LIKE '{name}'")
        found = [row for row in rows if not row["isTemporary"]]
        return table_in_text(name, found[0]["information"]) if found else None

    def create(self, wanted: WantedTable) -> Written:
        """Create a table."""
        return self._written(
            f"CREATE TABLE {self._full(wanted.name)} USING delta LOCATION {_text(wanted.location)} "
            f"TBLPROPERTIES ({_properties(wanted.marks.properties())})"
        )

    def update(self, wanted: WantedTable, found: FoundTable) -> Written:
        """Give a table new marks; where it is something else, or elsewhere, it is dropped and made again."""
        # By location and marks together it is known whose a table is, and two statements are never one: killed in
        # between, there is no table, which the next run makes.
        if found.is_delta and plain_location(found.location) == plain_location(wanted.location):
            marks = _properties(wanted.marks.properties())
            return self._written(f"ALTER TABLE {self._full(wanted.name)} SET TBLPROPERTIES ({marks})")
        self.drop(found)
        return self.create(wanted)

    def drop(self, found: FoundTable) -> Written:
        """Drop a table; it is external, so its files stay."""
        return self._written(f"DROP TABLE IF EXISTS {self._full(found.name)}")

    def _full(self, name: str) -> str:
        return f"{_quoted(self._database)}.{_quoted(name)}"

    def _written(self, statement: str) -> Written:
        try:
            self._spark.sql(statement)
        except PySparkException as error:
            if error.getCondition() in _EXISTS | _ABSENT:
                return Written.OVERTAKEN
            raise _refusal(error) from error
        return Written.DONE

    def _asked(self, statement: str) -> list[Row]:
        try:
            return self._spark.sql(statement).collect()
        except PySparkException as error:
            if error.getCondition() in {"SCHEMA_NOT_FOUND", "NO_SUCH_DATABASE"}:
                raise InvalidRequestError(
                    "the metastore has no such database; create it, or correct its name", database=self._database
                ) from error
            raise _refusal(error) from error


def _refusal(error: PySparkException) -> InvalidRequestError:
    return InvalidRequestError("the metastore did not do it; see the reason", reason=str(error).splitlines()[0])


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _properties(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{_text(name)} = {_text(value)}" for name, value in properties.items())

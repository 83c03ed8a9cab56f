"""The id of a streaming query, which its checkpoint keeps: how it is found where a micro-batch is written.

Owns that Spark tells it to the tasks of a query, to nobody else; and where its checkpoint has it.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from txntable.errors import InvalidRequestError, TxnTableError
from txntable.spark.scan.source_options import Option
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROPERTY = "sql.streaming.queryId"
_METADATA = "metadata"
_FOUND = pa.schema([("id", pa.string())])


def task_query_id() -> str | None:
    """Return the id of the query that this task belongs to; ``None``: of none, or outside of a task."""
    # Imported where it runs, on executors: a client that has no streams does without Spark's start-up time.
    context = importlib.import_module("pyspark").TaskContext.get()
    found: str | None = None if context is None else context.getLocalProperty(_PROPERTY)
    return found


def running_query_id(spark: SparkSession) -> str | None:
    """Return the id of the query whose micro-batch is handed to ``foreachBatch`` now, its first one.

    Parameters
    ----------
    spark : SparkSession
        That of the micro-batch's DataFrame.

    Returns
    -------
    str or None
        ``None``: Spark does not say.  A classic session says it to a task; with Spark Connect it is that of the only
        query that has not finished a batch yet.
    """
    row = spark.range(1).mapInArrow(_ask, "id string").first()
    found: str | None = None if row is None else row["id"]
    if found is not None:
        return found
    beginning = [query.id for query in spark.streams.active if query.lastProgress is None]
    return beginning[0] if len(beginning) == 1 else None


def session_id(spark: SparkSession) -> str:
    """Return which session it is: each run of a query has one of its own, a copy of the one that it was started in.

    Parameters
    ----------
    spark : SparkSession
        That of a micro-batch's DataFrame; each has a new object of Python for the same session.
    """
    java: Any = getattr(spark, "_jsparkSession", None)
    # With Spark Connect each query has a process of its own.
    return "" if java is None else str(java.sessionUUID())


def _ask(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([task_query_id()] * batch.num_rows, pa.string())], schema=_FOUND)


def checkpoint_query_id(location: str | None, store: StoreSpec) -> str:
    """Return the id that a checkpoint keeps.

    Parameters
    ----------
    location : str or None
        The checkpoint's folder, as Spark was given it.
    store : StoreSpec
        The warehouse's: a checkpoint in an object store is read with the same options.

    Raises
    ------
    InvalidRequestError
        It cannot be found: name the stream by the option ``transactionalId``.
    """
    unknown = f"the stream's checkpoint cannot be read for its id; give the option {Option.TRANSACTIONAL_ID}"
    if location is None:
        raise InvalidRequestError(
            f"{unknown}, or {Option.CHECKPOINT_LOCATION} as an option of the query: settings of the session do not"
            " reach a sink"
        )
    options = store.options if "://" in location and not location.startswith("file:") else {}
    try:
        found = open_store(StoreSpec(location, options)).get(_METADATA)
    except TxnTableError as error:
        raise InvalidRequestError(unknown, checkpoint=location) from error
    if found is None:
        raise InvalidRequestError(unknown, checkpoint=location, missing=_METADATA)
    try:
        return str(json.loads(found.data)["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidRequestError(unknown, checkpoint=location, unreadable=_METADATA) from error

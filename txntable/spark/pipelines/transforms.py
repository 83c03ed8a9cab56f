"""What a pipeline does with its records: a function of DataFrames, or SQL over views named as the topics.

Owns how either becomes the one shape that a pipeline calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from txntable.errors import InvalidRequestError
from txntable.spark.classic_session import statement_kinds
from txntable.spark.pipelines.pipeline import Frames, Transform
from txntable.spark.pipelines.pipeline_config import PipelineConfig
from txntable.spark.writing.distribution import quoted

_CHANGES: Mapping[str, str] = {
    "CompoundBody": "BEGIN",
    "DeleteFromTable": "DELETE",
    "ExecuteImmediateQuery": "EXECUTE IMMEDIATE",
    "InsertIntoStatement": "INSERT",
    "MergeIntoTable": "MERGE",
    "OverwriteByExpression": "INSERT",
    "TruncateTable": "TRUNCATE",
    "UnresolvedExecuteImmediate": "EXECUTE IMMEDIATE",
    "UpdateTable": "UPDATE",
}
"""Node of Spark's parser -> how people call it."""
_MAKES = re.compile(
    r"Create|Replace|Drop|Rename|Alter|Add|LoadData|InsertIntoDir|Optimize|Vacuum|Restore|Clone|Set(Table|View|Namespace)"
)
"""How the names begin of nodes that make, change or drop what there is beside topics."""


def by_function(function: Callable[..., object], config: PipelineConfig) -> Transform:
    """Return the transform that calls a function with one DataFrame for each source, in their order, then the state's.

    Parameters
    ----------
    function : callable
        Returns the records of the pipeline's only output as a DataFrame, or {topic: DataFrame}.
    config : PipelineConfig
        Says which topics these are.
    """
    inputs = config.sources if config.state is None else (*config.sources, config.state)

    def transform(frames: Frames) -> Frames:
        return _by_topic(function(*(frames[topic] for topic in inputs)), config.outputs)

    return transform


def by_sql(queries: Mapping[str, str]) -> Transform:
    """Return the transform that asks one query for each output.

    Parameters
    ----------
    queries : Mapping of str to str
        Output -> SQL; each source and the state are temporary views of the same names.
    """

    def transform(frames: Frames) -> Frames:
        session = next(iter(frames.values())).sparkSession
        try:
            for topic, records in frames.items():
                records.createOrReplaceTempView(quoted(topic))
            for query in queries.values():
                check_asks(session, query)
            return {topic: session.sql(query) for topic, query in queries.items()}
        except PySparkException as error:
            raise query_refusal("the query of a pipeline", error) from error

    return transform


def _by_topic(found: object, outputs: Sequence[str]) -> Frames:
    if isinstance(found, DataFrame) and len(outputs) == 1:
        return {outputs[0]: found}
    if isinstance(found, Mapping) and all(isinstance(records, DataFrame) for records in found.values()):
        return found
    raise InvalidRequestError(
        "the function of a pipeline returns {topic: DataFrame}, or, where there is one output, its DataFrame",
        returned=type(found).__name__,
        outputs=",".join(outputs),
    )


def query_refusal(query: str, error: PySparkException) -> InvalidRequestError:
    """Return the error of a query that Spark refuses: the first line of what Spark says, and its condition."""
    text = (error.getMessage() or str(error)).strip()
    reason = text.splitlines()[0] if text else type(error).__name__
    return InvalidRequestError(f"spark refuses {query}: {reason}", condition=error.getCondition())


def check_asks(spark: SparkSession, query: str) -> tuple[str, ...]:
    """Refuse what is no query: of a DELETE or UPDATE of a view on a topic's table, Delta's analysis has no end.

    Returns
    -------
    tuple of str
        The names of the statement's nodes, as Spark's parser reads it.  (A Connect session has no parser to ask.)

    Raises
    ------
    InvalidRequestError
        The statement changes topics, or makes or drops something: the message says what to do.
    """
    kinds = tuple(statement_kinds(spark, query))
    for kind in kinds:
        if (statement := _CHANGES.get(kind)) is not None:
            raise InvalidRequestError(
                "topics are asked here; a producer's transaction, `txntable produce` and pipelines write records, and "
                "`erase`, `topics delete-records` and retention take them away",
                statement=statement,
            )
        if _MAKES.match(kind) is not None:
            raise InvalidRequestError(
                "a query is asked here, whose session ends with it: nothing is created, altered or dropped; ask with a "
                "WITH clause, or in a session of your own",
                statement=kind,
            )
    return kinds

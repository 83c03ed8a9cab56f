"""The schema of a topic that is to take a DataFrame's rows.

Owns that its columns, and all in them, are nullable, as Delta makes a table of a DataFrame: literals and built arrays
are NOT NULL in Spark by accident, and a field of a topic never loses it.  Must not know of topics that are there.
"""

from __future__ import annotations

import json

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame

from txntable.errors import SchemaMismatchError
from txntable.format.delta_types import from_delta_type
from txntable.format.schema import all_nullable, check_topic_schema


def topic_schema(dataframe: DataFrame) -> pa.Schema:
    """Return the columns of a DataFrame as the schema of a topic; reads no rows.

    Parameters
    ----------
    dataframe : pyspark.sql.DataFrame
        What is to be written, without ``_timestamp``.

    Returns
    -------
    pyarrow.Schema
        For ``create_topic(schema=…)``.  Where a column is required, replace its field by one that is not nullable.

    Raises
    ------
    SchemaMismatchError
        A name or a type cannot be stored: rename the column, or cast it to what the message names.
    """
    # A stream is not read but by a query.
    empty = dataframe.sparkSession.createDataFrame([], dataframe.schema)
    try:
        found = all_nullable(check_topic_schema(empty.toArrow().schema))
    except PySparkTypeError as error:
        raise SchemaMismatchError(
            "a topic cannot have a column of a type that Arrow has not; convert it to another one",
            found=dataframe.schema.simpleString(),
        ) from error
    # Arrow shows some of Spark's types, such as variant, as others, of which Spark makes nulls when they are written.
    for column in json.loads(dataframe.schema.json())["fields"]:
        try:
            from_delta_type(column["type"])
        except (ValueError, KeyError, TypeError) as error:
            raise SchemaMismatchError(
                "a topic cannot have a column of this type; convert it to another one (a variant to text, by to_json)",
                column=column["name"],
                found=dataframe.schema[column["name"]].dataType.simpleString(),
            ) from error
    return found

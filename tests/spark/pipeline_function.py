"""What the killed pipeline of a test computes: a copy, and a sum for each key."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere


def copy_and_add_up(trips: DataFrame, totals: DataFrame) -> dict[str, DataFrame]:
    """Return the trips themselves, and the miles of each carrier that has flown."""
    new = totals_of(trips).withColumnRenamed("miles", "new")
    changed = new.join(totals, on="carrier", how="left")
    return {
        # Spark reads in any order: who wants that of the offsets says so.
        "copies": trips.orderBy("_partition", "_offset"),
        "totals": changed.select("carrier", (F.col("new") + F.coalesce("miles", F.lit(0))).alias("miles")),
    }


def totals_of(trips: DataFrame) -> DataFrame:
    """Return the same of all trips at once."""
    return trips.groupBy("carrier").agg(F.sum("miles").alias("miles"))

"""The session of benchmarks on Spark, with a catalog of Iceberg where that has a jar for this version.

A result is kept by the version of Spark that its benchmark has brought in: one that needs none must not import this.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark

from txntable.spark.session import build_session

_ICEBERG = {"4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"}
"""By the version of Spark; for others there is none yet."""


def session(more: Mapping[str, str] | None = None) -> Any:
    """Return a session on two cores whose Parquet files are compressed as segments are, with more settings."""
    return build_session(
        "benchmarks",
        master="local[2]",
        settings={
            "spark.driver.memory": "4g",
            "spark.sql.parquet.compression.codec": "zstd",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "8",
            **(more or {}),
        },
    )


def has_iceberg() -> bool:
    """Return whether Iceberg has a jar for this version of Spark."""
    return _iceberg_jar() is not None


def iceberg_settings(folder: Path) -> dict[str, str]:
    """Return the settings of a session with the catalog ``iceberg`` in a folder; none where there is no jar."""
    jar = _iceberg_jar()
    if jar is None:
        return {}
    return {
        "spark.jars.packages": jar,
        "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.iceberg.type": "hadoop",
        "spark.sql.catalog.iceberg.warehouse": str(folder / "iceberg"),
    }


def _iceberg_jar() -> str | None:
    return _ICEBERG.get(".".join(pyspark.__version__.split(".")[:2]))

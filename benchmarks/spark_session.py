"""The session of benchmarks on Spark.

A result is kept by the version of Spark that its benchmark has brought in: one that needs none must not import this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from txntable.spark.session import build_session


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

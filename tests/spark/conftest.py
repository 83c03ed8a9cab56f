"""One Spark session for all tests that need a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyspark
import pytest

from txntable.spark.s3a import s3a_packages
from txntable.spark.session import build_session
from txntable.spark.writing.writer_choice import SWITCH, Wish


def pytest_configure(config: pytest.Config) -> None:
    """Let pyspark 4.1 leave the sockets open that it collects through; 4.2 closes them."""
    if pyspark.__version__.startswith("4.1."):
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
        config.addinivalue_line(
            "filterwarnings", "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
        )


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session with Delta and S3A on two cores."""
    settings = {"spark.sql.shuffle.partitions": "2", "spark.jars.packages": ",".join(s3a_packages())}
    session = build_session("tests", master="local[2]", settings=settings)
    yield session
    session.stop()


@pytest.fixture
def always(spark: Any) -> Iterator[Any]:
    """The session, with Spark's writer for DataFrames of any size."""
    spark.conf.set(SWITCH, Wish.ALWAYS.value)
    yield spark
    spark.conf.unset(SWITCH)

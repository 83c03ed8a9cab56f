"""One Spark session for all tests of a process that need a JVM."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pyspark
import pytest

from tests.spark.failing_cluster import SHORT_LIVED
from txntable.spark.s3a import s3a_packages
from txntable.spark.session import build_session
from txntable.spark.writing.writer_choice import SWITCH, Wish


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a build run one case of each test on the older version of Spark; `make test-spark41` runs all."""
    parser.addoption("--one-case", action="store_true", help="of each test that has several cases, run the first")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the first case of each test, where that is asked for."""
    if config.getoption("--one-case"):
        first: dict[str, pytest.Item] = {}
        for item in items:
            first.setdefault(item.nodeid.partition("[")[0], item)
        config.hook.pytest_deselected(items=[item for item in items if item not in first.values()])
        items[:] = first.values()


def pytest_configure(config: pytest.Config) -> None:
    """Start each JVM as one that lives for minutes; let pyspark 4.1 leave sockets open, which 4.2 closes."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", SHORT_LIVED)
    if pyspark.__version__.startswith("4.1."):
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
        config.addinivalue_line(
            "filterwarnings", "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
        )


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with Delta and S3A on two cores, beside that of another process."""
    settings = {
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("tables")),
        "spark.jars.packages": ",".join(s3a_packages()),
    }
    session = build_session("tests", master="local[2]", settings=settings)
    yield session
    session.stop()


@pytest.fixture
def always(spark: Any) -> Iterator[Any]:
    """The session, with Spark's writer for DataFrames of any size."""
    spark.conf.set(SWITCH, Wish.ALWAYS.value)
    yield spark
    spark.conf.unset(SWITCH)

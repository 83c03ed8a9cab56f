"""One Spark session for all tests that need a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyspark
import pytest

from txntable.spark.session import build_session


def pytest_configure(config: pytest.Config) -> None:
    """Let pyspark 4.1 leave the sockets open that it collects through; 4.2 closes them."""
    if pyspark.__version__.startswith("4.1."):
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
        config.addinivalue_line(
            "filterwarnings", "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
        )


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session with Delta on two cores."""
    session = build_session("tests", master="local[2]", settings={"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()

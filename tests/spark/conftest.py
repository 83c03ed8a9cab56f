"""One Spark session for all tests that need a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from txntable.spark.session import build_session


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session with Delta on two cores."""
    session = build_session("tests", master="local[2]", settings={"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()

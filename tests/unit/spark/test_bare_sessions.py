"""A Spark session that has no client of S3, or no Delta, is told to be one, with what to do."""

from __future__ import annotations

from typing import Any

import pytest

from txntable.errors import MissingDependencyError
from txntable.spark.scan.reader import stream

NO_CLIENT = "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found"
NO_DELTA = "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta. Make sure the provider name is correct"


class JavaError(Exception):
    """What a JVM raises."""


class Session:
    """A session whose reads fail."""

    def __init__(self, said: str) -> None:
        self.said = said

    @property
    def readStream(self) -> Session:  # noqa: N802  Spark's name
        return self

    def format(self, _: str) -> Session:
        return self

    def options(self, **_: Any) -> Session:
        return self

    def load(self, _: str) -> Any:
        raise JavaError(self.said)


def test_session_without_a_client_of_s3_is_told_how_to_get_one() -> None:
    session: Any = Session(NO_CLIENT)

    with pytest.raises(MissingDependencyError, match=r"build_session\(name, store=warehouse.store.spec\)"):
        stream(session, "s3://bucket/lake/topics/t", {})


def test_session_without_delta_is_told_how_to_get_it() -> None:
    session: Any = Session(NO_DELTA)

    with pytest.raises(MissingDependencyError, match="this spark session has no Delta"):
        stream(session, "/lake/topics/t", {})


@pytest.mark.parametrize(("url", "said"), [("/lake/topics/t", NO_CLIENT), ("s3://bucket/lake/topics/t", "no such key")])
def test_other_failures_are_sparks_own(url: str, said: str) -> None:
    session: Any = Session(said)

    with pytest.raises(JavaError):
        stream(session, url, {})

"""Errors of ours without a traceback, in Spark's own processes only."""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec

import pytest

from txntable.errors import InvalidRequestError
from txntable.spark.datasource.plain_errors import without_traceback

VARIABLE = "SPARK_HIDE_TRACEBACK"


@without_traceback
def raising(error: Exception | None) -> None:
    if error is not None:
        raise error


def run(error: Exception | None) -> str | None:
    """Call, and return what Spark finds in the environment then."""
    if error is None:
        raising(None)
    else:
        with pytest.raises(type(error)):
            raising(error)
    return os.environ.get(VARIABLE)


@pytest.fixture
def of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is one of Spark's."""
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", ModuleSpec("pyspark.daemon", None))


def test_traceback_is_hidden_of_an_error_of_ours_alone(of_spark: None) -> None:
    ours, other = InvalidRequestError("no"), ValueError("another")

    assert [bool(run(error)) for error in (other, ours, other, ours, None)] == [False, True, False, True, False]


def test_environment_is_left_alone_in_a_process_that_is_the_users(
    of_spark: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)

    assert run(InvalidRequestError("no")) is None


def test_setting_of_the_users_stays(of_spark: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")

    assert [run(error) for error in (InvalidRequestError("no"), None)] == ["1", "1"]

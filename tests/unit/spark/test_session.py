"""Finding a Java that Spark runs on, without starting it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from txntable.errors import MissingDependencyError
from txntable.spark import session
from txntable.spark.session import require_java


def java_home(folder: Path, answer: str, status: int = 0) -> Path:
    """Make a JAVA_HOME whose java answers what it is told."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ncat >&2 <<'EOF'\n{answer}\nEOF\nexit {status}\n")
    java.chmod(0o755)
    return folder


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_a_java_is_accepted_when_it_is_new_enough(version, tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, f'openjdk version "{version}" 2025-04-15')))

    require_java()


@pytest.mark.parametrize(
    ("answer", "status", "found"),
    [
        ('java version "1.8.0_392"', 0, 8),
        ('openjdk version "11.0.2" 2019-01-15', 0, 11),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", 1, "none"),
        ("something else", 0, "none"),
    ],
)
def test_a_java_is_refused_with_how_to_get_one_when_spark_can_not_run_on_it(
    answer, status, found, tmp_path, monkeypatch
):
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, answer, status)))

    with pytest.raises(MissingDependencyError, match="install one") as refused:
        require_java()

    assert refused.value.facts["found"] == found


def test_a_missing_java_is_refused_when_there_is_none_at_all(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(MissingDependencyError) as refused:
        require_java()

    assert refused.value.facts == {"found": "none"}


def test_delta_is_asked_for_only_where_nobody_has_started_the_jvm(monkeypatch):
    """Under spark-submit, as on EMR, its jars are there, and its Python package may not be."""
    monkeypatch.setattr(session, "configure_spark_with_delta_pip", None)
    builder = SparkSession.builder
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)

    with pytest.raises(MissingDependencyError, match="delta is not installed"):
        session._with_delta(builder, [])
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert session._with_delta(builder, []) is builder

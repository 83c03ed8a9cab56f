"""A real Kafka broker for all tests of this folder; they are those of ``make kafka``, and no part of others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.kafka_broker import JARS, kafka_broker
from tests.broker.cluster import Cluster

# Without the jars of a broker there is nothing to be tested against; with them, what is missing is an error.
collect_ignore_glob = [] if JARS in os.environ else ["test_*.py"]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with kafka_broker(tmp_path_factory.mktemp("kafka") / "broker") as broker:
        yield Cluster(broker.address)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "warehouse")

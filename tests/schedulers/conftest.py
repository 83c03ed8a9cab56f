"""A lake for each test; everything in this folder is marked, and run by ``make schedulers`` alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.schedulers.lake import Lake

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what stands in this folder."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.schedulers)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Four flights, of which the pipeline knows nothing yet."""
    lake = Lake(tmp_path)
    lake.fill()
    return lake

"""The pages that speak of a Spark session: their code runs in the one of the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.documents.page import PAGES, Reader, blocks_of, code_of, named, needs_spark


@pytest.mark.parametrize("page", [page for page in PAGES if needs_spark(page)], ids=named)
def test_code_of_a_page_runs_on_spark_and_prints_what_the_page_says(page: Path, tmp_path: Path, spark: Any) -> None:
    run = Reader(tmp_path, {"spark": spark.newSession()}).read(page)

    assert run >= len(list(code_of(page))) - sum(block.title is not None for block in blocks_of(page))

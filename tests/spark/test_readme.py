"""The README's Python examples, run one after the other as a reader would."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

README = Path(__file__).parent.parent.parent / "README.md"


def test_examples_of_the_readme_run_and_show_committed_records(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names = {
        "spark": spark,
        "schema": pa.schema([pa.field("carrier", pa.string()), pa.field("delay", pa.int64())]),
        "dataframe": spark.createDataFrame([("UA", 1), ("AA", 2)], "carrier string, delay bigint"),
    }

    for block in blocks:
        exec(compile(block.replace("/data/warehouse", str(tmp_path / "wh")), str(README), "exec"), names)

    assert len(blocks) == 10
    assert capsys.readouterr().out.count("|     UA|") == 3

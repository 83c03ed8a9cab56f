"""Each entry of the runbook names its drill, and each drill an entry."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents.page import ROOT
from tests.drills.runbook import sections


@pytest.mark.parametrize("title", sections())
def test_each_entry_names_a_drill_that_exists(title: str) -> None:
    drills = sections()[title].drills

    assert drills
    for drill in drills:
        path, _, test = drill.partition("::")
        assert (ROOT / path).is_file()
        assert f"def {test}" in (ROOT / path).read_text()


def test_each_drill_is_named_by_an_entry() -> None:
    named = {drill.partition("::")[0] for section in sections().values() for drill in section.drills}
    files = {path.relative_to(ROOT).as_posix() for path in Path(__file__).parent.glob("test_*.py")}

    assert files - named == {"tests/drills/test_runbook.py"}

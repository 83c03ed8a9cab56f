"""The table of alerts in ``infra/REQUESTS.md`` has everything that ``txntable check`` finds, and each of its limits."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from txntable.admin.upkeep import Duty, UpkeepLimits

DOCUMENT = Path(__file__).parents[3] / "infra" / "REQUESTS.md"


def rows() -> list[list[str]]:
    """Finding, when it is late, its limits: as the section has them."""
    section = DOCUMENT.read_text(encoding="utf-8").split("\n## Alerts\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_table_of_alerts_has_every_finding() -> None:
    assert {finding for finding, _, _ in rows()} == {duty.value for duty in Duty}


def test_table_of_alerts_has_every_limit() -> None:
    named = {name for _, _, limits in rows() for name in re.findall(r"`(\w+)`", limits)}

    # The grace after a timeout is one of two findings.
    assert named == {each.name for each in fields(UpkeepLimits)}

"""The shape of what commands print as JSON, and the names that they export to Prometheus, of one warehouse.

Owns which questions are asked.  A shape is a line for each path to a value, and its type; values are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from typer.testing import CliRunner

from examples.busy_warehouse import Day
from txntable.cli.main import application
from txntable.warehouse.warehouse import Warehouse

QUESTIONS = (
    "warehouse describe",
    "warehouse verify",
    "topics list",
    "topics describe orders",
    "consume orders --from-beginning --max-messages 1 --group looker",
    "offsets list orders",
    "groups list",
    "groups describe --all-groups",
    "groups describe --all-groups --members",
    "groups describe --all-groups --state",
    "groups reset-offsets --group billing --topic orders --to-earliest",
    "snapshot",
    "transactions list",
    "transactions describe export-to-erp",
    "transactions describe-producers --topic orders --partition 0",
    "transactions find-hanging --topic orders --partition 0",
    "status",
    "check",
    "compact --dry-run",
    "vacuum",
    "erase --where order_id=nobody",
)
_TYPES = {str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}
_PROMETHEUS = "check --metrics prometheus"


def lines(folder: Path) -> list[str]:
    """Return the shapes of all answers about a busy warehouse, in order."""
    url = str(folder / "shop")
    Day(Warehouse.create(url, durability="page-cache"), lambda _: None).play()
    found: set[str] = set()
    for question in QUESTIONS:
        answer = _ask(url, f"{question} --output json")
        found |= {f"answer of {_verb(question)}: {path} {kind}" for path, kind in _shape(json.loads(answer), "")}
    exported = re.findall(r"^# TYPE (\S+) (\S+)$", _ask(url, _PROMETHEUS), re.MULTILINE)
    return sorted({*found, *(f"prometheus {name} {kind}" for name, kind in exported)})


def _ask(url: str, question: str) -> str:
    ran = CliRunner().invoke(application, ["--warehouse", url, *question.split()])
    if ran.exit_code not in (0, 3):
        raise AssertionError(f"{question}: {ran.output}")
    return ran.stdout


def _verb(question: str) -> str:
    return " ".join(
        word for word in question.split() if word not in ("orders", "billing", "export-to-erp", "order_id=nobody")
    )


def _shape(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        yield path or ".", "object"
        for name, member in value.items():
            yield from _shape(member, f"{path}.{name}")
    elif isinstance(value, list):
        yield path or ".", "array"
        for member in value:
            yield from _shape(member, f"{path}[]")
    else:
        yield path or ".", _TYPES[type(value)]

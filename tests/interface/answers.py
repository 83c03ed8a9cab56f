"""The shape of what commands print as JSON, and the names that they export to Prometheus, of one warehouse.

Owns which questions are asked.  A shape is a line for each path to a value, and its type; values are left out.
"""

from __future__ import annotations

import json
import re
import shlex
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
CHANGES = (
    "produce payments --transactional-id nightly --batch-id monday --file LINES",
    "topics create made --partitions 2 --column 'id BIGINT'",
    "topics alter made --config retention.ms=604800000 --execute",
    "topics add-column made 'note STRING'",
    "topics delete-records orders --offset 0=1 --execute",
    "groups reset-offsets --group billing --topic orders --to-earliest --execute",
    "groups delete-offsets --group billing --topic orders --execute",
    "groups delete --group fraud-watch --execute",
    "transactions abort export-to-erp --execute",
    "transactions fence export-to-erp --execute",
    "transactions run --once",
    "compact --once",
    "vacuum --execute",
    "topics delete made --execute",
    "warehouse alter --config snapshot_retention_ms=7200000 --execute",
    "warehouse fence-all --execute",
    "warehouse create --exist-ok",
)
"""What changes something, in an order in which each has something to do."""
FINDINGS = ("warehouse verify", "check", "status", "topics list")
"""Of a warehouse in which a partition log has lost its newest entry."""
_ABOUT = {"orders", "billing", "export-to-erp", "made", "payments", "fraud-watch", "nightly", "monday"}
_TYPES = {str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}
_PROMETHEUS = "check --metrics prometheus"


def lines(folder: Path) -> list[str]:
    """Return the shapes of all answers about a busy warehouse, in order."""
    url = str(folder / "shop")
    Day(Warehouse.create(url, durability="page-cache"), lambda _: None).play()
    found: set[str] = set()
    for question in QUESTIONS:
        found |= _shapes(url, question)
    exported = re.findall(r"^# TYPE (\S+) (\S+)$", _ask(url, _PROMETHEUS), re.MULTILINE)
    (folder / "lines").write_text("{}\n", encoding="utf-8")
    for change in CHANGES:
        found |= _shapes(url, change.replace("LINES", str(folder / "lines")))
    max((folder / "shop/topics/orders/_segments/_delta_log").glob("*.json")).unlink()
    for question in FINDINGS:
        found |= _shapes(url, question)
    return sorted({*found, *(f"prometheus {name} {kind}" for name, kind in exported)})


def _shapes(url: str, question: str) -> set[str]:
    answer = _ask(url, f"{question} --output json")
    return {f"answer of {_verb(question)}: {path} {kind}" for path, kind in _shape(json.loads(answer), "")}


def _ask(url: str, question: str) -> str:
    ran = CliRunner().invoke(application, ["--warehouse", url, *shlex.split(question)])
    if ran.exit_code not in (0, 1, 3) or not ran.stdout:
        raise AssertionError(f"{question}: {ran.output}")
    return ran.stdout


def _verb(question: str) -> str:
    # A command, and what of its options chooses an answer: not what it is about.
    words = [word for word in shlex.split(question) if word not in _ABOUT and "=" not in word and "/" not in word]
    return " ".join(words)


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

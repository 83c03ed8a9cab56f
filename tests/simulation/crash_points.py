"""The name of each crash point: what a storage call has made durable when a process dies after it.

PROTOCOL.md §11 has a row for each name.  A storage call of a kind that is not known here is an error,
so that a new one cannot be forgotten.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from tests.doubles.fault_plan import WRITES, Operation, Step
from txntable.storage.object_store import StoredObject

_LOGS = (
    (re.compile(r"system/transaction_log"), "T"),
    (re.compile(r"system/offset_log"), "O"),
    (re.compile(r"topics/[^/]+/_segments"), "S"),
    (re.compile(r"topics/[^/]+"), "P"),
)
_ENTRY = re.compile(r"(?P<log>.+)/_delta_log/\d{20}\.json")
_OBJECTS = (
    (re.compile(r"_warehouse\.json"), "the warehouse's identity"),
    (re.compile(r"system/clock"), "the store's clock"),
    (re.compile(r"system/probe/.+"), "a probe"),
    (re.compile(r"system/heartbeats/[0-9a-f]{32}/[0-9a-f]{32}"), "a heartbeat"),
    (re.compile(r".+/_delta_log/\d{20}\.checkpoint\.parquet"), "a checkpoint"),
    (re.compile(r".+/_delta_log/_last_checkpoint"), "a checkpoint's hint"),
    (re.compile(r".+/_segments/p\d{5}/.+\.parquet"), "a segment"),
    (re.compile(r"(.+/_segments/(markers|state)|system/[a-z_]+/k)/.+\.parquet"), "a constant file"),
)


def crash_point(step: Step, objects: Mapping[str, StoredObject]) -> str | None:
    """The crash point after a step; ``None``: a step that only reads makes nothing durable.

    `objects` is what the store held at the end: a log entry says itself which operation wrote it.
    """
    if step.operation not in WRITES:
        return None
    if step.operation is Operation.DELETE and "/_delta_log/" in step.path:
        return "a deleted log file"
    if step.operation is Operation.DELETE and step.path.startswith("system/heartbeats/"):
        return "a deleted heartbeat"
    if step.operation is Operation.DELETE and step.path.startswith("topics/"):
        return "a deleted file"
    entry = _ENTRY.fullmatch(step.path)
    if entry is not None:
        operation = json.loads(objects[step.path].data.splitlines()[0])["commitInfo"]["operation"]
        return f"{_log(entry['log'])} {operation}"
    for pattern, name in _OBJECTS:
        if pattern.fullmatch(step.path):
            return name
    raise AssertionError(f"a storage call of a new kind: name its crash point, and say in PROTOCOL.md §11: {step}")


def _log(root: str) -> str:
    return next(letter for pattern, letter in _LOGS if pattern.fullmatch(root))

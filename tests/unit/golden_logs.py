"""The golden logs, and changes to them that the chain of their entries does not tell.

Each entry holds the digest of the one below (PROTOCOL.md §4.1): where one is changed and the others are as they were,
the next one is refused whatever the change was.  So those above are written anew.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "golden"
FOLDERS = ("format-1", "format-1-groups", "format-1-maintained")
_ENTRY = re.compile(r"(.*/_delta_log/)(\d{20})\.json")


def golden_objects(folder: str) -> dict[str, bytes]:
    """Return the logs of a golden warehouse by their paths."""
    root = GOLDEN / folder
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.json"))}


def entries(folder: str, log: str) -> list[str]:
    """Return the paths of a log's entries."""
    return [path for path in golden_objects(folder) if path.startswith(f"{log}/_delta_log/")]


def changed(objects: dict[str, bytes], path: str, data: bytes) -> dict[str, bytes]:
    """Return objects of which one has other bytes, and those above it in a log are written on these."""
    found = dict(objects)
    while path in objects:
        before, found[path] = digest(objects[path]), data
        match = _ENTRY.fullmatch(path)
        if match is None:
            break
        path = f"{match[1]}{int(match[2]) + 1:020d}.json"
        data = found.get(path, b"").replace(before, digest(data))
    return found


def digest(data: bytes) -> bytes:
    """Return what the next entry has as its ``chain``."""
    return hashlib.sha256(data).hexdigest().encode()

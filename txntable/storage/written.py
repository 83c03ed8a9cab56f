"""What became of a change that gives way to whoever was first."""

from __future__ import annotations

from enum import Enum


class Written(Enum):
    """The two ends of such a change; a failure is an error."""

    DONE = "done"
    OVERTAKEN = "overtaken"
    """Somebody else was first: look again."""

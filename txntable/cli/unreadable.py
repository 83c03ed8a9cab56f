"""What a command does about topics that cannot be read: it shows the rest, names them, and fails.

Owns that: a line on standard error for each, with its error, and exit code 1 at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

import typer

from txntable.admin.blocking_words import unreadable_text
from txntable.admin.readable_part import ReadablePart
from txntable.admin.upkeep import Finding
from txntable.cli.output import tell
from txntable.warehouse.warehouse import Warehouse


def readable_part(warehouse: Warehouse, topics: Sequence[str] | None = None) -> ReadablePart:
    """Return a look at what can be read of a warehouse, or of some of its topics; none: of all.

    Raises
    ------
    UnknownTopicOrPartitionError
        One of the topics does not exist.
    """
    return ReadablePart(warehouse.completer, warehouse.topic_log, topics or None)


def fail_if_unreadable(unreadable: Sequence[Finding]) -> None:
    """End a command that has shown the rest.

    Raises
    ------
    typer.Exit
        Something could not be read: exit code 1.
    """
    for one in unreadable:
        tell(f"error: {unreadable_text(one)}")
    if unreadable:
        raise typer.Exit(1)

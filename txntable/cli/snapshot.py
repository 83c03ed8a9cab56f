"""``txntable snapshot``: one position over all topics, and how far each of them has come."""

from __future__ import annotations

from dataclasses import astuple
from functools import partial
from operator import attrgetter
from typing import Annotated

import typer

from txntable.cli.connection import Connection, on_warehouse
from txntable.cli.output import Rows, camel_headers
from txntable.snapshot.snapshot import as_of as moment
from txntable.snapshot.snapshot_description import describe_snapshot

POSITION_HEADERS = camel_headers("position published_position head")
TOPIC_HEADERS = camel_headers("topic version decided_through merged_through last_stable_offsets high_watermarks")


AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of", metavar="POSITION|TIME", help="A position, or a time in ISO 8601 with a zone; default: now."
    ),
]


def snapshot(connection: Connection, as_of: AsOf = None) -> None:
    """Show a snapshot: in SQL, `_commit <= position` on any topics is one state of all of them."""
    warehouse = connection.open()
    found = describe_snapshot(
        warehouse.transactions,
        warehouse.snapshot(None if as_of is None else moment(as_of)),
        partial(warehouse.admin().list_topics, deleted=as_of is not None),
    )
    positions = Rows(POSITION_HEADERS, [attrgetter(*POSITION_HEADERS)(found)], "Snapshot")
    topics = Rows(TOPIC_HEADERS, [astuple(one) for one in found.topics], "Public tables")
    connection.output.report({"snapshot": positions, "topics": topics})


command = on_warehouse(snapshot)

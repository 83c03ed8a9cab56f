"""A server of S3 and Glue: the locked moto, whose Glue has pages, versions and bad moments, as AWS's has.

moto answers all tables at once and takes any version.  Pages have 100 tables at AWS; an update of a version that is not
the table's any more is a ``ConcurrentModificationException`` there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any
from unittest.mock import patch

import boto3  # noqa: TID251  databases and other people's tables are made past our client
from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult
from moto.glue.responses import GlueResponse

from txntable.testing.moto_server import LockedMotoServer

MOST_ON_A_PAGE = 100

_update_table = GlueResponse.update_table


class GlueServer:
    """The server, and what its Glue is asked.

    Attributes
    ----------
    server : LockedMotoServer
        With a bucket.
    asked : list of str
        Glue's operations so far.
    busy : int
        How many requests are yet answered that they are too many.
    before_update : callable or None
        Called once before an update is done, as somebody else would come first.
    """

    def __init__(self, server: LockedMotoServer) -> None:
        self.server = server
        self.asked: list[str] = []
        self.busy = 0
        self.before_update: Callable[[], None] | None = None

    def empty(self) -> None:
        """Let the database ``lake`` be there, without tables, and nothing be in the way."""
        with suppress(self.client.exceptions.EntityNotFoundException):
            self.client.delete_database(Name="lake")
        self.client.create_database(DatabaseInput={"Name": "lake"})
        self.busy, self.before_update = 0, None
        self.asked.clear()

    @cached_property
    def client(self) -> Any:
        """Return boto3's client, with which others work."""
        options = self.server.storage_options
        return boto3.client(
            "glue",
            endpoint_url=self.server.endpoint,
            region_name=options["AWS_REGION"],
            aws_access_key_id=options["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=options["AWS_SECRET_ACCESS_KEY"],
        )

    def _come_in(self, operation: str) -> None:
        self.asked.append(operation)
        if self.busy:
            self.busy -= 1
            raise JsonRESTError("ThrottlingException", "Rate exceeded")

    def answer_page(self, response: GlueResponse) -> Any:
        """Answer one page."""
        self._come_in("GetTables")
        asked = response.parameters
        tables = response.glue_backend.get_tables(asked["DatabaseName"], asked.get("Expression"))
        first = int(asked.get("NextToken") or 0)
        answer: dict[str, Any] = {"TableList": [each.as_dict() for each in tables[first : first + MOST_ON_A_PAGE]]}
        if first + MOST_ON_A_PAGE < len(tables):
            answer["NextToken"] = str(first + MOST_ON_A_PAGE)
        return ActionResult(answer)

    def answer_update(self, response: GlueResponse) -> Any:
        """Update the version that was asked for, and no other."""
        self._come_in("UpdateTable")
        come, self.before_update = self.before_update, None
        if come is not None:
            come()
        asked = response.parameters
        table = response.glue_backend.get_table(asked["DatabaseName"], asked["TableInput"]["Name"])
        if asked.get("VersionId") not in {None, table.as_dict()["VersionId"]}:
            raise JsonRESTError(
                "ConcurrentModificationException", "Update table failed due to concurrent modifications."
            )
        return _update_table(response)


@contextmanager
def glue_server(bucket: str) -> Iterator[GlueServer]:
    """Run the server."""
    with LockedMotoServer(bucket) as running:
        glue = GlueServer(running)

        def get_tables(response: GlueResponse) -> Any:
            return glue.answer_page(response)

        def update_table(response: GlueResponse) -> Any:
            return glue.answer_update(response)

        with (
            patch.object(GlueResponse, "get_tables", get_tables),
            patch.object(GlueResponse, "update_table", update_table),
        ):
            yield glue


def document(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table's document without what Glue itself adds."""
    added = {"DatabaseName", "CreateTime", "UpdateTime", "CreatedBy", "IsRegisteredWithLakeFormation", "CatalogId"}
    kept = {name: value for name, value in table.items() if name not in added | {"VersionId"}}
    return dict(json.loads(json.dumps(kept)))

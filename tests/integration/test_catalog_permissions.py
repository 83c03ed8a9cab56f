"""A reader's policy and the catalog's are enough to keep Glue as the topics are: moto, with its IAM enforced.

moto asks for Glue's actions on ``*``, whatever the request is about: what the policy's resources are is the unit tests'
business, and here they are widened.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError  # noqa: TID251  others ask past our client

from tests.doubles.manual_environment import ManualEnvironment
from tests.integration.guarded_server import GuardedServer
from tests.simulation.site import TWO_COLUMNS
from txntable.catalog.glue_catalog import GlueCatalog
from txntable.catalog.plan import Action
from txntable.catalog.synchronisation import Outcome, SyncOptions, synchronise
from txntable.errors import StorePermissionError
from txntable.infra.catalog_policy import GlueDatabase, catalog_policy
from txntable.infra.policies import Role, place_of, role_policy
from txntable.storage.glue_tables import GlueTables
from txntable.warehouse.warehouse import Warehouse

pytestmark = pytest.mark.s3
URL = "s3://guarded/wh"
EVERYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


@dataclass(frozen=True)
class Guarded:
    server: GuardedServer
    owner: Warehouse
    reader: dict[str, str]
    job: dict[str, str]

    def sync(self, keys: dict[str, str]) -> list[Outcome]:
        warehouse = Warehouse.open(URL, keys)
        tables = GlueTables(warehouse.store.spec, "lake", self.server.endpoint, ManualEnvironment())
        return synchronise(warehouse, GlueCatalog(tables), SyncOptions("wh_"))


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    with GuardedServer("guarded") as server:
        reading = role_policy(Role.READER, place_of(URL))
        owner = server.user("owner", EVERYTHING)
        reader = server.user("reader", reading)
        registering = catalog_policy(GlueDatabase("lake", "us-east-1", "123456789012", "wh_"))
        for statement in registering["Statement"]:
            statement["Resource"] = "*"
        job = server.user("job", reading, registering)
        server.client("glue", owner).create_database(DatabaseInput={"Name": "lake"})
        warehouse = Warehouse.create(URL, owner)
        warehouse.admin().create_topic("kept", schema=TWO_COLUMNS)
        warehouse.admin().create_topic("gone", schema=TWO_COLUMNS)
        server.guard()
        yield Guarded(server, warehouse, reader, job)


def test_job_creates_updates_and_drops_with_both_policies(guarded: Guarded) -> None:
    made = guarded.sync(guarded.job)
    guarded.owner.admin().delete_topic("gone")
    guarded.owner.admin().add_columns("kept", [TWO_COLUMNS.field("amount").with_name("fee")])

    changed = guarded.sync(guarded.job)

    assert [(one.change.table, one.change.action, one.failure) for one in (*made, *changed)] == [
        ("wh_gone", Action.CREATE, None),
        ("wh_kept", Action.CREATE, None),
        ("wh_gone", Action.DROP, None),
        ("wh_kept", Action.UPDATE, None),
    ]


def test_reader_without_the_policy_is_told_the_action(guarded: Guarded) -> None:
    with pytest.raises(StorePermissionError, match="action=glue:GetTables"):
        guarded.sync(guarded.reader)


@pytest.mark.parametrize(
    ("service", "call", "arguments"),
    [
        ("glue", "delete_database", {"Name": "lake"}),
        ("glue", "create_database", {"DatabaseInput": {"Name": "other"}}),
        ("s3", "put_object", {"Bucket": "guarded", "Key": "wh/topics/kept/x", "Body": b""}),
        ("s3", "delete_object", {"Bucket": "guarded", "Key": "wh/_warehouse.json"}),
    ],
)
def test_job_may_do_nothing_else(guarded: Guarded, service: str, call: str, arguments: dict[str, Any]) -> None:
    client = guarded.server.client(service, guarded.job)

    with pytest.raises(ClientError) as raised:
        getattr(client, call)(**arguments)

    assert "AccessDenied" in json.dumps(raised.value.response, default=str)

"""What each role's policy lets a process do, by an S3 API that enforces it: everything of its work, and nothing else.

moto ignores the conditions of policies: what they add is not proved here.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError  # noqa: TID251  requests past every client of ours

from compaction.compactor import CompactionOptions, compact
from compaction.rewriter import rewriter_here
from compaction.vacuum import vacuum
from infra.policies import Role, bucket_policy, place_of, role_policy
from tests.integration.guarded_server import GuardedServer
from tests.simulation.site import TWO_COLUMNS
from tests.unit.infra.paths import ALLOWED, OUTSIDE, PATHS
from txntable.client.records import TopicPartition
from txntable.errors import StorePermissionError
from txntable.warehouse import Warehouse

pytestmark = pytest.mark.s3

BUCKET = "guarded"
URL = f"s3://{BUCKET}/lake/one"
KEYS = {name: f"lake/one/{path}" for name, path in PATHS.items()} | OUTSIDE
OWNER = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}


@dataclass(frozen=True)
class Guarded:
    """The storage options and the bare client of each role; ``None``: of who may do everything."""

    options: Mapping[Role | None, dict[str, str]]
    s3: Mapping[Role | None, Any]
    pipeline: dict[str, str]

    def open(self, role: Role) -> Warehouse:
        return Warehouse.open(URL, self.options[role])


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    """Give one user for each role, and one that may do everything; then the policies are in force."""
    with GuardedServer(BUCKET) as server:
        policies = {role: role_policy(role, place_of(URL)) for role in Role}
        options: dict[Role | None, dict[str, str]] = {None: server.user("owner", OWNER)}
        options |= {role: server.user(role.value, policy) for role, policy in policies.items()}
        pipeline = server.user("pipeline", policies[Role.CONSUMER], policies[Role.PRODUCER])
        server.guard()
        yield Guarded(options, {role: server.client("s3", keys) for role, keys in options.items()}, pipeline)


def is_allowed(call: Any, **arguments: object) -> bool:
    try:
        call(Bucket=BUCKET, **arguments)
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] != 403:
            raise
        return False
    return True


# -- request by request -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("role", Role)
def test_role_reads_writes_and_deletes_what_the_table_says(guarded: Guarded, role: Role, kind: str) -> None:
    guarded.s3[None].put_object(Bucket=BUCKET, Key=KEYS[kind], Body=b"")
    s3 = guarded.s3[role]

    may = {
        "r": is_allowed(s3.get_object, Key=KEYS[kind]),
        "w": is_allowed(s3.put_object, Key=KEYS[kind], Body=b""),
        "d": is_allowed(s3.delete_object, Key=KEYS[kind]),
    }

    guarded.s3[None].delete_object(Bucket=BUCKET, Key=KEYS[kind])
    assert "".join(letter for letter, allowed in may.items() if allowed) == ALLOWED[kind][role.value]


@pytest.mark.parametrize("role", Role)
def test_role_lists_and_aborts_uploads_as_its_work_needs(guarded: Guarded, role: Role) -> None:
    begun = guarded.s3[None].create_multipart_upload(Bucket=BUCKET, Key=KEYS["segment"])["UploadId"]
    s3 = guarded.s3[role]
    writes = ALLOWED["segment"][role.value] != "r"
    maintains = role in {Role.MAINTENANCE, Role.ADMIN}

    assert is_allowed(s3.list_objects_v2, Prefix="lake/one/")
    assert is_allowed(s3.list_multipart_uploads) == maintains
    assert is_allowed(s3.abort_multipart_upload, Key=KEYS["segment"], UploadId=begun) == writes


@pytest.mark.parametrize("role", Role)
def test_no_role_touches_the_bucket_itself(guarded: Guarded, role: Role) -> None:
    s3 = guarded.s3[role]

    assert not is_allowed(s3.put_bucket_policy, Policy=json.dumps(bucket_policy(place_of(URL))))
    assert not is_allowed(s3.put_bucket_versioning, VersioningConfiguration={"Status": "Suspended"})
    assert not is_allowed(s3.delete_bucket)


# -- through the public interface ---------------------------------------------------------------


@pytest.fixture(scope="module")
def world(guarded: Guarded) -> Guarded:
    """Give a warehouse that admin and producer have made, with a transaction that is decided and not complete."""
    admin = Warehouse.create(URL, guarded.options[Role.ADMIN]).admin()
    admin.create_topic("t", partitions=2, schema=TWO_COLUMNS, key=["account"])
    warehouse = guarded.open(Role.PRODUCER)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    for number in range(3):
        producer.begin_transaction(batch_id=number)
        producer.send("t", row={"account": f"a{number}", "amount": number})
        producer.send_offsets_to_transaction({TopicPartition("t", 0): number + 1}, "g")
        if number == 2:
            producer._coordinator.try_complete = lambda transactional_id: None  # type: ignore[method-assign]
        producer.commit_transaction()
    return guarded


def test_reader_reads_every_level_without_an_error_or_a_warning(world: Guarded, caplog) -> None:
    caplog.set_level(logging.INFO)
    warehouse = world.open(Role.READER)

    snapshot = warehouse.snapshot()
    found = {
        level: warehouse.read_arrow("t", isolation_level=level).read_all().num_rows
        for level in ("snapshot", "read_committed", "read_uncommitted")
    }
    admin = warehouse.admin()
    consumer = warehouse.consumer(auto_offset_reset="earliest")
    consumer.assign([TopicPartition("t", 0), TopicPartition("t", 1)])
    polled = sum(len(records) for records in consumer.poll().values())
    consumer.close()

    # The third transaction is decided and nobody has completed it: who can not write waits for who can.
    assert found == {"snapshot": 2, "read_committed": 2, "read_uncommitted": 3}
    assert polled == 2
    assert snapshot.position < warehouse.transactions.refresh()
    assert admin.list_topics() == ["t"]
    assert admin.list_consumer_group_offsets("g", [TopicPartition("t", 0)])
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("role", [Role.READER, Role.CONSUMER])
def test_who_may_not_write_is_told_the_path_and_the_action(world: Guarded, role: Role) -> None:
    with pytest.raises(StorePermissionError, match=r"path=system/\S+ action=s3:PutObject") as raised:
        world.open(role).producer("mine").init_transactions()
    assert not raised.value.retriable


def test_reader_can_join_no_group_and_is_told_so(world: Guarded) -> None:
    consumer = world.open(Role.READER).consumer(group_id="readers", auto_offset_reset="earliest")
    consumer.subscribe(["t"])

    with pytest.raises(StorePermissionError, match=r"action=s3:PutObject"):
        consumer.poll()


def test_consumer_polls_and_commits_while_it_may_complete_nothing(world: Guarded, caplog) -> None:
    warehouse = world.open(Role.CONSUMER)
    consumer = warehouse.consumer(group_id="readers", auto_offset_reset="earliest")
    consumer.subscribe(["t"])

    polled = sum(len(records) for _ in range(2) for records in consumer.poll().values())
    consumer.commit()
    consumer.close()

    assert polled == 2
    assert set(warehouse.admin().list_consumer_group_offsets("readers").values()) != set()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_producer_that_consumes_takes_both_policies(world: Guarded) -> None:
    warehouse = Warehouse.open(URL, world.pipeline)
    consumer = warehouse.consumer(group_id="pipeline", auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.subscribe(["t"])
    polled = consumer.poll()
    producer = warehouse.producer("pipeline")
    producer.init_transactions()
    read = {each: records[-1].offset + 1 for each, records in polled.items()}

    with producer.transaction() as txn:
        txn.send("t", row={"account": "sum", "amount": len(read)})
        producer.send_offsets_to_transaction(read, consumer.group_metadata())
    consumer.close()

    committed = warehouse.admin().list_consumer_group_offsets("pipeline")
    assert {each: found.offset for each, found in committed.items() if found is not None} == read


def test_producer_can_not_delete_what_a_vacuum_would(world: Guarded) -> None:
    store = world.open(Role.PRODUCER).store
    path = "topics/t/_segments/p00000/none.parquet"

    for delete in (store.delete, store.delete_unordered):
        with pytest.raises(StorePermissionError, match=r"action=s3:DeleteObject"):
            delete([path])


def test_maintenance_completes_compacts_and_vacuums(world: Guarded, caplog) -> None:
    caplog.set_level(logging.INFO)
    warehouse = world.open(Role.MAINTENANCE)

    report = warehouse.coordinator().run_once()
    compact(
        warehouse,
        rewriter=rewriter_here(warehouse.context),
        options=CompactionOptions(),
        execute=True,
    )
    vacuum(warehouse, execute=True)

    assert report.failures == 0
    assert warehouse.snapshot().position == warehouse.transactions.refresh()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]

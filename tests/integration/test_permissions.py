"""What each role's policy lets a process do, by an S3 API that enforces it: everything of its work, and nothing else.

moto ignores the conditions of policies: what they add is not proved here.  Bulk deletes are judged key by key, and the
store's time is moved on, so that whoever maintains has something to merge and to delete.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError  # noqa: TID251  requests past every client of ours

from tests.integration.guarded_server import GuardedServer
from tests.simulation.rubbish import PART
from tests.simulation.site import TWO_COLUMNS
from tests.unit.infra.paths import ALLOWED, OUTSIDE, PATHS
from txntable.admin.restoration import Restoration
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.compaction.vacuum_plan import Reason
from txntable.errors import StorePermissionError, UnknownTopicOrPartitionError, WarehouseReplacedError
from txntable.format.layout import PROBE_FOLDER, heartbeat_path, public_root, segment_path, segments_root
from txntable.format.records import TopicPartition
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.infra.policies import Role, bucket_policy, place_of, role_policy
from txntable.warehouse.warehouse import Warehouse

pytestmark = pytest.mark.s3

BUCKET = "guarded"
URL = f"s3://{BUCKET}/lake/one"
KEYS = {name: f"lake/one/{path}" for name, path in PATHS.items()} | OUTSIDE
OWNER = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
DAY_MS = 86_400_000
SETTINGS = WarehouseSettings(vacuum_retention_ms=DAY_MS, snapshot_retention_ms=60_000)


@dataclass(frozen=True)
class Guarded:
    """The storage options and the bare client of each role; ``None``: of who may do everything."""

    server: GuardedServer
    options: Mapping[Role | None, dict[str, str]]
    s3: Mapping[Role | None, Any]
    pipeline: dict[str, str]

    def open(self, role: Role) -> Warehouse:
        return Warehouse.open(URL, self.options[role])


@contextmanager
def served() -> Iterator[Guarded]:
    """Run a server with one user for each role, and one that may do everything; then the policies are in force."""
    with GuardedServer(BUCKET) as server:
        policies = {role: role_policy(role, place_of(URL)) for role in Role}
        options: dict[Role | None, dict[str, str]] = {None: server.user("owner", OWNER)}
        options |= {role: server.user(role.value, policy) for role, policy in policies.items()}
        pipeline = server.user("pipeline", policies[Role.CONSUMER], policies[Role.PRODUCER])
        server.guard()
        yield Guarded(server, options, {role: server.client("s3", keys) for role, keys in options.items()}, pipeline)


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    with served() as found:
        yield found


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
def test_role_is_refused_single_keys_of_a_bulk_delete(guarded: Guarded, role: Role) -> None:
    kinds = {key: kind for kind, key in KEYS.items()}
    for key in kinds:
        guarded.s3[None].put_object(Bucket=BUCKET, Key=key, Body=b"")
    keys = {"Objects": [{"Key": key} for key in kinds]}

    answer = guarded.s3[role].delete_objects(Bucket=BUCKET, Delete=keys)
    left = {found["Key"] for found in guarded.s3[None].list_objects_v2(Bucket=BUCKET)["Contents"]}

    guarded.s3[None].delete_objects(Bucket=BUCKET, Delete=keys)
    refused = {kinds[error["Key"]]: error["Code"] for error in answer.get("Errors", ())}
    assert refused == {kind: "AccessDenied" for kind in KEYS if "d" not in ALLOWED[kind][role.value]}
    assert {kinds[key] for key in left & kinds.keys()} == refused.keys()
    assert {kinds[found["Key"]] for found in answer.get("Deleted", ())} == KEYS.keys() - refused.keys()


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


def fill(guarded: Guarded) -> Guarded:
    """Let admin and producer make a warehouse, with a transaction that is decided and not complete."""
    admin = Warehouse.create(URL, guarded.options[Role.ADMIN], settings=SETTINGS).admin()
    admin.create_topic("t", partitions=2, schema=TWO_COLUMNS, key=["account"])
    warehouse = guarded.open(Role.PRODUCER)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    for number in range(3):
        producer.begin_transaction(batch_id=number)
        producer.send("t", row={"account": f"a{number}", "amount": number})
        producer.send_offsets_to_transaction({TopicPartition("t", 0): number + 1}, "g")
        if number == 2:
            producer._coordinator.try_bring = lambda transactional_id: None  # type: ignore[method-assign]
        producer.commit_transaction()
    return guarded


@pytest.fixture(scope="module")
def world(guarded: Guarded) -> Guarded:
    return fill(guarded)


@pytest.fixture
def alone() -> Iterator[Guarded]:
    """Give a warehouse of the test's own, on a server of its own: its time can be moved on."""
    with served() as found:
        yield fill(found)


def leave_open(world: Guarded) -> None:
    """Leave a transaction that nobody ends."""
    producer = world.open(Role.PRODUCER).producer("dying")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", row={"account": "a0", "amount": 100})
    producer.flush()


def join(world: Guarded) -> Any:
    """Return a consumer that has joined a group."""
    consumer = world.open(Role.CONSUMER).consumer(group_id="readers", auto_offset_reset="earliest")
    consumer.subscribe(["t"])
    consumer.poll()
    return consumer


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

    # The third transaction is decided and nobody has completed it: who cannot write waits for who can, and nothing of
    # it is in the partition logs yet.
    assert found == {"snapshot": 2, "read_committed": 2, "read_uncommitted": 2}
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


@pytest.mark.parametrize("role", [Role.READER, Role.CONSUMER, Role.PRODUCER])
def test_who_does_not_maintain_can_not_delete_what_a_vacuum_would(world: Guarded, role: Role) -> None:
    path = "topics/t/_segments/p00000/none.parquet"

    for delete in (world.open(role).store.delete, world.open(role).store.delete_unordered):
        with pytest.raises(StorePermissionError, match=r"action=s3:DeleteObject"):
            delete([path])
    # The refusal is the role's, and not the request's.
    world.open(Role.MAINTENANCE).store.delete_unordered([path])


# -- whoever deletes: on a server of its own ----------------------------------------------------


def leave_rubbish(world: Guarded) -> None:
    """Leave what each kind of process leaves that is killed."""
    leave_open(world)
    orphan = f"{segments_root('t')}/{segment_path('0' * 32, 0, None, '1' * 32)}"
    owner = world.s3[None]
    for path in (orphan, f"{public_root('t')}/{PART}", f"{PROBE_FOLDER}/left-0", heartbeat_path("readers", "killed")):
        owner.put_object(Bucket=BUCKET, Key=f"lake/one/{path}", Body=b"rubbish")
    owner.create_multipart_upload(Bucket=BUCKET, Key=f"lake/one/{segments_root('t')}/p00000/begun.parquet")


@pytest.mark.parametrize("role", [Role.MAINTENANCE, Role.ADMIN])
def test_who_maintains_completes_merges_cleans_logs_and_vacuums(alone: Guarded, role: Role, caplog) -> None:
    leave_rubbish(alone)
    caplog.set_level(logging.INFO)

    alone.server.advance_ms(DAY_MS)
    completed = alone.open(role).coordinator().run_once()
    alone.server.advance_ms(DAY_MS)
    compacted = compact(alone.open(role))
    alone.server.advance_ms(30 * DAY_MS)
    cleaned = alone.open(role).coordinator().run_once()
    vacuumed = vacuum(alone.open(role), execute=True)

    assert (completed.aborted, completed.completed, completed.failures) == (1, 1, 0)
    assert [(each.merged_segments > 1, each.aborted_segments, each.failures) for each in compacted] == [(True, 1, ())]
    assert (cleaned.cleaned_log_files > 0, cleaned.failures) == (True, 0)
    assert {line.reason for line in vacuumed.lines if line.reason.goes} == {
        Reason.REMOVED,
        Reason.UNNAMED,
        Reason.REFUSED_WRITE,
        Reason.HEARTBEAT,
        Reason.PROBE,
        Reason.UNFINISHED,
    }
    assert (vacuumed.failures, vacuumed.notices) == ((), ())
    assert not vacuum(alone.open(role), execute=True).objects
    assert alone.open(Role.READER).read_arrow("t").read_all().num_rows == 3
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_admin_changes_shrinks_fences_and_deletes(alone: Guarded, caplog) -> None:
    leave_open(alone)
    consumer = join(alone)
    caplog.set_level(logging.INFO)
    warehouse = alone.open(Role.ADMIN)
    admin, partitions = warehouse.admin(), [TopicPartition("t", number) for number in range(2)]

    admin.alter_configs("t", {"retention.ms": str(DAY_MS)})
    fenced = Restoration(warehouse.completer, warehouse.admin()).fence_all()
    low = admin.delete_records(dict.fromkeys(partitions))
    shrunk = warehouse.read_arrow("t").read_all().num_rows
    admin.delete_topic("t")

    assert (fenced.aborted_transactions, fenced.expelled_members, fenced.prepared) == (1, 1, ())
    assert fenced.forgotten_transactional_ids == 2
    assert sum(low.values()) > 0
    assert shrunk == 0
    assert admin.list_topics() == []
    # The fenced consumer's own thread may have met the new incarnation by now, and say so.
    mine = [record for record in caplog.records if record.thread == threading.get_ident()]
    assert not [record for record in mine if record.levelno >= logging.WARNING]
    with pytest.raises(UnknownTopicOrPartitionError):
        alone.open(Role.READER).read_arrow("t")
    with pytest.raises(WarehouseReplacedError):
        consumer.close()

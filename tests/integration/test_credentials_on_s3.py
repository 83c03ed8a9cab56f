"""Assumed roles, web identities and encryption keys against a real S3, STS and IAM that enforce policies."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from botocore.exceptions import ClientError  # noqa: TID251  a refusal past every client of ours

from tests.integration.guarded_server import GuardedServer
from tests.simulation.site import TWO_COLUMNS, published
from txntable.errors import InvalidConfigError, StorePermissionError
from txntable.runtime.environment import SystemEnvironment
from txntable.storage.aws_session import s3_client
from txntable.storage.object_store import PutOutcome, StoreSpec
from txntable.storage.open import open_store
from txntable.storage.probe import probe
from txntable.testing.moto_server import LockedMotoServer
from txntable.warehouse.warehouse import Warehouse

pytestmark = pytest.mark.s3

BUCKET = "assumed"
URL = f"s3://{BUCKET}/lake"
ROLE = "arn:aws:iam::123456789012:role/etl"
READER = "arn:aws:iam::123456789012:role/reader"
KMS_KEY = "arn:aws:kms:us-east-1:123456789012:key/0b0f1f9e"


def allowing(action: str) -> dict[str, object]:
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": action, "Resource": "*"}]}


@dataclass(frozen=True)
class Callers:
    """Storage options: of a user who may do nothing but assume roles, and of nobody."""

    user: dict[str, str]
    nobody: dict[str, str]


@pytest.fixture(scope="module")
def callers() -> Iterator[Callers]:
    with GuardedServer(BUCKET) as server:
        iam = server.client("iam")
        for role, action in (("etl", "s3:*"), ("reader", "s3:Get*")):
            iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps(allowing("sts:AssumeRole")))
            iam.put_role_policy(RoleName=role, PolicyName="p", PolicyDocument=json.dumps(allowing(action)))
        user = {**server.user("caller", allowing("sts:AssumeRole")), "sts_endpoint": server.endpoint}
        server.guard()
        yield Callers(user, {name: value for name, value in user.items() if "KEY" not in name})


def with_role(options: dict[str, str], role: str = ROLE) -> dict[str, str]:
    return {**options, "role_arn": role, "role_session_name": "nightly"}


def test_user_without_the_role_is_refused(callers):
    options = {name: value for name, value in callers.user.items() if name != "sts_endpoint"}

    with pytest.raises(StorePermissionError):
        open_store(StoreSpec(URL, options)).put("a", b"")


def test_transaction_is_committed_with_the_keys_of_an_assumed_role(callers):
    warehouse = Warehouse.create(f"{URL}/one", storage_options=with_role(callers.user))
    warehouse.admin().create_topic("t", partitions=1, schema=TWO_COLUMNS)
    with warehouse.producer("etl") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", row={"account": "a", "amount": 1})
        producer.commit_transaction()

    again = Warehouse.open(f"{URL}/one", storage_options=with_role(callers.user))
    assert [row["account"] for row in published(again, "t")] == ["a"]


def test_role_may_do_no_more_than_its_policy_says(callers):
    open_store(StoreSpec(URL, with_role(callers.user))).put("a", b"1")
    reader = open_store(StoreSpec(URL, with_role(callers.user, READER)))

    assert reader.get_range("a", 0, 9) == b"1"
    with pytest.raises(StorePermissionError):
        reader.put("a", b"2")


@pytest.mark.parametrize("told_by", ["options", "environment"])
def test_web_identity_needs_a_token_and_no_keys(monkeypatch, tmp_path, told_by):
    # moto asks of this call who calls when it enforces policies, which AWS does not: hence a server that does not
    (tmp_path / "token").write_text("a token of the cluster")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with LockedMotoServer("identities") as server:
        options = {name: value for name, value in server.storage_options.items() if "KEY" not in name}
        identity = {"AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token")}
        if told_by == "options":
            options |= identity | {"sts_endpoint": server.endpoint}
        else:
            for name, value in {**identity, "AWS_ENDPOINT_URL_STS": server.endpoint}.items():
                monkeypatch.setenv(name, value)
        store = open_store(StoreSpec(server.url, options))

        assert store.put_if_absent("web", b"1") is PutOutcome.CREATED
        assert store.get_range("web", 0, 9) == b"1"
        assert server.requests == {"POST": 1, "PUT": 1, "GET": 1}


def test_another_process_assumes_the_role_anew(callers):
    store = open_store(StoreSpec(URL, with_role(callers.user)))
    store.put("before", b"")
    code = "import sys, pickle; pickle.load(sys.stdin.buffer).put('after', b'1')"

    subprocess.run([sys.executable, "-c", code], input=pickle.dumps(store), check=True)

    assert store.get_range("after", 0, 9) == b"1"


def test_botos_client_assumes_the_same_role(callers):
    open_store(StoreSpec(URL, with_role(callers.user))).put("seen", b"1")

    found = s3_client(StoreSpec(URL, with_role(callers.user))).head_object(Bucket=BUCKET, Key="lake/seen")

    assert found["ContentLength"] == 1
    without = {name: value for name, value in callers.user.items() if name != "sts_endpoint"}
    with pytest.raises(ClientError, match="403"):
        s3_client(StoreSpec(URL, without)).head_object(Bucket=BUCKET, Key="lake/seen")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"sse_kms_key_id": KMS_KEY}, ("aws:kms", KMS_KEY)),
        ({"server_side_encryption": "AES256"}, ("AES256", None)),
    ],
)
def test_objects_are_encrypted_as_said_however_they_were_written(options, expected):
    with LockedMotoServer("encrypted") as server:
        spec = StoreSpec(server.url, {**server.storage_options, **options})
        store = open_store(spec)
        store.put("whole", b"1")
        store.put_if_absent("conditional", b"1")
        with store.writer("parts") as file:
            file.write(b"x" * 9_000_000)

        client = s3_client(spec)
        heads = [client.head_object(Bucket="encrypted", Key=key) for key in ("whole", "conditional", "parts")]

    assert [(head.get("ServerSideEncryption"), head.get("SSEKMSKeyId")) for head in heads] == [expected] * 3


@pytest.fixture
def special_buckets() -> Iterator[dict[str, StoreSpec]]:
    """Give stores in a bucket that keeps old versions, and in one that forbids deleting them for a day."""
    with LockedMotoServer("ordinary") as server:
        specs = {name: StoreSpec(f"s3://{name}/lake", server.storage_options) for name in ("versioned", "locked")}
        client = s3_client(specs["locked"])
        client.create_bucket(Bucket="versioned")
        client.put_bucket_versioning(Bucket="versioned", VersioningConfiguration={"Status": "Enabled"})
        client.create_bucket(Bucket="locked", ObjectLockEnabledForBucket=True)
        rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}
        lock = {"ObjectLockEnabled": "Enabled", "Rule": rule}
        client.put_object_lock_configuration(Bucket="locked", ObjectLockConfiguration=lock)
        yield specs


def test_versioned_bucket_passes_the_probe_and_a_deleted_path_is_free_again(special_buckets):
    store = open_store(special_buckets["versioned"])
    probe(store, SystemEnvironment())
    store.put_if_absent("a", b"1")
    store.delete(["a"])

    assert store.get("a") is None
    assert store.put_if_absent("a", b"2") is PutOutcome.CREATED
    assert [meta.path for meta in store.list("")] == ["a"]


def test_bucket_with_object_lock_is_refused_and_the_remedy_named_when_no_checksums_are_sent(special_buckets):
    # that they suffice is not shown: moto asks for a header of AWS's SDKs, S3 for any checksum
    with pytest.raises(InvalidConfigError, match="checksum_algorithm"):
        probe(open_store(special_buckets["locked"]), SystemEnvironment())

"""Spark's S3 client goes by our storage options: asked by a store that knows users and roles, in a JVM of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.guarded_server import GuardedServer
from tests.spark import s3a_session
from tests.spark.test_failures import ROOT

pytestmark = pytest.mark.s3
ROLE = "arn:aws:iam::123456789012:role/reader"
BUCKETS = ("role-of-user", "user-of-options", "user-of-chain", "user-alone")
READ = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": "*"}],
}
ASSUME = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": ROLE}],
}
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}],
}


@pytest.fixture(scope="module")
def answer() -> Iterator[dict[str, Any]]:
    """What the program prints; only the role and one user may read, the other user may assume the role."""
    with GuardedServer(BUCKETS[0]) as server:
        store, iam = server.client("s3"), server.client("iam")
        for bucket in BUCKETS:
            store.create_bucket(Bucket=bucket)
            store.put_object(Bucket=bucket, Key=s3a_session.OBJECT, Body=bucket.encode())
        iam.create_role(RoleName="reader", AssumeRolePolicyDocument=json.dumps(TRUST))
        iam.put_role_policy(RoleName="reader", PolicyName="read", PolicyDocument=json.dumps(READ))
        reader, assuming = server.user("reading", READ), server.user("assuming", ASSUME)
        server.guard()
        here = {name: reader[name] for name in ("AWS_REGION", "AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP")}
        chain = {name: value for name, value in reader.items() if name not in here}
        given = {
            "role-of-user": {**assuming, "role_arn": ROLE, "sts_endpoint": server.endpoint},
            "user-of-options": reader,
            "user-of-chain": here,
            "user-alone": assuming,
        }
        told = run_session(given, chain)
        yield {**told, "secrets": [reader["AWS_SECRET_ACCESS_KEY"], assuming["AWS_SECRET_ACCESS_KEY"]]}


def run_session(given: dict[str, dict[str, str]], environment: dict[str, str]) -> dict[str, Any]:
    program = Path(s3a_session.__file__)
    ran = subprocess.run(
        [sys.executable, "-m", f"tests.spark.{program.stem}"],
        input=json.dumps(given),
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2_000:]
    told: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return told


@pytest.mark.parametrize("bucket", BUCKETS[:-1])
def test_spark_reads_with_the_credentials_that_the_options_name(answer: dict[str, Any], bucket: str) -> None:
    assert answer["read"][bucket] == bucket


def test_spark_is_refused_where_only_the_role_may_read_and_the_options_name_none(answer: dict[str, Any]) -> None:
    assert "user-alone" in answer["read"]["user-alone"]
    assert "FORBIDDEN" in answer["read"]["user-alone"]


def test_secret_is_neither_on_the_command_line_of_the_jvm_nor_among_the_settings_of_its_session(
    answer: dict[str, Any],
) -> None:
    assert "spark.jars.packages" in answer["shown"]
    assert [secret for secret in answer["secrets"] if secret in answer["shown"]] == []

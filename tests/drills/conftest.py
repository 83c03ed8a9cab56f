"""What a drill on S3 has: a server with the bucket of the runbook, which keeps versions, and a shell that knows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drills.runbook import Shell
from tests.drills.stage import Stage
from txntable.storage.aws_session import s3_client
from txntable.storage.object_store import StoreSpec
from txntable.testing.moto_server import LockedMotoServer


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Give the warehouse of the runbook, with a topic, in a bucket that keeps versions."""
    with LockedMotoServer("my-lake") as server:
        client = s3_client(StoreSpec(server.url, server.storage_options))
        client.put_bucket_versioning(Bucket="my-lake", VersioningConfiguration={"Status": "Enabled"})
        server.make_bucket("my-lake-backup")
        given = {name: value for name, value in server.storage_options.items() if name != "AWS_REGION"}
        shell = Shell(tmp_path, {**given, "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"})
        yield Stage(dict(server.storage_options), client, shell)

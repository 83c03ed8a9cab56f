"""Stands for ``python -m txntable.infra.deploy`` in a drill: the bucket of a stack is there, and keeps versions.

Run as a program, with the same arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import boto3  # noqa: TID251  makes a bucket past every client of ours


def main(arguments: Sequence[str]) -> None:
    """Make the bucket where it is missing."""
    assert "--stack" in arguments
    bucket = arguments[arguments.index("--bucket") + 1]
    client = boto3.client("s3")
    if bucket not in {each["Name"] for each in client.list_buckets()["Buckets"]}:
        region = client.meta.region_name
        elsewhere = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        client.create_bucket(Bucket=bucket, **elsewhere)
        client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})


if __name__ == "__main__":
    main(sys.argv[1:])

"""Whether a bucket protects its warehouse as the template says, asked of S3 itself.

Owns what is looked at.  CloudFormation's answer is not believed: what counts is what S3 does.  Changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from txntable.infra.lifecycle import dangers, reaches
from txntable.infra.policies import WarehousePlace, Writes, bucket_policy

_BLOCKED = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
_NONE = frozenset(
    {
        "NoSuchLifecycleConfiguration",
        "NoSuchPublicAccessBlockConfiguration",
        "NoSuchBucketPolicy",
        "ServerSideEncryptionConfigurationNotFoundError",
    }
)
_ABSENT = frozenset({"NoSuchBucket", "404"})


def bucket_exists(s3: Any, bucket: str) -> bool:
    """Return whether there is a bucket of the name that one may look at.

    Parameters
    ----------
    s3 : boto3 client
        Of S3.
    bucket : str
        Its name.
    """
    try:
        s3.head_bucket(Bucket=bucket)
    except ClientError as error:
        if error.response["Error"]["Code"] in _ABSENT:
            return False
        raise
    return True


def lifecycle_dangers(s3: Any, place: WarehousePlace) -> list[str]:
    """Return what the bucket's lifecycle rules would do to the warehouse; see :mod:`txntable.infra.lifecycle`."""
    return [str(danger) for danger in dangers(_rules(s3, place.bucket), place.prefix)]


def missing_protections(s3: Any, place: WarehousePlace, writes: Writes = Writes.CHECKED) -> list[str]:
    """Return what the bucket lacks of what the template gives it, each with the call that mends it.

    Parameters
    ----------
    s3 : boto3 client
        Of S3.
    place : WarehousePlace
        The warehouse.
    writes : Writes
        What its policy is to let pass.
    """
    return [*_missing(s3, place), *_missing_policy(s3, place, writes)]


def _missing(s3: Any, place: WarehousePlace) -> Iterator[str]:
    bucket = place.bucket
    blocked = _asked(s3.get_public_access_block, bucket).get("PublicAccessBlockConfiguration", {})
    if not all(blocked.get(name) for name in _BLOCKED):
        yield "public access is not blocked: put-public-access-block"
    if not _asked(s3.get_bucket_encryption, bucket):
        yield "the bucket has no default encryption: put-bucket-encryption"
    if _asked(s3.get_bucket_versioning, bucket).get("Status") != "Enabled":
        yield "deleted objects cannot be brought back: put-bucket-versioning"
    enabled = [rule for rule in _rules(s3, bucket) if rule.get("Status") == "Enabled" and reaches(rule, place.prefix)]
    if not any("AbortIncompleteMultipartUpload" in rule for rule in enabled):
        yield "parts of uploads that were given up are kept and paid for: put-bucket-lifecycle-configuration"


def _missing_policy(s3: Any, place: WarehousePlace, writes: Writes) -> Iterator[str]:
    text = _asked(s3.get_bucket_policy, place.bucket).get("Policy", "{}")
    found = json.loads(text).get("Statement", [])
    for statement in bucket_policy(place, writes)["Statement"]:
        if _plain(statement) not in map(_plain, found):
            yield f"the bucket's policy lacks {statement['Sid']}: put-bucket-policy"


def _plain(statement: Mapping[str, Any]) -> dict[str, Any]:
    """Return a statement as S3 may give it back: a list of one is one, and everybody is everybody of AWS."""
    plain = {
        name: value[0] if isinstance(value, list) and len(value) == 1 else value for name, value in statement.items()
    }
    return plain | {"Principal": "*"} if plain.get("Principal") == {"AWS": "*"} else plain


def _rules(s3: Any, bucket: str) -> list[Mapping[str, Any]]:
    rules: list[Mapping[str, Any]] = _asked(s3.get_bucket_lifecycle_configuration, bucket).get("Rules", [])
    return rules


def _asked(call: Callable[..., Mapping[str, Any]], bucket: str) -> Mapping[str, Any]:
    try:
        return call(Bucket=bucket)
    except ClientError as error:
        if error.response["Error"]["Code"] in _NONE:
            return {}
        raise

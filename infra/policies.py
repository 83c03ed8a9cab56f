"""What each role may do with a warehouse in S3, as IAM policy documents.

Pure.  Owns which paths a role reads, writes and deletes; the paths are those of PROTOCOL.md §2, and a test holds them
against the project's own.  Must not know how policies get to AWS.

Invariants: every resource lies below the warehouse's prefix, or is its bucket; nobody may delete the warehouse's
identity or the file behind a row; only the job that maintains a warehouse (and an admin) may delete at all.

An IAM policy cannot tell a new object from a replaced one: ``s3:PutObject`` allows both.  That an entry of a log is
never replaced is what :func:`bucket_policy` adds.  Nor can it look into an entry: who may write to a log may write any
commit to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias
from urllib.parse import urlsplit

Document: TypeAlias = dict[str, Any]

_VERSION = "2012-10-17"
BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_SEGMENT = re.compile(r"[A-Za-z0-9._-]+")


class Role(Enum):
    """Who works on a warehouse; a process that does two things is given two policies."""

    READER = "reader"
    CONSUMER = "consumer"
    PRODUCER = "producer"
    MAINTENANCE = "maintenance"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class WarehousePlace:
    """Where a warehouse is, for ARNs.

    Attributes
    ----------
    bucket : str
        The bucket's name.
    prefix : str
        Without slashes at its ends; empty: the whole bucket is the warehouse.
    partition : str
        ``aws``, ``aws-cn``, ``aws-us-gov``.
    kms_key : str, optional
        ARN of the key that encrypts the bucket; ``None``: S3's own.
    """

    bucket: str
    prefix: str = ""
    partition: str = "aws"
    kms_key: str | None = None

    @property
    def bucket_arn(self) -> str:
        """Return the ARN of the bucket."""
        return f"arn:{self.partition}:s3:::{self.bucket}"

    def arns(self, paths: Sequence[str]) -> list[str]:
        """Return the ARNs of paths (with IAM's ``*``) relative to the warehouse's root."""
        root = f"{self.bucket_arn}/{self.prefix}/" if self.prefix else f"{self.bucket_arn}/"
        return [root + path for path in paths]


def place_of(url: str, *, partition: str = "aws", kms_key: str | None = None) -> WarehousePlace:
    """Return the place that a warehouse's URL names.

    Parameters
    ----------
    url : str
        ``s3://bucket/prefix``.
    partition : str
        Of the ARNs.
    kms_key : str, optional
        ARN of the key that encrypts the bucket.

    Raises
    ------
    ValueError
        It is no such URL, or a part of it would mean something else in a policy, as ``*`` does.
    """
    parts = urlsplit(url)
    prefix = parts.path.strip("/")
    if parts.scheme not in {"s3", "s3a"} or not BUCKET_NAME.fullmatch(parts.netloc) or parts.query or parts.fragment:
        raise ValueError(f"this is no warehouse in S3; give s3://bucket/prefix url={url}")
    if prefix and not all(_SEGMENT.fullmatch(each) for each in prefix.split("/")):
        raise ValueError(f"a prefix with other than a-z A-Z 0-9 . _ - cannot be put into a policy url={url}")
    return WarehousePlace(parts.netloc, prefix, partition, kms_key)


_IDENTITY = "_warehouse.json"
_CLOCK = "system/clock"
_HEARTBEATS = "system/heartbeats/*"
_PROBES = "system/probe/*"
_TRANSACTION_LOG = "system/transaction_log"
_OFFSET_LOG = "system/offset_log"
_TOPICS = "topics/*"
# "*" spans slashes: this is P's log and that of S, which lies below it.
_TOPIC_LOGS = "topics/*/_delta_log/*"
_SEGMENTS = "topics/*/_segments/p*"
_MARKERS = "topics/*/_segments/markers/*"
_STATE_ENTRIES = "topics/*/_segments/state/*"


def _keyed_table(root: str) -> tuple[str, ...]:
    return (f"{root}/_delta_log/*", f"{root}/k/*")


@dataclass(frozen=True, slots=True)
class Grants:
    """What a role may do, by paths relative to the warehouse's root.

    Attributes
    ----------
    read, write, delete : tuple of str
        With IAM's ``*``.
    uploads : tuple of str
        Where it may abort multipart uploads: its own, or those that others left.
    finds_uploads : bool
        Whether it may list the unfinished uploads of the bucket.
    """

    read: tuple[str, ...]
    write: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    uploads: tuple[str, ...] = ()
    finds_uploads: bool = False


_READ = (_IDENTITY, f"{_TRANSACTION_LOG}/*", f"{_OFFSET_LOG}/*", _TOPICS)
_READ_AND_TELL_TIME = (*_READ, _CLOCK)
_PRODUCED = (
    _CLOCK,
    *_keyed_table(_TRANSACTION_LOG),
    *_keyed_table(_OFFSET_LOG),
    _TOPIC_LOGS,
    _SEGMENTS,
    _MARKERS,
)
_MAINTAINED = (*_PRODUCED, _STATE_ENTRIES)
_DELETED = (
    f"{_TRANSACTION_LOG}/_delta_log/*",
    f"{_OFFSET_LOG}/_delta_log/*",
    _TOPICS,
    _HEARTBEATS,
    _PROBES,
)

GRANTS: Mapping[Role, Grants] = {
    Role.READER: Grants(_READ),
    Role.CONSUMER: Grants((*_READ_AND_TELL_TIME, _HEARTBEATS), (_CLOCK, *_keyed_table(_OFFSET_LOG), _HEARTBEATS)),
    Role.PRODUCER: Grants(_READ_AND_TELL_TIME, _PRODUCED, uploads=(_SEGMENTS,)),
    Role.MAINTENANCE: Grants(
        (*_READ_AND_TELL_TIME, _HEARTBEATS), _MAINTAINED, _DELETED, uploads=(_TOPICS,), finds_uploads=True
    ),
    Role.ADMIN: Grants(
        (*_READ_AND_TELL_TIME, _HEARTBEATS, _PROBES),
        (*_MAINTAINED, _IDENTITY, _PROBES),
        _DELETED,
        uploads=(_TOPICS,),
        finds_uploads=True,
    ),
}
"""Role -> what it may do.  Completing what is decided is everybody's who may write; a reader waits for them."""


def role_policy(role: Role, place: WarehousePlace) -> Document:
    """Return the identity policy of a role.

    Parameters
    ----------
    role : Role
        Who.
    place : WarehousePlace
        On which warehouse.
    """
    grants = GRANTS[role]
    statements = [_list_statement(place), _allow("Read", ["s3:GetObject"], place.arns(grants.read))]
    if grants.write:
        statements.append(_allow("Write", ["s3:PutObject"], place.arns(grants.write)))
    if grants.uploads:
        # Vacuum says how large they are.
        seen = ["s3:ListMultipartUploadParts"] if grants.finds_uploads else []
        statements.append(_allow("AbortUploads", ["s3:AbortMultipartUpload", *seen], place.arns(grants.uploads)))
    if grants.finds_uploads:
        statements.append(_allow("FindUploads", ["s3:ListBucketMultipartUploads"], [place.bucket_arn]))
    if grants.delete:
        statements.append(_allow("Delete", ["s3:DeleteObject"], place.arns(grants.delete)))
    if place.kms_key is not None:
        # A multipart upload is read back by S3 with the same key, so who writes needs both.
        keys = ["kms:Decrypt", "kms:GenerateDataKey"] if grants.write else ["kms:Decrypt"]
        statements.append(_allow("UseKey", keys, [place.kms_key]))
    return {"Version": _VERSION, "Statement": statements}


def _list_statement(place: WarehousePlace) -> Document:
    """Return the permission to list, without which S3 answers 403 where the protocol needs to hear 404.

    A GET of an absent object carries no ``s3:prefix``: a condition without ``IfExists`` would refuse it the 404.
    """
    statement = _allow("List", ["s3:ListBucket"], [place.bucket_arn])
    if place.prefix:
        statement["Condition"] = {"StringLikeIfExists": {"s3:prefix": [place.prefix, f"{place.prefix}/*"]}}
    return statement


def _allow(sid: str, actions: Sequence[str], resources: Sequence[str]) -> Document:
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}


WRITTEN_ONCE = (
    _IDENTITY,
    f"{_TRANSACTION_LOG}/_delta_log/*.json",
    f"{_TRANSACTION_LOG}/_delta_log/*.parquet",
    f"{_OFFSET_LOG}/_delta_log/*.json",
    f"{_OFFSET_LOG}/_delta_log/*.parquet",
    "topics/*/_delta_log/*.json",
    "topics/*/_delta_log/*.parquet",
)
"""What every writer puts with ``If-None-Match: *``; ``_last_checkpoint`` is replaced each time, and is none of them."""


class Writes(Enum):
    """What a bucket lets anybody write into the warehouse, whatever their own policies allow."""

    CHECKED = "checked"
    """Everything; what is written once must be put if absent."""
    ANY = "any"
    """Everything, as a restore needs it, which copies."""
    NONE = "none"
    """Nothing, as a backup needs it."""


def bucket_policy(place: WarehousePlace, writes: Writes = Writes.CHECKED) -> Document:
    """Return the policy of the bucket: TLS only, and no entry of a log is ever replaced.

    Parameters
    ----------
    place : WarehousePlace
        Of the warehouse.
    writes : Writes
        What may be written.

    Notes
    -----
    All are denials, so they bind every principal, the account's administrators too.  Entries are never uploaded in
    parts; ``s3:ObjectCreationOperation`` lets parts pass (they take no condition) and still asks it of the request
    that makes an object of them.  Copying sends no condition, and is denied.
    """
    transport = _deny("DenyWithoutTls", ["s3:*"], [place.bucket_arn, f"{place.bucket_arn}/*"])
    transport["Condition"] = {"Bool": {"aws:SecureTransport": "false"}}
    replacing = _deny("DenyReplacingLogEntries", ["s3:PutObject"], place.arns(WRITTEN_ONCE))
    replacing["Condition"] = {"Null": {"s3:if-none-match": "true"}, "Bool": {"s3:ObjectCreationOperation": "true"}}
    writing = _deny("DenyWrites", ["s3:PutObject", "s3:DeleteObject"], place.arns(["*"]))
    further = {Writes.CHECKED: [replacing], Writes.ANY: [], Writes.NONE: [writing]}
    return {"Version": _VERSION, "Statement": [transport, *further[writes]]}


def _deny(sid: str, actions: Sequence[str], resources: Sequence[str]) -> Document:
    return {"Sid": sid, "Effect": "Deny", "Principal": "*", "Action": list(actions), "Resource": list(resources)}

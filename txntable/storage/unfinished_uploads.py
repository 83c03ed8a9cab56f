"""What writers have begun to send to S3 in parts, and neither completed nor given up: in no listing, and paid for.

Owns how such an upload is named here: the object that it would have become, and S3's id of the upload.  Must not
know which uploads are old enough to go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from botocore.exceptions import ClientError  # noqa: TID251

from txntable.errors import InvalidRequestError, StorePermissionError
from txntable.storage.object_store import ObjectMeta, StoreSpec
from txntable.storage.s3_listing import changed_ms, place, told

_ID = "?uploadId="
_GONE = "NoSuchUpload"


def unfinished_uploads(spec: StoreSpec) -> Iterator[ObjectMeta]:
    """Yield the uploads under the store's prefix.

    The size is that of the parts that are there; 0 where these credentials may not ask for them.

    Parameters
    ----------
    spec : StoreSpec
        With a URL of S3.

    Raises
    ------
    StorePermissionError
        These credentials may not ask; the message names the action.
    StoreUnavailableError
        Try again.
    """
    client, bucket, prefix = place(spec)
    with told(spec, "s3:ListBucketMultipartUploads"):
        pages = list(client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=prefix))
    for upload in (upload for page in pages for upload in page.get("Uploads", ())):
        named = {"Bucket": bucket, "Key": upload["Key"], "UploadId": upload["UploadId"]}
        try:
            size = _size(client, spec, named)
        except StorePermissionError:
            size = 0
        path = f"{upload['Key'].removeprefix(prefix)}{_ID}{upload['UploadId']}"
        yield ObjectMeta(path, size, changed_ms(upload["Initiated"]))


def abort_uploads(spec: StoreSpec, paths: Sequence[str]) -> None:
    """Give uploads up, and let their parts go; one that is gone already is no error.

    Parameters
    ----------
    spec : StoreSpec
        With a URL of S3.
    paths : sequence of str
        As :func:`unfinished_uploads` yields them.

    Raises
    ------
    InvalidRequestError
        A path is none of those.
    StorePermissionError, StoreUnavailableError
        As for :func:`unfinished_uploads`.
    """
    for path in paths:
        if _ID not in path:
            raise InvalidRequestError("only an unfinished upload is discarded; delete objects", path=path)
    client, bucket, prefix = place(spec)
    for path in paths:
        key, _, upload_id = path.rpartition(_ID)
        with told(spec, "s3:AbortMultipartUpload"):
            _unless_gone(partial(client.abort_multipart_upload, Bucket=bucket, Key=prefix + key, UploadId=upload_id))


def _size(client: Any, spec: StoreSpec, upload: dict[str, str]) -> int:
    with told(spec, "s3:ListMultipartUploadParts"):
        pages = _unless_gone(lambda: list(client.get_paginator("list_parts").paginate(**upload))) or ()
    return sum(part["Size"] for page in pages for part in page.get("Parts", ()))


def _unless_gone(call: Callable[[], Any]) -> Any | None:
    try:
        return call()
    except ClientError as error:
        if error.response["Error"]["Code"] == _GONE:
            return None
        raise

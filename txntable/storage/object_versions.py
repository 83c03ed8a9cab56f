"""Earlier versions of objects that a versioned bucket of S3 keeps: deleted or replaced, in no listing, and readable.

Owns which those are: every version that is not the newest, also behind a delete marker.  Must not know what they hold.
"""

from __future__ import annotations

from collections.abc import Iterator

from txntable.storage.object_store import ObjectMeta, StoreSpec
from txntable.storage.s3_listing import changed_ms, place, told


def kept_versions(spec: StoreSpec) -> Iterator[ObjectMeta]:
    """Yield the versions under the store's prefix that are not the newest of their objects.

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
    with told(spec, "s3:ListBucketVersions"):
        pages = client.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix)
        found = [one for page in pages for one in page.get("Versions", ()) if not one["IsLatest"]]
    for one in found:
        yield ObjectMeta(one["Key"].removeprefix(prefix), one["Size"], changed_ms(one["LastModified"]))

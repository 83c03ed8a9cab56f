"""A stream's id is read from a checkpoint on S3's API, by the options of the warehouse."""

from __future__ import annotations

import pytest

from txntable.errors import InvalidRequestError
from txntable.spark.writing.streaming_query import checkpoint_query_id
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store
from txntable.testing.moto_server import LockedMotoServer


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_the_id_of_a_stream_is_read_from_a_checkpoint_in_a_bucket(scheme: str) -> None:
    with LockedMotoServer("streams") as server:
        warehouse = StoreSpec("s3://streams/wh", server.storage_options)
        # Of its own: servers of one process share their buckets.
        checkpoint = f"{scheme}://streams/checkpoint-{scheme}"
        with pytest.raises(InvalidRequestError, match="transactionalId"):
            checkpoint_query_id(checkpoint, warehouse)
        open_store(StoreSpec(checkpoint, server.storage_options)).put("metadata", b'{"id":"0f8fad5b"}')

        assert checkpoint_query_id(checkpoint, warehouse) == "0f8fad5b"

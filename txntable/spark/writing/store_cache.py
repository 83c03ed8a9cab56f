"""Open stores of a process: executors run many tasks, and opening a store may cost a request for credentials.

Owns nothing but them; a store is opened once for each way of opening it.
"""

from __future__ import annotations

import json

from txntable.storage.object_store import ObjectStore, StoreSpec
from txntable.storage.open import open_store

_open_stores: dict[str, ObjectStore] = {}


def opened(spec: StoreSpec) -> ObjectStore:
    """Return the store, opened at the first call of this process."""
    key = store_key(spec)
    if key not in _open_stores:
        _open_stores[key] = open_store(spec)
    return _open_stores[key]


def store_key(spec: StoreSpec) -> str:
    """Return what tells ways of opening apart."""
    return json.dumps([spec.url, dict(spec.options), spec.durability], sort_keys=True)

"""A site of the simulations moved into a real S3 API whose answers go wrong, and back again to be looked at.

What is prepared in memory is put into moto's bucket behind the API's back, with its times; moto's clock is the site's.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import FakeBucket, FakeKey, s3_backends

from tests.doubles.faulty_proxy import FaultyServer, HttpRule, Request
from tests.simulation.site import Site
from txntable.errors import TxnTableError
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.storage.object_store import StoredObject, StoreSpec
from txntable.storage.remote import RemoteStore
from txntable.warehouse.warehouse import Warehouse, create_on, open_on

T = TypeVar("T")
_MILLISECOND = dt.timedelta(milliseconds=1)
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  moto's times have no zone


@dataclass
class Outcome:
    """What came of one run of an operation under a fault.

    Attributes
    ----------
    error : TxnTableError or None
        What its first attempt raised; the second one succeeded.
    requests : list of Request
        Of both.
    """

    error: TxnTableError | None
    requests: list[Request]


class FaultySite:
    """One bucket behind a server whose answers go wrong.

    Parameters
    ----------
    server : FaultyServer
        Runs.
    """

    def __init__(self, server: FaultyServer) -> None:
        self.server = server
        self._site = Site()
        self.store = self._new_store()

    def _new_store(self) -> RemoteStore:
        # Nothing is sent again at the store: each fault reaches what is above it.
        return RemoteStore(StoreSpec(self.server.url, {**self.server.storage_options, "retry_timeout": "0"}))

    def now(self) -> dt.datetime:
        """The store's time."""
        return _EPOCH + self._site.objects.clock() * _MILLISECOND

    def run(self, site: Site, operation: Callable[[Attempt], object], *plan: HttpRule) -> Outcome:
        """Do an operation on what a site holds, twice if need be; the site then holds what was made of it."""
        self.load(site)
        self.server.follow(*plan)
        attempt = Attempt(self)
        operation(attempt)
        outcome = Outcome(attempt.error, self.server.seen)
        self.server.heal()
        self._unload(site)
        return outcome

    def open(self) -> Warehouse:
        """Open the warehouse in a new process."""
        return open_on(self.store, self._site.environment())

    def create(self) -> Warehouse:
        """Create the warehouse in a new process, or finish that."""
        return create_on(self.store, self._site.environment(), exist_ok=True, settings=WarehouseSettings())

    def _bucket(self) -> FakeBucket:
        return s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[self.server.bucket]

    def load(self, site: Site) -> None:
        """Hold what a site holds, and nothing else; the store's time is the site's from now on."""
        self._site = site
        # Another process: it does not go slowly because an earlier one was asked to.
        self.store = self._new_store()
        bucket, backend = self._bucket(), s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        for name in list(bucket.keys):
            bucket.keys.pop(name)
        bucket.multiparts.clear()
        for path, found in site.objects.snapshot().items():
            key = backend.put_object(self.server.bucket, path, found.data)
            key.last_modified = _EPOCH + found.last_modified_ms * _MILLISECOND

    def _unload(self, site: Site) -> None:
        found = self._bucket().keys
        site.objects.restore({path: StoredObject(found[path].value, _time_ms(found[path])) for path in found})


class Attempt:
    """One run of an operation: what fails is done again when everything goes well.

    Attributes
    ----------
    site : FaultySite
        Where.
    error : TxnTableError or None
        What failed at first.
    """

    def __init__(self, site: FaultySite) -> None:
        self.error: TxnTableError | None = None
        self.site = site

    def at(self, call: Callable[[Warehouse], object]) -> None:
        """Open the warehouse and call; after a clear error once more, in a new process."""
        self.twice(lambda: call(self.site.open()))

    def creating(self) -> None:
        """Create the warehouse."""
        self.twice(self.site.create)

    def twice(self, call: Callable[[], T]) -> T:
        """Call; after a clear error once more."""
        try:
            return call()
        except TxnTableError as error:
            if not is_clear(error):
                raise
            self.error = error
            # What was asked for stays told: the requests of both count.
            self.site.server.stop_failing()
            return call()


def is_clear(error: TxnTableError) -> bool:
    """Whether a caller knows what to do, call again, or abort and begin again; and is told where it happened."""
    return bool(error.facts) and (error.retriable or error.txn_requires_abort)


@contextmanager
def served(bucket: str) -> Iterator[FaultySite]:
    """Run a server whose clock is the site's."""
    with FaultyServer(bucket) as server, pytest.MonkeyPatch.context() as patch:
        site = FaultySite(server)
        patch.setattr("moto.s3.models.utcnow", site.now)
        yield site


def _time_ms(key: FakeKey) -> int:
    return (key.last_modified - _EPOCH) // _MILLISECOND

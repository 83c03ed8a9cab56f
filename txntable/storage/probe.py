"""The capability probe: whether a store keeps what ``object_store`` promises (PROTOCOL.md §4.2).

A warehouse is created only where it passed.  It cannot prove a store right; it finds the ones
that ignore the condition of a put-if-absent, check it without a lock, or show writes late.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass

from txntable.errors import StorePermissionError, StoreUnavailableError, StoreUnsuitableError
from txntable.format.layout import PROBE_FOLDER
from txntable.runtime.environment import Environment
from txntable.storage.object_store import ObjectStore, PutOutcome
from txntable.storage.side_by_side import threads

RACERS = 16
ROUNDS = 4


@dataclass(frozen=True, slots=True)
class StoreCapabilities:
    """What the probe found; kept in ``_warehouse.json``.

    Attributes
    ----------
    racers, rounds : int
        Put-if-absents that raced for one path, and how often; one won each time.
    probed_at_ms : int
        The store's time, in ms since 1970.
    durability : str
        ``"full"`` or ``"page-cache"``.
    """

    racers: int
    rounds: int
    probed_at_ms: int
    durability: str


def probe(store: ObjectStore, environment: Environment) -> StoreCapabilities:
    """Try the store out under :data:`txntable.format.layout.PROBE_FOLDER`, and clean up.

    Parameters
    ----------
    store : ObjectStore
        Has to allow GET, PUT, LIST and DELETE.
    environment : Environment
        Gives the names of the probe's objects.

    Raises
    ------
    StoreUnsuitableError
        It failed; the message says at what.  Choose another store.
    StoreUnavailableError
        It did not answer often enough to tell; try again.
    StorePermissionError
        These credentials may not do all that a warehouse needs.
    """
    folder = f"{PROBE_FOLDER}/{environment.new_id()}"
    paths = [f"{folder}-{number}" for number in range(ROUNDS)]
    try:
        if not all([_race(store, path) for path in paths]):  # noqa: C419  every round is run
            raise StoreUnavailableError("the store lost answers during the probe; try again", url=store.spec.url)
        probed_at_ms = _check_one_object(store, f"{folder}-one")
    finally:
        with contextlib.suppress(StorePermissionError, StoreUnavailableError):
            store.delete([*paths, f"{folder}-one"])
    return StoreCapabilities(RACERS, ROUNDS, probed_at_ms, store.spec.durability)


def _race(store: ObjectStore, path: str) -> bool:
    """Run one race; False when lost answers hide who won."""
    start = threading.Barrier(RACERS)

    def run(number: int) -> PutOutcome | None:
        start.wait()
        try:
            return store.put_if_absent(path, b"%d" % number)
        except StoreUnavailableError:
            return None

    with threads(RACERS) as pool:
        outcomes = list(pool.map(run, range(RACERS)))
    winners = [number for number, outcome in enumerate(outcomes) if outcome is PutOutcome.CREATED]
    found = store.get(path)
    if len(winners) > 1:
        raise _unsuitable(store, "several racing put-if-absents of one path succeeded", winners=len(winners))
    if found is None and (winners or None not in outcomes):
        raise _unsuitable(store, "an object just written cannot be read")
    if found is not None and winners and found.data != b"%d" % winners[0]:
        raise _unsuitable(store, "a put-if-absent that was answered 'exists' replaced the object")
    return bool(winners)


def _check_one_object(store: ObjectStore, path: str) -> int:
    """Check replacing, put-if-absent on a present object, HEAD and LIST; return the store's time."""
    store.put(path, b"first")
    store.put(path, b"second")
    if store.put_if_absent(path, b"third") is not PutOutcome.EXISTS:
        raise _unsuitable(store, "a put-if-absent of a present object succeeded")
    found, meta = store.get(path), store.head(path)
    if found is None or meta is None or found.data != b"second" or meta.size != len(found.data):
        raise _unsuitable(store, "a replaced object is not read as it was written last")
    if path not in {listed.path for listed in store.list(PROBE_FOLDER)}:
        raise _unsuitable(store, "an object just written is not listed")
    return meta.last_modified_ms


def _unsuitable(store: ObjectStore, what: str, **facts: object) -> StoreUnsuitableError:
    remedy = "this store would lose transactions; choose S3, GCS, Azure or a local disk"
    return StoreUnsuitableError(f"{what}: {remedy}", url=store.spec.url, **facts)

"""A store that counts how often its process waits for an answer: what it asks for at once is one round trip.

Counts chains of requests and measures no time.  Owns what may be asked for at once: as a remote store does it, so many
objects as :attr:`~txntable.storage.object_store.ObjectStore.parallel_reads` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from tests.doubles.stepping_store import SteppingStore
from txntable.storage.object_store import ObjectStore, StoredObject
from txntable.storage.remote import RemoteStore

_SEGMENT = "/_segments/p"


class WaitingStore(SteppingStore):
    """A process's access to a store that is asked as a remote one is.

    Parameters
    ----------
    inner : ObjectStore
        Where the objects are.
    """

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.parallel_reads = RemoteStore.parallel_reads
        self._spared = 0

    @property
    def round_trips(self) -> int:
        """Return how many answers the process has waited for, one after the other."""
        reads = [_SEGMENT in step.path for step in self.steps]
        # A reader asks for the segments that come next while it waits for one.
        together = sum(one and before for before, one in pairwise(reads))
        return len(self.steps) - self._spared - together

    def get_many(self, paths: Sequence[str]) -> list[StoredObject | None]:
        """Return the objects, a step each, and a round trip for so many as are asked for at once."""
        found = super().get_many(paths)
        self._spared += len(paths) - math.ceil(len(paths) / self.parallel_reads)
        return found

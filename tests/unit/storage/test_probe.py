"""The probe finds the stores that would lose transactions."""

from __future__ import annotations

import pytest

from tests.doubles.manual_environment import ManualEnvironment
from tests.doubles.memory_store import MemoryStore
from tests.doubles.read_only_store import ReadOnlyStore
from txntable.errors import StorePermissionError, StoreUnavailableError, StoreUnsuitableError
from txntable.storage.object_store import ObjectMeta, PutOutcome, StoredObject
from txntable.storage.probe import RACERS, ROUNDS, probe

pytestmark = pytest.mark.usefixtures("probes_as_they_are")


class IgnoresTheCondition(MemoryStore):
    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        self.put(path, data)
        return PutOutcome.CREATED


class ReplacesAndSaysExists(MemoryStore):
    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        outcome = super().put_if_absent(path, data)
        self.put(path, data)
        return outcome


class ShowsNothingYet(MemoryStore):
    def get(self, path: str) -> StoredObject | None:
        return None


class ListsNothingYet(MemoryStore):
    def list(self, prefix: str):
        return iter(())


class NeverReplaces(MemoryStore):
    def put(self, path: str, data: bytes) -> None:
        super().put_if_absent(path, data)


class CreatesWhatIsThere(MemoryStore):
    """Right in races, wrong when the object is old."""

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        return PutOutcome.CREATED if path.endswith("-one") else super().put_if_absent(path, data)


class ForgetsTheSize(MemoryStore):
    def head(self, path: str) -> ObjectMeta | None:
        return None


class LosesAnswers(MemoryStore):
    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        super().put_if_absent(path, data)
        raise StoreUnavailableError("lost")


def test_probe_tells_what_it_found_and_cleans_up(store):
    found = probe(store, ManualEnvironment())

    assert (found.racers, found.rounds, found.durability) == (RACERS, ROUNDS, store.spec.durability)
    assert found.probed_at_ms > 0
    assert list(store.list("")) == []


@pytest.mark.parametrize(
    "unsuitable",
    [
        IgnoresTheCondition,
        ReplacesAndSaysExists,
        ShowsNothingYet,
        ListsNothingYet,
        NeverReplaces,
        CreatesWhatIsThere,
        ForgetsTheSize,
    ],
)
def test_probe_refuses_the_store_when_it_breaks_the_contract(unsuitable):
    store = unsuitable()

    with pytest.raises(StoreUnsuitableError, match="choose S3"):
        probe(store, ManualEnvironment())

    assert store.objects.snapshot() == {}


def test_probe_can_not_tell_when_every_answer_is_lost():
    store = LosesAnswers()

    with pytest.raises(StoreUnavailableError):
        probe(store, ManualEnvironment())

    assert store.objects.snapshot() == {}


def test_probe_says_so_when_nothing_may_be_written():
    with pytest.raises(StorePermissionError):
        probe(ReadOnlyStore(MemoryStore()), ManualEnvironment())

"""Topics that whoever verifies may not read: they are told among the damages, and the others are verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.doubles.memory_store import MemoryStore
from tests.doubles.read_only_store import ReadOnlyStore
from tests.simulation.site import Site
from tests.unit.verification.stored import U, delete_all
from txntable.errors import StorePermissionError
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT
from txntable.storage.object_store import ObjectMeta, StoredObject
from txntable.verification.damage import DamageKind, Verification
from txntable.warehouse.stored_warehouse import verify_stored
from txntable.warehouse.warehouse import Warehouse


class GuardedStore(ReadOnlyStore):
    """Refuses to read below one folder, as the rights of one team do."""

    def __init__(self, inner: MemoryStore, folder: str) -> None:
        super().__init__(inner)
        self._folder = folder

    def get(self, path: str) -> StoredObject | None:
        self._check(path)
        return super().get(path)

    def get_many(self, paths: Sequence[str]) -> list[StoredObject | None]:
        self._check(*paths)
        return super().get_many(paths)

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        self._check(path)
        return super().get_range(path, start, length)

    def head(self, path: str) -> ObjectMeta | None:
        self._check(path)
        return super().head(path)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        self._check(prefix)
        return super().list(prefix)

    def _check(self, *paths: str) -> None:
        for path in paths:
            if f"{path}/".startswith(f"{self._folder}/"):
                raise StorePermissionError("the store refused", path=path, action="s3:GetObject")


def verified_without(site: Site, folder: str, topics: Sequence[str] | None = None) -> Verification:
    return verify_stored(GuardedStore(MemoryStore(site.objects), folder), topics)


@pytest.mark.parametrize("folder", ["topics/u", U, f"{U}/_delta_log", f"{U}/p00000"])
@pytest.mark.parametrize("topics", [None, ["t", "u"]])
def test_topic_that_may_not_be_read_is_told_and_the_others_are_verified(
    site: Site, warehouse: Warehouse, folder: str, topics: list[str] | None
) -> None:
    segment = next(path for path in site.objects.snapshot() if path.startswith("topics/t/_segments/p00000/"))
    site.objects.delete(segment)

    found = {one.path: one for one in verified_without(site, folder, topics).damages}

    assert {path: one.kind for path, one in found.items()} == {
        segment: DamageKind.SEGMENT_MISSING,
        "topics/u": DamageKind.NOT_ALLOWED,
    }
    assert "action=s3:GetObject" in found["topics/u"].problem
    assert "give who verifies the right" in found["topics/u"].remedy


def test_lost_topic_whose_place_may_not_be_read_is_told_as_that(site: Site, warehouse: Warehouse) -> None:
    delete_all(site, "topics/u")

    (found,) = verified_without(site, "topics/u").damages

    assert (found.kind, found.path) == (DamageKind.NOT_ALLOWED, "topics/u")


@pytest.mark.parametrize("folder", [TRANSACTION_LOG_ROOT, OFFSET_LOG_ROOT])
def test_verification_is_refused_where_the_logs_of_the_warehouse_may_not_be_read(
    site: Site, warehouse: Warehouse, folder: str
) -> None:
    with pytest.raises(StorePermissionError):
        verified_without(site, folder)

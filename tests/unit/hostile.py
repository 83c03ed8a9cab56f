"""Golden warehouses with something hostile in them, and every way in which a client reads one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from tests.doubles.memory_store import MemoryObjects, MemoryStore
from tests.doubles.read_only_store import ReadOnlyStore
from tests.simulation.site import Site
from txntable.errors import DamagedDataError, TxnTableError, UnsupportedFormatError
from txntable.format.isolation import IsolationLevel
from txntable.format.layout import topic_names
from txntable.format.object_path import check_path
from txntable.storage.object_store import ObjectMeta, StoredObject
from txntable.warehouse.warehouse import Warehouse, open_on

REFUSED = (DamagedDataError, UnsupportedFormatError)


class RecordingStore(ReadOnlyStore):
    """A reader's store that takes note of each path that is asked for."""

    def __init__(self, objects: MemoryObjects) -> None:
        super().__init__(MemoryStore(objects))
        self.asked: list[str] = []

    def get(self, path: str) -> StoredObject | None:
        self.asked.append(path)
        return super().get(path)

    def get_many(self, paths) -> list[StoredObject | None]:
        return [self.get(path) for path in paths]

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        self.asked.append(path)
        return super().get_range(path, start, length)

    def head(self, path: str) -> ObjectMeta | None:
        self.asked.append(path)
        return super().head(path)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        self.asked.append(prefix)
        return super().list(prefix)


def warehouse_of(objects: dict[str, bytes]) -> tuple[Site, RecordingStore]:
    """Return a site that holds these objects, long after, and a reader's store to it."""
    site = Site()
    for path, data in objects.items():
        site.objects.put(path, data)
    site.advance_ms(10 * 86_400_000)
    return site, RecordingStore(site.objects)


def read_everything(site: Site, store: RecordingStore) -> None:
    """Open the warehouse and read all of it: both logs, groups, every topic at every level, its records."""
    warehouse = open_on(store, site.environment())
    warehouse.transactions.refresh()
    list(warehouse.transactions.rows())
    warehouse.offsets.refresh()
    warehouse.settings()
    for name in topic_names(store.folders("topics")):
        _read_topic(warehouse, name)


def _read_topic(warehouse: Warehouse, name: str) -> None:
    topic = warehouse.topic_log(name)
    topic.segments.refresh()
    topic.public.refresh()
    reader = warehouse.topic_reader(name)
    for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
        view = reader.view(level)
        for partition in view.bounds:
            view.columns.max_timestamps_ms(view.columns.rows_between(partition, 0, 1 << 40))
        # Golden warehouses have logs only: their segments are gone, which is a refusal of its own.
        answer_to(partial(_read_records, warehouse, name, level))


def _read_records(warehouse: Warehouse, name: str, level: IsolationLevel) -> None:
    warehouse.read_arrow(name, isolation_level=level).read_all()


def answer_to(act: Callable[[], object]) -> TxnTableError | None:
    """Return the refusal that an act meets; ``None``: it goes through.  Anything else that it raises is a defect."""
    try:
        act()
    except REFUSED as error:
        return error
    return None


def stays_inside(store: RecordingStore) -> bool:
    """Return whether everything that was asked for lies below the warehouse's root."""
    return all(not path or check_path(path.removesuffix("/")) for path in store.asked)

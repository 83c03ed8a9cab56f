"""The bucket is lost, and what is left is a replica that lags, and not in the order of the writes.

Lost: what was committed after the moment up to which the replica is whole.  Not lost: what was told committed before
it, whole, with its offsets.  A moment that is too late is told by ``warehouse verify``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3 import models as moto_s3

from tests.doubles.memory_store import MemoryObjects
from tests.drills.stage import NEW, TOPICS, Stage, Writer
from tests.simulation.site import TWO_COLUMNS, Site
from txntable.admin.restoration import Restoration
from txntable.errors import DamagedDataError

TITLE, REPLICA = "Only a replica is left", "my-lake-replica"
HOUR_MS = 3_600_000
Put = tuple[str, bytes]


class Noted(MemoryObjects):
    """A store that notes what is put into it."""

    puts: Sequence[Put] = ()

    def _set(self, path: str, data: bytes) -> None:
        super()._set(path, data)
        self.puts = [*self.puts, (path, data)]


@dataclass
class Source:
    """A warehouse with some transactions: its puts in their order, and how many there were when each was told."""

    puts: Sequence[Put] = ()
    told: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        site = Site()
        site.objects = noted = Noted(site.objects.clock)
        admin = site.create().admin()
        for topic in TOPICS:
            admin.create_topic(topic, partitions=1, schema=TWO_COLUMNS)
        self.begun = len(noted.puts)
        producer = site.open().producer("etl")
        producer.init_transactions()
        writer = Writer(producer, "etl")
        for _ in range(3):
            writer.transact()
            self.told.append((len(noted.puts), writer.told[-1]))
        self.puts = noted.puts

    def told_within(self, count: int) -> list[str]:
        return [name for end, name in self.told if end <= count]


@pytest.fixture(scope="module")
def source() -> Source:
    return Source()


def replica_of(puts: Sequence[Put]) -> Site:
    """A warehouse that has these objects, an hour later."""
    site = Site(started=100)
    for path, data in puts:
        site.objects.put(path, data)
    site.advance_ms(HOUR_MS)
    return site


def verified(site: Site) -> bool:
    try:
        return not site.open().verify().damages
    except DamagedDataError:
        return False


def seen(site: Site) -> list[str]:
    """The transactions that are there, each whole."""
    warehouse = site.open()
    orders, paid = (warehouse.read_arrow(topic).read_all().sort_by("_offset")["account"] for topic in TOPICS)
    assert orders == paid
    return list(map(str, orders.to_pylist()))


def fence(site: Site) -> None:
    warehouse = site.open()
    Restoration(warehouse.completer, warehouse.admin()).fence_all()


def test_everything_up_to_any_moment_is_a_consistent_cut(source: Source) -> None:
    for count in range(source.begun, len(source.puts) + 1, 2):
        site = replica_of(source.puts[:count])

        assert verified(site), count
        fence(site)

        told = source.told_within(count)
        assert seen(site)[: len(told)] == told, count
        again = Writer(site.open().producer("etl"), "again")
        again.producer.init_transactions()
        again.transact()
        assert seen(site)[-1:] == again.told, count


def test_replica_that_lacks_an_object_is_told_by_the_verification_or_has_lost_nothing(source: Source) -> None:
    found = 0
    count = source.told[1][0]
    for missing in range(source.begun, count):
        site = replica_of([*source.puts[:missing], *source.puts[missing + 1 : count]])

        if verified(site):
            fence(site)
            assert seen(site) == source.told_within(count), source.puts[missing][0]
        else:
            found += 1
    assert found > (count - source.begun) / 2


def objects_of(bucket: str) -> Iterator[tuple[str, moto_s3.FakeKey]]:
    for path, key in moto_s3.s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[bucket].keys.items():
        if isinstance(key, moto_s3.FakeKey):
            yield path, key


def stamp(then: dt.datetime, known: set[str]) -> None:
    """Let what is new in the bucket be of that time."""
    for path, key in objects_of("my-lake"):
        if path not in known:
            key.last_modified = then
            known.add(path)


def replicate(stage: Stage, paths: Sequence[str]) -> None:
    """Copy objects with their dates, as S3's replication does."""
    for path in paths:
        stage.client.copy({"Bucket": "my-lake", "Key": path}, REPLICA, path)
    dates = {path: key.last_modified for path, key in objects_of("my-lake")}
    for path, key in objects_of(REPLICA):
        key.last_modified = dates[path]


@pytest.mark.nightly
@pytest.mark.s3
def test_everything_acknowledged_before_the_moment_is_there_when_only_a_late_replica_is_left(stage: Stage) -> None:
    began, known = dt.datetime(2026, 11, 20, tzinfo=dt.UTC), set[str]()
    stage.create()
    writer = stage.writer("etl")
    for minute in range(4):
        writer.transact()
        stamp(began + dt.timedelta(minutes=minute), known)
    stage.client.create_bucket(Bucket=REPLICA)
    dates = {path: key.last_modified for path, key in objects_of("my-lake")}
    moment = began + dt.timedelta(minutes=2)
    late = sorted(path for path, date in dates.items() if date > moment)
    replicate(stage, [path for path in dates if path not in late[::2]])
    stage.lose()
    stage.shell.meant["2026-11-22T00:00:00+00:00"] = moment.isoformat()

    stage.shell.follow(TITLE)

    kept = writer.told[:3]
    assert stage.seen(NEW) == kept
    assert stage.offsets("etl", NEW) == len(kept)
    again = stage.writer("etl", NEW)
    again.transact()
    assert stage.seen(NEW) == [*kept, *again.told]

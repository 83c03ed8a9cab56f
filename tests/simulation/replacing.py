"""A small world of files that are put in the place of others.

*replacing*: a segment in the place of which another valid one of equal size is put, after transactions and compactions.

Whoever may write to a bucket can do it, and so can a restore of a single file.  Every reader refuses it, no compaction
writes it again, and who verifies names it, and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

from tests.simulation.onlookers import DAY_MS, TOPICS, Keeper, Told, Writer
from tests.simulation.small_limits import small_limits
from tests.simulation.small_worlds import small_base
from tests.simulation.turns import ManySite, Process, Turns, World
from txntable.compaction.compactor import compact
from txntable.errors import DamagedDataError
from txntable.segments.segment_columns import PlannedSegment, segment_columns
from txntable.warehouse.warehouse import Warehouse

_EVERYTHING = 2**62


class Replacing:
    """Transactions first; then one file of what they left is replaced."""

    def play(self, turns: Turns) -> None:
        turns.site = ManySite.like(small_base({}))
        told = Told()
        with small_limits(DAY_MS):
            for number in range(2):
                turns.start(f"writer{number}", _program(Writer, told))
            turns.start("keeper", _program(Keeper, told))
            turns.run()
            self.replace_one(turns)

    def replace_one(self, turns: Turns) -> None:
        site = turns.site
        warehouse = site.open()
        warehouse.complete()
        topic = turns.random.choice(TOPICS)
        place, other = _pair(turns, warehouse, topic)
        if place is None or other is None:
            return
        found = site.objects.get(other)
        assert found is not None
        site.objects.put(place, found.data)
        _refused(lambda: site.open().read_arrow(topic, isolation_level="read_uncommitted").read_all())
        assert _found(site) == [place], "replaced, and not found"
        name = f"_segments/{place.partition('/_segments/')[2]}"
        is_public = name in site.open().topic_log(topic).public.refresh().files
        site.advance_ms(2 * DAY_MS)
        compact(site.open())
        # What was aborted goes, whatever is in its file.
        assert _found(site) in ([place], [] if not is_public else [place]), "replaced, and written again"


def _found(site: ManySite) -> list[str]:
    return [damage.path for damage in site.open().verify().damages]


def _program(kind: type[Writer] | type[Keeper], told: Told) -> Callable[[Process], None]:
    return lambda process: kind(process, told).run()


def _pair(turns: Turns, warehouse: Warehouse, topic: str) -> tuple[str | None, str | None]:
    """Two segments of a topic with other bytes of equal size, if there are any: paths in the store."""
    log = warehouse.topic_log(topic)
    log.segments.refresh()
    columns = segment_columns(log.segments.table.files.to_table(), public=False)
    alike: dict[tuple[int, int | None], list[PlannedSegment]] = defaultdict(list)
    for partition in sorted(set(columns.partition.tolist())):
        for one in columns.between(partition, 0, _EVERYTHING):
            alike[one.size, one.records].append(one)
    pairs = [found for found in alike.values() if len({one.digest for one in found}) > 1]
    if not pairs:
        return None, None
    found = turns.random.choice(pairs)
    place = turns.random.choice(found)
    other = turns.random.choice([one for one in found if one.digest != place.digest])
    return f"{log.segments.root}/{place.path}", f"{log.segments.root}/{other.path}"


def _refused(read: Callable[[], object]) -> None:
    try:
        read()
    except DamagedDataError:
        return
    raise AssertionError("a replaced segment was read as the truth")


REPLACING: Mapping[str, World] = {"replacing": Replacing()}

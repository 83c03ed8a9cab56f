"""Random interleavings of consumers in groups: joins, leaves, deaths, long silences, a topic that grows.

Every run is made from a seed, which a failure names: ``TXNTABLE_SEED=<seed>`` runs it alone,
``TXNTABLE_SEEDS=<first>-<last>`` many.
"""

from __future__ import annotations

import os

import pytest

from tests.simulation.copying import (
    COPIERS,
    IN,
    OUT,
    READERS,
    Actor,
    Copier,
    Loner,
    Reader,
    Seen,
    Source,
    by_key,
    finish,
)
from tests.simulation.site import Site
from tests.simulation.turns import ManySite, Process, Turns, Weather
from txntable.client.records import TopicPartition

WEATHERS = (
    Weather(),
    Weather(jump=0.002),
    Weather(fault=0.02, jump=0.001),
    Weather(kill=0.003, jump=0.002),
    Weather(fault=0.05, kill=0.002, land=0.02, jump=0.002),
    Weather(late=0.1, land=0.03, kill=0.001, jump=0.002),
)
_BASE: list[Site] = []


def base() -> Site:
    """A warehouse with its topics, made once: the probe races threads, whose order no seed gives."""
    if not _BASE:
        site = Site()
        admin = site.create().admin()
        admin.create_topic(IN, partitions=3)
        admin.create_topic(OUT, partitions=2)
        _BASE.append(site)
    return _BASE[0]


def simulate(seed: int) -> Turns:
    seen = Seen()
    turns = Turns(ManySite.like(base()), seed, WEATHERS[seed % len(WEATHERS)])
    # Members are fenced by what they own, loners by where the group stands: the two can not share a group.
    copier = Loner if seed // len(WEATHERS) % 3 == 2 else Copier
    kinds: list[type[Actor]] = [
        Source,
        copier,
        copier,
        Reader,
        *turns.random.choices([Source, copier, copier, Reader], k=3),
    ]

    def program(kind: type[Actor], late: bool):
        def run(process: Process) -> None:
            if late:
                process.pause()
            kind(process, seen).run()

        return run

    for number, kind in enumerate(kinds):
        turns.start(f"{kind.__name__.lower()}{number}", program(kind, number >= 4))
    try:
        turns.run()
        check_end(turns, seen)
    except BaseException as error:
        error.add_note(f"TXNTABLE_SEED={seed}")
        raise
    return turns


def check_end(turns: Turns, seen: Seen) -> None:
    site = turns.site
    # Whoever was in a transaction is silent for longer than its timeout, and longer than a session.
    site.advance_ms(601_000)
    site.open().complete()
    warehouse = site.open()
    finish(warehouse, seen, site.advance_ms)
    source, copy = by_key(site.open(), IN), by_key(site.open(), OUT)
    assert copy == source, "everything once, each key in its order"
    assert {value for values in source.values() for value in values} <= set(seen.values)
    check_committed(site)


def check_committed(site: ManySite) -> None:
    """Nothing is pending, and no group stands beyond the end: what it has not passed are markers."""
    warehouse = site.open()
    offsets = warehouse.offsets
    offsets.refresh()
    assert not offsets.log.fold.pending
    with warehouse.consumer() as consumer:
        every = [TopicPartition(IN, p) for p in range(warehouse.topic_log(IN).settings().partitions)]
        ends = consumer.end_offsets(every)
    for group in (COPIERS, READERS):
        rows = offsets.offsets(group)
        committed = {each: row.committed.offset for each, row in rows.items() if row.committed is not None}
        assert committed.keys() == {each for each, end in ends.items() if each in rows}
        assert all(offset <= ends[TopicPartition(*each)] for each, offset in committed.items())


def seeds() -> list[int]:
    if "TXNTABLE_SEED" in os.environ:
        return [int(os.environ["TXNTABLE_SEED"])]
    first, _, last = os.environ.get("TXNTABLE_SEEDS", "0-23").partition("-")
    return list(range(int(first), int(last) + 1))


@pytest.mark.parametrize("part", range(4))
def test_copy_is_whole_and_in_order_whoever_joins_leaves_dies_or_is_silent(part: int) -> None:
    for seed in seeds()[part::4]:
        simulate(seed)


def test_simulation_makes_the_same_run_of_the_same_seed() -> None:
    assert simulate(3).trace == simulate(3).trace

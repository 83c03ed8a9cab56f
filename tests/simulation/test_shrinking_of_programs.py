"""A failing run becomes a small program that fails in the same way; shown on faults that were put in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.simulation.playing import Played, play
from tests.simulation.shrinking import shrink
from tests.simulation.site import Site
from tests.simulation.tape import Recording
from tests.simulation.telling import decode_failure, describe, encode_failure
from tests.simulation.totals import Totals
from tests.simulation.turns import ManySite, Process, Turns
from txntable.errors import RetriableError, StoreUnavailableError, TxnTableError
from txntable.warehouse.warehouse import Warehouse, open_on

_BASE: list[Site] = []


class Counting:
    """A world whose processes count in a broken way: read, then write one more."""

    def play(self, turns: Turns) -> None:
        done = Counter[str]()

        def count(process: Process) -> None:
            store = process.store()
            for _ in range(process.random.randint(1, 8)):
                action = process.random.choice(["look", "count", "look", "rest"])
                process.doing(action)
                try:
                    match action:
                        case "look":
                            store.get("number")
                        case "rest":
                            process.pause()
                        case "count":
                            found = store.get("number")
                            store.put("number", str(int(found.data if found else 0) + 1).encode())
                            done["counted"] += 1
                except StoreUnavailableError:
                    continue

        turns.site = ManySite()
        for number in range(turns.random.randint(3, 6)):
            turns.start(f"p{number}", count)
        turns.run()
        found = turns.site.objects.get("number")
        assert int(found.data if found else 0) >= done["counted"], "counts are lost"


class Selling:
    """A world whose processes commit transactions, each with an id of its own."""

    def play(self, turns: Turns) -> None:
        sold = Counter[str]()

        def sell(process: Process) -> None:
            warehouse = opened(process)
            producer = warehouse.producer(process.name)
            for number in range(process.random.randint(1, 3)):
                value = f"{process.name}/{number}"
                process.doing(f"sell {value}")
                try:
                    producer.init_transactions()
                    with producer.transaction() as txn:
                        txn.send("sales", value=value.encode(), partition=0)
                except RetriableError:
                    continue
                except TxnTableError:
                    return
                sold[value] += 1

        turns.site = ManySite.like(warehouse_with_a_topic())
        for number in range(turns.random.randint(3, 4)):
            turns.start(f"p{number}", sell)
        turns.run()
        turns.site.open().complete()
        rows = turns.site.open().read_arrow("sales").read_all().to_pylist()
        assert sold.items() <= Counter(row["value"].decode() for row in rows).items(), "sold, and not there"


def opened(process: Process) -> Warehouse:
    while True:
        try:
            return open_on(process.store(), process.turns.site.environment())
        except RetriableError:
            continue


def warehouse_with_a_topic() -> Site:
    if not _BASE:
        site = Site()
        site.create().admin().create_topic("sales", partitions=1)
        _BASE.append(site)
    return _BASE[0]


def first_failing(world: Counting | Selling) -> tuple[int, Played]:
    return next((seed, played) for seed in range(50) if (played := play(world, seed)).failure is not None)


def test_lost_count_shrinks_to_two_processes_that_count_once():
    world = Counting()
    _, failed = first_failing(world)

    shrunk = shrink(world, failed)

    did = [line for line in shrunk.played.trace if " does " in line]
    assert Counter(line.partition(" does ")[2] for line in did)["count"] == 2
    assert len(did) <= 4
    assert len(shrunk.played.names) <= 3
    assert shrunk.played.failure is not None
    assert failed.failure is not None
    assert shrunk.played.failure.kind == failed.failure.kind
    assert not any("meets" in line or "rests" in line for line in shrunk.played.trace)
    assert shrunk.played.recording.size < failed.recording.size / 5


def test_shrinking_makes_no_more_runs_than_it_may():
    world = Counting()
    _, failed = first_failing(world)

    assert shrink(world, failed, budget=7).runs == 7


def test_failing_run_is_the_same_when_its_file_is_replayed(tmp_path: Path):
    _, failed = first_failing(Counting())
    file = tmp_path / "failure.json"
    file.write_text(encode_failure("counting", failed.recording))

    name, recording = decode_failure(file.read_text())

    assert name == "counting"
    assert play(Counting(), recording) == failed


def test_failure_is_told_with_its_processes_faults_and_traceback():
    _, failed = first_failing(Counting())

    told = describe("counting", failed)

    assert "world counting" in told
    assert " does count" in told
    assert "counts are lost" in told


def test_commit_that_takes_the_winners_entry_for_its_own_shrinks_to_one_race(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("txntable.log.delta_log.is_same_commit", lambda mine, winner: True)
    world = Selling()
    _, failed = first_failing(world)

    shrunk = shrink(world, failed, budget=150)

    assert len(shrunk.played.names) == 2
    assert shrunk.played.recording.size <= 40
    assert sum(shrunk.played.counts.met.values()) <= 2


def test_transactions_of_one_topic_hold_without_the_defect():
    assert [play(Selling(), seed).failure for seed in range(20)] == [None] * 20


def test_totals_of_parts_are_the_totals_of_the_whole():
    played = [play(Counting(), seed) for seed in range(6)]
    whole, parts = Totals(), [Totals(), Totals()]
    for seed, one in enumerate(played):
        whole.add("counting", seed, one)
        parts[seed % 2].add("counting", seed, one)

    parts[0].merge(parts[1])

    assert sorted(parts[0].failed) == sorted(whole.failed)
    assert (parts[0].runs, parts[0].steps, parts[0].met) == (whole.runs, whole.steps, whole.met)


def test_recording_without_chances_plays_a_calm_run():
    played = play(Counting(), Recording())

    assert played.fair
    assert played.failure is None

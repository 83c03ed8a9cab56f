"""Nothing is put that its writer has not decoded and folded, from the very bytes (PROTOCOL.md §4.2 rule 12)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NoReturn

import pytest

from tests.unit.log.only_looked_up import OnlyLookedUp
from tests.unit.log.world import Nothing, Process, World, creation, file, plant
from txntable.errors import DamagedDataError, InvalidRequestError
from txntable.log.actions import Action, Commit, CommitInfo, Metadata, Txn, guard_protocol
from txntable.log.fold import proved_entry
from txntable.log.table_state import LiveFiles, TableState

_METADATA = creation()[1]
assert isinstance(_METADATA, Metadata)
UNREADABLE = {
    "a number beyond 64 bits": Txn("n", 2**63),
    "another beyond them": Txn("n", -(2**63)),
    "a negative number": Txn("n", -1),
    "no number": Txn("n", "7"),  # type: ignore[arg-type]
    "no finite number": Txn("n", math.nan),  # type: ignore[arg-type]
    "a number with a fraction": Txn("n", 1.0),  # type: ignore[arg-type]
    "true for a number": Txn("n", True),
    "bytes": Txn("n", b"7"),  # type: ignore[arg-type]
    "half of a letter": Txn("\ud800", 7),
    "a path that leads out": replace(file("x"), path="../x"),
    "a file of less than nothing": file("x", -1),
    "a time after all times": replace(file("x"), modification_time=2**62),
    "a value that is no text": replace(file("x"), partition_values={"a": 7}),  # type: ignore[dict-item]
    "a tag that is no text": replace(file("x"), tag=7),  # type: ignore[arg-type]
    "a retention that nobody understands": replace(
        _METADATA, configuration={"delta.deletedFileRetentionDuration": "for ever"}
    ),
}


@pytest.fixture
def process() -> Process:
    process = World().process()
    process.create()
    process.count()
    return process


@pytest.mark.parametrize("action", UNREADABLE.values(), ids=UNREADABLE)
def test_commit_is_refused_before_anything_is_put_when_nobody_could_read_it(process: Process, action: Action) -> None:
    before, there = process.log.refresh(), process.world.paths()
    numbers, files = dict(before.numbers), before.files.paths()

    with pytest.raises(InvalidRequestError, match=r"nothing was written.* because="):
        process.log.commit("X", lambda table: [file("y"), action])

    after = process.log.table
    assert process.world.paths() == there
    assert (after.version, dict(after.numbers), after.files.paths()) == (1, numbers, files)


@pytest.mark.parametrize("action", UNREADABLE.values(), ids=UNREADABLE)
def test_view_that_refused_a_commit_goes_on(process: Process, action: Action) -> None:
    with pytest.raises(InvalidRequestError):
        process.log.commit("X", lambda table: [action])

    process.count()

    assert process.log.table.number("counter") == process.counter() == 2


def test_entry_that_a_foreign_hand_put_is_damage_and_no_defect_of_a_call(process: Process) -> None:
    plant(process.log, Txn("n", 2**63))

    with pytest.raises(DamagedDataError, match="field=version"):
        process.log.commit("X", lambda table: [file("y")])


def test_refusal_says_what_can_not_be_read(process: Process) -> None:
    with pytest.raises(InvalidRequestError, match=r"field=version value=9223372036854775808"):
        process.log.commit("X", lambda table: [Txn("n", 2**63)])


def test_checkpoint_that_nobody_could_start_from_is_not_written(process: Process) -> None:
    there = process.world.paths()
    process.log.table.files.put(replace(file("x"), path="../x"))

    with pytest.raises(InvalidRequestError, match=r"nothing was written.* because="):
        process.log.write_checkpoint()

    assert process.world.paths() == there


def test_checkpoint_that_the_fold_could_not_start_from_is_not_written(process: Process) -> None:
    def refuse(table: TableState) -> NoReturn:
        raise DamagedDataError("no")

    there = process.world.paths()
    process.log.fold.restore = refuse  # type: ignore[method-assign]

    with pytest.raises(InvalidRequestError, match="because=no"):
        process.log.write_checkpoint()

    assert process.world.paths() == there


def test_checkpoint_that_can_not_be_written_fails_no_commit(process: Process) -> None:
    process.log.table.numbers["n"] = 2**63

    for _ in range(100):
        process.count()

    assert process.log.table.number("counter") == 101
    assert not any("checkpoint" in path for path in process.world.paths())


@pytest.mark.parametrize("in_columns", [False, True])
def test_proving_an_entry_costs_what_the_entry_says_however_many_files_are_live(*, in_columns: bool) -> None:
    costs = []
    for live in (10, 100_000):
        table = TableState(version=7, commit_id="a" * 32, files=LiveFiles(), numbers=OnlyLookedUp({"a": 1}))
        table.protocol, table.metadata = guard_protocol(), Metadata("id", None, "", (), {}, 0)
        for number in range(live):
            table.files.put(file(f"f{number}"))
        if in_columns:
            table.files.absorb_tail()
        table.files._tail = OnlyLookedUp(table.files._tail)
        table.tombstones = OnlyLookedUp()
        commit = Commit(8, CommitInfo("b" * 32, "a" * 32, 1, "X", "b" * 32), (file("new"), file("f3"), Txn("a", 2)))
        OnlyLookedUp.asked = 0

        proved_entry(commit, "x", (table, Nothing()), "path")

        costs.append(OnlyLookedUp.asked)
    assert costs[0] == costs[1] < 20

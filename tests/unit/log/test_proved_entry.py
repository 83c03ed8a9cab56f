"""Nothing is put that its writer has not decoded and folded, from the very bytes (PROTOCOL.md §4.2 rule 12)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

import pytest

from tests.unit.log.only_looked_up import OnlyLookedUp
from tests.unit.log.world import Nothing, Process, World, creation, file, plant
from txntable.errors import DamagedDataError, InvalidRequestError
from txntable.log import checkpoint, fold
from txntable.log.actions import Action, Add, Commit, CommitInfo, Metadata, Remove, Txn, guard_protocol
from txntable.log.checkpoint import encode_checkpoint
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


class Taken(Nothing):
    """A fold that keeps which files it was given by each start."""

    def __init__(self) -> None:
        self.starts: list[set[str]] = []

    def restore(self, table: TableState) -> None:
        self.starts.append(table.files.paths())

    def overlay(self) -> Taken:
        return self


def taken_by_checkpoints(process: Process) -> list[set[str]]:
    """Let the next checkpoints be proved with a fold that keeps what it takes."""
    fold = process.log.fold = Taken()
    return fold.starts


def test_checkpoint_takes_what_came_since_the_last_one_as_a_start_does_and_compares_the_rest(process: Process) -> None:
    starts = taken_by_checkpoints(process)
    for path in ("a", "b", "c"):
        process.add_file(path)
    process.log.write_checkpoint()
    process.log.commit("X", lambda table: [file("b", 2), Remove("c", 0, False), file("d")])
    process.add_file("e")
    process.log.table.files.absorb_tail()

    process.log.write_checkpoint()
    process.add_file("f")
    process.log.write_checkpoint()

    assert starts == [{"a", "b", "c"}, {"b", "d", "e"}, {"f"}]
    opened = process.open_log(process.store).refresh()
    assert {add.path: add.size for add in opened.files} == {"a": 1, "b": 2, "d": 1, "e": 1, "f": 1}


def test_who_has_started_from_a_checkpoint_takes_what_stands_above_it_alone(process: Process) -> None:
    process.add_file("a")
    process.log.write_checkpoint()
    process.add_file("b")
    process.log = process.open_log(process.store)
    process.log.refresh()
    starts = taken_by_checkpoints(process)
    process.add_file("c")

    process.log.write_checkpoint()

    assert starts == [{"b", "c"}]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda adds: [*adds[:1], replace(adds[1], size=7)],
        lambda adds: [*adds[:1], replace(adds[1], stats=None)],
        lambda adds: adds[:1],
        lambda adds: [adds[1], adds[0]],
    ],
    ids=["another size", "no statistics", "a row less", "another order"],
)
def test_checkpoint_that_says_something_else_of_what_was_proved_is_not_written(
    process: Process, monkeypatch: pytest.MonkeyPatch, wrong: Callable[[list[Add]], list[Add]]
) -> None:
    for path in ("a", "b"):
        process.add_file(path)
    process.log.write_checkpoint()
    process.count()
    there = process.world.paths()

    def encode(table: TableState) -> bytes:
        other = replace(table, files=LiveFiles())
        for add in wrong(list(table.files)):
            other.files.put(add)
        return encode_checkpoint(other)

    monkeypatch.setattr(fold, "encode_checkpoint", encode)
    with pytest.raises(InvalidRequestError, match="than the state that it is of"):
        process.log.write_checkpoint()

    assert process.world.paths() == there


def test_checkpoint_of_several_row_groups_is_started_from_as_one_of_one(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "_ROWS_A_GROUP", 3)
    for number in range(5):
        process.add_file(f"a{number}")
    process.log.write_checkpoint()
    for number in range(3):
        process.add_file(f"b{number}")
    process.log.write_checkpoint()

    opened = process.open_log(process.store).refresh()

    assert [add.path for add in opened.files] == [*(f"a{number}" for number in range(5)), "b0", "b1", "b2"]


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

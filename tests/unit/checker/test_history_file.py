"""The file that a process's operation log survives in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checker.history_file import HistoryFile, read_histories
from tests.checker.operations import (
    Bounds,
    Call,
    CommitOffsets,
    End,
    FetchOffsets,
    Init,
    Join,
    Level,
    Look,
    Maintain,
    Operation,
    Outcome,
    Poll,
    Read,
    Rewind,
    Seen,
    Send,
    Write,
)
from tests.checker.recorder import Recorder

P0 = ("topic", 0)

CALLS: list[Call] = [
    Init("id", producer_id=7, epoch=0, kept=True),
    Init("id"),
    Send("producer", None, ()),
    Send("producer", "t1", (Write(P0, "v1", 3, (("from", 1), 5), -4, "k"), Write(P0, "v2")), 7, 0),
    End("t1", commit=False, position=9, transactional_id="id", producer_id=7, epoch=0),
    Poll("consumer", 1, (Seen(P0, 3, "v1"),), {P0: Bounds(0, 4, 5)}, "t1", Level.UNCOMMITTED),
    Read(Level.SNAPSHOT, (), {P0: Bounds(0, 4, 5)}, 9, {("group", P0): 3}, frozenset({"group"}), True, True),
    CommitOffsets("group", {P0: 3}, "t1", "member", 4, reset=True),
    FetchOffsets("group", {P0: 3}, frozenset({P0, ("topic", 1)})),
    Rewind("consumer", "group"),
    Join("group", "member", 4, frozenset({P0})),
    Look("log", 12, "abc"),
    Maintain("compact", "topic"),
    Maintain("vacuum"),
]


def operation(call: Call, invoked: int = 1, returned: int | None = 2) -> Operation:
    outcome = Outcome.INFO if returned is None else Outcome.OK
    return Operation("one", invoked, returned, outcome, call)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: type(call).__name__)
def test_a_call_is_read_as_it_was_written(tmp_path: Path, call: Call) -> None:
    with HistoryFile(tmp_path / "history") as file:
        file(0, operation(call, returned=None))
        file(0, operation(call))
    assert read_histories([tmp_path / "history"]) == [operation(call)]


def test_a_call_without_return_stays_as_it_was_invoked_when_its_process_was_killed(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    moments = iter(range(100))
    with HistoryFile(tmp_path / "one") as one, HistoryFile(tmp_path / "two") as two:
        recorder = Recorder("one", lambda: next(moments), one)
        with recorder.calling(Init("id")) as call:
            call.saw(producer_id=7, epoch=0)
        two(0, Operation("two", 1, None, Outcome.INFO, Maintain("vacuum")))
        with pytest.raises(Killed), recorder.calling(Init("id")):
            raise Killed
    found = read_histories([tmp_path / "two", tmp_path / "one"])
    assert [(each.process, each.outcome, each.returned) for each in found] == [
        ("one", Outcome.OK, 1),
        ("two", Outcome.INFO, None),
        ("one", Outcome.INFO, 3),
    ]


@pytest.mark.parametrize("left", [1, 20, 60])
def test_a_torn_last_line_is_passed_over(tmp_path: Path, left: int) -> None:
    with HistoryFile(tmp_path / "history") as file:
        file(0, operation(Maintain("vacuum"), returned=None))
    whole = (tmp_path / "history").read_bytes()
    (tmp_path / "history").write_bytes(whole + whole[:left])
    assert read_histories([tmp_path / "history"]) == [operation(Maintain("vacuum"), returned=None)]


INVOKED = (
    '{"number":0,"call":"Maintain","operation":{"process":"one","invoked":1,"outcome":"INFO","call":{"kind":"vacuum"}}}'
)
RETURNED = INVOKED.replace('"invoked":1,"outcome":"INFO"', '"invoked":1,"returned":2,"outcome":"OK"')


@pytest.mark.parametrize(
    "lines",
    [
        [INVOKED[:40], INVOKED],
        [INVOKED.replace("vacuum", "")[:-3]],
        [INVOKED.replace('"kind":"vacuum"', "")],
        [INVOKED.replace('"kind":"vacuum"', '"kind":1')],
        [INVOKED.replace('"kind":"vacuum"', '"kind":"vacuum","more":1')],
        [INVOKED.replace('"Maintain"', '"Exec"')],
        [INVOKED.replace('"INFO"', '"DONE"')],
        [INVOKED.replace('"invoked":1', '"invoked":true')],
        [""],
        [RETURNED],
        [INVOKED, INVOKED],
        [INVOKED, RETURNED, RETURNED],
        [INVOKED, RETURNED.replace('"invoked":1', '"invoked":0')],
    ],
)
def test_a_history_is_refused_when_anything_else_is_not_as_it_was_written(tmp_path: Path, lines: list[str]) -> None:
    (tmp_path / "history").write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=r"damaged|invoked"):
        read_histories([tmp_path / "history"])

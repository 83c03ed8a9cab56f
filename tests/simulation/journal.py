"""The operation log of one run, and how each process of it writes down what it asks and is told.

A clock of one tick for each moment that is noted orders everything: only one process runs at any time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from tests.checker.operations import Call, End, Operation, Outcome
from tests.checker.recorder import Answer, Recorder
from txntable.errors import RetriableError, TxnTableError

T = TypeVar("T")
TRIES = 5
# The schema of topics that are no tables: Kafka's columns.
BYTES = frozenset({"in", "out"})


@dataclass(frozen=True)
class Draft:
    """A record to send; its value is unique in a run, but for a tombstone, which has its time for a value.

    Attributes
    ----------
    partition : int, optional
        ``None``: the partitioner's choice.
    source : optional
        Place and offset of the record that it is a copy of.
    dead : bool
        A tombstone of its key.
    """

    topic: str
    value: str
    key: str | None = None
    amount: int = 0
    partition: int | None = None
    source: tuple[tuple[str, int], int] | None = None
    dead: bool = False


class Journal:
    """Operations as they were invoked, completed when they return.

    Parameters
    ----------
    before : Journal, optional
        What happened before the run.
    """

    def __init__(self, before: Journal | None = None) -> None:
        self._operations: dict[tuple[str, int], Operation] = {} if before is None else dict(before._operations)
        self._ticks = itertools.count(2 * len(self._operations))
        self.batches: dict[str, tuple[str, str | int]] = {}
        """Transaction -> whose it is, and its batch id."""
        self._dead_ms = 0

    def now(self) -> int:
        """The next moment."""
        return next(self._ticks)

    def operations(self) -> list[Operation]:
        """Everything, by invocation."""
        return sorted(self._operations.values(), key=lambda operation: operation.invoked)

    def committed(self) -> list[End]:
        """The transactions whose client was told that they are committed."""
        ends = [operation.call for operation in self.operations() if operation.outcome is Outcome.OK]
        return [call for call in ends if isinstance(call, End) and call.commit]

    def witness(self, process: str) -> Witness:
        """What one process writes down with."""

        def sink(number: int, operation: Operation) -> None:
            self._operations[process, number] = operation

        return Witness(self, Recorder(process, self.now, sink))

    def time_of_death(self, now_ms: int) -> int:
        """The time of a tombstone, by which it is told from all others."""
        self._dead_ms = max(self._dead_ms + 1, now_ms)
        return self._dead_ms


class Witness:
    """Writes down the calls of one process."""

    def __init__(self, journal: Journal, recorder: Recorder) -> None:
        self.journal, self.process = journal, recorder.process
        self._recorder = recorder
        self._names = itertools.count(1)

    def name(self, kind: str) -> str:
        """A name that nobody else in the run has."""
        return f"{self.process}/{kind}{next(self._names)}"

    @contextmanager
    def calling(self, call: Call) -> Iterator[Asked]:
        """Write a call down.

        A definite no after an answer that was lost, or after a part was done, says nothing: the outcome is unknown.
        """
        unsure: TxnTableError | None = None
        with self._recorder.calling(call) as answer:
            asked = Asked(answer)
            try:
                yield asked
            except TxnTableError as error:
                if not asked.unsure:
                    raise
                answer.outcome, unsure = Outcome.INFO, error
        if unsure is not None:
            raise unsure


class Asked:
    """A call under way, which may be made several times."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.unsure = False

    def saw(self, **facts: object) -> None:
        """Complete the call with what was answered."""
        self._answer.saw(**facts)

    def leave_open(self) -> None:
        """Say that the outcome is not known although there was no error."""
        self._answer.outcome = Outcome.INFO

    def stubbornly(self, call: Callable[[], object]) -> None:
        """Make the call again for as long as that is what its error says."""

        def once() -> None:
            try:
                call()
            except RetriableError:
                self.unsure = True
                raise

        stubbornly(once)


def stubbornly(call: Callable[[], T]) -> T:
    """Make a call again for as long as that is what its error says, a few times."""
    for _ in range(TRIES - 1):
        try:
            return call()
        except RetriableError:
            continue
    return call()

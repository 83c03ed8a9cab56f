"""Writes the operation log down while clients work: each call at its invocation, and again at its return.

The sink decides where to: a list of a simulation, or a file that survives the process.  A call that never returns
stays as it was invoked, with an unknown outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.checker.operations import Call, Operation, Outcome
from txntable.errors import CommitStateUnknownError, RetriableError, TransactionOutcomeUnknownError, TxnTableError

Sink = Callable[[int, Operation], object]
"""Gets the call's number within its process, and the operation; the second time as it returned."""


class Answer:
    """A call under way.

    Attributes
    ----------
    call : Call
        As far as it is known.
    outcome : Outcome
        What the client has been told; it may be set where no exception says it.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self.outcome = Outcome.OK

    def saw(self, **facts: Any) -> None:
        """Complete the call with what was answered."""
        self.call = replace(self.call, **facts)


class Recorder:
    """The operation log of one process.

    Parameters
    ----------
    process : str
        Its name, unique in the history.
    now : Callable
        The clock of all processes.
    sink : Callable
        Where operations go.
    """

    def __init__(self, process: str, now: Callable[[], int], sink: Sink) -> None:
        self.process = process
        self._now = now
        self._sink = sink
        self._calls = 0

    def of_thread(self, name: str) -> Recorder:
        """Return the operation log of a thread of the process, which goes where this one does."""
        return Recorder(f"{self.process}-{name}", self._now, self._sink)

    @contextmanager
    def calling(self, call: Call) -> Iterator[Answer]:
        """Record what happens inside as one call; errors go on to the caller.

        An error that leaves the outcome open, and a kill, make it unknown; any other error says that it was not done.
        """
        number, invoked, answer = self._calls, self._now(), Answer(call)
        self._calls += 1
        self._sink(number, Operation(self.process, invoked, None, Outcome.INFO, call))
        error: str | None = None
        try:
            yield answer
        except TxnTableError as raised:
            answer.outcome, error = outcome_of(raised), raised.code
            raise
        except BaseException:
            # A kill, or a failed assertion of the test: the client was told nothing.
            answer.outcome = Outcome.INFO
            raise
        finally:
            self._sink(number, Operation(self.process, invoked, self._now(), answer.outcome, answer.call, error))


def outcome_of(error: TxnTableError) -> Outcome:
    """Return what an error tells about whether the call was done."""
    unknown = CommitStateUnknownError | RetriableError | TransactionOutcomeUnknownError
    return Outcome.INFO if isinstance(error, unknown) else Outcome.FAIL

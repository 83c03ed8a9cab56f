"""A store of which every call is one numbered step that can fail in every way calls fail.

One :class:`SteppingStore` is one process's store; several over the same inner store are several
processes.  Owns the order of events at a step: land what is late, tell the scheduler, then the
fault.  Streams make their object in one step, when they are closed; what is looked at beside a request is a part of
its step, right after it.  Not for several threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, BinaryIO, TypeVar

from tests.doubles.buffered_sink import BufferedSink
from tests.doubles.fault_plan import (
    ONLY_PUT_IF_ABSENT,
    ONLY_WRITES,
    WRITES,
    Fault,
    Forecast,
    Operation,
    Rule,
    Step,
    at,
)
from tests.doubles.memory_store import MemoryStore
from txntable.errors import DamagedDataError, InvalidRequestError, StoreUnavailableError, TxnTableError
from txntable.runtime.environment import Environment
from txntable.storage.object_store import BEGINNING_BYTES, ObjectMeta, ObjectStore, PutOutcome, StoredObject
from txntable.storage.object_writer import open_writer
from txntable.storage.retries import Attempts

_T = TypeVar("_T")
_NOT_DONE = frozenset({Fault.FAIL_BEFORE, Fault.LATE_LANDING, Fault.CONFLICT_409, Fault.STALE_LIST, Fault.KILL_BEFORE})
_REQUEST_KINDS = {Operation.PUT_IF_ABSENT: "PUT", Operation.WRITE: "PUT"}


class ProcessKilled(BaseException):
    """The process is dead: nothing that it still does reaches the store."""


@dataclass(frozen=True, slots=True)
class _Late:
    step: Step
    rule: Rule
    apply: Callable[[], object]


class SteppingStore(ObjectStore):
    """A process's access to a store.

    Parameters
    ----------
    inner : ObjectStore
        Where the objects are.
    plan : sequence of Rule
        What goes wrong; the first rule that fits a step counts.
    on_step : Callable, optional
        Called before each step is done; a scheduler lets others run from there.
    forecast : Callable, optional
        Says what a step meets that no rule of the plan fits.

    Attributes
    ----------
    plan, on_step, forecast
        As given; may be changed at any time.
    retries : Environment or None
        Set, a step that fails is tried again as a remote store does it, for ``retry_timeout_ms``, by this clock.
    steps : list of Step
        All steps so far.
    killed : bool
        Whether the process is dead.
    """

    def __init__(
        self,
        inner: ObjectStore,
        plan: Sequence[Rule] = (),
        on_step: Callable[[Step], object] | None = None,
        *,
        forecast: Forecast | None = None,
    ) -> None:
        self.spec = inner.spec
        self.is_remote = inner.is_remote
        self.parallel_reads = inner.parallel_reads
        self.retry_timeout_ms = inner.retry_timeout_ms
        self.retries: Environment | None = None
        self.steps: list[Step] = []
        self.killed = False
        self._inner = inner
        self.plan = tuple(plan)
        self.on_step = on_step
        self.forecast = forecast
        self._met = Counter[int]()
        self._late: list[_Late] = []

    @property
    def requests(self) -> Counter[str]:
        """Return how many GET, HEAD, LIST, PUT and DELETE were made."""
        made = Counter(_REQUEST_KINDS.get(step.operation, step.operation.name) for step in self.steps)
        return made + Counter(GET=sum(step.looks_beside for step in self.steps))

    @property
    def late(self) -> int:
        """Return how many writes are still to land."""
        return len(self._late)

    def land(self, number: int | None = None) -> list[Step]:
        """Do what is late, now; also after this process's death.

        Parameters
        ----------
        number : int, optional
            Which of the late writes, from 0 and oldest first; ``None``: all.

        Returns
        -------
        list of Step
            Those that asked for it.
        """
        due = self._late if number is None else [self._late[number]]
        self._late = [write for write in self._late if write not in due]
        for write in due:
            _land(write)
        return [write.step for write in due]

    def kill(self) -> None:
        """Let the process die here."""
        self.killed = True

    def get(self, path: str) -> StoredObject | None:
        """Return the object, or ``None`` when there is none."""
        return self._step(Operation.GET, path, partial(self._inner.get, path))

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Return a part of an object, or ``None`` when there is no object."""
        return self._step(Operation.GET, path, partial(self._inner.get_range, path, start, length))

    def head(self, path: str) -> ObjectMeta | None:
        """Return the object's size and time, or ``None`` when there is none."""
        return self._step(Operation.HEAD, path, partial(self._inner.head, path))

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object."""
        self._step(Operation.PUT, path, partial(self._inner.put, path, data))

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Create an object unless there is one."""
        return self._step(Operation.PUT_IF_ABSENT, path, partial(self._inner.put_if_absent, path, data))

    def sync_read(self) -> None:
        """Let the inner store sync what was read: no request."""
        self._inner.sync_read()

    def put_next(self, path: str, data: bytes, below: str) -> tuple[PutOutcome, bytes | None]:
        """Create an object unless there is one, and look at another in the same step."""
        return self.put_if_absent(path, data), self._look_beside(below)

    def get_above(self, paths: Sequence[str], below: str) -> tuple[list[StoredObject | None], bytes | None]:
        """Return the objects, a step each, and the beginning of another in the last of these."""
        return self.get_many(paths), self._look_beside(below)

    def _look_beside(self, path: str) -> bytes | None:
        self._check_alive()
        self.steps[-1] = replace(self.steps[-1], looks_beside=True)
        return self._inner.get_range(path, 0, BEGINNING_BYTES)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        """Yield the objects in and below the folder `prefix`, as they are at the call."""
        found: tuple[ObjectMeta, ...] = self._step(Operation.LIST, prefix, lambda: tuple(self._inner.list(prefix)))
        return iter(found)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects, one step each."""
        for path in paths:
            self._step(Operation.DELETE, path, partial(self._inner.delete, [path]))

    def delete_unordered(self, paths: Sequence[str]) -> None:
        """Delete objects, one step each: when one fails, the others are deleted all the same."""
        failure: StoreUnavailableError | None = None
        for path in paths:
            try:
                self.delete([path])
            except StoreUnavailableError as error:
                failure = error
        if failure is not None:
            raise failure

    def writer(self, path: str) -> BinaryIO:
        """Return a file to stream a new object into; its close is the step."""
        self._check_alive()

        def write(data: bytes) -> None:
            found = None if self.retries is None else self._inner.get(path)
            # As a remote store: what an attempt before this one has put is there already.
            if found is None or found.data != data:
                _write(self._inner, path, data)

        def publish(data: bytes) -> None:
            self._step(Operation.WRITE, path, partial(write, data))

        return open_writer(BufferedSink(publish))

    def _step(self, operation: Operation, path: str, apply: Callable[[], _T]) -> _T:
        if self.retries is None or operation is Operation.PUT_IF_ABSENT:
            return self._one_step(operation, path, apply)
        attempts = Attempts(self.retry_timeout_ms, self.retries)
        while True:
            try:
                return self._one_step(operation, path, apply)
            except StoreUnavailableError:
                if not attempts.wait():
                    raise

    def _one_step(self, operation: Operation, path: str, apply: Callable[[], _T]) -> _T:
        self._check_alive()
        step = Step(len(self.steps) + 1, operation, path)
        self.steps.append(step)
        self._land_due(step)
        if self.on_step is not None:
            self.on_step(step)
            self._check_alive()  # the scheduler may have killed this process meanwhile
        try:
            answer: _T = self._meet(step, apply)
        except (TxnTableError, ProcessKilled) as error:
            self._record(step, type(error).__name__)
            raise
        self._record(step, _outcome(answer))
        return answer

    def _meet(self, step: Step, apply: Callable[[], Any]) -> Any:
        rule = self._rule_for(step)
        if rule is None:
            return apply()
        if rule.fault in _NOT_DONE:
            return self._answer_instead(rule, step, apply)
        if rule.fault is Fault.TAKEN and rule.intruder is not None:
            rule.intruder(self._inner, step.path)
        return self._answer_after(rule, step, apply)

    def _answer_instead(self, rule: Rule, step: Step, apply: Callable[[], object]) -> Any:
        match rule.fault:
            case Fault.CONFLICT_409:
                return PutOutcome.EXISTS
            case Fault.STALE_LIST:
                return self._stale_list(step.path, rule.age_ms)
            case Fault.KILL_BEFORE:
                self._die()
            case Fault.LATE_LANDING:
                self._late.append(_Late(step, rule, apply))
        raise _unavailable(step)

    def _answer_after(self, rule: Rule, step: Step, apply: Callable[[], Any]) -> Any:
        answer = apply()
        match rule.fault:
            case Fault.LOST_ANSWER:
                raise _unavailable(step)
            case Fault.EXISTS_LOST:
                return PutOutcome.EXISTS
            case Fault.DUPLICATE:
                self._late.append(_Late(step, rule, apply))
            case Fault.SLOW if rule.meanwhile is not None:
                rule.meanwhile()
                self._check_alive()
            case Fault.KILL_AFTER:
                self._die()
        return answer

    def _rule_for(self, step: Step) -> Rule | None:
        found: Rule | None = None
        for index, rule in enumerate(self.plan):
            if rule.matches(step):
                self._met[index] += 1
                if found is None and rule.occurrence in {None, self._met[index]}:
                    found = rule
        if found is None and self.forecast is not None:
            found = self.forecast(step)
        if found is not None:
            _check_rule(found, step)
        return found

    def _stale_list(self, prefix: str, age_ms: int) -> tuple[ObjectMeta, ...]:
        assert isinstance(self._inner, MemoryStore), "only a store in memory remembers what it had"
        return tuple(self._inner.objects.formerly_below(prefix, age_ms))

    def _land_due(self, step: Step) -> None:
        due = [write for write in self._late if write.rule.lands_at is not None and write.rule.lands_at <= step.number]
        self._late = [write for write in self._late if write not in due]
        for write in due:
            _land(write)

    def _record(self, step: Step, outcome: str) -> None:
        self.steps[step.number - 1] = replace(step, outcome=outcome)

    def _check_alive(self) -> None:
        if self.killed:
            raise ProcessKilled

    def _die(self) -> None:
        self.killed = True
        raise ProcessKilled


def _land(write: _Late) -> None:
    # Nobody hears the answer: a new file whose name is taken by then is refused, and that is all.
    with suppress(DamagedDataError):
        write.apply()


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """A place where a process may die.

    Attributes
    ----------
    step : Step
        The step, as it went without a crash.
    fault : Fault
        ``KILL_BEFORE`` or ``KILL_AFTER``.
    """

    step: Step
    fault: Fault

    @property
    def plan(self) -> tuple[Rule, ...]:
        """Return the plan for a :class:`SteppingStore`."""
        return (at(self.step.number, self.fault),)

    def __str__(self) -> str:
        return f"{self.fault.name} step {self.step.number} {self.step.operation.value} {self.step.path}"


def crash_points(
    operation: Callable[[SteppingStore], object], make_store: Callable[[], ObjectStore]
) -> list[CrashPoint]:
    """Run `operation` once, and return every place where a kill can meet it.

    Parameters
    ----------
    operation : Callable
        Does the same steps each time that it gets a fresh store.
    make_store : Callable
        Returns a store in the state that the operation begins with.
    """
    store = SteppingStore(make_store())
    operation(store)
    faults = (Fault.KILL_BEFORE, Fault.KILL_AFTER)
    return [CrashPoint(step, fault) for step in store.steps for fault in faults]


def _write(store: ObjectStore, path: str, data: bytes) -> None:
    with store.writer(path) as file:
        file.write(data)


def _check_rule(rule: Rule, step: Step) -> None:
    if rule.fault in ONLY_PUT_IF_ABSENT and step.operation is not Operation.PUT_IF_ABSENT:
        raise InvalidRequestError("only a put-if-absent can meet this fault", fault=rule.fault.name, step=step)
    if rule.fault in ONLY_WRITES and step.operation not in WRITES:
        raise InvalidRequestError("only a write can land late", step=step)
    if rule.fault is Fault.STALE_LIST and step.operation is not Operation.LIST:
        raise InvalidRequestError("only a list can be stale", step=step)
    if rule.fault is Fault.TAKEN and rule.intruder is None:
        raise InvalidRequestError("who takes it? give the rule an intruder", step=step)
    if rule.fault is Fault.SLOW and rule.meanwhile is None:
        raise InvalidRequestError("what happens meanwhile? give the rule a meanwhile", step=step)


def _unavailable(step: Step) -> StoreUnavailableError:
    return StoreUnavailableError("the test's plan lost this request; try again", step=step.number, path=step.path)


def _outcome(answer: object) -> str:
    if isinstance(answer, PutOutcome):
        return answer.value
    return "none" if answer is None else "ok"

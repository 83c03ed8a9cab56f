"""Storage calls as values: what a process asks for, what it is answered, and the store between two calls.

A process under exploration has an :class:`AskingStore` in place of a store: it hands each call over as a :class:`Call`
and goes on with the :class:`Answer` that it gets.  Its clocks and ids come from nowhere else, so that what it does is a
function of its answers.  A :class:`Content` never changes: a write makes a new one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, cast

from tests.doubles.buffered_sink import BufferedSink
from tests.doubles.fault_plan import WRITES, Fault, Operation, at
from tests.doubles.manual_environment import START_MS, ManualEnvironment
from tests.doubles.memory_store import MemoryObjects, MemoryStore
from tests.doubles.stepping_store import SteppingStore
from txntable.errors import StoreUnavailableError
from txntable.storage.object_store import BEGINNING_BYTES, ObjectMeta, ObjectStore, PutOutcome, StoredObject
from txntable.storage.object_writer import open_writer


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the store; ``operation`` is ``None`` where a process says that it is ready to begin."""

    operation: Operation | None
    path: str
    data: bytes | None = None
    span: tuple[int, int] | None = None
    beside: str | None = None
    """What is looked at in the same step: an entry of a log, which never changes."""

    def __str__(self) -> str:
        return "begins" if self.operation is None else f"{self.operation.value} {self.path}"


READY = Call(None, "")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call was answered, and when.

    Attributes
    ----------
    value : object
        Of the call.
    time_ms : int
        Since the beginning.
    lost : bool
        There was no answer.
    landed : bool
        It changed the store, or may still do so.  The process is not told: its ids go by it.
    """

    value: Any
    time_ms: int
    lost: bool = False
    landed: bool = False


Ask = Callable[[Call], Answer]


class StillEnvironment(ManualEnvironment):
    """A machine on which waiting takes no time: the time is the scheduler's, and comes with the answers.

    An id that never reached the store is given again: a writer that lost a slot does then what it would have done had
    it known of the winner before, byte for byte, and the two are one state.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._name = str(seed)
        self._landed = self._drawn = 0

    def sleep_ms(self, milliseconds: float) -> None:
        """Do not wait."""

    def new_id(self) -> str:
        """Return 32 hex digits."""
        self._drawn += 1
        return hashlib.sha256(f"{self._name}/{self._landed}/{self._drawn}".encode()).hexdigest()[:32]

    def wrote(self, *, landed: bool) -> None:
        """Take note that a write was answered."""
        self._landed += landed
        self._drawn = 0


class AskingStore(ObjectStore):
    """The store as a process sees it."""

    def __init__(self, ask: Ask, environment: StillEnvironment) -> None:
        self.spec = MemoryStore().spec
        self._ask, self._environment, self._time_ms = ask, environment, 0

    def call(self, call: Call) -> Any:
        """Ask, let the time pass that has passed, and return what was answered."""
        answer = self._ask(call)
        self._environment.advance_ms(answer.time_ms - self._time_ms)
        self._time_ms = answer.time_ms
        if call.operation in WRITES:
            self._environment.wrote(landed=answer.landed)
        if answer.lost:
            raise StoreUnavailableError("the scheduler lost this request; try again", call=call)
        return answer.value

    def get(self, path: str) -> StoredObject | None:
        return cast("StoredObject | None", self.call(Call(Operation.GET, path)))

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        return cast("bytes | None", self.call(Call(Operation.GET, path, span=(start, length))))

    def head(self, path: str) -> ObjectMeta | None:
        return cast("ObjectMeta | None", self.call(Call(Operation.HEAD, path)))

    def put(self, path: str, data: bytes) -> None:
        self.call(Call(Operation.PUT, path, bytes(data)))

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        return cast("PutOutcome", self.call(Call(Operation.PUT_IF_ABSENT, path, bytes(data))))

    def put_next(self, path: str, data: bytes, below: str) -> tuple[PutOutcome, bytes | None]:
        call = Call(Operation.PUT_IF_ABSENT, path, bytes(data), beside=below)
        return cast("tuple[PutOutcome, bytes | None]", self.call(call))

    def get_above(self, paths: Sequence[str], below: str) -> tuple[list[StoredObject | None], bytes | None]:
        found = self.get_many(paths[:-1])
        last, beginning = self.call(Call(Operation.GET, paths[-1], beside=below))
        return [*found, last], beginning

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        return iter(cast("tuple[ObjectMeta, ...]", self.call(Call(Operation.LIST, prefix))))

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.call(Call(Operation.DELETE, path))

    def writer(self, path: str) -> BinaryIO:
        def publish(data: bytes) -> None:
            self.call(Call(Operation.WRITE, path, data))

        return open_writer(BufferedSink(publish))


@dataclass(frozen=True, slots=True)
class Content:
    """All objects of the store.

    Attributes
    ----------
    objects : MemoryObjects
        Never written to.
    key : int
        Of 128 bits; equal contents have equal keys, however they came about.
    """

    objects: MemoryObjects
    key: int

    @classmethod
    def of(cls, objects: MemoryObjects) -> Content:
        """Return the content of a store as it is now."""
        copy = _copy(objects, 0)
        key = 0
        for path, found in copy.snapshot().items():
            key ^= _key(path, found)
        return cls(copy, key)

    def answer(self, call: Call, time_ms: int, fault: Fault | None = None) -> tuple[Answer, Content]:
        """Return what the store answers, and its content then."""
        if call.operation is None:
            return Answer(None, time_ms), self
        writes = call.operation in WRITES
        objects = _copy(self.objects, time_ms) if writes else self.objects
        store: ObjectStore = MemoryStore(objects)
        if fault is not None:
            store = SteppingStore(store, [at(1, fault)])
        try:
            answer = Answer(_perform(store, call), time_ms)
        except StoreUnavailableError:
            answer = Answer(None, time_ms, lost=True)
        old, new = self.objects.get(call.path), objects.get(call.path)
        if new is old:
            return answer, self
        key = self.key ^ _key(call.path, old) ^ _key(call.path, new)
        return replace(answer, landed=True), Content(objects, key)


def _copy(objects: MemoryObjects, time_ms: int) -> MemoryObjects:
    copy = MemoryObjects(lambda: START_MS + time_ms)
    copy.restore(objects.snapshot())
    return copy


def _key(path: str, found: StoredObject | None) -> int:
    if found is None:
        return 0
    facts = f"{path}\0{found.last_modified_ms}\0".encode()
    return int.from_bytes(hashlib.blake2b(facts + found.data, digest_size=16).digest())


def _perform(store: ObjectStore, call: Call) -> object:
    if call.beside is not None:
        return _perform(store, replace(call, beside=None)), store.get_range(call.beside, 0, BEGINNING_BYTES)
    data = call.data if call.data is not None else b""
    match call.operation:
        case Operation.GET if call.span is not None:
            return store.get_range(call.path, *call.span)
        case Operation.LIST:
            return tuple(store.list(call.path))
        case Operation.DELETE:
            store.delete([call.path])
        case Operation.PUT:
            store.put(call.path, data)
        case Operation.WRITE:
            with store.writer(call.path) as file:
                file.write(data)
        case Operation.PUT_IF_ABSENT:
            return store.put_if_absent(call.path, data)
        case _:
            return store.get(call.path) if call.operation is Operation.GET else store.head(call.path)
    return None

"""Histories in a few lines: one call after the other, records written as ``a@t0:3`` (value, topic, partition, offset).

Bounds are written as ``t0=0,5,6`` (log start, last stable offset, high watermark), offsets of a group as ``t0=5``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.checker.evidence import Batch, Decision, Entry, Epoch, Evidence, Marker, Record, Reference
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
    Place,
    Poll,
    Read,
    Rewind,
    Seen,
    Send,
    Topics,
    Write,
)

OK, FAIL, INFO = Outcome.OK, Outcome.FAIL, Outcome.INFO
_RECORD = re.compile(r"(\w+)@([a-z]+)(\d+)(?::(\d+))?")


def place(text: str) -> Place:
    """``t0``: partition 0 of topic t."""
    return text.rstrip("0123456789"), int(text.lstrip("abcdefghijklmnopqrstuvwxyz"))


def writes(text: str, **more: Any) -> tuple[Write, ...]:
    """``a@t0:3 b@t1``: records, of which the offset was told or not; more of all of them by name."""
    found = [_RECORD.fullmatch(each) for each in text.split()]
    return tuple(
        Write((each[2], int(each[3])), each[1], None if each[4] is None else int(each[4]), **more)
        for each in found
        if each is not None
    )


def seen(text: str) -> tuple[Seen, ...]:
    return tuple(Seen(each.place, each.offset or 0, each.value) for each in writes(text))


def bounds(text: str) -> dict[Place, Bounds]:
    pairs = (each.split("=") for each in text.split())
    return {place(where): Bounds(*map(int, numbers.split(","))) for where, numbers in pairs}


def offsets(text: str) -> dict[Place, int]:
    return {place(where): int(number) for where, number in (each.split("=") for each in text.split())}


@dataclass
class Story:
    """A history under construction; every call begins after the one before has ended, unless a span says otherwise."""

    history: list[Operation] = field(default_factory=list)
    evidence: Evidence = field(default_factory=Evidence)
    topics: Topics = field(default_factory=Topics)
    now: int = 0

    def call(self, call: Call, outcome: Outcome = OK, span: tuple[int, int | None] | None = None) -> None:
        invoked, returned = span or (self.now + 1, self.now + 2)
        self.now = max(self.now, returned or invoked)
        self.history.append(Operation(f"p{len(self.history)}", invoked, returned, outcome, call))

    def shows(self, **parts: Any) -> None:
        """The store shows this in the end."""
        self.evidence = replace(self.evidence, **parts)

    def has(self, **parts: Any) -> None:
        """Some topics are special."""
        self.topics = replace(self.topics, **parts)

    # -- producers

    def inits(self, name: str, owner: tuple[int, int], **options: Any) -> None:
        kept = options.pop("kept", False)
        self.call(Init(name, *owner, kept=kept), **options)

    def sends(self, text: str, txn: str | None = None, **options: Any) -> None:
        pid, epoch = options.pop("owner", (None, None))
        producer = options.pop("producer", txn or "plain")
        more = {name: options.pop(name) for name in ("source", "amount", "key", "dead") if name in options}
        buffered = options.pop("buffered", False)
        self.call(Send(producer, txn, writes(text, **more), pid, epoch, buffered), **options)

    def ends(self, txn: str, commit: bool, **options: Any) -> None:
        pid, epoch = options.pop("owner", (None, None))
        position = options.pop("position", None)
        self.call(End(txn, commit, position, None, pid, epoch), **options)

    def commits(self, txn: str, text: str, **options: Any) -> None:
        """A transaction that sends these records and commits."""
        self._whole(txn, text, True, **options)

    def aborts(self, txn: str, text: str, **options: Any) -> None:
        """A transaction that sends these records and aborts."""
        self._whole(txn, text, False, **options)

    def _whole(self, txn: str, text: str, commit: bool, **options: Any) -> None:
        outcome, position = options.pop("outcome", OK), options.pop("position", None)
        self.sends(text, txn, **options)
        self.ends(txn, commit, position=position, outcome=outcome, owner=options.get("owner", (None, None)))

    # -- readers

    def reads(self, text: str, told: str, level: Level = Level.COMMITTED, **options: Any) -> None:
        names = ("position", "offsets", "groups", "final", "as_of")
        more = {name: options.pop(name) for name in names if name in options}
        self.call(Read(level, seen(text), bounds(told), **more), **options)

    def snapshot(self, position: int | None, text: str, told: str, **options: Any) -> None:
        group = options.pop("group", None)
        if group is not None:
            committed = offsets(options.pop("stands", ""))
            options |= {"groups": frozenset({group}), "offsets": {(group, at): each for at, each in committed.items()}}
        self.reads(text, told, Level.SNAPSHOT, position=position, **options)

    def polls(self, consumer: str, text: str, told: str = "", **options: Any) -> None:
        names = ("txn", "level")
        more = {name: options.pop(name) for name in names if name in options}
        assignment = options.pop("assignment", 0)
        self.call(Poll(consumer, assignment, seen(text), bounds(told), **more), **options)

    # -- groups

    def stands(self, group: str, text: str, **options: Any) -> None:
        """A group's offsets are committed."""
        names = ("txn", "member", "generation", "reset")
        more = {name: options.pop(name) for name in names if name in options}
        self.call(CommitOffsets(group, offsets(text), **more), **options)

    def fetches(self, group: str, text: str, asked: str = "", **options: Any) -> None:
        places = frozenset(place(each) for each in asked.split())
        self.call(FetchOffsets(group, offsets(text), places), **options)

    def rewinds(self, consumer: str, group: str) -> None:
        self.call(Rewind(consumer, group))

    def joins(self, group: str, member: str, generation: int, owned: str) -> None:
        self.call(Join(group, member, generation, frozenset(place(each) for each in owned.split())))

    # -- the rest

    def looks(self, log: str, version: int, chain: str) -> None:
        self.call(Look(log, version, chain))

    def maintains(self, kind: str) -> None:
        self.call(Maintain(kind))


# -- what the store shows


def decision(owner: tuple[int, int], committed: bool, position: int, enrolled: str = "") -> Decision:
    places = frozenset(("id", place(each)) for each in enrolled.split())
    return Decision("id", *owner, committed, position, places)


def marker(owner: tuple[int, int], committed: bool, position: int, where: str, **more: int) -> Marker:
    offset, version = more.get("offset", 9), more.get("version", 9)
    return Marker(place(where), "id", *owner, committed, position, offset, version)


def batch(owner: tuple[int, int] | None, where: str, base: int, sequence: int | None, **more: Any) -> Batch:
    options: dict[str, Any] = {"path": f"{where}-{base}", "version": base, "records": 1, "transactional": True} | more
    path, version, records = options["path"], options["version"], options["records"]
    pid, of = owner or (None, None)
    return Batch(place(where), "id", path, version, base, records, options["transactional"], pid, of, sequence)


def entry(version: int, commit_id: str, previous: str | None, **more: Any) -> Entry:
    return Entry("log", version, commit_id, previous, "APPEND", **more)


def epoch(owner: tuple[int, int], version: int, name: str = "id") -> Epoch:
    return Epoch(name, *owner, version)


def stored(text: str, owner: tuple[int, int] | None) -> tuple[Record, ...]:
    pid, of = owner or (None, None)
    return tuple(Record(each.place, each.offset, each.value, pid, of) for each in seen(text))


def file(path: str, named: int, found: int | None) -> Reference:
    return Reference(path, named, found)


# -- cases


@dataclass(frozen=True)
class Case:
    """A history, and the anomalies that must be found in it."""

    number: int
    tell: Callable[[Story], None]
    found: frozenset[int]

    @property
    def name(self) -> str:
        return f"{self.number}-{self.tell.__name__}"


Teller = Callable[[Story], None]


@dataclass
class Cases:
    """The cases of one subject."""

    all: list[Case] = field(default_factory=list)

    def flagged(self, number: int, *also: int) -> Callable[[Teller], Teller]:
        """The history has this anomaly, and what comes along with it."""
        return self._take(number, frozenset({number, *also}))

    def passes(self, number: int) -> Callable[[Teller], Teller]:
        """The history looks alike, and nothing is wrong with it."""
        return self._take(number, frozenset())

    def _take(self, number: int, found: frozenset[int]) -> Callable[[Teller], Teller]:
        def take(tell: Teller) -> Teller:
            self.all.append(Case(number, tell, found))
            return tell

        return take

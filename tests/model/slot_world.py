"""One world of the model of slots: the log as it truly is, what lies in freed slots, and its writers."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Entry(NamedTuple):
    """An entry: whose, its number there, and the commit that it names as the one below."""

    writer: int
    number: int
    below: tuple[int, int] | None

    @property
    def commit_id(self) -> tuple[int, int]:
        """What tells it from others."""
        return self.writer, self.number


class Answer(StrEnum):
    """What a request was answered, if it was no entry."""

    NONE = "none yet"
    ABSENT = "404"
    CREATED = "created"
    EXISTS = "exists"
    LOST = "no answer"
    AWAITED = "under way"


class At(StrEnum):
    """Where a writer stands: it follows the log, has put, or looks for what it has put."""

    FOLLOWING = "following"
    PUTTING = "putting"
    LOOKING = "looking"


class Writer(NamedTuple):
    """A writer with its view, which is stale one tick after it was asked for.

    ``owed`` is a ghost: how long the log was when the view was asked for.  ``is_uncertain``: one of its puts
    was not answered.  ``is_cold``: it reads from version 0 on, and no tail was shown yet.
    """

    at: At = At.FOLLOWING
    view: tuple[Entry, ...] = ()
    owed: int = 0
    is_stale: bool = False
    is_shown: bool = False
    asked_owed: int = 0
    asked_is_old: bool = False
    answer: Answer | Entry = Answer.NONE
    number: int = 0
    put: Entry | None = None
    is_uncertain: bool = False
    is_cold: bool = True


class Slots(NamedTuple):
    """One world.  ``young`` and ``old``: how many entries one and two ticks have passed over.

    What cannot become wrong any more is forgotten: who was told that it is committed where the log has it,
    and who was told that it is not where the log has another.
    """

    history: tuple[Entry, ...] = ()
    first: int = 0
    young: int = 0
    old: int = 0
    ticks: int = 0
    again: tuple[tuple[int, Entry], ...] = ()
    flying: tuple[tuple[int, Entry], ...] = ()
    writers: tuple[Writer, ...] = ()
    believed: tuple[tuple[int, Entry], ...] = ()
    given_up: tuple[tuple[int, Entry], ...] = ()

    def at_slot(self, slot: int) -> Entry | None:
        """Return the object at a slot."""
        for found, entry in self.again:
            if found == slot:
                return entry
        return self.history[slot] if self.first <= slot < len(self.history) else None

    def create(self, slot: int, entry: Entry) -> Slots:
        """Return the world after a put-if-absent, which the slot may refuse."""
        if self.at_slot(slot) is not None:
            return self
        if slot == len(self.history):
            lost = tuple(pair for pair in self.given_up if pair[0] != slot or pair[1] == entry)
            return self._replace(history=(*self.history, entry), given_up=lost)
        return self._replace(again=tuple(sorted((*self.again, (slot, entry)))))

    def with_writer(self, number: int, writer: Writer) -> Slots:
        """Return the world with another state of one writer."""
        return self._replace(writers=(*self.writers[:number], writer, *self.writers[number + 1 :]))

    def told(self, slot: int, entry: Entry, *, committed: bool) -> Slots:
        """Return the world in which a writer was told what became of its commit."""
        there = self.history[slot] if slot < len(self.history) else None
        if committed:
            return self if there == entry else self._replace(believed=tuple(sorted((*self.believed, (slot, entry)))))
        if there not in (None, entry):
            return self
        return self._replace(given_up=tuple(sorted((*self.given_up, (slot, entry)))))

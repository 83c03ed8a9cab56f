"""The readers' rows of the transition table (PROTOCOL.md §10): of a snapshot, and of records as they come.

A reader of a snapshot takes its position once, and opens the public tables one after the other, each at whatever
version it is by then.  What is decided at or below its position, and not complete, it looks for in P (who brings
that up is a completer here), or it takes a position below.
"""

from __future__ import annotations

from tests.model.folds import Transactions
from tests.model.producing import WorldAction
from tests.model.transition_system import Action, Rule
from tests.model.world import NONE, Logs, Reader, World, changed


def published_position(transactions: Transactions, version: int) -> int:
    """Return the highest position with nothing decided and incomplete at or below it."""
    return min((decision.position - 1 for _, decision in transactions.owed()), default=version)


class Reading:
    """Guards and effects of readers over the logs of one model."""

    def __init__(self, logs: Logs) -> None:
        self._logs, self._size = logs, logs.size

    def actions(self) -> tuple[WorldAction, ...]:
        """Return their part of the table."""
        readers = range(self._size.readers)
        topics = range(self._size.topics if self._size.has_follower else 0)
        shown = Rule("a snapshot opens no table that is behind its position", "10", self._is_shown)
        stable = Rule("a reader does not pass the last stable offset", "10", self._is_stable)
        return (
            Action("TAKE THE PUBLISHED POSITION", "10", readers, self._begins, self._take_published),
            Action("TAKE THE NEWEST POSITION", "10", readers, self._begins, self._take_newest),
            Action("OPEN A PUBLIC TABLE", "10", readers, self._opens, self._open, (shown,)),
            Action("READ TO THE LAST STABLE OFFSET", "10", topics, self._is_behind, self._follow),
            Action("READ TO THE HIGH WATERMARK", "10", topics, self._is_below, self._run, (stable,)),
        )

    def _begins(self, world: World, number: int) -> bool:
        return world.readers[number].position == NONE and world.t > 0

    def _opens(self, world: World, number: int) -> bool:
        one = world.readers[number]
        return one.position != NONE and len(one.opened) < self._size.topics

    def _is_shown(self, world: World, number: int) -> bool:
        one = world.readers[number]
        owed = self._logs.transactions.state(one.t).owed() if one.t != NONE else []
        topic = len(one.opened)
        through = self._logs.public.state(world.public[topic]).through
        return all(decision.position <= through for _, decision in owed if topic in decision.enrolled)

    def _is_behind(self, world: World, topic: int) -> bool:
        return world.positions[topic] < self._logs.public.state(world.public[topic]).last_stable_offset

    def _is_below(self, world: World, topic: int) -> bool:
        return world.positions[topic] < self._logs.public.state(world.public[topic]).high_watermark

    def _is_stable(self, world: World, topic: int) -> bool:
        public = self._logs.public.state(world.public[topic])
        return public.high_watermark <= public.last_stable_offset

    def _take_published(self, world: World, number: int) -> World:
        transactions = self._logs.transactions
        position = published_position(transactions.state(world.t), transactions.version(world.t))
        return world._replace(readers=changed(world.readers, number, Reader(position)))

    def _take_newest(self, world: World, number: int) -> World:
        transactions = self._logs.transactions
        t = world.t if transactions.state(world.t).owed() else NONE
        reader = Reader(transactions.version(world.t), t=t)
        return world._replace(readers=changed(world.readers, number, reader))

    def _open(self, world: World, number: int) -> World:
        one = world.readers[number]
        opened = (*one.opened, world.public[len(one.opened)])
        t = one.t if len(opened) < self._size.topics else NONE
        return world._replace(readers=changed(world.readers, number, Reader(one.position, opened, t)))

    def _follow(self, world: World, topic: int) -> World:
        position = self._logs.public.state(world.public[topic]).last_stable_offset
        return world._replace(positions=changed(world.positions, topic, position))

    def _run(self, world: World, topic: int) -> World:
        position = self._logs.public.state(world.public[topic]).high_watermark
        return world._replace(positions=changed(world.positions, topic, position))

"""How a producer knows that its id's decision is complete, though no row says so (PROTOCOL.md §6.4).

It has read the decided row in T, and has seen P of each enrolled topic, and O where a group is enrolled, at that
decision or beyond.  These numbers only rise: so what it saw one after the other, or saw by completing itself, is one
look here, at any moment after they are there.  What it knows it keeps, until it sees another decision complete.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.model.folds import Decision, State
from tests.model.transition_system import Action, Rule
from tests.model.world import NONE, Logs, Stage, World

ONE_TOPIC = "P of one enrolled topic is taken for that of all"


class Knowing:
    """Guards and effects of looking for a decision in S, P and O, over the logs of one model.

    Parameters
    ----------
    logs : Logs
        Of the model.
    defects : frozenset of str
        What is wrong, though no rule is missing.
    """

    def __init__(self, logs: Logs, defects: frozenset[str] = frozenset()) -> None:
        self._logs, self._size = logs, logs.size
        self._enough = any if ONE_TOPIC in defects else all

    def actions(self) -> tuple[Action[World], ...]:
        """Return their part of the table."""
        everyone = range(len(self._size.ids))
        marked = Rule("replaced only when S has what it owes", "6.4", self._is_marked)
        shown = Rule("replaced only when P shows it", "6.4", self._is_shown)
        settled = Rule("replaced only when the offsets are settled", "6.4", self._is_settled)
        rules = (marked, shown, settled)
        return (Action("SEE THAT IT IS COMPLETE", "6.4", everyone, self._looks, self._know, rules),)

    def _decision(self, world: World, number: int) -> Decision | None:
        """Return the decision of the row that was read, where it is of who may go on from it."""
        one = world.producers[number]
        if one.stage > Stage.OPEN or one.t == NONE or one.log != NONE:
            return None
        row = self._logs.transactions.state(one.t).rows[self._size.ids[number]]
        if row is None or row.state is not State.DECIDED:
            return None
        return row.decision if one.stage is Stage.NEW or row.epoch == one.epoch else None

    def _looks(self, world: World, number: int) -> bool:
        decision = self._decision(world, number)
        return decision is not None and decision.position != world.producers[number].known

    # -- rules ------------------------------------------------------------------------------

    def _is_through(self, world: World, number: int, through: Sequence[int]) -> bool:
        decision = self._decision(world, number)
        assert decision is not None
        found = [each >= decision.position for topic, each in enumerate(through) if topic in decision.enrolled]
        return not found or self._enough(found)

    def _is_marked(self, world: World, number: int) -> bool:
        partitions = world.logs[: self._size.topics]
        return self._is_through(world, number, [self._logs.segments.state(log).through for log in partitions])

    def _is_shown(self, world: World, number: int) -> bool:
        return self._is_through(world, number, [self._logs.public.state(log).through for log in world.public])

    def _is_settled(self, world: World, number: int) -> bool:
        decision, group = self._decision(world, number), self._size.topics
        assert decision is not None
        is_enrolled = group in decision.enrolled
        return not is_enrolled or self._logs.offsets.state(world.logs[group]).through >= decision.position

    # -- effects ----------------------------------------------------------------------------

    def _know(self, world: World, number: int) -> World:
        decision = self._decision(world, number)
        assert decision is not None
        return world.with_producer(number, world.producers[number]._replace(known=decision.position))

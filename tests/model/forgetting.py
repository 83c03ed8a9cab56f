"""The expiry of producers: S forgets an epoch that has no open transaction with data (PROTOCOL.md §5.5)."""

from __future__ import annotations

from tests.model.folds import Forget
from tests.model.producing import WorldAction
from tests.model.transition_system import Action, Rule
from tests.model.world import Logs, World, changed


class Forgetting:
    """Guards and effects of the expiry over the logs of one model.

    Parameters
    ----------
    logs : Logs
        Of the model.
    """

    def __init__(self, logs: Logs) -> None:
        self._logs, self._size = logs, logs.size

    def actions(self) -> tuple[WorldAction, ...]:
        """Return its part of the table."""
        size = self._size
        places = range((max(size.ids) + 1) * size.topics) if size.has_expiry else range(0)
        no_data = Rule("no open transaction with data is forgotten", "5.5", self._has_no_data)
        return (Action("EXPIRE PRODUCERS", "5.5", places, self._is_known, self._forget, (no_data,)),)

    def _is_known(self, world: World, place: int) -> bool:
        topic, each = place % self._size.topics, place // self._size.topics
        return self._logs.segments.state(world.logs[topic]).epochs[each] is not None

    def _has_no_data(self, world: World, place: int) -> bool:
        topic, each = place % self._size.topics, place // self._size.topics
        return all(segment.id != each for segment in self._logs.segments.state(world.logs[topic]).open)

    def _forget(self, world: World, place: int) -> World:
        topic, each = place % self._size.topics, place // self._size.topics
        head = self._logs.segments.put(world.logs[topic], Forget(each))
        return world._replace(logs=changed(world.logs, topic, head))

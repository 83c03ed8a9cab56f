"""The vacuum's rows of the transition table, as far as uploads go that a decision may carry (PROTOCOL.md §5.7).

It reads T, then S, tombstones an upload that S does not have, looks at S once more, and deletes it.  Every upload is
old enough here: no age is what keeps one.
"""

from __future__ import annotations

from tests.model.folds import Row, State, Tombstone, Upload
from tests.model.producing import WorldAction
from tests.model.transition_system import Action, Rule
from tests.model.world import Logs, Vacuum, World, changed

SPARES_ALL = "vacuum spares every upload of an id that is there"


class Vacuuming:
    """Guards and effects of a vacuum over the logs of one model.

    Parameters
    ----------
    logs : Logs
        Of the model.
    defects : frozenset of str
        What is wrong, though no rule is missing.
    """

    def __init__(self, logs: Logs, defects: frozenset[str] = frozenset()) -> None:
        size = logs.size
        self._logs, self._size, self._defects = logs, size, defects
        # Each transaction raises the epoch, and so does each init, with that which it aborts.
        epochs = range((size.transactions + 2) * len(size.ids)) if size.has_vacuum else range(0)
        ids, sequences = sorted(set(size.ids)), range(size.segments)
        self._names = [
            Upload(topic, each, epoch, sequence)
            for topic in range(size.topics)
            for each in ids
            for epoch in epochs
            for sequence in sequences
        ]

    def actions(self) -> tuple[WorldAction, ...]:
        """Return its part of the table."""
        one, names = range(int(self._size.has_vacuum)), range(len(self._names))
        current = Rule("an upload of an epoch that may still append is spared", "5.7", self._is_past)
        carried = Rule("an upload that a decision may carry is spared", "5.7", self._is_not_carried)
        return (
            Action("READ T FOR VACUUM", "5.7", one, self._has_work, self._read),
            Action("TOMBSTONE AN UPLOAD", "5.7", names, self._is_unnamed, self._tombstone, (current, carried)),
            Action("DELETE AN UPLOAD", "5.7", one, self._is_going, self._delete),
        )

    def _row(self, world: World, number: int) -> Row:
        row = self._logs.transactions.state(world.vacuum.t).rows[self._names[number].id]
        return Row(State.EMPTY, 0) if row is None else row

    def _is_named(self, world: World, upload: Upload) -> bool:
        segments = self._logs.segments.state(world.logs[upload.topic]).segments
        return (upload.id, upload.epoch, upload.sequence) in {(s.id, s.epoch, s.sequence) for s in segments}

    # -- guards -----------------------------------------------------------------------------

    def _has_work(self, world: World, _: int) -> bool:
        is_idle = world.vacuum.going is None and world.vacuum.t != world.t
        return is_idle and any(not self._is_named(world, upload) for upload in world.uploads)

    def _is_unnamed(self, world: World, number: int) -> bool:
        upload = self._names[number]
        is_reading = world.vacuum.t >= 0 and world.vacuum.going is None
        return is_reading and upload in world.uploads and not self._is_named(world, upload)

    def _is_past(self, world: World, number: int) -> bool:
        is_kept = SPARES_ALL in self._defects
        return not is_kept and self._names[number].epoch < self._row(world, number).epoch

    def _is_not_carried(self, world: World, number: int) -> bool:
        row = self._row(world, number)
        if row.state is not State.DECIDED or row.decision is None:
            return True
        return self._names[number].epoch < row.decision.epoch

    def _is_going(self, world: World, _: int) -> bool:
        return world.vacuum.going is not None

    # -- effects ----------------------------------------------------------------------------

    def _read(self, world: World, _: int) -> World:
        return world._replace(vacuum=Vacuum(world.t))

    def _tombstone(self, world: World, number: int) -> World:
        upload = self._names[number]
        head = self._logs.segments.put(world.logs[upload.topic], Tombstone(upload))
        after = world._replace(logs=changed(world.logs, upload.topic, head))
        return after._replace(vacuum=world.vacuum._replace(going=upload))

    def _delete(self, world: World, _: int) -> World:
        going = world.vacuum.going
        assert going is not None
        gone = frozenset() if self._is_named(world, going) else frozenset({going})
        return world._replace(uploads=world.uploads - gone, vacuum=Vacuum())

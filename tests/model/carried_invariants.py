"""What is true of every world in which decisions carry segments (PROTOCOL.md §6.1, 6.4)."""

from __future__ import annotations

from collections import Counter

from tests.model.folds import Upload
from tests.model.invariants import of_all, of_logs, remembered
from tests.model.transition_system import Invariant
from tests.model.world import Logs, World


class CarriedInvariants:
    """The predicates over the logs of one model."""

    def __init__(self, logs: Logs) -> None:
        self._logs, self._size = logs, logs.size

    def of_every_world(self) -> tuple[Invariant[World], ...]:
        """Return what is always true."""
        once = "KIP-98; Iceberg 16282: double registration"
        return (
            remembered("a carried segment is appended once, with its marker", "6.4", once, of_all, self._once),
            remembered("what is only carried holds back nothing", "5.6", "KIP-98", of_all, self._holds_nothing),
            remembered("sequences have no gap", "5.4", "KIP-98", of_logs, self._in_sequence),
            Invariant("what was told to be aborted is not committed", "6.3", "KIP-98", self._stays_aborted),
            Invariant("what is carried or live has its file", "5.7", "CHECKER: dangling reference", self._no_dangling),
        )

    def of_worlds_at_rest(self) -> tuple[Invariant[World], ...]:
        """Return what is true when nobody can do anything any more."""
        return (Invariant("an upload that nothing can name is deleted", "5.7", "CHECKER: orphan", self._no_orphans),)

    def _segments(self, logs: tuple[int, ...]) -> list[Upload]:
        """Return what S of each topic has, as often as it has it."""
        found = enumerate(self._logs.segments.state(log).segments for log in logs[: self._size.topics])
        return [Upload(topic, each.id, each.epoch, each.sequence) for topic, all_ in found for each in all_]

    def _carried(self, t: int) -> list[tuple[Upload, int]]:
        """Return what each decision that there was carries, and its position."""
        decisions = self._logs.transactions.state(t).decisions
        return [(Upload(topic, i, d.epoch, number), d.position) for i, d in decisions for topic, number in d.carried]

    def _once(self, t: int, *nodes: int) -> bool:
        appended = Counter(self._segments(nodes))
        through = [self._logs.segments.state(log).through for log in nodes[: self._size.topics]]
        return all(
            appended[upload] == int(position <= through[upload.topic]) for upload, position in self._carried(t)
        ) and all(count == 1 for count in appended.values())

    def _holds_nothing(self, t: int, *nodes: int) -> bool:
        found = enumerate(self._logs.segments.state(log).open for log in nodes[: self._size.topics])
        held = {Upload(topic, each.id, each.epoch, each.sequence) for topic, all_ in found for each in all_}
        return held.isdisjoint(upload for upload, _ in self._carried(t))

    def _in_sequence(self, *logs: int) -> bool:
        return all(self._logs.segments.state(log).is_in_sequence for log in logs[: self._size.topics])

    def _stays_aborted(self, world: World) -> bool:
        decisions = self._logs.transactions.state(world.t).decisions if world.aborted else ()
        return world.aborted.isdisjoint((each, d.epoch) for each, d in decisions if d.is_commit)

    def _no_dangling(self, world: World) -> bool:
        if not self._size.carries:
            return True
        owed = {decision.position for _, decision in self._logs.transactions.state(world.t).owed()}
        carried = {upload for upload, position in self._carried(world.t) if position in owed}
        return carried | set(self._segments(world.logs)) <= world.uploads

    def _no_orphans(self, world: World) -> bool:
        if not self._size.has_vacuum:
            return True
        rows, named = self._logs.transactions.state(world.t).rows, set(self._segments(world.logs))
        epochs = {each: row.epoch for each, row in enumerate(rows) if row}
        return all(upload in named or upload.epoch >= epochs[upload.id] for upload in world.uploads)

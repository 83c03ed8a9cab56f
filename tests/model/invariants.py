"""What is true of every world of the model of transactions, in the field's words.

Each predicate is of a few logs, and worlds differ mostly in where processes stand: so answers are
remembered by the numbers of these logs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from tests.model.folds import Decision, State
from tests.model.reading import published_position
from tests.model.transition_system import Invariant
from tests.model.world import Logs, World

_MOST_REMEMBERED = 1 << 20
Key = Callable[[World], tuple[int, ...]]


def of_t(world: World) -> tuple[int, ...]:
    """Return T."""
    return (world.t,)


def of_logs(world: World) -> tuple[int, ...]:
    """Return S of each topic, and O."""
    return world.logs


def _of_public(world: World) -> tuple[int, ...]:
    return (*world.logs, *world.public)


def of_all(world: World) -> tuple[int, ...]:
    """Return all logs."""
    return (world.t, *world.logs, *world.public)


def remembered(name: str, section: str, origin: str, key: Key, holds: Callable[..., bool]) -> Invariant[World]:
    """Return an invariant of the logs that `key` picks, whose answers are remembered."""
    return Invariant(name, section, origin, partial(_look_up, key, lru_cache(_MOST_REMEMBERED)(holds)))


class Invariants:
    """The predicates over the logs of one model."""

    def __init__(self, logs: Logs) -> None:
        self._logs, self._size = logs, logs.size

    def of_every_world(self) -> tuple[Invariant[World], ...]:
        """Return what is always true."""
        kip_98, kip_890, kip_447 = "KIP-98", "KIP-890", "KIP-447"
        return (
            remembered("a transaction has one decision", "6.2", kip_98, of_t, self._one_decision),
            remembered("an epoch is given once, and never falls", "6.2", kip_890, of_t, self._epochs_rise),
            remembered("a zombie decides nothing", "6.2", kip_98, of_t, self._by_its_owner),
            remembered("a transaction ends once in a topic", "5.3", kip_98, of_logs, self._one_marker),
            remembered("offsets are dense", "5.1", "Kafka's log", of_logs, self._dense),
            remembered("no data of an epoch above its marker", "5.3", kip_890, of_logs, self._no_late_data),
            remembered("P is exactly what S shows", "7", "view maintenance", _of_public, self._exact),
            remembered("what was published stays", "7", "Jepsen: un-commit", _of_public, self._stays),
            remembered("the last stable offset never falls", "5.6", kip_98, _of_public, self._lso_rises),
            remembered("only committed data are visible", "5.6", "Adya: G1a", of_all, self._only_committed),
            remembered("all or none of a transaction is visible", "10", "Adya: G1b", of_all, self._atomic),
            remembered("who is complete, or went on, is owed nothing", "6.4", kip_98, of_all, self._owes_nothing),
            remembered("data that nothing will end", "6.5", "KIP-664, KIP-890", of_all, self._nothing_hangs),
            remembered("offsets are committed iff the outputs are", "8.1", kip_447, of_all, self._with_outputs),
            remembered("the latest request counts", "8.1", "Kafka's group coordinator", of_all, self._latest),
            Invariant("a snapshot has all of each transaction", "10", "Adya: G1b, PL-SI", self._snapshots),
            Invariant("the last stable offset never passes open data", "5.6", kip_98, self._stable),
        )

    def of_worlds_at_rest(self) -> tuple[Invariant[World], ...]:
        """Return what is true when nobody can do anything any more."""
        return (
            Invariant("everything decided is complete", "6.4", "CHECKER: hanging transaction", self._is_complete),
            Invariant("everything is stable", "5.6", "CHECKER: hanging transaction", self._is_stable),
        )

    # -- of single logs ---------------------------------------------------------------------

    def _one_decision(self, t: int) -> bool:
        decisions = self._logs.transactions.state(t).decisions
        return len({(each, decision.epoch) for each, decision in decisions}) == len(decisions)

    def _epochs_rise(self, t: int) -> bool:
        tree = self._logs.transactions
        given, before = tree.state(t).given, tree.state(tree.parent(t)).rows
        pairs = zip(before, tree.state(t).rows, strict=True)
        return len(set(given)) == len(given) and all(
            old is None or (new is not None and old.epoch <= new.epoch) for old, new in pairs
        )

    def _by_its_owner(self, t: int) -> bool:
        return all(decision.by == decision.epoch for _, decision in self._logs.transactions.state(t).decisions)

    def _partitions(self, logs: tuple[int, ...]) -> list[int]:
        return list(logs[: self._size.topics])

    def _dense(self, *logs: int) -> bool:
        return all(self._logs.segments.state(log).is_dense for log in self._partitions(logs))

    def _one_marker(self, *logs: int) -> bool:
        found = [self._logs.segments.state(log).markers for log in self._partitions(logs)]
        return all(len({(marker.id, marker.epoch) for marker in markers}) == len(markers) for markers in found)

    def _no_late_data(self, *logs: int) -> bool:
        return not any(self._logs.segments.state(log).has_late_data for log in self._partitions(logs))

    # -- of S and P -------------------------------------------------------------------------

    def _pairs(self, nodes: tuple[int, ...]) -> list[tuple[int, int]]:
        return list(zip(nodes[: self._size.topics], nodes[self._size.logs :], strict=True))

    def _exact(self, *nodes: int) -> bool:
        for segments, public in self._pairs(nodes):
            shown = self._logs.public.state(public)
            reflected = self._logs.segments.state(self._logs.segments.at(segments, shown.reflects))
            numbers = (reflected.last_stable_offset, reflected.through)
            if shown.content != reflected.visible or (shown.last_stable_offset, shown.through) != numbers:
                return False
        return True

    def _stays(self, *nodes: int) -> bool:
        tree = self._logs.public
        return all(tree.state(tree.parent(p)).content <= tree.state(p).content for _, p in self._pairs(nodes))

    def _lso_rises(self, *nodes: int) -> bool:
        tree, fold = self._logs.public, self._logs.segments
        return all(
            tree.state(tree.parent(p)).last_stable_offset <= tree.state(p).last_stable_offset
            and fold.state(fold.parent(s)).last_stable_offset <= fold.state(s).last_stable_offset
            for s, p in self._pairs(nodes)
        )

    # -- of all logs ------------------------------------------------------------------------

    def _decisions(self, t: int) -> dict[tuple[int, int], Decision]:
        return {(each, decision.epoch): decision for each, decision in self._logs.transactions.state(t).decisions}

    def _only_committed(self, t: int, *nodes: int) -> bool:
        decisions = self._decisions(t)
        for _, public in self._pairs(nodes):
            for segment, position in self._logs.public.state(public).content:
                decision = decisions.get((segment.id, segment.epoch))
                if decision is None or (decision.is_commit, decision.position) != (True, position):
                    return False
        return True

    def _shows_all(self, t: int, logs: tuple[int, ...], public: tuple[int, ...], position: int) -> bool:
        """Whether these tables show all data of what is committed at or below a position, and no other below it."""
        commits = {key: d.position for key, d in self._decisions(t).items() if d.is_commit and d.position <= position}
        for topic, (segments, shown) in enumerate(zip(logs, public, strict=False)):
            expected = self._written(segments, commits) | self._carried(t, topic, position)
            content = self._logs.public.state(shown).content
            if {segment[1:] for segment, commit in content if commit <= position} != expected:
                return False
        return True

    def _written(self, segments: int, commits: dict[tuple[int, int], int]) -> set[tuple[int, ...]]:
        return {each[1:] for each in self._logs.segments.state(segments).segments if (each.id, each.epoch) in commits}

    def _carried(self, t: int, topic: int, position: int) -> set[tuple[int, ...]]:
        decisions = self._logs.transactions.state(t).decisions
        found = [(each, d) for each, d in decisions if d.is_commit and d.position <= position]
        return {(each, d.epoch, sequence) for each, d in found for of, sequence in d.carried if of == topic}

    def _atomic(self, t: int, *nodes: int) -> bool:
        transactions = self._logs.transactions
        position = published_position(transactions.state(t), transactions.version(t))
        return self._shows_all(t, nodes[: self._size.topics], nodes[self._size.logs :], position)

    def _owes_nothing(self, t: int, *nodes: int) -> bool:
        """Whether S, P and O hold what is owed to each decision that has COMPLETE or a later entry of its id above."""
        transactions, group = self._logs.transactions.state(t), self._size.topics
        done = [one for one in transactions.decisions if one not in transactions.owed()]
        return all(
            self._is_settled(each, d, nodes[place]) if place == group else self._is_ended(each, d, place, nodes)
            for each, d in done
            for place in d.enrolled
        )

    def _is_ended(self, each: int, d: Decision, topic: int, nodes: tuple[int, ...]) -> bool:
        segments = self._logs.segments.state(nodes[topic])
        public = self._logs.public.state(nodes[self._size.logs + topic])
        markers = [marker[:-1] for marker in segments.markers].count((each, d.epoch, d.is_commit, d.position))
        written = {segment for segment in segments.segments if (segment.id, segment.epoch) == (each, d.epoch)}
        carried = {sequence for of, sequence in d.carried if of == topic}
        shown = {segment for segment, _ in public.content if (segment.id, segment.epoch) == (each, d.epoch)}
        is_through = d.position <= min(segments.through, public.through)
        is_appended = carried <= {segment.sequence for segment in written}
        return is_through and is_appended and markers == 1 and shown == (written if d.is_commit else set())

    def _is_settled(self, each: int, d: Decision, node: int) -> bool:
        offsets = self._logs.offsets.state(node)
        is_pending = any((one.id, one.epoch) == (each, d.epoch) for one in offsets.pending)
        return d.position <= offsets.through and not is_pending

    def _nothing_hangs(self, t: int, *nodes: int) -> bool:
        rows = self._logs.transactions.state(t).rows
        for topic, segments in enumerate(self._partitions(nodes)):
            for segment in self._logs.segments.state(segments).open:
                row = rows[segment.id]
                owed = row and row.decision if row and row.state is State.DECIDED else None
                ends = owed is not None and owed.epoch == segment.epoch and topic in owed.enrolled
                ongoing = row is not None and row.epoch == segment.epoch and topic in row.enrolled
                if not ends and not ongoing:
                    return False
        return True

    def _with_outputs(self, t: int, *nodes: int) -> bool:
        if not self._size.has_group:
            return True
        row, decisions = self._logs.offsets.state(nodes[self._size.topics]), self._decisions(t)
        complete = set(decisions) - {(each, d.epoch) for each, d in self._logs.transactions.state(t).owed()}
        if any((each.id, each.epoch) in complete for each in row.pending):
            return False
        asked = [each for each in row.offered if decisions.get((each.id, each.epoch)) and each not in row.pending]
        committed = [each for each in asked if decisions[each.id, each.epoch].is_commit]
        return (row.committed is not None) == bool(committed) and (row.committed is None or row.committed in committed)

    def _latest(self, t: int, *nodes: int) -> bool:
        if not self._size.has_group:
            return True
        row, decisions = self._logs.offsets.state(nodes[self._size.topics]), self._decisions(t)
        settled = [each for each in row.offered if (each.id, each.epoch) in decisions and each not in row.pending]
        commits = [each for each in settled if decisions[each.id, each.epoch].is_commit]
        return row.committed == max(commits, key=lambda each: each.request, default=None)

    # -- of readers -------------------------------------------------------------------------

    def _snapshots(self, world: World) -> bool:
        return all(
            self._shows_all(world.t, world.logs[: len(one.opened)], one.opened, one.position)
            for one in world.readers
            if one.opened
        )

    def _stable(self, world: World) -> bool:
        segments = self._logs.segments
        return all(
            position <= segments.state(log).last_stable_offset
            for position, log in zip(world.positions, world.logs, strict=False)
        )

    # -- of worlds at rest ------------------------------------------------------------------

    def _is_complete(self, world: World) -> bool:
        return not self._logs.transactions.state(world.t).owed()

    def _is_stable(self, world: World) -> bool:
        partitions = [self._logs.segments.state(log) for log in world.logs[: self._size.topics]]
        return all(partition.last_stable_offset == partition.next_offset for partition in partitions)


def _look_up(key: Key, answers: Callable[..., bool], world: World) -> bool:
    return answers(*key(world))

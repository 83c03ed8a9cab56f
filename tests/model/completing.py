"""The completer's rows of the transition table (PROTOCOL.md §6.4), projection (§7) and settling (§8.1) among them.

Its program, again and again: look at T; for each topic that is owed something read S, append what decisions
carry and write the markers, read P, project; then read O and settle; then read T and write COMPLETE, or leave
that to the id's next entry.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.model.folds import (
    Decision,
    Marker,
    Markers,
    Partition,
    Pending,
    Projection,
    RowsWritten,
    Segment,
    Settled,
    State,
)
from tests.model.producing import WorldAction
from tests.model.transition_system import Action, Rule
from tests.model.world import NONE, Completer, Logs, World, changed

PASSED_OVER = "a topic without data is passed over"
WITHOUT_SEGMENTS = "markers are written without what the decision carries"
APPENDED_AGAIN = "what is carried is appended again above its marker"
OWN_COMMIT = "what is carried has a commit of its own, before the marker's"
TORN = "a commit of S has one of the decisions of a position, and says that it has all"
BY_DECISION = "the latest decision counts"
OF_ANY_DECISION = "a late COMPLETE takes a newer decision of its id for the one that it knows"
OF_THE_ROW_IT_KNEW = "a late COMPLETE writes the row that its writer knew, whatever is at the slot"

Owed = Sequence[tuple[int, Decision]]


class Completing:
    """Guards and effects of completers over the logs of one model.

    Parameters
    ----------
    logs : Logs
        Of the model.
    defects : frozenset of str
        What the effects do wrong: mutants that are no missing guard.
    """

    def __init__(self, logs: Logs, defects: frozenset[str] = frozenset()) -> None:
        self._logs, self._size, self._defects = logs, logs.size, defects
        self._everyone = range(logs.size.completers)
        # Steps: 0 look; 1 + 2i mark topic i; 2 + 2i publish it; then settle; then complete.
        self._settling = 1 + 2 * logs.size.topics
        self._completing = self._settling + 1

    def actions(self) -> tuple[WorldAction, ...]:
        """Return their part of the table."""
        everyone = self._everyone
        lazy = everyone if self._size.has_lazy_completers else range(0)
        slot = Rule("completion: exactly the next slot", "4.2 rule 1", self._is_at_the_end)
        above = Rule("only above decided_through", "6.4", self._is_above)
        rises = Rule("reflects only rises", "7", self._rises)
        settled = Rule("settled also where none is pending", "6.4", self._is_settled_through)
        first = Rule("markers, projection and offsets come before COMPLETE", "6.4", self._is_last)
        return (
            Action("LOOK AT T", "6.4", everyone, self._looks, self._look),
            Action("READ FOR COMPLETION", "6.4", everyone, self._reads, self._read),
            Action("LOSE THE SLOT OF COMPLETION", "4.2", everyone, self._lost, self._forget),
            Action("WRITE MARKERS", "5.3", everyone, self._marks, self._mark, (slot, above)),
            Action("FIND IT MARKED", "6.4", everyone, self._finds_marked, self._pass_marked),
            Action("PROJECT", "7", everyone, self._publishes, self._project, (slot, rises)),
            Action("FIND IT PUBLISHED", "7", everyone, self._finds_published, self._pass),
            Action("SETTLE", "8.1", everyone, self._settles, self._settle, (slot,)),
            Action("FIND IT SETTLED", "6.4", everyone, self._finds_settled, self._pass, (settled,)),
            Action("GO ON TO COMPLETE", "6.4", everyone, self._is_under_way, self._skip, (first,)),
            Action("COMPLETE", "6.4", everyone, self._completes, self._complete, (slot,)),
            Action("WRITE NO COMPLETE", "6.4", lazy, self._is_through, self._finish),
            Action("FIND IT COMPLETE", "6.4", everyone, self._finds_complete, self._finish),
        )

    # -- where a completer stands -----------------------------------------------------------

    def _looks(self, world: World, number: int) -> bool:
        return world.completers[number].step == 0 and bool(self._logs.transactions.state(world.t).owed())

    def _is_under_way(self, world: World, number: int) -> bool:
        one = world.completers[number]
        return 0 < one.step < self._completing and one.view == NONE

    def _reads(self, world: World, number: int) -> bool:
        one = world.completers[number]
        return one.step > 0 and one.view == NONE

    def _lost(self, world: World, number: int) -> bool:
        one = world.completers[number]
        return one.view != NONE and one.view != self._head(world, one.step)

    def _is_marking(self, one: Completer) -> bool:
        return one.view != NONE and one.step < self._settling and one.step % 2 == 1

    def _is_publishing(self, one: Completer) -> bool:
        return one.view != NONE and 0 < one.step < self._settling and one.step % 2 == 0

    def _marks(self, world: World, number: int) -> bool:
        return self._is_marking(world.completers[number])

    def _finds_marked(self, world: World, number: int) -> bool:
        return self._is_marking(world.completers[number]) and not self._is_above(world, number)

    def _publishes(self, world: World, number: int) -> bool:
        return self._is_publishing(world.completers[number])

    def _finds_published(self, world: World, number: int) -> bool:
        return self._is_publishing(world.completers[number]) and not self._rises(world, number)

    def _settles(self, world: World, number: int) -> bool:
        one = world.completers[number]
        return one.view != NONE and one.step == self._settling and not self._is_settled_through(world, number)

    def _finds_settled(self, world: World, number: int) -> bool:
        one = world.completers[number]
        if one.view == NONE or one.step != self._settling:
            return False
        return self._is_settled_through(world, number) or not self._due(one)

    def _is_through(self, world: World, number: int) -> bool:
        one = world.completers[number]
        return one.step == self._completing and one.view == NONE

    def _completes(self, world: World, number: int) -> bool:
        one = world.completers[number]
        return one.step == self._completing and one.view != NONE and bool(self._owed_still(one))

    def _finds_complete(self, world: World, number: int) -> bool:
        one = world.completers[number]
        return one.step == self._completing and one.view != NONE and not self._owed_still(one)

    # -- rules ------------------------------------------------------------------------------

    def _is_at_the_end(self, world: World, number: int) -> bool:
        one = world.completers[number]
        return one.view == self._head(world, one.step)

    def _is_above(self, world: World, number: int) -> bool:
        one, topic = world.completers[number], (world.completers[number].step - 1) // 2
        through, owed = self._logs.segments.state(one.view).through, self._logs.transactions.state(one.t).owed()
        return any(through < decision.position for _, decision in owed if topic in decision.enrolled)

    def _rises(self, world: World, number: int) -> bool:
        one = world.completers[number]
        return self._logs.public.state(one.view).reflects < self._logs.segments.version(one.segments)

    def _is_settled_through(self, world: World, number: int) -> bool:
        one = world.completers[number]
        owed = self._logs.transactions.state(one.t).owed()
        needed = max(decision.position for _, decision in owed if self._size.topics in decision.enrolled)
        return self._logs.offsets.state(one.view).through >= needed

    def _is_last(self, world: World, number: int) -> bool:
        return world.completers[number].step == self._completing

    # -- what is owed -----------------------------------------------------------------------

    def _head(self, world: World, step: int) -> int:
        if step == self._completing:
            return world.t
        if step == self._settling:
            return world.logs[self._size.topics]
        topic = (step - 1) // 2
        return world.logs[topic] if step % 2 else world.public[topic]

    def _next_step(self, one: Completer) -> int:
        owed = self._logs.transactions.state(one.t).owed()
        enrolled = frozenset[int]().union(*(decision.enrolled for _, decision in owed))
        if 0 < one.step < self._settling and one.step % 2 == 1:
            return one.step + 1
        for place in range((one.step + 1) // 2, self._size.logs):
            if place in enrolled:
                return 1 + 2 * place
        return self._completing

    def _due(self, one: Completer) -> list[Pending]:
        """Return the pending offsets that are decided in T as it was looked at, and not complete there."""
        decided = {(each, d.epoch) for each, d in self._logs.transactions.state(one.t).owed()}
        return [each for each in self._logs.offsets.state(one.view).pending if (each.id, each.epoch) in decided]

    def _owed_still(self, one: Completer) -> list[int]:
        """Return whose row is still at the decision that was looked at: who went beyond it needs no COMPLETE."""
        known = self._logs.transactions.version(one.t)
        owed = self._logs.transactions.state(self._decided_on(one)).owed()
        return [each for each, d in owed if d.position <= known or OF_ANY_DECISION in self._defects]

    def _decided_on(self, one: Completer) -> int:
        """Return T as COMPLETE is decided on: that of the slot."""
        return one.t if OF_THE_ROW_IT_KNEW in self._defects else one.view

    # -- effects ----------------------------------------------------------------------------

    def _look(self, world: World, number: int) -> World:
        one = Completer(t=world.t)
        return world.with_completer(number, one._replace(step=self._next_step(one)))

    def _read(self, world: World, number: int) -> World:
        one = world.completers[number]
        return world.with_completer(number, one._replace(view=self._head(world, one.step)))

    def _forget(self, world: World, number: int) -> World:
        return world.with_completer(number, world.completers[number]._replace(view=NONE))

    def _skip(self, world: World, number: int) -> World:
        return world.with_completer(number, world.completers[number]._replace(step=self._completing))

    def _finish(self, world: World, number: int) -> World:
        return world.with_completer(number, Completer())

    def _pass(self, world: World, number: int) -> World:
        one = world.completers[number]
        return world.with_completer(number, Completer(self._next_step(one), one.t))

    def _pass_marked(self, world: World, number: int) -> World:
        one = world.completers[number]
        return world.with_completer(number, Completer(one.step + 1, one.t, segments=one.view))

    def _mark(self, world: World, number: int) -> World:
        one, topic = world.completers[number], (world.completers[number].step - 1) // 2
        before, known = self._logs.segments.state(one.view), self._logs.transactions.state(one.t)
        ended = [(each, d) for each, d in known.owed() if topic in d.enrolled]
        ended.sort(key=lambda pair: pair[1].position)
        owed = [(each, d) for each, d in ended if d.position > before.through]
        if TORN in self._defects:
            owed = [one for before_it, one in zip([None, *owed], owed, strict=False) if not _shares(before_it, one)]
        data = {(segment.id, segment.epoch) for segment in before.open}
        if PASSED_OVER in self._defects and not any((each, d.epoch) in data for each, d in owed):
            return self._pass_marked(world, number)
        through, after = self._logs.transactions.version(one.t), Completer(one.step + 1, one.t)
        carried = () if WITHOUT_SEGMENTS in self._defects else ended if APPENDED_AGAIN in self._defects else owed
        if OWN_COMMIT in self._defects and any(d.carried and (each, d.epoch) not in data for each, d in owed):
            # The markers come with the next commit.
            through, owed, after = before.through, [], one._replace(view=NONE)
        entry = _entry(topic, before, carried, owed)._replace(through=through)
        head = self._logs.segments.put(world.logs[topic], entry)
        segments = head if after.step > one.step else NONE
        marked = world._replace(logs=changed(world.logs, topic, head))
        return marked.with_completer(number, after._replace(segments=segments))

    def _project(self, world: World, number: int) -> World:
        one, topic = world.completers[number], (world.completers[number].step - 2) // 2
        segments, public = self._logs.segments.state(one.segments), self._logs.public.state(one.view)
        entry = Projection(
            self._logs.segments.version(one.segments),
            segments.visible - public.content,
            public.content - segments.visible,
            segments.last_stable_offset,
            segments.next_offset,
            segments.through,
        )
        head = self._logs.public.put(world.public[topic], entry)
        after = world._replace(public=changed(world.public, topic, head))
        return after.with_completer(number, Completer(self._next_step(one), one.t))

    def _settle(self, world: World, number: int) -> World:
        one = world.completers[number]
        before, due = self._logs.offsets.state(one.view), self._due(one)
        commits = {
            (each, d.epoch): d.position for each, d in self._logs.transactions.state(one.t).owed() if d.is_commit
        }
        committed = before.committed
        for each in sorted(due, key=lambda each: commits.get((each.id, each.epoch), 0)):
            is_later = committed is None or each.request > committed.request
            if (each.id, each.epoch) in commits and (is_later or BY_DECISION in self._defects):
                committed = each
        through = max(before.through, self._logs.transactions.version(one.t))
        left = tuple(each for each in before.pending if each not in due)
        head = self._logs.offsets.put(world.logs[self._size.topics], Settled(through, committed, left))
        after = world._replace(logs=changed(world.logs, self._size.topics, head))
        return after.with_completer(number, Completer(self._next_step(one), one.t))

    def _complete(self, world: World, number: int) -> World:
        one = world.completers[number]
        rows = self._logs.transactions.state(self._decided_on(one)).rows
        done = []
        for each in self._owed_still(one):
            row = rows[each]
            assert row is not None
            done.append((each, row._replace(state=State.COMPLETE)))
        after = world._replace(t=self._logs.transactions.put(world.t, RowsWritten(tuple(done))))
        return after.with_completer(number, Completer())


def _shares(one: tuple[int, Decision] | None, other: tuple[int, Decision]) -> bool:
    return one is not None and one[1].position == other[1].position


def _entry(topic: int, before: Partition, carried: Owed, ended: Owed) -> Markers:
    """Return, decision by decision, what each carries for the topic, and its marker: offsets follow one another."""
    segments: list[Segment] = []
    markers: list[Marker] = []
    offset = before.next_offset
    for each, d in sorted({*carried, *ended}, key=lambda pair: pair[1].position):
        for sequence in [sequence for of, sequence in d.carried if of == topic and (each, d) in carried]:
            segments.append(Segment(offset, each, d.epoch, sequence))
            offset += 1
        if (each, d) in ended:
            markers.append(Marker(each, d.epoch, d.is_commit, d.position, offset))
            offset += 1
    return Markers(before.through, tuple(markers), offset, tuple(segments))

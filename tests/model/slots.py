"""The model of one log: writers that stall, late puts, and a cleanup that frees slots (PROTOCOL.md §4.2, §4.5).

A tick of the clock is a guard: views that are older are stale.  An entry that two ticks have passed
over may be cleaned up, below one that is as old.  Whatever is created again in a freed slot is in
``again``, and never in ``history``, which is the log as it truly is.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.model.slot_world import Answer, At, Entry, Slots, Writer
from tests.model.transition_system import Action, Invariant, Model, Rule


class SlotModel:
    """Guards and effects of writers, the cleanup and the clock.

    Parameters
    ----------
    commits : tuple of int
        How many of each writer.
    ticks, late : int
        How far time goes, and how many puts may be under way unheard at a time.
    """

    def __init__(self, commits: tuple[int, ...] = (1, 2), ticks: int = 3, late: int = 1) -> None:
        self._writers, self._commits, self._ticks, self._late = range(len(commits)), commits, ticks, late

    def model(self) -> Model[Slots]:
        """Return the model."""
        one = range(1)
        kept = Rule("entries are kept for many guards", "4.5", self._is_old)
        actions = (
            *self._reading(),
            *self._writing(),
            Action("LAND LATE", "4.2 rule 1", range(self._late), self._flies, self._land),
            Action("CLEAN UP", "4.5", one, self._may_clean, self._clean, (kept,)),
            Action("LET A GUARD PASS", "4.2 rule 3", one, self._has_time, self._tick),
        )
        name = f"slots: commits of each writer {self._commits}, {self._ticks} guards, {self._late} late"
        return Model(name, Slots(writers=(Writer(),) * len(self._writers)), actions, self._invariants())

    def _reading(self) -> Sequence[Action[Slots]]:
        young = Rule("an answer counts only for a view younger than the guard", "4.2 rule 3", self._is_young)
        names = Rule("an entry names the one below", "4.1", self._continues)
        return (
            Action("ASK FOR THE NEXT SLOT", "4.2 rule 4", self._writers, self._may_ask, self._ask),
            Action("FOLD THE NEXT ENTRY", "4.2 rule 4", self._writers, self._has_entry, self._fold, (young, names)),
            Action("TAKE IT FOR THE TAIL", "4.2 rule 4", self._writers, self._has_none, self._show, (young,)),
            Action("REOPEN", "4.2 rule 3", self._writers, self._must_reopen, self._reopen),
        )

    def _writing(self) -> Sequence[Action[Slots]]:
        fresh = Rule("a stale view is not written through", "4.2 rule 3", self._is_fresh)
        believed = Rule("a put counts only for a view younger than the guard", "4.2 rule 3", self._is_fresh)
        proved = Rule("the head, or the next entry names it", "4.2 rule 3", self._is_proved)
        same = Rule("the same slot again, never the next", "4.2 rule 1", self._is_refused)
        settled = Rule("exists is settled by reading the slot", "4.2 rule 1", self._was_created)
        certain = Rule("a slot created again proves a loss to who put once", "4.2 rule 3", self._is_certain)
        w = self._writers
        return (
            Action("PUT", "4.2 rule 1", w, self._may_put, self._put, (fresh,)),
            Action("PUT, AND LOSE THE ANSWER", "4.2 rule 1", w, self._may_put, self._put_unheard, (fresh,)),
            Action("PUT THAT LANDS LATE", "4.2 rule 1", w, self._may_fly, self._put_late, (fresh,)),
            Action("READ THE SLOT", "4.2 rule 1", w, self._must_look, self._look),
            Action("PUT THE SAME AGAIN", "4.2 rule 2", w, self._found_none, self._again),
            Action("PUT THE SAME AT THE NEXT SLOT", "4.2 rule 1", w, self._must_look, self._next, (same,)),
            Action("BELIEVE THAT IT IS COMMITTED", "4.2 rule 1", w, self._is_mine, self._believe, (believed,)),
            Action("TAKE EXISTS FOR A CONFLICT", "4.2 rule 1", w, self._exists, self._give_up, (settled,)),
            Action("FOLLOW THE WINNER", "4.2 rule 1", w, self._is_anothers, self._give_up, (believed,)),
            Action("REOPEN AND LOOK", "4.2 rule 3", w, self._must_locate, self._locate),
            Action("REOPEN AND FIND THE NEXT SLOT FREE", "4.2 rule 3", w, self._is_past, self._give_up, (certain,)),
            Action("BELIEVE THE SLOT OF ITS OWN BYTES", "4.2 rule 3", w, self._sees_own, self._believe, (proved,)),
        )

    def _invariants(self) -> tuple[Invariant[Slots], ...]:
        return (
            Invariant("what is believed is in the log", "4.2 rule 3", "SlateDB RFC-0026", self._all_in_log),
            Invariant("a commit is in the log once", "4.2 rule 1", "CHECKER: double commit", self._no_twice),
            Invariant(
                "a commit that was given up is not in the log", "4.2 rule 1", "CHECKER: false failure", self._gone
            ),
            Invariant("a view has what was there when it was asked for", "4.2 rule 3", "stale read", self._no_older),
            Invariant("a view is of the one log", "4.1", "S2: chained hash", self._one_log),
        )

    # -- where a writer stands --------------------------------------------------------------

    def _may_ask(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return (
            one.at is At.FOLLOWING
            and one.answer is Answer.NONE
            and not one.is_shown
            and one.number < self._commits[number]
        )

    def _has_entry(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.at is At.FOLLOWING and isinstance(one.answer, Entry)

    def _has_none(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.at is At.FOLLOWING and one.answer is Answer.ABSENT

    def _must_reopen(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.at is At.FOLLOWING and one.put is None and one.is_stale and one.number < self._commits[number]

    def _may_put(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.at is At.FOLLOWING and one.is_shown and one.number < self._commits[number]

    def _may_fly(self, world: Slots, number: int) -> bool:
        return self._may_put(world, number) and len(world.flying) < self._late

    def _flies(self, world: Slots, index: int) -> bool:
        return index < len(world.flying)

    def _must_look(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.at is At.PUTTING and one.answer in (Answer.EXISTS, Answer.LOST)

    def _exists(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.at is At.PUTTING and one.answer is Answer.EXISTS

    def _found_none(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.at is At.LOOKING and one.answer is Answer.ABSENT and not one.is_stale

    def _is_mine(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.at is not At.FOLLOWING and (one.answer is Answer.CREATED or self._sees_own(world, number))

    def _sees_own(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.at is At.LOOKING and one.answer == one.put

    def _is_anothers(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.at is At.LOOKING and isinstance(one.answer, Entry) and one.answer != one.put

    def _must_locate(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.put is not None and one.is_stale

    def _is_past(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        slot = len(one.view)
        return self._must_locate(world, number) and slot + 1 < world.first and world.at_slot(slot) is not None

    def _may_clean(self, world: Slots, number: int) -> bool:
        return world.first + 1 < len(world.history)

    def _has_time(self, world: Slots, number: int) -> bool:
        return world.ticks < self._ticks

    # -- rules ------------------------------------------------------------------------------

    def _is_fresh(self, world: Slots, number: int) -> bool:
        return not world.writers[number].is_stale

    def _is_young(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        # Who has no view yet begins at version 0, which must be there still.
        return not one.is_stale if one.view else world.first == 0

    def _continues(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        assert isinstance(one.answer, Entry)
        return one.answer.below == (one.view[-1].commit_id if one.view else None)

    def _is_proved(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        slot = len(one.view)
        return self._can_tell(world, slot) and world.history[slot] == one.put

    def _can_tell(self, world: Slots, slot: int) -> bool:
        is_head = slot == len(world.history) - 1
        return is_head or world.first <= slot + 1 < len(world.history)

    def _is_certain(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.answer is Answer.CREATED and not one.is_uncertain

    def _is_refused(self, world: Slots, number: int) -> bool:
        return False

    def _was_created(self, world: Slots, number: int) -> bool:
        return False

    def _is_old(self, world: Slots, number: int) -> bool:
        return world.first + 1 < world.old

    # -- effects ----------------------------------------------------------------------------

    def _ask(self, world: Slots, number: int) -> Slots:
        one = world.writers[number]
        answer = world.at_slot(len(one.view)) or Answer.ABSENT
        asked = one._replace(answer=answer, asked_owed=len(world.history), asked_is_old=False)
        return world.with_writer(number, asked)

    def _renewed(self, one: Writer) -> Writer:
        return one._replace(
            answer=Answer.NONE, owed=one.asked_owed, is_stale=one.asked_is_old, asked_owed=0, asked_is_old=False
        )

    def _fold(self, world: Slots, number: int) -> Slots:
        one = world.writers[number]
        assert isinstance(one.answer, Entry)
        # The tail is not shown yet: the view owes nothing.
        return world.with_writer(number, self._renewed(one)._replace(view=(*one.view, one.answer), owed=0))

    def _show(self, world: Slots, number: int) -> Slots:
        return world.with_writer(number, self._renewed(world.writers[number])._replace(is_shown=True))

    def _reopen(self, world: Slots, number: int) -> Slots:
        one = world.writers[number]
        opened = Writer(view=world.history, owed=len(world.history), is_shown=True, number=one.number)
        return world.with_writer(number, opened)

    def _proposed(self, one: Writer, number: int) -> Entry:
        return one.put or Entry(number, one.number, one.view[-1].commit_id if one.view else None)

    def _put(self, world: Slots, number: int) -> Slots:
        return self._send(world, number, heard=True)

    def _put_unheard(self, world: Slots, number: int) -> Slots:
        return self._send(world, number, heard=False)

    def _send(self, world: Slots, number: int, *, heard: bool) -> Slots:
        one = world.writers[number]
        entry, slot = self._proposed(one, number), len(one.view)
        is_free = world.at_slot(slot) is None
        after = world.create(slot, entry) if is_free else world
        answer = (Answer.CREATED if is_free else Answer.EXISTS) if heard else Answer.LOST
        put = one._replace(at=At.PUTTING, answer=answer, put=entry, is_uncertain=one.is_uncertain or not heard)
        return after.with_writer(number, put)

    def _put_late(self, world: Slots, number: int) -> Slots:
        one = world.writers[number]
        entry = self._proposed(one, number)
        after = world._replace(flying=(*world.flying, (len(one.view), entry)))
        put = one._replace(at=At.PUTTING, answer=Answer.LOST, put=entry, is_uncertain=True)
        return after.with_writer(number, put)

    def _land(self, world: Slots, index: int) -> Slots:
        slot, entry = world.flying[index]
        after = world._replace(flying=(*world.flying[:index], *world.flying[index + 1 :]))
        return after.create(slot, entry) if world.at_slot(slot) is None else after

    def _look(self, world: Slots, number: int) -> Slots:
        one = world.writers[number]
        answer = world.at_slot(len(one.view)) or Answer.ABSENT
        return world.with_writer(number, one._replace(at=At.LOOKING, answer=answer))

    def _again(self, world: Slots, number: int) -> Slots:
        one = world.writers[number]
        return world.with_writer(number, one._replace(at=At.FOLLOWING, answer=Answer.NONE))

    def _next(self, world: Slots, number: int) -> Slots:
        one = world.writers[number]
        if world.at_slot(len(one.view)) is None or one.put is None:
            return world
        below = world.at_slot(len(one.view))
        assert below is not None
        moved = one.put._replace(below=below.commit_id)
        return world.with_writer(
            number, one._replace(at=At.FOLLOWING, view=(*one.view, below), answer=Answer.NONE, put=moved)
        )

    def _next_commit(self, one: Writer, view: tuple[Entry, ...]) -> Writer:
        return Writer(view=view, owed=0, is_stale=one.is_stale, number=one.number + 1)

    def _believe(self, world: Slots, number: int) -> Slots:
        one = world.writers[number]
        assert one.put is not None
        after = world._replace(believed=tuple(sorted((*world.believed, (len(one.view), one.put)))))
        return after.with_writer(number, self._next_commit(one, (*one.view, one.put)))

    def _give_up(self, world: Slots, number: int) -> Slots:
        one = world.writers[number]
        assert one.put is not None
        after = world._replace(given_up=tuple(sorted((*world.given_up, one.put))))
        return after.with_writer(number, self._next_commit(one, one.view))

    def _locate(self, world: Slots, number: int) -> Slots:
        one = world.writers[number]
        # It may still land, or was cleaned up: then nobody is told, and the next one is decided on what there is.
        after = world
        if self._can_tell(world, len(one.view)):
            after = self._believe(world, number) if self._is_proved(world, number) else self._give_up(world, number)
        opened = Writer(view=world.history, owed=len(world.history), is_shown=True, number=one.number + 1)
        return after.with_writer(number, opened)

    def _clean(self, world: Slots, number: int) -> Slots:
        if any(slot == world.first for slot, _ in world.again):
            return world._replace(again=tuple(pair for pair in world.again if pair[0] != world.first))
        return world._replace(first=world.first + 1)

    def _tick(self, world: Slots, number: int) -> Slots:
        writers = tuple(
            one._replace(is_stale=bool(one.view) or one.is_shown, asked_is_old=True) for one in world.writers
        )
        length = len(world.history)
        return world._replace(old=world.young, young=length, ticks=world.ticks + 1, writers=writers)

    # -- invariants -------------------------------------------------------------------------

    def _all_in_log(self, world: Slots) -> bool:
        return all(slot < len(world.history) and world.history[slot] == entry for slot, entry in world.believed)

    def _no_twice(self, world: Slots) -> bool:
        return len({entry.commit_id for entry in world.history}) == len(world.history)

    def _gone(self, world: Slots) -> bool:
        return not set(world.given_up) & set(world.history)

    def _no_older(self, world: Slots) -> bool:
        return all(len(one.view) >= one.owed for one in world.writers)

    def _one_log(self, world: Slots) -> bool:
        return all(one.view == world.history[: len(one.view)] for one in world.writers)

"""The model of one log: writers that stall, late puts, and a cleanup that frees slots (PROTOCOL.md §4.2, §4.3, §4.5).

A tick of the clock is a guard: views that are older are stale.  An entry that two ticks have passed
over may be cleaned up, below one that is as old.  Whatever is created again in a freed slot is in
``again``, and never in ``history``, which is the log as it truly is.  A reader from cold starts at
version 0; checkpoints are not modelled: whoever reopens has the newest view at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.model.slot_rules import SlotRules
from tests.model.slot_world import Answer, At, Entry, Slots, Writer
from tests.model.transition_system import Action, Invariant, Model, Rule


class SlotModel(SlotRules):
    """The transition table, and the effects of writers, the cleanup and the clock."""

    def model(self) -> Model[Slots]:
        """Return the model."""
        one = range(1)
        kept = Rule("entries are kept for many guards", "4.5", self._is_old)
        actions = (
            *self._reading(),
            *self._writing(),
            *self._proving(),
            Action("LAND LATE", "4.2 rule 1", range(self._late), self._flies, self._land),
            Action("CLEAN UP", "4.5", one, self._may_clean, self._clean, (kept,)),
            Action("CLEAN UP WHAT WAS CREATED AGAIN", "4.5", one, self._has_again, self._clean_again),
            Action("LET A GUARD PASS", "4.2 rule 3", one, self._has_time, self._tick),
        )
        if self._twice:
            actions += (Action("DELIVER AGAIN", "4.2 rule 2", self._writers, self._may_repeat, self._repeat),)
        name = f"slots: commits of each writer {self._commits}, {self._ticks} guards, {self._late} late"
        name += ", delivered twice" * self._twice
        return Model(name, Slots(writers=(Writer(),) * len(self._writers)), actions, self._invariants())

    def _reading(self) -> Sequence[Action[Slots]]:
        young = Rule("an answer counts only for a view younger than the guard", "4.2 rule 3", self._is_young)
        names = Rule("an entry names the one below", "4.1", self._continues)
        there = Rule("what it was started from is still there", "4.3", self._is_there)
        once = Rule("what it was started from was not created again", "4.3", self._is_no_other)
        return (
            Action("ASK FOR THE NEXT SLOT", "4.2 rule 4", self._writers, self._may_ask, self._ask),
            Action("FOLD THE NEXT ENTRY", "4.2 rule 4", self._writers, self._has_entry, self._fold, (young, names)),
            Action(
                "TAKE IT FOR THE TAIL", "4.2 rule 4", self._writers, self._has_none, self._show, (young, there, once)
            ),
            Action("REOPEN", "4.2 rule 3", self._writers, self._must_reopen, self._reopen),
        )

    def _writing(self) -> Sequence[Action[Slots]]:
        fresh = Rule("a stale view is not written through", "4.2 rule 3", self._is_fresh)
        believed = Rule("a put counts only for a view younger than the guard", "4.2 rule 3", self._is_fresh)
        same = Rule("the same slot again, never the next", "4.2 rule 1", self._is_refused)
        settled = Rule("exists is settled by reading the slot", "4.2 rule 1", self._is_refused)
        w = self._writers
        return (
            Action("PUT", "4.2 rule 1", w, self._may_put, self._put, (fresh,)),
            Action("PUT, AND LOSE THE ANSWER", "4.2 rule 1", w, self._may_put, self._put_unheard, (fresh,)),
            Action("PUT THAT LANDS LATE", "4.2 rule 1", w, self._may_fly, self._put_late, (fresh,)),
            Action("WAIT NO LONGER", "4.2 rule 1", w, self._awaits, self._lose),
            Action("ANSWER UNKNOWN", "4.2 rule 1", w, self._is_unheard, self._forget),
            Action("READ THE SLOT", "4.2 rule 1", w, self._must_look, self._look),
            Action("PUT THE SAME AGAIN", "4.2 rule 2", w, self._found_none, self._again),
            Action("PUT THE SAME AT THE NEXT SLOT", "4.2 rule 1", w, self._must_look, self._next, (same,)),
            Action("BELIEVE THAT IT IS COMMITTED", "4.2 rule 1", w, self._is_mine, self._believe, (believed,)),
            Action("TAKE EXISTS FOR A CONFLICT", "4.2 rule 1", w, self._exists, self._give_up, (settled,)),
            Action("FOLLOW THE WINNER", "4.2 rule 1", w, self._is_anothers, self._give_up, (believed,)),
        )

    def _proving(self) -> Sequence[Action[Slots]]:
        proved = Rule("the head, or the next entry names it", "4.2 rule 3", self._is_proved)
        another = Rule("another's entry in the slot proves nothing", "4.2 rule 3", self._is_refused)
        own = Rule("its own entry in the slot proves no loss", "4.2 rule 3", self._is_refused)
        same = Rule("a slot that is still free gets the same again", "4.2 rule 3", self._is_refused)
        w = self._writers
        return (
            Action("REOPEN AND LOOK", "4.2 rule 3", w, self._can_locate, self._locate),
            Action("REOPEN AND FIND THE SLOT FREE", "4.2 rule 3", w, self._is_free, self._reopen_free),
            Action("REOPEN, AND DO NOT KNOW", "4.2 rule 3", w, self._can_not_tell, self._open_next),
            Action("DECIDE ANEW WHERE IT IS FREE", "4.2 rule 3", w, self._is_free, self._lost, (same,)),
            Action("TAKE ANOTHER'S ENTRY FOR A LOSS", "4.2 rule 3", w, self._has_anothers, self._lost, (another,)),
            Action("TAKE ITS OWN ENTRY FOR A LOSS", "4.2 rule 3", w, self._has_own, self._lost, (own,)),
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
        shown = self._renewed(world.writers[number])._replace(is_shown=True, is_cold=False)
        return world.with_writer(number, shown)

    def _reopen(self, world: Slots, number: int) -> Slots:
        return world.with_writer(number, self._opened(world, number, world.writers[number].number))

    def _opened(self, world: Slots, writer: int, number: int) -> Writer:
        """Return a writer whose view is the newest; a checkpoint is not modelled: it is opened at once."""
        if number == self._commits[writer]:
            return Writer(number=number)
        return Writer(view=world.history, owed=len(world.history), is_shown=True, number=number, is_cold=False)

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
        after = world.create(slot, entry)
        answer = (Answer.CREATED if is_free else Answer.EXISTS) if heard else Answer.LOST
        put = one._replace(at=At.PUTTING, answer=answer, put=entry, is_uncertain=one.is_uncertain or not heard)
        return after.with_writer(number, put)

    def _put_late(self, world: Slots, number: int) -> Slots:
        one = world.writers[number]
        entry = self._proposed(one, number)
        after = world._replace(flying=(*world.flying, (len(one.view), entry)))
        put = one._replace(at=At.PUTTING, answer=Answer.AWAITED, put=entry)
        return after.with_writer(number, put)

    def _land(self, world: Slots, index: int) -> Slots:
        slot, entry = world.flying[index]
        is_free = world.at_slot(slot) is None
        flying = (*world.flying[:index], *world.flying[index + 1 :])
        after = world._replace(flying=flying).create(slot, entry)
        one = world.writers[entry.writer]
        if one.answer is not Answer.AWAITED or one.put != entry:
            return after
        return after.with_writer(entry.writer, one._replace(answer=Answer.CREATED if is_free else Answer.EXISTS))

    def _lose(self, world: Slots, number: int) -> Slots:
        return world.with_writer(number, world.writers[number]._replace(answer=Answer.LOST, is_uncertain=True))

    def _repeat(self, world: Slots, number: int) -> Slots:
        one = world.writers[number]
        assert one.put is not None
        return world._replace(flying=(*world.flying, (len(one.view), one.put)))

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

    def _next_commit(self, world: Slots, number: int, view: tuple[Entry, ...]) -> Slots:
        one = world.writers[number]
        if one.number + 1 == self._commits[number]:
            return world.with_writer(number, Writer(number=one.number + 1))
        following = Writer(view=view, is_stale=one.is_stale, number=one.number + 1, is_cold=False)
        return world.with_writer(number, following)

    def _told(self, world: Slots, number: int, *, committed: bool) -> Slots:
        one = world.writers[number]
        assert one.put is not None
        return world.told(len(one.view), one.put, committed=committed)

    def _believe(self, world: Slots, number: int) -> Slots:
        one = world.writers[number]
        assert one.put is not None
        return self._next_commit(self._told(world, number, committed=True), number, (*one.view, one.put))

    def _give_up(self, world: Slots, number: int) -> Slots:
        return self._next_commit(self._told(world, number, committed=False), number, world.writers[number].view)

    def _forget(self, world: Slots, number: int) -> Slots:
        return self._next_commit(world, number, world.writers[number].view)

    def _locate(self, world: Slots, number: int) -> Slots:
        return self._open_next(self._told(world, number, committed=self._is_proved(world, number)), number)

    def _reopen_free(self, world: Slots, number: int) -> Slots:
        one = world.writers[number]
        again = self._opened(world, number, one.number)._replace(put=one.put, is_uncertain=True)
        return world.with_writer(number, again)

    def _lost(self, world: Slots, number: int) -> Slots:
        return self._open_next(self._told(world, number, committed=False), number)

    def _open_next(self, world: Slots, number: int) -> Slots:
        # Of one that may still land, or was cleaned up, nobody is told: the next one is decided on what there is.
        return world.with_writer(number, self._opened(world, number, world.writers[number].number + 1))

    def _clean(self, world: Slots, number: int) -> Slots:
        return world._replace(first=world.first + 1)

    def _clean_again(self, world: Slots, number: int) -> Slots:
        return world._replace(again=world.again[1:])

    def _tick(self, world: Slots, number: int) -> Slots:
        writers = tuple(
            one._replace(is_stale=True, asked_is_old=one.answer is not Answer.NONE)
            if one.view or one.is_shown or one.answer is not Answer.NONE
            else one
            for one in world.writers
        )
        # After the last guard nothing more grows old: worlds that differ in what would are one.
        length = len(world.history) if world.ticks + 1 < self._ticks else 0
        return world._replace(old=world.young, young=length, ticks=world.ticks + 1, writers=writers)

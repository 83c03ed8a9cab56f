"""The model of slots: where a writer stands, what the rules ask of it, and what is always true."""

from __future__ import annotations

from tests.model.slot_world import Answer, At, Entry, Slots


class SlotRules:
    """Conditions of the actions, and the invariants.

    Parameters
    ----------
    commits : tuple of int
        How many of each writer.
    ticks, late : int
        How far time goes, and how many puts may be under way at a time.
    twice : bool
        Whether the network may deliver a put a second time, later.
    """

    def __init__(self, commits: tuple[int, ...] = (1, 3), ticks: int = 2, late: int = 1, *, twice: bool = True) -> None:
        self._writers, self._commits, self._ticks, self._late = range(len(commits)), commits, ticks, late
        self._twice = twice

    # -- where a writer stands --------------------------------------------------------------

    def _may_ask(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return (
            one.at is At.FOLLOWING
            and one.answer is Answer.NONE
            and not one.is_shown
            and one.number < self._commits[number]
            # With nothing read yet it asks for the hint first, and there is one before anything is cleaned up.
            and (bool(one.view) or one.is_stale or world.first == 0)
        )

    def _has_entry(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.at is At.FOLLOWING and isinstance(one.answer, Entry)

    def _has_none(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.at is At.FOLLOWING and one.answer is Answer.ABSENT

    def _must_reopen(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        is_open = one.at is At.FOLLOWING and one.put is None and one.number < self._commits[number]
        return is_open and (one.is_stale or (one.is_cold and world.first > 0))

    def _may_put(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.at is At.FOLLOWING and one.is_shown and one.number < self._commits[number]

    def _may_fly(self, world: Slots, number: int) -> bool:
        return self._may_put(world, number) and len(world.flying) < self._late

    def _flies(self, world: Slots, index: int) -> bool:
        return index < len(world.flying)

    def _awaits(self, world: Slots, number: int) -> bool:
        return world.writers[number].answer is Answer.AWAITED

    def _may_repeat(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.at is At.PUTTING and not self._awaits(world, number) and len(world.flying) < self._late

    def _must_look(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.at is At.PUTTING and one.answer in (Answer.EXISTS, Answer.LOST)

    def _is_unheard(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return one.at is At.PUTTING and one.answer is Answer.LOST

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
        return one.put is not None and one.is_stale and one.answer is not Answer.AWAITED

    def _can_locate(self, world: Slots, number: int) -> bool:
        return self._must_locate(world, number) and self._can_tell(world, number)

    def _is_free(self, world: Slots, number: int) -> bool:
        return self._must_locate(world, number) and len(world.writers[number].view) == len(world.history)

    def _can_not_tell(self, world: Slots, number: int) -> bool:
        is_above = len(world.writers[number].view) + 1 < len(world.history)
        return self._must_locate(world, number) and is_above and not self._can_tell(world, number)

    def _has_once(self, world: Slots, number: int) -> bool:
        """Whether it put once and was answered *created*, and the next entry is gone."""
        one = world.writers[number]
        return one.answer is Answer.CREATED and not one.is_uncertain and self._can_not_tell(world, number)

    def _has_anothers(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return self._has_once(world, number) and world.at_slot(len(one.view)) not in (None, one.put)

    def _has_own(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        return self._has_once(world, number) and world.at_slot(len(one.view)) == one.put

    def _may_clean(self, world: Slots, number: int) -> bool:
        return world.first + 1 < len(world.history)

    def _has_again(self, world: Slots, number: int) -> bool:
        return bool(world.again)

    def _has_time(self, world: Slots, number: int) -> bool:
        return world.ticks < self._ticks

    # -- rules ------------------------------------------------------------------------------

    def _is_fresh(self, world: Slots, number: int) -> bool:
        return not world.writers[number].is_stale

    def _is_young(self, world: Slots, number: int) -> bool:
        return not world.writers[number].is_stale

    def _is_there(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        # Who found no beginning asks for a list: it is empty.
        is_there = world.at_slot(0) is not None if one.view else world.first == 0
        return is_there or not one.is_cold

    def _is_no_other(self, world: Slots, number: int) -> bool:
        return not world.writers[number].is_cold or all(slot for slot, _ in world.again)

    def _continues(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        assert isinstance(one.answer, Entry)
        return one.answer.below == (one.view[-1].commit_id if one.view else None)

    def _is_proved(self, world: Slots, number: int) -> bool:
        one = world.writers[number]
        slot = len(one.view)
        if slot == len(world.history) - 1:
            return world.history[slot] == one.put
        above = world.at_slot(slot + 1)
        return one.put is not None and above is not None and above.below == one.put.commit_id

    def _can_tell(self, world: Slots, number: int) -> bool:
        slot = len(world.writers[number].view)
        return slot == len(world.history) - 1 or world.at_slot(slot + 1) is not None

    def _is_refused(self, world: Slots, number: int) -> bool:
        return False

    def _is_old(self, world: Slots, number: int) -> bool:
        return world.first + 1 < world.old

    # -- invariants -------------------------------------------------------------------------

    def _all_in_log(self, world: Slots) -> bool:
        return all(slot < len(world.history) and world.history[slot] == entry for slot, entry in world.believed)

    def _no_twice(self, world: Slots) -> bool:
        return len({entry.commit_id for entry in world.history}) == len(world.history)

    def _gone(self, world: Slots) -> bool:
        return not {entry for _, entry in world.given_up} & set(world.history)

    def _no_older(self, world: Slots) -> bool:
        return all(len(one.view) >= one.owed for one in world.writers)

    def _one_log(self, world: Slots) -> bool:
        return all(one.view == world.history[: len(one.view)] for one in world.writers)

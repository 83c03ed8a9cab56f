"""The producer's rows of the transition table (PROTOCOL.md §6.3), and those of whoever times it out (§6.6).

A producer reads T and puts its next entry of T, or reads a log, reads T, and puts an append there.  A
put that finds its slot taken is a step of its own, which forgets the views: all is decided again.
"""

from __future__ import annotations

from tests.model.folds import Append, Decision, Forget, Pending, Row, RowsWritten, Segment, State
from tests.model.transition_system import Action, Rule
from tests.model.world import NONE, Logs, Producer, Stage, World, changed

WorldAction = Action[World]


class Producing:
    """Guards and effects of producers over the logs of one model."""

    def __init__(self, logs: Logs) -> None:
        self._logs, self._size = logs, logs.size
        self._everyone = range(len(logs.size.ids))

    def actions(self) -> tuple[WorldAction, ...]:
        """Return their part of the table."""
        everyone, slot = self._everyone, Rule("T: exactly the next slot", "4.2 rule 1", self._is_newest)
        own = Rule("the row is of this epoch", "6.2", self._is_own)
        not_owed = Rule("a decided transaction is completed first", "6.3", self._is_complete)
        is_open = Rule("only an open transaction is decided", "6.2", self._is_ongoing)
        mortals = everyone if self._size.has_crashes else range(0)
        return (
            Action("READ T", "6.3", everyone, self._reads, self._read),
            Action("LOSE THE SLOT OF T", "4.2", everyone, self._lost_t, self._start_again),
            Action("INIT", "6.3", everyone, self._inits, self._init, (slot, not_owed)),
            Action("ENROL", "6.3", everyone, self._enrols, self._enrol, (slot, own, not_owed)),
            Action("DECIDE COMMIT", "6.3", everyone, self._has_written, self._commit, (slot, own, is_open)),
            Action("DECIDE ABORT", "6.3", everyone, self._decides, self._abort, (slot, own, is_open)),
            Action("LEARN THAT IT IS FENCED", "6.2", everyone, self._is_fenced, self._stop),
            Action("CRASH", "11", mortals, self._is_alive, self._stop),
            *self._writing(),
            *self._others(),
        )

    def _writing(self) -> tuple[WorldAction, ...]:
        everyone = self._everyone
        order = Rule("T is read after the log that is decided on", "6.3", self._has_no_reading)
        rules = (
            Rule("S: exactly the next slot", "4.2 rule 1", self._is_at_the_end),
            Rule("T says ONGOING, of this epoch", "6.3", self._is_verified),
            Rule("T says that the partition is enrolled", "6.3", self._is_enrolled),
            Rule("an older epoch is refused", "5.4", self._is_accepted),
        )
        return (
            Action("READ THE LOG", "6.3", everyone, self._opens, self._open, (order,)),
            Action("LOSE THE SLOT OF THE LOG", "4.2", everyone, self._lost, self._start_again),
            Action("FIND THAT IT IS NOT ENROLLED", "6.3", everyone, self._misses, self._start_again),
            Action("APPEND", "5.2", everyone, self._appends, self._append, rules),
        )

    def _others(self) -> tuple[WorldAction, ...]:
        size = self._size
        ids = range(max(size.ids) + 1) if size.has_clock else range(0)
        ongoing = Rule("only ONGOING times out", "6.6", self._may_time_out)
        places = range((max(size.ids) + 1) * size.topics) if size.has_expiry else range(0)
        no_data = Rule("no open transaction with data is forgotten", "5.5", self._has_no_data)
        return (
            Action("TIME OUT", "6.6", ids, self._has_row, self._time_out, (ongoing,)),
            Action("EXPIRE PRODUCERS", "5.5", places, self._is_known, self._forget, (no_data,)),
        )

    # -- where a producer stands ------------------------------------------------------------

    def _reads(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return one.stage <= Stage.OPEN and one.t == NONE

    def _lost_t(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return one.stage <= Stage.OPEN and one.log == NONE and one.t not in (NONE, world.t)

    def _inits(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return one.stage is Stage.NEW and one.t != NONE

    def _enrols(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return one.stage is Stage.OPEN and one.t != NONE and one.log == NONE and one.enrolled < self._size.logs

    def _decides(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return one.stage is Stage.OPEN and one.t != NONE and one.log == NONE and one.enrolled > 0

    def _has_written(self, world: World, number: int) -> bool:
        return self._decides(world, number) and world.producers[number].written == self._size.logs

    def _is_alive(self, world: World, number: int) -> bool:
        return world.producers[number].stage <= Stage.OPEN

    def _is_fenced(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return one.stage is Stage.OPEN and one.t != NONE and self._row(one, number).epoch != one.epoch

    def _opens(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return one.stage is Stage.OPEN and one.log == NONE and one.written < self._size.logs

    def _lost(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return one.log != NONE and one.log != world.logs[one.written]

    def _appends(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return one.stage is Stage.OPEN and NONE not in (one.log, one.t)

    def _misses(self, world: World, number: int) -> bool:
        return self._appends(world, number) and not self._is_enrolled(world, number)

    def _has_row(self, world: World, each: int) -> bool:
        row = self._logs.transactions.state(world.t).rows[each]
        return row is not None and row.state in (State.ONGOING, State.DECIDED)

    def _is_known(self, world: World, place: int) -> bool:
        topic, each = place % self._size.topics, place // self._size.topics
        return self._logs.segments.state(world.logs[topic]).epochs[each] is not None

    # -- rules ------------------------------------------------------------------------------

    def _row(self, one: Producer, number: int) -> Row:
        row = self._logs.transactions.state(one.t).rows[self._size.ids[number]]
        return Row(State.EMPTY, NONE) if row is None else row

    def _is_newest(self, world: World, number: int) -> bool:
        return world.producers[number].t == world.t

    def _is_own(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return self._row(one, number).epoch == one.epoch

    def _is_complete(self, world: World, number: int) -> bool:
        return self._row(world.producers[number], number).state is not State.DECIDED

    def _is_ongoing(self, world: World, number: int) -> bool:
        return self._row(world.producers[number], number).state is State.ONGOING

    def _has_no_reading(self, world: World, number: int) -> bool:
        return world.producers[number].t == NONE

    def _is_at_the_end(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return one.log == world.logs[one.written]

    def _is_verified(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return self._logs.transactions.state(one.t).is_open(self._size.ids[number], one.epoch)

    def _is_enrolled(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return one.written in self._row(one, number).enrolled

    def _is_accepted(self, world: World, number: int) -> bool:
        one = world.producers[number]
        if one.written == self._size.topics:
            return True
        known = self._logs.segments.state(one.log).epochs[self._size.ids[number]]
        return known is None or known <= one.epoch

    def _may_time_out(self, world: World, each: int) -> bool:
        row = self._logs.transactions.state(world.t).rows[each]
        return row is not None and row.state is State.ONGOING

    def _has_no_data(self, world: World, place: int) -> bool:
        topic, each = place % self._size.topics, place // self._size.topics
        return all(segment.id != each for segment in self._logs.segments.state(world.logs[topic]).open)

    # -- effects ----------------------------------------------------------------------------

    def _read(self, world: World, number: int) -> World:
        return world.with_producer(number, world.producers[number]._replace(t=world.t))

    def _open(self, world: World, number: int) -> World:
        one = world.producers[number]
        return world.with_producer(number, one._replace(log=world.logs[one.written]))

    def _start_again(self, world: World, number: int) -> World:
        return world.with_producer(number, world.producers[number]._replace(t=NONE, log=NONE))

    def _stop(self, world: World, number: int) -> World:
        return world.with_producer(number, Producer(Stage.FENCED, left=0))

    def _put(self, world: World, each: int, row: Row, *, gives_epoch: bool = False) -> World:
        return world._replace(t=self._logs.transactions.put(world.t, RowsWritten(((each, row),), gives_epoch)))

    def _init(self, world: World, number: int) -> World:
        one, each = world.producers[number], self._size.ids[number]
        row = self._row(one, number)
        if row.state is State.ONGOING:
            return self._decide(world, each, row, is_commit=False, by=row.epoch).with_producer(
                number, one._replace(t=NONE)
            )
        ready = one._replace(stage=Stage.OPEN, epoch=row.epoch + 1, t=NONE)
        after = self._put(world, each, Row(State.EMPTY, row.epoch + 1, decision=row.decision), gives_epoch=True)
        return after.with_producer(number, ready)

    def _enrol(self, world: World, number: int) -> World:
        one = world.producers[number]
        row = self._row(one, number)
        before = row.enrolled if row.state is State.ONGOING else frozenset()
        ongoing = Row(State.ONGOING, row.epoch, before | {one.enrolled}, row.decision)
        after = self._put(world, self._size.ids[number], ongoing)
        return after.with_producer(number, one._replace(enrolled=one.enrolled + 1, t=NONE))

    def _decide(self, world: World, each: int, row: Row, *, is_commit: bool, by: int) -> World:
        position = self._logs.transactions.version(world.t) + 1
        decision = Decision(position, row.epoch, is_commit, row.enrolled, by)
        return self._put(world, each, Row(State.DECIDED, row.epoch + 1, frozenset(), decision))

    def _commit(self, world: World, number: int) -> World:
        return self._end(world, number, is_commit=True)

    def _abort(self, world: World, number: int) -> World:
        return self._end(world, number, is_commit=False)

    def _end(self, world: World, number: int, *, is_commit: bool) -> World:
        one = world.producers[number]
        left = one.left - 1
        stage, epoch = (Stage.OPEN, one.epoch + 1) if left else (Stage.DONE, NONE)
        row, each = self._row(one, number), self._size.ids[number]
        after = self._decide(world, each, row, is_commit=is_commit, by=one.epoch)
        return after.with_producer(number, Producer(stage, epoch, left=left))

    def _append(self, world: World, number: int) -> World:
        one, each, place = world.producers[number], self._size.ids[number], world.producers[number].written
        if place == self._size.topics:
            offsets = self._logs.offsets
            request = offsets.version(one.log) + 1
            head = offsets.put(world.logs[place], Pending(each, one.epoch, request))
        else:
            segments = self._logs.segments
            new = Segment(segments.state(one.log).next_offset, each, one.epoch)
            head = segments.put(world.logs[place], Append(new))
        after = one._replace(written=place + 1, t=NONE, log=NONE)
        return world._replace(logs=changed(world.logs, place, head)).with_producer(number, after)

    def _time_out(self, world: World, each: int) -> World:
        row = self._logs.transactions.state(world.t).rows[each]
        assert row is not None
        return self._decide(world, each, row, is_commit=False, by=row.epoch)

    def _forget(self, world: World, place: int) -> World:
        topic, each = place % self._size.topics, place // self._size.topics
        head = self._logs.segments.put(world.logs[topic], Forget(each))
        return world._replace(logs=changed(world.logs, topic, head))

"""The producer's rows of the transition table (PROTOCOL.md §6.3), and those of whoever times it out (§6.6).

A producer reads T and puts its next entry of T, or reads a log, reads T, and puts an append there.  A
put that finds its slot taken is a step of its own, which forgets the views: all is decided again.  Where
decisions carry, it uploads first, and what is not appended by its commit goes into the manifest.  From a decided
row it goes on where that is complete, or where it knows it to be (:mod:`tests.model.knowing`).  Two producers of one
process may put one entry for both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from tests.model.folds import Append, Decision, Pending, Row, RowsWritten, Segment, State, Upload
from tests.model.transition_system import Action, Rule
from tests.model.world import NONE, Doubt, Flight, LateCommit, Logs, Producer, Stage, World, changed

WorldAction = Action[World]
CARRIED_ALONG = "the next entry is decided on a decided row with what that carries"


_PAIR = (0, 1)


def _both(holds: Callable[[World, int], bool]) -> Callable[[World, int], bool]:
    return lambda world, pair: all(holds(world, number) for number in _PAIR)


def _of_both(rule: Rule[World]) -> Rule[World]:
    return replace(rule, holds=_both(rule.holds))


class _Ending(NamedTuple):
    """How a transaction is to end: the epoch of who asks, the outcome, and what it is to carry."""

    by: int
    is_commit: bool = False
    carried: tuple[tuple[int, int], ...] = ()


class Producing:
    """Guards and effects of producers over the logs of one model.

    Parameters
    ----------
    logs : Logs
        Of the model.
    defects : frozenset of str
        What the effects do wrong: mutants that are no missing guard.
    """

    def __init__(self, logs: Logs, defects: frozenset[str] = frozenset()) -> None:
        self._logs, self._size, self._defects = logs, logs.size, defects
        self._everyone = range(len(logs.size.ids))

    def actions(self) -> tuple[WorldAction, ...]:
        """Return their part of the table."""
        everyone, slot = self._everyone, Rule("T: exactly the next slot", "4.2 rule 1", self._is_newest)
        own = Rule("the row is of this epoch", "6.2", self._is_own)
        not_owed = Rule("a decided transaction is completed first", "6.3", self._is_complete)
        same = Rule("what is known is of this very decision", "6.4", self._is_of_this)
        is_open = Rule("only an open transaction is decided", "6.2", self._is_ongoing)
        sure = Rule("after an append in doubt only an abort follows", "6.3", self._is_sure)
        ends = (own, is_open, same)
        mortals = everyone if self._size.has_crashes else range(0)
        late = everyone if self._size.has_late_commits else range(0)
        clients = everyone if self._size.carries else range(0)
        in_slot = Rule("a late commit: exactly its slot", "4.2 rule 1", self._commit_lands)
        untried = Rule("a commit in doubt is followed by an abort in T", "6.3", self._is_untried)
        return (
            Action("READ T", "6.3", everyone, self._reads, self._read),
            Action("LOSE THE SLOT OF T", "4.2", everyone, self._lost_t, self._start_again),
            Action("INIT", "6.3", everyone, self._inits, self._init, (slot, not_owed, same)),
            Action("ENROL", "6.3", everyone, self._enrols, self._enrol, (slot, own, not_owed, same)),
            Action("DECIDE COMMIT", "6.3", everyone, self._has_written, self._commit, (slot, *ends, sure)),
            Action("GIVE UP A COMMIT", "6.3", late, self._commits_once, self._give_up_commit, (*ends, sure)),
            Action("LAND A COMMIT LATE", "4.2", late, self._has_commit, self._land_commit, (in_slot,)),
            Action("DECIDE ABORT", "6.3", everyone, self._decides, self._abort, (slot, *ends)),
            Action("ABORT IN THE CLIENT", "6.3", clients, self._has_uploaded, self._abort_client, (untried,)),
            Action("LEARN THAT IT IS FENCED", "6.2", everyone, self._is_fenced, self._stop),
            Action("CRASH", "11", mortals, self._is_alive, self._stop),
            *self._together((slot, not_owed, same), (slot, *ends, sure)),
            *self._writing(),
            *self._others(),
        )

    def _together(self, inits: tuple[Rule[World], ...], commits: tuple[Rule[World], ...]) -> tuple[WorldAction, ...]:
        """Return what two producers of one process put in one entry: each by the rules that it has alone."""
        pair = range(self._size.shares)
        apart = Rule("two requests of one id share no entry", "4.2 rule 14", self._are_of_two_ids)
        init, commit = partial(self._put_both, self._init), partial(self._put_both, self._commit)
        first, last = (apart, *map(_of_both, inits)), (apart, *map(_of_both, commits))
        return (
            Action("INIT TOGETHER", "4.2", pair, _both(self._inits), init, first),
            Action("COMMIT TOGETHER", "4.2", pair, _both(self._has_written), commit, last),
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
        late = everyone if self._size.has_late_appends else range(0)
        in_slot = Rule("a late put: exactly its slot", "4.2 rule 1", self._lands)
        return (
            Action("UPLOAD", "6.3", everyone, self._uploads, self._upload),
            Action("READ THE LOG", "6.3", everyone, self._opens, self._open, (order,)),
            Action("LOSE THE SLOT OF THE LOG", "4.2", everyone, self._lost, self._start_again),
            Action("FIND THAT IT IS NOT ENROLLED", "6.3", everyone, self._misses, self._start_again),
            Action("APPEND", "5.2", everyone, self._appends, self._append, rules),
            Action("GIVE UP AN APPEND", "6.3", late, self._appends, self._give_up, rules[1:]),
            Action("LAND AN APPEND LATE", "4.2", late, self._has_flight, self._land, (in_slot,)),
        )

    def _others(self) -> tuple[WorldAction, ...]:
        size = self._size
        ids = range(max(size.ids) + 1) if size.has_clock else range(0)
        ongoing = Rule("only ONGOING times out", "6.6", self._may_time_out)
        return (Action("TIME OUT", "6.6", ids, self._has_row, self._time_out, (ongoing,)),)

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
        is_idle = one.stage is Stage.OPEN and one.t != NONE and one.log == NONE and not one.doubt
        return is_idle and one.enrolled < self._size.logs

    def _decides(self, world: World, number: int) -> bool:
        one = world.producers[number]
        has_begun = one.enrolled > 0 or one.uploaded > 0
        return one.stage is Stage.OPEN and one.t != NONE and one.log == NONE and has_begun

    def _has_written(self, world: World, number: int) -> bool:
        one, size = world.producers[number], self._size
        sent = size.first_upload if size.carries else size.places
        return self._decides(world, number) and one.written >= sent and self._ready(one) == size.places

    def _commits_once(self, world: World, number: int) -> bool:
        return self._has_written(world, number) and world.commits[number] is None

    def _has_uploaded(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return self._decides(world, number) and one.enrolled == 0 and not self._is_fenced(world, number)

    def _uploads(self, world: World, number: int) -> bool:
        one = world.producers[number]
        is_idle = one.stage is Stage.OPEN and (one.t, one.log) == (NONE, NONE) and not one.doubt
        return self._size.carries and is_idle and self._ready(one) < self._size.places

    def _ready(self, one: Producer) -> int:
        """Return the end of what may be written: where decisions carry, segments are uploaded before."""
        return max(one.uploaded, self._size.first_upload) if self._size.carries else self._size.places

    def _is_alive(self, world: World, number: int) -> bool:
        return world.producers[number].stage <= Stage.OPEN

    def _is_fenced(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return one.stage is Stage.OPEN and one.t != NONE and self._row(one, number).epoch != one.epoch

    def _opens(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return one.stage is Stage.OPEN and one.log == NONE and one.written < self._ready(one) and not one.doubt

    def _lost(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return one.log != NONE and one.log != self._head(world, one)

    def _head(self, world: World, one: Producer) -> int:
        return world.logs[self._size.log_of(one.written)]

    def _appends(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return one.stage is Stage.OPEN and NONE not in (one.log, one.t)

    def _misses(self, world: World, number: int) -> bool:
        return self._appends(world, number) and not self._is_enrolled(world, number)

    def _has_commit(self, world: World, number: int) -> bool:
        return world.commits[number] is not None

    def _has_flight(self, world: World, number: int) -> bool:
        return world.flights[number] is not None

    def _has_row(self, world: World, each: int) -> bool:
        row = self._logs.transactions.state(world.t).rows[each]
        return row is not None and row.state in (State.ONGOING, State.DECIDED)

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
        one = world.producers[number]
        return self._row(one, number).state is not State.DECIDED or one.known > 0

    def _is_of_this(self, world: World, number: int) -> bool:
        one = world.producers[number]
        row = self._row(one, number)
        if row.state is not State.DECIDED or row.decision is None:
            return True
        return one.known in (0, row.decision.position)

    def _is_ongoing(self, world: World, number: int) -> bool:
        state = self._row(world.producers[number], number).state
        # Who enrolled nothing may commit what it uploaded, or abort.
        return state is State.ONGOING or (self._size.carries and self._is_complete(world, number))

    def _is_sure(self, world: World, number: int) -> bool:
        return world.producers[number].doubt is not Doubt.AN_APPEND

    def _has_no_reading(self, world: World, number: int) -> bool:
        return world.producers[number].t == NONE

    def _is_at_the_end(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return one.log == self._head(world, one)

    def _is_verified(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return self._logs.transactions.state(one.t).is_open(self._size.ids[number], one.epoch)

    def _is_enrolled(self, world: World, number: int) -> bool:
        one = world.producers[number]
        return self._size.log_of(one.written) in self._row(one, number).enrolled

    def _is_untried(self, world: World, number: int) -> bool:
        return world.producers[number].doubt is not Doubt.A_COMMIT

    def _commit_lands(self, world: World, number: int) -> bool:
        late = world.commits[number]
        return late is not None and late.t == world.t

    def _lands(self, world: World, number: int) -> bool:
        flight = world.flights[number]
        return flight is not None and flight.log == world.logs[flight.upload.topic]

    def _is_accepted(self, world: World, number: int) -> bool:
        one = world.producers[number]
        if self._size.log_of(one.written) == self._size.topics:
            return True
        known = self._logs.segments.state(one.log).epochs[self._size.ids[number]]
        return known is None or known <= one.epoch

    def _are_of_two_ids(self, world: World, pair: int) -> bool:
        return self._size.ids[0] != self._size.ids[1]

    def _may_time_out(self, world: World, each: int) -> bool:
        row = self._logs.transactions.state(world.t).rows[each]
        return row is not None and row.state is State.ONGOING

    # -- effects ----------------------------------------------------------------------------

    def _read(self, world: World, number: int) -> World:
        return world.with_producer(number, world.producers[number]._replace(t=world.t))

    def _open(self, world: World, number: int) -> World:
        one = world.producers[number]
        return world.with_producer(number, one._replace(log=self._head(world, one)))

    def _start_again(self, world: World, number: int) -> World:
        return world.with_producer(number, world.producers[number]._replace(t=NONE, log=NONE))

    def _stop(self, world: World, number: int) -> World:
        return world.with_producer(number, Producer(Stage.FENCED, left=0))

    def _put(self, world: World, each: int, row: Row, *, gives_epoch: bool = False) -> World:
        entry = RowsWritten(((each, row),), (each,) if gives_epoch else ())
        return world._replace(t=self._logs.transactions.put(world.t, entry))

    def _init(self, world: World, number: int) -> World:
        one, each = world.producers[number], self._size.ids[number]
        row = self._row(one, number)
        if row.state is State.ONGOING:
            return self._decide(world, each, row, _Ending(row.epoch)).with_producer(number, one._replace(t=NONE))
        ready = one._replace(stage=Stage.OPEN, epoch=row.epoch + 1, t=NONE)
        after = self._put(world, each, Row(State.EMPTY, row.epoch + 1, decision=row.decision), gives_epoch=True)
        return after.with_producer(number, ready)

    def _enrol(self, world: World, number: int) -> World:
        one = world.producers[number]
        row = self._row(one, number)
        before = row.enrolled if row.state is State.ONGOING else frozenset()
        log = sorted(set(self._size.order), key=self._size.order.index)[one.enrolled]
        ongoing = Row(State.ONGOING, row.epoch, before | {log}, row.decision)
        after = self._put(world, self._size.ids[number], ongoing)
        return after.with_producer(number, one._replace(enrolled=one.enrolled + 1, t=NONE))

    def _put_both(self, put: Callable[[World, int], World], world: World, pair: int) -> World:
        """Put one entry with what each of the two would put alone, decided on the same state."""
        alone = [put(world, number) for number in _PAIR]
        entries = [self._logs.transactions.entry(each.t) for each in alone]
        rows = tuple(row for entry in entries for row in entry.rows)
        together = RowsWritten(rows, tuple(each for entry in entries for each in entry.gives_epoch))
        after = world._replace(t=self._logs.transactions.put(world.t, together))
        for number, each in zip(_PAIR, alone, strict=True):
            after = after.with_producer(number, each.producers[number])
        return after

    def _decide(self, world: World, each: int, row: Row, ending: _Ending) -> World:
        return self._put(world, each, self._decided(world.t, row, ending))

    def _decided(self, t: int, row: Row, ending: _Ending) -> Row:
        position = self._logs.transactions.version(t) + 1
        enrolled = row.enrolled if row.state is State.ONGOING else frozenset()
        enrolled |= {topic for topic, _ in ending.carried}
        carried = ending.carried
        if CARRIED_ALONG in self._defects and row.state is State.DECIDED and row.decision is not None:
            carried = (*row.decision.carried, *carried)
        decision = Decision(position, row.epoch, ending.is_commit, enrolled, ending.by, carried)
        # Where nothing was appended an abort owes nothing.
        state = State.DECIDED if decision.enrolled else State.COMPLETE
        return Row(state, row.epoch + 1, frozenset(), decision)

    def _commit(self, world: World, number: int) -> World:
        return self._end(world, number, is_commit=True)

    def _abort(self, world: World, number: int) -> World:
        return self._end(world, number, is_commit=False)

    def _end(self, world: World, number: int, *, is_commit: bool) -> World:
        one = world.producers[number]
        left = one.left - 1
        stage, epoch = (Stage.OPEN, one.epoch + 1) if left else (Stage.DONE, NONE)
        ending = self._committing(one) if is_commit else _Ending(one.epoch)
        after = self._decide(world, self._size.ids[number], self._row(one, number), ending)
        return after.with_producer(number, Producer(stage, epoch, left=left, known=one.known if left else 0))

    def _committing(self, one: Producer) -> _Ending:
        size = self._size
        waiting = range(max(one.written, size.first_upload), one.uploaded)
        return _Ending(one.epoch, True, tuple((size.log_of(place), size.sequence_of(place)) for place in waiting))

    def _give_up_commit(self, world: World, number: int) -> World:
        one = world.producers[number]
        late = LateCommit(one.t, self._decided(one.t, self._row(one, number), self._committing(one)))
        after = world._replace(commits=changed(world.commits, number, late))
        return after.with_producer(number, one._replace(t=NONE, doubt=Doubt.A_COMMIT))

    def _land_commit(self, world: World, number: int) -> World:
        late = world.commits[number]
        assert late is not None
        after = self._put(world, self._size.ids[number], late.row)
        return after._replace(commits=changed(world.commits, number, None))

    def _abort_client(self, world: World, number: int) -> World:
        one = world.producers[number]
        aborted = world.aborted | {(self._size.ids[number], one.epoch)}
        return world._replace(aborted=aborted).with_producer(number, Producer(Stage.DONE, left=0))

    def _upload(self, world: World, number: int) -> World:
        one = world.producers[number]
        place = self._ready(one)
        after = world._replace(uploads=world.uploads | {self._upload_of(number, one, place)})
        return after.with_producer(number, one._replace(uploaded=place + 1))

    def _upload_of(self, number: int, one: Producer, place: int) -> Upload:
        size = self._size
        return Upload(size.log_of(place), size.ids[number], one.epoch, size.sequence_of(place))

    def _append(self, world: World, number: int) -> World:
        one, each, place = world.producers[number], self._size.ids[number], world.producers[number].written
        log = self._size.log_of(place)
        if log == self._size.topics:
            offsets = self._logs.offsets
            request = offsets.version(one.log) + 1
            head = offsets.put(world.logs[log], Pending(each, one.epoch, request))
        else:
            head = self._put_segment(world, one.log, self._upload_of(number, one, place))
        after = one._replace(written=place + 1, t=NONE, log=NONE)
        return world._replace(logs=changed(world.logs, log, head)).with_producer(number, after)

    def _put_segment(self, world: World, log: int, upload: Upload) -> int:
        segments = self._logs.segments
        new = Segment(segments.state(log).next_offset, upload.id, upload.epoch, upload.sequence)
        return segments.put(world.logs[upload.topic], Append(new))

    def _give_up(self, world: World, number: int) -> World:
        one = world.producers[number]
        flight = Flight(one.log, self._upload_of(number, one, one.written))
        after = world._replace(flights=changed(world.flights, number, flight))
        return after.with_producer(number, one._replace(t=NONE, log=NONE, doubt=Doubt.AN_APPEND))

    def _land(self, world: World, number: int) -> World:
        flight = world.flights[number]
        assert flight is not None
        head = self._put_segment(world, flight.log, flight.upload)
        logs = changed(world.logs, flight.upload.topic, head)
        return world._replace(logs=logs, flights=changed(world.flights, number, None))

    def _time_out(self, world: World, each: int) -> World:
        row = self._logs.transactions.state(world.t).rows[each]
        assert row is not None
        return self._decide(world, each, row, _Ending(row.epoch))

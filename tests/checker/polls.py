"""Rules about what one consumer gets, one poll after the other (10, 11, 32).

Offsets have gaps, where markers and aborted records are: what is passed over is judged by records that are known to be
there.  What stands below an offset that was served as committed is decided, so no time has to be asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.checker.finding import told
from tests.checker.group_offsets import GroupOffsets
from tests.checker.history_index import Index
from tests.checker.operations import Level, Operation, Place, Poll, Rewind, Seen
from tests.checker.written import Written, returned


def skipping_polls(index: Index) -> Iterator[str]:
    """A consumer passes over a record that it should have got."""
    for poll, before, seen in _steps(index):
        if poll.level is Level.SNAPSHOT or seen.offset <= before + 1:
            continue
        for written in _between(index, poll, seen.place, before, seen.offset):
            yield told(
                "passed over", consumer=poll.consumer, place=seen.place, skipped=written.offset, **_names(written)
            )


def _names(written: Written) -> dict[str, object]:
    return {"value": written.write.value}


def _between(index: Index, poll: Poll, place: Place, after: int, end: int) -> Iterator[Written]:
    """Return the records above `after`, below `end`, that must still be there."""
    bounds = poll.bounds.get(place)
    start = index.highest_starts[place] if bounds is None else bounds.start
    for written in index.ladders[place].after(max(after, start - 1), end):
        if not index.may_be_compacted(written):
            yield written


def nonmonotonic_polls(index: Index) -> Iterator[str]:
    """A consumer gets an offset again, or a lower one."""
    for poll, before, seen in _steps(index):
        if seen.offset <= before:
            yield told("not above", consumer=poll.consumer, place=seen.place, before=before, offset=seen.offset)


def _steps(index: Index) -> Iterator[tuple[Poll, int, Seen]]:
    """Return each record that a consumer got after another one of the place, and that one's offset."""
    last: dict[tuple[str, Place], tuple[int, int]] = {}
    for _, poll in index.done(Poll):
        for seen in poll.records:
            if not index.is_judged(seen.place):
                continue
            assignment, offset = last.get((poll.consumer, seen.place), (None, 0))
            if assignment == poll.assignment:
                yield poll, offset, seen
            last[poll.consumer, seen.place] = poll.assignment, seen.offset


def wrong_rewinds(index: Index) -> Iterator[str]:
    """After an abort a consumer does not go on where its group stands."""
    groups = GroupOffsets(index)
    polls: dict[str, list[tuple[Operation, Poll]]] = defaultdict(list)
    for operation, poll in index.done(Poll):
        polls[poll.consumer].append((operation, poll))
    following = dict.fromkeys(polls, 0)
    for operation, rewind in index.done(Rewind):
        mine = polls[rewind.consumer]
        at = following.get(rewind.consumer, 0)
        while at < len(mine) and mine[at][0].invoked < returned(operation):
            at += 1
        following[rewind.consumer] = at
        for after, poll, seen in _first_records(index, mine, at):
            yield from _judged_rewind(index, groups, (operation, rewind), (after, poll, seen))


def _first_records(index: Index, mine: list[tuple[Operation, Poll]], at: int) -> Iterator[tuple[Operation, Poll, Seen]]:
    """Return the first record of each place that a consumer gets under the assignment that it has then."""
    got: set[Place] = set()
    assignment = mine[at][1].assignment if at < len(mine) else None
    while at < len(mine) and mine[at][1].assignment == assignment:
        operation, poll = mine[at]
        for seen in poll.records:
            if seen.place not in got and index.is_judged(seen.place):
                got.add(seen.place)
                yield operation, poll, seen
        at += 1


def _judged_rewind(
    index: Index, groups: GroupOffsets, rewind: tuple[Operation, Rewind], first: tuple[Operation, Poll, Seen]
) -> Iterator[str]:
    (rewound, call), (operation, poll, seen) = rewind, first
    committed = groups.certain(call.group, seen.place, rewound.invoked, returned(operation))
    if committed is None:
        return
    facts = {"consumer": call.consumer, "place": seen.place, "committed": committed, "offset": seen.offset}
    if seen.offset < committed:
        yield told("rewound below what is committed", **facts)
    highest = max(committed, groups.possible(call.group, seen.place, returned(operation)))
    for written in _between(index, poll, seen.place, highest - 1, seen.offset):
        yield told("not rewound: passed over for good", **facts, skipped=written.offset, **_names(written))

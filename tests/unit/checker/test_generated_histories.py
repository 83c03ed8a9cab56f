"""A history without a fault passes, however it was interleaved; with one thing wrong anywhere in it, it never does."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pytest

from tests.checker.check import check, violations
from tests.checker.evidence import Evidence
from tests.checker.healthy import TOPICS, Healthy
from tests.checker.operations import (
    End,
    FetchOffsets,
    Init,
    Level,
    Operation,
    Outcome,
    Poll,
    Read,
    Seen,
    Send,
)

T = TypeVar("T")


@dataclass
class Spoiled:
    """A history in which one thing is about to go wrong."""

    history: list[Operation]
    evidence: Evidence
    chance: random.Random

    def of(self, kind: type, *outcomes: Outcome) -> list[int]:
        return [
            at
            for at, each in enumerate(self.history)
            if isinstance(each.call, kind) and each.outcome in (outcomes or (Outcome.OK,))
        ]

    def change(self, at: int, **facts: Any) -> None:
        operation = self.history[at]
        self.history[at] = replace(operation, call=replace(operation.call, **facts))

    def one(self, candidates: Sequence[T]) -> T:
        assert candidates, "the history has nothing of the kind"
        return self.chance.choice(candidates)

    def acknowledged(self) -> set[str]:
        """What its client knows to be visible to everybody."""
        ends = [self.history[at].call for at in self.of(End)]
        committed = {end.txn for end in ends if isinstance(end, End) and end.commit}
        sends = [self.history[at].call for at in self.of(Send)]
        mine = [send for send in sends if isinstance(send, Send) and (send.txn is None or send.txn in committed)]
        return {write.value for send in mine for write in send.writes}

    def shown(self, kind: type) -> list[tuple[int, Seen]]:
        """What calls have shown and must show: where, and the record."""
        must = self.acknowledged()
        calls = [(at, self.history[at].call) for at in self.of(kind)]
        return [
            (at, seen)
            for at, call in calls
            if isinstance(call, Poll | Read) and not getattr(call, "as_of", False)
            for seen in call.records
            if seen.value in must
        ]

    def records(self, at: int) -> tuple[Seen, ...]:
        call = self.history[at].call
        assert isinstance(call, Poll | Read)
        return call.records


def a_read_drops_a_record(spoiled: Spoiled) -> None:
    at, seen = spoiled.one(spoiled.shown(Read))
    spoiled.change(at, records=tuple(each for each in spoiled.records(at) if each != seen))


def a_read_swaps_two_records(spoiled: Spoiled) -> None:
    at, one = spoiled.one(spoiled.shown(Read))
    other = spoiled.one([each for where, each in spoiled.shown(Read) if where == at and each != one])
    swapped = {one: replace(one, value=other.value), other: replace(other, value=one.value)}
    spoiled.change(at, records=tuple(swapped.get(each, each) for each in spoiled.records(at)))


def a_read_shows_what_was_aborted(spoiled: Spoiled) -> None:
    aborted = {
        call.txn for at in spoiled.of(End) if isinstance(call := spoiled.history[at].call, End) and not call.commit
    }
    sends = [call for at in spoiled.of(Send) if isinstance(call := spoiled.history[at].call, Send)]
    write = spoiled.one([write for send in sends if send.txn in aborted for write in send.writes])
    at = spoiled.of(Read)[-1]
    spoiled.change(at, records=(*spoiled.records(at), Seen(write.place, write.offset or 0, write.value)))


def a_poll_hands_a_record_over_twice(spoiled: Spoiled) -> None:
    at, seen = spoiled.one(spoiled.shown(Poll))
    spoiled.change(at, records=(*spoiled.records(at), seen))


def a_poll_passes_over_a_record(spoiled: Spoiled) -> None:
    def inside(at: int, seen: Seen) -> bool:
        mine = [each.offset for each in spoiled.records(at) if each.place == seen.place]
        return min(mine) < seen.offset < max(mine)

    at, seen = spoiled.one([each for each in spoiled.shown(Poll) if inside(*each)])
    spoiled.change(at, records=tuple(each for each in spoiled.records(at) if each != seen))


def a_record_is_torn_out_of_everything(spoiled: Spoiled) -> None:
    _, seen = spoiled.one(spoiled.shown(Read))
    for at in (*spoiled.of(Read), *spoiled.of(Poll)):
        spoiled.change(at, records=tuple(each for each in spoiled.records(at) if each.value != seen.value))


def a_commit_was_told_to_be_an_abort(spoiled: Spoiled) -> None:
    ends = [at for at in spoiled.of(End) if isinstance(call := spoiled.history[at].call, End) and call.commit]
    spoiled.change(spoiled.one(ends), commit=False)


def a_commit_was_told_at_another_position(spoiled: Spoiled) -> None:
    ends = [at for at in spoiled.of(End) if isinstance(call := spoiled.history[at].call, End) and call.commit]
    spoiled.change(spoiled.one(ends), position=10**6)


def an_epoch_was_given_twice(spoiled: Spoiled) -> None:
    at = spoiled.one(spoiled.of(Init))
    spoiled.history.append(replace(spoiled.history[at], process="again"))


def a_groups_offset_fell(spoiled: Spoiled) -> None:
    fetches = [spoiled.history[at].call for at in spoiled.of(FetchOffsets)]
    first = next(call for call in fetches if isinstance(call, FetchOffsets) and any(call.offsets.values()))
    at = spoiled.of(FetchOffsets)[-1]
    spoiled.change(at, offsets={place: offset - 1 for place, offset in first.offsets.items()})


def a_snapshot_shows_older_offsets(spoiled: Spoiled) -> None:
    at = [at for at in spoiled.of(Read) if getattr(spoiled.history[at].call, "level", None) is Level.SNAPSHOT][-1]
    offsets = getattr(spoiled.history[at].call, "offsets", {})
    spoiled.change(at, offsets={standing: offset - 1 for standing, offset in offsets.items()})


def a_last_stable_offset_fell(spoiled: Spoiled) -> None:
    at = spoiled.of(Read)[-2]
    bounds = getattr(spoiled.history[at].call, "bounds", {})
    place = spoiled.one([place for place, each in bounds.items() if each.stable])
    spoiled.change(at, bounds={**bounds, place: replace(bounds[place], stable=0)})


def a_record_was_copied_twice(spoiled: Spoiled) -> None:
    must = spoiled.acknowledged()
    calls = [(at, spoiled.history[at].call) for at in spoiled.of(Send)]
    copies = [(at, call) for at, call in calls if isinstance(call, Send) and call.writes[0].source is not None]
    (_, first), *others = [each for each in copies if each[1].writes[0].value in must]
    at, other = spoiled.one(others)
    spoiled.change(at, writes=(replace(other.writes[0], source=first.writes[0].source), *other.writes[1:]))


def a_marker_is_missing(spoiled: Spoiled) -> None:
    gone = spoiled.one(spoiled.evidence.markers)
    spoiled.evidence = replace(spoiled.evidence, markers=tuple(x for x in spoiled.evidence.markers if x is not gone))


def a_marker_is_turned(spoiled: Spoiled) -> None:
    turned = spoiled.one(spoiled.evidence.markers)
    markers = (replace(x, committed=not x.committed) if x is turned else x for x in spoiled.evidence.markers)
    spoiled.evidence = replace(spoiled.evidence, markers=tuple(markers))


def a_batch_is_registered_twice(spoiled: Spoiled) -> None:
    batches = spoiled.evidence.batches
    spoiled.evidence = replace(spoiled.evidence, batches=(*batches, spoiled.one(batches)))


def a_batch_is_missing(spoiled: Spoiled) -> None:
    first = spoiled.one([x for x in spoiled.evidence.batches if x.first_sequence])
    gone = replace(first, first_sequence=(first.first_sequence or 0) - 1)
    kept = tuple(
        x
        for x in spoiled.evidence.batches
        if replace(x, path="", base=0, version=0) != replace(gone, path="", base=0, version=0)
    )
    spoiled.evidence = replace(spoiled.evidence, batches=kept)


SPOILS: list[Callable[[Spoiled], None]] = [
    a_read_drops_a_record,
    a_read_swaps_two_records,
    a_read_shows_what_was_aborted,
    a_poll_hands_a_record_over_twice,
    a_poll_passes_over_a_record,
    a_record_is_torn_out_of_everything,
    a_commit_was_told_to_be_an_abort,
    a_commit_was_told_at_another_position,
    an_epoch_was_given_twice,
    a_groups_offset_fell,
    a_snapshot_shows_older_offsets,
    a_last_stable_offset_fell,
    a_record_was_copied_twice,
    a_marker_is_missing,
    a_marker_is_turned,
    a_batch_is_registered_twice,
    a_batch_is_missing,
]


@pytest.mark.parametrize("kept", [None, 60])
@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_found_in_a_history_without_a_fault(seed: int, kept: int | None) -> None:
    story = Healthy(seed, kept).run(500)
    assert violations(check(story.history, story.evidence, TOPICS)) == []


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: spoil.__name__)
@pytest.mark.parametrize("seed", range(5))
def test_something_is_found_when_one_thing_is_wrong(seed: int, spoil: Callable[[Spoiled], None]) -> None:
    story = Healthy(seed).run(300)
    spoiled = Spoiled(list(story.history), story.evidence, random.Random(seed))
    spoil(spoiled)
    assert violations(check(spoiled.history, spoiled.evidence, TOPICS))

"""Whether T, or O, has lost its newest entries, which nothing above vouches for (PROTOCOL.md §6.4, §8.1).

Owns what the other logs show of them: markers and settled positions of S and O speak of T, decisions of T speak of O.
Who is held against a log was read before it for the last time: so what others write meanwhile is nobody's loss.  Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from txntable.coordinator.decision import Outcome
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT
from txntable.partition.markers import Marker
from txntable.verification.damage import Damage, DamageKind
from txntable.verification.decision_record import RecordedDecision

PendingOf = tuple[int, int, str]
"""Producer id, epoch and group of an offset that waits for its transaction's decision."""


@dataclass(frozen=True, slots=True)
class Witness:
    """What a log shows of T.

    Attributes
    ----------
    name : str
        Whose log it is, for people.
    through : int
        The version of T up to which everything decided is settled there.
    markers : collection of Marker
        All that were ever there.
    """

    name: str
    through: int
    markers: Collection[Marker] = ()


def lost_end_of_transactions(end: int, witnesses: Sequence[Witness]) -> Iterator[Damage]:
    """Judge whether T has everything that others have seen of it: one damage, or none.

    Parameters
    ----------
    end : int
        T's version.
    witnesses : sequence of Witness
        Read before T was read to its end.
    """
    beyond = [(one, each.name) for each in witnesses for one in each.markers if one.position > end]
    newest, said = end, []
    if beyond:
        newest, name = max((one.position, name) for one, name in beyond)
        count = len({(one.position, one.producer_id, one.ends) for one, _ in beyond})
        decisions = "1 decision" if count == 1 else f"{count} decisions"
        said.append(f"markers of {decisions} up to {newest} name it, the newest in {name}")
    through, name = max(((one.through, one.name) for one in witnesses), default=(0, ""))
    if through > newest:
        said.append(f"{name} is settled through {through}")
    if said:
        problem = f"it ends at version {end}, and {', and '.join(said)}"
        yield Damage(DamageKind.LOG_END, TRANSACTION_LOG_ROOT, problem)


def lost_settlements(settled: int, complete: Iterable[RecordedDecision]) -> Iterator[Damage]:
    """Judge whether O has settled what T, read before O, says is complete; `settled` is O's `decided_through`."""
    for one in complete:
        if one.groups and one.position > settled:
            problem = f"{one.transactional_id} is complete at {one.position}, with offsets of {_named(one.groups)}"
            yield Damage(DamageKind.INCOMPLETE, OFFSET_LOG_ROOT, f"{problem}, and offsets are settled to {settled}")


def lost_end_of_offsets(settled: int, shown: Set[PendingOf], under_way: Iterable[RecordedDecision]) -> Iterator[Damage]:
    """Judge whether O has had the offsets that each commit owes: they were pending there before it was decided.

    What was taken away since, by whoever deletes offsets, has been there.

    Parameters
    ----------
    settled : int
        O's `decided_through`: whoever settles a decision raises it.
    shown : set
        What O's entries have shown as pending at any time.
    under_way : iterable of RecordedDecision
        What T, read before O, says is not complete.
    """
    for one in under_way:
        groups = [group for group in one.groups if (one.producer_id, one.epoch, group) not in shown]
        if groups and one.outcome is Outcome.COMMIT and one.position > settled:
            committed = f"{one.transactional_id} committed offsets of {_named(groups)} at {one.position}"
            why = "the newest entries are lost; or the offsets were refused when sent, or deleted by an admin since"
            problem = f"{committed}, and no entry has them pending: {why}"
            yield Damage(DamageKind.LOG_END, OFFSET_LOG_ROOT, problem)


def unsettled(settled: int, seen: int) -> Iterator[Damage]:
    """Judge whether O has settled what T, read before O, has seen of it: for where nothing says whose offsets."""
    if seen > settled:
        problem = f"offsets are settled to {settled}, and the transaction log has seen them settled to {seen}"
        yield Damage(DamageKind.LOG_END, OFFSET_LOG_ROOT, problem)


def _named(groups: Sequence[str]) -> str:
    return f"{'group' if len(groups) == 1 else 'groups'} {', '.join(groups)}"

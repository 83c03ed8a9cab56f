"""The model of one segment's file: a late append and its retry against vacuum (PROTOCOL.md §5.7).

A tick of the clock is half of S's retention, and more than the age at which vacuum looks at a file.
An append is decided on a view of S, and its put may land much later: in the slot above that view,
if nobody has taken it.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tests.model.transition_system import Action, Invariant, Model, Rule

_OLD, _RETENTION = 1, 2
_OLDEST = 3


class Name(NamedTuple):
    """What S says of the name at a version: an ``age`` of ``None`` is no tombstone."""

    version: int = 0
    is_live: bool = False
    tombstone_age: int | None = None


class At(Enum):
    """Where the vacuum stands."""

    RESTING = "resting"
    CHOSEN = "chosen"
    TOMBSTONED = "tombstoned"
    JUDGED = "judged"


class Files(NamedTuple):
    """One world.

    Attributes
    ----------
    segments : Name
        S.
    is_public : bool
        Whether P has it.
    is_there, age : bool, int
        The file.
    view, flying, tries : Name or None, int or None, int
        The writer's view, the slot at which its put may land, and how often it may put.
    at, seen : At, Name
        The vacuum, and S as it read it.
    registered, is_lost : int, bool
        Ghosts: how often the name was made live; whether it was tombstoned while it was.
    """

    segments: Name = Name()
    is_public: bool = False
    is_there: bool = True
    age: int = 0
    view: Name | None = None
    flying: int | None = None
    tries: int = 2
    at: At = At.RESTING
    seen: Name = Name()
    registered: int = 0
    is_lost: bool = False


class FileModel:
    """Guards and effects of a writer, a compaction, a projection, a vacuum and the clock."""

    def model(self) -> Model[Files]:
        """Return the model."""
        one = range(1)
        young = Rule("an old upload is refused", "5.7", self._is_young)
        unknown = Rule("a name with a tombstone is refused", "5.7", self._has_no_tombstone)
        absent = Rule("a live name is answered and not added again", "5.4", self._is_not_live)
        slot = Rule("S: exactly the next slot", "4.2 rule 1", self._slot_is_free)
        unseen = Rule("a name that went live is not tombstoned", "5.7", self._vacuum_is_newest)
        first = Rule("what goes is tombstoned first", "5.7", self._is_tombstoned)
        again = Rule("S and P are judged once more", "5.7", self._is_in_neither)
        forgotten = Rule("tombstones are kept for S's retention", "4.4", self._is_expired)
        actions = (
            Action("READ S", "5.2", one, self._may_read, self._read),
            Action("PUT THE APPEND", "5.2", one, self._has_view, self._send, (young, unknown, absent)),
            Action("LAND IN THE SLOT", "4.2", one, self._flies, self._land, (slot,)),
            Action("FIND THE SLOT TAKEN", "4.2", one, self._is_taken, self._lose),
            Action("COMPACT IT AWAY", "5.8", one, self._is_live, self._remove),
            Action("PROJECT", "7", one, self._is_behind, self._project),
            Action("CHOOSE FOR VACUUM", "5.7", one, self._may_go, self._choose),
            Action("TOMBSTONE", "5.7", one, self._is_chosen, self._tombstone, (unseen,)),
            Action("LEAVE IT", "5.7", one, self._is_out_of_date, self._rest),
            Action("JUDGE", "5.7", one, self._is_to_judge, self._judge, (first, again)),
            Action("DELETE", "5.7", one, self._is_judged, self._delete),
            Action("FORGET THE TOMBSTONE", "4.4", one, self._has_tombstone, self._forget, (forgotten,)),
            Action("LET TIME PASS", "5.7", one, self._has_time, self._tick),
        )
        invariants = (
            Invariant("a live name has its file", "5.7", "CHECKER: dangling reference", self._no_dangling),
            Invariant("a public name has its file", "5.7", "CHECKER: dangling reference", self._no_public_dangling),
            Invariant("a live name is not tombstoned", "5.7", "SlateDB RFC-0029", self._none_lost),
            Invariant("a name is registered once", "5.7", "Iceberg 16282: double registration", self._once),
        )
        return Model("files: one name, a writer with a retry, a vacuum", Files(), actions, invariants)

    # -- guards -----------------------------------------------------------------------------

    def _may_read(self, world: Files, _: int) -> bool:
        return world.tries > 0 and world.view != world.segments and world.flying is None

    def _has_view(self, world: Files, _: int) -> bool:
        return world.view is not None and world.tries > 0 and world.flying is None

    def _is_young(self, world: Files, _: int) -> bool:
        return world.age < _OLD

    def _has_no_tombstone(self, world: Files, _: int) -> bool:
        return world.view is not None and world.view.tombstone_age is None

    def _is_not_live(self, world: Files, _: int) -> bool:
        return world.view is not None and not world.view.is_live

    def _flies(self, world: Files, _: int) -> bool:
        return world.flying is not None

    def _slot_is_free(self, world: Files, _: int) -> bool:
        return world.flying == world.segments.version

    def _is_taken(self, world: Files, _: int) -> bool:
        return world.flying is not None and world.flying < world.segments.version

    def _is_live(self, world: Files, _: int) -> bool:
        return world.segments.is_live

    def _is_behind(self, world: Files, _: int) -> bool:
        return world.is_public != world.segments.is_live

    def _may_go(self, world: Files, _: int) -> bool:
        return world.at is At.RESTING and world.is_there and world.age >= _OLD and not world.segments.is_live

    def _is_chosen(self, world: Files, _: int) -> bool:
        return world.at is At.CHOSEN

    def _vacuum_is_newest(self, world: Files, _: int) -> bool:
        return world.seen.version == world.segments.version

    def _is_out_of_date(self, world: Files, _: int) -> bool:
        return world.at is At.CHOSEN and not self._vacuum_is_newest(world, 0)

    def _is_to_judge(self, world: Files, _: int) -> bool:
        return world.at in (At.CHOSEN, At.TOMBSTONED)

    def _is_tombstoned(self, world: Files, _: int) -> bool:
        return world.at is At.TOMBSTONED

    def _is_in_neither(self, world: Files, _: int) -> bool:
        return not world.segments.is_live and not world.is_public

    def _is_judged(self, world: Files, _: int) -> bool:
        return world.at is At.JUDGED

    def _has_tombstone(self, world: Files, _: int) -> bool:
        return world.segments.tombstone_age is not None

    def _is_expired(self, world: Files, _: int) -> bool:
        return (world.segments.tombstone_age or 0) >= _RETENTION

    def _has_time(self, world: Files, _: int) -> bool:
        return world.age < _OLDEST

    # -- effects ----------------------------------------------------------------------------

    def _read(self, world: Files, _: int) -> Files:
        return world._replace(view=world.segments)

    def _send(self, world: Files, _: int) -> Files:
        assert world.view is not None
        return world._replace(flying=world.view.version, view=None, tries=world.tries - 1)

    def _land(self, world: Files, _: int) -> Files:
        live = Name(world.segments.version + 1, is_live=True)
        # The answer may be lost: the writer may try again whatever happened.
        return world._replace(segments=live, flying=None, registered=world.registered + 1)

    def _lose(self, world: Files, _: int) -> Files:
        return world._replace(flying=None)

    def _remove(self, world: Files, _: int) -> Files:
        return world._replace(segments=Name(world.segments.version + 1, tombstone_age=0))

    def _project(self, world: Files, _: int) -> Files:
        return world._replace(is_public=world.segments.is_live)

    def _choose(self, world: Files, _: int) -> Files:
        return world._replace(at=At.CHOSEN, seen=world.segments)

    def _tombstone(self, world: Files, _: int) -> Files:
        after = Name(world.segments.version + 1, is_live=False, tombstone_age=0)
        return world._replace(segments=after, at=At.TOMBSTONED, is_lost=world.is_lost or world.segments.is_live)

    def _rest(self, world: Files, _: int) -> Files:
        return world._replace(at=At.RESTING, seen=Name())

    def _judge(self, world: Files, _: int) -> Files:
        return world._replace(at=At.JUDGED)

    def _delete(self, world: Files, _: int) -> Files:
        return world._replace(at=At.RESTING, seen=Name(), is_there=False)

    def _forget(self, world: Files, _: int) -> Files:
        return world._replace(segments=world.segments._replace(tombstone_age=None))

    def _tick(self, world: Files, _: int) -> Files:
        age = world.segments.tombstone_age
        older = world.segments._replace(tombstone_age=None if age is None else min(age + 1, _OLDEST))
        return world._replace(age=world.age + 1, segments=older)

    # -- invariants -------------------------------------------------------------------------

    def _no_dangling(self, world: Files) -> bool:
        return world.is_there or not world.segments.is_live

    def _no_public_dangling(self, world: Files) -> bool:
        return world.is_there or not world.is_public

    def _once(self, world: Files) -> bool:
        return world.registered <= 1

    def _none_lost(self, world: Files) -> bool:
        return not world.is_lost

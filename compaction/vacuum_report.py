"""What a vacuum found, place by place and reason by reason, and how far it is (PROTOCOL.md §5.7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from txntable.compaction.vacuum_plan import Reason
from txntable.storage.object_store import ObjectMeta

_TOLD_EVERY = 1000


@dataclass(frozen=True, slots=True)
class VacuumLine:
    """The objects of one place that have one reason to go, or to stay.

    Attributes
    ----------
    topic : str or None
        ``None``: what lies beside the topics.
    reason : Reason
        Why they go, or stay.
    objects, bytes : int
        How many, and how large together.
    example : str
        The path of the first of them, relative to the warehouse's root.
    """

    topic: str | None
    reason: Reason
    objects: int
    bytes: int
    example: str


@dataclass(frozen=True, slots=True)
class VacuumReport:
    """What a vacuum deleted, or would delete, and what stays.

    Attributes
    ----------
    executed : bool
        ``False``: a dry run; nothing was written and nothing deleted.
    lines : tuple of VacuumLine
        By topic; of each what stays before what goes.
    failures : tuple of str
        Of topics that could not be read or written: another run does them.
    notices : tuple of str
        What was not looked at for want of a permission that a vacuum can do without.
    """

    executed: bool
    lines: tuple[VacuumLine, ...]
    failures: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def objects(self) -> int:
        """How many objects were deleted, or would be."""
        return sum(line.objects for line in self.lines if line.reason.goes)

    @property
    def bytes(self) -> int:
        """How large these are together."""
        return sum(line.bytes for line in self.lines if line.reason.goes)


@dataclass(frozen=True, slots=True)
class VacuumProgress:
    """How far a vacuum is in one place.

    Attributes
    ----------
    topic : str or None
        Where it is; ``None``: beside the topics.
    listed : int
        Objects looked at there.
    going : int
        Of these, objects deleted; in a dry run those that would be.
    """

    topic: str | None
    listed: int
    going: int


ShowProgress = Callable[[VacuumProgress], None]


class Tally:
    """Counts the objects of one place.

    Parameters
    ----------
    topic : str or None
        The place; ``None``: what lies beside the topics.
    progress : callable, optional
        Is told from time to time.
    """

    def __init__(self, topic: str | None, progress: ShowProgress | None) -> None:
        self._topic, self._progress = topic, progress
        self._lines: dict[Reason, VacuumLine] = {}
        self._shown = VacuumProgress(topic, 0, 0)

    def listed(self) -> None:
        """Take note that one more object was looked at."""
        self._shown = replace(self._shown, listed=self._shown.listed + 1)
        self._show(self._shown.listed)

    def count(self, reason: Reason, meta: ObjectMeta) -> None:
        """Take note of an object that stays, or has gone, for a reason."""
        line = self._lines.get(reason, VacuumLine(self._topic, reason, 0, 0, meta.path))
        self._lines[reason] = replace(line, objects=line.objects + 1, bytes=line.bytes + meta.size)
        if reason.goes:
            self._shown = replace(self._shown, going=self._shown.going + 1)
            self._show(self._shown.going)

    def _show(self, number: int) -> None:
        if self._progress is not None and number % _TOLD_EVERY == 0:
            self._progress(self._shown)

    def lines(self) -> list[VacuumLine]:
        """Return what was counted, in the order of the reasons."""
        return [self._lines[reason] for reason in Reason if reason in self._lines]

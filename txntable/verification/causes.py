"""Which of several damages comes first: a log that has lost something makes others look wrong (PROTOCOL.md §6.4, §7).

Owns the order in which damages are told, and that what may follow from another one is not repaired before it.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from txntable.format.layout import OFFSET_LOG_ROOT, TOPICS_FOLDER, TRANSACTION_LOG_ROOT, segments_root
from txntable.verification.damage import Damage, DamageKind

_CAUSES = (
    *(DamageKind.LOG_MISSING, DamageKind.LOG_BEGINNING, DamageKind.ENTRY_MISSING, DamageKind.ENTRY_UNREADABLE),
    *(DamageKind.LOG_END, DamageKind.CHAIN, DamageKind.GUARD),
)
# One log held against another.
_CONSEQUENCES = (
    *(DamageKind.INCOMPLETE, DamageKind.MARKER, DamageKind.MARKER_MISSING, DamageKind.CARRIED, DamageKind.HANGING),
    *(DamageKind.COMMITTED_OFFSET, DamageKind.PENDING_OFFSET),
)
_FIRST = (DamageKind.IDENTITY, *_CAUSES)


def in_order(damages: Iterable[Damage]) -> tuple[Damage, ...]:
    """Return damages, causes first, each of what may follow from another one with that one's path."""
    found = sorted(damages, key=lambda one: (one.kind not in _FIRST, one.path, one.kind.value, one.problem))
    causes = [one.path for one in found if one.kind in _CAUSES and one.read_on_from is None]
    return tuple(replace(one, follows=_cause(one, causes)) if one.kind in _CONSEQUENCES else one for one in found)


def _cause(one: Damage, causes: Iterable[str]) -> str | None:
    """Return the path of what a damage may follow from: of its own log, or of one that it is held against."""
    folder, _, rest = one.path.partition("/")
    own = segments_root(rest.partition("/")[0]) if folder == TOPICS_FOLDER else OFFSET_LOG_ROOT
    return next((path for path in causes if f"{path}/".startswith((f"{own}/", f"{TRANSACTION_LOG_ROOT}/"))), None)

"""Which of a topic's two logs is to be believed where they differ (PROTOCOL.md §7).

Owns that a public table is made again only from a log of which nothing is said: else it may be the one that is right,
and the last that names committed records.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from txntable.format.layout import TOPICS_FOLDER, segments_root
from txntable.verification.damage import Damage, DamageKind

_OF_PROJECTIONS = (DamageKind.PROJECTION, DamageKind.PUBLICATION)


def doubted(damages: Iterable[Damage]) -> set[Damage]:
    """Return damages, those of public tables doubted where anything is said of their source.

    Parameters
    ----------
    damages : iterable of Damage
        All that were found.
    """
    found = set(damages)
    doubtful = {_topic(one) for one in found if _is_of_source(one)} - {None}
    return {
        replace(one, kind=DamageKind.PROJECTION_OR_LOG)
        if one.kind in _OF_PROJECTIONS and _topic(one) in doubtful
        else one
        for one in found
    }


def _topic(one: Damage) -> str | None:
    folder, _, rest = one.path.partition("/")
    return rest.partition("/")[0] if folder == TOPICS_FOLDER else None


def _is_of_source(one: Damage) -> bool:
    """Return whether a damage says something of S: a row of P has the path of its segment, and does not."""
    if one.kind is DamageKind.PROJECTION_OR_LOG:
        return True
    topic = _topic(one)
    is_below = topic is not None and f"{one.path}/".startswith(f"{segments_root(topic)}/")
    # A file that only older versions name says nothing of what S has now.
    return is_below and one.kind not in (*_OF_PROJECTIONS, DamageKind.OLDER_SEGMENT)

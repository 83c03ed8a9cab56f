"""What a synchronisation does with each table: the one place that decides it.

Owns the rule that what is not ours is never touched, whatever its name.  Pure.

==================== ================== ========== ===========================
the topic            the catalog has    is ours    then
==================== ================== ========== ===========================
is published         nothing            –          create
is published         a table            no         refuse
is published         the same           yes        keep
is published         another            yes        update
is not yet published whatever           –          wait
is gone              a table            yes        drop
is gone              a table            no         nothing: it is not told of
==================== ================== ========== ===========================

Of several topics with one name in SQL, the one whose table is there keeps it, and the others are refused; where none
is there, all are: which one a query means is never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from txntable.catalog.table import LONGEST_NAME, FoundTable, Owner, WantedTable, by_name, is_of, plain_location


class Action(Enum):
    """What becomes of a table."""

    CREATE = "create"
    UPDATE = "update"
    DROP = "drop"
    KEEP = "keep"
    WAIT = "wait"
    REFUSE = "refuse"

    @property
    def changes(self) -> bool:
        """Whether it changes the catalog."""
        return self in {Action.CREATE, Action.UPDATE, Action.DROP}


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one table.

    Attributes
    ----------
    action : Action
        What is done.
    table : str
        The table's name.
    topic : str
        The topic's.
    reason : str
        Why, with the remedy where something is refused.
    wanted, found : WantedTable, FoundTable or None
        What the decision was about.
    """

    action: Action
    table: str
    topic: str
    reason: str
    wanted: WantedTable | None = None
    found: FoundTable | None = None


def plan(wanted: Sequence[WantedTable], found: Sequence[FoundTable], owner: Owner) -> list[Change]:
    """Return what is done with each table that is the owner's or should be, by name.

    Parameters
    ----------
    wanted : sequence of WantedTable
        One for each topic.
    found : sequence of FoundTable
        All that the catalog's database has: listed before `wanted`, so that a table whose topic is not there has lost
        it, and not the other way round.
    owner : Owner
        Who synchronises.
    """
    there = {table.name: table for table in found}
    named = by_name(wanted)
    changes = [change for name in named for change in _of_one_name(named[name], there.get(name), owner)]
    gone = [decided for name, table in there.items() if name not in named and (decided := decide(None, table, owner))]
    return sorted([*changes, *gone], key=lambda change: (change.table, change.topic))


def _of_one_name(tables: Sequence[WantedTable], there: FoundTable | None, owner: Owner) -> list[Change]:
    has = there.marks.topic if there is not None and there.marks is not None and is_of(there, owner) else None
    if len(tables) == 1:
        return [decided for table in tables if (decided := decide(table, there, owner))]
    topics = ",".join(sorted(table.marks.topic for table in tables))
    reason = f"SQL takes the names of these topics for one; sync one of them with another prefix topics={topics}"
    return [
        decide(table, there, owner) or _change(Action.KEEP, table, there, "")
        if table.marks.topic == has
        else _change(Action.REFUSE, table, there, reason)
        for table in tables
    ]


def decide(wanted: WantedTable | None, there: FoundTable | None, owner: Owner) -> Change | None:
    """Return what is done with one table; ``None``: it is none of the owner's business.

    Parameters
    ----------
    wanted : WantedTable or None
        ``None``: no topic has this name.
    there : FoundTable or None
        ``None``: the catalog has nothing of this name.
    owner : Owner
        Who synchronises.
    """
    ours = there is not None and is_of(there, owner)
    if wanted is None:
        return _gone(there) if there is not None and ours else None
    if not wanted.is_published:
        return _change(Action.WAIT, wanted, there, "the topic has no public table yet; the next run registers it")
    if len(wanted.name) > LONGEST_NAME:
        reason = f"the name is too long for a catalog; take a shorter prefix most={LONGEST_NAME}"
        return _change(Action.REFUSE, wanted, there, reason)
    if there is None:
        return _change(Action.CREATE, wanted, there, "the topic has no table")
    return _of_table(wanted, there) if ours else _change(Action.REFUSE, wanted, there, _whose(there))


def _gone(there: FoundTable) -> Change:
    topic = "" if there.marks is None else there.marks.topic
    return Change(Action.DROP, there.name, topic, "the topic is gone", None, there)


def _of_table(wanted: WantedTable, there: FoundTable) -> Change:
    differs = differences(wanted, there)
    if differs:
        return _change(Action.UPDATE, wanted, there, f"other than the topic's: {', '.join(differs)}")
    return _change(Action.KEEP, wanted, there, "as the topic is")


def differences(wanted: WantedTable, there: FoundTable) -> list[str]:
    """Return in what a table that is ours is not as it should be."""
    same: Mapping[str, bool] = {
        "columns": there.columns is None or there.columns == wanted.columns,
        "format": there.is_delta,
        "location": plain_location(there.location) == plain_location(wanted.location),
        "topic": there.marks == wanted.marks,
    }
    return [name for name, is_same in same.items() if not is_same]


def _whose(there: FoundTable) -> str:
    if there.marks is None:
        return (
            "a table or view of this name is there, and txntable did not register it; drop it (an external table's "
            f"files stay), or sync with another prefix location={there.location}"
        )
    return (
        "the table was registered from another warehouse, a copy of this one, or with another prefix; drop it, or sync "
        f"with another prefix or database warehouse_id={there.marks.warehouse_id} location={there.location}"
    )


def _change(action: Action, wanted: WantedTable, there: FoundTable | None, reason: str) -> Change:
    return Change(action, wanted.name, wanted.marks.topic, reason, wanted, there)

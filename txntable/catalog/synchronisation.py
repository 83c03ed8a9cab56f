"""Bringing a catalog to what a warehouse has: look, decide, look again at what changes, decide again, change.

Owns two orders.  The catalog is listed before the topics: a table that is seen had a topic, so a topic that is not
there afterwards is gone; the other way round, a run beside this one could register a topic in between, and this one
would drop its table.  And each table that is changed is looked at again just before: what somebody else has made of it
since is decided on, never overwritten.

Runs may overlap, repeat and be killed anywhere.  A table that fails keeps no other from being synchronised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from txntable.catalog.catalog import Catalog
from txntable.catalog.plan import Action, Change, decide, plan
from txntable.catalog.table import FoundTable, Owner, WantedTable, wanted_table, wanted_transactions
from txntable.errors import TxnTableError
from txntable.log.keyed_table import keyed_schema
from txntable.storage.written import Written
from txntable.transactions.transaction_rows import TRANSACTION_LOG_COLUMNS
from txntable.warehouse.warehouse import Warehouse

ATTEMPTS = 5
"""At one table that others keep changing."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one table.

    Attributes
    ----------
    change : Change
        What was decided in the end.
    executed : bool
        Whether it was done; what changes nothing is not.
    failure : TxnTableError or None
        Why it was not.
    """

    change: Change
    executed: bool = False
    failure: TxnTableError | None = None

    @property
    def is_good(self) -> bool:
        """Whether the table is, or would be, as the topic is."""
        return self.failure is None and self.change.action is not Action.REFUSE


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """What is registered, and whether.

    Attributes
    ----------
    prefix : str
        Of the tables' names.
    transactions : bool
        Whether the transaction log is, too.
    execute : bool
        ``False``: only say what would be done.
    """

    prefix: str = ""
    transactions: bool = False
    execute: bool = True


def synchronise(
    warehouse: Warehouse, catalog: Catalog, options: SyncOptions, progress: Tell = lambda words: None
) -> list[Outcome]:
    """Register the topics of a warehouse in a catalog.

    Parameters
    ----------
    warehouse : Warehouse
        A reader's permissions are enough.
    catalog : Catalog
        One database of it.
    options : SyncOptions
        What is registered.
    progress : callable
        Is told how far it is.

    Returns
    -------
    list of Outcome
        One for each table, by name.

    Raises
    ------
    InvalidRequestError
        There is no such database, or the catalog's engines cannot read where the warehouse is.
    StorePermissionError, StoreUnavailableError
        The catalog cannot be listed.
    """
    owner = Owner(warehouse.identity.warehouse_id, catalog.root(warehouse.url), options.prefix)
    found = catalog.tables()
    progress(f"{len(found):,} tables in the catalog; reading the topics")
    wanted = [*wanted_tables(warehouse, catalog, owner)]
    if options.transactions:
        wanted.append(wanted_transactions(owner, keyed_schema(TRANSACTION_LOG_COLUMNS), catalog.spell))
    changes = plan(wanted, found, owner)
    outcomes = []
    for done, change in enumerate(changes, 1):
        outcomes.append(_carried_out(catalog, change, owner) if options.execute else Outcome(change))
        progress(f"{done:,} of {len(changes):,} tables")
    return outcomes


def wanted_tables(warehouse: Warehouse, catalog: Catalog, owner: Owner) -> Sequence[WantedTable]:
    """Return each topic of a warehouse as the catalog should have it."""
    return [
        wanted_table(topic.settings, owner, catalog.spell, is_published=topic.public_version is not None)
        for topic in warehouse.admin().describe_topics()
    ]


def _carried_out(catalog: Catalog, change: Change, owner: Owner) -> Outcome:
    try:
        return _done(catalog, change, owner)
    except TxnTableError as failure:
        return Outcome(change, failure=failure)


def _done(catalog: Catalog, change: Change, owner: Owner) -> Outcome:
    decided = change
    for _ in range(ATTEMPTS):
        if not decided.action.changes:
            return Outcome(decided)
        now = catalog.table(decided.table)
        again = decide(decided.wanted, now, owner)
        if again is None or (again.action is Action.DROP and now != change.found):
            # Another run was faster: dropped it, or has registered a topic of this name since.
            return Outcome(_left(decided, now))
        decided = again
        if _written(catalog, decided) is Written.DONE:
            return Outcome(decided, executed=decided.action.changes)
    return Outcome(replace(decided, action=Action.WAIT, reason="others keep changing the table; the next run does it"))


def _left(change: Change, now: FoundTable | None) -> Change:
    if now is None:
        return replace(change, reason="somebody else dropped it")
    return replace(change, action=Action.WAIT, reason="somebody else changed it meanwhile; the next run decides")


def _written(catalog: Catalog, change: Change) -> Written:
    match change:
        case Change(action=Action.CREATE, wanted=WantedTable() as wanted):
            return catalog.create(wanted)
        case Change(action=Action.UPDATE, wanted=WantedTable() as wanted, found=FoundTable() as found):
            return catalog.update(wanted, found)
        case Change(action=Action.DROP, found=FoundTable() as found):
            return catalog.drop(found)
    return Written.DONE

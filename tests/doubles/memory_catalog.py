"""A catalog in memory, as strict as one may be, whose calls a test may come in between.

It compares what it is given to update or drop with what it has: who overwrites a change of somebody else is overtaken,
and who changes what is not there is a bug of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from txntable.catalog.catalog import Catalog
from txntable.catalog.column_types import hive_column
from txntable.catalog.table import FoundTable, WantedTable
from txntable.errors import TxnTableError
from txntable.storage.written import Written


class MemoryCatalog(Catalog):
    """The tables by name, and what was written, in order.

    Attributes
    ----------
    has : dict of str to FoundTable
        The tables.
    written : list of str
        Verb and name of each change that was made.
    before : callable or None
        Called once, before the next look at one table, as somebody else would come in between.
    refuses : dict of str to TxnTableError
        What a change of that table raises.
    """

    def __init__(self, *tables: FoundTable) -> None:
        self.has = {table.name: table for table in tables}
        self.written: list[str] = []
        self.before: Callable[[], None] | None = None
        self.refuses: dict[str, TxnTableError] = {}

    def spell(self, column: pa.Field) -> tuple[str, str]:
        return hive_column(column)

    def root(self, url: str) -> str:
        return f"file:{url}"

    def tables(self) -> Sequence[FoundTable]:
        return list(self.has.values())

    def table(self, name: str) -> FoundTable | None:
        came, self.before = self.before, None
        if came is not None:
            came()
        return self.has.get(name)

    def create(self, wanted: WantedTable) -> Written:
        return self._written("create", wanted.name, None, table_of(wanted))

    def update(self, wanted: WantedTable, found: FoundTable) -> Written:
        return self._written("update", wanted.name, found, replace(table_of(wanted), version=f"{found.version}+"))

    def drop(self, found: FoundTable) -> Written:
        return self._written("drop", found.name, found, None)

    def _written(self, verb: str, name: str, was: FoundTable | None, becomes: FoundTable | None) -> Written:
        if name in self.refuses:
            raise self.refuses[name]
        if self.has.get(name) != was:
            return Written.OVERTAKEN
        self.has.pop(name, None)
        if becomes is not None:
            self.has[name] = becomes
        self.written.append(f"{verb} {name}")
        return Written.DONE


def table_of(wanted: WantedTable) -> FoundTable:
    """Return a table that is as it should be."""
    return FoundTable(wanted.name, wanted.location, wanted.marks, wanted.columns, version="0")

"""What a synchronisation asks of a catalog; one implementation for each.

Owns the interface.  An implementation decides nothing: it lists, and does what it is told to one table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pyarrow as pa

from txntable.catalog.table import FoundTable, WantedTable
from txntable.storage.written import Written


class Catalog(ABC):
    """One database of a catalog."""

    @abstractmethod
    def spell(self, column: pa.Field) -> tuple[str, str]:
        """Return name and type of a column in this catalog's words."""

    @abstractmethod
    def root(self, url: str) -> str:
        """Return a warehouse's URL as this catalog's engines read it.

        Raises
        ------
        InvalidRequestError
            They cannot: the warehouse is where they do not reach.
        """

    @abstractmethod
    def tables(self) -> Sequence[FoundTable]:
        """Return all tables and views of the database.

        Raises
        ------
        InvalidRequestError
            There is no such database.
        """

    @abstractmethod
    def table(self, name: str) -> FoundTable | None:
        """Return a table or view as it is now; ``None``: there is none."""

    @abstractmethod
    def create(self, wanted: WantedTable) -> Written:
        """Create a table, unless there is something of its name."""

    @abstractmethod
    def update(self, wanted: WantedTable, found: FoundTable) -> Written:
        """Make of a table what it should be, and leave what others gave it; no file is touched."""

    @abstractmethod
    def drop(self, found: FoundTable) -> Written:
        """Take a table out of the catalog; no file is touched."""

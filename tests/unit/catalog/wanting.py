"""Topics and tables for tests of plans."""

from __future__ import annotations

from tests.simulation.site import TWO_COLUMNS
from txntable.catalog.column_types import hive_column
from txntable.catalog.table import FoundTable, Marks, Owner, WantedTable, wanted_table
from txntable.format.topic import TopicSettings

OWNER = Owner("w" * 32, "s3://lake/wh")


def wanted(topic: str, topic_id: str = "1", *, owner: Owner = OWNER, is_published: bool = True) -> WantedTable:
    return wanted_table(TopicSettings(topic, topic_id, 1, TWO_COLUMNS), owner, hive_column, is_published=is_published)


def by_hand(name: str, location: str | None = "s3://lake/wh/topics/t") -> FoundTable:
    """A table that somebody registered without us."""
    return FoundTable(name, location, None, None)


def registered(topic: str, topic_id: str = "1", *, owner: Owner = OWNER, root: str | None = None) -> FoundTable:
    """A table that an owner registered, perhaps elsewhere than it is now."""
    as_wanted = wanted(topic, topic_id, owner=owner)
    marks = Marks(owner.warehouse_id, owner.prefix, topic, topic_id)
    return FoundTable(as_wanted.name, f"{root or owner.root}/topics/{topic}", marks, as_wanted.columns)

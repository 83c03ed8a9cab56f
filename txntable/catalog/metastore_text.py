"""What Spark tells of a table in a Hive metastore, in the text of ``SHOW TABLE EXTENDED``.

Owns how that text is read: the only statement that tells of all tables of a database at once, and of one whose files
are gone.  Pure; must not know of Spark.
"""

from __future__ import annotations

import re

from txntable.catalog.table import FoundTable, marks_in

_LINE = re.compile(r"^(Type|Provider|Location|Table Properties): (.*)$", re.MULTILINE)
# What marks say has no comma and no bracket.
_MARK = re.compile(r"(?<=[\[ ])(txntable\.[a-z_]+)=([^,\]]*)(?=[,\]])")


def table_in_text(name: str, text: str) -> FoundTable:
    """Return a table as the metastore has it.

    Parameters
    ----------
    name : str
        The table's.
    text : str
        The column ``information`` of its row.
    """
    said = dict(_LINE.findall(text))
    marks = marks_in(dict(_MARK.findall(said.get("Table Properties", ""))))
    is_delta = (said.get("Type"), said.get("Provider", "").lower()) == ("EXTERNAL", "delta")
    return FoundTable(name.lower(), said.get("Location"), marks, None, is_delta)

"""The options of ``format("txntable")``: what Spark hands over as text, as what it means.

Owns their names.  An option that is not known is refused: a misspelt level must not read another one.
Pure; options of the store are never printed.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from txntable.errors import InvalidRequestError
from txntable.isolation import IsolationLevel, level_at
from txntable.snapshot import as_of
from txntable.spark.offset_range import EARLIEST, LATEST, Offsets
from txntable.storage.object_store import StoreSpec

STORE_PREFIX = "storage."
DEFAULT_BYTES_PER_TASK = 128 * 1024 * 1024
_WAREHOUSE, _TOPIC, _LEVEL, _AS_OF = "warehouse", "topic", "isolationLevel", "asOf"
_STARTING, _ENDING, _COLUMNS = "startingOffsets", "endingOffsets", "columns"
_BYTES, _DURABILITY, _PUSH = "maxBytesPerTask", "durability", "pushFilters"
_KNOWN = (_WAREHOUSE, _TOPIC, _LEVEL, _AS_OF, _STARTING, _ENDING, _COLUMNS, _BYTES, _DURABILITY, _PUSH)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a read was asked for.

    Attributes
    ----------
    store : StoreSpec
        The warehouse's.
    topic : str
        The topic's name.
    level : IsolationLevel
        What is seen.
    as_of : int, datetime or None
        Of a snapshot.
    starting, ending : Offsets or None
        See :func:`txntable.spark.offset_range.offset_ranges`.
    columns : tuple of str or None
        Which columns; ``None``: all.
    bytes_per_task : int
        How much one task reads; a segment is never divided.
    push_filters : bool
        Whether predicates on ``_partition`` and ``_offset`` leave out segments.
    """

    store: StoreSpec
    topic: str
    level: IsolationLevel
    as_of: int | dt.datetime | None
    starting: Offsets | None
    ending: Offsets | None
    columns: tuple[str, ...] | None
    bytes_per_task: int
    push_filters: bool


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """Return what the options of a DataFrameReader say.

    Parameters
    ----------
    given : Mapping[str, str]
        By name, in any case.

    Raises
    ------
    InvalidRequestError
        One is missing, unknown or can not be read; the message names it.
    """
    lowered = {name.lower(): value for name, value in given.items()}
    storage = {name.removeprefix(STORE_PREFIX): lowered[name] for name in lowered if name.startswith(STORE_PREFIX)}
    options = {name: lowered[name.lower()] for name in _KNOWN if name.lower() in lowered}
    unknown = sorted(set(lowered) - {name.lower() for name in _KNOWN} - {STORE_PREFIX + name for name in storage})
    missing = [name for name in (_WAREHOUSE, _TOPIC) if name not in options]
    if unknown or missing:
        raise InvalidRequestError(
            "the options name a warehouse and a topic, and nothing that is not known; storage.<name> goes to the store",
            missing=",".join(missing) or None,
            unknown=",".join(unknown) or None,
            known=",".join(_KNOWN),
        )
    moment = as_of(options[_AS_OF]) if _AS_OF in options else None
    columns = options.get(_COLUMNS)
    return ReadOptions(
        StoreSpec(options[_WAREHOUSE], storage, options.get(_DURABILITY, "full")),
        options[_TOPIC],
        level_at(options.get(_LEVEL, IsolationLevel.SNAPSHOT), moment),
        moment,
        _offsets(_STARTING, options.get(_STARTING)),
        _offsets(_ENDING, options.get(_ENDING)),
        None if columns is None else tuple(name.strip() for name in columns.split(",")),
        _positive(_BYTES, options.get(_BYTES, str(DEFAULT_BYTES_PER_TASK))),
        _flag(_PUSH, options.get(_PUSH, "false")),
    )


def _offsets(name: str, text: str | None) -> Offsets | None:
    if text is None or text in (EARLIEST, LATEST):
        return text
    try:
        found: Any = json.loads(text)
        return {int(partition): offset for partition, offset in found.items()}
    except (ValueError, AttributeError) as error:
        raise _unreadable(name, text, 'earliest, latest, or by partition {"0": 5, "1": "latest"}') from error


def _positive(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise _unreadable(name, text, "a number of bytes above 0")
    return int(text)


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise _unreadable(name, text, "true or false")
    return text.lower() == "true"


def _unreadable(name: str, text: str, expected: str) -> InvalidRequestError:
    return InvalidRequestError(
        "an option can not be read; write it as expected", option=name, found=repr(text), expected=expected
    )

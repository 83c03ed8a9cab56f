"""The options of a read by ``format("txntable")``: what Spark hands over as text, as what it means.

Owns their defaults.  Pure; options of the store are never printed.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from txntable.format.isolation import IsolationLevel, level_at
from txntable.snapshot.snapshot import as_of
from txntable.spark.scan.offset_bounds import EARLIEST, LATEST, Offsets
from txntable.spark.scan.source_options import Option, SourceOptions, source_options, unreadable
from txntable.storage.object_store import StoreSpec

DEFAULT_BYTES_PER_TASK = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a read was asked for.

    Attributes
    ----------
    store : StoreSpec
        The warehouse's URL; its store's options have names that begin with ``storage.``, and ``durability`` is that of
        :meth:`txntable.Warehouse.open`.
    topic : str
        The topic's name.
    level : IsolationLevel
        What is seen.
    as_of : int, datetime or None
        Of a snapshot: a position, or a time with its zone.
    starting, ending : Offsets or None
        See :func:`txntable.spark.scan.offset_bounds.offset_bounds`.
    columns : tuple of str or None
        Which columns; ``None``: all.
    filters : str or None
        Which records; see :mod:`txntable.spark.datasource.read_filters`.  ``None``: all.
    bytes_per_task : int
        How much one task reads; a segment is never divided.
    """

    store: StoreSpec
    topic: str
    level: IsolationLevel
    as_of: int | dt.datetime | None
    starting: Offsets | None
    ending: Offsets | None
    columns: tuple[str, ...] | None
    filters: str | None
    bytes_per_task: int


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """Return what the options of a DataFrameReader say.

    Parameters
    ----------
    given : Mapping[str, str]
        By name, in any case.

    Raises
    ------
    InvalidRequestError
        One is missing, unknown or cannot be read; the message names it.
    """
    options = source_options(given)
    at, columns = options.text(Option.AS_OF), options.text(Option.COLUMNS)
    moment = None if at is None else as_of(at)
    return ReadOptions(
        options.store,
        options.topic,
        level_at(options.text(Option.ISOLATION_LEVEL) or IsolationLevel.SNAPSHOT, moment),
        moment,
        _offsets(Option.STARTING_OFFSETS, options),
        _offsets(Option.ENDING_OFFSETS, options),
        None if columns is None else tuple(name.strip() for name in columns.split(",")),
        options.text(Option.FILTERS),
        options.positive(Option.MAX_BYTES_PER_TASK, DEFAULT_BYTES_PER_TASK, "bytes"),
    )


def _offsets(option: Option, options: SourceOptions) -> Offsets | None:
    text = options.text(option)
    if text is None or text in (EARLIEST, LATEST):
        return text
    try:
        found: Any = json.loads(text)
        return {int(partition): offset for partition, offset in found.items()}
    except (ValueError, AttributeError) as error:
        raise unreadable(option, text, 'earliest, latest, or by partition {"0": 5, "1": "latest"}') from error

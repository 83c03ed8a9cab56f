"""Values that a program might hand to a call by mistake, or by malice; each has a name, for some cannot be printed."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from txntable.format.records import TopicPartition
from txntable.offsets.group_commit import OffsetAndMetadata


@dataclass(frozen=True)
class Value:
    """A value, made anew each time, that is told by its name.

    Attributes
    ----------
    name : str
        What a failing example shows.
    make : callable
        Returns it.
    """

    name: str
    make: Callable[[], Any]

    def __repr__(self) -> str:
        return self.name


Values = st.SearchStrategy[Value]


class Unprintable:
    """An object that does not even tell what it is."""

    def __repr__(self) -> str:
        raise RuntimeError("no name")


def _itself(value: Any) -> Any:
    return value


def known(**values: Any) -> tuple[Value, ...]:
    """Return values by their names; what is no name in Python has its value for one."""
    return tuple(Value(name, partial(_itself, value)) for name, value in values.items())


def plain(*values: Any) -> tuple[Value, ...]:
    """Return values that are told by what they are."""
    return tuple(Value(repr(value), partial(_itself, value)) for value in values)


NUMBERS = (
    *plain(-1, 0, 1, 3, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, -(2**31), -(2**63), -(2**63) - 1),
    *plain(253_402_300_799_999, 253_402_300_800_000, 20260101123456789012, 10**40, True, False),
    *known(vast=10**5000, less_than_vast=-(10**5000)),
    *plain(0.0, -0.0, 0.5, 1e300, math.nan, math.inf, -math.inf, Decimal("1.5"), Decimal("NaN"), 1j),
    *plain(np.int64(1), np.int64(-1), np.uint64(2**64 - 1), np.float64("nan")),
)
TEXTS = (
    *plain(
        "", " ", "x", "\x00", "a\x00b", "\ud800", "a\udfff", "\udcff", "..", ".", "../x", "a/b", "/", "a\nb", "\x1b[2J"
    ),
    *plain(
        "\u202eabc", "\u0130", "\ufeff", "\U0010ffff", "e\u0301", "%2e%2e", "_x", "__consumer_offsets", "null", "NaN"
    ),
    *plain("-1", "9223372036854775808", "1e400", "{}", '"', "'; --", "a=b", "0" * 5000),
    *known(long_text="x" * 40_000, wide_text="\U0001f600" * 10_000, many_lines="\n" * 1000),
)
OTHERS = (
    *plain(
        None,
        b"",
        b"x",
        bytearray(b"x"),
        [],
        (),
        {},
        set(),
        [None],
        [1],
        ["x"],
        {"x": 1},
        {1: "x"},
        ("a", 1),
        ("a", 0, 2),
    ),
    *known(an_object=object(), a_type=int, unprintable=Unprintable(), nested=[[[[[]]]]], a_function=len),
    *plain(dt.datetime(1, 1, 1), dt.datetime.max, dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.date(2026, 1, 1)),  # noqa: DTZ001, DTZ901
    *plain(dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-14))), dt.timedelta.max),
    *plain(dt.datetime(1969, 12, 31, tzinfo=dt.UTC), dt.datetime(2500, 1, 1, tzinfo=dt.UTC)),
)
_LETTERS = st.characters(categories=["L", "N", "P", "S", "Z", "C", "Cs"])

numbers: Values = st.sampled_from(NUMBERS) | st.integers(-(2**80), 2**80).map(lambda one: plain(one)[0])
texts: Values = st.sampled_from(TEXTS) | st.text(_LETTERS, max_size=12).map(lambda one: plain(one)[0])
anything: Values = st.one_of(numbers, texts, st.sampled_from(OTHERS))


def always(*values: Any) -> Values:
    """Return a strategy of sound values."""
    return st.sampled_from(plain(*values))


def made(name: str, make: Callable[[], Any]) -> Values:
    """Return a strategy of one value that has a name."""
    return st.just(Value(name, make))


def listed(items: Values, *, largest: int = 3) -> Values:
    """Return lists of values."""
    return st.lists(items, max_size=largest).map(_list)


def _list(items: Sequence[Value]) -> Value:
    return Value(f"[{', '.join(map(repr, items))}]", lambda: [item.make() for item in items])


def mapped(keys: Values, values: Values, *, largest: int = 2) -> Values:
    """Return mappings of values that can be keys to others."""
    return st.lists(st.tuples(keys, values), max_size=largest).map(_mapping)


def _mapping(pairs: Sequence[tuple[Value, Value]]) -> Value:
    def make() -> Mapping[Any, Any]:
        found = {}
        for key, value in pairs:
            made_key = key.make()
            found[made_key if _can_be_key(made_key) else key.name] = value.make()
        return found

    return Value(f"{{{', '.join(f'{key!r}: {value!r}' for key, value in pairs)}}}", make)


def _can_be_key(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def paired(kind: Callable[..., Any], *parts: Values) -> Values:
    """Return what `kind` makes of values, a tuple for example."""

    def of(found: Sequence[Value]) -> Value:
        name = f"{getattr(kind, '__name__', kind)}({', '.join(map(repr, found))})"
        return Value(name, lambda: kind(*(one.make() for one in found)))

    return st.tuples(*parts).map(of)


def pair(*parts: Any) -> tuple[Any, ...]:
    """Return a tuple of the parts."""
    return parts


PLACES = always(TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("raw", 0))
hostile_places: Values = st.one_of(
    paired(TopicPartition, always("t"), anything),
    paired(TopicPartition, anything, always(0)),
    paired(pair, always("t"), numbers),
    anything,
)
hostile_offsets: Values = st.one_of(
    numbers,
    paired(OffsetAndMetadata, numbers),
    paired(OffsetAndMetadata, always(1), st.one_of(texts, anything)),
    anything,
)


def by_place(values: Values, hostile: Values) -> Values:
    """Return mappings of partitions to values, where one side is hostile or the other."""
    return st.one_of(mapped(PLACES, hostile), mapped(hostile_places, values), anything)


# -- columns and rows ---------------------------------------------------------------------------


def nested(levels: int) -> pa.DataType:
    """Return a type of so many levels."""
    kind: pa.DataType = pa.int64()
    for level in range(levels):
        kind = pa.list_(kind) if level % 2 else pa.struct([pa.field("x", kind)])
    return kind


TYPES = {
    "null": pa.null(),
    "uint64": pa.uint64(),
    "float16": pa.float16(),
    "time64": pa.time64("ns"),
    "duration": pa.duration("us"),
    "timestamp ns": pa.timestamp("ns"),
    "timestamp zone": pa.timestamp("us", "Mars/Olympus"),
    "decimal256": pa.decimal256(76, 3),
    "decimal negative scale": pa.decimal128(10, -3),
    "dictionary": pa.dictionary(pa.int8(), pa.string()),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "fixed binary": pa.binary(3),
    "union": pa.dense_union([pa.field("a", pa.int64())]),
    "empty struct": pa.struct([]),
    "map": pa.map_(pa.string(), pa.int64()),
    "struct with a name twice": pa.struct([("a", pa.int64()), ("a", pa.int64())]),
    "5 levels": nested(5),
    "60 levels": nested(60),
    "500 levels": nested(500),
    "run ends": pa.run_end_encoded(pa.int32(), pa.string()),
    "bool": pa.bool_(),
}
COLUMN_NAMES = (
    "",
    " ",
    "x",
    "X",
    "a b",
    "a.b",
    "a,b",
    "`",
    "\x00",
    "a\x00b",
    "\x1b[2J",
    "_partition",
    "_commit",
    "_kind",
)
MORE_NAMES = ("_offset", "value", "x" * 300, "x" * 5000, "\u0130", "\u202e", "\U0010ffff", "a\nb", "a=b", "{", "%", "é")

fields: Values = st.one_of(
    st.sampled_from([*COLUMN_NAMES, *MORE_NAMES]).map(
        lambda name: Value(f"field {name[:20]!r}", lambda: pa.field(name, pa.int64()))
    ),
    st.sampled_from(sorted(TYPES)).map(lambda name: Value(f"field of {name}", lambda: pa.field("c", TYPES[name]))),
)


def _schema(found: Sequence[Value]) -> Value:
    return Value(f"schema{list(found)}", lambda: pa.schema([one.make() for one in found]))


schemas: Values = st.one_of(st.lists(fields, max_size=3).map(_schema), anything)
CELLS = (
    *NUMBERS,
    *TEXTS,
    *OTHERS,
    *plain(dt.time(1), dt.timedelta(days=10**8), float("1e-320"), b"\xff" * 10, Decimal("1e400"), Decimal(1) / 3),
)
rows: Values = st.one_of(mapped(always("x", "y"), st.sampled_from(CELLS)), mapped(texts, always(1)), anything)


def _table(found: tuple[str, Value]) -> Value:
    name, cell = found

    def make() -> object:
        try:
            return pa.table({name: [cell.make()]})
        except Exception:  # noqa: BLE001
            # What Arrow itself does not take, nobody can hand to a producer.
            return pa.table({name: [1]})

    return Value(f"table({name[:20]!r}, {cell!r})", make)


tables: Values = st.one_of(
    st.tuples(st.sampled_from(["x", "y", "z", "", "_timestamp", "\x00"]), st.sampled_from(CELLS)).map(_table), anything
)

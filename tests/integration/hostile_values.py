"""Values at the edges of every type, each in a segment of its own and all in one, and what a full scan says of them."""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from txntable.warehouse.warehouse import Warehouse

_LAST_MOMENT = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001  a zone-less value
_FIRST_MOMENT = dt.datetime(1, 1, 1)  # noqa: DTZ001  the same
_LAST_CHARACTER = "\U0010ffff"


def _decimals(precision: int, scale: int) -> tuple[pa.DataType, list[Decimal]]:
    # Out of texts: arithmetic would round them.
    texts = (f"{digits}E-{scale}" for digits in ("9" * precision, "-" + "9" * precision, "1"))
    return pa.decimal128(precision, scale), [Decimal(text) for text in texts]


def _moments(zone: dt.tzinfo | None) -> list[dt.datetime]:
    before_1970 = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001  the zone comes below
    return [moment.replace(tzinfo=zone) for moment in (_LAST_MOMENT, _FIRST_MOMENT, before_1970)]


# By topic: a type, and values that are hard to say in a bound.  A null comes with each.
HOSTILE: dict[str, tuple[pa.DataType, list[Any]]] = {
    "decimal-15-2": _decimals(15, 2),
    "decimal-16-0": (pa.decimal128(16, 0), [Decimal(2**53 + 1), Decimal(-(2**53) - 1), Decimal(1)]),
    "decimal-38-6": _decimals(38, 6),
    "decimal-38-0": _decimals(38, 0),
    "decimal-38-38": _decimals(38, 38),
    "last-character": (pa.string(), [_LAST_CHARACTER, _LAST_CHARACTER * 40, "a", _LAST_CHARACTER * 1100 + "b"]),
    "long-texts": (pa.string(), ["x" * 40, "y" * 5000, "z" * 31 + _LAST_CHARACTER * 5000]),
    "far-planes": (pa.string(), ["\U00020bb7\u91ce\u5bb6", "\U0001f600", '\ufeff\x00"\\\n']),
    "timestamp": (pa.timestamp("us", "UTC"), _moments(dt.UTC)),
    "timestamp-ntz": (pa.timestamp("us"), _moments(None)),
    "not-finite": (pa.float64(), [math.inf, -math.inf, math.nan]),
    "infinite": (pa.float64(), [math.inf, 1.5, 5e-324]),
    "nan": (pa.float32(), [math.nan, 1.5, 3.4028234663852886e38]),
    "finite": (pa.float64(), [1.7976931348623157e308, -1.7976931348623157e308, 0.1, -0.0]),
    "date": (pa.date32(), [dt.date(9999, 12, 31), dt.date(1, 1, 1), dt.date(2013, 1, 1)]),
    "long": (pa.int64(), [2**63 - 1, -(2**63), 0]),
    "byte": (pa.int8(), [127, -128, 0]),
    "boolean": (pa.bool_(), [True, False]),
    "binary": (pa.binary(), [b"\xff" * 40, b"", b"\x00"]),
}
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def make_hostile(folder: Path) -> Warehouse:
    """Return a warehouse with a topic for each of :data:`HOSTILE`; ``n`` is a record's number, ``v`` its value."""
    made = Warehouse.create(str(folder / "wh"), durability="page-cache")
    for name, (kind, _) in HOSTILE.items():
        made.admin().create_topic(name, partitions=1, schema=pa.schema([("n", pa.int64()), ("v", kind)]))
    with made.producer() as producer:
        for name in HOSTILE:
            for number, value in enumerate(values_of(name)):
                producer.send(name, row={"n": number, "v": value})
                # Those of the second half share one segment.
                if number < len(values_of(name)) // 2:
                    producer.flush()
        producer.flush()
    return made


def values_of(name: str) -> list[Any]:
    """Return the value of each record of a topic, by its number."""
    return [*HOSTILE[name][1], None] * 2


def is_nan(value: Any) -> bool:
    """Return whether a value is equal to nothing, itself included."""
    return isinstance(value, float) and math.isnan(value)


def check(name: str, comparison: str, limit: Any, found: list[int]) -> None:
    """Compare the numbers of the records that a reader found with those of a full scan.

    Where NaN stands among numbers is the reader's own affair.
    """
    values = values_of(name)
    wanted = [n for n, value in enumerate(values) if value is not None and COMPARISONS[comparison](value, limit)]
    judged = [n for n in found if not is_nan(values[n])]
    assert sorted(judged) == wanted, (name, comparison, limit)

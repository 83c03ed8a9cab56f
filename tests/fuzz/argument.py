"""Sound and hostile values of the kinds of arguments that many calls have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import strategies as st

from tests.fuzz import hostile_values as hv
from tests.fuzz.hostile_values import Values, always, anything, by_place, listed, made, mapped, numbers, paired, texts

COLUMNS = pa.schema([pa.field("x", pa.int64()), pa.field("y", pa.string())])


@dataclass(frozen=True)
class Argument:
    """What is handed over as one argument.

    Attributes
    ----------
    sound : strategy
        Values that are meant to be given.
    hostile : strategy
        Values that are not, or not all.
    """

    sound: Values
    hostile: Values = anything


STRANGE_NAMES = st.one_of(texts, anything)
TOPIC = Argument(always("t", "raw"), STRANGE_NAMES)
NEW_TOPIC = Argument(always("new", "newer"), STRANGE_NAMES)
PLACE = Argument(hv.PLACES, hv.hostile_places)
PLACES = Argument(listed(hv.PLACES), st.one_of(listed(hv.hostile_places), anything))
FLAG = Argument(always(False, True))
NUMBER = Argument(always(0, 1, 2), st.one_of(numbers, anything))
MAYBE = Argument(always(None, 1), st.one_of(numbers, anything))
NAMES = Argument(listed(always("etl", "g")), st.one_of(listed(st.one_of(texts, anything)), anything))
TOPICS = Argument(listed(always("t", "raw")), st.one_of(listed(st.one_of(texts, anything)), anything))
BATCH = Argument(always("run", 7, 8), st.one_of(numbers, texts, anything))
LEVEL = Argument(always("read_committed", "read_uncommitted", "snapshot"))
AS_OF = Argument(always(None, 1, 2), st.one_of(numbers, anything))
OFFSETS = Argument(mapped(hv.PLACES, always(0, 1)), by_place(always(0, 1), hv.hostile_offsets))
SELECTION = Argument(always(None, ["x"], ["x", "_offset"]), st.one_of(listed(texts), anything))
FILTERS = Argument(
    always(None, [("x", ">", 1)], [[("y", "in", ["a"])], [("x", "==", 0)]]),
    st.one_of(listed(paired(lambda *term: term, texts, texts, anything)), listed(listed(texts)), anything),
)
BOUNDS = Argument(
    always(None, {0: 0}, "earliest", "latest"),
    st.one_of(mapped(always(0, 1), numbers), mapped(numbers, always(0)), texts, anything),
)
TIMEOUT = Argument(always(0, 1, 5.5), st.one_of(numbers, anything))
CONFIG = Argument(
    always({}, {"retention.ms": "86400000"}, {"cleanup.policy": "compact,delete"}),
    st.one_of(
        mapped(
            always(
                "retention.ms",
                "retention.bytes",
                "max.message.bytes",
                "segment.bytes",
                "cleanup.policy",
                "delete.retention.ms",
                "min.compaction.lag.ms",
                "compression.type",
                "message.timestamp.type",
            ),
            st.one_of(numbers, texts, anything),
        ),
        mapped(texts, always("1")),
        anything,
    ),
)
HEADERS = Argument(
    always(None, [("a", b"1")], [("a", None)]),
    st.one_of(listed(paired(hv.pair, texts, anything)), listed(paired(hv.pair, anything, always(b"1"))), anything),
)
STATES = Argument(always(None, ["EMPTY"], ["Empty"]), st.one_of(listed(st.one_of(texts, anything)), anything))
SEND: Mapping[str, Argument] = {
    "topic": TOPIC,
    "value": Argument(always(None, b"v"), st.one_of(texts, anything)),
    "key": Argument(always(None, b"k"), st.one_of(texts, anything)),
    "headers": HEADERS,
    "row": Argument(always(None, {"x": 1, "y": "a"}, {"x": None, "y": None}), hv.rows),
    "rows": Argument(made("a table", lambda: pa.table({"x": [1], "y": ["a"]}, COLUMNS)) | always(None), hv.tables),
    "partition": Argument(always(None, 0, 1), st.one_of(numbers, anything)),
    "timestamp_ms": Argument(always(None, 0, 1_700_000_000_000), st.one_of(numbers, anything)),
    "on_delivery": Argument(always(None)),
}
GROUP = Argument(always("g", "other"), st.one_of(texts, anything))
NONE: Mapping[str, Argument] = {}
# What would be waited for is no more hostile than it is long.
_NO_TIMES = st.sampled_from(hv.plain(-1, 2**63, 10**40, -0.5, math.nan, math.inf, True, "1", None, []))
WAIT = Argument(always(0, 1), _NO_TIMES)
CONSUMER = Argument(made("a consumer", lambda: None), made("a consumer", lambda: None))

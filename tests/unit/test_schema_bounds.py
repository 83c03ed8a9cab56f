"""Columns that readers of Delta tables could not open are refused: control characters in names, and deep types."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from txntable.errors import SchemaMismatchError
from txntable.format.schema import DEEPEST_TYPE, check_topic_schema


@pytest.mark.parametrize("character", ["\0", "\x1b", "\x7f", "\x85", "\u202e", "\u2028"])
@pytest.mark.parametrize("nested", [False, True])
def test_column_with_a_control_character_in_its_name_is_refused(character: str, nested: bool) -> None:
    field = pa.field(f"a{character}b", pa.int64())
    schema = pa.schema([pa.field("outer", pa.list_(pa.struct([field]))) if nested else field])

    with pytest.raises(SchemaMismatchError, match="control character"):
        check_topic_schema(schema)


WRAPPERS: dict[str, Callable[[pa.DataType], pa.DataType]] = {
    "structs": lambda inner: pa.struct([pa.field("a", inner)]),
    "lists": pa.list_,
    "maps": lambda inner: pa.map_(pa.string(), inner),
    "keys of maps": lambda inner: pa.map_(pa.struct([pa.field("a", pa.int64())]), inner),
}


def nested_type(levels: int, *wrap: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    kind = pa.int64()
    for level in range(levels):
        kind = wrap[level % len(wrap)](kind)
    return kind


@pytest.mark.parametrize("wrapper", WRAPPERS.values(), ids=list(WRAPPERS))
@pytest.mark.parametrize("levels", [DEEPEST_TYPE + 1, 60, 150])
def test_type_that_is_nested_too_deep_is_refused(wrapper: Callable[[pa.DataType], pa.DataType], levels: int) -> None:
    with pytest.raises(SchemaMismatchError, match="nested too deep"):
        check_topic_schema(pa.schema([("a", nested_type(levels, wrapper))]))

"""Numbers in partition values: all of 64 bits that are not negative, and nothing else."""

from __future__ import annotations

import pyarrow as pa
import pytest

from txntable.errors import DamagedDataError
from txntable.format.partition_values import check_all_columns, check_columns, whole_number, whole_numbers
from txntable.log.actions import Add
from txntable.log.damage import reading
from txntable.log.table_state import LiveFiles

LARGEST = 2**63 - 1


@pytest.mark.parametrize("number", [0, 7, 10**18, LARGEST])
def test_number_of_64_bits_is_read(number: int) -> None:
    assert whole_number(str(number)) == number
    read = whole_numbers(pa.array([str(number), None]), pa.chunked_array([["a", "b"]]), "_last_offset")
    assert read.to_pylist() == [number, None]


@pytest.mark.parametrize("text", ["", "-1", "1.0", " 1", "1_000", "١", str(LARGEST + 1), "9" * 30])
def test_what_is_no_such_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no whole number"):
        whole_number(text)
    with pytest.raises(DamagedDataError), reading("a row"):
        whole_numbers(pa.array([text]), pa.chunked_array([["a"]]), "_last_offset")


@pytest.mark.parametrize("none", [None])
def test_null_is_no_number(none: None) -> None:
    with pytest.raises(ValueError, match="no whole number"):
        whole_number(none)


NAMES = frozenset({"a", "b"})


def rows_of(*values: dict[str, str | None]) -> pa.Table:
    files = LiveFiles()
    for number, one in enumerate(values):
        files.put(Add(f"f{number}", one, 1, 1))
    return files.to_table()


def test_rows_with_all_columns_and_no_other_are_taken_in_any_order() -> None:
    fine = rows_of({"a": None, "b": "1"}, {"b": None, "a": "x"})

    check_all_columns(fine, NAMES)
    check_all_columns(fine.slice(1), NAMES)
    check_all_columns(rows_of(), NAMES)


@pytest.mark.parametrize(
    ("values", "columns"),
    [({"a": "1"}, "b"), ({"a": "1", "b": None, "c": None}, "c"), ({"a": "1", "c": "2"}, "b', 'c"), ({}, "a', 'b")],
)
def test_row_with_a_column_too_many_or_without_one_is_named(values: dict[str, str | None], columns: str) -> None:
    fine: dict[str, str | None] = {"a": None, "b": None}
    rows = rows_of(fine, fine, values, fine, values)
    refused = rf"other partition columns.* path=f2 columns=\['{columns}'\]"

    with pytest.raises(DamagedDataError, match=refused):
        check_columns(values, NAMES, "f2")
    with pytest.raises(DamagedDataError, match=refused):
        check_all_columns(rows, NAMES)
    with pytest.raises(DamagedDataError, match=refused):
        check_all_columns(rows.slice(1, 2), NAMES)
    check_all_columns(rows.slice(0, 2), NAMES)

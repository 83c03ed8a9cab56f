"""Numbers in partition values: all of 64 bits that are not negative, and nothing else."""

from __future__ import annotations

import pyarrow as pa
import pytest

from txntable.errors import DamagedDataError
from txntable.format.partition_values import whole_number, whole_numbers
from txntable.log.damage import reading

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

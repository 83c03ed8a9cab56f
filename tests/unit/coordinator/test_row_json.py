"""What the rows' JSON accepts and refuses."""

from __future__ import annotations

import pytest

from txntable.coordinator.errors import DamagedDataError, InvalidRequestError, UnsupportedFormatError
from txntable.coordinator.row_json import (
    check_name,
    check_number,
    check_text,
    decode_object,
    decode_row,
    encode_key,
    encode_row,
)


def test_row_reads_as_written_without_what_is_none() -> None:
    text = encode_row({"name": "é\n", "count": 2**62, "rest": None})

    assert text == '{"v":1,"name":"é\\n","count":4611686018427387904}'
    assert decode_row(text, "row", {"name": str}, {"count": int, "rest": int}) == {
        "name": "é\n",
        "count": 2**62,
        "rest": None,
    }


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "null", '{"name":"x"}', '{"v":1}', '{"v":1,"name":1}', '{"v":1,"name":null}', '{"v":1,"name":"x"'],
)
def test_row_is_damage_when_it_is_cut_or_lacks_a_field(text: str) -> None:
    with pytest.raises(DamagedDataError):
        decode_row(text, "row", {"name": str}, {})


def test_row_is_damage_when_a_boolean_stands_for_a_number() -> None:
    with pytest.raises(DamagedDataError, match="field=count value=True"):
        decode_row('{"v":1,"count":true}', "row", {"count": int}, {})


@pytest.mark.parametrize(
    "text", ['{"v":2,"name":"x"}', '{"v":true,"name":"x"}', '{"v":"1"}', '{"v":1,"name":"x","y":1}']
)
def test_row_is_refused_when_its_version_or_a_field_is_unknown(text: str) -> None:
    with pytest.raises(UnsupportedFormatError, match="use a newer version"):
        decode_row(text, "row", {"name": str}, {})


def test_object_is_damage_when_it_is_a_list() -> None:
    with pytest.raises(DamagedDataError):
        decode_object([], "row", {}, {})


def test_key_is_compact_json_that_keeps_letters_as_they_are() -> None:
    assert encode_key("é/tl", "2026-11-20") == '["é/tl","2026-11-20"]'


def test_name_is_returned_when_it_is_valid_unicode() -> None:
    assert check_name("naïve 🙂/=%", "a group") == "naïve 🙂/=%"


@pytest.mark.parametrize("name", ["", "\ud800", None, 3])
def test_name_is_refused_when_empty_or_no_unicode(name: object) -> None:
    with pytest.raises(InvalidRequestError, match="a group must be"):
        check_name(name, "a group")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "naïve 🙂\0"])
def test_text_is_returned_when_it_is_valid_unicode_or_empty(text: str) -> None:
    assert check_text(text, "metadata") == text


@pytest.mark.parametrize("text", ["\udfff", None, 3, b"x"])
def test_text_is_refused_when_it_can_not_be_stored(text: object) -> None:
    with pytest.raises(InvalidRequestError, match="metadata must be"):
        check_text(text, "metadata")


@pytest.mark.parametrize(("value", "lowest"), [(0, 0), (2**63 - 1, 0), (-1, -1)])
def test_number_is_returned_when_it_can_be_stored(value: int, lowest: int) -> None:
    assert check_number(value, "an offset", lowest) == value


@pytest.mark.parametrize("value", [-1, 2**63, True, 1.0, "1", None], ids=str)
def test_number_is_refused_when_it_is_out_of_bounds_or_no_integer(value: object) -> None:
    with pytest.raises(InvalidRequestError, match="an offset is an integer from 0 to"):
        check_number(value, "an offset")

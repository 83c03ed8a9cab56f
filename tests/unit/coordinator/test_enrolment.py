"""Enrolled topics and the spelling of their partitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txntable.coordinator.enrolment import (
    EnrolledTopic,
    decode_partitions,
    decode_topics,
    encode_partitions,
    encode_topics,
    enrolled_union,
    missing_partitions,
)
from txntable.coordinator.errors import DamagedDataError, InvalidRequestError, UnsupportedFormatError

_FLIGHTS = {"f": EnrolledTopic("flights", frozenset({0, 1}))}


@pytest.mark.parametrize(
    ("partitions", "text"),
    [({0}, "0"), (set(range(100)) | {101}, "0-99,101"), ({3, 4, 9}, "3-4,9"), ({5, 7}, "5,7")],
)
def test_partitions_are_spelt_as_ranges(partitions: set[int], text: str) -> None:
    assert encode_partitions(partitions) == text
    assert decode_partitions(text) == partitions


@given(st.sets(st.integers(0, 60), min_size=1))
def test_partitions_read_as_written_whatever_they_are(partitions: set[int]) -> None:
    assert decode_partitions(encode_partitions(partitions)) == partitions


@pytest.mark.parametrize("text", ["", "1,0", "0,1", "0-0", "2-1", "00", "-1", "1-", "0-1,1", " 1", "1,", "\u0661", "a"])
def test_partitions_are_damage_when_misspelt(text: str) -> None:
    with pytest.raises(DamagedDataError, match="misspelt"):
        decode_partitions(text)


@pytest.mark.parametrize(("name", "partitions"), [("", {0}), ("t", set()), ("t", {-1, 0})])
def test_topic_is_refused_without_name_or_partitions(name: str, partitions: set[int]) -> None:
    with pytest.raises(InvalidRequestError):
        EnrolledTopic(name, frozenset(partitions))


def test_union_adds_partitions_and_topics_and_leaves_its_arguments() -> None:
    more = {"f": EnrolledTopic("flights", frozenset({1, 2})), "d": EnrolledTopic("delays", frozenset({0}))}

    union = enrolled_union(_FLIGHTS, more)

    assert union == {"f": EnrolledTopic("flights", frozenset({0, 1, 2})), "d": more["d"]}
    assert _FLIGHTS["f"].partitions == {0, 1}


@pytest.mark.parametrize(
    ("topic_id", "partitions", "missing"), [("f", [1, 0], []), ("f", [3, 0, 2], [2, 3]), ("other", [0], [0])]
)
def test_missing_partitions_are_those_not_enrolled(topic_id: str, partitions: list[int], missing: list[int]) -> None:
    assert missing_partitions(_FLIGHTS, topic_id, partitions) == missing


def test_topics_are_stored_by_id_in_order_and_read_back() -> None:
    topics = {"f" * 32: _FLIGHTS["f"], "d" * 32: EnrolledTopic("delays", frozenset({0}))}

    stored = encode_topics(topics)

    assert list(stored.items()) == [
        ("d" * 32, {"name": "delays", "partitions": "0"}),
        ("f" * 32, {"name": "flights", "partitions": "0-1"}),
    ]
    assert decode_topics(stored, "row") == topics


def test_topics_are_refused_when_a_field_is_unknown() -> None:
    with pytest.raises(UnsupportedFormatError):
        decode_topics({"f": {"name": "flights", "partitions": "0", "more": 1}}, "row")

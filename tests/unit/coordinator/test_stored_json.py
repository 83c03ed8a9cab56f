"""Stored JSON that readers could take for two things, and rows that name what cannot be."""

from __future__ import annotations

import pytest

from txntable.coordinator.enrolment import decode_partitions, decode_topics
from txntable.coordinator.errors import LONGEST_FACT, DamagedDataError
from txntable.coordinator.group import GroupRow
from txntable.coordinator.group_offsets import OffsetRow
from txntable.coordinator.manifest import decode_segments
from txntable.coordinator.row_json import LARGEST_NUMBER, decode_row, parse_json
from txntable.coordinator.topic_name import is_topic_name

NO_TOPICS = ["", ".", "..", "../x", "a/b", "s3:", "%2e%2e", "a b", "é", "x" * 250]


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":1}',
        '[{"a":{"b":1,"b":2}}]',
        "NaN",
        '{"a":Infinity}',
        "-Infinity",
        r'"\ud800"',
        r'{"\udfff":1}',
        "[" * 100_000,
        '{"a":' * 100_000,
        "1" * 10_000,
        "{} {}",
        "",
    ],
    ids=lambda text: text[:16],
)
def test_json_is_refused_when_readers_differ_about_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"twice|no number|surrogates|nested|Expecting|Extra data|digits"):
        parse_json(text)


def test_json_is_read_with_escaped_letters_of_any_plane() -> None:
    assert parse_json(r'{"a":["\u00e9","\ud83d\ude42",1.5,null]}') == {"a": ["é", "🙂", 1.5, None]}


@pytest.mark.parametrize("number", [LARGEST_NUMBER + 1, -LARGEST_NUMBER - 1, 10**4_000, 1.5, '"1"', [], None])
def test_row_is_damage_when_a_number_is_none_of_64_bits(number: object) -> None:
    with pytest.raises(DamagedDataError, match="field=count"):
        decode_row(f'{{"v":1,"count":{number}}}'.replace("None", "null"), "row", {"count": int}, {})


def test_message_is_short_whatever_is_stored() -> None:
    text = f'{{"v":1,"name":{{"x":"{"y" * 10_000_000}"}}}}'

    with pytest.raises(DamagedDataError) as refusal:
        decode_row(text, "row", {"name": str}, {})

    assert len(str(refusal.value)) < 300
    assert len(str(DamagedDataError("what happened", fact="x" * 10_000_000))) < LONGEST_FACT + 100


@pytest.mark.parametrize("name", NO_TOPICS)
def test_row_is_damage_when_it_names_a_topic_that_can_not_be(name: str) -> None:
    assert not is_topic_name(name)
    offset = f'{{"v":1,"group":"g","topic":"{name}","partition":0,"position":1}}'
    group = (
        f'{{"v":1,"group":"g","generation":1,"state":"EMPTY","topics":{{"{name}":{{"topic_id":"t","partitions":1}}}}'
    )

    with pytest.raises(DamagedDataError, match="topic"):
        decode_topics({"0" * 32: {"name": name, "partitions": "0"}}, "row")
    with pytest.raises(DamagedDataError, match="topic"):
        OffsetRow.from_json(offset)
    with pytest.raises(DamagedDataError, match="topic"):
        GroupRow.from_json(f'{group},"position":1}}')


@pytest.mark.parametrize("topic_id", ["", "t", "A" * 32, "a" * 31, "a" * 33, f"{'a' * 32}\\n"])
def test_row_is_damage_when_it_names_a_topic_id_that_can_not_be(topic_id: str) -> None:
    group = f'"generation":1,"state":"EMPTY","topics":{{"t":{{"topic_id":"{topic_id}","partitions":1}}}},"position":1'
    committed = f'"committed":{{"offset":1,"metadata":"","topic_id":"{topic_id}","request":1,"position":0}}'
    pending = '"pending":[{"transactional_id":"e","producer_id":1,"epoch":0,"offset":1,"metadata":"","request":1,'
    offset = '{"v":1,"group":"g","topic":"t","partition":0,"position":1'

    with pytest.raises(DamagedDataError, match="topic"):
        decode_topics({topic_id: {"name": "t", "partitions": "0"}}, "row")
    with pytest.raises(DamagedDataError, match="without an id"):
        decode_segments({topic_id: [{}]}, "row")
    with pytest.raises(DamagedDataError, match="topic"):
        GroupRow.from_json(f'{{"v":1,"group":"g",{group}}}')
    for what in (committed, f'{pending}"topic_id":"{topic_id}"}}]') if topic_id else ():
        with pytest.raises(DamagedDataError, match="topic id"):
            OffsetRow.from_json(f"{offset},{what}}}")


@pytest.mark.parametrize("partitions", [-1, 100_001, 10**12])
def test_group_is_damage_when_a_topic_has_more_partitions_than_one_can_have(partitions: int) -> None:
    topics = f'{{"t":{{"topic_id":"{"a" * 32}","partitions":{partitions}}}}}'

    with pytest.raises(DamagedDataError, match="partitions="):
        GroupRow.from_json(f'{{"v":1,"group":"g","generation":1,"state":"EMPTY","topics":{topics},"position":1}}')


@pytest.mark.parametrize(
    "text",
    [
        "0-999999999999",
        "0-100000",
        "100000",
        "5-2",
        "0-99999," * 100_000 + "0",
        "0-99998,99999-0," * 50_000 + "0-99998",
        "9" * 1_000_000,
    ],
    ids=lambda text: text[:16],
)
def test_partitions_are_damage_before_they_are_counted_out(text: str) -> None:
    with pytest.raises(DamagedDataError, match="misspelt") as refusal:
        decode_partitions(text)

    assert len(str(refusal.value)) < 200

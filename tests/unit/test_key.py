"""Key bytes and partitions: Kafka's, one by one and in bulk."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from txntable.errors import InvalidRequestError, SchemaMismatchError
from txntable.format.key import check_key, key_bytes, partition_of, partitions_of
from txntable.format.murmur2 import murmur2, murmur2_many

VECTORS = json.loads((Path(__file__).parents[1] / "golden" / "kafka_vectors.json").read_text())["murmur2"]
UTC = pa.timestamp("us", tz="UTC")
NOON = dt.datetime(2013, 1, 1, 12, 30, 0, 250_001, tzinfo=dt.UTC)

# type, value, key bytes in hex, partition of 12; also in PROTOCOL.md §9
GOLDEN_KEYS = [
    (pa.string(), "UA", "5541", 10),
    (pa.string(), "日本語", "e697a5e69cace8aa9e", 10),
    (pa.string(), "", "", 9),
    (pa.binary(), b"\x00\xff", "00ff", 1),
    (pa.bool_(), True, "01", 9),
    (pa.bool_(), False, "00", 8),
    (pa.int8(), -2, "fe", 0),
    (pa.int16(), 300, "012c", 5),
    (pa.int32(), 1, "00000001", 0),
    (pa.int32(), -1, "ffffffff", 5),
    (pa.int64(), 1, "0000000000000001", 0),
    (pa.int64(), -(2**63), "8000000000000000", 4),
    (pa.date32(), dt.date(2013, 1, 1), "00003d5a", 2),
    (pa.date32(), dt.date(1969, 12, 31), "ffffffff", 5),
    (UTC, NOON, "0004d23949d11291", 9),
    (pa.decimal128(9, 2), Decimal("0.00"), "00", 8),
    (pa.decimal128(9, 2), Decimal("1.27"), "7f", 0),
    (pa.decimal128(9, 2), Decimal("1.28"), "0080", 1),
    (pa.decimal128(9, 2), Decimal("-1.28"), "80", 8),
    (pa.decimal128(38, 0), Decimal(-(10**37)), "f87a11ef2a25b926ff0bc96000000000", 6),
]

KEY_VALUES: list[tuple[pa.DataType, st.SearchStrategy]] = [
    (pa.string(), st.text(max_size=20)),
    (pa.large_string(), st.text(max_size=20)),
    (pa.binary(), st.binary(max_size=20)),
    (pa.large_binary(), st.binary(max_size=40)),
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.date32(), st.dates()),
    (UTC, st.datetimes(timezones=st.just(dt.UTC))),
    (pa.decimal128(38, 4), st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: scaled(n, 4))),
    (pa.decimal128(7, 0), st.integers(-(10**7) + 1, 10**7 - 1).map(lambda n: scaled(n, 0))),
]


def scaled(unscaled: int, scale: int) -> Decimal:
    return Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))


def scalar_partitions(columns: list[pa.Array], partitions: int) -> list[int | None]:
    types = [column.type for column in columns]
    keys = [key_bytes(values, types) for values in zip(*(column.to_pylist() for column in columns), strict=True)]
    return [None if key is None else partition_of(key, partitions) for key in keys]


def batch_of(columns: list[pa.Array]) -> tuple[pa.RecordBatch, list[str]]:
    names = [f"k{index}" for index in range(len(columns))]
    return pa.RecordBatch.from_arrays(columns, names=names), names


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["hex"][:24] or "empty")
def test_kafkas_own_hash_and_partition_come_out_for_its_vectors(vector):
    key = bytes.fromhex(vector["hex"])

    assert java_murmur2(key) == vector["murmur2"]
    assert murmur2(key) == vector["murmur2"]
    for count, partition in vector["partition"].items():
        assert partition_of(key, int(count)) == partition


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 12, 50])
def test_kafkas_own_partitions_come_out_in_bulk_for_its_vectors(partitions):
    keys = pa.array([bytes.fromhex(vector["hex"]) for vector in VECTORS], pa.binary())

    chosen = partitions_of(pa.RecordBatch.from_arrays([keys], names=["key"]), ["key"], partitions)

    assert chosen.to_pylist() == [vector["partition"][str(partitions)] for vector in VECTORS]


def java_murmur2(data: bytes) -> int:
    """Kafka's algorithm in its plain form: every step on an unsigned 32-bit number, the tail byte by byte."""
    length, mask = len(data), 0xFFFFFFFF
    h = (0x9747B28C ^ length) & mask
    for i in range(length // 4):
        k = data[4 * i] | data[4 * i + 1] << 8 | data[4 * i + 2] << 16 | data[4 * i + 3] << 24
        k = (k * 0x5BD1E995) & mask
        k = ((k ^ (k >> 24)) * 0x5BD1E995) & mask
        h = ((h * 0x5BD1E995) & mask) ^ k
    tail = length - length % 4
    if length % 4 == 3:
        h ^= data[tail + 2] << 16
    if length % 4 >= 2:
        h ^= data[tail + 1] << 8
    if length % 4 >= 1:
        h = ((h ^ data[tail]) * 0x5BD1E995) & mask
    h = ((h ^ (h >> 13)) * 0x5BD1E995) & mask
    h ^= h >> 15
    return h - 2**32 if h >= 2**31 else h


@given(st.binary(max_size=64))
def test_hash_of_any_key_is_the_plain_algorithms(key):
    assert murmur2(key) == java_murmur2(key)


@given(st.lists(st.binary(max_size=40), max_size=20), st.binary(max_size=5), st.binary(max_size=5))
def test_hashes_in_bulk_are_the_plain_algorithms_wherever_the_keys_lie(keys, before, between):
    data, starts = bytearray(before), []
    for key in keys:
        starts.append(len(data))
        data += key + between
    lengths = [len(key) for key in keys]

    hashes = murmur2_many(np.frombuffer(bytes(data), np.uint8), np.array(starts, np.int64), np.array(lengths, np.int64))

    assert hashes.tolist() == [java_murmur2(key) for key in keys]


@pytest.mark.parametrize(("kind", "value", "expected", "partition"), GOLDEN_KEYS, ids=str)
def test_key_bytes_never_change_for_each_type(kind, value, expected, partition):
    key = key_bytes([value], [kind])

    assert key is not None
    assert key.hex() == expected
    assert partition_of(key, 12) == partition


def test_key_bytes_hold_lengths_and_nulls_for_several_columns():
    types = [pa.string(), pa.int32(), pa.string()]

    assert key_bytes(["UA", None, ""], types) == b"\x00\x00\x00\x02UA" + b"\xff\xff\xff\xff" + b"\x00\x00\x00\x00"
    assert key_bytes([None, None, None], types) == b"\xff" * 12


def test_a_record_is_unkeyed_when_its_only_key_column_is_null():
    batch, names = batch_of([pa.array(["UA", None])])

    assert key_bytes([None], [pa.string()]) is None
    assert partitions_of(batch, names, 12).to_pylist() == [10, None]


@pytest.mark.parametrize(("kind", "values"), KEY_VALUES, ids=[str(kind) for kind, _ in KEY_VALUES])
@given(data=st.data())
def test_partitions_in_bulk_equal_those_one_by_one_for_one_column(kind, values, data):
    column = pa.array(data.draw(st.lists(st.none() | values, max_size=30)), kind)
    skipped = data.draw(st.integers(0, 3))
    sliced = column.slice(min(skipped, len(column)))
    partitions = data.draw(st.integers(1, 100_000))

    batch, names = batch_of([sliced])

    assert partitions_of(batch, names, partitions).to_pylist() == scalar_partitions([sliced], partitions)


@given(data=st.data())
def test_partitions_in_bulk_equal_those_one_by_one_for_several_columns(data):
    picked = data.draw(st.lists(st.sampled_from(KEY_VALUES), min_size=2, max_size=4))
    rows = data.draw(st.integers(0, 12))
    columns = [
        pa.array(data.draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), kind) for kind, values in picked
    ]

    batch, names = batch_of(columns)

    assert partitions_of(batch, names, 50).to_pylist() == scalar_partitions(columns, 50)


def test_partitions_in_bulk_equal_those_one_by_one_when_keys_repeat():
    carriers = ["UA", "AA", None, "日本", ""] * 500
    column = pa.array(carriers)

    plain, names = batch_of([column])
    dictionary, _ = batch_of([column.dictionary_encode()])

    expected = scalar_partitions([column], 50)
    assert partitions_of(plain, names, 50).to_pylist() == expected
    assert partitions_of(dictionary, names, 50).to_pylist() == expected


@pytest.mark.parametrize(
    "kind",
    [
        pa.float32(),
        pa.float64(),
        pa.timestamp("us"),
        pa.timestamp("ns", tz="UTC"),
        pa.list_(pa.string()),
        pa.struct([pa.field("a", pa.string())]),
        pa.map_(pa.string(), pa.string()),
        pa.uint64(),
        pa.decimal256(50, 2),
    ],
    ids=str,
)
def test_a_key_is_refused_when_its_type_has_no_key_bytes(kind):
    schema = pa.schema([pa.field("amount", kind)])

    with pytest.raises(SchemaMismatchError) as refused:
        check_key(schema, ["amount"])

    assert refused.value.facts["column"] == "amount"
    assert refused.value.facts["found"] == str(kind)


@pytest.mark.parametrize("key", [["b"], ["a", "a"]], ids=["missing", "named twice"])
def test_a_key_is_refused_when_its_columns_are_not_those_of_the_topic(key):
    with pytest.raises(InvalidRequestError, match="key column"):
        check_key(pa.schema([pa.field("a", pa.string())]), key)


@pytest.mark.parametrize("kind", [kind for kind, _ in KEY_VALUES], ids=str)
def test_a_key_is_accepted_when_its_type_has_key_bytes(kind):
    check_key(pa.schema([pa.field("a", kind), pa.field("b", pa.float64())]), ["a"])

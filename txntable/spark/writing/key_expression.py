"""The partition of a record's key as an expression of Spark: no row goes to Python for it (PROTOCOL.md §9).

Owns how key bytes and Kafka's murmur2 are put together from functions of Spark and of the libraries that it brings.
What :func:`txntable.format.key.partitions_of` says is the rule; the first key of each file is held against it before
the file is registered.  Classic sessions only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions

from txntable.format.topic import TopicSettings
from txntable.spark.writing.distribution import TASK_COLUMN, quoted
from txntable.spark.writing.java_expressions import JavaExpressions

_SEED, _MULTIPLIER, _MASK = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF
_WORD_BYTES, _BYTE_BITS = 4, 8
# Times the multiplier it is 1, modulo 2^32.
_INVERSE = pow(_MULTIPLIER, -1, 1 << 32)
# murmur2 of words; of what is left behind the last word it takes the bytes in another order than Kafka.
_MURMUR = "com.clearspring.analytics.hash.MurmurHash"
_NUMBERS = "org.apache.spark.sql.catalyst.util.NumberConverter"
_BYTES, _STATE = "_key_bytes", "_key_state"
_TASK = "org.apache.spark.TaskContext"
_NULL = bytes([0xFF] * _WORD_BYTES)


def placed_by_key(dataframe: DataFrame, settings: TopicSettings) -> DataFrame:
    """Return a DataFrame whose tasks each have one partition: the task's number is that of its records' partition.

    Parameters
    ----------
    dataframe : DataFrame
        Of a classic session, with the topic's columns and types.
    settings : TopicSettings
        The topic; it has a key.
    """
    width = _width(settings)
    if width is not None:
        return dataframe.repartitionById(settings.partitions, _by_number(dataframe, settings, width))
    # Records without a key stay spread, by the task that they come from: a repeated task must send them the same way.
    unkeyed = functions.pmod(functions.spark_partition_id(), functions.lit(settings.partitions))
    placed = with_partition(dataframe, settings, TASK_COLUMN)
    placed = placed.withColumn(TASK_COLUMN, functions.coalesce(functions.col(TASK_COLUMN), unkeyed))
    return placed.repartitionById(settings.partitions, functions.col(TASK_COLUMN))


def _width(settings: TopicSettings) -> int | None:
    """Return how many bytes all keys have, where that is so, and they are whole words."""
    kind = settings.schema.field(settings.key[0]).type
    return int(kind.bit_width) // _BYTE_BITS if len(settings.key) == 1 and _is_of_words(kind) else None


def _by_number(dataframe: DataFrame, settings: TopicSettings, width: int) -> Column:
    """Return the partition of a key of so many bytes.

    One expression, of which the shuffle takes the partition as each row passes: no column more goes through it.
    """
    calls = _Calls(dataframe)
    (name,) = settings.key
    key = calls.key_bytes(name, settings.schema.field(name).type, dataframe.columns)
    state = calls.hashed(key, functions.lit(width), functions.lit(_signed(_SEED)))
    partitions = functions.lit(settings.partitions)
    chosen = state.bitwiseAND(functions.lit(_POSITIVE)) % partitions
    # Records without a key stay spread, as below; Spark's own function of this would add a column.
    spread = functions.pmod(calls.task(), partitions)
    return functions.coalesce(chosen, spread).cast("int")


def with_partition(dataframe: DataFrame, settings: TopicSettings, name: str) -> DataFrame:
    """Return a DataFrame with a column more: the partition of each record's key, null where it has none.

    Parameters
    ----------
    dataframe : DataFrame
        Of a classic session; its columns fit the topic, and are of the topic's types.
    settings : TopicSettings
        The topic; it has a key.
    name : str
        Of the new column.
    """
    calls = _Calls(dataframe)
    given = dataframe.columns
    pieces = [calls.key_bytes(column, settings.schema.field(column).type, given) for column in settings.key]
    key = pieces[0] if len(pieces) == 1 else functions.concat(*map(calls.with_length, pieces))
    # In steps: as one expression, what is used twice would be computed twice at each of them.
    frame = dataframe.withColumn(_BYTES, key)
    length = functions.octet_length(functions.col(_BYTES))
    words = length.bitwiseAND(functions.lit(-_WORD_BYTES))
    # Its own seed and length are mixed in as those of the words alone.
    seed = functions.lit(_signed(_SEED)).bitwiseXOR(length).bitwiseXOR(words)
    frame = frame.withColumn(_STATE, calls.hashed(functions.col(_BYTES), words, seed))
    if not all(_is_of_words(settings.schema.field(column).type) for column in settings.key):
        frame = _with_rest(frame, calls, length, words)
    chosen = functions.col(_STATE).bitwiseAND(functions.lit(_POSITIVE)) % functions.lit(settings.partitions)
    return frame.withColumn(name, chosen.cast("int")).drop(_BYTES, _STATE)


def _is_of_words(kind: pa.DataType) -> bool:
    """Return whether all key bytes of a type are whole words."""
    return bool(
        pa.types.is_int32(kind) or pa.types.is_int64(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind)
    )


def _with_rest(frame: DataFrame, calls: _Calls, length: Column, words: Column) -> DataFrame:
    """Return the frame with the bytes behind the last word mixed in: the end of the hash is undone, and done again."""
    state = functions.col(_STATE)
    steps: Sequence[Callable[[], Column]] = (
        lambda: state.bitwiseXOR(_down(state, 15)).bitwiseXOR(_down(state, 30)),
        lambda: _times(state, _INVERSE),
        lambda: state.bitwiseXOR(_down(state, 13)).bitwiseXOR(_down(state, 26)),
        lambda: functions.when(
            length > words, _times(state.bitwiseXOR(calls.rest(functions.col(_BYTES), length, words)), _MULTIPLIER)
        ).otherwise(state),
        lambda: state.bitwiseXOR(_down(state, 13)),
        lambda: _times(state, _MULTIPLIER),
        lambda: state.bitwiseXOR(_down(state, 15)),
    )
    for step in steps:
        frame = frame.withColumn(_STATE, step())
    return frame


def _down(state: Column, bits: int) -> Column:
    return functions.shiftrightunsigned(state, bits)


def _times(state: Column, factor: int) -> Column:
    """Return a product modulo 2^32, in steps that 64 bits hold: a session may refuse what overflows."""
    half = 16
    low = state * functions.lit(factor & ((1 << half) - 1))
    high = functions.shiftleft((state * functions.lit(factor >> half)).bitwiseAND(functions.lit((1 << half) - 1)), half)
    return (low + high).bitwiseAND(functions.lit(_MASK))


def _signed(number: int) -> int:
    return number - (1 << 32) if number >> 31 else number


class _Calls:
    """What is taken from libraries, as columns."""

    def __init__(self, dataframe: DataFrame) -> None:
        self._java = JavaExpressions(dataframe.sparkSession)

    def hashed(self, key: Column, length: Column, seed: Column) -> Column:
        """Return murmur2 of so many bytes, as a number without a sign."""
        found = self._java.static(_MURMUR, "IntegerType", "hash", key, length, seed)
        return found.cast("bigint").bitwiseAND(functions.lit(_MASK))

    def task(self) -> Column:
        """Return which task of its stage computes this."""
        return self._java.invoke(self._java.static(_TASK, _TASK, "get"), "IntegerType", "partitionId")

    def rest(self, key: Column, length: Column, words: Column) -> Column:
        """Return the bytes behind the last word, as a number without a sign."""
        buffer = self._java.static("java.nio.ByteBuffer", "java.nio.ByteBuffer", "wrap", key)

        def byte(place: int) -> Column:
            found = self._java.invoke(buffer, "ByteType", "get", words + functions.lit(place))
            value = found.cast("bigint").bitwiseAND(functions.lit(0xFF))
            there = functions.when(length > words + functions.lit(place), value).otherwise(functions.lit(0))
            return functions.shiftleft(there, place * _BYTE_BITS)

        return byte(0).bitwiseOR(byte(1)).bitwiseOR(byte(2))

    def key_bytes(self, name: str, kind: pa.DataType, given: Sequence[str]) -> Column:
        """Return a column's key bytes; null where it is null, or was left out."""
        if name not in given:
            return functions.lit(None).cast("binary")
        column = functions.col(quoted(name))
        if pa.types.is_string(kind):
            return column.cast("string").cast("binary")
        if pa.types.is_binary(kind):
            return column
        if pa.types.is_boolean(kind):
            return functions.when(column, functions.lit(b"\x01")).when(~column, functions.lit(b"\x00"))
        if pa.types.is_decimal(kind):
            return self._decimal_bytes(column)
        numbers: Mapping[Callable[[pa.DataType], bool], Callable[[Column], Column]] = {
            pa.types.is_date32: functions.unix_date,
            pa.types.is_timestamp: functions.unix_micros,
        }
        number = next((convert for is_of, convert in numbers.items() if is_of(kind)), lambda same: same)
        return self._big_endian(number(column))

    def with_length(self, piece: Column) -> Column:
        """Return bytes behind their length; of null, the length that says so."""
        length = self._big_endian(functions.octet_length(piece))
        return functions.coalesce(functions.concat(length, piece), functions.lit(_NULL))

    def _big_endian(self, number: Column) -> Column:
        # Spark's cast to binary, which a session may refuse.
        return self._java.static(_NUMBERS, "BinaryType", "toBinary", number)

    def _decimal_bytes(self, column: Column) -> Column:
        unscaled = self._java.invoke(
            self._java.invoke(column, "java.math.BigDecimal", "toJavaBigDecimal"),
            "java.math.BigInteger",
            "unscaledValue",
        )
        return self._java.invoke(unscaled, "BinaryType", "toByteArray")

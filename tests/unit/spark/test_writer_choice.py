"""Who writes a DataFrame's segments, and why: each reason alone, and what is told to Spark's writer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from txntable.format.topic import TopicSettings
from txntable.segments.segment import SegmentPlan
from txntable.spark.writing.distribution import DistributionMode
from txntable.spark.writing.spark_file_settings import hadoop_settings, records_per_file, write_options
from txntable.spark.writing.writer_choice import (
    SMALLEST_BYTES,
    SWITCH,
    Question,
    SegmentsBy,
    SessionFacts,
    Wish,
    WriterChoice,
    refusal,
    refusal_by_size,
)
from txntable.storage.object_store import StoreSpec

INNER = pa.struct([pa.field("x", pa.int32())])
REQUIRED_INSIDE = pa.struct([pa.field("x", pa.int32(), nullable=False)])
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("legs", pa.list_(INNER))])
LOCAL, S3 = StoreSpec("/data/warehouse"), StoreSpec("s3://lake/w", {"region": "eu-west-1"})


def facts(**other: Any) -> SessionFacts:
    return SessionFacts(**{"is_classic": True, "is_known": True, **other})


def asked(schema: pa.Schema = SCHEMA, **other: Any) -> Question:
    settings = TopicSettings("flights", "a" * 32, 3, schema, other.pop("key", ()))
    usual = {"session": facts(), "store": LOCAL, "mode": DistributionMode.NONE, "given": schema}
    return Question(**{"settings": settings, **usual, **other})


@pytest.mark.parametrize(
    "question",
    [
        asked(),
        asked(store=S3),
        asked(mode=DistributionMode.HASH),
        asked(key=("id",), mode=DistributionMode.HASH),
        asked(given=pa.schema([("id", pa.int16()), ("legs", pa.null())])),
        asked(given=pa.schema([("id", pa.int64()), ("_timestamp", pa.timestamp("us", "UTC"))])),
        asked(session=facts(in_micro_batch=True, wish=Wish.ALWAYS)),
        asked(pa.schema([pa.field("counts", pa.map_(pa.string(), INNER))])),
    ],
)
def test_sparks_writer_takes_what_it_writes_as_tasks_in_python_do(question: Question) -> None:
    assert refusal(question) is None


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (asked(session=SessionFacts(is_classic=False)), "the session's jvm cannot be called"),
        (asked(session=facts(wish=Wish.NEVER)), f"{SWITCH} is never"),
        (asked(session=facts(is_known=False)), "another version of spark or delta than is known"),
        (asked(session=facts(has_classes=False)), "a class of spark or delta is missing"),
        (asked(session=facts(encrypts=True)), "parquet files are to be encrypted"),
        (asked(session=facts(in_micro_batch=True)), "a micro-batch"),
        (asked(store=StoreSpec("gs://lake/w")), "a store of another kind"),
        (
            asked(store=StoreSpec(S3.url, {"AWS_SERVER_SIDE_ENCRYPTION": "aws:kms"})),
            "storage options say how objects are encrypted",
        ),
        (
            asked(store=StoreSpec(S3.url, {"aws_sse_kms_key_id": "arn:key"})),
            "storage options say how objects are encrypted",
        ),
        (asked(store=StoreSpec("memory://x")), "a store of another kind"),
        (asked(key=("id",)), "a topic with a key, and no distribution_mode hash"),
        (asked(pa.schema([pa.field("leg", REQUIRED_INSIDE)])), "a nested column has what must not be null"),
        (asked(pa.schema([pa.field("leg", INNER, nullable=False)])), "a nested column has what must not be null"),
        (
            asked(given=pa.schema([("id", pa.int64()), ("legs", pa.list_(pa.struct([("x", pa.int16())])))])),
            "a nested column has another type than the topic's",
        ),
    ],
)
def test_what_it_does_not_take_has_one_reason(question: Question, reason: str) -> None:
    assert refusal(question) == reason


@pytest.mark.parametrize(
    ("wish", "size", "reason"),
    [
        (Wish.AUTO, SMALLEST_BYTES - 1, "a small dataframe"),
        (Wish.AUTO, SMALLEST_BYTES, None),
        (Wish.ALWAYS, 0, None),
    ],
)
def test_a_small_dataframe_is_left_to_python_unless_asked_for(wish: Wish, size: int, reason: str | None) -> None:
    assert refusal_by_size(wish, size) == reason


def test_a_choice_is_told_with_its_reason() -> None:
    assert str(WriterChoice(SegmentsBy.SPARK)) == "spark"
    assert str(WriterChoice(SegmentsBy.PYTHON, "a micro-batch")) == "python: a micro-batch"


@pytest.mark.parametrize(
    ("codec", "told"),
    [
        ("producer", "zstd"),
        ("uncompressed", "uncompressed"),
        ("lz4", "lz4_raw"),
        ("gzip", "gzip"),
        ("snappy", "snappy"),
    ],
)
def test_sparks_writer_compresses_as_the_topic_says(codec: str, told: str) -> None:
    settings = TopicSettings("flights", "a" * 32, 3, SCHEMA, (), config={"compression.type": codec})

    assert write_options(SegmentPlan("root", settings, None, 0), 7) == {"compression": told, "maxRecordsPerFile": "7"}


def test_only_what_is_in_lists_and_the_offsets_have_no_dictionary() -> None:
    plan = SegmentPlan("root", TopicSettings("flights", "a" * 32, 3, SCHEMA, ()), None, 0)

    told = hadoop_settings(plan)

    without = {name.partition("#")[2] for name, value in told.items() if "#" in name and value == "false"}
    assert without == {"legs.list.element.x", "_offset_delta"}


@pytest.mark.parametrize(
    ("schema", "segment_bytes", "wanted", "most"),
    [
        (pa.schema([("a", pa.int64())]), 24 * 1024, 0, 4 * 1024),
        (pa.schema([("a", pa.string()), ("b", pa.bool_())]), 37, 0, 4),
        (pa.schema([("a", pa.string())]), 1, 0, 1),
        (pa.schema([("a", pa.int64())]), 24 * 1024, 500, 500),
    ],
)
def test_a_file_has_about_segment_bytes_or_what_the_user_says(
    schema: pa.Schema, segment_bytes: int, wanted: int, most: int
) -> None:
    assert records_per_file(schema, segment_bytes, wanted) == most

"""The options of a write by ``format("txntable")``."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from txntable.coordinator.batch_memory import BatchId
from txntable.errors import InvalidRequestError
from txntable.format.isolation import IsolationLevel
from txntable.spark.datasource.read_options import read_options
from txntable.spark.datasource.write_options import check_not_reading, write_options
from txntable.spark.writing.distribution import DistributionMode, distribution_mode

WHERE = {"warehouse": "/wh", "topic": "t"}


def test_options_are_read_whatever_their_case() -> None:
    found = write_options(
        {
            "Warehouse": "/wh",
            "TOPIC": "t",
            "transactionalid": "etl",
            "BATCHID": "run-1",
            "transactionTimeoutMs": "900",
            "durability": "page-cache",
            "checkpointLocation": "/cp",
            "distributionMode": "none",
            "storage.aws_region": "eu-central-1",
        }
    )

    assert (found.store.url, found.store.options, found.store.durability) == (
        "/wh",
        {"aws_region": "eu-central-1"},
        "page-cache",
    )
    assert (found.topic, found.transactional_id, found.batch_id) == ("t", "etl", "run-1")
    assert (found.transaction_timeout_ms, found.checkpoint_location) == (900, "/cp")


def test_what_is_not_said_is_as_for_a_producer() -> None:
    found = write_options(WHERE)

    assert (found.transactional_id, found.batch_id, found.checkpoint_location) == (None, None, None)
    assert (found.transaction_timeout_ms, found.store.durability) == (60_000, "full")


@pytest.mark.parametrize(
    ("text", "batch_id"), [("17", 17), ("0", 0), ("2026-11-20", "2026-11-20"), ("-1", "-1"), ("١", "١"), ("", "")]
)
def test_batch_id_of_digits_is_an_integer(text: str, batch_id: BatchId) -> None:
    assert write_options({**WHERE, "transactionalId": "etl", "batchId": text}).batch_id == batch_id


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"topic": "t"}, "missing=warehouse"),
        ({"warehouse": "/wh"}, "missing=topic"),
        ({**WHERE, "transactional_id": "etl"}, "unknown=transactional_id"),
        ({**WHERE, "path": "/wh/topics/t"}, "unknown=path"),
        ({**WHERE, "batchId": "7"}, "transactionalId"),
        ({**WHERE, "transactionTimeoutMs": "0"}, "option=transactionTimeoutMs"),
        ({**WHERE, "transactionTimeoutMs": "1m"}, "option=transactionTimeoutMs"),
        ({**WHERE, "distributionMode": "hash"}, "distribution_mode="),
        ({**WHERE, "distributionMode": "range"}, "known=none,hash"),
        ({**WHERE, "columns": "a,b"}, "BY NAME"),
        ({}, "CREATE TEMPORARY VIEW"),
        ({**WHERE, "option.topic": "t", "owner": "me", "provider": "txntable"}, "CREATE TEMPORARY VIEW"),
    ],
)
def test_options_are_refused_with_what_to_write_instead(options: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        write_options(options)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("path", "give the options warehouse and topic"),
        ("versionAsOf", "asOf is the position"),
        ("timestampAsOf", "asOf is the position"),
        ("txnAppId", "transactionalId and batchId"),
        ("txnVersion", "transactionalId and batchId"),
        ("mergeSchema", "admin.add_columns"),
        ("overwriteSchema", "admin.add_columns"),
        ("replaceWhere", "a topic is only appended to"),
        ("partitionOverwriteMode", "a topic is only appended to"),
        ("isolation_level", "did you mean isolationLevel?"),
        ("transactinalId", "did you mean transactionalId?"),
    ],
)
@pytest.mark.parametrize("read", [read_options, write_options])
def test_option_of_delta_or_a_misspelt_one_is_refused_with_what_is_here_in_its_place(
    read: Callable[[dict[str, str]], object], option: str, said: str
) -> None:
    with pytest.raises(InvalidRequestError, match=re.escape(said)):
        read({**WHERE, option: "1"})


def test_two_options_of_delta_are_told_once_and_one_like_nothing_is_told_nothing() -> None:
    with pytest.raises(InvalidRequestError) as both:
        write_options({**WHERE, "txnAppId": "etl", "txnVersion": "1"})
    with pytest.raises(InvalidRequestError) as other:
        write_options({**WHERE, "compression": "zstd"})

    assert str(both.value).count("transactionalId and batchId") == 1
    assert "storage.<name> goes to the store unknown=compression" in str(other.value)


def test_secrets_are_not_printed() -> None:
    assert "s3cr3t" not in repr(write_options({**WHERE, "storage.aws_secret_access_key": "s3cr3t"}))


def test_reading_passes_over_what_a_view_says_for_writing() -> None:
    options = {**WHERE, "transactionalId": "etl", "isolationLevel": "read_committed"}

    assert read_options(options).level is IsolationLevel.READ_COMMITTED
    assert write_options(options).transactional_id == "etl"


def test_options_of_reading_are_refused_by_name_all_at_once() -> None:
    reading = {"isolationLevel": "read_committed", "ASOF": "3", "startingoffsets": "latest", "maxBytesPerTask": "1"}

    with pytest.raises(InvalidRequestError, match="give them to spark") as refused:
        check_not_reading({**WHERE, "transactionalId": "etl", **reading})

    assert refused.value.facts["options"] == "isolationLevel,asOf,startingOffsets,maxBytesPerTask"


@pytest.mark.parametrize("given", ["hash", DistributionMode.HASH])
def test_distribution_mode_is_given_by_name_or_itself(given: str | DistributionMode) -> None:
    assert distribution_mode(given) is DistributionMode.HASH

"""How large a name and a transaction's row may be: the limit passes, one byte more does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from txntable.coordinator.enrolment import EnrolledTopic
from txntable.coordinator.errors import InvalidRequestError, RecordTooLargeError
from txntable.coordinator.row_json import LONGEST_NAME_BYTES, check_name
from txntable.coordinator.transaction import LARGEST_ROW_BYTES, TransactionMetadata, first_row
from txntable.coordinator.transaction_request import EnrolRequest
from txntable.coordinator.transaction_shard import enrol


def test_name_counts_in_bytes() -> None:
    assert check_name("x" * LONGEST_NAME_BYTES, "a group")
    assert check_name("ü" * (LONGEST_NAME_BYTES // 2), "a group")

    with pytest.raises(InvalidRequestError, match=r"a group is too long.*bytes=32768 most=32767") as refused:
        check_name("ü" * (LONGEST_NAME_BYTES // 2 + 1), "a group")

    assert len(str(refused.value)) < 200


def test_row_with_a_longer_name_than_may_be_given_is_still_read() -> None:
    long = "x" * (2 * LONGEST_NAME_BYTES)
    row = replace(first_row("etl", 7, 60_000, 1), transactional_id=long)

    assert TransactionMetadata.from_json(row.to_json()) == row


def enrolled(groups: tuple[str, ...], topics: int = 1) -> EnrolRequest:
    found = {f"{number:032x}": EnrolledTopic("t12345", frozenset({0})) for number in range(topics)}
    return EnrolRequest(7, 0, 12, found, groups)


def test_transaction_takes_what_its_row_holds_and_is_to_be_aborted_for_more() -> None:
    row = first_row("etl", 7, 60_000, 11)
    names = tuple("g" * 30_000 + str(number) for number in range(10, 44))
    grown = enrol(row, enrolled((*names, "x"))).row
    assert grown is not None
    rest = LARGEST_ROW_BYTES - len(grown.to_json().encode())
    assert 0 < rest < LONGEST_NAME_BYTES

    taken = enrol(row, enrolled((*names, "x" * (1 + rest)))).row

    assert taken is not None
    assert len(taken.to_json()) == LARGEST_ROW_BYTES
    with pytest.raises(RecordTooLargeError, match=f"bytes={LARGEST_ROW_BYTES + 1} most={LARGEST_ROW_BYTES}"):
        enrol(row, enrolled((*names, "x" * (2 + rest))))


def test_transaction_may_write_to_fourteen_thousand_topics() -> None:
    grown = enrol(first_row("etl", 7, 60_000, 11), enrolled((), 14_000)).row

    assert grown is not None
    assert len(grown.topics) == 14_000

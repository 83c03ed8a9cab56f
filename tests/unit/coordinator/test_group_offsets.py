"""Rows of the offset log: what is written is read back, and nothing else is read."""

from __future__ import annotations

import json

import pytest

from txntable.coordinator.errors import DamagedDataError, TxnTableError, UnsupportedFormatError
from txntable.coordinator.group_offsets import CommittedOffset, OffsetRow, PendingOffset

COMMITTED = CommittedOffset(offset=42, metadata="", topic_id="a" * 32, request=7, position=0)
PENDING = (
    PendingOffset("etl", producer_id=3, epoch=1, offset=50, metadata="m", request=8, topic_id="a" * 32),
    PendingOffset("other", producer_id=4, epoch=0, offset=45, metadata="", request=9),
)


@pytest.mark.parametrize("committed", [None, COMMITTED])
@pytest.mark.parametrize("pending", [(), PENDING])
def test_offset_row_is_read_as_written(committed: CommittedOffset | None, pending: tuple[PendingOffset, ...]) -> None:
    row = OffsetRow("g", "flights", 3, position=9, committed=committed, pending=pending)

    assert OffsetRow.from_json(row.to_json()) == row
    assert row.key == '["g","flights","3"]'


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"group": ""}, DamagedDataError),
        ({"partition": "3"}, DamagedDataError),
        ({"committed": {"offset": 1}}, DamagedDataError),
        ({"pending": ["etl"]}, DamagedDataError),
        ({"pending": [{"transactional_id": "etl", "leader_epoch": 1}]}, UnsupportedFormatError),
        ({"v": 2}, UnsupportedFormatError),
    ],
)
def test_offset_row_is_refused_when_the_format_does_not_have_it(change: dict, error: type[TxnTableError]) -> None:
    stored = json.loads(OffsetRow("g", "flights", 3, 9, COMMITTED, PENDING).to_json())

    with pytest.raises(error):
        OffsetRow.from_json(json.dumps({**stored, **change}))

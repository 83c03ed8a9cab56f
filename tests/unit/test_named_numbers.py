"""Named numbers that a table does not have, met in an entry and in a state that somebody starts from."""

from __future__ import annotations

import pytest

from txntable.errors import DamagedDataError
from txntable.log.actions import Commit, CommitInfo, Txn
from txntable.log.fold import Fold
from txntable.log.table_state import TableState
from txntable.offsets.offset_log import OffsetLogFold
from txntable.partition.offsets import PUBLIC_NUMBERS, SEGMENTS_NUMBERS
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.projection import PublicTable
from txntable.transactions.transaction_log import TransactionLogFold

TOPIC_ID = "a" * 32
EARLIER = "b" * 32
INFO = CommitInfo("c" * 32, "d" * 32, 1, "X", "d" * 32)
FOLDS = {
    "T": (TransactionLogFold(), "next_producer_id", "decided_through"),
    "O": (OffsetLogFold(), "decided_through", "next_producer_id"),
    "P": (PublicTable("t"), f"lso/{TOPIC_ID}/0", f"next_offset/{TOPIC_ID}/0"),
    "S": (PartitionLogs("t"), f"next_offset/{TOPIC_ID}/0", f"lso/{TOPIC_ID}/0"),
}


@pytest.mark.parametrize(("fold", "known", "unknown"), FOLDS.values(), ids=FOLDS)
def test_number_that_the_table_does_not_have_is_refused_in_an_entry(fold: Fold, known: str, unknown: str) -> None:
    fold.apply(Commit(1, INFO, (Txn(known, 1),)), TableState())

    with pytest.raises(DamagedDataError, match="named number that its table does not have"):
        fold.apply(Commit(1, INFO, (Txn(known, 1), Txn(unknown, 1))), TableState())


@pytest.mark.parametrize(("fold", "known", "unknown"), list(FOLDS.values())[:3], ids=list(FOLDS)[:3])
def test_number_that_the_table_does_not_have_is_refused_in_a_state(fold: Fold, known: str, unknown: str) -> None:
    fold.restore(TableState(numbers={known: 1}))

    with pytest.raises(DamagedDataError, match="named number that its table does not have"):
        fold.restore(TableState(numbers={known: 1, unknown: 1}))


@pytest.mark.parametrize(
    ("name", "in_segments", "in_public"),
    [
        (f"next_offset/{TOPIC_ID}/17", True, False),
        (f"next_offset/{EARLIER}/99999", True, False),
        (f"log_start/{TOPIC_ID}/0", True, True),
        (f"decided_through/{TOPIC_ID}", True, True),
        (f"merged_through/{EARLIER}", True, True),
        (f"lso/{TOPIC_ID}/1", False, True),
        (f"high_watermark/{TOPIC_ID}/1", False, True),
        ("reflects", False, True),
        ("next_offset", False, False),
        (f"next_offset/{TOPIC_ID}", False, False),
        (f"next_offset/{TOPIC_ID}/-1", False, False),
        (f"next_offset/{TOPIC_ID}/01", False, False),
        (f"next_offset/{TOPIC_ID}/100000", False, False),
        (f"next_offset/{TOPIC_ID}/٣", False, False),
        (f"log_start/{'A' * 32}/0", False, False),
        (f"decided_through/{TOPIC_ID}\n", False, False),
        (f"merged_through/{TOPIC_ID}/0", False, False),
    ],
)
def test_names_of_a_topics_numbers_have_one_spelling(name: str, *, in_segments: bool, in_public: bool) -> None:
    assert (SEGMENTS_NUMBERS.fullmatch(name) is not None) == in_segments
    assert (PUBLIC_NUMBERS.fullmatch(name) is not None) == in_public

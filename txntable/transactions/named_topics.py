"""Which topics the transaction log and the offset log name: each of them has a partition log, or has lost it.

Owns that a topic which is named is none that never was, since a deleted one keeps its log (PROTOCOL.md §3.2), and was
created before it was named: so its log is looked for once more after its name was found.
"""

from __future__ import annotations

from txntable.coordinator.group_offsets import OffsetRow
from txntable.coordinator.offset_upkeep import topic_ids
from txntable.offsets.offset_log import OffsetLog
from txntable.topics.topic_log import TopicLog, lost_log
from txntable.transactions.transaction_log import TransactionLog


def named_topics(transactions: TransactionLog, offsets: OffsetLog) -> set[str]:
    """Return the topics of transactions under way and of groups' offsets, as far as the two logs were read."""
    with transactions.log.lock:
        rows = list(transactions.log.fold.under_way.values())
    return {topic.name for row in rows for topic in row.topics.values()} | {
        row.topic for row in _rows(offsets) if _says_which(row)
    }


def open_ids(transactions: TransactionLog, topic: str) -> list[str]:
    """Return the ids whose open transactions have a topic of this name, as far as the log was read."""
    with transactions.log.lock:
        rows = list(transactions.log.fold.under_way.values())
    return sorted(
        row.transactional_id
        for row in rows
        if row.state.is_open and any(one.name == topic for one in row.topics.values())
    )


def require_unnamed(topic: TopicLog, transactions: TransactionLog, offsets: OffsetLog) -> None:
    """Return if a topic whose partition log is not there is one that never was, as far as the two logs were read.

    Raises
    ------
    DamagedDataError
        It is named: it has lost its log, and its folder with it.
    """
    if _is_named(topic.name, transactions, offsets):
        # Somebody may have ended meanwhile what names it.
        transactions.refresh()
        offsets.refresh()
        if _is_named(topic.name, transactions, offsets) and topic.segments.refresh().version is None:
            raise lost_log(topic.name)


def _is_named(name: str, transactions: TransactionLog, offsets: OffsetLog) -> bool:
    with transactions.log.lock:
        if transactions.log.fold.names(name):
            return True
    return any(row.topic == name and _says_which(row) for row in _rows(offsets))


def _rows(offsets: OffsetLog) -> list[OffsetRow]:
    with offsets.log.lock:
        return [row for group in offsets.log.fold.offsets.values() for row in group.values()]


def _says_which(row: OffsetRow) -> bool:
    """Return whether a row says of which topic of its name an offset is."""
    return bool(topic_ids(row) - {""})

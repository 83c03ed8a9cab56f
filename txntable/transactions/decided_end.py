"""Whether the end of the transaction log is there, for who is about to write to it (PROTOCOL.md §6.4).

Owns what its end is held against: what the offset log and the topics say that it has decided.  A log that has lost its
newest entries gives their positions out again, and each entry that begins something, of a producer or a job, would hide
one of them.  Must not know what is written then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from txntable.errors import TxnTableError
from txntable.format.layout import TOPICS_FOLDER, topic_names
from txntable.log.log_view import moments, prove_now
from txntable.offsets.offset_log import DECIDED_THROUGH, OffsetLog
from txntable.storage.side_by_side import side_by_side
from txntable.topics.topic_log import TopicLog, lost_decisions
from txntable.transactions.transaction_log import TransactionLog


def require_settled(transactions: TransactionLog, offsets: OffsetLog) -> None:
    """Return if the transaction log does not end below what the offset log, as it was read, says that it decided.

    Makes no request unless it does.

    Raises
    ------
    DamagedDataError
        It does: its newest entries are lost.
    """
    log = offsets.log
    decided = log.table.number(DECIDED_THROUGH)
    if decided < transactions.log.table.next_version:
        return
    # It may have been read after the transaction log, and be of a warehouse that was restored since.
    log.prove_since(next(moments))
    end = transactions.log.refresh().next_version - 1
    if end < decided:
        prove_now(log, transactions.log)
        raise lost_decisions("the offset log has", end=end, decided=decided)


def require_whole(transactions: TransactionLog, offsets: OffsetLog, topic_log: Callable[[str], TopicLog]) -> None:
    """Hold the end of the transaction log against the offset log and every topic's public table.

    Reads the public tables that were not read yet.  What is wrong with a topic itself is left to who works on it.

    Raises
    ------
    DamagedDataError
        Its newest entries are lost.
    """
    require_settled(transactions, offsets)
    require_decided(topic_log(name) for name in topic_names(transactions.context.store.folders(TOPICS_FOLDER)))


def require_decided(topics: Iterable[TopicLog]) -> None:
    """Hold the end of the transaction log against the public tables of topics; as :func:`require_whole`."""
    found = list(topics)
    if found:
        side_by_side(found[0].context.store, [partial(_read_public, topic) for topic in found])
    for topic in found:
        topic.require_decided()


def _read_public(topic: TopicLog) -> None:
    with suppress(TxnTableError):
        topic.read_public()

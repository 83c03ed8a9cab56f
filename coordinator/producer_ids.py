"""Producer ids: an integer of the transaction log that only rises (PROTOCOL.md §6.1).

A producer id is never derived from rows: rows expire, an id given once is never given again.
A producer with a transactional id takes one; those without take theirs from blocks, so that a
client asks the log once for many.
"""

from __future__ import annotations

from dataclasses import dataclass

from txntable.coordinator.errors import InvalidRequestError

PRODUCER_ID_BLOCK_SIZE = 1000
LEAP = 2**40
"""More ids than were ever given since a backup was made; eight million leaps fit."""


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """Producer ids that one client owns.

    Attributes
    ----------
    ids : range
        The ids, ascending.
    """

    ids: range

    @property
    def next_producer_id(self) -> int:
        """What the log must say from now on: the first id that no one owns."""
        return self.ids.stop


def allocate_producer_ids(next_producer_id: int | None, count: int = PRODUCER_ID_BLOCK_SIZE) -> ProducerIdBlock:
    """Return the next block.

    Parameters
    ----------
    next_producer_id : int, optional
        The first id that no one owns, as the log has it; ``None`` when it was never written.
    count : int
        How many ids, at least 1.

    Raises
    ------
    InvalidRequestError
        `count` is below 1.
    """
    if count < 1:
        raise InvalidRequestError("a block holds at least one producer id", count=count)
    first = 0 if next_producer_id is None else next_producer_id
    return ProducerIdBlock(range(first, first + count))


def leap(next_producer_id: int | None) -> int:
    """Return the first id that no one owns, nor has owned, in a log that has forgotten what it gave last.

    Parameters
    ----------
    next_producer_id : int, optional
        As the log, which was restored from a backup, has it.
    """
    return (next_producer_id or 0) + LEAP

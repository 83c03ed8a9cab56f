"""Which transaction a micro-batch is: Spark's number of the batch becomes the batch id of the transaction.

Owns the rule that a micro-batch commits once, and that none is passed over because another stream's has committed.
Spark numbers the batches of a checkpoint from 0 on, and after a restart runs the last one again, the same records:

* a batch above 0 has its number as batch id; a lower one than the last is refused, the last one is passed over;
* batch 0 has the stream's name in its batch id: a stream whose checkpoint was deleted begins at 0 again, and what it
  then has is not what an earlier batch 0 had.

Must not know how Spark is asked for a stream's name, nor what is written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack

from txntable.coordinator.batch_memory import BatchId
from txntable.errors import BatchAlreadyCommittedError, BatchOutOfOrderError
from txntable.producer.producer import Producer
from txntable.producer.transaction import Transaction

logger = logging.getLogger(__name__)

_FIRST = 0


def commit_batch(
    producer: Producer, batch_id: int, query_id: Callable[[], str | None], write: Callable[[Transaction], object]
) -> None:
    """Run one micro-batch as a transaction; pass over one that has committed.

    Parameters
    ----------
    producer : Producer
        Initialised, with the stream's transactional id.
    batch_id : int
        Spark's, from 0 on.
    query_id : callable
        () -> the id in the stream's checkpoint, or ``None`` where it cannot be found; asked for batch 0 only.
    write : callable
        Writes the records of the batch.

    Raises
    ------
    BatchOutOfOrderError
        A later batch has committed under this transactional id: the stream began again with another checkpoint, or
        two streams share the id.  Give it a transactional id of its own.
    TxnTableError
        Whatever the transaction raises; nothing of the batch is visible.
    """
    named = _first_batch(producer, query_id) if batch_id == _FIRST else batch_id
    with ExitStack() as stack:
        try:
            transaction = stack.enter_context(producer.transaction(named))
        except BatchAlreadyCommittedError as known:
            logger.warning("the micro-batch has committed before, nothing is written: %s", known)
            return
        write(transaction)


def _first_batch(producer: Producer, query_id: Callable[[], str | None]) -> BatchId:
    if producer.is_committed(_FIRST):
        raise BatchOutOfOrderError(
            "a stream begins under a transactional id that has committed batches of a stream; a new checkpoint needs"
            " a transactional id of its own",
            transactional_id=producer.config.transactional_id,
            batch_id=_FIRST,
        )
    found = query_id()
    return _FIRST if found is None else f"{found}/{_FIRST}"

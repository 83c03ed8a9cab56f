"""Which transaction a micro-batch is: Spark's number of the batch becomes the batch id of the transaction.

Owns the rule that a micro-batch commits once, and that none is passed over because another stream's has committed.
Spark numbers the batches of a checkpoint from 0 on, and after a restart runs the last one again, the same records:

* the first batch that a stream commits under a transactional id is named by the stream and its number: a stream with
  another checkpoint finds that name, and is refused, whatever number it is at;
* the batches after it have their numbers as batch ids; a lower one than the last is refused, the last is passed over.

Must not know how Spark is asked for a stream's name, nor what is written.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from txntable.coordinator.batch_memory import BatchId, CommittedBatches
from txntable.errors import BatchAlreadyCommittedError, BatchOutOfOrderError
from txntable.producer.producer import Producer
from txntable.producer.transaction import Transaction

logger = logging.getLogger(__name__)

# Spark's ids of queries are UUIDs: a name that somebody gave to a batch of a job is not taken for a stream's.
_FIRST_OF_A_STREAM = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/([0-9]+)")


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
        () -> the id in the stream's checkpoint, or ``None`` where it cannot be found.
    write : callable
        Writes the records of the batch.

    Raises
    ------
    BatchOutOfOrderError
        Batches of another stream have committed under this transactional id, or later ones of this stream: it began
        again with another checkpoint, or two streams share the id.  Give it a transactional id of its own.
    TxnTableError
        Whatever the transaction raises; nothing of the batch is visible.
    """
    stream = query_id()
    facts = {"transactional_id": producer.config.transactional_id, "batch_id": batch_id, "stream": stream}
    named = batch_id_of(producer.committed_batches(), stream, batch_id, facts)
    with ExitStack() as stack:
        try:
            transaction = stack.enter_context(producer.transaction(named))
        except BatchAlreadyCommittedError as known:
            # The log was read for that.  Who has committed it may have begun under this id in the meantime.
            batch_id_of(producer.committed_batches(), stream, batch_id, facts)
            logger.warning("the micro-batch has committed before, nothing is written: %s", known)
            return
        write(transaction)


def batch_id_of(committed: CommittedBatches, stream: str | None, number: int, facts: Mapping[str, object]) -> BatchId:
    """Return the batch id of a micro-batch; pure.

    Parameters
    ----------
    committed : CommittedBatches
        What the transactional id has committed.
    stream : str or None
        The id in the stream's checkpoint; ``None``: unknown.
    number : int
        Spark's number of the batch.
    facts : Mapping of str to object
        For the error.

    Raises
    ------
    BatchOutOfOrderError
        It is not this stream that has committed under the id; or, of a stream that is unknown, it may not be.
    """
    first_of = {
        found[1]: int(found[2]) for name in committed.names if (found := _FIRST_OF_A_STREAM.fullmatch(name)) is not None
    }
    last, first = committed.last_integer, first_of.get(stream or "")
    if stream is None:
        is_another = any(number <= each for each in first_of.values())
    else:
        is_another = bool(first_of) and (first is None or number < first)
    if is_another or (number == 0 and (last is not None or (stream is None and first_of))):
        raise BatchOutOfOrderError(
            "a stream begins under a transactional id that has committed batches of a stream; a new checkpoint needs a"
            " transactional id of its own, and so does each of two streams",
            **facts,
        )
    is_first = stream is not None and last is None and first in (None, number)
    return f"{stream}/{number}" if is_first else number

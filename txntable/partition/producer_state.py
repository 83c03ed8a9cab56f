"""What a partition remembers of a producer, and what it answers to its next batch (PROTOCOL.md §5.4).

Kafka's rules with transaction version 2 (KIP-98, KIP-890), in 64 bits: sequences do not wrap.
The last five batches of the present epoch are kept; an exact repetition of one of them is
answered with its original offsets.  Exact means the same file: Kafka goes by the numbers alone, and a
second process that writes under one identity (a fork, a copied machine) would be told that its
records are stored.  Pure values: an append is validated on a copy.
"""

from __future__ import annotations

from dataclasses import dataclass

from txntable.errors import InvalidProducerEpochError, InvalidTxnStateError, OutOfOrderSequenceError
from txntable.format.layout import segment_name
from txntable.partition.batch import Batch
from txntable.partition.markers import Marker

REMEMBERED_BATCHES = 5


@dataclass(frozen=True, slots=True)
class BatchMetadata:
    """One remembered batch: first and last sequence, base and last offset, and its segment's name."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    name: str


@dataclass(frozen=True, slots=True)
class ProducerEntry:
    """The state of one producer id in one partition.

    Attributes
    ----------
    epoch : int
        The highest seen, in a batch or raised to by a marker.
    batches : tuple of BatchMetadata
        At most five, of this epoch, oldest first.
    last_timestamp_ms : int
        The store's time of the last append, or of the last marker's decision: how long the producer is
        idle counts from it.  Never a record's timestamp, since users load old data.
    coordinator_epoch : int or None
        Of the last marker.
    last_offset : int
        Of the last batch or marker, in this partition.
    """

    epoch: int
    batches: tuple[BatchMetadata, ...] = ()
    last_timestamp_ms: int = 0
    coordinator_epoch: int | None = None
    last_offset: int = 0


@dataclass(frozen=True, slots=True)
class IncomingBatch:
    """A batch that asks to be appended: it has no offsets yet, but its segment's name."""

    producer_id: int
    epoch: int
    first_sequence: int
    records: int
    transactional: bool
    name: str

    @property
    def last_sequence(self) -> int:
        """The sequence of its last record."""
        return self.first_sequence + self.records - 1


def check_append(entry: ProducerEntry | None, batch: IncomingBatch, *, in_transaction: bool) -> BatchMetadata | None:
    """Decide whether a producer's batch may be appended now.

    Parameters
    ----------
    entry : ProducerEntry or None
        ``None``: the partition knows nothing of the producer.
    batch : IncomingBatch
        What asks to be appended.
    in_transaction : bool
        Whether the producer has an open transaction with data in the partition.

    Returns
    -------
    BatchMetadata or None
        The remembered batch that this one repeats (answer its offsets, write nothing), or
        ``None``: append it.

    Raises
    ------
    InvalidProducerEpochError
        An older epoch: fenced or timed out.
    OutOfOrderSequenceError
        A gap, an older duplicate, a first sequence other than 0, or the numbers of another batch.
    InvalidTxnStateError
        A non-transactional batch inside an open transaction.
    """
    if entry is None:
        if batch.transactional and batch.first_sequence != 0:
            raise _out_of_order(batch, 0)
        return None
    if batch.epoch == entry.epoch:
        for known in entry.batches:
            if (known.first_sequence, known.last_sequence) == (batch.first_sequence, batch.last_sequence):
                if known.name == batch.name:
                    return known
                raise _taken(batch, known)
    if batch.epoch < entry.epoch:
        raise InvalidProducerEpochError(
            "the partition has seen a newer epoch of this producer; abort the transaction",
            producer_id=batch.producer_id,
            epoch=batch.epoch,
            newest=entry.epoch,
        )
    expected = entry.batches[-1].last_sequence + 1 if batch.epoch == entry.epoch and entry.batches else 0
    if batch.first_sequence != expected:
        raise _out_of_order(batch, expected)
    if in_transaction and not batch.transactional:
        raise InvalidTxnStateError(
            "a batch outside of the producer's open transaction; commit or abort it first",
            producer_id=batch.producer_id,
            epoch=batch.epoch,
        )
    return None


def _taken(batch: IncomingBatch, known: BatchMetadata) -> OutOfOrderSequenceError:
    return OutOfOrderSequenceError(
        "another batch has these sequence numbers: somebody else writes under this producer's identity; close this"
        " producer and send its records again by a new one; where that is refused too, an entry of the transaction log"
        " may be lost: run `txntable warehouse verify`",
        producer_id=batch.producer_id,
        epoch=batch.epoch,
        first_sequence=batch.first_sequence,
        offset=known.base_offset,
    )


def _out_of_order(batch: IncomingBatch, expected: int) -> OutOfOrderSequenceError:
    return OutOfOrderSequenceError(
        "the batch does not continue the producer's sequence; abort and send again",
        producer_id=batch.producer_id,
        epoch=batch.epoch,
        first_sequence=batch.first_sequence,
        expected=expected,
    )


def after_append(entry: ProducerEntry | None, batch: Batch) -> ProducerEntry | None:
    """Return the entry once `batch` is in the log (unchanged for batches without sequences)."""
    if batch.producer is None or batch.first_sequence is None or batch.last_sequence is None:
        return entry
    name = segment_name(batch.path)
    metadata = BatchMetadata(batch.first_sequence, batch.last_sequence, batch.base_offset, batch.last_offset, name)
    epoch = batch.producer.epoch
    before = () if entry is None or entry.epoch != epoch else entry.batches
    coordinator_epoch = None if entry is None else entry.coordinator_epoch
    batches = (*before, metadata)[-REMEMBERED_BATCHES:]
    return ProducerEntry(epoch, batches, batch.appended_at_ms, coordinator_epoch, batch.last_offset)


def after_marker(entry: ProducerEntry | None, marker: Marker, partition: int) -> ProducerEntry:
    """Return the entry once `marker` is in the log; a marker of an earlier epoch changes nothing."""
    if entry is not None and entry.epoch > marker.ends:
        return entry
    return ProducerEntry(
        marker.raises_to,
        last_timestamp_ms=marker.decided_at_ms,
        coordinator_epoch=marker.coordinator_epoch,
        last_offset=marker.offsets[partition],
    )

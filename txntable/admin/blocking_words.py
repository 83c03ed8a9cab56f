"""What holds readers back in words: the sentence above it, what each transaction waits for, the command that ends it.

Owns the words, for a terminal, a page and programs alike.  Pure.  Must not know where the warehouse is.
"""

from __future__ import annotations

from collections.abc import Sequence

from txntable.admin.blocking_transactions import BlockedPartition, BlockingTransaction, PendingGroup
from txntable.admin.upkeep import Finding
from txntable.coordinator.open_epoch_status import OpenEpochStatus
from txntable.coordinator.transaction_state import TransactionState
from txntable.format.records import TopicPartition

_WAITS_FOR = {
    TransactionState.ONGOING: "its producer, or its timeout",
    TransactionState.PREPARED: "the holder of its token",
    TransactionState.PREPARE_COMMIT: "completion: it is decided",
    TransactionState.PREPARE_ABORT: "completion: it is decided",
}
_TIMED_OUT = "whoever completes transactions: its timeout has passed"
_NOTHING_ENDS_IT = "nothing that will come: it hangs, run `txntable warehouse verify` first"
_LOST = "a restore: the transaction log does not know it"
RESTORE = "restore the transaction log from its newest backup"
"""What is to be done where no command ends it."""
# Units of time, the largest first; people read two of them.
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000))


def summary(found: Sequence[BlockingTransaction], topics: int, unreadable: Sequence[Finding] = ()) -> tuple[str, ...]:
    """Return what there is to say before each of them, in one or two lines.

    Parameters
    ----------
    found : sequence of BlockingTransaction
        All that was found.
    topics : int
        In how many topics was looked.
    unreadable : sequence of Finding
        What could not be read: nothing is known of it.
    """
    if not found:
        said = f"no transaction holds readers back in {counted(topics, 'topic')}"
        return (f"{said} that can be read" if unreadable else f"all is well: {said}",)
    # What waits behind two of them waits once: behind the first in the partition.
    first: dict[TopicPartition, BlockedPartition] = {}
    for each in sorted((each for one in found for each in one.partitions), key=lambda each: each.start_offset):
        first.setdefault(each.topic_partition, each)
    records = counted(sum(each.committed_records for each in first.values()), "committed record")
    waiting = len({group for one in found for group in one.groups})
    groups = counted(waiting, "group")
    return (
        f"{counted(len(found), 'open transaction')} {'holds' if len(found) == 1 else 'hold'} readers back",
        f"in {counted(len(first), 'partition')}, where {records} and {groups} wait"
        if first
        else f"where {groups} {'waits' if waiting == 1 else 'wait'} for offsets",
    )


def unreadable_text(one: Finding) -> str:
    """Return what cannot be read, and why."""
    return f"{one.where} cannot be read: {one.note}"


def counted(number: int, noun: str, nouns: str | None = None) -> str:
    """Return a number of things, by the word for one of them and, where it is not that and an s, for several."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def pending_text(one: PendingGroup) -> str:
    """Return what a group waits for that has offsets in a transaction."""
    where = ", ".join(f"{each.topic}-{each.partition}" for each in one.partitions)
    return f"group {one.group}: its offsets of {where} are pending, whoever begins to read there waits"


def state_word(one: BlockingTransaction) -> str:
    """Return where a transaction stands."""
    return "hangs" if one.state is None else one.state.value.lower().replace("_", " ")


def waits_for(one: BlockingTransaction) -> str:
    """Return what ends a transaction that holds readers back."""
    if one.status is OpenEpochStatus.AHEAD:
        return _LOST
    if one.state is None:
        return _NOTHING_ENDS_IT
    return state_waits_for(one.state, None if one.timeout_ms is None else one.timeout_ms - one.duration_ms)


def state_waits_for(state: TransactionState, left_ms: int | None) -> str:
    """Return what ends a transaction that is under way.

    Parameters
    ----------
    state : TransactionState
        Where it stands: under way.
    left_ms : int, optional
        Until its timeout, negative when that has passed; ``None``: none will end it.
    """
    if left_ms is not None and left_ms < 0:
        return _TIMED_OUT
    return _WAITS_FOR[state] + ("" if left_ms is None else f" in {duration_text(left_ms)}")


def when_to_end(one: BlockingTransaction) -> str:
    """Return when the command that ends a transaction may be run."""
    if one.state is TransactionState.PREPARED:
        return "if its database rolled back; if it committed, start its program"
    return "now" if one.state is not None or one.has_timed_out else "once that finds nothing else"


def ending_words(one: BlockingTransaction) -> tuple[str, ...] | None:
    """Return the words after ``txntable transactions`` that end a transaction; ``None``: no command does.

    Parameters
    ----------
    one : BlockingTransaction
        What to end.
    """
    if one.status is OpenEpochStatus.AHEAD:
        return None
    if one.status is OpenEpochStatus.DECIDED or one.has_timed_out:
        return ("run", "--once")
    if one.state is not None and one.transactional_id is not None:
        # An id that begins with a hyphen is none of the options.
        if one.transactional_id.startswith("-"):
            return ("abort", "--execute", "--", one.transactional_id)
        return ("abort", one.transactional_id, "--execute")
    (topic, partition), offset = one.partitions[0].topic_partition, one.partitions[0].start_offset
    return ("abort", "--topic", topic, "--partition", str(partition), "--start-offset", str(offset), "--execute")


def duration_text(milliseconds: int) -> str:
    """Return a duration as people read it: its two largest units."""
    for index, (name, size) in enumerate(_UNITS[:-1]):
        if milliseconds >= size:
            smaller, small_size = _UNITS[index + 1]
            return f"{milliseconds // size}{name}{milliseconds % size // small_size:02d}{smaller}"
    return f"{milliseconds // 1_000}s"

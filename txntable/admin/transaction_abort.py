"""Ending transactions over their producers' heads: an admin's abort and fence.

Owns the loop that ends one transaction, whatever stands in its way: it is decided in the transaction
log at exactly its epoch, then completed; and where the transaction log has nothing to decide any more, its
ABORT marker is written directly (PROTOCOL.md §6.5).  Never touches a later transaction of the id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from txntable.admin.past_decision import past_decision
from txntable.admin.transaction_admin import TransactionAdmin, check_partition, id_not_found, listed, open_now
from txntable.coordinator.decision import Decision, Outcome
from txntable.coordinator.open_epoch_status import OpenEpochStatus, terminate_epoch
from txntable.coordinator.producer_ids import allocate_producer_ids
from txntable.coordinator.row_json import check_name, check_number
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_request import Transition
from txntable.coordinator.transaction_shard import terminate
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import ConcurrentTransactionsError, DamagedDataError, InvalidRequestError, InvalidTxnStateError
from txntable.log.actions import Action, Txn
from txntable.log.table_state import TableState
from txntable.partition.open_transactions import HangingEpoch, OpenInPartition
from txntable.producer.coordinator_client import CoordinatorClient
from txntable.topics.topic_log import TopicLog
from txntable.transactions.completion import Completer
from txntable.transactions.decided_end import require_decided, require_settled
from txntable.transactions.transaction_log import NEXT_PRODUCER_ID, TransactionLog

# One for the decision, one for the marker; the others are lost to markers of later decisions.
_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class AbortTarget:
    """Which transaction an admin aborts: that of an id, or one that is open in a partition.

    Attributes
    ----------
    transactional_id : str, optional
        Given alone: the open transaction of this id.
    topic : str, optional
        With `partition` and either of the following: the transaction that is open there.
    partition : int, optional
        From 0.
    start_offset : int, optional
        Offset of the transaction's first record in the partition.
    producer_id, producer_epoch : int, optional
        Together they identify the transaction.

    Raises
    ------
    InvalidRequestError
        The arguments are none of these, or more than one.
    """

    transactional_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    start_offset: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None

    def __post_init__(self) -> None:
        given = {each.name for each in fields(self) if getattr(self, each.name) is not None}
        if given not in _TARGETS:
            raise InvalidRequestError(
                "specify the transaction: a transactional id alone, or topic and partition with either the start offset"
                " or producer id and epoch",
                given=",".join(sorted(given)) or None,
            )
        if self.transactional_id is not None:
            check_name(self.transactional_id, "a transactional id")
        for name in given - {"transactional_id", "topic"}:
            check_number(getattr(self, name), name)


_TARGETS = (
    {"transactional_id"},
    {"topic", "partition", "start_offset"},
    {"topic", "partition", "producer_id", "producer_epoch"},
)


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """A transaction that an admin aborted, or would abort.

    Attributes
    ----------
    transactional_id : str or None
        ``None``: no id has the producer id any more.
    producer_id, producer_epoch : int
        They name the transaction; the producer's epoch is one above from then on.
    status : OpenEpochStatus
        How it was found: OPEN, UNENROLLED and IDLE are decided in the transaction log, DECIDED is completed, and
        of a hanging one the ABORT marker is written.
    """

    transactional_id: str | None
    producer_id: int
    producer_epoch: int
    status: OpenEpochStatus


class TransactionAborter:
    """What :class:`txntable.admin.admin.Admin` ends; its docstrings say more.

    Parameters
    ----------
    transactions : TransactionLog
        T.
    completer : Completer
        Completes what is decided.
    shown : TransactionAdmin
        Finds what is open.
    client : CoordinatorClient
        Takes ids.
    """

    def __init__(
        self, transactions: TransactionLog, completer: Completer, shown: TransactionAdmin, client: CoordinatorClient
    ) -> None:
        self._transactions, self._completer = transactions, completer
        self._shown, self._client = shown, client

    # -- abort ------------------------------------------------------------------------------

    def abort(self, target: AbortTarget, *, validate_only: bool) -> AbortedTransaction:
        """Abort a transaction, or only find it."""
        if target.transactional_id is not None:
            return self._abort_id(target.transactional_id, validate_only=validate_only)
        topic = self._shown.topic_log(str(target.topic))
        found, result = self._find(topic, target)
        if result.status is OpenEpochStatus.AHEAD:
            raise DamagedDataError(
                "the partition log has a producer id or epoch that the transaction log never gave out; restore the"
                " transaction log",
                topic=topic.name,
                producer_id=found.producer_id,
                producer_epoch=found.producer_epoch,
            )
        if not validate_only:
            self._end(topic, found)
        elif result.status is OpenEpochStatus.PAST:
            self._require_not_committed(topic, found)
        return result

    def _require_not_committed(self, topic: TopicLog, found: OpenInPartition) -> None:
        """Refuse to abort what the transaction log has committed: the partition log has lost the marker."""
        decided = past_decision(self._transactions, found.producer_id, found.producer_epoch)
        settings, candidates = open_now(topic)
        # Read after the transaction log: what was completed meanwhile is not open any more.
        if decided is None or decided.outcome is not Outcome.COMMIT or found not in candidates:
            return
        if settings.topic_id in decided.topics:
            raise DamagedDataError(
                "the transaction log has committed this transaction, and the partition log has lost its marker: an"
                " abort would take its records away. Stop every writer, run `txntable warehouse verify`, and restore"
                " the newest entries of the partition log",
                topic=topic.name,
                producer_id=found.producer_id,
                producer_epoch=found.producer_epoch,
                position=decided.position,
            )

    def _abort_id(self, transactional_id: str, *, validate_only: bool) -> AbortedTransaction:
        found: list[AbortedTransaction] = []

        def request(row: TransactionMetadata | None, position: int) -> Transition[Decision | None]:
            row = _with_open_transaction(row, transactional_id)
            found[:] = [AbortedTransaction(transactional_id, row.producer_id, row.producer_epoch, OpenEpochStatus.OPEN)]
            if validate_only:
                return Transition(None, None)
            decided = terminate(row, position)
            return Transition(decided.row, decided.answer)

        row = self._transactions.row(transactional_id)
        if row is not None and not validate_only:
            # The decision would take the place of a lost one, which the topics have already.
            require_settled(self._transactions, self._completer.offsets)
            require_decided(self._shown.topic_log(one.name) for one in row.topics.values())
        self._transactions.request("TERMINATE", transactional_id, request)
        if not validate_only:
            self._completer.complete(transactional_id)
        return found[0]

    def _find(self, topic: TopicLog, target: AbortTarget) -> tuple[OpenInPartition, AbortedTransaction]:
        settings, candidates = open_now(topic)
        partition, names = target.partition or 0, (target.producer_id, target.producer_epoch)
        check_partition(settings, partition)
        for one in candidates:
            is_meant = target.start_offset == one.start_offset or names == (one.producer_id, one.producer_epoch)
            if one.partition == partition and is_meant:
                self._transactions.refresh()
                status, row = self._shown.status(settings.topic_id, one)
                transactional_id = None if row is None else row.transactional_id
                return one, AbortedTransaction(transactional_id, one.producer_id, one.producer_epoch, status)
        raise InvalidTxnStateError(
            "no such transaction is open in the partition: it has ended or never existed; describe the partition's"
            " producers to see all",
            topic=topic.name,
            partition=partition,
            start_offset=target.start_offset,
            producer_id=target.producer_id,
            producer_epoch=target.producer_epoch,
        )

    def _end(self, topic: TopicLog, found: OpenInPartition) -> None:
        for _ in range(_ROUNDS):
            settings, candidates = open_now(topic)
            named = {(one.producer_id, one.producer_epoch) for one in candidates}
            if (found.producer_id, found.producer_epoch) not in named:
                return
            self._transactions.refresh()
            topic.require_decided(settings.topic_id)
            status, row = self._shown.status(settings.topic_id, found)
            if row is None or status is OpenEpochStatus.PAST:
                self._require_not_committed(topic, found)
                self._write_abort_marker(topic, settings.topic_id, found)
            else:
                self._decide(row.transactional_id, found)
        raise ConcurrentTransactionsError(
            "other transactions of the topic keep ending; call again",
            topic=topic.name,
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
        )

    def _decide(self, transactional_id: str, found: OpenInPartition) -> None:
        self._transactions.request(
            "TERMINATE",
            transactional_id,
            lambda row, position: terminate_epoch(row, found.producer_id, found.producer_epoch, position),
        )
        self._completer.complete(transactional_id)

    def _write_abort_marker(self, topic: TopicLog, topic_id: str, found: OpenInPartition) -> None:
        """Write the marker at a position of its own: that of a commit of T which decides nothing."""
        position = 0

        def move_on(table: TableState) -> Sequence[Action]:
            nonlocal position
            position = table.next_version
            block = allocate_producer_ids(table.numbers.get(NEXT_PRODUCER_ID), 1)
            return [Txn(NEXT_PRODUCER_ID, block.next_producer_id)]

        log = self._transactions.log
        with log.lock:
            self._transactions.commit("MOVE ON", move_on)
            hanging = HangingEpoch(
                found.producer_id,
                found.producer_epoch,
                position,
                log.table.timestamp_ms,
                self._transactions.coordinator_epoch(),
            )
        self._completer.abort_hanging(topic, topic_id, hanging)

    # -- fence ------------------------------------------------------------------------------

    def fence(self, transactional_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Take ids from their producers."""
        for transactional_id in listed(transactional_ids, "ids"):
            check_name(transactional_id, "a transactional id")
        self._transactions.refresh()
        for transactional_id in transactional_ids:
            row = self._transactions.row(transactional_id)
            if row is not None and row.state is TransactionState.PREPARED:
                raise InvalidTxnStateError(
                    "a transaction is prepared; end it with its token, or abort it first; nothing was fenced",
                    transactional_id=transactional_id,
                )
        fenced = {}
        for transactional_id in dict.fromkeys(transactional_ids):
            identity = self._client.init(transactional_id, None)
            fenced[transactional_id] = (identity.producer_id, identity.producer_epoch)
        return fenced


def _with_open_transaction(row: TransactionMetadata | None, transactional_id: str) -> TransactionMetadata:
    if row is None:
        raise id_not_found(transactional_id)
    if not row.state.is_open:
        raise InvalidTxnStateError(
            "no transaction of the id is open: there is nothing to abort; what is decided waits only for completion"
            if row.state.is_decided
            else "no transaction of the id is open: there is nothing to abort",
            transactional_id=transactional_id,
            state=row.state.value,
        )
    return row

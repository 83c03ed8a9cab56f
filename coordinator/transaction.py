"""The row of a transactional id: what the transaction log keeps of it, and how it moves on (PROTOCOL.md §6.1).

A row is a value.  ``prepare_*`` proposes the row that follows; it is true only once it is durable
at the position it names.  Invariants, checked whenever a row comes to be (from code or from a store):

* a (producer id, epoch) names one transaction: deciding raises the epoch, and the decision keeps
  the epoch that it ended;
* a decided row's decision is of the epoch just below its own;
* something is enrolled exactly while a transaction is open or decided and not complete.

Whether a *request* is to be granted is not known here: see ``txntable.coordinator.transaction_shard``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from txntable.coordinator.batch_memory import BatchId
from txntable.coordinator.decision import Decision, Outcome, decode_decision, encode_decision
from txntable.coordinator.enrolment import Topics, decode_topics, encode_topics, enrolled_union
from txntable.coordinator.errors import DamagedDataError, IllegalStateError, InvalidRequestError
from txntable.coordinator.manifest import NOTHING_CARRIED, Manifest, Segments, decode_segments, encode_segments
from txntable.coordinator.past_decisions import Ended, PastDecisions
from txntable.coordinator.row_json import Fields, check_stored_name, decode_row, encode_key, encode_row
from txntable.coordinator.transaction_state import Operation, TransactionState, next_state

LARGEST_ROW_BYTES = 1024 * 1024
"""Of a row when something is enrolled."""


@dataclass(frozen=True, slots=True)
class TransactionMetadata:
    """The row of one transactional id.

    Attributes
    ----------
    transactional_id : str
        The key.
    producer_id, producer_epoch : int
        Who may act now; while a row is decided, the epoch is already the raised one.
    timeout_ms : int
        The transaction timeout, milliseconds from the first enrolment on.
    state : TransactionState
        Where it stands.
    position : int
        The version of the transaction log that wrote this row.
    topics : Mapping[str, EnrolledTopic]
        What is enrolled, by topic id.
    groups : tuple of str
        Consumer groups whose offsets are part of the transaction, ascending.
    started_position : int, optional
        The position of the first enrolment: the timeout counts from its time.
    manifest : Segments
        While PREPARE_COMMIT: the segments that are to be appended, by topic id.
    decision : Decision, optional
        The last decision; kept until the next one.
    past : PastDecisions
        How the epochs before that of the last decision ended, as far as it is kept.
    prepared_epoch : int, optional
        The newest epoch that was ever prepared: its token may be in an external database.
    token : str, optional
        While PREPARED: who holds it decides.
    batch_id : str or int, optional
        While PREPARED: the batch id to commit; the process that decides may not know it.

    Raises
    ------
    InvalidRequestError
        The transactional id is no valid name.
    DamagedDataError
        The fields contradict one another.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    position: int
    topics: Topics = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    started_position: int | None = None
    manifest: Segments = field(default_factory=dict)
    decision: Decision | None = None
    past: PastDecisions = field(default_factory=PastDecisions)
    prepared_epoch: int | None = None
    token: str | None = None
    batch_id: BatchId | None = None

    def __post_init__(self) -> None:
        check_stored_name(self.transactional_id, "a transactional id")
        for name, holds in _invariants(self).items():
            if not holds:
                raise DamagedDataError(
                    f"a transaction's row contradicts itself: {name}",
                    transactional_id=self.transactional_id,
                    state=self.state.value,
                    position=self.position,
                )

    @property
    def key(self) -> str:
        """The row's key in the transaction log."""
        return encode_key(self.transactional_id)

    def ended(self, epoch: int) -> Ended | None:
        """Return what became of an epoch below the row's; ``None``: it is not known any more."""
        last = self.decision
        if last is None or epoch > last.epoch:
            return Ended.NOTHING
        return _ENDED[last.outcome] if epoch == last.epoch else self.past.ago(last.epoch - epoch)

    def prepare_init(self, timeout_ms: int, position: int) -> TransactionMetadata:
        """Return the row of the next producer: no transaction, under a raised epoch."""
        epoch = self.producer_epoch + 1
        return self._moved(Operation.INIT, position, producer_epoch=epoch, timeout_ms=timeout_ms)

    def prepare_enrol(self, topics: Topics, groups: tuple[str, ...], position: int) -> TransactionMetadata:
        """Return the row with `topics` and `groups` added; a new transaction starts at `position`."""
        return self._moved(
            Operation.ENROL,
            position,
            topics=enrolled_union(self.topics, topics),
            groups=tuple(sorted({*self.groups, *groups})),
            started_position=position if self.started_position is None else self.started_position,
        )

    def prepare_token(self, token: str, batch_id: BatchId | None, position: int) -> TransactionMetadata:
        """Return the row prepared for a two-phase commit with `token`."""
        return self._moved(
            Operation.PREPARE,
            position,
            token=token,
            batch_id=batch_id,
            prepared_epoch=self.producer_epoch,
            started_position=position if self.started_position is None else self.started_position,
        )

    def prepare_decision(
        self, operation: Operation, decision: Decision, manifest: Manifest = NOTHING_CARRIED
    ) -> TransactionMetadata:
        """Return the row that takes `decision` at its position, under a raised epoch, with what it carries."""
        started = decision.position if manifest and self.started_position is None else self.started_position
        return self._moved(
            operation,
            decision.position,
            topics=enrolled_union(self.topics, manifest.topics),
            started_position=started,
            manifest=manifest.segments,
            producer_epoch=decision.next_epoch,
            decision=decision,
            past=self._past_below(decision.epoch),
            token=None,
            batch_id=None,
        )

    def decided(self, outcome: Outcome, batch_id: BatchId | None, position: int) -> Decision:
        """Return a decision of the row's epoch."""
        return Decision(self.producer_epoch, outcome, position, batch_id)

    def _past_below(self, epoch: int) -> PastDecisions:
        """Return the past as it is once `epoch` is decided."""
        last = self.decision
        if last is None:
            return self.past.followed_by(Ended.NOTHING, epoch)
        return self.past.followed_by(_ENDED[last.outcome]).followed_by(Ended.NOTHING, epoch - last.epoch - 1)

    def prepare_complete(self, position: int) -> TransactionMetadata:
        """Return the row of the same decision with nothing owed."""
        return self._moved(Operation.COMPLETE, position, topics={}, groups=(), started_position=None, manifest={})

    def known_complete(self) -> TransactionMetadata:
        """Return the row as COMPLETE would leave it, at the position that it has.

        For whoever has seen that nothing is owed of the decision any more (§6.4): the id's next entry is decided on it.
        """
        state = next_state(self.state, Operation.COMPLETE)
        return replace(self, state=state, topics={}, groups=(), started_position=None, manifest={})

    def prepare_expire(self, position: int) -> TransactionMetadata:
        """Return the dead row: an order to remove the key, never stored itself."""
        return self._moved(Operation.EXPIRE, position)

    def _moved(self, operation: Operation, position: int, **changes: Any) -> TransactionMetadata:
        state = next_state(self.state, operation)
        if position <= self.position:
            raise IllegalStateError(
                "a row can only be written above the version that it was read from: read the log again",
                position=position,
                read=self.position,
            )
        return replace(self, state=state, position=position, **changes)

    def to_json(self) -> str:
        """Return the stored form (column ``_row``).

        Raises
        ------
        IllegalStateError
            The row is dead: remove its key instead.
        """
        if self.state is TransactionState.DEAD:
            raise IllegalStateError("a dead row is removed, not written", transactional_id=self.transactional_id)
        decision = self.decision
        return encode_row(
            {
                "transactional_id": self.transactional_id,
                "producer_id": self.producer_id,
                "producer_epoch": self.producer_epoch,
                "timeout_ms": self.timeout_ms,
                "state": self.state.value,
                "partitions": encode_topics(self.topics) or None,
                "groups": list(self.groups) or None,
                "started_position": self.started_position,
                "manifest": encode_segments(self.manifest) or None,
                "decision": None if decision is None else encode_decision(decision),
                "past": str(self.past) or None,
                "prepared_epoch": self.prepared_epoch,
                "token": self.token,
                "batch_id": self.batch_id,
                "position": self.position,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> TransactionMetadata:
        """Return the row that `text` stores.

        Raises
        ------
        DamagedDataError
            It contradicts the format or itself.
        UnsupportedFormatError
            It is of a format that this version does not know.
        """
        fields = decode_row(text, _WHAT, _REQUIRED, _OPTIONAL)
        decision, past, manifest = fields.pop("decision"), fields.pop("past"), fields.pop("manifest")
        try:
            return cls(
                state=_decode_state(fields.pop("state")),
                topics=decode_topics(fields.pop("partitions") or {}, _WHAT),
                groups=_decode_groups(fields.pop("groups") or []),
                manifest=decode_segments(manifest or {}, _WHAT),
                decision=None if decision is None else decode_decision(decision, _WHAT),
                past=PastDecisions.parse(past or ""),
                **fields,
            )
        except InvalidRequestError as error:
            raise DamagedDataError("a stored row holds a name that no call accepts", row=_WHAT) from error


def first_row(transactional_id: str, producer_id: int, timeout_ms: int, position: int) -> TransactionMetadata:
    """Return the first row of an id: EMPTY under epoch 0."""
    return TransactionMetadata(transactional_id, producer_id, 0, timeout_ms, TransactionState.EMPTY, position)


_WHAT = "transactional id"
_REQUIRED: Fields = {
    "transactional_id": str,
    "producer_id": int,
    "producer_epoch": int,
    "timeout_ms": int,
    "state": str,
    "position": int,
}
_OPTIONAL: Fields = {
    "partitions": dict,
    "groups": list,
    "started_position": int,
    "manifest": dict,
    "decision": dict,
    "past": str,
    "prepared_epoch": int,
    "token": str,
    "batch_id": (str, int),
}
_ENDED = {Outcome.COMMIT: Ended.COMMITTED, Outcome.ABORT: Ended.ABORTED}
_DECIDED_OUTCOME = {
    TransactionState.PREPARE_COMMIT: Outcome.COMMIT,
    TransactionState.COMPLETE_COMMIT: Outcome.COMMIT,
    TransactionState.PREPARE_ABORT: Outcome.ABORT,
    TransactionState.COMPLETE_ABORT: Outcome.ABORT,
}


def _invariants(row: TransactionMetadata) -> dict[str, bool]:
    """Return what must hold of a row, each with whether it does."""
    state, decision = row.state, row.decision
    enrolled, busy = bool(row.topics or row.groups), state.is_open or state.is_decided
    lasts = decision is not None and decision.next_epoch == row.producer_epoch
    return {
        "ids, epochs and positions are not negative, the timeout is positive": (
            min(row.producer_id, row.producer_epoch, row.position) >= 0 and row.timeout_ms > 0
        ),
        "groups are ascending, none twice": list(row.groups) == sorted(set(row.groups)),
        "only a transaction under way has partitions or groups": busy or not enrolled,
        "an ongoing transaction has partitions or groups": enrolled or state is not TransactionState.ONGOING,
        "a transaction under way, and no other, has a started position": busy == (row.started_position is not None),
        "only a transaction that is to be committed has a manifest": not row.manifest
        or state is TransactionState.PREPARE_COMMIT,
        "what a manifest appends is of enrolled partitions": all(
            topic_id in row.topics and row.topics[topic_id].partitions.issuperset(one.partition for one in segments)
            for topic_id, segments in row.manifest.items()
        ),
        "a prepared transaction, and no other, has a token": (state is TransactionState.PREPARED) == bool(row.token),
        "only a prepared transaction has a batch id of its own": row.batch_id is None or row.token is not None,
        "a decision is of an epoch below the row's": decision is None or 0 <= decision.epoch < row.producer_epoch,
        "the past ends below the last decision": row.past.epochs <= (0 if decision is None else decision.epoch),
        "what is prepared is of the row's epoch, and what was, of none above": row.prepared_epoch == row.producer_epoch
        if state is TransactionState.PREPARED
        else 0 <= (row.prepared_epoch or 0) <= row.producer_epoch,
        "no position is above the row's": max(row.started_position or 0, 0 if decision is None else decision.position)
        <= row.position,
        "a decided state is that of the last epoch's decision": state not in _DECIDED_OUTCOME
        or (decision is not None and lasts and decision.outcome is _DECIDED_OUTCOME[state]),
        "a decided row that is owed markers stands at its decision position": not state.is_decided
        or (decision is not None and decision.position == row.position),
    }


def _decode_state(name: str) -> TransactionState:
    if name not in TransactionState.__members__ or name == TransactionState.DEAD.name:
        raise DamagedDataError("a stored row has an unknown state", row=_WHAT, state=name)
    return TransactionState[name]


def _decode_groups(document: list[str]) -> tuple[str, ...]:
    return tuple(check_stored_name(group, "a group") for group in document)

"""Any order of requests, by any number of producers: what must hold all the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from txntable.coordinator.batch_memory import BatchId, BatchMemory, BatchRow, batch_key
from txntable.coordinator.decision import Decision, Outcome, PastDecision
from txntable.coordinator.enrolment import EnrolledTopic
from txntable.coordinator.errors import DamagedDataError, IllegalStateError, TxnTableError
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_request import (
    EndRequest,
    EnrolRequest,
    InitRequest,
    PrepareRequest,
    ProducerIdentity,
    Transition,
)
from txntable.coordinator.transaction_shard import carried_batch, end, enrol, init_producer, prepare
from txntable.coordinator.transaction_state import VALID_TRANSITIONS
from txntable.coordinator.transaction_state import TransactionState as S
from txntable.coordinator.transaction_upkeep import complete, expire, terminate, time_out

T = TypeVar("T")
_TOPICS = {name: {name * 32: EnrolledTopic(name, frozenset({0, 1}))} for name in ("a", "b")}
_WHO = st.sampled_from([0, 0, 0, 0, 1, 2, 3])
_EDGES = {(source, target) for (source, _), target in VALID_TRANSITIONS.items()}


class TransactionalId(RuleBasedStateMachine):
    """One transactional id, its log of rows, and producers that forget, repeat and invent requests."""

    def __init__(self) -> None:
        super().__init__()
        self.row: TransactionMetadata | None = None
        self.head = 0
        self.next_producer_id = 0
        self.known: list[tuple[int, int]] = [(0, 0)]
        self.decided: dict[tuple[int, int], Decision] = {}
        self.batches: dict[str, BatchRow] = {}
        self.ends: list[EndRequest] = []

    def _ask(self, request: Callable[[int], Transition[T]]) -> T | None:
        """Decide at the next slot and apply, as the log would; an error must leave everything as it was."""
        before, copy = self.row, None if self.row is None else replace(self.row)
        try:
            transition = request(self.head + 1)
        except (DamagedDataError, IllegalStateError):
            raise  # no request may make a row that contradicts itself
        except TxnTableError:
            assert before == copy
            return None
        assert before == copy
        if transition.row is not None:
            self._write(transition)
        return transition.answer

    def _write(self, transition: Transition[T]) -> None:
        old, new = self.row, transition.row
        assert new is not None
        self.head += 1
        assert new.position == self.head
        if old is None:
            assert (new.state, new.producer_epoch, new.producer_id) == (S.EMPTY, 0, self.next_producer_id)
            assert transition.next_producer_id is not None
            self.next_producer_id = transition.next_producer_id
        else:
            assert (old.state, new.state) in _EDGES
            assert new.producer_id == old.producer_id
            assert new.producer_epoch >= old.producer_epoch
            self._record_decision(old, new)
        if transition.batch_row is not None:
            self.batches[transition.batch_row.key] = transition.batch_row
        self.row = None if new.state is S.DEAD else new

    def _record_decision(self, old: TransactionMetadata, new: TransactionMetadata) -> None:
        if new.decision == old.decision:
            return
        assert new.decision is not None
        transaction = (new.producer_id, new.decision.epoch)
        assert transaction not in self.decided, "a transaction was decided twice"
        assert new.decision.epoch == old.producer_epoch
        assert new.decision.position == self.head
        self.decided[transaction] = new.decision

    @initialize()
    def first_producer(self) -> None:
        self.init(keep_prepared=False, expected=False)

    @rule(keep_prepared=st.booleans(), expected=st.booleans())
    def init(self, keep_prepared: bool, expected: bool) -> None:
        who = self.known[-1] if expected else None
        request = InitRequest("etl", self.next_producer_id, 1_000, 1, keep_prepared=keep_prepared, expected=who)
        answer = self._ask(lambda slot: init_producer(self.row, replace(request, position=slot)))
        if isinstance(answer, ProducerIdentity):
            self.known.append((answer.producer_id, answer.producer_epoch))

    @rule(which=_WHO, topic=st.sampled_from(["a", "b"]), groups=st.sampled_from([(), ("g",)]))
    def enrol(self, which: int, topic: str, groups: tuple[str, ...]) -> None:
        producer_id, epoch = self._producer(which)
        topics = _TOPICS[topic]
        decided = self.row is not None and self.row.state.is_decided
        answer = self._ask(lambda slot: enrol(self.row, EnrolRequest(producer_id, epoch, slot, topics, groups)))
        assert answer is None or (answer == self.row and not decided)

    @rule(which=_WHO, token=st.sampled_from(["t", "u"]), batch_id=st.sampled_from([None, "run", 1]))
    def prepare(self, which: int, token: str, batch_id: BatchId | None) -> None:
        producer_id, epoch = self._producer(which)
        self._ask(lambda slot: prepare(self.row, PrepareRequest(producer_id, epoch, token, slot, batch_id)))

    @rule(
        which=_WHO,
        ahead=st.sampled_from([0, 0, 0, 1]),
        outcome=st.sampled_from(Outcome),
        token=st.sampled_from([None, None, "t", "u"]),
        batch_id=st.sampled_from([None, None, "run", 1, 2]),
    )
    def end(self, which: int, ahead: int, outcome: Outcome, token: str | None, batch_id: BatchId | None) -> None:
        producer_id, epoch = self._producer(which)
        self._end(EndRequest(producer_id, epoch + ahead, outcome, 1, token, batch_id))

    @precondition(lambda self: self.ends)
    @rule(data=st.data())
    def repeat_an_old_end(self, data: st.DataObject) -> None:
        self._end(data.draw(st.sampled_from(self.ends)))

    def _end(self, request: EndRequest) -> None:
        transaction, remembered = (request.producer_id, request.epoch), dict(self.batches)
        before, row = self.decided.get(transaction), self.row
        batch_id = carried_batch(row, ProducerIdentity(*transaction), request.batch_id)
        asked = replace(request, batch_id=batch_id, memory=self._memory(batch_id))
        answer = self._ask(lambda slot: end(self.row, replace(asked, position=slot)))
        if row is not None and before is not None and row.producer_id == request.producer_id:
            self._check_retry(row, before, request, answer)
        if answer is None:
            return
        assert answer.outcome is request.outcome
        assert before is not None or row is None or row.token == request.token, "a token was not asked for"
        known = self.decided[transaction]
        assert answer in {known, PastDecision(known.epoch, known.outcome)}, "a retry must get the first answer"
        if isinstance(answer, PastDecision):
            return
        if before is None and answer.outcome is Outcome.COMMIT:
            assert all(known.batch_id != answer.batch_id for known in remembered.values()), "a batch committed twice"
            assert row is None or row.batch_id is None or answer.batch_id is not None, "a prepared batch was lost"
        self.ends.append(request)
        self.known.append((request.producer_id, answer.next_epoch))

    def _memory(self, batch_id: BatchId | None) -> BatchMemory:
        known = None if batch_id is None else self.batches.get(batch_key("etl", batch_id))
        if known is None:
            return BatchMemory()
        last = known.batch_id if isinstance(known.batch_id, int) else None
        return BatchMemory(last, last is None, (known.producer_id, known.epoch))

    def _check_retry(
        self, row: TransactionMetadata, before: Decision, request: EndRequest, answer: Decision | PastDecision | None
    ) -> None:
        """Check that a retry that the row can answer is answered, and that no zombie is told to go on."""
        superseded = row.producer_epoch != before.next_epoch
        if before.outcome is not request.outcome:
            assert answer is None
        elif request.outcome is Outcome.COMMIT or not superseded:
            assert answer is not None
        elif request.token is None:
            assert answer is None

    @precondition(lambda self: self.row is not None)
    @rule(elapsed_ms=st.sampled_from([None, 1_000, 1_001]))
    def time_out(self, elapsed_ms: int | None) -> None:
        row = self._present()
        answer = self._ask(lambda slot: time_out(row, elapsed_ms, slot))
        assert (answer is not None) == (row.state is S.ONGOING and elapsed_ms != 1_000)

    @precondition(lambda self: self.row is not None)
    @rule()
    def terminate(self) -> None:
        row = self._present()
        self._ask(lambda slot: terminate(row, slot))

    @rule(ago=st.integers(0, 3))
    def complete(self, ago: int) -> None:
        positions = sorted(decision.position for decision in self.decided.values())
        position = positions[-1 - ago] if ago < len(positions) else 0
        owed = self.row is not None and self.row.state.is_decided
        self._ask(lambda slot: complete(self.row, position, slot))
        if owed and ago > 0:
            assert self.row is not None
            assert self.row.state.is_decided, "a late completer completed another decision"

    @precondition(lambda self: self.row is not None)
    @rule(idle_ms=st.sampled_from([None, 1, 10]))
    def expire(self, idle_ms: int | None) -> None:
        row = self._present()
        self._ask(lambda slot: expire(row, idle_ms, 10, slot))

    @invariant()
    def row_reads_as_written(self) -> None:
        assert self.row is None or TransactionMetadata.from_json(self.row.to_json()) == self.row

    @invariant()
    def integers_and_names_are_remembered_apart(self) -> None:
        for key, row in self.batches.items():
            assert BatchRow.from_json(row.to_json()) == row
            assert row.key == key

    def _producer(self, which: int) -> tuple[int, int]:
        return self.known[-1 - min(which, len(self.known) - 1)]

    def _present(self) -> TransactionMetadata:
        assert self.row is not None
        return self.row


TransactionalId.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestTransactionalId = TransactionalId.TestCase

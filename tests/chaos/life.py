"""One process of a chaos run, from its start until it is killed or told to stop; and clients that record their calls.

Owns what a call's record says where its answer was lost on the way: it is asked again, and a refusal after that
leaves it unknown.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from tests.chaos.premises import SESSION_TIMEOUT_MS, Site
from tests.chaos.scenarios import scenario_of
from tests.checker.operations import (
    CommitOffsets,
    End,
    Init,
    Join,
    Level,
    Outcome,
    Place,
    Poll,
    Rewind,
    Seen,
    Send,
    Write,
)
from tests.checker.recorder import Recorder
from txntable.consumer.rebalance_listener import ConsumerRebalanceListener
from txntable.coordinator.batch_memory import BatchId
from txntable.errors import (
    CommitStateUnknownError,
    DamagedDataError,
    InvalidProducerEpochError,
    ProducerFencedError,
    RetriableError,
    TxnTableError,
)
from txntable.format.records import RecordMetadata, TopicPartition
from txntable.offsets.group_commit import OffsetAndMetadata
from txntable.producer.producer import Producer
from txntable.runtime.environment import SystemEnvironment
from txntable.warehouse.warehouse import Warehouse

DEAD = "dead@"
_TRIES = 10
_POLL_MS = 300


class Life:
    """What a program has of its process.

    Parameters
    ----------
    name : str
        Of this life, unique in the run: a process that takes a killed one's place has another.
    warehouse : Warehouse
        Of its own.
    recorder : Recorder
        Writes its history.
    site : Site
        The run's.

    Attributes
    ----------
    stopping : bool
        It is to end after what it is at.
    """

    def __init__(self, name: str, warehouse: Warehouse, recorder: Recorder, site: Site) -> None:
        self.name, self.warehouse, self.recorder, self.site = name, warehouse, recorder, site
        self.scenario = scenario_of(site)
        self.chance = random.Random(f"{site.seed} {name}")
        self.environment = SystemEnvironment()
        self.stopping = False
        self._labels = itertools.count()

    def of_thread(self, name: str) -> Life:
        """Return the life of a thread of the process: it has the same handle."""
        return Life(f"{self.name}-{name}", self.warehouse, self.recorder.of_thread(name), self.site)

    def label(self) -> str:
        """Return a text that is unique in the run."""
        return f"{self.name}/{next(self._labels)}"

    def time_of_death(self) -> int:
        """Return a time that no other tombstone of the run has."""
        died_ms = self.environment.instant().wall_ms
        while True:
            try:
                (Path(self.site.folder) / f"{DEAD}{died_ms}").touch(exist_ok=False)
            except FileExistsError:
                died_ms += 1
            else:
                return died_ms

    def rest(self, longest_ms: float) -> None:
        """Let the others go on."""
        self.environment.sleep_ms(self.chance.uniform(0, longest_ms) * self.scenario.rests)

    def insist(self, call: Callable[[], object]) -> None:
        """Make a call again for as long as that is what its error says.

        Raises
        ------
        CommitStateUnknownError
            It was refused after an answer had been lost: nobody knows.
        """
        doubted: RetriableError | None = None
        for _ in range(_TRIES):
            try:
                call()
            except RetriableError as error:
                doubted = error
                self.rest(200)
            except DamagedDataError:
                raise
            except TxnTableError as error:
                if doubted is None:
                    raise
                raise CommitStateUnknownError(
                    "refused after an answer was lost; begin anew", code=error.code
                ) from error
            else:
                return
        assert doubted is not None
        raise doubted


class RecordedProducer:
    """A producer whose calls are in the history.

    Attributes
    ----------
    txn : str or None
        The history's name of its transaction, while there is one.
    """

    def __init__(self, life: Life, transactional_id: str | None = None, *, idempotent: bool = True) -> None:
        self._life, self.transactional_id = life, transactional_id
        self.client = life.label()
        self.txn: str | None = None
        self._took_over = False
        self.real: Producer = life.warehouse.producer(
            transactional_id,
            transaction_timeout_ms=life.scenario.transaction_timeout_ms,
            enable_idempotence=idempotent,
        )

    def init(self, *, keep_prepared: bool = False) -> None:
        """Take the transactional id."""
        assert self.transactional_id is not None
        with self._life.recorder.calling(Init(self.transactional_id)) as call:
            self._life.insist(lambda: self.real.init_transactions(keep_prepared=keep_prepared))
            # Of a prepared one nothing tells but what it may do now.
            self._took_over = self.real.state == "PREPARED_TRANSACTION"
            call.saw(producer_id=self.real.producer_id, epoch=self.real.producer_epoch, kept=self._took_over)

    def begin(self, batch: BatchId | None = None) -> None:
        """Begin a transaction, and init before it if a prepared one was taken over; its name ends with its batch."""
        if self._took_over:
            assert self.transactional_id is not None
            with self._life.recorder.calling(Init(self.transactional_id)) as call:
                self._life.insist(lambda: self.real.begin_transaction(batch))
                call.saw(producer_id=self.real.producer_id, epoch=self.real.producer_epoch)
            self._took_over = False
        else:
            self._life.insist(lambda: self.real.begin_transaction(batch))
        self.txn = self._life.label() if batch is None else f"{self._life.label()} {batch!r}"

    def append(self, writes: Sequence[Write], then: Callable[[], None] | None = None) -> None:
        """Send records, and have them in the log: by a flush, or by what is done next, whose record lies within.

        Raises
        ------
        CommitStateUnknownError
            It failed, and some of them may be there: a flush is one append for each topic.
        TxnTableError
            None of them is there.
        """
        send = Send(self.client, self.txn, tuple(writes), self.real.producer_id, self.real.producer_epoch)
        with self._life.recorder.calling(send) as call:
            try:
                sent = [self._sent(write) for write in writes]
                call.saw(producer_id=self.real.producer_id, epoch=self.real.producer_epoch)
                (then or self._flush)()
            except DamagedDataError:
                raise
            except TxnTableError as error:
                if then is None and len({write.place[0] for write in writes}) == 1:
                    raise
                raise CommitStateUnknownError("a part may be appended; abort", code=error.code) from error
            if all(found.is_delivered for found in sent):
                pairs = zip(writes, sent, strict=True)
                call.saw(writes=tuple(replace(write, offset=found.offset) for write, found in pairs))
            else:
                # What was not sent when the transaction was aborted.
                call.outcome = Outcome.FAIL

    def _sent(self, write: Write) -> RecordMetadata:
        topic, partition = write.place
        key = None if write.key is None else write.key.encode()
        if write.dead:
            died_ms = int(write.value.removeprefix(DEAD))
            return self.real.send(topic, None, key=key, partition=partition, timestamp_ms=died_ms)
        return self.real.send(topic, write.value.encode(), key=key, partition=partition)

    def _flush(self) -> None:
        if self.real.config.enable_idempotence:
            self._life.insist(self.real.flush)
        else:
            # At least once: a second try would be a second record.
            self.real.flush()

    def send_offsets(self, offsets: CommitOffsets, call: Callable[[], None]) -> None:
        """Let the transaction commit a group's offsets."""
        with self._life.recorder.calling(offsets):
            self._life.insist(call)

    def commit(self) -> None:
        """Commit the transaction."""
        self._end(commit=True)

    def abort(self) -> None:
        """Abort the transaction."""
        self._end(commit=False)

    def prepare(self) -> str:
        """Prepare the transaction, and return its token."""
        token: list[str] = []
        self._life.insist(lambda: token.append(self.real.prepare_transaction()))
        return token[-1]

    def complete(self, token: str | None, txn: str | None, *, commit: bool) -> None:
        """End a prepared transaction by a token; `txn` is what is known to end so, if anything."""
        if txn is None:
            self._life.insist(lambda: self.real.complete_transaction(token))
            return
        with self._life.recorder.calling(End(txn, commit, None, self.transactional_id)):
            try:
                self._life.insist(lambda: self.real.complete_transaction(token))
            except (ProducerFencedError, InvalidProducerEpochError) as error:
                raise CommitStateUnknownError("another process has the id, and ends it", code=error.code) from error

    def _end(self, *, commit: bool) -> None:
        assert self.txn is not None
        identity = (self.transactional_id, self.real.producer_id, self.real.producer_epoch)
        with self._life.recorder.calling(End(self.txn, commit, None, *identity)):
            self._life.insist(self.real.commit_transaction if commit else self.real.abort_transaction)
        self.txn = None


class _Moves(ConsumerRebalanceListener):
    """Counts whenever positions may have moved otherwise than by a poll."""

    def __init__(self) -> None:
        self.count = 0

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.count += 1

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.count += 1


class RecordedConsumer:
    """A consumer whose calls are in the history: a member of a group, or one that follows topics from their starts."""

    def __init__(
        self,
        life: Life,
        topics: Sequence[str],
        group: str | None = None,
        level: Level = Level.COMMITTED,
        instance_id: str | None = None,
    ) -> None:
        self._life, self.group, self.level = life, group, level
        self.client, self._moves, self._known = life.label(), _Moves(), ("", 0)
        self.real = life.warehouse.consumer(
            group_id=group,
            group_instance_id=instance_id,
            isolation_level=level.value,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=1_000,
            default_api_timeout_ms=2_000,
        )
        self.real.subscribe(list(topics), listener=self._moves)

    def poll(self, most: int, txn: str | None = None) -> tuple[Seen, ...]:
        """Return the next records."""
        with self._life.recorder.calling(Poll(self.client, self._moves.count, txn=txn, level=self.level)) as call:
            polled = self.real.poll(timeout_ms=_POLL_MS, max_records=most)
            records = tuple(
                Seen((record.topic, record.partition), record.offset, value_of(record.value, record.timestamp_ms))
                for record in itertools.chain.from_iterable(polled.values())
            )
            call.saw(records=records, assignment=self._moves.count)
        self._note_generation()
        return records

    def _note_generation(self) -> None:
        if self.group is None:
            return
        metadata = self.real.group_metadata()
        if metadata.member_id and (metadata.member_id, metadata.generation) != self._known:
            self._known = (metadata.member_id, metadata.generation)
            owned = frozenset((each.topic, each.partition) for each in self.real.assignment())
            with self._life.recorder.calling(Join(self.group, *self._known, owned)):
                pass

    def offsets_after(self, records: Sequence[Seen], txn: str | None = None) -> CommitOffsets:
        """Return the commit of what was polled."""
        assert self.group is not None
        ends: dict[Place, int] = {record.place: record.offset + 1 for record in records}
        return CommitOffsets(self.group, ends, txn, *self._known)

    def commit(self, records: Sequence[Seen]) -> None:
        """Commit the offsets of what was polled, without a transaction."""
        offsets = self.offsets_after(records)
        with self._life.recorder.calling(offsets):
            self._life.insist(lambda: self.real.commit(as_offsets(offsets)))

    def rewind(self) -> None:
        """Go back to what the group has committed."""
        assert self.group is not None
        with self._life.recorder.calling(Rewind(self.client, self.group)):
            self.real.seek_to_committed()
        self._moves.count += 1


def value_of(value: bytes | None, timestamp_ms: int) -> str:
    """Return what tells a record from all others: of a tombstone its time."""
    return f"{DEAD}{timestamp_ms}" if value is None else value.decode()


def as_offsets(commit: CommitOffsets) -> dict[TopicPartition, OffsetAndMetadata | int]:
    """Return offsets as clients take them."""
    return {TopicPartition(*place): offset for place, offset in commit.offsets.items()}

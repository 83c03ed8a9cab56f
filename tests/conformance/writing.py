"""What writers of the product put into a warehouse in memory, one step at a time.

Must not know what any case expects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from tests.conformance import written
from tests.conformance.naming import ROOTS, TOPIC
from tests.conformance.product import (
    AppendRequest,
    Completer,
    CoordinatorClient,
    Ending,
    EnrolledTopic,
    EnrolRequest,
    GroupCommit,
    LogContext,
    Manifest,
    ManualEnvironment,
    MemoryObjects,
    MemoryStore,
    NewOffset,
    OffsetLog,
    OffsetTransaction,
    Outcome,
    ProducerEpoch,
    ProducerIdentity,
    SegmentPlan,
    SegmentWriter,
    SequencedSegment,
    StagedSegment,
    StoreClock,
    StoreTime,
    TopicLog,
    TransactionLog,
    TxnTableError,
    enrol,
    key,
    manifest_of,
)

_LONGEST_TIMEOUT_MS = 900_000


class Writer:
    """A process that writes to a warehouse at a time of the store that stands still.

    Parameters
    ----------
    objects : Mapping of str to bytes
        The warehouse's, by path.
    now_ms : int
        The store's time.
    seed : int
        Of its ids: no two writers of one warehouse have the same.
    """

    def __init__(self, objects: Mapping[str, bytes], now_ms: int, seed: int = 0) -> None:
        environment = ManualEnvironment(seed, now_ms)
        self._given, self._now_ms = dict(objects), now_ms
        self._stored = MemoryObjects(StoreTime(environment, now_ms))
        for path, data in objects.items():
            self._stored.put(path, data)
        self._store = MemoryStore(self._stored)
        context = LogContext(self._store, environment, StoreClock(self._store, environment))
        self._transactions = TransactionLog(context)
        topic_log = lru_cache(lambda name: TopicLog(context, name))
        self._topic = topic_log(TOPIC)
        self._completer = Completer(self._transactions, topic_log, OffsetLog(context))
        self._client = CoordinatorClient(self._completer, topic_log, _LONGEST_TIMEOUT_MS)
        self._new_id = environment.new_id

    def does(self, step: Mapping[str, Any]) -> Any:
        """Take a step; return what it put, or the error that refuses it."""
        steps: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
            "init": lambda s: self._client.init(s["id"], s["timeout_ms"]),
            "enrol": self._enrol,
            "append": self._append,
            "send offsets": self._send_offsets,
            "prepare": lambda s: self._client.prepare(
                s["id"], ProducerEpoch(*s["producer"]), s["token"], s["batch_id"]
            ),
            "end": self._end,
            "complete": lambda _: self._completer.complete_decided(),
        }
        try:
            steps[step["step"]](step)
        except TxnTableError as error:
            return {"refused": error.code}
        return written.put(self._given, self.objects(), ROOTS)

    def objects(self) -> dict[str, bytes]:
        """Return the warehouse's objects by path."""
        return {path: stored.data for path, stored in self._stored.snapshot().items()}

    def _enrol(self, step: Mapping[str, Any]) -> object:
        settings = self._topic.settings()
        partitions = frozenset(step["partitions"])
        topics = {settings.topic_id: EnrolledTopic(TOPIC, partitions)} if partitions else {}

        def request(row: Any, position: int) -> Any:
            producer_id, epoch = step["producer"]
            return enrol(row, EnrolRequest(producer_id, epoch, position, topics, tuple(step["groups"])))

        return self._transactions.request("ENROL", step["id"], request)

    def _append(self, step: Mapping[str, Any]) -> object:
        settings, producer = self._topic.settings(), ProducerEpoch(*step["producer"])
        staged = self._staged(step["producer"], step)
        partitions = frozenset(one.segment.partition for one in staged)
        verify = self._client.verifier(step["id"], producer)(settings.topic_id, partitions)
        return self._topic.append(AppendRequest(settings.topic_id, producer, True, staged), verify)

    def _staged(self, producer: Sequence[int], batch: Mapping[str, Any]) -> tuple[SequencedSegment, ...]:
        """Upload rows."""
        settings = self._topic.settings()
        rows = pa.RecordBatch.from_pylist(batch["rows"], settings.schema)
        partitions: Sequence[int] = [batch["partition"]] * rows.num_rows
        if batch["partition"] is None:
            partitions = key.partitions_of(rows, settings.key, settings.partitions).to_pylist()
        plan = SegmentPlan(ROOTS["S"], settings, (producer[0], producer[1]), self._now_ms)
        uploads = [
            self._upload(plan, number, rows, partitions, keyed=batch["partition"] is None)
            for number in sorted(set(partitions))
        ]
        return tuple(SequencedSegment(each, batch.get("first_sequence", 0)) for each in uploads)

    def _upload(
        self, plan: SegmentPlan, number: int, rows: pa.RecordBatch, partitions: Sequence[int], *, keyed: bool
    ) -> StagedSegment:
        writer = SegmentWriter(self._store, plan, number, self._new_id(), keyed=keyed)
        writer.write(rows.filter(pa.array([partition == number for partition in partitions])))
        return writer.close()

    def _send_offsets(self, step: Mapping[str, Any]) -> None:
        topic_id = self._topic.settings().topic_id
        offsets = {(TOPIC, int(number)): NewOffset(offset, topic_id) for number, offset in step["offsets"].items()}
        transaction = OffsetTransaction(step["id"], *step["producer"])
        self._client.send_offsets(transaction, GroupCommit(step["group"], offsets))

    def _end(self, step: Mapping[str, Any]) -> object:
        producer_id, epoch = step["producer"]
        who = ProducerIdentity(producer_id, epoch, step["token"])
        ending = Ending(Outcome[step["outcome"]], step["batch_id"])
        if "carries" in step:
            ending = replace(ending, manifest=self._carried(step))
        return self._client.end(step["id"], who, ending)

    def _carried(self, step: Mapping[str, Any]) -> Manifest:
        """Upload what the decision is to carry, and ask the topic what it would refuse."""
        topic_id, producer = self._topic.settings().topic_id, ProducerEpoch(*step["producer"])
        staged = tuple(one for batch in step["carries"] for one in self._staged(step["producer"], batch))
        self._topic.segments.refresh()
        self._topic.prepare_marker(topic_id, producer)
        self._topic.check_append(AppendRequest(topic_id, producer, True, staged))
        manifest = manifest_of(producer, {topic_id: TOPIC}, {topic_id: staged})
        assert manifest is not None
        return manifest

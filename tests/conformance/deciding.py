"""What writers of the product decide: appends, ends of transactions, settled and fenced offsets, as plain JSON values.

Must not know what any case expects.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.conformance.logs import Log
from tests.conformance.product import (
    AppendRequest,
    BatchMemory,
    Decision,
    EndRequest,
    GroupMetadata,
    GroupRow,
    Manifest,
    OffsetRow,
    Outcome,
    ProducerEpoch,
    SequencedSegment,
    StagedSegment,
    TransactionMetadata,
    TxnTableError,
    actions,
    check_member,
    decide_append,
    decode_segments,
    end,
    layout,
    settle,
)


def refusal_of_commit(
    row: str | None, metadata: Mapping[str, Any] | None, partitions: Sequence[tuple[str, int]], transactional: bool
) -> str | None:
    """Return the error that refuses a commit of offsets, by its name in Kafka; ``None``: it is accepted."""
    group = None if row is None else GroupRow.from_json(row)
    frozen = None
    if metadata is not None:
        said = metadata["ownership"]
        ownership = None if said is None else {(topic, partition): epoch for topic, partition, epoch in said}
        frozen = GroupMetadata(
            "readers", metadata["member_id"], metadata["generation"], metadata["instance_id"], ownership
        )
    try:
        check_member(group, frozen, [(topic, number) for topic, number in partitions], transactional=transactional)
    except TxnTableError as error:
        return error.code
    return None


def append_to(log: Log, request: Mapping[str, Any]) -> Any:
    """Return the answer to an append: base offsets, and those that a commit assigns; or the error that refuses it."""
    table = log.view.refresh()
    producer = request["producer"]
    segments = tuple(
        SequencedSegment(
            StagedSegment(
                path=layout.segment_path(
                    request["topic_id"], one["partition"], None if producer is None else tuple(producer), one["name"]
                ),
                partition=one["partition"],
                records=one["records"],
                size=900,
                stats="{}",
                first_timestamp_ms=0,
                max_timestamp_ms=0,
                partition_count=one["partition_count"],
                uploaded_at_ms=one["uploaded_at"],
                digest="sha256:" + "0" * 64,
            ),
            one["first_sequence"],
        )
        for one in request["segments"]
    )
    who = None if producer is None else ProducerEpoch(*producer)
    asked = AppendRequest(request["topic_id"], who, request["transactional"], segments)
    try:
        decided = decide_append(log.view.fold, table, asked, request["now_ms"])
    except TxnTableError as error:
        return {"refused": error.code}
    numbers = {action.app_id: action.version for action in decided.actions if isinstance(action, actions.Txn)}
    adds = sum(isinstance(action, actions.Add) for action in decided.actions)
    return {"base_offsets": list(decided.base_offsets), "written": adds, "numbers": numbers}


def end_of(row: str | None, request: Mapping[str, Any]) -> Any:
    """Return the answer to an end of a transaction: how it ended, and whether a row is written; or the error."""
    found = None if row is None else TransactionMetadata.from_json(row)
    memory, carries = request["memory"], request.get("carries")
    asked = EndRequest(
        producer_id=request["producer_id"],
        epoch=request["epoch"],
        outcome=Outcome[request["outcome"]],
        position=request["position"],
        batch_id=request["batch_id"],
        memory=BatchMemory(
            memory["last_integer"], memory["name_known"], memory["by"] and (memory["by"][0], memory["by"][1])
        ),
        token=request["token"],
        repeated=request["repeated"],
        **({} if carries is None else _carried(carries)),
    )
    try:
        transition = end(found, asked)
    except TxnTableError as error:
        return {"refused": error.code}
    written = None if transition.row is None else json.loads(transition.row.to_json())
    return {"ended": transition.answer.outcome.value, "row": written}


def _carried(carries: Mapping[str, Any]) -> dict[str, Any]:
    manifest = Manifest.of(carries["names"], decode_segments(carries["manifest"], "a request"))
    return {"manifest": manifest, "decided_at_ms": carries["now_ms"]}


def settled(rows: Sequence[str], decisions: Sequence[Mapping[str, Any]], position: int) -> Any:
    """Return the offset rows that settling writes, and the keys of those that it removes."""
    known = {
        (one["producer_id"], one["epoch"]): Decision(one["epoch"], Outcome[one["outcome"]], one["position"])
        for one in decisions
    }
    found = settle([OffsetRow.from_json(row) for row in rows], known, position)
    return {"written": [row.to_json() for row in found.offsets], "removed": [row.key for row in found.removed]}

"""What the versions of a public table tell people of themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from txntable.errors import DamagedDataError
from txntable.format.layout import commit_path
from txntable.log.actions import (
    LARGEST_FIRST_LINE_BYTES,
    Add,
    Commit,
    CommitInfo,
    OperationDetails,
    Remove,
    Txn,
    decode_commit,
)
from txntable.log.entry_encoding import encode_commit
from txntable.log.table_state import TableState
from txntable.partition.batch import Batch, ProducerEpoch, batch_add
from txntable.partition.completion import OwedMarker
from txntable.partition.markers import Control
from txntable.partition.projection_details import LONGEST_NAME, MOST_DECISIONS, projection_details
from txntable.warehouse.warehouse import Warehouse

LARGEST = 2**63 - 1
SCHEMA = pa.schema([pa.field("account", pa.string()), pa.field("amount", pa.int64())])


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic("t", partitions=2, schema=SCHEMA, key=["account"])
    return made


def infos(warehouse: Warehouse) -> list[dict]:
    """The first lines of the public table's entries."""
    root = warehouse.topic_log("t").public.root
    version = warehouse.topic_log("t").public.refresh().version
    assert version is not None
    entries = [warehouse.store.get(commit_path(root, one)) for one in range(version + 1)]
    return [json.loads(entry.data.splitlines()[0])["commitInfo"] for entry in entries if entry is not None]


def metrics(files: int, rows: int, size: int) -> dict[str, str]:
    names = ("numFiles", "numOutputRows", "numOutputBytes", "numRemovedFiles", "numRemovedBytes")
    return dict(zip(names, map(str, (files, rows, size, 0, 0)), strict=True))


def public_files(warehouse: Warehouse) -> list[Add]:
    """The rows of the public table, in decision order."""
    return sorted(
        warehouse.topic_log("t").public.refresh().files, key=lambda add: int(add.partition_values["_commit"] or 0)
    )


def test_version_names_the_transaction_its_batch_and_what_it_added(warehouse: Warehouse) -> None:
    producer = warehouse.producer("etl")
    producer.init_transactions()
    for batch in ("2026-11-20", 7):
        with producer.transaction(batch_id=batch) as transaction:
            transaction.send("t", rows=pa.table({"account": ["a"] * 3, "amount": [1, 2, 3]}))

    told = [(info["operationParameters"], info["operationMetrics"]) for info in infos(warehouse)[1:]]

    assert told == [
        (
            {"transactionalIds": '["etl"]', "batchIds": batch, "positions": f"[{add.partition_values['_commit']}]"},
            metrics(1, 3, add.size),
        )
        for batch, add in zip(('["2026-11-20"]', "[7]"), public_files(warehouse), strict=True)
    ]


def test_version_of_records_without_a_transaction_counts_them_and_names_nobody(warehouse: Warehouse) -> None:
    with warehouse.producer() as producer:
        producer.send("t", row={"account": "a", "amount": 1})

    last = infos(warehouse)[-1]

    (size,) = (add.size for add in public_files(warehouse))
    assert (last["operationParameters"], last["operationMetrics"]) == ({}, metrics(1, 1, size))


def test_version_of_an_abort_names_nobody(warehouse: Warehouse) -> None:
    producer = warehouse.producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", row={"account": "a", "amount": 1})
    producer.flush()
    producer.abort_transaction()

    assert {json.dumps(info["operationParameters"]) for info in infos(warehouse)} == {"{}"}
    assert {json.dumps(info["operationMetrics"]) for info in infos(warehouse)} == {json.dumps(metrics(0, 0, 0))}


# -- bounds -------------------------------------------------------------------------------------


def states(decisions: int, records: int = 1, size: int = 10) -> tuple[TableState, TableState, list[Add]]:
    """S with a segment of each decision, an empty P, and the rows that P gets."""
    segments, actions = TableState(), []
    for one in range(decisions):
        batch = Batch(
            f"p00000/{one}.parquet",
            0,
            one,
            one,
            records,
            ProducerEpoch(LARGEST - one, 1),
            True,
            0,
            1,
            1,
            1,
            f"sha256:{0:064x}",
        )
        segments.files.put(batch_add(batch, size, None))
        values = {"_partition": "0", "_base_offset": "0", "_last_offset": "0", "_commit": str(LARGEST - one)}
        actions.append(Add(f"_segments/{batch.path}", values, size, 1))
    return segments, TableState(), actions


def decided(count: int, transactional_id: str, batch_id: str | int | None) -> list[OwedMarker]:
    return [
        OwedMarker(
            LARGEST - one, 1, Control.COMMIT, LARGEST - one, 1, frozenset({0}), (), 0, transactional_id, batch_id
        )
        for one in range(count)
    ]


def test_first_decisions_are_named_in_their_order_and_the_others_counted() -> None:
    segments, public, actions = states(20)
    known = [OwedMarker(LARGEST - 19, 1, Control.COMMIT, 1, 1, frozenset({0}), (), 0, "etl", 5)]

    found = projection_details(segments, public, actions, known).parameters

    shown = json.loads(found["positions"])
    assert shown == [LARGEST - 19 + one for one in range(len(shown))]
    assert 1 < len(shown) <= MOST_DECISIONS
    assert json.loads(found["transactionalIds"]) == ["etl"] + [None] * (len(shown) - 1)
    assert json.loads(found["batchIds"]) == [5] + [None] * (len(shown) - 1)
    assert int(found["more"]) == 20 - len(shown)


def test_rows_that_the_table_had_already_are_not_told_again() -> None:
    segments, public, actions = states(2)
    public.files.put(actions[0])

    found = projection_details(segments, public, [*actions, Remove("_segments/x", 1, False, {}, 7)], [])

    assert json.loads(found.parameters["positions"]) == [LARGEST - 1]
    assert dict(found.metrics) == metrics(1, 1, 10) | {"numRemovedFiles": "1", "numRemovedBytes": "7"}


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)


@given(names, st.none() | names | st.integers(0, LARGEST), st.integers(0, 30))
def test_first_line_stays_within_its_bound_whatever_the_names(
    transactional_id: str, batch_id: str | int | None, decisions: int
) -> None:
    segments, public, actions = states(decisions, records=1, size=LARGEST)
    removed = [Remove(f"_segments/r{one}", 1, False, {}, LARGEST) for one in range(decisions)]
    known = decided(decisions, transactional_id, batch_id)

    details = projection_details(segments, public, [*actions, *removed], known)

    info = CommitInfo("a" * 32, "b" * 32, 253_402_300_799_999, "PROJECT", "c" * 32, "d" * 64, details=details)
    entry = encode_commit(Commit(1, info, (), tuple(removed)), "txntable/" + "9" * 40)
    assert entry.index(b"\n") < LARGEST_FIRST_LINE_BYTES
    if decisions:
        counted = int(details.parameters.get("more", 0)) + len(json.loads(details.parameters.get("positions", "[]")))
        assert counted == decisions


def test_long_names_are_cut() -> None:
    segments, public, actions = states(1)

    found = projection_details(segments, public, actions, decided(1, "x" * 1000, "y" * LONGEST_NAME)).parameters

    assert found["transactionalIds"] == json.dumps(["x" * (LONGEST_NAME - 1) + "…"], ensure_ascii=False)
    assert found["batchIds"] == json.dumps(["y" * LONGEST_NAME])


def test_details_are_read_back_as_they_were_written() -> None:
    details = OperationDetails({"positions": "[3]"}, {"numFiles": "1"})
    info = CommitInfo("a" * 32, "b" * 32, 1, "PROJECT", "c" * 32, "d" * 64, details=details)

    assert decode_commit(1, encode_commit(Commit(1, info, ()), "x"), "path").info.details == details


def test_projection_that_would_tell_a_lower_offset_is_refused(warehouse: Warehouse) -> None:
    with warehouse.producer() as producer:
        producer.send("t", row={"account": "ann", "amount": 1}, partition=0)
    topic = warehouse.topic_log("t")
    name = next(one for one, offset in topic.segments.refresh().numbers.items() if offset and "next_offset" in one)
    topic.segments.commit("TEST", lambda table: [Txn(name, 0)])

    with pytest.raises(DamagedDataError, match="has lost its newest entries"):
        topic.project()

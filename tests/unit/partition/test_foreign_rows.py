"""Rows of a topic that no writer of ours makes: damage that names the row."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.partition.history import DIGEST
from txntable.errors import DamagedDataError, UnsupportedFormatError
from txntable.log.actions import Add
from txntable.log.table_state import LiveFiles
from txntable.partition.batch import Batch, batch_add, batch_of
from txntable.partition.markers import Control, Marker, marker_add, marker_of
from txntable.partition.replay import replay
from txntable.partition.state_entry import StateEntry, state_add, state_entry_of

TOPIC_ID = "a" * 32
BATCH = batch_add(Batch("p00000/x.parquet", 0, 10, 12, 3, None, False, None, 1, 1, 1, DIGEST, decided=(1, 2)), 10, None)
MARKER = marker_add(TOPIC_ID, Marker("m", 1, 0, Control.COMMIT, 5, 1, 0, {0: 13}), 1)
STATE = state_add(StateEntry(0, 10, {}), 1)


def changed(text: str | None, **fields: Any) -> str:
    return json.dumps({**json.loads(text or ""), **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {"records": 4},
        {"records": 0},
        {"records": "3"},
        {"records": True},
        {"records": 2**63},
        {"decided": [1]},
        {"decided": [1, "2"]},
        {"decided": [1, True]},
        {"decided": {"0": 1}},
        {"transactional": 1},
    ],
)
def test_segment_is_damage_when_its_tag_can_not_be(fields: dict[str, Any]) -> None:
    with pytest.raises(DamagedDataError, match=r"path=p00000/x\.parquet"):
        batch_of(Add(BATCH.path, BATCH.partition_values, 10, 1, True, None, changed(BATCH.tag, **fields)))


@pytest.mark.parametrize("name", ["_partition", "_base_offset", "_last_offset"])
@pytest.mark.parametrize("value", [None, "", "-1", "1_0", " 1", "١", "9" * 19, "1.0", "x"])
def test_segment_is_damage_when_a_number_is_spelt_as_no_writer_does(name: str, value: str | None) -> None:
    with pytest.raises(DamagedDataError, match=r"path=p00000/x\.parquet"):
        batch_of(Add(BATCH.path, {**BATCH.partition_values, name: value}, 10, 1, True, None, BATCH.tag))


@pytest.mark.parametrize("named", [{"_producer_id": "7"}, {"_producer_epoch": "0"}])
def test_segment_is_damage_when_it_names_half_a_producer(named: dict[str, str]) -> None:
    """Taken for one of no producer, what a transaction had aborted would be read as committed."""
    add = replace(BATCH, partition_values={**BATCH.partition_values, **named})
    live = LiveFiles()
    live.put(add)

    with pytest.raises(DamagedDataError, match=r"half a producer.* path=p00000/x\.parquet"):
        batch_of(add)
    with pytest.raises(DamagedDataError, match=r"half a producer.* path=p00000/x\.parquet"):
        replay(live.to_table())


@pytest.mark.parametrize(
    "fields", [{"offsets": {"x": 1}}, {"offsets": {"0": "1"}}, {"offsets": []}, {"ends": 7}, {"position": None}]
)
def test_marker_is_damage_when_it_says_what_can_not_be(fields: dict[str, Any]) -> None:
    values = {**MARKER.partition_values, "_marker": changed(MARKER.partition_values["_marker"], **fields)}

    with pytest.raises(DamagedDataError, match="path=m/x"):
        marker_of("m/x", values)


@pytest.mark.parametrize(
    "fields",
    [
        {"through": "1"},
        {"producers": [1]},
        {"producers": [{"id": 1}]},
        {"cleaned": [[1]]},
        {"cleaned": [[1, None]]},
    ],
)
def test_state_entry_is_damage_when_it_says_what_can_not_be(fields: dict[str, Any]) -> None:
    with pytest.raises(DamagedDataError, match="path=state/x"):
        state_entry_of("state/x", STATE.partition_values, changed(STATE.tag, **fields))


def test_tag_with_an_unknown_field_is_of_a_newer_format() -> None:
    with pytest.raises(UnsupportedFormatError, match="field='code'"):
        state_entry_of("state/x", STATE.partition_values, changed(STATE.tag, code="import os"))

"""The product against the conformance vectors: data that any implementation of PROTOCOL.md can be run against.

Owns how a case is run.  What is expected stands in ``vectors``; each file says there what a case is.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import deciding, logs, naming, written
from tests.conformance.writing import Writer

VECTORS = Path(__file__).parent / "vectors"
Case = Mapping[str, Any]


def document(name: str) -> dict[str, Any]:
    """One file of vectors."""
    found: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def cases(*names: str) -> pytest.MarkDecorator:
    """Parametrise a test with the cases of files."""
    found = [(name, case) for name in names for case in document(name)["cases"]]
    ids = [f"{name}: {case['name']}".encode("ascii", "backslashreplace").decode() for name, case in found]
    return pytest.mark.parametrize("case", [case for _, case in found], ids=ids)


def entry_bytes(lines: Sequence[str]) -> bytes:
    """An entry of its lines."""
    return "".join(f"{line}\n" for line in lines).encode()


def objects_of(entries: Sequence[Sequence[str]]) -> dict[str, bytes]:
    """The objects of a log of its entries, from version 0 on."""
    return {f"{version:020d}.json": entry_bytes(lines) for version, lines in enumerate(entries)}


def files() -> list[str]:
    """The names of all files of vectors."""
    return [path.stem for path in sorted(VECTORS.glob("*.json"))]


# -- the vectors themselves -------------------------------------------------------------------------


@pytest.mark.parametrize("name", files())
def test_file_of_vectors_says_what_a_case_is_and_names_each_once(name: str) -> None:
    found = document(name)

    names = [case["name"] for case in found["cases"]]
    assert found["about"]
    assert found["protocol"]
    assert len(set(names)) == len(names)
    assert {field for case in found["cases"] for field in case} <= set(found["case"])


PROTOCOL = (Path(__file__).parents[2] / "PROTOCOL.md").read_text(encoding="utf-8")


def test_hashes_in_the_protocol_are_those_of_the_vectors() -> None:
    known = {(case["kind"], case["spelled"]): case["path"] for case in document("keys")["cases"]}
    rows = re.findall(r"\| `(\w+)` \| `(\[.*?\])` \| `(k/[0-9a-f]{32}\.parquet)` \|", PROTOCOL)

    assert len(rows) >= 7
    assert {(kind, spelled): path for kind, spelled, path in rows}.items() <= known.items()


def test_constant_file_in_the_protocol_is_that_of_the_vectors() -> None:
    (case,) = document("constant_file")["cases"]
    (said,) = re.findall(r"```\n(UEFSM.*?)```", PROTOCOL, re.DOTALL)

    assert said.replace("\n", "") == case["base64"]
    assert f"`{case['sha256']}`" in PROTOCOL


def test_sections_that_vectors_name_are_sections_of_the_protocol() -> None:
    sections = set(re.findall(r"^#+ (\d+(?:\.\d+)?)\.? ", PROTOCOL, re.MULTILINE))
    named = {number for name in files() for number in re.findall(r"[\d.]*\d", document(name)["protocol"])}

    assert named <= sections


# -- names and hashes -------------------------------------------------------------------------------


@cases("keys")
def test_key_of_a_row_has_its_one_spelling_and_path(case: Case) -> None:
    assert naming.row_key(case["key"]) == case["spelled"]
    assert naming.path_of("row", case) == case["path"]


@cases("paths")
def test_path_is_made_of_its_arguments(case: Case) -> None:
    assert naming.path_of(case["of"], case["arguments"]) == case["path"]


@cases("file_names")
def test_file_name_says_kind_and_producer(case: Case) -> None:
    assert naming.file_name(case["path"]) == case["says"]


@cases("file_paths")
def test_path_of_a_file_is_accepted_or_refused(case: Case) -> None:
    assert naming.is_file_path(case["path"]) == case["accepted"]


@cases("tokens")
def test_token_begins_with_the_digits_of_its_id(case: Case) -> None:
    found = naming.token(case["transactional_id"], case["producer_id"], case["epoch"], case["unique"])
    assert found == case["token"]


@cases("constant_file")
def test_constant_file_has_its_bytes(case: Case) -> None:
    data = naming.constant_file()

    assert data == base64.b64decode(case["base64"])
    assert (len(data), hashlib.sha256(data).hexdigest()) == (case["size"], case["sha256"])


# -- keys of records --------------------------------------------------------------------------------


@cases("murmur2")
def test_hash_of_bytes_is_that_of_kafka(case: Case) -> None:
    data = bytes.fromhex(case["hex"])

    assert naming.hash_of(data) == case["murmur2"]
    assert {count: naming.partition_of(data, int(count)) for count in case["partition_of"]} == case["partition_of"]


@cases("key_bytes")
def test_key_of_a_record_has_its_bytes_and_partitions(case: Case) -> None:
    found = naming.key_of(case["types"], case["values"])
    batch = {count: naming.batch_partitions(case["types"], case["values"], int(count)) for count in ("1", "4", "12")}

    assert (None if found is None else found.hex()) == case["key_bytes"]
    if found is None:
        assert set(batch.values()) == {None}
    else:
        expected = case["partition_of"]
        assert {count: naming.partition_of(found, int(count)) for count in expected} == expected
        assert batch == {count: expected[count] for count in batch}


# -- stored JSON, rows, entries ---------------------------------------------------------------------


@cases("stored_json")
def test_stored_json_is_accepted_or_refused(case: Case) -> None:
    assert naming.is_stored_json(case["text"]) == case["accepted"]


@cases("rows")
def test_row_demands_its_columns_or_is_refused(case: Case) -> None:
    try:
        columns = naming.columns_of_row(case["log"], case["kind"], case["row"])
    except naming.REFUSED:
        assert not case["accepted"]
        return
    # Another spelling than the one that the product would write is refused by the comparison of the columns.
    assert (columns["_row"] == case["row"]) == case["accepted"]
    if case["accepted"]:
        assert columns == case["columns"]
        assert naming.row_path(columns) == case["path"]


LOGS = document("entries")["logs"]


@cases("entries")
def test_entry_is_accepted_or_refused_at_the_head_of_a_log(case: Case) -> None:
    entry = case["text"].encode() if "text" in case else entry_bytes(case["lines"])
    below = LOGS[case["log"]]
    log = logs.Log(case["log"], {**objects_of(below), f"{len(below):020d}.json": entry})

    assert log.accepts() == case["accepted"]


@cases("chain")
def test_log_goes_on_entry_by_entry_or_is_refused(case: Case) -> None:
    log = logs.Log(case["log"], {f"{int(slot):020d}.json": entry_bytes(x) for slot, x in case["slots"].items()})

    if case["accepted"]:
        found = log.open()
        assert {name: found[name] for name in case["state"]} == case["state"]
    else:
        assert not log.accepts()


# -- folds ------------------------------------------------------------------------------------------


@cases("transaction_log", "offset_log", "segment_log", "visibility")
def test_log_folds_to_its_state(case: Case) -> None:
    found = logs.Log(case["log"], objects_of(case["entries"])).open()

    assert {name: found[name] for name in case["state"]} == case["state"]


@cases("transaction_log", "offset_log", "segment_log")
def test_log_folds_to_the_same_state_from_a_checkpoint_in_its_middle_and_at_its_end(case: Case) -> None:
    entries = list(objects_of(case["entries"]).items())
    for version in (len(entries) // 2, len(entries) - 1):
        below = logs.Log(case["log"], dict(entries[: version + 1]))
        checkpoint = {f"{version:020d}.checkpoint.parquet": logs.checkpoint_of(below)}

        found = logs.Log(case["log"], {**checkpoint, **dict(entries[version:])}).open()

        assert {name: found[name] for name in case["state"]} == case["state"], version


@cases("checkpoints")
def test_checkpoint_holds_the_rows_of_the_state(case: Case) -> None:
    log = logs.Log(case["log"], objects_of(case["entries"]))

    rows, entry = logs.checkpoint_rows(log)

    assert sorted(map(json.dumps, rows)) == sorted(map(json.dumps, case["rows"]))
    assert entry == case["entry"]


@cases("checkpoint_files")
def test_reader_starts_from_a_checkpoint_or_passes_it_over(case: Case) -> None:
    objects = {name: base64.b64decode(data) for name, data in case["objects"].items()}
    log = logs.Log(case["log"], objects)

    if case["accepted"]:
        found = log.open()
        assert {name: found[name] for name in case["state"]} == case["state"]
    else:
        assert not log.accepts()


@cases("projection")
def test_projection_of_a_segment_log_says_these_actions(case: Case) -> None:
    public = None if case["public"] is None else logs.Log("P", objects_of(case["public"]))
    segments = logs.Log("S", objects_of(case["segments"]))

    assert logs.projection_of(segments, public, case["now_ms"]) == case["actions"]


@cases("statistics")
def test_statistics_of_a_segment_say_these_bounds(case: Case) -> None:
    assert naming.statistics_of(case["schema"], case["rows"], case["timestamps_us"]) == case["stats"]


@cases("who_may_commit")
def test_commit_of_offsets_is_accepted_or_fenced(case: Case) -> None:
    found = deciding.refusal_of_commit(case["row"], case["metadata"], case["partitions"], case["transactional"])
    assert found == case["refused"]


# -- what writers decide ----------------------------------------------------------------------------


@cases("appends")
def test_append_is_answered_or_refused(case: Case) -> None:
    assert deciding.append_to(logs.Log("S", objects_of(case["entries"])), case["append"]) == case["answer"]


@cases("ends")
def test_end_of_a_transaction_is_answered_or_refused(case: Case) -> None:
    assert deciding.end_of(case["row"], case["request"]) == case["answer"]


@cases("settling")
def test_pending_offsets_are_settled_by_their_decisions(case: Case) -> None:
    found = deciding.settled(case["rows"], case["decisions"], case["position"])

    assert found == {"written": case["written"], "removed": case["removed"]}


# -- what writers put -------------------------------------------------------------------------------


START = document("writers")["start"]


@cases("writers")
def test_step_of_a_writer_puts_these_entries_or_is_refused(case: Case) -> None:
    objects = {path: entry_bytes(lines) for path, lines in {**START, **case["objects"]}.items()}

    assert Writer(objects, case["now_ms"]).does(case["does"]) == case["puts"]


@cases("segment_files")
def test_file_of_a_segment_has_these_columns_and_checksums(case: Case) -> None:
    config = {"compression.type": case["compression_type"]}
    _, data = naming.segment_of(case["schema"], case["rows"], case["timestamps_us"], config)

    assert written.parquet_file(data) == case["file"]

"""Files that are not what their rows say are found, and named; what is only imprecise is not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.simulation.site import Site
from tests.unit.verification.stored import U, appended, copied, damages, only, plain_segment
from txntable.format.layout import TRANSACTION_LOG_ROOT
from txntable.topics.topic_log import TopicLog
from txntable.verification.damage import DamageKind
from txntable.warehouse.warehouse import Warehouse


def test_segment_that_is_gone_is_found(site: Site, warehouse: Warehouse, u: TopicLog) -> None:
    path = f"{U}/{plain_segment(u).path}"
    site.objects.delete(path)

    assert only(site) == (DamageKind.SEGMENT_MISSING, path)


def test_segment_with_other_bytes_is_found(site: Site, warehouse: Warehouse, u: TopicLog) -> None:
    path = f"{U}/{plain_segment(u).path}"
    found = site.objects.get(path)
    assert found is not None
    site.objects.put(path, found.data[:100] + bytes([found.data[100] ^ 1]) + found.data[101:])

    assert only(site) == (DamageKind.SEGMENT_REPLACED, path)


@pytest.mark.parametrize("change", ["gone", "shorter", "other bytes"])
def test_damage_of_a_file_names_the_bytes_and_the_digest_of_the_right_one(
    site: Site, warehouse: Warehouse, u: TopicLog, change: str
) -> None:
    path = f"{U}/{plain_segment(u).path}"
    found = site.objects.get(path)
    assert found is not None
    if change == "gone":
        site.objects.delete(path)
    else:
        site.objects.put(path, found.data[:-1] + (b"" if change == "shorter" else b"?"))

    (damage,) = damages(site)

    right = hashlib.sha256(found.data).hexdigest()
    assert damage.problem.endswith(f"; the right one has bytes={len(found.data)} digest=sha256:{right}")
    assert "the problem names the bytes and the digest" in damage.remedy


def table_of(warehouse: Warehouse, u: TopicLog) -> pa.Table:
    found = warehouse.store.get(f"{U}/{plain_segment(u).path}")
    assert found is not None
    return pq.read_table(pa.BufferReader(found.data))


def file_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, write_page_checksum=True, compression="none", use_dictionary=False)
    return bytes(sink.getvalue())


def _broken_page(table: pa.Table) -> bytes:
    data = bytearray(file_of(table))
    # Behind its length: where the page has it, not the bounds in the page's header.
    data[data.index(b"\x05\x00\x00\x00plain") + 4] ^= 1
    return bytes(data)


def _one_record_more(table: pa.Table) -> bytes:
    return file_of(pa.concat_tables([table, table]))


def _offset_outside(table: pa.Table) -> bytes:
    index = table.schema.get_field_index("_offset_delta")
    return file_of(table.set_column(index, table.schema.field(index), pa.array([3], pa.int64())))


def _required_column_less(table: pa.Table) -> bytes:
    return file_of(table.drop_columns(["account"]))


@pytest.mark.parametrize("change", [_broken_page, _one_record_more, _offset_outside, _required_column_less])
def test_segment_that_no_reader_could_read_is_found(
    site: Site, warehouse: Warehouse, u: TopicLog, change: Callable[[pa.Table], bytes]
) -> None:
    path = copied(warehouse, u, change(table_of(warehouse, u)))

    assert only(site) == (DamageKind.SEGMENT_CONTENT, path)


@pytest.mark.parametrize(
    "wrong",
    [
        ("minValues", "account", "plainer"),
        ("maxValues", "account", "plai"),
        ("minValues", "amount", 1),
        ("maxValues", "amount", -1),
        ("maxValues", "_timestamp", "2001-01-01T00:00:00.000Z"),
    ],
)
def test_bound_that_would_make_a_filter_miss_records_is_found(
    site: Site, warehouse: Warehouse, u: TopicLog, wrong: tuple[str, str, object]
) -> None:
    side, column, bound = wrong
    stats = json.loads(plain_segment(u).stats or "")
    stats[side][column] = bound
    path = copied(warehouse, u, stats=json.dumps(stats, separators=(",", ":")))

    assert only(site) == (DamageKind.BOUND, path)


@pytest.mark.parametrize("side", ["minValues", "maxValues"])
def test_bound_that_is_wider_than_the_records_is_no_damage(
    site: Site, warehouse: Warehouse, u: TopicLog, side: str
) -> None:
    stats = json.loads(plain_segment(u).stats or "")
    stats[side]["amount"] = -5 if side == "minValues" else 5
    copied(warehouse, u, stats=json.dumps(stats, separators=(",", ":")))

    assert damages(site) == []


def test_row_that_counts_other_nulls_than_its_segment_has_is_found(
    site: Site, warehouse: Warehouse, u: TopicLog
) -> None:
    stats = json.loads(plain_segment(u).stats or "")
    stats["nullCount"]["amount"] = 1
    path = copied(warehouse, u, stats=json.dumps(stats, separators=(",", ":")))

    assert only(site) == (DamageKind.SEGMENT_ROW, path)


@pytest.mark.parametrize("field", ["first_timestamp_ms", "max_timestamp_ms"])
def test_row_with_other_timestamps_than_its_segment_is_found(
    site: Site, warehouse: Warehouse, u: TopicLog, field: str
) -> None:
    changes: dict[str, Any] = {field: 1}
    path = copied(warehouse, u, **changes)

    assert only(site) == (DamageKind.SEGMENT_ROW, path)


def test_digest_of_an_unknown_algorithm_is_told(site: Site, warehouse: Warehouse, u: TopicLog) -> None:
    path = copied(warehouse, u, digest="blake3:" + "0" * 64)

    assert only(site) == (DamageKind.UNKNOWN_DIGEST, path)


def test_row_under_another_path_is_found(site: Site, warehouse: Warehouse, u: TopicLog) -> None:
    source = plain_segment(u)
    found = site.objects.get(f"{U}/{source.path}")
    assert found is not None
    path = "p00000/" + "e" * 32 + "-x-x-" + "f" * 32 + ".parquet"
    site.objects.put(f"{U}/{path}", found.data)
    appended(u, lambda batch: replace(batch, path=path, producer=None, first_sequence=None))

    assert only(site)[0] is DamageKind.ROW


@pytest.mark.parametrize("change", ["gone", "other"])
def test_constant_file_that_is_not_there_is_found(site: Site, warehouse: Warehouse, change: str) -> None:
    log = warehouse.transactions.log
    path = f"{TRANSACTION_LOG_ROOT}/{next(iter(log.refresh().files)).path}"
    if change == "gone":
        site.objects.delete(path)
    else:
        site.objects.put(path, b"0" * 179)

    assert only(site) == (DamageKind.CONSTANT_FILE, path)

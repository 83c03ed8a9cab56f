"""The golden warehouses as files: an archive of each, and beside it a JSON of what is read from it."""

from __future__ import annotations

import datetime as dt
import io
import json
import tarfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from txntable.format.records import TopicPartition
from txntable.offsets.group_commit import OffsetAndMetadata
from txntable.warehouse.warehouse import Warehouse

FOLDER = Path(__file__).parent / "format-1-warehouses"


def kinds() -> list[str]:
    """Return the names of all that were written."""
    return sorted(path.name.removesuffix(".tar.xz") for path in FOLDER.glob("*.tar.xz"))


def write(kind: str, objects: Mapping[str, bytes], read: Mapping[str, object], folder: Path = FOLDER) -> None:
    """Write a warehouse; one that is there is never written again."""
    folder.mkdir(exist_ok=True)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", preset=9) as archive:
        for path, data in sorted(objects.items()):
            member = tarfile.TarInfo(path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    with (folder / f"{kind}.tar.xz").open("xb") as made:
        made.write(packed.getvalue())
    with (folder / f"{kind}.json").open("x", encoding="utf-8") as made_text:
        made_text.write(json.dumps(read, indent=1, ensure_ascii=False) + "\n")


def copy_of(kind: str, into: Path) -> Path:
    """Return a folder with a copy of a golden warehouse."""
    with tarfile.open(FOLDER / f"{kind}.tar.xz") as archive:
        archive.extractall(into, filter="data")
    return into


def expected(kind: str) -> dict[str, dict]:
    """Return what was read from a warehouse when it was written."""
    found: dict[str, dict] = json.loads((FOLDER / f"{kind}.json").read_text(encoding="utf-8"))
    return found


def all_of(warehouse: Warehouse) -> dict[str, dict]:
    """Return all that a client can read: rows, groups with their offsets, transactions."""
    admin = warehouse.admin()
    groups = sorted(listed.group_id for listed in admin.list_consumer_groups())
    return {
        "rows": {name: rows_of(warehouse, name) for name in sorted(admin.list_topics())},
        "offsets": {group: _named(admin.list_consumer_group_offsets(group)) for group in groups},
        "transactions": {one.transactional_id: one.state.value for one in admin.list_transactions()},
    }


def _named(offsets: Mapping[TopicPartition, OffsetAndMetadata | None]) -> dict[str, int]:
    return {f"{of.topic}/{of.partition}": found.offset for of, found in sorted(offsets.items()) if found is not None}


def rows_of(warehouse: Warehouse, topic: str) -> list[dict]:
    """Return the rows of a topic in the order of their partitions and offsets, as JSON has them."""
    rows: list[dict] = [plain_row(row) for row in warehouse.read_arrow(topic).read_all().to_pylist()]
    return sorted(rows, key=lambda row: (row["_partition"], row["_offset"]))


def plain_row(row: Mapping[str, object]) -> dict:
    """Return a row as JSON has it."""
    return {name: plain(value) for name, value in row.items()}


def plain(value: object) -> object:
    """Return a value as JSON has it; what it has no word for is a text."""
    match value:
        case dict():
            return plain_row(value)
        case list() | tuple():
            return [plain(inner) for inner in value]
        case bytes():
            return value.hex()
        case dt.datetime() | dt.date():
            return value.isoformat()
        case float() | Decimal():
            return repr(value)
        case _:
            return value

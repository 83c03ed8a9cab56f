"""What a writer put, in a form that does not depend on ids of chance: entries of logs, and segments' Parquet files.

Reads bytes only.  Must know of neither implementation, nor what any case expects.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_HEX32 = re.compile(r"[0-9a-f]{32}")
_SEGMENT = re.compile(r"(p\d{5}/[0-9a-f]{32}-\d+-\d+-)[0-9a-f]{32}(\.parquet)")
_ENCODINGS = {"PLAIN", "RLE", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT", "RLE_DICTIONARY", "PLAIN_DICTIONARY"}

ReadFile = Callable[[str], bytes | None]
"""The bytes at a path that an ``add`` names; ``None``: there is no object."""


def entries_put(log: Sequence[bytes], given: int, read_file: ReadFile) -> list[Any]:
    """Return the entries of a log that stand above the first `given` ones, as JSON values.

    ``previous`` and ``log`` are versions here, ``chain`` the version of the object that it digests.  What names the
    commit itself is ``"new"``.
    """
    versions: dict[str | None, Any] = {None: None}
    digests: dict[str | None, Any] = {None: None}
    found = []
    for version, data in enumerate(log):
        lines = [json.loads(line) for line in data.splitlines()]
        info = lines[0]["commitInfo"]
        if version >= given:
            is_new = _HEX32.fullmatch(info["commitId"]) and info["commitId"] not in versions
            said = {name: "new" if is_new and info[name] == info["commitId"] else "?" for name in ("commitId", "txnId")}
            links = {"previous": versions.get(info["previous"], "?"), "chain": digests.get(info["chain"], "?")}
            links["log"] = versions.get(info["log"], "?")
            engine = "a text" if isinstance(info["engineInfo"], str) else "?"
            repairs = 1 + info.get("repairs", 0)
            found.append(
                {
                    "version": version,
                    "commitInfo": {**info, **said, **links, "engineInfo": engine},
                    "repairs": _actions(lines[1:repairs], read_file),
                    "actions": _actions(lines[repairs:], read_file),
                }
            )
        versions[info["commitId"]] = version
        digests[hashlib.sha256(data).hexdigest()] = version
    return found


def _actions(actions: Sequence[Any], read_file: ReadFile) -> list[Any]:
    return sorted((_action(action, read_file) for action in actions), key=lambda each: json.dumps(each, sort_keys=True))


def _action(action: Any, read_file: ReadFile) -> Any:
    """Return an action; JSON inside of it whose fields may have any order is decoded, a row's is not."""
    ((kind, body),) = action.items()
    body = dict(body)
    if kind != "add":
        return {kind: body}
    data = read_file(body["path"]) if _SEGMENT.search(body["path"]) else None
    body["path"] = _SEGMENT.sub(r"\1<32 hex digits>\2", body["path"])
    values = dict(body["partitionValues"])
    if values.get("_marker") is not None:
        values["_marker"] = json.loads(values["_marker"])
    if values.get("_row") is not None:
        values["_row"] = _row(values["_row"], read_file)
    if data is not None and body["size"] == len(data):
        body["size"] = "the file's"
    tags = {name: json.loads(tag) for name, tag in body.get("tags", {}).items()}
    for tag in tags.values():
        if data is not None and tag.get("digest") == "sha256:" + hashlib.sha256(data).hexdigest():
            tag["digest"] = "the file's"
    said = {"stats": json.loads(body["stats"])} if "stats" in body else {}
    return {kind: {**body, **said, "partitionValues": values, **({"tags": tags} if tags else {})}}


def _row(text: str, read_file: ReadFile) -> str:
    """Return a row as it is spelled; what is chance of a carried segment that was put is said in words."""
    row = json.loads(text)
    if "manifest" not in row or _spelled(row) != text:
        return text
    for topic_id, segments in row["manifest"].items():
        for one in segments:
            name = f"{topic_id}-{row['producer_id']}-{row['decision']['epoch']}-{one['name']}"
            data = read_file(f"p{one['partition']:05d}/{name}.parquet")
            if data is not None:
                one["name"], one["stats"] = "<32 hex digits>", json.loads(one["stats"])
                one["size"] = "the file's" if one["size"] == len(data) else one["size"]
                is_digest = one["digest"] == "sha256:" + hashlib.sha256(data).hexdigest()
                one["digest"] = "the file's" if is_digest else one["digest"]
    return _spelled(row)


def _spelled(row: Any) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def parquet_file(data: bytes) -> Any:
    """Return what a segment's file says of its columns, and whether it keeps to what every one has to."""
    file = pq.ParquetFile(io.BytesIO(data))
    footer = file.metadata
    columns = []
    for index in range(footer.num_columns):
        leaf = footer.schema.column(index)
        size = f"({leaf.length})" if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" else ""
        levels = [leaf.max_definition_level, leaf.max_repetition_level]
        columns.append([leaf.path, leaf.physical_type + size, _logical_type(leaf), *levels])
    chunks = [footer.row_group(g).column(i) for g in range(footer.num_row_groups) for i in range(footer.num_columns)]
    encodings = {encoding for chunk in chunks for encoding in chunk.encodings}
    repeated = {column[0] for column in columns if column[4]}
    dictionaries = {chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page}
    return {
        "columns": columns,
        "metadata": sorted(key.decode() for key in footer.metadata or {}),
        "codecs": sorted({chunk.compression for chunk in chunks}),
        "other_encodings": sorted(encodings - _ENCODINGS),
        "dictionaries_in_lists_and_maps": sorted(repeated & dictionaries),
        "offset_delta": sorted(_encodings_of(chunks, "_offset_delta") - {"RLE"}),
        "checksums": all(_has_checksum(data, chunk) for chunk in chunks),
        "records": footer.num_rows,
    }


def _logical_type(leaf: Any) -> Any:
    """Return Parquet's logical type, without how Arrow came by it."""
    said = json.loads(leaf.logical_type.to_json())
    return {name: value for name, value in said.items() if "converted_type" not in name}


def _encodings_of(chunks: Sequence[Any], path: str) -> set[str]:
    return {encoding for chunk in chunks if chunk.path_in_schema == path for encoding in chunk.encodings}


def _has_checksum(data: bytes, chunk: Any) -> bool:
    """Return whether a reader that looks at checksums finds a changed byte at the end of a column's last page."""
    start = chunk.data_page_offset if chunk.dictionary_page_offset is None else chunk.dictionary_page_offset
    last = start + chunk.total_compressed_size - 1
    changed = data[:last] + bytes([data[last] ^ 1]) + data[last + 1 :]
    try:
        pq.ParquetFile(io.BytesIO(changed), page_checksum_verification=True).read()
    except (OSError, pa.ArrowException) as error:
        return "CRC" in str(error)
    return False


def put(given: Mapping[str, bytes], found: Mapping[str, bytes], roots: Mapping[str, str]) -> Any:
    """Return what was put: the entries of each log that got some, and the other objects' paths.

    Parameters
    ----------
    given, found : Mapping of str to bytes
        The warehouse's objects by path, before and after.
    roots : Mapping of str to str
        The roots of the tables, by the letter of their log.
    """
    entries = {}
    for letter, root in sorted(roots.items()):
        log = _log(found, root)
        # T names no files, but what its decisions carry is in S's folder.
        new = entries_put(log, len(_log(given, root)), _reader_of(found, roots["S"] if letter == "T" else root))
        entries.update({letter: new} if new else {})
    others = {path for path in found if path not in given and "/_delta_log/" not in path and path != "system/clock"}
    return {"entries": entries, "objects": sorted(_SEGMENT.sub(r"\1<32 hex digits>\2", path) for path in others)}


def _reader_of(objects: Mapping[str, bytes], root: str) -> ReadFile:
    return lambda path: objects.get(f"{root}/{path}")


def _log(objects: Mapping[str, bytes], root: str) -> list[bytes]:
    return [objects[path] for path in sorted(objects) if re.fullmatch(rf"{root}/_delta_log/\d{{20}}\.json", path)]

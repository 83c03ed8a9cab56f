"""A second implementation of the core of the txntable format 1, on a warehouse in a local folder.

It was written from PROTOCOL.md alone (and from the conformance vectors, which are the same rules as data): nothing of
the first implementation was read. It opens a warehouse that other software created; it reads logs, topics and records,
and writes transactions. Section numbers are those of PROTOCOL.md. FINDINGS.md says where the text left a choice.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import copy
import datetime
import decimal
import hashlib
import io
import json
import math
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

Json = dict[str, Any]
MAX_INTEGER = 2**63 - 1
MAX_TIME = 253402300799999
MAX_ENTRY, MAX_LINE, MAX_HEAD = 256 << 20, 64 << 20, 1024
GUARD_MS = 300_000
DEADLINE_S = 120.0
DAY_MS = 86_400_000
LONGEST_UPLOAD_MS = 36 * 3_600_000
ENGINE = "clean-room/1"
CONSTANT_FILE = base64.b64decode(
    "UEFSMRUAFRQVFCwVAhUAFQYVBhwAAAACAAAAAgEBAAAAFQQZLDUAGAZzY2hlbWEVAgAVAiUCGAlfY29uc3RhbnQAFgIZHBkcJgAcFQIZ"
    "JQYAGRgJX2NvbnN0YW50FQAWAhY6FjomCEkcFQAVABUCADwpBhkmAAIAAAAWOhYCJggWOgAoIHBhcnF1ZXQtY3BwLWFycm93IHZlcnNp"
    "b24gMjYuMC4xGRwcAAAAigAAAFBBUjE="
)
CONSTANT_STATS = '{"numRecords":1}'
HEX32 = re.compile(r"[0-9a-f]{32}")
HEX64 = re.compile(r"[0-9a-f]{64}")
TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
PATH = re.compile(r"[a-zA-Z0-9._-]{1,255}(/[a-zA-Z0-9._-]{1,255})*")
SEGMENT_PATH = re.compile(r"p([0-9]{5})/([0-9a-f]{32})-(?:(0|[1-9][0-9]*)-(0|[1-9][0-9]*)|x-x)-([0-9a-f]{32})\.parquet")
SPARK_SEGMENT_PATH = re.compile(
    r"parts/(?:(0|[1-9][0-9]*)-(0|[1-9][0-9]*)|x-x)/part-[0-9]{5,8}-"
    r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})-c[0-9]{3,6}(?:\.[a-z0-9]{2,6})?\.parquet"
)
MARKER_PATH = re.compile(r"markers/([0-9a-f]{32})-(0|[1-9][0-9]*)-(0|[1-9][0-9]*)\.parquet")
STATE_PATH = re.compile(r"state/p([0-9]{5})\.parquet")
T_COLUMNS = ("_kind", "_key", "_state", "_producer_id", "_producer_epoch", "_decision", "_position", "_row")
O_COLUMNS = ("_kind", "_key", "_group", "_topic", "_partition", "_offset", "_position", "_row")
S_COLUMNS = (
    "_partition",
    "_base_offset",
    "_last_offset",
    "_producer_id",
    "_producer_epoch",
    "_control",
    "_marker",
)
P_COLUMNS = ("_partition", "_base_offset", "_last_offset", "_commit")
WRITER_FEATURES = ("inCommitTimestamp", "changeDataFeed", "invariants", "txntable.exclusiveWriter", "timestampNtz")


class Damage(Exception):
    """What was read breaks a reader requirement."""


class Refused(Exception):
    """A request that the format refuses; its name is Kafka's."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.code = code


class Unknown(Exception):
    """The outcome of a put cannot be told."""


def need(condition: object, message: str) -> None:
    if not condition:
        raise Damage(message)


# --- 3.4 Stored JSON ------------------------------------------------------------------------------------------------


def _pairs(pairs: list[tuple[str, Any]]) -> Json:
    result = dict(pairs)
    need(len(result) == len(pairs), "a name twice in one object")
    return result


def _integer(text: str) -> int:
    need(len(text) <= 20, "an integer of more than 64 bits")
    value = int(text)
    need(abs(value) <= MAX_INTEGER, "an integer of more than 64 bits")
    return value


def _constant(text: str) -> Any:
    raise Damage(f"{text} is no JSON")


def load_json(text: str | bytes) -> Any:
    """Strict JSON."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_pairs, parse_int=_integer, parse_constant=_constant)
        if "\\u" in text or any("\ud800" <= c <= "\udfff" for c in text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise Damage(f"no stored JSON: {error}") from error
    return value


def spell(value: Any) -> str:
    """The one spelling of `_key` and `_row`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


# --- checks of fields -----------------------------------------------------------------------------------------------

Check = Callable[[Any], None]


def is_integer(low: int | None = None, high: int = MAX_INTEGER) -> Check:
    def check(value: Any) -> None:
        need(type(value) is int and value <= high and (low is None or value >= low), f"{value!r} is no such integer")

    return check


def is_text(value: Any) -> None:
    need(type(value) is str, f"{value!r:.80} is no text")


def is_name(value: Any) -> None:
    need(type(value) is str and 1 <= len(value.encode("utf-8")) <= 32767, f"{value!r:.80} is no name")


def is_topic(value: Any) -> None:
    need(type(value) is str and topic_name_allowed(value), f"{value!r:.80} is no topic's name")


def topic_name_allowed(value: str) -> bool:
    return bool(TOPIC_NAME.fullmatch(value)) and value not in (".", "..") and not value.startswith(".unfinished-")


def is_hex32(value: Any) -> None:
    need(type(value) is str and HEX32.fullmatch(value), f"{value!r:.80} is not 32 hex digits")


def is_boolean(value: Any) -> None:
    need(type(value) is bool, f"{value!r:.80} is no boolean")


def is_object(value: Any) -> None:
    need(type(value) is dict, f"{value!r:.80} is no object")


def is_object_of_texts(value: Any) -> None:
    is_object(value)
    need(all(type(v) is str for v in value.values()), f"{value!r:.80} is no object of texts")


def is_texts(value: Any) -> None:
    need(type(value) is list and all(type(v) is str for v in value), f"{value!r:.80} is no array of texts")


def one_of(*words: str) -> Check:
    def check(value: Any) -> None:
        need(type(value) is str and value in words, f"{value!r:.80} is none of {words}")

    return check


def or_null(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


is_time = is_integer(0, MAX_TIME)
FROM_0, FROM_1, ANY = is_integer(0), is_integer(1), is_integer()


class Field(NamedTuple):
    name: str
    check: Check
    required: bool = True


def table(**checks: Check) -> list[Field]:
    """The fields in their order; a name that ends with `_` is of an optional one."""
    return [Field(n.rstrip("_"), check, not n.endswith("_")) for n, check in checks.items()]


def fields(value: Any, table: list[Field], what: str, ordered: bool = False, empty: bool = False) -> Json:
    """Check an object against a table; null is as bad as missing (the checks of `or_null` say otherwise)."""
    need(type(value) is dict, f"{what} is no object")
    names = [f.name for f in table]
    for name in value:
        need(name in names, f"{what}: unknown field {name!r:.80}")
    for field in table:
        if field.name not in value:
            need(not field.required, f"{what}: {field.name} is missing")
            continue
        try:
            field.check(value[field.name])
        except Damage as error:
            raise Damage(f"{what}: {field.name}: {error}") from error
        if not field.required and not empty:
            need(value[field.name] not in ("", [], {}), f"{what}: {field.name} is empty")
    if ordered:
        need(list(value) == [n for n in names if n in value], f"{what}: fields in another order")
    return dict(value)


def ascending(items: Iterable[str], what: str) -> None:
    keys = [item.encode("utf-8") for item in items]
    need(all(a < b for a, b in zip(keys, keys[1:], strict=False)), f"{what}: not ascending")


# --- 3.4 ranges of partitions ---------------------------------------------------------------------------------------

_T, _TP = "/[0-9a-f]{32}", "/[0-9a-f]{32}/(?:0|[1-9][0-9]{0,4})"
NUMBERS = {
    "T": re.compile("next_producer_id|settled_through"),
    "O": re.compile("decided_through"),
    "S": re.compile(f"(?:next_offset|log_start){_TP}|(?:decided_through|merged_through){_T}"),
    "P": re.compile(f"(?:high_watermark|lso|log_start){_TP}|(?:decided_through|merged_through){_T}|reflects"),
}
RANGE = re.compile(r"(0|[1-9][0-9]{0,4})(?:-([1-9][0-9]{0,4}))?")


def parse_ranges(text: Any) -> list[int]:
    need(type(text) is str, "partitions are a text")
    result: list[int] = []
    last = -2
    for part in text.split(","):
        match = RANGE.fullmatch(part)
        need(match, f"{text!r:.80} is no list of ranges")
        assert match
        low = int(match[1])
        high = int(match[2]) if match[2] else low
        need(low > last + 1 and (match[2] is None or high > low), f"{text!r:.80} is not the spelling of these ranges")
        result.extend(range(low, high + 1))
        last = high
    return result


def format_ranges(partitions: Iterable[int]) -> str:
    runs: list[list[int]] = []
    for p in sorted(set(partitions)):
        if runs and runs[-1][1] == p - 1:
            runs[-1][1] = p
        else:
            runs.append([p, p])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def is_ranges(value: Any) -> None:
    parse_ranges(value)


# --- 2 Paths and hashes ---------------------------------------------------------------------------------------------


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def key_hash(word: str, key: list[str]) -> str:
    return sha((word + spell(key)).encode("utf-8"))[:32]


def row_path(kind: str, key: list[str]) -> str:
    return f"k/{key_hash(kind, key)}.parquet"


def segment_path(topic_id: str, partition: int, producer: tuple[int, int] | None, unique: str) -> str:
    who = f"{producer[0]}-{producer[1]}" if producer else "x-x"
    return f"p{partition:05d}/{topic_id}-{who}-{unique}.parquet"


def marker_path(topic_id: str, producer_id: int, epoch: int) -> str:
    return f"markers/{topic_id}-{producer_id}-{epoch}.parquet"


def state_path(partition: int) -> str:
    return f"state/p{partition:05d}.parquet"


def log_folder(kind: str, topic: str = "") -> str:
    return {
        "T": "system/transaction_log",
        "O": "system/offset_log",
        "S": f"topics/{topic}/_segments",
        "P": f"topics/{topic}",
    }[kind]


def entry_name(version: int) -> str:
    return f"{version:020d}.json"


def checkpoint_name(version: int) -> str:
    return f"{version:020d}.checkpoint.parquet"


def heartbeat_path(group: str, member: str) -> str:
    return f"system/heartbeats/{key_hash('group', [group])}/{key_hash('member', [group, member])}"


def what_file(path: str) -> Json | None:
    """What the name of a file below S's root says."""
    if m := SEGMENT_PATH.fullmatch(path):
        return {"kind": "segment", "producer": None if m[3] is None else [int(m[3]), int(m[4])]}
    if m := SPARK_SEGMENT_PATH.fullmatch(path):
        return {"kind": "segment", "producer": None if m[1] is None else [int(m[1]), int(m[2])]}
    if m := MARKER_PATH.fullmatch(path):
        return {"kind": "marker", "producer": [int(m[2]), int(m[3])]}
    return {"kind": "state entry", "producer": None} if STATE_PATH.fullmatch(path) else None


def name_of(path: str) -> str:
    """The 32 hex digits of a segment's path."""
    m = SPARK_SEGMENT_PATH.fullmatch(path)
    return m[3].replace("-", "") if m else path[-40:-8]


def is_path(value: Any) -> None:
    ok = type(value) is str and len(value) <= 512 and PATH.fullmatch(value)
    need(ok and not any(part in (".", "..") for part in value.split("/")), f"{value!r:.80} is no path")


def token_of(transactional_id: str, producer_id: int, epoch: int, unique: str) -> str:
    return f"{producer_id}:{epoch}:{sha(transactional_id.encode('utf-8'))[:8]}{unique}"


# --- 9 Keys ---------------------------------------------------------------------------------------------------------


def murmur2(data: bytes) -> int:
    """Kafka's, as an unsigned number of 32 bits."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = (0x9747B28C ^ len(data)) & mask
    whole = len(data) & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & mask
        k = (k ^ (k >> 24)) * m & mask
        h = (h * m & mask) ^ k
    if len(data) > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & mask
    h = (h ^ (h >> 13)) * m & mask
    return h ^ (h >> 15)


def partition_of(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def value_bytes(kind: Any, value: Any) -> bytes:
    """Of one key column; dates are days, timestamps µs, decimals `Decimal`."""
    sizes = {"byte": 1, "short": 2, "integer": 4, "long": 8, "date": 4, "timestamp": 8, "boolean": 1}
    if kind in sizes:
        return int(value).to_bytes(sizes[kind], "big", signed=kind != "boolean")
    if kind == "string":
        return str(value).encode("utf-8")
    if kind == "binary":
        return bytes(value)
    match = re.fullmatch(r"decimal\((\d+),(\d+)\)", kind) if isinstance(kind, str) else None
    if not match:
        raise Damage(f"{kind} can be no key")
    with decimal.localcontext() as context:
        context.prec = 80
        unscaled = int(decimal.Decimal(value).scaleb(int(match[2])).to_integral_exact())
    bits = (unscaled if unscaled >= 0 else -unscaled - 1).bit_length() + 1
    return unscaled.to_bytes((bits + 7) // 8, "big", signed=True)


def key_bytes(kinds: list[Any], values: list[Any]) -> bytes | None:
    if len(kinds) == 1:
        return None if values[0] is None else value_bytes(kinds[0], values[0])
    result = b""
    for kind, value in zip(kinds, values, strict=True):
        if value is None:
            result += b"\xff\xff\xff\xff"
        else:
            data = value_bytes(kind, value)
            result += len(data).to_bytes(4, "big") + data
    return result


# --- 3.2 Schemas ----------------------------------------------------------------------------------------------------

SIMPLE = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
KEYABLE = ("boolean", "byte", "short", "integer", "long", "string", "binary", "date", "timestamp")
BAD_IN_NAME = re.compile("[\\s,;{}()=\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]")


def parse_type(value: Any, depth: int) -> Any:
    """A type in normal form: text, or a dict in the order of §3.2."""
    need(depth <= 30, "too deep")
    if type(value) is str:
        match = re.fullmatch(r"decimal\(([1-9][0-9]?),(0|[1-9][0-9]?)\)", value)
        ok = value in SIMPLE or (match and int(match[1]) <= 38 and int(match[2]) <= int(match[1]))
        need(ok, f"unknown type {value!r:.80}")
        return value
    need(type(value) is dict, "no type")
    kind = value.get("type")
    if kind == "struct":
        need(set(value) == {"type", "fields"}, "no struct")
        return {"type": "struct", "fields": parse_fields(value["fields"], depth + 1)}
    if kind == "array":
        need(set(value) == {"type", "elementType", "containsNull"}, "no array")
        is_boolean(value["containsNull"])
        element = parse_type(value["elementType"], depth + 1)
        return {"type": "array", "elementType": element, "containsNull": value["containsNull"]}
    need(kind == "map" and set(value) == {"type", "keyType", "valueType", "valueContainsNull"}, "no type")
    is_boolean(value["valueContainsNull"])
    key, item = parse_type(value["keyType"], depth + 1), parse_type(value["valueType"], depth + 1)
    return {"type": "map", "keyType": key, "valueType": item, "valueContainsNull": value["valueContainsNull"]}


def parse_fields(value: Any, depth: int) -> list[Json]:
    need(type(value) is list, "fields are an array")
    result = []
    for field in value:
        need(type(field) is dict and {"name", "type", "nullable"} <= set(field), "no field")
        need(set(field) <= {"name", "type", "nullable", "metadata"}, "a field has an unknown part")
        name = field["name"]
        need(type(name) is str and name and not BAD_IN_NAME.search(name), f"{name!r:.80} is no column's name")
        is_boolean(field["nullable"])
        kind = parse_type(field["type"], depth)
        result.append({"name": name, "type": kind, "nullable": field["nullable"], "metadata": {}})
    names = [f["name"].lower() for f in result]
    need(len(set(names)) == len(names), "names that differ only by case")
    return result


def parse_schema(text: str) -> list[Json]:
    value = load_json(text)
    need(type(value) is dict and value.get("type") == "struct" and set(value) == {"type", "fields"}, "no schema")
    columns = parse_fields(value["fields"], 0)
    need(not any(c["name"].startswith("_") for c in columns), "a column that begins with _")
    return columns


def schema_string(columns: list[Json]) -> str:
    return json.dumps({"type": "struct", "fields": columns}, ensure_ascii=True, separators=(",", ":"))


def column(name: str, kind: str) -> Json:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def public_schema(user: list[Json]) -> str:
    extra = [column("_offset_delta", "long"), column("_timestamp", "timestamp"), column("_partition", "integer")]
    return schema_string(user + extra + [column(n, "long") for n in P_COLUMNS[1:]])


def has_ntz(value: Any) -> bool:
    if isinstance(value, dict):
        return any(has_ntz(v) for k, v in value.items() if k not in ("name", "metadata"))
    return any(has_ntz(v) for v in value) if isinstance(value, list) else value == "timestamp_ntz"


def arrow_type(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        match = re.fullmatch(r"decimal\((\d+),(\d+)\)", kind)
        return pa.decimal128(int(match[1]), int(match[2])) if match else SIMPLE[kind]
    if kind["type"] == "struct":
        return pa.struct([pa.field(f["name"], arrow_type(f["type"])) for f in kind["fields"]])
    if kind["type"] == "array":
        return pa.list_(pa.field("element", arrow_type(kind["elementType"])))
    return pa.map_(arrow_type(kind["keyType"]), arrow_type(kind["valueType"]))


# --- 3.1, 3.2 Properties --------------------------------------------------------------------------------------------

SETTINGS = {
    "vacuum_retention_ms": 2592000000,
    "transaction_max_timeout_ms": 900000,
    "transactional_id_expiration_ms": 604800000,
    "producer_id_expiration_ms": 86400000,
    "batch_retention_ms": 34560000000,
    "offsets_retention_ms": 604800000,
    "snapshot_retention_ms": 3600000,
}
INT32 = 2**31 - 1
CONFIGS: dict[str, tuple[int, int]] = {
    "delete.retention.ms": (0, MAX_INTEGER),
    "max.compaction.lag.ms": (1, MAX_INTEGER),
    "max.message.bytes": (0, INT32),
    "min.compaction.lag.ms": (0, MAX_INTEGER),
    "retention.bytes": (-1, MAX_INTEGER),
    "retention.ms": (-1, MAX_INTEGER),
    "segment.bytes": (1048576, INT32),
}
CONFIG_WORDS = {
    "compression.type": ("producer", "zstd", "lz4", "snappy", "gzip", "uncompressed"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
}


def number(text: str | None, what: str) -> int:
    """A number in a partition value."""
    ok = type(text) is str and re.fullmatch(r"[0-9]{1,19}", text) and int(text) <= MAX_INTEGER
    need(ok, f"{what}: {text!r:.80} is no number")
    return int(str(text))


def check_configuration(kind: str, properties: dict[str, str]) -> None:
    need(properties.get("txntable.format") == "1", "unknown txntable.format")
    duration = properties.get("delta.deletedFileRetentionDuration")
    ok = duration is None or re.fullmatch(r"interval [0-9]{1,18} seconds", duration)
    need(ok, f"{duration!r:.80} is no retention")
    for name in properties:
        if name.startswith("txntable.topic."):
            known = name[15:] in ("id", "partitions", "key", "schema", "state") and kind in "SP"
            need(known, f"unknown property {name}")
        if name.startswith("txntable.warehouse."):
            known = (name[19:] in SETTINGS or name[19:] == "id") and kind in "TO"
            need(known, f"unknown property {name}")
    if kind in "SP":
        for name in ("id", "partitions", "key", "schema", "state"):
            need(f"txntable.topic.{name}" in properties, f"txntable.topic.{name} is missing")
        number(properties.get("txntable.vacuum.retention.ms"), "txntable.vacuum.retention.ms")
        is_hex32(properties["txntable.topic.id"])
        partitions = number(properties["txntable.topic.partitions"], "partitions")
        need(1 <= partitions <= 100_000, "1 to 100000 partitions")
        one_of("live", "deleted")(properties["txntable.topic.state"])
        columns = {c["name"]: c["type"] for c in parse_schema(properties["txntable.topic.schema"])}
        keys = load_json(properties["txntable.topic.key"])
        is_texts(keys)
        need(len(set(keys)) == len(keys), "a key column twice")
        for key in keys:
            kind_of_key = columns.get(key)
            keyable = isinstance(kind_of_key, str) and (kind_of_key in KEYABLE or kind_of_key.startswith("decimal"))
            need(keyable, f"{key!r:.80} can be no key")
        for name, text in properties.items():
            if name.startswith("txntable.config."):
                check_config(name[16:], text)
    else:
        warehouse_settings(properties)


def check_config(name: str, text: str) -> None:
    if name in CONFIGS:
        low, high = CONFIGS[name]
        ok = re.fullmatch(r"[+-]?[0-9]+", text) and low <= int(text) <= high
    elif name in CONFIG_WORDS:
        ok = text in CONFIG_WORDS[name]
    elif name == "cleanup.policy":
        words = [word.strip(" ") for word in text.split(",")]
        ok = set(words) <= {"compact", "delete"} and len(set(words)) == len(words)
    elif name == "min.cleanable.dirty.ratio":
        ok = re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text) and 0 <= float(text) <= 1
    else:
        ok = True
    need(ok, f"{text!r:.80} cannot be {name}")


def warehouse_settings(properties: dict[str, str]) -> dict[str, int]:
    s = dict(SETTINGS)
    for name in s:
        if (text := properties.get(f"txntable.warehouse.{name}")) is not None:
            s[name] = number(text, name)
    longest = s["transaction_max_timeout_ms"]
    need(s["vacuum_retention_ms"] >= max(DAY_MS, 2 * longest), "vacuum_retention_ms")
    need(longest >= 1 and s["offsets_retention_ms"] >= 1, "a setting below 1")
    need(min(s["transactional_id_expiration_ms"], s["producer_id_expiration_ms"]) >= longest, "an expiration")
    need(s["batch_retention_ms"] >= DAY_MS, "batch_retention_ms")
    need(60_000 <= s["snapshot_retention_ms"] <= s["vacuum_retention_ms"], "snapshot_retention_ms")
    return s


def retention_ms(properties: dict[str, str]) -> int:
    text = properties.get("delta.deletedFileRetentionDuration", "interval 604800 seconds")
    return int(text.split(" ")[1]) * 1000


# --- 6.1, 8.1, 8.2 Rows of T and O ----------------------------------------------------------------------------------


def is_true(value: Any) -> None:
    need(value is True, "not true")


def is_v(value: Any) -> None:
    need(type(value) is int and value == 1, "another v")


def is_batch_id(value: Any) -> None:
    if type(value) is str:
        is_name(value)
    else:
        is_integer(0)(value)


def is_topic_id_or_empty(value: Any) -> None:
    if value != "":
        is_hex32(value)


def is_enrolled(value: Any) -> None:
    is_object(value)
    ascending(value, "partitions")
    for topic_id, what in value.items():
        is_hex32(topic_id)
        fields(what, table(name=is_topic, partitions=is_ranges), "partitions", True)


def is_digest(value: Any) -> None:
    need(type(value) is str and re.fullmatch(r"[a-z0-9]{1,32}:[0-9a-f]{8,256}", value), "no digest")


MANIFEST_SEGMENT = table(
    name=is_hex32,
    partition=is_integer(0, 99_999),
    first_sequence=FROM_0,
    records=FROM_1,
    size=FROM_1,
    first_timestamp=ANY,
    max_timestamp=ANY,
    uploaded_at=ANY,
    digest=is_digest,
    stats=is_text,
    partition_count_=FROM_1,
)


def is_manifest(value: Any) -> None:
    is_object(value)
    ascending(value, "manifest")
    for topic_id, segments in value.items():
        is_hex32(topic_id)
        need(type(segments) is list and segments, "a topic of a manifest has no segment")
        for segment in segments:
            fields(segment, MANIFEST_SEGMENT, "segment", True)
        names = [s["name"] for s in segments]
        need(len(set(names)) == len(names), "two segments of a manifest have one name")
        for a, b in zip(segments, segments[1:], strict=False):
            need(a["partition"] <= b["partition"], "partitions of a manifest do not ascend")
            follows = b["first_sequence"] == a["first_sequence"] + a["records"]
            need(a["partition"] != b["partition"] or follows, "a manifest leaves out sequences")


def is_names(value: Any) -> None:
    is_texts(value)
    for name in value:
        is_name(name)
    ascending(value, "names")


def is_decision(value: Any) -> None:
    known = table(
        epoch=FROM_0,
        outcome=one_of("COMMIT", "ABORT"),
        position=ANY,
        batch_id_=is_batch_id,
    )
    fields(value, known, "decision", True)


def parse_past(text: Any) -> list[tuple[str, int]]:
    need(type(text) is str and re.fullmatch(r"([CAN]([1-9][0-9]*)?)*", text), "no past")
    runs = [(m[1], int(m[2]) if m[2] else 1) for m in re.finditer(r"([CAN])([0-9]*)", text)]
    need("".join(c if n == 1 else f"{c}{n}" for c, n in runs) == text, "a past misspelt")
    need(all(a[0] != b[0] for a, b in zip(runs, runs[1:], strict=False)), "neighbouring runs differ")
    need(len(text) <= 256, "a past is too long")
    return runs


def is_past(value: Any) -> None:
    parse_past(value)


STATES = ("EMPTY", "ONGOING", "PREPARED", "PREPARE_COMMIT", "PREPARE_ABORT", "COMPLETE_COMMIT", "COMPLETE_ABORT")
ID_ROW = table(
    v=is_v,
    transactional_id=is_name,
    producer_id=FROM_0,
    producer_epoch=FROM_0,
    timeout_ms=FROM_1,
    state=one_of(*STATES),
    partitions_=is_enrolled,
    groups_=is_names,
    started_position_=ANY,
    manifest_=is_manifest,
    decision_=is_decision,
    past_=is_past,
    prepared_epoch_=ANY,
    token_=is_text,
    batch_id_=is_batch_id,
    position=FROM_0,
)
BATCH_ROW = table(
    v=is_v,
    transactional_id=is_name,
    batch_id=is_batch_id,
    producer_id=ANY,
    epoch=ANY,
    position=ANY,
    decided_at_ms_=ANY,
)
LEASE_ROW = table(
    v=is_v,
    owner=is_hex32,
    coordinator_epoch=FROM_1,
    position=FROM_0,
    runs_once_=is_true,
)


def is_committed(value: Any) -> None:
    known = table(offset=ANY, metadata=is_text, topic_id=is_topic_id_or_empty, request=ANY, position=ANY)
    fields(value, known, "committed", True)


def is_pending(value: Any) -> None:
    need(type(value) is list, "pending is an array")
    known = table(
        transactional_id=is_name,
        producer_id=ANY,
        epoch=ANY,
        offset=ANY,
        metadata=is_text,
        request=ANY,
        topic_id_=is_hex32,
    )
    seen = [(p["producer_id"], p["epoch"]) for p in value if fields(p, known, "pending", True)]
    need(len(set(seen)) == len(seen), "two pending offsets of one transaction")


OFFSET_ROW = table(
    v=is_v,
    group=is_name,
    topic=is_topic,
    partition=is_integer(0, 99_999),
    position=ANY,
    committed_=is_committed,
    pending_=is_pending,
)
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")


def is_group_topics(value: Any) -> None:
    is_object(value)
    ascending(value, "topics")
    for name, topic in value.items():
        is_topic(name)
        fields(topic, table(topic_id=is_hex32, partitions=is_integer(0, 100_000)), "topics", True)


def is_subscription(value: Any) -> None:
    is_texts(value)
    for name in value:
        is_topic(name)
    ascending(value, "topics")


def is_assignors(value: Any) -> None:
    is_texts(value)
    need(all(a in ASSIGNORS for a in value), "unknown assignor")


def is_owned(value: Any) -> None:
    is_object(value)
    ascending(value, "owned")
    for name, epochs in value.items():
        is_topic(name)
        is_object(epochs)
        numbers = [number(e, "an ownership epoch") for e in epochs]
        need(all(str(n) == e for n, e in zip(numbers, epochs, strict=True)), "an ownership epoch misspelt")
        need(numbers and numbers == sorted(numbers), "ownership epochs ascend")
        for text in epochs.values():
            parse_ranges(text)


def is_target(value: Any) -> None:
    is_object(value)
    ascending(value, "target")
    for name, text in value.items():
        is_topic(name)
        parse_ranges(text)


MEMBER = table(
    member_id=is_name,
    instance_id_=is_name,
    client_id=is_text,
    host=is_text,
    topics=is_subscription,
    assignors=is_assignors,
    session_timeout_ms=ANY,
    joined_ms=ANY,
    joined_generation=ANY,
    owned_=is_owned,
    target_=is_target,
)


def is_members(value: Any) -> None:
    need(type(value) is list, "members are an array")
    ids = [m["member_id"] for m in value if fields(m, MEMBER, "member", True)]
    ascending(ids, "members")
    instances = [m["instance_id"] for m in value if "instance_id" in m]
    need(len(set(instances)) == len(instances), "an instance id twice")


GROUP_ROW = table(
    v=is_v,
    group=is_name,
    generation=ANY,
    state=one_of("EMPTY", "RECONCILING", "STABLE"),
    assignor_=one_of(*ASSIGNORS),
    topics_=is_group_topics,
    members_=is_members,
    position=ANY,
)
ROW_TABLES = {"id": ID_ROW, "batch": BATCH_ROW, "lease": LEASE_ROW, "offset": OFFSET_ROW, "group": GROUP_ROW}
KINDS = {"T": ("id", "batch", "lease"), "O": ("offset", "group")}


def check_id_row(row: Json) -> None:
    state, epoch, position = row["state"], row["producer_epoch"], row["position"]
    under_way = state in ("ONGOING", "PREPARED", "PREPARE_COMMIT", "PREPARE_ABORT")
    need(("started_position" in row) == under_way, "started_position")
    need(under_way or not ("partitions" in row or "groups" in row), "only a transaction under way has partitions")
    need("manifest" not in row or state == "PREPARE_COMMIT", "only what is to be committed has a manifest")
    enrolled = {i: parse_ranges(what["partitions"]) for i, what in row.get("partitions", {}).items()}
    carried = [(i, s["partition"]) for i, segments in row.get("manifest", {}).items() for s in segments]
    need(all(p in enrolled.get(i, ()) for i, p in carried), "a manifest names what is not enrolled")
    need(state != "ONGOING" or "partitions" in row or "groups" in row, "ONGOING has partitions or groups")
    need(("token" in row) == (state == "PREPARED"), "token")
    need(state != "PREPARED" or row.get("prepared_epoch") == epoch, "prepared_epoch")
    need("batch_id" not in row or "token" in row, "batch_id without a token")
    need(row.get("prepared_epoch", 0) <= epoch, "prepared_epoch above the epoch")
    decision = row.get("decision")
    if state.startswith(("PREPARE_", "COMPLETE_")):
        ok = decision and decision["outcome"] == state.split("_")[1] and decision["epoch"] == epoch - 1
        need(ok, "a decided row has its decision")
        need(state.startswith("COMPLETE_") or row["decision"]["position"] == position, "the decision is the row's")
    if decision:
        need(decision["epoch"] < epoch and decision["position"] <= position, "a decision is below the row")
    need(row.get("started_position", 0) <= position, "started above the row")
    epochs = sum(n for _, n in parse_past(row.get("past", "")))
    need(epochs == 0 or (decision and epochs <= decision["epoch"]), "a past longer than the epochs")


def check_group_row(row: Json) -> None:
    members, topics, generation = row.get("members", []), row.get("topics", {}), row["generation"]
    owners: set[tuple[str, int]] = set()
    targets: set[tuple[str, int]] = set()
    to_release = False
    for member in members:
        need(member["joined_generation"] <= generation, "joined above the generation")
        owned: set[tuple[str, int]] = set()
        for topic, epochs in member.get("owned", {}).items():
            for epoch, text in epochs.items():
                need(int(epoch) <= generation, "an ownership epoch above the generation")
                for p in parse_ranges(text):
                    need((topic, p) not in owned, "owned twice")
                    owned.add((topic, p))
        target = {(topic, p) for topic, text in member.get("target", {}).items() for p in parse_ranges(text)}
        need(not owners & owned and not targets & target, "a partition of two members")
        owners |= owned
        targets |= target
        to_release = to_release or bool(owned - target)
    need(targets <= owners, "what is free is given")
    need(all(t in topics and p < topics[t]["partitions"] for t, p in targets), "a target that does not exist")
    state = "EMPTY" if not members else "RECONCILING" if to_release else "STABLE"
    need(row["state"] == state and ("assignor" in row) == bool(members), "the state is what the members say")


def check_row(log: str, kind: str, text: str) -> tuple[Json, str, dict[str, str | None]]:
    """The row, its path and its columns."""
    need(kind in KINDS[log], f"unknown kind {kind!r:.80}")
    row = load_json(text)
    fields(row, ROW_TABLES[kind], kind, True)
    need(spell(row) == text, "another spelling of _row")
    if kind == "id":
        check_id_row(row)
    elif kind == "group":
        check_group_row(row)
    key, columns = row_columns(kind, row)
    return row, row_path(kind, key), columns


def row_columns(kind: str, row: Json) -> tuple[list[str], dict[str, str | None]]:
    values: list[Any]
    if kind == "id":
        key = [row["transactional_id"]]
        decided = row["decision"]["position"] if "decision" in row else None
        values = [row["state"], row["producer_id"], row["producer_epoch"], decided]
    elif kind == "batch":
        batch = row["batch_id"]
        key = [row["transactional_id"]] + ([batch] if isinstance(batch, str) else [])
        values = [None, row["producer_id"], row["epoch"], row["position"]]
    elif kind == "lease":
        key, values = ["coordinator"], [None, None, row["coordinator_epoch"], None]
    elif kind == "offset":
        key = [row["group"], row["topic"], str(row["partition"])]
        committed = row["committed"]["offset"] if "committed" in row else None
        values = [row["group"], row["topic"], row["partition"], committed]
    else:
        key, values = [row["group"]], [row["group"], None, None, None]
    names = T_COLUMNS if kind in KINDS["T"] else O_COLUMNS
    texts = [None if v is None else str(v) for v in values]
    return key, dict(zip(names, [kind, spell(key), *texts, str(row["position"]), spell(row)], strict=True))


# --- 4.1 Entries ----------------------------------------------------------------------------------------------------


def is_strings(value: Any) -> None:
    is_object(value)
    need(all(type(v) is str for v in value.values()), "each value is a string")


def is_values(value: Any) -> None:
    is_object(value)
    need(all(v is None or type(v) is str for v in value.values()), "each value is a string or null")


def is_tags(value: Any) -> None:
    need(type(value) is dict and list(value) == ["txntable"] and type(value["txntable"]) is str, "tags")


def is_chain(value: Any) -> None:
    need(value is None or (type(value) is str and HEX64.fullmatch(value)), "a chain")


COMMIT_INFO = table(
    commitId=is_hex32,
    previous=or_null(is_hex32),
    inCommitTimestamp=is_time,
    operation=is_text,
    log=is_hex32,
    chain=is_chain,
    repairs_=FROM_0,
    timestamp_=is_time,
    operationParameters_=is_object_of_texts,
    operationMetrics_=is_object_of_texts,
    engineInfo_=is_text,
    txnId_=is_text,
)
ACTIONS = {
    "protocol": table(
        minReaderVersion=ANY,
        minWriterVersion=ANY,
        readerFeatures_=or_null(is_texts),
        writerFeatures_=or_null(is_texts),
    ),
    "metaData": table(
        id=is_text,
        name_=or_null(is_text),
        description_=or_null(is_text),
        format_=or_null(is_object),
        schemaString=is_text,
        partitionColumns=is_texts,
        configuration=is_strings,
        createdTime=is_time,
    ),
    "add": table(
        path=is_path,
        partitionValues=is_values,
        size=FROM_0,
        modificationTime=is_time,
        dataChange=is_boolean,
        stats_=or_null(is_text),
        tags_=or_null(is_tags),
    ),
    "remove": table(
        path=is_path,
        deletionTimestamp=is_time,
        dataChange=is_boolean,
        extendedFileMetadata_=or_null(is_boolean),
        partitionValues_=or_null(is_values),
        size_=or_null(FROM_0),
    ),
    "txn": table(appId=is_text, version=ANY, lastUpdated_=or_null(ANY)),
}
Action = tuple[str, Json]


def is_pair(value: Any) -> None:
    need(type(value) is list and len(value) == 2 and all(type(v) is int for v in value), "two integers")


def is_cleaned(value: Any) -> None:
    need(type(value) is list, "an array")
    for pair in value:
        is_pair(pair)


def is_batches(value: Any) -> None:
    need(type(value) is list, "an array")
    for batch in value:
        ok = type(batch) is list and len(batch) == 5 and all(type(v) is int for v in batch[:4])
        need(ok and type(batch[4]) is str, "four integers and a name")


def is_producers(value: Any) -> None:
    need(type(value) is list, "an array")
    ids = [p["id"] for p in value if fields(p, PRODUCER, "producer")]
    need(ids == sorted(set(ids)), "producers ascend")


def is_marker_offsets(value: Any) -> None:
    is_object(value)
    for name, offset in value.items():
        need(RANGE.fullmatch(name) and "-" not in name, f"{name!r:.80} is no partition")
        ANY(offset)


PRODUCER = table(
    id=ANY,
    epoch=ANY,
    coordinator_epoch=or_null(ANY),
    last_timestamp=ANY,
    last_offset=ANY,
    batches=is_batches,
)
STATE_TAG = table(v=is_v, through=ANY, producers=is_producers, cleaned_=is_cleaned)
MARKER = table(v=is_v, ends=ANY, position=ANY, decided_at=ANY, coordinator_epoch=ANY, offsets=is_marker_offsets)
PUBLIC_TAG = table(v=is_v, digest=is_digest)
SEGMENT_TAG = table(
    v=is_v,
    records=FROM_1,
    first_timestamp=ANY,
    max_timestamp=ANY,
    digest=is_digest,
    transactional_=is_boolean,
    first_sequence_=ANY,
    partition_count_=ANY,
    uploaded_at_=ANY,
    decided_=is_pair,
)


class Row(NamedTuple):
    """A row of S: a segment, a marker (COMMIT, ABORT) or a state entry (STATE)."""

    control: str | None
    partition: int
    base: int
    last: int
    producer: tuple[int, int] | None
    tag: Json
    add: Json


def segment_row(add: Json) -> Row:
    values = add["partitionValues"]
    need(set(values) == set(S_COLUMNS), "a row of S has its seven columns")
    control = values["_control"]
    need(control in (None, "COMMIT", "ABORT", "STATE"), f"unknown _control {control!r:.80}")
    is_marker = control in ("COMMIT", "ABORT")
    for name in S_COLUMNS[:3]:
        required = control is None or (control == "STATE" and name == "_partition")
        need(required == (values[name] is not None), name)
    need(is_marker == (values["_marker"] is not None), "_marker")
    producer = None
    if values["_producer_id"] is not None or values["_producer_epoch"] is not None:
        producer = (number(values["_producer_id"], "producer"), number(values["_producer_epoch"], "epoch"))
    need(control is None or is_marker == bool(producer), "a marker has a producer")
    if is_marker:
        tag = fields(load_json(values["_marker"]), MARKER, "marker")
        need(producer and producer[1] == tag["ends"] + 1, "a marker raises by one")
        return Row(control, -1, -1, -1, producer, tag, add)
    partition = number(values["_partition"], "_partition")
    need(partition < 100_000, "partitions are below 100000")
    need(add.get("tags"), "a tag is required")
    tag = load_json(add["tags"]["txntable"])
    if control == "STATE":
        return Row(control, partition, -1, -1, None, fields(tag, STATE_TAG, "state", empty=True), add)
    fields(tag, SEGMENT_TAG, "segment")
    base, last = number(values["_base_offset"], "base"), number(values["_last_offset"], "last")
    need(tag["records"] <= last - base + 1, "more records than offsets")
    return Row(None, partition, base, last, producer, tag, add)


def check_action(log: str, name: str, body: Any) -> Json:
    """A checked action, without fields that are null."""
    need(name in ACTIONS, f"unknown action {name!r:.80}")
    body = {k: v for k, v in fields(body, ACTIONS[name], name, empty=True).items() if v is not None}
    if name == "txn":
        need(body["version"] >= 0, "a named number below 0")
    elif name == "protocol":
        writer = body.get("writerFeatures", [])
        ok = body["minReaderVersion"] <= 3 and body["minWriterVersion"] <= 7 and WRITER_FEATURES[3] in writer
        need(ok and set(writer) <= set(WRITER_FEATURES), "a protocol that is not known")
        need(set(body.get("readerFeatures", [])) <= {"timestampNtz"}, "an unknown reader feature")
    elif name == "metaData":
        check_configuration(log, body["configuration"])
    elif name == "add" and log == "S":
        segment_row(body)
    elif name == "add" and log == "P":
        need(set(body["partitionValues"]) == set(P_COLUMNS), "a row of P has its four columns")
        for c in P_COLUMNS:
            number(body["partitionValues"][c], c)
        if tags := body.get("tags"):
            fields(load_json(tags["txntable"]), PUBLIC_TAG, "tag")
    elif name == "add":
        values = body["partitionValues"]
        need(type(values.get("_kind")) is str and type(values.get("_row")) is str, "_kind and _row")
        _, path, columns = check_row(log, values["_kind"], values["_row"])
        need(values == columns and body["path"] == path, "the columns are what `_row` demands")
    return dict(body)


class Entry(NamedTuple):
    info: Json
    actions: list[Action]
    digest: str


def commit_info(data: bytes) -> Json:
    """Of the first line, within the bytes that others ask for."""
    head = data[:MAX_HEAD]
    need(b"\n" in head, "no commitInfo, or a first line of more than 1024 bytes")
    line = load_json(head.split(b"\n", 1)[0])
    need(type(line) is dict and list(line) == ["commitInfo"], "commitInfo is the first line")
    return fields(line["commitInfo"], COMMIT_INFO, "commitInfo", empty=True)


def decode_entry(log: str, data: bytes) -> Entry:
    need(data.endswith(b"\n") and len(data) <= MAX_ENTRY, "an entry ends with a line feed")
    info = commit_info(data)
    actions: list[Action] = []
    for line in data.split(b"\n")[1:]:
        if line.strip(b" \t\r"):
            need(len(line) < MAX_LINE, "a line of more than 64 MiB")
            value = load_json(line)
            need(type(value) is dict and len(value) == 1, "one action an object")
            ((name, body),) = value.items()
            actions.append((name, check_action(log, name, body)))
    need(info.get("repairs", 0) <= len(actions), "more repairs than actions")
    paths = [b["path"] for n, b in actions if n in ("add", "remove")]
    need(len(set(paths)) == len(paths), "two file actions of one path")
    return Entry(info, actions, sha(data))


# --- 4.4 State, 5.4 to 5.6 what S says ------------------------------------------------------------------------------


class Producer:
    """Of one (partition, producer id)."""

    def __init__(self, epoch: int, coordinator: int | None = None) -> None:
        self.epoch, self.coordinator_epoch = epoch, coordinator
        self.batches: list[list[Any]] = []
        self.last_timestamp = self.last_offset = 0


class State:
    """What a log folds to."""

    def __init__(self, log: str) -> None:
        self.kind, self.version = log, -1
        self.commit_id: str | None = None
        self.log: str | None = None
        self.next_chain: str | None = None
        self.time = 0
        self.times: dict[int, int] = {}
        self.void: list[tuple[int, Entry]] = []
        self.protocol: Json | None = None
        self.meta: Json | None = None
        self.numbers: dict[str, int] = {}
        self.files: dict[str, Json] = {}
        self.tombstones: dict[str, Json] = {}
        self._views: dict[str, Any] = {}

    def copy(self) -> State:
        result = copy.copy(self)
        for name in ("times", "numbers", "files", "tombstones"):
            setattr(result, name, dict(getattr(self, name)))
        result.void, result._views = list(self.void), {}
        return result

    def fold(self, action: str, body: Json) -> None:
        self._views = {}
        if action == "protocol":
            self.protocol = body
        elif action == "metaData":
            self.meta = body
        elif action == "txn":
            name = body["appId"]
            need(NUMBERS[self.kind].fullmatch(name), f"{name!r:.80} is no named number of {self.kind}")
            self.numbers[name] = body["version"]
        elif action == "add":
            self.files[body["path"]] = body
            self.tombstones.pop(body["path"], None)
        else:
            self.files.pop(body["path"], None)
            self.tombstones[body["path"]] = body

    def judge(self, entry: Entry) -> str:
        """§4.6: next, void, or "else"."""
        info = entry.info
        goes_on = info["previous"] == self.commit_id and info["chain"] == self.next_chain
        if goes_on and info["log"] in ({info["commitId"]} if self.version < 0 else {self.log, info["commitId"]}):
            return "next"
        return "void" if self.version >= 0 and info["previous"] != self.commit_id and info["log"] != self.log else ""

    def step(self, entry: Entry, void: bool) -> None:
        info = entry.info
        self.version += 1
        self.next_chain = entry.digest
        self.time = self.times[self.version] = max(self.time, info["inCommitTimestamp"])
        if void:
            self.void.append((self.version, entry))
            return
        self.commit_id, self.log, self.void = info["commitId"], info["log"], []
        for name, body in entry.actions[info.get("repairs", 0) :]:
            self.fold(name, body)
        need(self.protocol and self.meta, "a log without protocol or metaData")

    @property
    def properties(self) -> dict[str, str]:
        return self.meta["configuration"] if self.meta else {}

    def view(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._views:
            self._views[name] = make()
        return self._views[name]

    # T and O
    def rows(self, kind: str) -> dict[tuple[str, ...], Json]:
        def make() -> dict[tuple[str, ...], Json]:
            values = [a["partitionValues"] for a in self.files.values()]
            return {tuple(json.loads(v["_key"])): json.loads(v["_row"]) for v in values if v["_kind"] == kind}

        return self.view(kind, make)

    # S
    @property
    def topic_id(self) -> str:
        return self.properties["txntable.topic.id"]

    @property
    def partitions(self) -> int:
        return int(self.properties["txntable.topic.partitions"])

    @property
    def live(self) -> bool:
        return self.properties["txntable.topic.state"] == "live"

    def get(self, name: str, partition: int | None = None) -> int:
        suffix = "" if partition is None else f"/{partition}"
        return self.numbers.get(f"{name}/{self.topic_id}{suffix}", 0)

    def segment_rows(self) -> list[Row]:
        return self.view("s", lambda: [segment_row(a) for a in self.files.values()])

    def markers(self) -> dict[tuple[int, int], Row]:
        """By producer id and the epoch that ends."""
        rows = [r for r in self.segment_rows() if r.control in ("COMMIT", "ABORT")]
        return {(r.producer[0], r.tag["ends"]): r for r in rows if r.producer}

    def segments(self) -> list[Row]:
        return sorted((r for r in self.segment_rows() if r.control is None), key=lambda r: (r.partition, r.base))

    def commit_of(self, row: Row, markers: dict[tuple[int, int], Row]) -> int | None:
        """`_commit`, null where the segment is not visible."""
        if "decided" in row.tag:
            return int(row.tag["decided"][1])
        if not row.tag.get("transactional"):
            return 0
        marker = markers.get(row.producer) if row.producer else None
        return marker.tag["position"] if marker and marker.control == "COMMIT" else None

    def open_segments(self) -> list[Row]:
        m = self.markers()
        rows = [r for r in self.segments() if r.tag.get("transactional") and "decided" not in r.tag]
        return [r for r in rows if r.producer not in m]

    def lso(self, partition: int) -> int:
        bases = [r.base for r in self.open_segments() if r.partition == partition]
        return max(min(bases, default=self.get("next_offset", partition)), self.get("log_start", partition))

    def visible(self) -> list[tuple[Row, int]]:
        m = self.markers()
        pairs = [(r, self.commit_of(r, m)) for r in self.segments()]
        return [(r, c) for r, c in pairs if c is not None]

    def producers(self) -> dict[tuple[int, int], Producer]:
        return self.view("producers", self._producers)

    def _producers(self) -> dict[tuple[int, int], Producer]:
        result: dict[tuple[int, int], Producer] = {}
        through: dict[int, int] = {}
        events: list[tuple[int, int, Row]] = []
        for row in self.segment_rows():
            if row.control == "STATE":
                through[row.partition] = row.tag["through"]
                for p in row.tag["producers"]:
                    producer = result[row.partition, p["id"]] = Producer(p["epoch"], p["coordinator_epoch"])
                    producer.batches = p["batches"][-5:]
                    producer.last_timestamp, producer.last_offset = p["last_timestamp"], p["last_offset"]
            elif row.control is None:
                events += [(row.partition, row.base, row)] if row.producer else []
            else:
                events += [(int(p), offset, row) for p, offset in row.tag["offsets"].items()]
        for partition, offset, row in sorted(events, key=lambda e: e[:2]):
            if offset >= through.get(partition, 0) and row.producer:
                self._replay(result, partition, offset, row)
        return result

    @staticmethod
    def _replay(result: dict[tuple[int, int], Producer], partition: int, offset: int, row: Row) -> None:
        assert row.producer
        producer_id, epoch = row.producer
        known = result.get((partition, producer_id))
        if row.control is not None:
            if known and row.tag["ends"] < known.epoch:
                return
            new = result[partition, producer_id] = Producer(epoch, row.tag["coordinator_epoch"])
            new.last_timestamp, new.last_offset = row.tag["decided_at"], offset
            return
        if known is None or known.epoch != epoch:
            known = result[partition, producer_id] = Producer(epoch, known.coordinator_epoch if known else None)
        if "first_sequence" in row.tag:
            first = row.tag["first_sequence"]
            name = name_of(row.add["path"])
            known.batches = [*known.batches, [first, first + row.tag["records"] - 1, row.base, row.last, name]][-5:]
        known.last_timestamp, known.last_offset = row.add["modificationTime"], row.last


# --- 4.4 Checkpoints ------------------------------------------------------------------------------------------------

_TEXTS = pa.map_(pa.string(), pa.string())
CHECKPOINT = {
    "protocol": [("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())]
    + [(n, pa.list_(pa.string())) for n in ("readerFeatures", "writerFeatures")],
    "metaData": [(n, pa.string()) for n in ("id", "name", "description")]
    + [("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])), ("schemaString", pa.string())]
    + [("partitionColumns", pa.list_(pa.string())), ("configuration", _TEXTS), ("createdTime", pa.int64())],
    "txn": [("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())],
    "add": [("path", pa.string()), ("partitionValues", _TEXTS), ("size", pa.int64())]
    + [("modificationTime", pa.int64()), ("dataChange", pa.bool_()), ("stats", pa.string()), ("tags", _TEXTS)],
    "remove": [("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]
    + [("extendedFileMetadata", pa.bool_()), ("partitionValues", _TEXTS), ("size", pa.int64())],
}
MAPS = ("partitionValues", "configuration", "tags")


def checkpoint_rows(state: State) -> list[Json]:
    need(state.protocol and state.meta, "no checkpoint of a log without protocol or metaData")
    oldest = state.time - retention_ms(state.properties) - GUARD_MS
    rows: list[Json] = [{"protocol": state.protocol}, {"metaData": state.meta}]
    rows += [{"txn": {"appId": n, "version": v}} for n, v in state.numbers.items()]
    rows += [{"add": {**add, "dataChange": False}} for add in state.files.values()]
    for remove in state.tombstones.values():
        if remove["deletionTimestamp"] >= oldest:
            rows.append({"remove": {**remove, "dataChange": False, "extendedFileMetadata": True}})
    return rows


def write_checkpoint(state: State) -> bytes:
    schema = pa.schema([(n, pa.struct(f)) for n, f in CHECKPOINT.items()])
    table_ = pa.Table.from_pylist(checkpoint_rows(state), schema.with_metadata({"txntable.entry": state.next_chain}))
    out = io.BytesIO()
    dictionaries = [f"{n}.partitionValues.key_value.key" for n in ("add", "remove")]
    pq.write_table(table_, out, compression="zstd", use_dictionary=dictionaries)
    return out.getvalue()


def read_checkpoint(log: str, version: int, data: bytes, entry: Entry) -> State | None:
    """The state at it; null where it is of another log."""
    need(len(data) <= MAX_ENTRY, "a checkpoint of more than 256 MiB")
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        if (file.schema_arrow.metadata or {}).get(b"txntable.entry", b"").decode("latin-1") != entry.digest:
            return None
        need(set(CHECKPOINT) <= set(file.schema_arrow.names), "a checkpoint without one of the five columns")
        need(file.metadata.num_rows <= 10_000_000, "a checkpoint of more than 10,000,000 rows")
        # No thread of Arrow's may hold these bytes while the interpreter ends: it would end the process by an abort.
        rows = file.read(columns=list(CHECKPOINT), use_threads=False).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise Damage(f"a checkpoint that cannot be read: {error}") from error
    state = State(log)
    counts = {"protocol": 0, "metaData": 0}
    for row in rows:
        kinds = [n for n in CHECKPOINT if row[n] is not None]
        need(len(kinds) == 1, "one action a row")
        name, body = kinds[0], {k: v for k, v in row[kinds[0]].items() if v is not None}
        for k in MAPS:
            if k in body:
                need(len(dict(body[k])) == len(body[k]), "a name twice")
                body[k] = dict(body[k])
        if name == "metaData" and "format" in body:
            body["format"]["options"] = dict(body["format"]["options"] or [])
        body = check_action(log, name, body)
        need(name != "add" or body["path"] not in state.files, "a path twice")
        if name in counts:
            counts[name] += 1
        state.fold(name, body)
    need(set(counts.values()) == {1}, "exactly one protocol and one metaData")
    state.version, state.commit_id, state.log = version, entry.info["commitId"], entry.info["log"]
    state.next_chain, state.time = entry.digest, entry.info["inCommitTimestamp"]
    state.times[version] = state.time
    return state


# --- 4.2, 4.3 A store in a folder, and the logs in it ---------------------------------------------------------------


class Store:
    """A local folder. Last-Modified is a file's mtime; an object is put by link() from an unfinished file beside it."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        self.unsynced: set[str] = set()
        self.broken = False
        self.clock: tuple[int, float] | None = None

    def _same(self) -> None:
        there, opened = os.stat(self.root), os.fstat(self.fd)
        if (there.st_dev, there.st_ino) != (opened.st_dev, opened.st_ino):
            raise Refused("INCONSISTENT_CLUSTER_ID", "another folder is at the warehouse's path")

    def read(self, path: str) -> bytes | None:
        self._same()
        full = os.path.join(self.root, path)
        try:
            with open(full, "rb") as file:
                need(os.fstat(file.fileno()).st_size <= MAX_ENTRY or not path.endswith(".json"), f"{path} is too large")
                data = file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        self.unsynced.add(os.path.dirname(full))
        return data

    def modified(self, path: str) -> int | None:
        try:
            return os.stat(os.path.join(self.root, path)).st_mtime_ns // 1_000_000
        except (FileNotFoundError, NotADirectoryError):
            return None

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(n for n in os.listdir(os.path.join(self.root, folder)) if not n.startswith(".unfinished-"))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _sync_folder(self, folder: str) -> None:
        try:
            fd = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError:
            self.broken = True
            raise

    def sync(self) -> None:
        """What was read may not be durable yet."""
        if self.broken:
            raise Unknown("a folder could not be synced: this process writes nothing any more")
        for folder in sorted(self.unsynced):
            self._sync_folder(folder)
        self.unsynced.clear()

    def put(self, path: str, data: bytes, replace: bool = False) -> bool:
        """Put if absent: whether it was absent."""
        self._same()
        full = os.path.join(self.root, path)
        folder = os.path.dirname(full)
        made, above = [], folder
        while not os.path.isdir(above):
            made.append(above)
            above = os.path.dirname(above)
        os.makedirs(folder, exist_ok=True)
        for name in reversed(made):
            self._sync_folder(os.path.dirname(name))
        unfinished = os.path.join(folder, f".unfinished-{secrets.token_hex(16)}")
        try:
            with open(unfinished, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            self.sync()
            if replace:
                os.replace(unfinished, full)
            else:
                try:
                    os.link(unfinished, full)
                except FileExistsError:
                    self.unsynced.add(folder)
                    return False
            self._sync_folder(folder)
            return True
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(unfinished)

    def now(self) -> int:
        """§4.2 rule 11."""
        while self.clock is None or time.clock_gettime(time.CLOCK_BOOTTIME) - self.clock[1] > 900:
            before = time.clock_gettime(time.CLOCK_BOOTTIME)
            self.put("system/clock", b"", replace=True)
            modified, after = self.modified("system/clock"), time.clock_gettime(time.CLOCK_BOOTTIME)
            if modified is not None and after - before <= GUARD_MS / 2000:
                self.clock = (modified, after)
        return self.clock[0] + int((time.clock_gettime(time.CLOCK_BOOTTIME) - self.clock[1]) * 1000)


def hint_version(data: bytes) -> int | None:
    try:
        need(len(data) <= 4096, "a hint of more than 4 KiB")
        version = load_json(data)["version"]
        FROM_0(version)
    except (Damage, TypeError, KeyError):
        return None
    return int(version)


class Log:
    """One Delta log, followed."""

    def __init__(self, store: Any, kind: str, topic: str = "") -> None:
        self.store, self.kind, self.topic = store, kind, topic
        self.root = log_folder(kind, topic)
        self.folder = self.root + "/_delta_log"
        self.state = State(kind)
        self.seen = 0.0
        self.open()

    def slot(self, version: int) -> bytes | None:
        data = self.store.read(f"{self.folder}/{entry_name(version)}")
        assert data is None or isinstance(data, bytes)
        return data

    def _from_checkpoint(self, version: int) -> State | None:
        data, entry = self.store.read(f"{self.folder}/{checkpoint_name(version)}"), self.slot(version)
        if data is None or entry is None:
            return None
        return read_checkpoint(self.kind, version, data, decode_entry(self.kind, entry))

    def open(self) -> None:
        """§4.3. A log without entries stays at version -1."""
        for _ in range(10):
            hint = self.store.read(f"{self.folder}/_last_checkpoint")
            version = hint_version(hint) if hint is not None else None
            state = self._from_checkpoint(version) if version is not None else None
            if state is None and (hint is not None or self.slot(0) is None):
                names = self.store.names(self.folder)
                versions = [int(n[:20]) for n in names if re.fullmatch(r"[0-9]{20}\.checkpoint\.parquet", n)]
                for version in sorted(versions, reverse=True):
                    state = state or self._from_checkpoint(version)
                if state is None and self.slot(0) is None:
                    entries = any(re.fullmatch(r"[0-9]{20}\.json", n) for n in names)
                    need(not entries, f"{self.folder}: the oldest entry has no checkpoint")
            self.state = state or State(self.kind)
            start = f"{self.folder}/{entry_name(max(self.state.version, 0))}"
            before = self.store.modified(start)
            self._tail()
            self.seen = time.clock_gettime(time.CLOCK_BOOTTIME)
            if self.store.modified(start) == before:
                return
        raise Damage(f"{self.folder}: what it was read from goes again and again")

    def refresh(self) -> None:
        """The entries above the view; what the view stands on must still be there."""
        if self.state.version < 0 or time.clock_gettime(time.CLOCK_BOOTTIME) - self.seen > GUARD_MS / 1000:
            old = self.state
            self.open()
            new = self.state
            if old.version > new.version or (old.version >= 0 and old.log != new.log):
                raise Refused("INCONSISTENT_CLUSTER_ID", f"{self.folder} is another log now")
            if old.version >= 0 and self.slot(old.version) is not None:
                self._look(old.version, old.next_chain)
            return
        log = self.state.log
        self._look()
        self._tail()
        self._look()
        if self.state.log != log:
            raise Refused("INCONSISTENT_CLUSTER_ID", f"{self.folder}: a fence")
        self.seen = time.clock_gettime(time.CLOCK_BOOTTIME)

    def _look(self, version: int | None = None, digest: str | None = None) -> None:
        """Rule 13."""
        data = self.slot(self.state.version if version is None else version)
        if data is None or sha(data) != (digest or self.state.next_chain):
            raise Refused("INCONSISTENT_CLUSTER_ID", f"{self.folder} is not the log that was opened")

    def _tail(self) -> None:
        window, state = 1, self.state
        while True:
            first = state.version + 1
            slots = [self.slot(first + i) for i in range(window)]
            if None in slots:
                hole = slots.index(None)
                for above in slots[hole + 1 :]:
                    if above is not None and commit_info(above)["log"] == state.log:
                        need(self.slot(first + hole) is not None, f"{self.folder}: version {first + hole} is missing")
                        slots = [self.slot(first + i) for i in range(window)]
                        hole = slots.index(None) if None in slots else window
                        break
                slots = slots[:hole]
            for data in slots:
                assert data is not None
                self._step(decode_entry(self.kind, data))
            if len(slots) < window:
                return
            window = min(16, 2 * window)

    def _step(self, entry: Entry) -> None:
        state = self.state
        verdict = state.judge(entry)
        if verdict == "next":
            state.step(entry, void=False)
            return
        need(state.version >= 0, f"{self.folder}: version 0 stands on something")
        if verdict != "void":
            need(self._fence_above(), f"{self.folder}: version {state.version + 1} does not go on from the log")
        self._look()
        state.step(entry, void=True)

    def _fence_above(self) -> bool:
        version = self.state.version + 2
        while (data := self.slot(version)) is not None:
            info = commit_info(data)
            if info["log"] == info["commitId"] and info["previous"] == self.state.commit_id:
                return True
            version += 1
        return False

    def repairs(self, actions: list[Action], at: int) -> list[Action]:
        """§4.6: what the next commit says again."""
        state, result = self.state, []
        said = {(n if n == "txn" else "file", b.get("path", b.get("appId", n))) for n, b in actions}
        for _, entry in state.void:
            for name, body in entry.actions:
                key = (name if name == "txn" else "file", body.get("path", body.get("appId", name)))
                if key in said:
                    continue
                said.add(key)
                if name in ("add", "remove"):
                    gone = {"path": key[1], "deletionTimestamp": at, "dataChange": False, "extendedFileMetadata": True}
                    row = state.files.get(str(key[1]))
                    gone |= {"partitionValues": body.get("partitionValues", {}), "size": body.get("size", 0)}
                    result.append(("add", {**row, "dataChange": False}) if row else ("remove", gone))
                elif name == "txn" and key[1] in state.numbers:
                    result.append(("txn", {"appId": key[1], "version": state.numbers[key[1]]}))
                elif name in ("metaData", "protocol") and (body_now := getattr(state, name[:8].replace("Data", ""))):
                    result.append((name, body_now))
        return result

    def commit(
        self,
        operation: str,
        decide: Callable[[State, int], list[Action] | None],
        describe: Callable[[State, list[Action]], Json] = lambda _, __: {},
    ) -> State | None:
        """Decide, and put at exactly the next slot, until it is in (§4.2). Null where nothing is to be written."""
        end = time.monotonic() + DEADLINE_S
        while True:
            self.refresh()
            state, now = self.state, self.store.now()
            actions = decide(state, now)
            if actions is None:
                self.store.sync()
                return None
            commit_id, at = secrets.token_hex(16), max(now, state.time + 1 if state.version >= 0 else 0)
            repairs = self.repairs(actions, at)
            info = {"inCommitTimestamp": at, "timestamp": at, "operation": operation, "operationParameters": {}}
            info |= {"engineInfo": ENGINE, "txnId": commit_id, "commitId": commit_id, "log": state.log or commit_id}
            info |= {"previous": state.commit_id, "chain": state.next_chain}
            info |= describe(state, actions)
            info |= {"repairs": len(repairs)} if repairs else {}
            lines = [{"commitInfo": info}, *({n: b} for n, b in repairs + actions)]
            data = "".join(spell(line) + "\n" for line in lines).encode("utf-8")
            trial, entry = state.copy(), decode_entry(self.kind, data)
            need(trial.judge(entry) == "next", "one's own entry does not go on")
            trial.step(entry, void=False)
            if self._put(state, trial.version, data, commit_id, end):
                self.state = trial
                self._checkpoint(trial)
                return trial
            if time.monotonic() > end:
                raise Unknown(f"{self.folder}: no commit in time")

    def _put(self, state: State, version: int, data: bytes, commit_id: str, end: float) -> bool:
        path = f"{self.folder}/{entry_name(version)}"
        while True:
            if time.clock_gettime(time.CLOCK_BOOTTIME) - self.seen > GUARD_MS / 1000:
                raise Unknown(f"{path}: the view is older than the guard")
            try:
                done = self.store.put(path, data)
            except OSError:
                done = False
            if state.version >= 0:
                self._look(state.version, state.next_chain)
            found = data if done else self.slot(version)
            if found is not None and (found == data or commit_info(found)["commitId"] != commit_id):
                if found == data:
                    self.store.sync()
                return found == data
            need(found is None, "one's own commit with other bytes")
            if time.monotonic() > end:
                raise Unknown(f"{path}: the outcome is not known")

    def _checkpoint(self, state: State) -> None:
        interval = 100
        while 2 * interval <= len(state.files) // 50:
            interval *= 2
        if state.version == 0 or state.version % interval:
            return
        with contextlib.suppress(OSError, Damage, pa.ArrowException):
            data, entry = write_checkpoint(state), self.slot(state.version)
            need(entry and read_checkpoint(self.kind, state.version, data, decode_entry(self.kind, entry)), "unread")
            self.store.put(f"{self.folder}/{checkpoint_name(state.version)}", data)
            hint = spell({"version": state.version, "size": len(state.files)}).encode()
            self.store.put(f"{self.folder}/_last_checkpoint", hint, replace=True)


# --- 5.2 Segments: values, statistics, files ------------------------------------------------------------------------

EPOCH = datetime.datetime(1970, 1, 1)
YEAR_1, YEAR_10000 = -62135596800_000_000, 253402300800_000_000


class Raw(str):
    """JSON, spelled already."""


def dump(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{spell(k)}:{dump(v)}" for k, v in value.items()) + "}"
    return str(value) if isinstance(value, Raw) else spell(value)


def convert(kind: Any, value: Any) -> Any:
    """A value of JSON, as Arrow takes it: dates as days, timestamps as µs, binary from hex."""
    if value is None:
        return None
    if isinstance(kind, dict):
        if kind["type"] == "struct":
            return {f["name"]: convert(f["type"], value.get(f["name"])) for f in kind["fields"]}
        if kind["type"] == "array":
            return [convert(kind["elementType"], v) for v in value]
        pairs = value.items() if isinstance(value, dict) else value
        return [(convert(kind["keyType"], k), convert(kind["valueType"], v)) for k, v in pairs]
    if kind == "binary":
        return bytes.fromhex(value)
    if kind == "date":
        return (datetime.date.fromisoformat(value) - EPOCH.date()).days if isinstance(value, str) else value
    if kind in ("timestamp", "timestamp_ntz"):
        if isinstance(value, str):
            moment = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo else moment
            return (moment - EPOCH) // datetime.timedelta(microseconds=1)
        return value
    if kind in ("float", "double"):
        return pa.scalar(float(value), pa.float32()).as_py() if kind == "float" else float(value)
    if kind.startswith("decimal"):
        with decimal.localcontext() as context:
            context.prec = 80
            return decimal.Decimal(str(value)).quantize(decimal.Decimal(1).scaleb(-arrow_type(kind).scale))
    return value


def moment_text(us: int, zone: str) -> str:
    text = (EPOCH + datetime.timedelta(microseconds=us)).isoformat(timespec="microseconds")
    return f'"{text if us % 1000 else text[:-3]}{zone}"'


def raised(text: str) -> str | None:
    """An upper bound of texts that begin so."""
    for size in (32, 256):
        if len(text) <= size:
            return text
        for i in range(size - 1, -1, -1):
            if text[i] != "\U0010ffff":
                code = ord(text[i]) + 1
                return text[:i] + chr(0xE000 if code == 0xD800 else code)
    return None


def bound(kind: str, values: list[Any], upper: bool) -> Raw | None:
    """Null: it cannot be said."""
    if kind in ("float", "double") and any(math.isnan(v) for v in values):
        return None
    value = max(values) if upper else min(values)
    if kind in ("float", "double"):
        zero = "0.0" if upper else "-0.0"
        return None if math.isinf(value) else Raw(repr(value) if value else zero)
    if kind == "string":
        text = raised(value) if upper else value[:32]
        return None if text is None else Raw(spell(text))
    if kind == "date":
        ok = YEAR_1 <= value * DAY_MS * 1000 < YEAR_10000
        return Raw(f'"{(EPOCH + datetime.timedelta(days=value)).date()}"') if ok else None
    if kind in ("timestamp", "timestamp_ntz"):
        if not YEAR_1 <= value < YEAR_10000:
            return None
        rounded = (-(-value // 1000) if upper else value // 1000) * 1000
        return Raw(moment_text(rounded if rounded < YEAR_10000 else value, "Z" if kind == "timestamp" else ""))
    return Raw(format(value, "f") if kind.startswith("decimal") else spell(value))


def statistics(columns: list[Json], rows: list[Json], timestamps: list[int]) -> str:
    left = 32

    def walk(table_: list[Json], items: list[Any], inside: bool, sides: list[Json | None], counts: Json) -> None:
        nonlocal left
        for field in table_:
            name, kind = field["name"], field["type"]
            values = [None if item is None else item.get(name) for item in items]
            if isinstance(kind, dict) and kind["type"] == "struct":
                inner: list[Json | None] = [{}, {}]
                below: Json = {}
                before = left
                walk(kind["fields"], values, True, inner, below)
                if left < before and below:
                    counts[name] = below
                    for i in (0, 1):
                        if sides[i] is not None and can_bound(kind["fields"]):
                            sides[i][name] = inner[i]  # type: ignore[index]
                continue
            if left <= 0 and not name.startswith("_"):
                continue
            left -= 1
            if isinstance(kind, dict):
                continue
            there = [v for v in values if v is not None]
            counts[name] = len(values) - len(there)
            if not there or kind == "binary":
                continue
            for i in (0, 1):
                said = bound(kind, there, i == 1)
                if said is None and not inside:
                    sides[i] = None
                elif said is not None and sides[i] is not None:
                    sides[i][name] = said  # type: ignore[index]

    def can_bound(table_: list[Json]) -> bool:
        kinds = [f["type"] for f in table_]
        return any(k != "binary" if isinstance(k, str) else can_bound(k.get("fields", [])) for k in kinds)

    sides: list[Json | None] = [{}, {}]
    counts: Json = {}
    walk(columns, rows, False, sides, counts)
    extra = [{"_offset_delta": i, "_timestamp": t} for i, t in enumerate(timestamps)]
    walk([column("_offset_delta", "long"), column("_timestamp", "timestamp")], extra, False, sides, counts)
    result: Json = {"numRecords": len(rows)}
    if sides[0] is not None:
        result["minValues"] = sides[0]
    if sides[1] is not None:
        result["maxValues"] = sides[1]
    elif (last := bound("timestamp", timestamps, True)) is not None:
        result["txntable"] = {"_timestamp": last}
    return dump({**result, "nullCount": counts})


COMPRESSION = {"producer": "zstd", "uncompressed": "none"}


def segment_bytes(columns: list[Json], rows: list[Json], timestamps: list[int], compression: str) -> bytes:
    names = [c["name"] for c in columns]
    arrays = [pa.array([r.get(c["name"]) for r in rows], arrow_type(c["type"])) for c in columns]
    arrays += [pa.array(range(len(rows)), pa.int64()), pa.array(timestamps, SIMPLE["timestamp"])]
    data = pa.table(arrays, names=[*names, "_offset_delta", "_timestamp"])
    out = io.BytesIO()
    pq.write_table(
        data,
        out,
        compression=COMPRESSION.get(compression, compression),
        use_dictionary=False,
        column_encoding={"_offset_delta": "DELTA_BINARY_PACKED"},
        write_page_checksum=True,
        store_schema=False,
        store_decimal_as_integer=True,
    )
    return out.getvalue()


def read_segment(store: Any, topic: str, row: Row, columns: list[Json]) -> list[Json]:
    """§10, what a reader checks; records with `_partition`, `_offset` and `_timestamp`."""
    where = f"{topic}: {row.add['path']}, partition {row.partition}, offsets {row.base} to {row.last}"
    data = store.read(f"{log_folder('S', topic)}/{row.add['path']}")
    need(data is not None, f"{where}: the file is gone")
    need(len(data) == row.add["size"], f"{where}: another size")
    algorithm, digest = row.tag.get("digest", "none:").split(":")
    need(algorithm != "sha256" or sha(data) == digest, f"{where}: another digest")
    try:
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        table_ = file.read(use_threads=False)  # as in read_checkpoint
        stats = load_json_lenient(row.add.get("stats"))
        counts = {row.tag.get("records", table_.num_rows), stats.get("numRecords", table_.num_rows)}
        need(counts == {table_.num_rows}, f"{where}: another number of records")
        deltas = table_["_offset_delta"].to_pylist()
        arrays = {"_timestamp": table_["_timestamp"].cast(SIMPLE["timestamp"])}
        for c in columns:
            need(c["name"] in table_.schema.names or c["nullable"], f"{where}: {c['name']} is missing")
            missing = c["name"] not in table_.schema.names
            kind = arrow_type(c["type"])
            arrays[c["name"]] = pa.nulls(table_.num_rows, kind) if missing else table_[c["name"]].cast(kind)
    except (pa.ArrowException, OSError, KeyError) as error:
        raise Damage(f"{where}: {error}") from error
    need(all(a < b for a, b in zip(deltas, deltas[1:], strict=False)), f"{where}: offsets do not rise")
    need(not deltas or (deltas[0] >= 0 and row.base + deltas[-1] <= row.last), f"{where}: offsets out of the range")
    records = pa.table(arrays).to_pylist()
    return [{"_partition": row.partition, "_offset": row.base + d, **r} for d, r in zip(deltas, records, strict=True)]


def load_json_lenient(text: str | None) -> Json:
    value = json.loads(text) if text else {}
    return value if isinstance(value, dict) else {}


# --- 5.2, 5.4 Appends -----------------------------------------------------------------------------------------------


class Segment(NamedTuple):
    partition: int
    name: str
    records: int
    first_sequence: int | None
    partition_count: int | None
    uploaded_at: int | None


def decide_append(
    state: State, topic_id: str, who: tuple[int, int] | None, transactional: bool, segments: list[Segment], now: int
) -> tuple[list[int], list[Segment], dict[str, int]]:
    """The base offset of each, those that are to be written, and the numbers."""
    if state.version < 0 or not state.live or state.topic_id != topic_id:
        raise Refused("UNKNOWN_TOPIC_OR_PARTITION", "the topic is gone, or another")
    bases: list[int] = []
    written: list[Segment] = []
    numbers: dict[str, int] = {}
    known: dict[int, tuple[int, list[list[Any]]] | None] = {}
    open_ = {(r.partition, r.producer) for r in state.open_segments()}
    for s in segments:
        if s.partition >= state.partitions:
            raise Refused("UNKNOWN_TOPIC_OR_PARTITION", f"partition {s.partition}")
        path = segment_path(topic_id, s.partition, who, s.name)
        if who and s.partition not in known:
            p = state.producers().get((s.partition, who[0]))
            known[s.partition] = (p.epoch, p.batches) if p else None
        epoch, batches = known.get(s.partition) or (None, [])
        if path in state.files and (who is None or epoch is None or epoch == who[1]):
            bases.append(int(state.files[path]["partitionValues"]["_base_offset"]))
            continue
        name = f"next_offset/{topic_id}/{s.partition}"
        base = numbers.get(name, state.numbers.get(name, 0))
        if who:
            assert s.first_sequence is not None
            last = s.first_sequence + s.records - 1
            same = [b for b in batches if epoch == who[1] and b[:2] == [s.first_sequence, last]]
            if same and same[0][4] == s.name:
                bases.append(same[0][2])
                continue
            if same:
                raise Refused("OUT_OF_ORDER_SEQUENCE_NUMBER", "other content under the same sequence")
            if epoch is not None and who[1] < epoch:
                raise Refused("INVALID_PRODUCER_EPOCH", f"{who[1]} is before {epoch}")
            wanted = batches[-1][1] + 1 if epoch == who[1] and batches else 0
            if s.first_sequence != wanted and (epoch is not None or transactional):
                raise Refused("OUT_OF_ORDER_SEQUENCE_NUMBER", f"{s.first_sequence}, not {wanted}")
            if not transactional and (s.partition, who) in open_:
                raise Refused("INVALID_TXN_STATE", "inside of an open transaction")
            batch = [s.first_sequence, last, base, base + s.records - 1, s.name]
            known[s.partition] = (who[1], [*(batches if epoch == who[1] else []), batch][-5:])
        if s.partition_count is not None and s.partition_count != state.partitions:
            raise Refused("TRANSACTION_ABORTABLE", "the number of partitions is another now")
        late = s.uploaded_at is not None and now - s.uploaded_at > retention_ms(state.properties) // 2
        if path in state.tombstones or late:
            raise Refused("TRANSACTION_ABORTABLE", "the segment may not be registered any more")
        bases.append(base)
        written.append(s)
        numbers[name] = base + s.records
    return bases, written, numbers


# --- 7 Projection ---------------------------------------------------------------------------------------------------


def public_metadata(s: State, topic: str) -> Json:
    assert s.meta
    uuid = sha(f"{s.meta['id']}/public".encode())[:32]
    span = f"interval {int(s.properties['txntable.vacuum.retention.ms']) // 1000} seconds"
    spans = {f"delta.{n}RetentionDuration": span for n in ("deletedFile", "log")}
    return {
        "id": "-".join([uuid[:8], uuid[8:12], uuid[12:16], uuid[16:20], uuid[20:]]),
        "name": topic,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": public_schema(parse_schema(s.properties["txntable.topic.schema"])),
        "partitionColumns": list(P_COLUMNS),
        "configuration": {**s.properties, **spans},
        "createdTime": s.meta["createdTime"],
    }


def projection(s: State, p: State, topic: str, now: int) -> list[Action] | None:
    """What makes P reflect S; null where it does."""
    if p.numbers.get("reflects", -1) >= s.version:
        return None
    actions: list[Action] = []
    meta = public_metadata(s, topic)
    if p.version < 0:
        ntz = has_ntz(parse_schema(s.properties["txntable.topic.schema"]))
        protocol: Json = {"minReaderVersion": 3 if ntz else 1, "minWriterVersion": 7}
        protocol |= {"readerFeatures": ["timestampNtz"]} if ntz else {}
        actions.append(("protocol", {**protocol, "writerFeatures": list(WRITER_FEATURES[: 5 if ntz else 4])}))
    if p.meta is None or any(p.meta.get(k) != v for k, v in meta.items()):
        actions.append(("metaData", meta))
    shown: set[str] = set()
    for row, commit in s.visible():
        path = "_segments/" + row.add["path"]
        shown.add(path)
        values = {k: row.add["partitionValues"][k] for k in P_COLUMNS[:3]} | {"_commit": str(commit)}
        if path not in p.files or p.files[path]["partitionValues"] != values:
            add = {"path": path, "partitionValues": values, "size": row.add["size"]}
            add |= {"modificationTime": row.add["modificationTime"], "dataChange": "decided" not in row.tag}
            add |= {"stats": row.add["stats"]} if "stats" in row.add else {}
            tag = spell({"v": 1, "digest": row.tag["digest"]})
            actions.append(("add", {**add, "tags": {"txntable": tag}}))
    for path, old in p.files.items():
        if path not in shown:
            gone = {"path": path, "deletionTimestamp": now, "dataChange": False, "extendedFileMetadata": True}
            actions.append(("remove", {**gone, "partitionValues": old["partitionValues"], "size": old["size"]}))
    t = s.topic_id
    numbers = {"reflects": s.version}
    numbers |= {f"{n}/{t}": s.get(n) for n in ("decided_through", "merged_through")}
    for i in range(s.partitions):
        numbers |= {f"high_watermark/{t}/{i}": s.get("next_offset", i), f"lso/{t}/{i}": s.lso(i)}
        if start := s.get("log_start", i):
            numbers[f"log_start/{t}/{i}"] = start
    always = ("reflects", f"decided_through/{t}", f"merged_through/{t}")
    said = [(n, v) for n, v in numbers.items() if n in always or p.numbers.get(n) != v]
    new = [("txn", {"appId": n, "version": v}) for n, v in said]
    return actions + new


def details(s: State, p: State, actions: list[Action], decided: Sequence[Json]) -> Json:
    """What the history of P shows of a projection."""
    new = [body for name, body in actions if name == "add" and body["path"] not in p.files]
    gone = [body for name, body in actions if name == "remove"]
    tags = {b["path"]: load_json(s.files[b["path"].removeprefix("_segments/")]["tags"]["txntable"]) for b in new}
    metrics = {"numFiles": len(new), "numOutputRows": sum(tag["records"] for tag in tags.values())}
    metrics |= {"numOutputBytes": sum(b["size"] for b in new)}
    metrics |= {"numRemovedFiles": len(gone), "numRemovedBytes": sum(b["size"] for b in gone)}
    names = {(r["producer_id"], r["decision"]["epoch"]): r for r in decided if r.get("decision")}
    shown = set()
    for body in new:
        values = s.files[body["path"].removeprefix("_segments/")]["partitionValues"]
        position = int(body["partitionValues"]["_commit"])
        if position and values["_producer_id"] is not None and "decided" not in tags[body["path"]]:
            shown.add((position, int(values["_producer_id"]), int(values["_producer_epoch"])))
    order = sorted(shown)
    parameters: Json = {"more": str(len(order))} if order else {}
    for n in range(1, min(8, len(order)) + 1):
        rows = [names.get((i, e)) for _, i, e in order[:n]]
        found: Json = {"transactionalIds": spell([r and cut(r["transactional_id"]) for r in rows])}
        found |= {"batchIds": spell([r and cut(r["decision"].get("batch_id")) for r in rows])}
        found |= {"positions": spell([position for position, _, _ in order[:n]])}
        found |= {"more": str(len(order) - n)} if len(order) > n else {}
        if len(spell(found).encode("utf-8")) <= 300:
            parameters = found
    return {"operationParameters": parameters, "operationMetrics": {k: str(v) for k, v in metrics.items()}}


def cut(name: str | int | None) -> str | int | None:
    return name[:47] + "…" if type(name) is str and len(name) > 48 else name


# --- 6.2, 6.3 The end of a transaction, 8.1 settling ----------------------------------------------------------------


class Memory(NamedTuple):
    """What T remembers of a batch id: the last integer, whether the name has a row, and who wrote that row."""

    last_integer: int | None = None
    name_known: bool = False
    by: tuple[int, int] | None = None


BatchId = str | int | None


def past_outcome(row: Json, epoch: int) -> str | None:
    """C, A, N; null: not known any more."""
    decision = row.get("decision")
    if decision is None or epoch > decision["epoch"]:
        return "N"
    if epoch == decision["epoch"]:
        return str(decision["outcome"][0])
    above = decision["epoch"]
    for letter, count in reversed(parse_past(row.get("past", ""))):
        above -= count
        if epoch >= above:
            return letter
    return None


def decided_row(row: Json, outcome: str, slot: int, batch: BatchId, state: str) -> Json:
    epoch, last = row["producer_epoch"], row.get("decision")
    runs = parse_past(row.get("past", ""))
    for letter, count in [(last["outcome"][0], 1)] if last else []:
        runs.append((letter, count))
    if given_up := epoch - (last["epoch"] + 1 if last else 0):
        runs.append(("N", given_up))
    joined: list[tuple[str, int]] = []
    for letter, count in runs:
        if joined and joined[-1][0] == letter:
            joined[-1] = (letter, joined[-1][1] + count)
        else:
            joined.append((letter, count))
    texts = [c if n == 1 else f"{c}{n}" for c, n in joined]
    while len("".join(texts)) > 256:
        texts.pop(0)
    decision = {"epoch": epoch, "outcome": outcome, "position": slot} | ({} if batch is None else {"batch_id": batch})
    return id_row(
        row,
        state=state,
        producer_epoch=epoch + 1,
        decision=decision,
        past="".join(texts) or None,
        token=None,
        batch_id=None,
        position=slot,
    )


def completed_row(row: Json, position: int) -> Json:
    """A decided row as COMPLETE at a position leaves it."""
    gone = dict.fromkeys(("partitions", "groups", "started_position", "manifest"))
    return id_row(row, state=row["state"].replace("PREPARE", "COMPLETE"), position=position, **gone)


def id_row(row: Json, **changes: Any) -> Json:
    """A row of an id with changes, null for what goes, in its order."""
    new = {**row, **changes}
    return {f.name: new[f.name] for f in ID_ROW if new.get(f.name) is not None}


def end(
    row: Json | None,
    who: tuple[int, int],
    outcome: str,
    slot: int,
    batch: BatchId,
    memory: Memory,
    token: str | None,
    repeated: bool,
    manifest: Json | None = None,
    now: int = 0,
) -> Json | None:
    """The row that ends a transaction; null where it has ended so. §6.3, a late end."""
    fenced = "PRODUCER_FENCED" if row and row["producer_id"] == who[0] else "INVALID_PRODUCER_ID_MAPPING"
    if row is None or row["producer_id"] != who[0] or who[1] > row["producer_epoch"]:
        if row is not None and row["producer_id"] == who[0]:
            raise Refused(fenced, "an epoch that nobody was given")
        _late(fenced, None, who, outcome, batch, memory, bool(token) or repeated)
        return None
    state, epoch = row["state"], row["producer_epoch"]
    if who[1] < epoch:
        if who[1] == epoch - 1 and state.startswith(("PREPARE_", "COMPLETE_")):
            if (ended := row["decision"]["outcome"]) != outcome:
                raise Refused("INVALID_TXN_STATE", f"it ended with {ended}")
            return None
        _late(fenced, past_outcome(row, who[1]), who, outcome, batch, memory, bool(token) or repeated)
        return None
    if state.startswith("PREPARE_"):
        raise Refused("CONCURRENT_TRANSACTIONS", "the last transaction is not complete")
    if token != row.get("token"):
        raise Refused("INVALID_TXN_STATE", "the token is another")
    carried = row.get("batch_id") if state == "PREPARED" else batch
    if outcome == "ABORT":
        to = "PREPARE_ABORT" if state in ("ONGOING", "PREPARED") else "COMPLETE_ABORT"
        return decided_row(row, outcome, slot, carried, to)
    if state == "PREPARED" and batch != carried:
        raise Refused("INVALID_REQUEST", "prepared with another batch id")
    if manifest and any(now - s["uploaded_at"] > LONGEST_UPLOAD_MS for some in manifest.values() for s in some):
        raise Refused("TRANSACTION_ABORTABLE", "an upload is too old")
    if state not in ("ONGOING", "PREPARED") and carried is None and not manifest:
        raise Refused("INVALID_TXN_STATE", "nothing to commit")
    if isinstance(carried, str) and memory.name_known:
        raise Refused("BATCH_ALREADY_COMMITTED", carried)
    if isinstance(carried, int) and memory.last_integer is not None and carried <= memory.last_integer:
        raise Refused("BATCH_ALREADY_COMMITTED" if carried == memory.last_integer else "BATCH_OUT_OF_ORDER")
    to = "PREPARE_COMMIT" if state in ("ONGOING", "PREPARED") or manifest else "COMPLETE_COMMIT"
    return decided_row(row, outcome, slot, carried, to)


def carrying_row(row: Json, manifest: Json, names: dict[str, str]) -> Json:
    """A decided row with what it carries."""
    enrolled = dict(row.get("partitions", {}))
    for topic_id, segments in manifest.items():
        known = parse_ranges(enrolled[topic_id]["partitions"]) if topic_id in enrolled else ()
        both = {*known, *(s["partition"] for s in segments)}
        enrolled[topic_id] = {"name": names[topic_id], "partitions": format_ranges(both)}
    started = row.get("started_position", row["position"])
    return id_row(row, partitions=dict(sorted(enrolled.items())), started_position=started, manifest=manifest)


def _late(
    fenced: str, known: str | None, who: tuple[int, int], outcome: str, batch: BatchId, memory: Memory, asked: bool
) -> None:
    if outcome == "ABORT" or known in ("A", "N") or (known is None and not asked):
        raise Refused(fenced, "a newer epoch has the id")
    if known == "C":
        return
    if batch is None or (isinstance(batch, int) and memory.last_integer is not None and batch < memory.last_integer):
        raise Refused("TRANSACTION_OUTCOME_UNKNOWN")
    remembered = memory.name_known if isinstance(batch, str) else memory.last_integer == batch
    if not remembered or memory.by != who:
        raise Refused(fenced, "its batch was not committed by it")


Decisions = dict[tuple[int, int], tuple[str, int]]


def settle(rows: list[Json], decisions: Decisions, slot: int) -> tuple[list[Json], list[Json]]:
    """The rows of offsets that change, and those that go."""
    written: list[Json] = []
    removed: list[Json] = []
    for row in rows:
        left, committed = [], row.get("committed")
        for p in row.get("pending", []):
            outcome, position = decisions.get((p["producer_id"], p["epoch"]), ("", 0))
            if not outcome:
                left.append(p)
            elif outcome == "COMMIT" and (committed is None or committed["request"] <= p["request"]):
                committed = {"offset": p["offset"], "metadata": p["metadata"], "topic_id": p.get("topic_id", "")}
                committed |= {"request": p["request"], "position": position}
        if len(left) == len(row.get("pending", [])):
            continue
        new = {**row, "position": slot, "committed": committed, "pending": left}
        new = {f.name: new[f.name] for f in OFFSET_ROW if new.get(f.name) or f.name == "partition"}
        (written if "committed" in new or "pending" in new else removed).append(new)
    return written, removed


# --- The warehouse: topics, records, transactions -------------------------------------------------------------------

Change = Callable[[State, "Json | None"], "Json | None"]


def carried_add(s: State, numbers: dict[str, int], row: Json, segment: Json, at: int) -> Action:
    """The row of S of a segment that a decision carries; its offsets go on from `numbers`."""
    who, partition = (row["producer_id"], row["decision"]["epoch"]), segment["partition"]
    number_ = f"next_offset/{s.topic_id}/{partition}"
    base = numbers.get(number_, s.numbers.get(number_, 0))
    numbers[number_] = base + segment["records"]
    placed = (partition, base, base + segment["records"] - 1, *who)
    texts: dict[str, str | None] = dict(zip(S_COLUMNS, map(str, placed), strict=False))
    tag: Json = {"v": 1, "records": segment["records"], "first_timestamp": segment["first_timestamp"]}
    tag |= {"max_timestamp": segment["max_timestamp"], "digest": segment["digest"], "transactional": True}
    tag |= {"first_sequence": segment["first_sequence"]}
    tag |= {name: segment[name] for name in ("partition_count", "uploaded_at") if name in segment}
    add: Json = {"path": segment_path(s.topic_id, partition, who, segment["name"])}
    add |= {"partitionValues": texts | {"_control": None, "_marker": None}, "size": segment["size"]}
    add |= {"modificationTime": at, "dataChange": True, "stats": segment["stats"], "tags": {"txntable": spell(tag)}}
    return "add", add


class Warehouse:
    """An existing one, in a local folder, or in a store that the caller brings."""

    def __init__(self, root: str, store: Any = None) -> None:
        self.store = Store(root) if store is None else store
        self.identity = warehouse_identity(self.store.read("_warehouse.json"))
        self.t, self.o = Log(self.store, "T"), Log(self.store, "O")
        self.logs: dict[tuple[str, str], Log] = {}
        # Of ids whose last decision owes nothing any more: its position.
        self.known: dict[tuple[str, ...], int] = {}
        need(min(self.t.state.version, self.o.state.version) >= 0, "the warehouse lacks its transaction or offset log")
        found = self.t.state.properties.get("txntable.warehouse.id")
        need(found == self.identity["warehouse_id"], "the transaction log is of another warehouse")
        self.settings = warehouse_settings(self.t.state.properties)

    def log(self, kind: str, topic: str) -> Log:
        if (kind, topic) not in self.logs:
            self.logs[kind, topic] = Log(self.store, kind, topic)
        else:
            self.logs[kind, topic].refresh()
        return self.logs[kind, topic]

    def topics(self) -> list[str]:
        names = [n for n in self.store.names("topics") if topic_name_allowed(n)]
        return [n for n in names if (s := self.log("S", n).state).version >= 0 and s.live]

    def topic(self, name: str) -> State:
        if topic_name_allowed(name):
            state = self.log("S", name).state
            if state.version >= 0 and state.live:
                return state
        raise Refused("UNKNOWN_TOPIC_OR_PARTITION", name)

    def project(self, topic: str, decided: Sequence[Json] = ()) -> None:
        """§7: P shows the head of S afterwards. `decided`: rows of T, whose names its history shows."""
        s, p = self.log("S", topic), self.log("P", topic)
        p.commit(
            "PROJECT",
            lambda state, now: projection(s.state, state, topic, now),
            lambda state, actions: details(s.state, state, actions, decided),
        )

    def counted(self, row: Json | None) -> Json | None:
        """§6.2: a row as it counts: what is known complete as COMPLETE would leave it."""
        if row is None or not row["state"].startswith("PREPARE_"):
            return row
        is_known = self.known.get((row["transactional_id"],)) == row["position"]
        return completed_row(row, row["position"]) if is_known else row

    def bring(self) -> None:
        """§6.4: what all that is decided owes. Then it is known complete."""
        self.t.refresh()
        t = self.t.state
        rows = t.rows("id").items()
        decided = {k: r for k, r in rows if r["state"].startswith("PREPARE_") and self.known.get(k) != r["position"]}
        owed = sorted(decided.values(), key=lambda r: (r["decision"]["position"], r["producer_id"]))
        topics = {i: p["name"] for r in owed for i, p in r.get("partitions", {}).items()}
        for topic_id, name in topics.items():
            self._mark(t, topic_id, name, [r for r in owed if topic_id in r.get("partitions", {})])
        if any("groups" in r for r in owed):
            self._settle(t, owed)
        self.known.update({k: r["position"] for k, r in decided.items()})

    def _settled(self, state: State, replaced: list[Json | None]) -> list[Action]:
        """§6.4: who replaces a decision with groups says how far O is settled."""
        decided = [row for row in replaced if row is not None and row["state"].startswith("PREPARE_")]
        through = max((row["position"] for row in decided if row.get("groups")), default=0)
        raises = through > state.numbers.get("settled_through", 0)
        return [("txn", {"appId": "settled_through", "version": through})] if raises else []

    def complete(self) -> list[str]:
        """§6.4: all that is decided. The ids whose rows say so by this."""
        self.bring()
        done: list[str] = []

        def decide(state: State, now: int) -> list[Action] | None:
            done.clear()
            actions: list[Action] = []
            replaced: list[Json | None] = []
            for key, position in self.known.items():
                row = state.rows("id").get(key)
                if row and row["position"] == position and row["state"].startswith("PREPARE_"):
                    actions.append(self._keyed(self.t, "id", completed_row(row, state.version + 1), now))
                    done.append(row["transactional_id"])
                    replaced.append(row)
            return [*actions, *self._settled(state, replaced)] or None

        if self.known:
            self.t.commit("COMPLETE", decide)
        return done

    def _mark(self, t: State, topic_id: str, name: str, rows: list[Json]) -> None:
        log = self.log("S", name)
        if log.state.version < 0:
            return
        lease = t.rows("lease").get(("coordinator",))

        def decide(s: State, now: int) -> list[Action] | None:
            through = s.get("decided_through")
            todo = [r for r in rows if r["decision"]["position"] > through]
            if s.topic_id != topic_id or not s.live or not todo:
                return None
            actions: list[Action] = []
            numbers: dict[str, int] = {}
            known, last = t.version, None
            for row in todo:
                decision, offsets = row["decision"], {}
                at = t.times.get(decision["position"], t.times[min(t.times)])
                carried = row.get("manifest", {}).get(topic_id, [])
                # Those of one position stay together.
                if decision["position"] != last:
                    beside = [r for r in todo if r["decision"]["position"] == decision["position"]]
                    added = sum(1 + len(r.get("manifest", {}).get(topic_id, [])) for r in beside)
                    if actions and len(actions) + added > 10_000:
                        break
                last = decision["position"]
                known = last if row is not todo[-1] else t.version
                actions.extend(carried_add(s, numbers, row, segment, at) for segment in carried)
                for p in parse_ranges(row["partitions"][topic_id]["partitions"]):
                    number_ = f"next_offset/{topic_id}/{p}"
                    offsets[str(p)] = numbers.get(number_, s.numbers.get(number_, 0))
                    numbers[number_] = offsets[str(p)] + 1
                marker = {"v": 1, "ends": decision["epoch"], "position": decision["position"], "decided_at": at}
                marker |= {"coordinator_epoch": lease["coordinator_epoch"] if lease else 0, "offsets": offsets}
                values: dict[str, str | None] = dict.fromkeys(S_COLUMNS)
                values |= {"_producer_id": str(row["producer_id"]), "_producer_epoch": str(decision["epoch"] + 1)}
                values |= {"_control": decision["outcome"], "_marker": spell(marker)}
                path = marker_path(topic_id, row["producer_id"], decision["epoch"])
                actions.append(self._constant(log, path, values, at, there=bool(carried)))
            numbers[f"decided_through/{topic_id}"] = known
            return actions + [("txn", {"appId": n, "version": v}) for n, v in numbers.items()]

        while log.commit("MARKERS", decide):
            pass
        if log.state.topic_id == topic_id:
            self.project(name, rows)

    def _settle(self, t: State, owed: list[Json]) -> None:
        pairs = [(r["producer_id"], r["decision"]) for r in owed]
        decisions = {(i, d["epoch"]): (d["outcome"], d["position"]) for i, d in pairs}
        latest = max(r["decision"]["position"] for r in owed if "groups" in r)

        def decide(o: State, now: int) -> list[Action] | None:
            written, removed = settle(list(o.rows("offset").values()), decisions, o.version + 1)
            through = o.numbers.get("decided_through", 0)
            if not written and not removed and through >= latest:
                return None
            actions = [self._keyed(self.o, "offset", r, now) for r in written]
            for row in removed:
                old = o.files[row_path("offset", row_columns("offset", row)[0])]
                gone = {"path": old["path"], "deletionTimestamp": now, "dataChange": True, "extendedFileMetadata": True}
                actions.append(("remove", {**gone, "partitionValues": old["partitionValues"], "size": old["size"]}))
            rises = [("txn", {"appId": "decided_through", "version": t.version})] if t.version > through else []
            return actions + rises

        self.o.commit("SETTLE", decide)

    def _constant(self, log: Log, path: str, values: dict[str, str | None], at: int, there: bool = False) -> Action:
        """An `add` of the constant file, which is there before."""
        if path not in log.state.files and not there:
            self.store.put(f"{log.root}/{path}", CONSTANT_FILE)
        add = {"path": path, "partitionValues": values, "size": len(CONSTANT_FILE), "modificationTime": at}
        return "add", {**add, "dataChange": True, "stats": CONSTANT_STATS}

    def _keyed(self, log: Log, kind: str, row: Json, now: int) -> Action:
        _, path, columns = check_row(log.kind, kind, spell(row))
        return self._constant(log, path, columns, now)

    def change_id(self, operation: str, transactional_id: str, change: Change) -> Json:
        """A commit of T that writes the row of an id; the row as it is then."""
        result: list[Json] = []

        def decide(state: State, now: int) -> list[Action] | None:
            row = self.counted(state.rows("id").get((transactional_id,)))
            new = change(state, row)
            result[:] = [new or row or {}]
            if new is None:
                return None
            actions = [self._keyed(self.t, "id", new, now)]
            raised = self._settled(state, [state.rows("id").get((transactional_id,))])
            if row is None:
                actions.append(("txn", {"appId": "next_producer_id", "version": new["producer_id"] + 1}))
            decision = new.get("decision", {})
            committed = decision.get("position") == new["position"] and decision["outcome"] == "COMMIT"
            if committed and "batch_id" in decision:
                batch = {"v": 1, "transactional_id": transactional_id, "batch_id": decision["batch_id"]}
                batch |= {"producer_id": new["producer_id"], "epoch": decision["epoch"], "position": new["position"]}
                actions.append(self._keyed(self.t, "batch", {**batch, "decided_at_ms": now}, now))
            return [*actions, *raised]

        self.t.commit(operation, decide)
        return result[0]

    # reading

    def offsets(self, topic: str) -> list[Json]:
        s = self.topic(topic)
        return [
            {
                "partition": i,
                "log_start": s.get("log_start", i),
                "last_stable_offset": s.lso(i),
                "high_watermark": s.get("next_offset", i),
            }
            for i in range(s.partitions)
        ]

    def records(self, topic: str, isolation: str, position: int | None = None) -> Iterator[Json]:
        """§10. What is decided is published before."""
        self.topic(topic)
        self.bring()
        self.project(topic)
        s = self.log("S" if isolation == "read_uncommitted" else "P", topic).state
        columns = parse_schema(s.properties["txntable.topic.schema"])
        if isolation == "read_uncommitted":
            chosen, end_ = s.segments(), "next_offset"
        else:
            end_ = "high_watermark" if isolation == "snapshot" else "lso"
            position = self.t.state.version if position is None or isolation != "snapshot" else position
            if isolation == "snapshot" and s.get("merged_through") > position:
                raise Refused("OFFSET_OUT_OF_RANGE", "merged beyond that position")
            adds = [a for a in s.files.values() if int(a["partitionValues"]["_commit"]) <= position]
            chosen = [published(a) for a in (adds if isolation == "snapshot" else s.files.values())]
        ends = {i: s.get(end_, i) for i in range(s.partitions)}
        for row in sorted(chosen, key=lambda r: (r.partition, r.base)):
            start = s.get("log_start", row.partition)
            if row.last >= start and row.base < ends[row.partition]:
                for record in read_segment(self.store, topic, row, columns):
                    if start <= record["_offset"] < ends[row.partition]:
                        yield record


def published(add: Json) -> Row:
    """A row of P, as one of S: its path is relative to S's root."""
    partition, base, last = (int(add["partitionValues"][n]) for n in P_COLUMNS[:3])
    tag = load_json(add["tags"]["txntable"]) if "tags" in add else {}
    return Row(None, partition, base, last, None, tag, {**add, "path": add["path"].removeprefix("_segments/")})


def warehouse_identity(data: bytes | None) -> Json:
    need(data is not None and len(data) <= 65536, "no warehouse")
    value = load_json(data or b"")
    need(type(value) is dict and value.get("format") == "1", "an unknown format")
    known = table(format=is_text, warehouse_id=is_hex32, created_at=ANY, capabilities=is_object)
    return fields(value, known, "_warehouse.json", empty=True)


class TransactionalProducer:
    """One transactional id, as one process has it."""

    def __init__(self, warehouse: Warehouse, transactional_id: str, timeout_ms: int = 60_000) -> None:
        is_name(transactional_id)
        self.w, self.id = warehouse, transactional_id
        if not 1 <= timeout_ms <= warehouse.settings["transaction_max_timeout_ms"]:
            raise Refused("INVALID_TRANSACTION_TIMEOUT", str(timeout_ms))
        self.timeout_ms = timeout_ms
        self.who = (-1, -1)
        self.sequences: dict[tuple[str, int], int] = {}
        self.carried: dict[tuple[str, str], list[tuple[Segment, Json]]] = {}

    def init(self) -> tuple[int, int]:
        """§6.3: what is decided is completed or known so, what is ongoing aborted; then a new epoch. PREPARED stays."""
        while True:
            self.w.bring()

            def change(state: State, row: Json | None) -> Json | None:
                slot = state.version + 1
                if row is None:
                    first: Json = {"v": 1, "transactional_id": self.id, "timeout_ms": self.timeout_ms, "state": "EMPTY"}
                    new = {"producer_id": state.numbers.get("next_producer_id", 0), "producer_epoch": 0}
                    return id_row(first, position=slot, **new)
                if row["state"] == "PREPARED":
                    raise Refused("INVALID_TXN_STATE", "only its token ends a prepared transaction")
                if row["state"] == "ONGOING":
                    return decided_row(row, "ABORT", slot, None, "PREPARE_ABORT")
                if row["state"].startswith("PREPARE_"):
                    return None
                new = {"producer_epoch": row["producer_epoch"] + 1, "timeout_ms": self.timeout_ms}
                return id_row(row, state="EMPTY", position=slot, **new)

            row = self.w.change_id("INIT", self.id, change)
            if row["state"] == "EMPTY":
                self.who, self.sequences = (row["producer_id"], row["producer_epoch"]), {}
                self.carried = {}
                return self.who

    def _mine(self, row: Json | None, fenced: str = "PRODUCER_FENCED") -> Json:
        if row is None or row["producer_id"] != self.who[0]:
            raise Refused("INVALID_PRODUCER_ID_MAPPING", self.id)
        if row["producer_epoch"] != self.who[1]:
            raise Refused(fenced, f"{self.who} is not epoch {row['producer_epoch']}")
        if row["state"].startswith("PREPARE_"):
            raise Refused("CONCURRENT_TRANSACTIONS", row["state"])
        return row

    def enrol(self, topic: str, partitions: Iterable[int], groups: Iterable[str] = ()) -> None:
        topic_id = self.w.topic(topic).topic_id if topic else ""
        wanted, wanted_groups = set(partitions), set(groups)

        def change(state: State, row: Json | None) -> Json | None:
            row = self._mine(row, "PRODUCER_FENCED" if wanted_groups else "INVALID_PRODUCER_EPOCH")
            if row["state"] == "PREPARED":
                raise Refused("INVALID_TXN_STATE", row["state"])
            enrolled, slot = dict(row.get("partitions", {})), state.version + 1
            before = set(parse_ranges(enrolled[topic_id]["partitions"])) if topic_id in enrolled else set()
            known = set(row.get("groups", []))
            if wanted <= before and wanted_groups <= known and row["state"] == "ONGOING":
                return None
            if topic:
                enrolled[topic_id] = {"name": topic, "partitions": format_ranges(before | wanted)}
            names = sorted(known | wanted_groups, key=lambda g: g.encode())
            return id_row(
                row,
                state="ONGOING",
                partitions=dict(sorted(enrolled.items())) or None,
                position=slot,
                groups=names or None,
                started_position=row.get("started_position", slot),
            )

        self.w.change_id("ENROL", self.id, change)

    def _verify(self, fenced: str, ok: Callable[[Json], bool]) -> None:
        """§6.3: a reading of T that is asked for after the state that is decided on was read."""
        self.w.t.refresh()
        row = self._mine(self.w.t.state.rows("id").get((self.id,)), fenced)
        if row["state"] != "ONGOING":
            raise Refused("INVALID_TXN_STATE", row["state"])
        if not ok(row):
            raise Refused("TRANSACTION_ABORTABLE", "not enrolled")

    def append(
        self, topic: str, values: list[Json], partition: int | None = None, enrol: bool = True, carry: bool = False
    ) -> list[Json]:
        """Records, by their keys or into one partition. Their partitions and base offsets.

        With `carry` they are uploaded, and the commit's decision appends them: their offsets are not known before.
        """
        s = self.w.topic(topic)
        if (p := self.w.log("P", topic).state).version < 0 or p.numbers.get("reflects", -1) < s.version:
            self.w.project(topic)
        columns = parse_schema(s.properties["txntable.topic.schema"])
        keys = load_json(s.properties["txntable.topic.key"])
        kinds = {c["name"]: c["type"] for c in columns}
        compact = "compact" in s.properties.get("txntable.config.cleanup.policy", "delete")
        by_partition: dict[int, list[Json]] = {}
        for value in values:
            if unknown := set(value) - set(kinds):
                raise Refused("INVALID_RECORD", f"unknown columns {sorted(unknown)}")
            row = {c["name"]: convert(c["type"], value.get(c["name"])) for c in columns}
            for c in columns:
                if row[c["name"]] is None and (not c["nullable"] or (compact and keys == [c["name"]])):
                    raise Refused("INVALID_RECORD", f"{c['name']} is null")
            key = key_bytes([kinds[k] for k in keys], [row[k] for k in keys]) if keys else None
            to = partition_of(key, s.partitions) if key is not None else 0
            by_partition.setdefault(to if partition is None else partition, []).append(row)
        if any(not 0 <= i < s.partitions for i in by_partition):
            raise Refused("UNKNOWN_TOPIC_OR_PARTITION", f"{topic}: {sorted(by_partition)}")
        if not by_partition:
            return []
        if enrol and not carry:
            self.enrol(topic, by_partition)
        adds: dict[str, tuple[Segment, Json, Json]] = {}
        compression = s.properties.get("txntable.config.compression.type", "producer")
        for i, rows in sorted(by_partition.items()):
            now, name = self.w.store.now(), secrets.token_hex(16)
            stamps = [now * 1000] * len(rows)
            data = segment_bytes(columns, rows, stamps, compression)
            path = segment_path(s.topic_id, i, self.who, name)
            self.w.store.put(f"{log_folder('S', topic)}/{path}", data)
            mapped = s.partitions if partition is None and keys else None
            segment = Segment(i, name, len(rows), self._sequence(s, i), mapped, now)
            tag: Json = {"v": 1, "records": len(rows), "first_timestamp": now, "max_timestamp": now}
            tag |= {"digest": "sha256:" + sha(data), "transactional": True, "first_sequence": segment.first_sequence}
            tag |= ({"partition_count": mapped} if mapped else {}) | {"uploaded_at": now}
            add = {"path": path, "size": len(data), "dataChange": True, "stats": statistics(columns, rows, stamps)}
            adds[name] = (segment, add, {"txntable": spell(tag)})
        if carry:
            return self._carry(topic, s, adds)
        answer: list[Json] = []

        def decide(state: State, now: int) -> list[Action] | None:
            self._verify(
                "INVALID_PRODUCER_EPOCH",
                lambda r: (
                    set(by_partition) <= set(parse_ranges(r["partitions"][s.topic_id]["partitions"]))
                    if s.topic_id in r.get("partitions", {})
                    else False
                ),
            )
            segments = [segment for segment, _, _ in adds.values()]
            bases, written, numbers = decide_append(state, s.topic_id, self.who, True, segments, now)
            placed = zip(segments, bases, strict=True)
            answer[:] = [{"partition": g.partition, "base_offset": b, "records": g.records} for g, b in placed]
            actions: list[Action] = []
            for g, base in zip(segments, bases, strict=True):
                if g in written:
                    numbers_ = (g.partition, base, base + g.records - 1, *self.who)
                    texts: dict[str, str | None] = dict(zip(S_COLUMNS, map(str, numbers_), strict=False))
                    texts |= {"_control": None, "_marker": None}
                    _, add, tags = adds[g.name]
                    actions.append(("add", {**add, "partitionValues": texts, "modificationTime": now, "tags": tags}))
            return actions + [("txn", {"appId": n, "version": v}) for n, v in numbers.items()] if written else None

        self.w.log("S", topic).commit("APPEND", decide)
        for segment, _, _ in adds.values():
            self.sequences[s.topic_id, segment.partition] = (segment.first_sequence or 0) + segment.records
        return answer

    def _carry(self, topic: str, s: State, adds: dict[str, tuple[Segment, Json, Json]]) -> list[Json]:
        """Keep what was uploaded for the decision; S is asked for its refusals then."""
        for segment, add, tags in adds.values():
            tag = load_json(tags["txntable"])
            told = {**tag, **segment._asdict(), "size": add["size"], "stats": add["stats"]}
            kept = {f.name: told[f.name] for f in MANIFEST_SEGMENT if told.get(f.name) is not None}
            self.carried.setdefault((topic, s.topic_id), []).append((segment, kept))
            self.sequences[s.topic_id, segment.partition] = (segment.first_sequence or 0) + segment.records
        return [{"partition": g.partition, "base_offset": None, "records": g.records} for g, _, _ in adds.values()]

    def _manifest(self) -> Json | None:
        """§6.3: what the decision carries, once each S has been asked what it would refuse, and the markers' files."""
        manifest: Json = {}
        for (topic, topic_id), kept in self.carried.items():
            state = self.w.log("S", topic).state
            decide_append(state, topic_id, self.who, True, [segment for segment, _ in kept], self.w.store.now())
            self.w.store.put(f"{log_folder('S', topic)}/{marker_path(topic_id, *self.who)}", CONSTANT_FILE)
            found = sorted((told for _, told in kept), key=lambda g: (g["partition"], g["first_sequence"]))
            manifest[topic_id] = found
        return dict(sorted(manifest.items())) or None

    def _sequence(self, s: State, partition: int) -> int:
        known = s.producers().get((partition, self.who[0]))
        there = known.batches[-1][1] + 1 if known and known.epoch == self.who[1] and known.batches else 0
        return self.sequences.get((s.topic_id, partition), there)

    def send_offsets(self, group: str, topic: str, offsets: dict[int, int], enrol: bool = True) -> None:
        """§8.1: pending offsets, without group metadata (§8.4)."""
        topic_id = self.w.topic(topic).topic_id
        if enrol:
            self.enrol("", (), [group])

        def decide(o: State, now: int) -> list[Action] | None:
            self._verify("PRODUCER_FENCED", lambda r: group in r.get("groups", []))
            actions: list[Action] = []
            for partition, offset in offsets.items():
                new: Json = {"v": 1, "group": group, "topic": topic, "partition": partition}
                row = o.rows("offset").get((group, topic, str(partition)), new)
                rest = [p for p in row.get("pending", []) if (p["producer_id"], p["epoch"]) != self.who]
                mine = {"transactional_id": self.id, "producer_id": self.who[0], "epoch": self.who[1], "offset": offset}
                rest.append({**mine, "metadata": "", "request": o.version + 1, "topic_id": topic_id})
                row = {**row, "position": o.version + 1, "pending": rest}
                row = {f.name: row[f.name] for f in OFFSET_ROW if f.name in row}
                actions.append(self.w._keyed(self.w.o, "offset", row, now))
            return actions or None

        self.w.o.commit("SEND OFFSETS", decide)

    def prepare(self, token: str, batch: BatchId = None) -> None:
        """From here on the transaction waits for its token."""

        def change(state: State, row: Json | None) -> Json | None:
            row = self._mine(row)
            if row["state"] == "PREPARED":
                raise Refused("INVALID_TXN_STATE", row["state"])
            slot = state.version + 1
            new = {"token": token, "batch_id": batch, "prepared_epoch": row["producer_epoch"], "position": slot}
            return id_row(row, state="PREPARED", started_position=row.get("started_position", slot), **new)

        self.w.change_id("PREPARE", self.id, change)

    def finish(self, outcome: str, batch: BatchId = None, leave_complete: bool = False) -> None:
        """COMMIT or ABORT, and what it owes; COMPLETE may be left to the id's next entry."""
        self.decide(outcome, batch)
        self.w.bring() if leave_complete else self.w.complete()

    def decide(self, outcome: str, batch: BatchId = None, token: str | None = None) -> None:
        """COMMIT or ABORT."""
        asked = [False]
        manifest = self._manifest() if outcome == "COMMIT" else None
        names = {topic_id: topic for topic, topic_id in self.carried}

        def change(state: State, row: Json | None) -> Json | None:
            key = (self.id, batch) if isinstance(batch, str) else (self.id,)
            known = state.rows("batch").get(key) if batch is not None else None
            by = (known["producer_id"], known["epoch"]) if known else None
            last = known["batch_id"] if known and isinstance(batch, int) else None
            memory = Memory(last, bool(known) and isinstance(batch, str), by)
            now, slot = self.w.store.now(), state.version + 1
            new = end(row, self.who, outcome, slot, batch, memory, token, asked[0], manifest, now)
            return carrying_row(new, manifest, names) if new and manifest else new

        try:
            self.w.change_id(outcome, self.id, change)
        except Unknown:
            asked[0] = True
            self.w.change_id(outcome, self.id, change)
        self.who, self.sequences, self.carried = (self.who[0], self.who[1] + 1), {}, {}


# --- The command line -----------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, datetime.date | datetime.datetime) else str(value)


def say(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, default=plain), flush=True)


def transact(w: Warehouse, args: argparse.Namespace) -> None:
    producer = TransactionalProducer(w, args.id, args.timeout_ms)
    if args.producer is None:
        producer.init()
    else:
        producer.who = (args.producer[0], args.producer[1])
    who, placed = producer.who, []
    try:
        if args.values is not None:
            placed = producer.append(args.topic, json.loads(args.values), args.partition, carry=args.carry)
        if args.group:
            sent = {int(k): int(v) for k, v in json.loads(args.offsets).items()}
            producer.send_offsets(args.group, args.topic, sent)
        if args.end == "decide":
            producer.decide("COMMIT", args.batch)
        elif args.end != "leave":
            producer.finish(args.end.upper(), args.batch, args.leave_complete)
    except Refused:
        with contextlib.suppress(Refused):  # it is another's already, or is given up
            producer.finish("ABORT")
        raise
    say({"id": args.id, "producer_id": who[0], "producer_epoch": who[1], "appended": placed, "end": args.end})


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="the clean-room implementation; prints JSON lines")
    parser.add_argument("--warehouse", "-w", default=os.environ.get("WAREHOUSE", "."), help="the folder")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("topics")
    commands.add_parser("complete")
    commands.add_parser("describe")
    commands.add_parser("offsets").add_argument("topic")
    commands.add_parser("group").add_argument("group")
    read = commands.add_parser("read")
    read.add_argument("topic")
    levels = ["read_committed", "read_uncommitted", "snapshot"]
    read.add_argument("--isolation", choices=levels, default="read_committed")
    read.add_argument("--position", type=int, help="of a snapshot")
    init = commands.add_parser("init")
    write = commands.add_parser("transact")
    for sub in (init, write):
        sub.add_argument("id")
        sub.add_argument("--timeout-ms", type=int, default=60_000)
    write.add_argument("--topic")
    write.add_argument("--partition", type=int, help="left out: by the keys")
    write.add_argument("--values", help="a JSON array of objects")
    write.add_argument("--end", choices=["commit", "abort", "leave", "decide"], default="commit")
    write.add_argument("--carry", action="store_true", help="the commit's decision appends the records")
    write.add_argument("--leave-complete", action="store_true", help="COMPLETE is left to the id's next entry")
    write.add_argument("--batch", help="a batch name")
    write.add_argument("--group")
    write.add_argument("--offsets", help='{"<partition>": <offset>} of the topic, for the group')
    write.add_argument("--producer", type=int, nargs=2, metavar=("ID", "EPOCH"), help="go on without an init")
    return parser


def main() -> int:
    args = arguments().parse_args()
    try:
        w = Warehouse(args.warehouse)
        if args.command == "topics":
            for name in w.topics():
                p = w.topic(name).properties
                schema = json.loads(p["txntable.topic.schema"])
                about = {"topic": name, "topic_id": p["txntable.topic.id"], "schema": schema}
                about |= {"partitions": w.topic(name).partitions, "key": json.loads(p["txntable.topic.key"])}
                say({**about, "config": {k[16:]: v for k, v in p.items() if k.startswith("txntable.config.")}})
        elif args.command == "describe":
            say(
                {
                    "identity": w.identity,
                    "settings": w.settings,
                    "position": w.t.state.version,
                    "ids": list(w.t.state.rows("id").values()),
                }
            )
        elif args.command == "read":
            for record in w.records(args.topic, args.isolation, args.position):
                say(record)
        elif args.command == "offsets":
            for line in w.offsets(args.topic):
                say(line)
        elif args.command == "group":
            for key, row in w.o.state.rows("offset").items():
                if key[0] == args.group:
                    say(row)
        elif args.command == "init":
            who = TransactionalProducer(w, args.id, args.timeout_ms).init()
            say({"id": args.id, "producer_id": who[0], "producer_epoch": who[1]})
        elif args.command == "complete":
            say({"completed": w.complete()})
        else:
            transact(w, args)
    except Refused as error:
        say({"error": error.code, "message": str(error)})
        return 2
    except (Damage, Unknown) as error:
        say({"error": type(error).__name__.upper(), "message": str(error)})
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())

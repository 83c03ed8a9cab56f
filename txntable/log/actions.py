"""Delta's actions as values, and how they are read (PROTOCOL.md §4).

Owns the translation from the bytes of a log entry to frozen dataclasses; the other way is
:mod:`txntable.log.entry_encoding`.  An action, a field of ours or a protocol that this version does
not know is refused, never skipped: these logs have no other writer.  Pure: must not know of storage,
slots or state.
"""

from __future__ import annotations

import hashlib
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from txntable.coordinator.row_json import decode_object, parse_json
from txntable.errors import DamagedDataError, UnsupportedFormatError
from txntable.log import action_fields as fields
from txntable.log.damage import reading
from txntable.storage.object_store import LARGEST_WHOLE_BYTES

LARGEST_LINE_BYTES = 64 * 1024 * 1024
LARGEST_FIRST_LINE_BYTES = 1024
"""Of `commitInfo` with its line feed: all that others read of an entry to know it again (PROTOCOL.md §4.2 rule 13)."""
"""Of an action; as JSON in memory it is several times as large."""
TAG = "txntable"
WRITER_FEATURE = "txntable.exclusiveWriter"
WRITER_FEATURES = ("inCommitTimestamp", "changeDataFeed", "invariants", WRITER_FEATURE)
TIMESTAMP_NTZ = "timestampNtz"


@dataclass(frozen=True, slots=True)
class Protocol:
    """Who may read and who may write (Delta's ``protocol``)."""

    min_reader: int
    min_writer: int
    reader_features: tuple[str, ...]
    writer_features: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Metadata:
    """Schema, partition columns and configuration of a table (Delta's ``metaData``).

    Attributes
    ----------
    table_id : str
        Never changes, also when a topic is re-created.
    name : str or None
        For people.
    schema : str
        Delta's schema JSON.
    partition_columns : tuple of str
        In the order of the schema.
    configuration : Mapping[str, str]
        Delta's properties and ours (``txntable.…``).
    created_ms : int
        The store's time.
    """

    table_id: str
    name: str | None
    schema: str
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    created_ms: int


@dataclass(frozen=True, slots=True)
class Add:
    """A live file (Delta's ``add``); of two adds of one path the later one counts.

    Attributes
    ----------
    path : str
        Relative to the table's root.
    partition_values : Mapping[str, str or None]
        As Delta writes them: strings.
    size : int
        Bytes of the file.
    modification_time : int
        ms since 1970.
    data_change : bool
        Whether streams over the table see it as new data.
    stats : str or None
        Delta's statistics JSON.
    tag : str or None
        The JSON of our one tag.
    """

    path: str
    partition_values: Mapping[str, str | None]
    size: int
    modification_time: int
    data_change: bool = True
    stats: str | None = None
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class Remove:
    """A file that is live no more (Delta's ``remove``)."""

    path: str
    deletion_ms: int
    data_change: bool
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    size: int = 0


@dataclass(frozen=True, slots=True)
class Txn:
    """A named number of the table (Delta's ``txn``): the last one written counts."""

    app_id: str
    version: int


Action = Protocol | Metadata | Add | Remove | Txn
_FILE_ACTIONS = (Add, Remove)


@dataclass(frozen=True, slots=True)
class OperationDetails:
    """What an entry tells people of itself (``DESCRIBE HISTORY``); nothing is decided on it.

    Attributes
    ----------
    parameters, metrics : Mapping[str, str]
        Delta's ``operationParameters`` and ``operationMetrics``.
    """

    parameters: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """The first action of every entry.

    Attributes
    ----------
    commit_id : str
        32 hex digits; tells one's own commit from another's (log rule 1).
    previous : str or None
        The commit id of the version before; ``None`` for version 0.
    timestamp_ms : int
        Delta's in-commit timestamp: strictly rising.
    operation : str
        For people (``DESCRIBE HISTORY``).
    log : str
        The incarnation of the log that it belongs to: the commit id of the entry that began it, version 0 or a fence.
    chain : str or None
        The digest of the entry before; ``None`` for version 0.
        A version that two readers see differently, and a slot created again, show in the next entry.
    digest : str or None
        Of this entry, :func:`entry_digest`: not in it.  ``None`` until it has bytes.
    details : OperationDetails
        For people.
    """

    commit_id: str
    previous: str | None
    timestamp_ms: int
    operation: str
    log: str
    chain: str | None = None
    digest: str | None = None
    details: OperationDetails = OperationDetails()

    @property
    def begins_log(self) -> bool:
        """Whether the log has a new incarnation with this entry."""
        return self.log == self.commit_id


@dataclass(frozen=True, slots=True)
class Commit:
    """One entry of a log.

    Attributes
    ----------
    version : int
        Its slot.
    info : CommitInfo
        Its first action.
    actions : tuple
        What it says.
    repairs : tuple
        What stands before that in the entry, and who knows of void entries passes over: for other readers it undoes
        the void ones below.
    """

    version: int
    info: CommitInfo
    actions: tuple[Action, ...]
    repairs: tuple[Action, ...] = ()


def guard_protocol(*, timestamp_ntz: bool = False) -> Protocol:
    """Return the protocol that lets everyone read and only this project write.

    Parameters
    ----------
    timestamp_ntz : bool
        Whether the schema holds a zone-less timestamp (a reader feature).
    """
    if timestamp_ntz:
        return Protocol(3, 7, (TIMESTAMP_NTZ,), (*WRITER_FEATURES, TIMESTAMP_NTZ))
    return Protocol(1, 7, (), WRITER_FEATURES)


def entry_digest(data: bytes) -> str:
    """Return the SHA-256 of an entry's bytes, 64 hex digits: what the next entry has as its ``chain``."""
    return hashlib.sha256(data).hexdigest()


def decode_commit(version: int, data: bytes, path: str) -> Commit:
    """Return the commit that `data` holds.

    Parameters
    ----------
    version : int
        The slot that it was read from.
    data : bytes
        The whole object.
    path : str
        For error messages.

    Raises
    ------
    DamagedDataError
        The entry is truncated, no JSON, has an unknown action, or was not written by this project.
    UnsupportedFormatError
        The entry needs a newer version of this project.
    """
    if not data.endswith(b"\n"):
        raise DamagedDataError("log entry is truncated; restore the object from a backup", path=path, bytes=len(data))
    _check_size(data, path)
    with reading(path):
        records = [parse_json(line) for line in data.decode().split("\n") if line]
        ((kind, info),) = records[0].items()
        if kind != "commitInfo":
            raise ValueError("an entry begins with its commitInfo, alone")
        count = repairs_in(info)
        actions = tuple(_decode(record, path) for record in records[1:])
        if count > len(actions):
            raise ValueError("an entry has more repairs than actions")
        check_one_action_per_path(actions)
        return Commit(version, _decode_info(info, data), actions[count:], actions[:count])


def repairs_in(info: Mapping[str, Any]) -> int:
    """Return how many of an entry's actions, from the first on, are repairs, by the fields of its ``commitInfo``."""
    count = info.get("repairs")
    return 0 if count is None else fields.size(count, "repairs")


def commit_id_in(beginning: bytes) -> str | None:
    """Return the commit id in the first bytes of an entry; ``None`` when these are no whole ``commitInfo``."""
    try:
        found = parse_json(beginning[: beginning.index(b"\n")].decode())["commitInfo"]["commitId"]
    except (KeyError, TypeError, ValueError):
        return None
    return found if isinstance(found, str) else None


def _check_size(data: bytes, path: str) -> None:
    """Refuse an entry, or a line, that is larger than any can be, before it is decoded."""
    start, longest = 0, 0
    # No line of a smaller one is too long.
    while len(data) > LARGEST_LINE_BYTES and (end := data.find(b"\n", start)) >= 0:
        start, longest = end + 1, max(longest, end - start)
    if len(data) > LARGEST_WHOLE_BYTES or longest > LARGEST_LINE_BYTES:
        raise DamagedDataError(
            "log entry is larger than any can be; restore the object from a backup",
            path=path,
            bytes=len(data),
            longest_line=longest,
        )


def decode_commit_info(data: bytes, path: str) -> CommitInfo:
    """Return the first action of a log entry alone; raises as :func:`decode_commit`."""
    _check_size(data, path)
    with reading(path):
        return _decode_info(parse_json(data[: data.index(b"\n")].decode())["commitInfo"], data)


def _decode_info(body: object, data: bytes) -> CommitInfo:
    if not 0 < data.index(b"\n") < LARGEST_FIRST_LINE_BYTES:
        raise ValueError("an entry's first line is empty, or longer than it may be")
    found = decode_object(body, "commitInfo", fields.COMMIT_INFO, fields.COMMIT_INFO_MORE)
    fields.check_ids(found)
    timestamp_ms = fields.moment_ms(found["inCommitTimestamp"], "inCommitTimestamp")
    return CommitInfo(
        found["commitId"],
        found["previous"],
        timestamp_ms,
        found["operation"],
        found["log"],
        found["chain"],
        entry_digest(data),
        OperationDetails(
            fields.texts_only(found["operationParameters"] or {}, "operationParameters"),
            fields.texts_only(found["operationMetrics"] or {}, "operationMetrics"),
        ),
    )


def check_one_action_per_path(actions: Iterable[Action]) -> None:
    """Refuse an entry that names one path twice: readers disagree which one counts.

    Raises
    ------
    DamagedDataError
        The message names the file.
    """
    seen: set[str] = set()
    for action in actions:
        # Not a union of the two: that is made anew each time.
        if isinstance(action, _FILE_ACTIONS):
            if action.path in seen:
                raise DamagedDataError(
                    "an entry has two file actions of one path; restore the log from a backup", file=action.path
                )
            seen.add(action.path)


def _decode(record: Mapping[str, Any], path: str) -> Action:
    ((kind, body),) = record.items()
    match kind:
        case "add":
            return decode_add(body)
        case "txn":
            return decode_txn(body)
        case "remove":
            return decode_remove(body)
        case "metaData":
            return decode_metadata(body)
        case "protocol":
            return check_protocol(decode_protocol(body), path)
    raise DamagedDataError("log entry has an action that this format does not have", action=reprlib.repr(kind))


def decode_add(body: object) -> Add:
    """Return the add that Delta's JSON object `body` says; raises as :func:`decode_commit`."""
    found = decode_object(body, "add", fields.ADD, fields.ADD_MORE)
    fields.check_file_path(found["path"])
    fields.size(found["size"], "size")
    fields.moment_ms(found["modificationTime"], "modificationTime")
    found["partitionValues"] = fields.texts(found["partitionValues"], "partitionValues")
    return stored_add(found)


def stored_add(row: Mapping[str, Any]) -> Add:
    """Return the add of a checkpoint's row, whose types are those of its columns and whose path was looked at."""
    tags = row["tags"]
    if tags is not None:
        tags = dict(tags)
        if set(tags) != {TAG} or not isinstance(tags[TAG], str):
            raise DamagedDataError(
                "file has a tag that this format does not have", path=row["path"], tags=reprlib.repr(sorted(tags))
            )
    return Add(
        row["path"],
        dict(row["partitionValues"]),
        row["size"],
        row["modificationTime"],
        row["dataChange"],
        row["stats"],
        tags[TAG] if tags else None,
    )


def decode_txn(body: object) -> Txn:
    """Return the named number that Delta's JSON object `body` says; raises as :func:`decode_add`."""
    found = decode_object(body, "txn", fields.TXN, fields.TXN_MORE)
    return Txn(found["appId"], fields.size(found["version"], "version"))


def decode_remove(body: object) -> Remove:
    """Return the remove that Delta's JSON object `body` says; raises as :func:`decode_add`."""
    found = decode_object(body, "remove", fields.REMOVE, fields.REMOVE_MORE)
    return Remove(
        fields.check_file_path(found["path"]),
        fields.moment_ms(found["deletionTimestamp"], "deletionTimestamp"),
        found["dataChange"],
        fields.texts(found["partitionValues"] or {}, "partitionValues"),
        fields.size(found["size"] or 0, "size"),
    )


def decode_metadata(body: object) -> Metadata:
    """Return the metadata that Delta's JSON object `body` says; raises as :func:`decode_add`."""
    found = decode_object(body, "metaData", fields.METADATA, fields.METADATA_MORE)
    return Metadata(
        found["id"],
        found["name"],
        found["schemaString"],
        fields.names(found["partitionColumns"], "partitionColumns"),
        fields.texts_only(found["configuration"], "configuration"),
        fields.moment_ms(found["createdTime"], "createdTime"),
    )


def decode_protocol(body: object) -> Protocol:
    """Return the protocol that Delta's JSON object `body` says; raises as :func:`decode_add`."""
    found = decode_object(body, "protocol", fields.PROTOCOL, fields.PROTOCOL_MORE)
    return Protocol(
        found["minReaderVersion"],
        found["minWriterVersion"],
        fields.names(found["readerFeatures"], "readerFeatures"),
        fields.names(found["writerFeatures"], "writerFeatures"),
    )


def check_protocol(protocol: Protocol, path: str) -> Protocol:
    """Return `protocol` when this version knows all of it.

    Raises
    ------
    UnsupportedFormatError
        A newer format: upgrade this client.  Or a table that is not ours.
    """
    known = {*WRITER_FEATURES, TIMESTAMP_NTZ}
    unknown = sorted({*protocol.writer_features, *protocol.reader_features} - known)
    if unknown or protocol.min_reader > 3 or protocol.min_writer > 7:
        raise UnsupportedFormatError(
            "the log was written under a newer format; upgrade txntable",
            path=path,
            unknown=reprlib.repr(unknown) if unknown else None,
        )
    if WRITER_FEATURE not in protocol.writer_features:
        raise UnsupportedFormatError("the log is a plain Delta table, not one of this project", path=path)
    return protocol


def txns(numbers: Mapping[str, int]) -> Sequence[Txn]:
    """Return one ``txn`` action for each named number."""
    return [Txn(name, number) for name, number in numbers.items()]

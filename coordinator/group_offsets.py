"""The row of a group's offset in one partition: what is committed, and what waits for a decision (PROTOCOL.md §8.1).

A pending offset belongs to a transaction and counts once that commits; the latest *request*
counts, not the latest decision (KIP-98; KAFKA_SEMANTICS: order of offset requests).  Settling
keeps the higher request.  Must not know of storage.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Any

from txntable.coordinator.errors import DamagedDataError, InvalidRequestError
from txntable.coordinator.row_json import check_stored_name, decode_object, decode_row, encode_key, encode_row
from txntable.coordinator.topic_name import is_topic_id, is_topic_name

_WHAT = "offset"
_REQUIRED = {"group": str, "topic": str, "partition": int, "position": int}
_OPTIONAL = {"committed": dict, "pending": list}


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The offset that a group goes on from.

    Attributes
    ----------
    offset : int
        The next record to read.
    metadata : str
        The application's own text; may be empty.
    topic_id : str
        Of the topic that the offset counts in; empty: not known, that of any topic of the name.
    request : int
        The version of the offset log that asked for it.
    position : int
        The decision position of its transaction; 0: a plain commit.
    """

    offset: int
    metadata: str
    topic_id: str
    request: int
    position: int


@dataclass(frozen=True, slots=True)
class PendingOffset:
    """An offset that a transaction will commit, unless it is aborted.

    Attributes
    ----------
    transactional_id : str
        Whose row in the transaction log decides.
    producer_id, epoch : int
        Which transaction.
    offset : int
        The next record to read.
    metadata : str
        The application's own text; may be empty.
    request : int
        The version of the offset log that asked for it.
    topic_id : str
        Of the topic that the offset counts in; empty: not known, that of any topic of the name.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    offset: int
    metadata: str
    request: int
    topic_id: str = ""


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """One row of the offset log.

    Attributes
    ----------
    group, topic : str
        The key, with the partition.
    partition : int
        From 0.
    position : int
        The version of the offset log that wrote the row.
    committed : CommittedOffset or None
        ``None``: nothing yet.
    pending : tuple of PendingOffset
        In the order of their requests.
    """

    group: str
    topic: str
    partition: int
    position: int
    committed: CommittedOffset | None = None
    pending: tuple[PendingOffset, ...] = ()

    @property
    def key(self) -> str:
        """The row's key in the offset log."""
        return encode_key(self.group, self.topic, str(self.partition))

    def to_json(self) -> str:
        """Return the stored form (column ``_row``)."""
        committed = None if self.committed is None else _fields(self.committed)
        return encode_row(
            {
                "group": self.group,
                "topic": self.topic,
                "partition": self.partition,
                "position": self.position,
                "committed": committed,
                "pending": [_fields(pending) for pending in self.pending] or None,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> OffsetRow:
        """Return the row that `text` stores.

        Raises
        ------
        DamagedDataError
            It contradicts the format.
        UnsupportedFormatError
            It is of a format that this version does not know.
        """
        fields = decode_row(text, _WHAT, _REQUIRED, _OPTIONAL)
        committed, pending = fields.pop("committed"), fields.pop("pending") or []
        try:
            check_stored_name(fields["group"], "a group")
        except InvalidRequestError as error:
            raise DamagedDataError("a stored offset has no valid group", row=_WHAT) from error
        if not is_topic_name(fields["topic"]):
            raise DamagedDataError("a stored offset has no valid topic", row=_WHAT)
        return cls(
            **fields,
            committed=None if committed is None else CommittedOffset(**_decode(committed, CommittedOffset)),
            pending=tuple(PendingOffset(**_decode(one, PendingOffset)) for one in pending),
        )


def _fields(value: CommittedOffset | PendingOffset) -> dict[str, object]:
    fields = {name: getattr(value, name) for name in value.__slots__}
    if isinstance(value, PendingOffset) and not value.topic_id:
        del fields["topic_id"]
    return fields


def _decode(document: object, kind: type[CommittedOffset] | type[PendingOffset]) -> dict[str, Any]:
    texts = {"metadata", "topic_id", "transactional_id"}
    required: dict[str, type] = {name: str if name in texts else int for name in kind.__slots__}
    optional: dict[str, type] = {} if kind is CommittedOffset else {"topic_id": required.pop("topic_id")}
    fields = decode_object(document, _WHAT, required, optional)
    topic_id = fields["topic_id"] or ""
    if topic_id and not is_topic_id(topic_id):
        raise DamagedDataError("a stored offset has no valid topic id", row=_WHAT, topic_id=reprlib.repr(topic_id))
    return {**fields, "topic_id": topic_id}

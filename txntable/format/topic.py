"""A topic's settings, as its partition logs' metadata holds them (PROTOCOL.md §3).

Owns the value type that everything else passes around.  Pure: must not know of storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """One topic, from its creation to its deletion.

    Attributes
    ----------
    name : str
        The topic's name; a re-created topic has the same name and another id.
    topic_id : str
        128 bits as 32 hex digits.
    partitions : int
        At least 1; may grow, never shrinks.
    schema : pyarrow.Schema
        The user's columns, in order, with the user's nullability.
    key : tuple of str
        Columns whose values choose the partition; empty: records are spread.
    config : Mapping[str, str]
        Kafka's names; only what was set (defaults: ``txntable.topic_config``).
    deleted : bool
        Whether the topic is deleted.
    """

    name: str
    topic_id: str
    partitions: int
    schema: pa.Schema
    key: tuple[str, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)
    deleted: bool = False

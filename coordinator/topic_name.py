"""Names of topics, the only names that become folders: Kafka's rule; and their ids (PROTOCOL.md §3.2).

Pure.  Groups, ids and all other names are hashed or stand inside of rows: they can be any text.
"""

from __future__ import annotations

import re

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_TOPIC_ID = re.compile(r"[0-9a-f]{32}")


def is_topic_name(name: object) -> bool:
    """Return whether Kafka would accept `name` as a topic's: no such name leaves its folder, or needs an escape."""
    return isinstance(name, str) and _TOPIC_NAME.fullmatch(name) is not None and name not in {".", ".."}


def is_topic_id(topic_id: object) -> bool:
    """Return whether `topic_id` can be a topic's: 32 hex digits in lower case."""
    return isinstance(topic_id, str) and _TOPIC_ID.fullmatch(topic_id) is not None

"""What a mistyped name of a topic, a group or a transactional id was meant to be.

Owns which errors are about a name that does not exist, and where the names that do are found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from txntable.errors import (
    GroupIdNotFoundError,
    TransactionalIdNotFoundError,
    TxnTableError,
    UnknownTopicOrPartitionError,
)
from txntable.format.near_names import question

if TYPE_CHECKING:
    # Imported when a warehouse is opened, not for `--help`.
    from txntable.admin.admin import Admin


def _topics(admin: Admin) -> list[str]:
    return admin.list_topics()


def _groups(admin: Admin) -> list[str]:
    return [one.group_id for one in admin.list_consumer_groups()]


def _ids(admin: Admin) -> list[str]:
    return [row.transactional_id for row in admin.list_transactions()]


# The error, the fact in it that has the name, and who knows the names there are.
_NAMED: Mapping[type[TxnTableError], tuple[str, Callable[[Admin], list[str]]]] = {
    UnknownTopicOrPartitionError: ("topic", _topics),
    GroupIdNotFoundError: ("group", _groups),
    TransactionalIdNotFoundError: ("transactional_id", _ids),
}


def suggestion(error: TxnTableError, admin: Callable[[], Admin]) -> str | None:
    """Return a question for who mistyped a name; ``None``: the error is about something else, or nothing is like it.

    Parameters
    ----------
    error : TxnTableError
        What the command failed with.
    admin : callable
        Opens the warehouse; it is asked only when a name was wrong.
    """
    if getattr(error, "__notes__", ()):
        # Who raised it had the names at hand.
        return None
    fact, names = _NAMED.get(type(error), ("", None))
    given = error.facts.get(fact)
    if names is None or not isinstance(given, str):
        return None
    try:
        known = names(admin())
    except TxnTableError:
        # The command's own error is what counts.
        return None
    return question(given, known)

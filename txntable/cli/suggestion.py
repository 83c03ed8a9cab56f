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
    WarehouseNotFoundError,
)
from txntable.format.layout import TOPICS_FOLDER
from txntable.format.near_names import question

if TYPE_CHECKING:
    # Imported when a warehouse is opened, not for `--help`.
    from txntable.warehouse.warehouse import Warehouse


def _of_topics(given: str, warehouse: Warehouse) -> str | None:
    if given in warehouse.store.folders(TOPICS_FOLDER):
        # It was deleted, or what is missing is a partition of it: no other name was meant.
        return None
    return question(given, warehouse.admin().list_topics())


def _of_groups(given: str, warehouse: Warehouse) -> str | None:
    return question(given, [one.group_id for one in warehouse.admin().list_consumer_groups()])


def _of_ids(given: str, warehouse: Warehouse) -> str | None:
    return question(given, [row.transactional_id for row in warehouse.admin().list_transactions()])


# The error, the fact in it that has the name, and who asks for the one that was meant.
_NAMED: Mapping[type[TxnTableError], tuple[str, Callable[[str, Warehouse], str | None]]] = {
    UnknownTopicOrPartitionError: ("topic", _of_topics),
    GroupIdNotFoundError: ("group", _of_groups),
    TransactionalIdNotFoundError: ("transactional_id", _of_ids),
}


def suggestion(error: TxnTableError, warehouse: Callable[[], Warehouse]) -> str | None:
    """Return a question for who mistyped a name; ``None``: the error is about something else, or nothing is like it.

    Of a warehouse that is not there: the command that creates one.

    Parameters
    ----------
    error : TxnTableError
        What the command failed with.
    warehouse : callable
        Opens the warehouse; it is asked only when a name was wrong.
    """
    if getattr(error, "__notes__", ()):
        # Who raised it had the names at hand.
        return None
    if isinstance(error, WarehouseNotFoundError):
        # It creates no bucket.
        return None if "bucket" in error.facts else "`txntable warehouse create` creates one"
    fact, ask = _NAMED.get(type(error), ("", None))
    given = error.facts.get(fact)
    if ask is None or not isinstance(given, str):
        return None
    try:
        return ask(given, warehouse())
    except TxnTableError:
        # The command's own error is what counts.
        return None

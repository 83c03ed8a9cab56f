"""Methods of confluent-kafka's clients that are not here, and what is called instead.

Owns the words of the error about them.  Must not know of warehouses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

_NO_BROKERS = "there are no brokers, and no users but the store's"
_ADMIN = "call Warehouse.admin(), which has it under the name of Kafka's admin client"
_ASSIGNED = "leave it out: what the group gives a member is assigned already"
_POLLED = "what poll has returned is what is committed: commit, or send_offsets_to_transaction"

ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("describe_configs", "alter_configs", "incremental_alter_configs", "describe_topics", "delete_records"),
            *("list_offsets", "list_groups", "list_consumer_groups", "describe_consumer_groups"),
            *("delete_consumer_groups", "list_consumer_group_offsets", "alter_consumer_group_offsets"),
        ),
        _ADMIN,
    ),
    **dict.fromkeys(
        (
            *("describe_cluster", "elect_leaders", "create_acls", "describe_acls", "delete_acls", "cluster_id"),
            *("describe_user_scram_credentials", "alter_user_scram_credentials", "set_sasl_credentials"),
        ),
        _NO_BROKERS,
    ),
    "store_offsets": _POLLED,
    **dict.fromkeys(
        ("incremental_assign", "incremental_unassign"),
        "leave it out: what the group gives a member is assigned already",
    ),
    "purge": "abort_transaction drops what was produced; without a transaction flush sends it",
    "produce_batch": "call produce for each, or Warehouse.producer().send with rows=",
}
"""Method -> what to do."""


class Elsewhere:
    """Base of clients: an attribute that confluent-kafka has and this package has not is told with what to do."""

    # Hidden from type checkers, to which any attribute would be there.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Raise the error about an attribute that is not there."""
            said = ELSEWHERE.get(name)
            missing = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(missing if said is None else f"{missing}: {said}", name=name, obj=self)

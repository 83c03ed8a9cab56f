"""Transactions, records without one and readers of snapshots, step by step."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from hypothesis import strategies as st

from tests.unit.reading import TOPIC, accounts_in, leave_open, plain, send, transactional
from txntable.warehouse.warehouse import Warehouse

OTHER = "v"
moves = st.lists(
    st.tuples(st.sampled_from(["commit", "abort", "open", "end", "plain", "checkpoint"]), st.booleans()), max_size=9
)


def play(
    warehouse: Warehouse, steps: list[tuple[str, bool]], between: Callable[[], None] = lambda: None
) -> list[tuple[int, str, bool]]:
    """Write; return (position, account, whether in the other topic too) of what was committed."""
    producer, opened = transactional(warehouse), None
    committed = []
    for number, (step, both) in enumerate(steps):
        between()
        account = f"a{number}"
        topics = [TOPIC, OTHER] if both else [TOPIC]
        match step:
            case "commit" | "abort":
                producer.begin_transaction()
                for topic in topics:
                    send(producer, account, topic=topic)
                producer.flush()
                if step == "abort":
                    producer.abort_transaction()
                    continue
                producer.commit_transaction()
                committed.append((decided_at(warehouse), account, both))
            case "open" if opened is None:
                opened = (leave_open(warehouse, account), account)
            case "end" if opened is not None:
                opened[0].commit_transaction()
                committed.append((decided_at(warehouse), opened[1], False))
                opened = None
            case "plain":
                plain(warehouse, account)
            case "checkpoint":
                warehouse.topic_log(TOPIC).public.write_checkpoint()
    return committed


def decided_at(warehouse: Warehouse) -> int:
    """The position of the transaction that was decided last."""
    warehouse.transactions.refresh()
    return max(row.decision.position for row in warehouse.admin().list_transactions() if row.decision is not None)


def read(warehouse: Warehouse, as_of: int | dt.datetime | None, topic: str = TOPIC) -> list[str]:
    return accounts_in(warehouse.snapshot(as_of).read_arrow(topic))

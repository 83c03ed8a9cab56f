"""Which topics a query of ``txntable sql`` looks at."""

from __future__ import annotations

import pytest

from txntable.jobs.sql import topics_named

TOPICS = ["order", "orders", "a.b", "late-arrivals", "Mixed"]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("SELECT * FROM orders", ["orders"]),
        ("SELECT orders.x FROM orders JOIN order", ["order", "orders"]),
        ("SELECT * FROM ORDERS", ["orders"]),
        ("select * from mixed", ["Mixed"]),
        ("SELECT * FROM `a.b`", ["a.b"]),
        ("SELECT * FROM `late-arrivals`", ["late-arrivals"]),
        ("SELECT * FROM reorders", None),
        ("SHOW TABLES", None),
        ("SELECT position FROM orders, txntable_snapshot", None),
    ],
)
def test_query_looks_at_the_topics_that_it_names_or_at_all(query: str, named: list[str] | None) -> None:
    assert topics_named(query, TOPICS) == named

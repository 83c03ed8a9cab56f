"""What is done with each table: the whole table of the plan's docstring, and names that two topics share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.catalog.wanting import OWNER, by_hand, registered, wanted
from txntable.catalog.plan import Action, Change, plan
from txntable.catalog.table import FoundTable, Marks, Owner, WantedTable

OTHER = Owner("o" * 32, "s3://lake/other")
PREFIXED = Owner(OWNER.warehouse_id, OWNER.root, "p_")
COPY = "s3://backup/wh"
OURS = registered("t")


def told(changes: list[Change]) -> list[tuple[str, str, Action]]:
    return [(change.table, change.topic, change.action) for change in changes]


@pytest.mark.parametrize(
    ("topic", "there", "action"),
    [
        (wanted("t"), None, Action.CREATE),
        (wanted("t"), OURS, Action.KEEP),
        (wanted("t"), replace(OURS, location="s3a://lake/wh/topics/t/"), Action.KEEP),
        (wanted("t"), replace(OURS, columns=None), Action.KEEP),
        (wanted("t", "2"), OURS, Action.UPDATE),
        (wanted("t"), replace(OURS, columns=(("account", "string"),)), Action.UPDATE),
        (wanted("t"), replace(OURS, is_delta=False), Action.UPDATE),
        (wanted("t"), by_hand("t"), Action.REFUSE),
        (wanted("t"), by_hand("t", None), Action.REFUSE),
        (wanted("t"), registered("t", owner=OTHER), Action.REFUSE),
        (wanted("t"), registered("t", root=COPY), Action.REFUSE),
        (wanted("t"), replace(OURS, location=None), Action.REFUSE),
        (wanted("t"), replace(OURS, marks=Marks(OWNER.warehouse_id, "p_", "t", "1")), Action.REFUSE),
        (wanted("t" * 249), None, Action.CREATE),
        (wanted("t" * 249, owner=Owner(OWNER.warehouse_id, OWNER.root, "prefix_")), None, Action.REFUSE),
        (wanted("t", is_published=False), None, Action.WAIT),
        (wanted("t", "2", is_published=False), OURS, Action.WAIT),
        (wanted("t", is_published=False), by_hand("t"), Action.WAIT),
        (None, OURS, Action.DROP),
        (None, replace(OURS, columns=None, is_delta=False), Action.DROP),
        (None, by_hand("t"), None),
        (None, registered("t", owner=OTHER), None),
        (None, registered("t", root=COPY), None),
        (None, registered("t", owner=PREFIXED), None),
        (None, replace(OURS, location=None), None),
    ],
)  # fmt: skip
def test_plan_is_that_of_the_table(topic: WantedTable | None, there: FoundTable | None, action: Action | None) -> None:
    changes = plan([topic] if topic else [], [there] if there else [], OWNER)

    assert [change.action for change in changes] == ([action] if action else [])


def test_tables_are_told_by_name_and_those_of_others_not_at_all() -> None:
    there = [registered("gone"), registered("kept"), by_hand("theirs"), registered("x", owner=OTHER)]

    changes = plan([wanted("new"), wanted("kept")], there, OWNER)

    assert told(changes) == [
        ("gone", "gone", Action.DROP),
        ("kept", "kept", Action.KEEP),
        ("new", "new", Action.CREATE),
    ]


@pytest.mark.parametrize(
    ("there", "actions"),
    [
        ([], [Action.REFUSE, Action.REFUSE]),
        ([registered("a.b")], [Action.REFUSE, Action.KEEP]),
        ([registered("a-b")], [Action.KEEP, Action.REFUSE]),
        ([registered("a.b", "0")], [Action.REFUSE, Action.UPDATE]),
        ([registered("A_b")], [Action.REFUSE, Action.REFUSE]),
        ([by_hand("a_b")], [Action.REFUSE, Action.REFUSE]),
    ],
)
def test_of_topics_with_one_name_in_sql_only_the_one_that_has_the_table_keeps_it(
    there: list[FoundTable], actions: list[Action]
) -> None:
    changes = plan([wanted("a.b"), wanted("a-b")], there, OWNER)

    assert told(changes) == [("a_b", topic, action) for topic, action in zip(("a-b", "a.b"), actions, strict=True)]


def test_refusal_says_where_the_other_table_is_and_what_to_do() -> None:
    (change,) = plan([wanted("t")], [by_hand("t", "s3://theirs/t")], OWNER)

    assert "another prefix" in change.reason
    assert change.reason.endswith("location=s3://theirs/t")


def test_update_says_what_differs() -> None:
    (change,) = plan([wanted("t", "2")], [replace(OURS, columns=(), is_delta=False)], OWNER)

    assert change.reason == "other than the topic's: columns, format, topic"

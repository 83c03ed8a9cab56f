"""What a mistyped name was meant to be."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.doubles.fault_plan import Operation
from tests.doubles.stepping_store import SteppingStore
from tests.unit.reading import TOPIC, site_with_topic
from txntable.errors import GroupIdNotFoundError, TransactionalIdNotFoundError, UnknownTopicOrPartitionError
from txntable.format.near_names import column_hint, question
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse

WRONG = TopicPartition(f"{TOPIC}x", 0)


@pytest.mark.parametrize(
    ("given", "known", "said"),
    [
        ("salse", ["sales", "paid"], "did you mean sales?"),
        ("SALES", ["sales"], "did you mean sales?"),
        ("g9", ["g1"], "there is g1"),
        ("x", ["c", "b", "a"], "there are a, b, c"),
        ("x", ["a", "b", "c", "d", "e"], None),
        ("x", ["sales"], "there is sales"),
        ("x", [], None),
        ("sales", ["sales", "sale"], None),
    ],
)
def test_question_asks_for_what_is_near_or_tells_all_where_they_are_few(
    given: str, known: list[str], said: str | None
) -> None:
    assert question(given, known) == said


@pytest.mark.parametrize(
    ("unknown", "hint"),
    [
        (["REGION"], "; did you mean region? (names are matched by case)"),
        (["regoin"], "; did you mean region?"),
        (["zzz"], ""),
        ([], ""),
    ],
)
def test_hint_about_a_column_asks_for_what_is_near(unknown: list[str], hint: str) -> None:
    assert column_hint(unknown, ["region", "amount"]) == hint


def test_name_that_is_not_there_is_asked_for_by_python_too() -> None:
    _, warehouse = site_with_topic()
    admin = warehouse.admin()
    admin.alter_consumer_group_offsets("reports", {TopicPartition(TOPIC, 0): 0})
    warehouse.producer(transactional_id="nightly").init_transactions()

    with pytest.raises(UnknownTopicOrPartitionError) as topic:
        warehouse.read_arrow(f"{TOPIC}x")
    with pytest.raises(GroupIdNotFoundError) as group:
        admin.describe_consumer_groups(["report"])
    with pytest.raises(TransactionalIdNotFoundError) as transactional_id:
        admin.describe_transactions(["nihgtly"])

    notes = [error.value.__notes__ for error in (topic, group, transactional_id)]
    assert notes == [[f"(did you mean {name}?)"] for name in (TOPIC, "reports", "nightly")]


@pytest.mark.parametrize(
    "call",
    [
        lambda warehouse: warehouse.producer().send(WRONG.topic, value=b"x"),
        lambda warehouse: warehouse.consumer().assign([WRONG]),
        lambda warehouse: warehouse.consumer().beginning_offsets([WRONG]),
        lambda warehouse: warehouse.consumer().partitions_for_topic(WRONG.topic),
        lambda warehouse: warehouse.admin().alter_configs(WRONG.topic, {"retention.ms": "1"}),
        lambda warehouse: warehouse.admin().delete_topic(WRONG.topic),
        lambda warehouse: warehouse.snapshot().read_arrow(WRONG.topic),
    ],
)
def test_topic_that_is_not_there_is_asked_for_by_every_client(call: Callable[[Warehouse], object]) -> None:
    _, warehouse = site_with_topic()

    with pytest.raises(UnknownTopicOrPartitionError) as refused:
        call(warehouse)

    assert refused.value.__notes__ == [f"(did you mean {TOPIC}?)"]


def test_topic_that_was_deleted_is_not_asked_for() -> None:
    _, warehouse = site_with_topic()
    warehouse.admin().create_topic("paid")
    warehouse.admin().delete_topic("paid")

    with pytest.raises(UnknownTopicOrPartitionError) as mistyped:
        warehouse.read_arrow("pai")
    with pytest.raises(UnknownTopicOrPartitionError, match="the topic was deleted; list the topics") as deleted:
        warehouse.admin().alter_configs("paid", {"retention.ms": "1"})

    assert mistyped.value.__notes__ == [f"(there is {TOPIC})"]
    assert not hasattr(deleted.value, "__notes__")


def test_topics_are_listed_only_when_a_topic_is_not_there() -> None:
    _, warehouse = site_with_topic()
    store = warehouse.store
    assert isinstance(store, SteppingStore)
    before = len(store.steps)

    with pytest.raises(UnknownTopicOrPartitionError) as refused:
        warehouse.consumer().assign([TopicPartition(TOPIC, 99)])
    warehouse.consumer().assign([TopicPartition(TOPIC, 0)])

    assert not hasattr(refused.value, "__notes__")
    assert [step for step in store.steps[before:] if step.operation is Operation.LIST] == []

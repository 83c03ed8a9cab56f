"""A mistyped name is answered with the one that was meant, in the words of the command line."""

from __future__ import annotations

import pytest

from tests.unit.cli.conftest import Call
from txntable.cli.suggestion import suggestion
from txntable.format.records import TopicPartition
from txntable.storage.request_failure import no_bucket
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture(autouse=True)
def names(warehouse: Warehouse) -> None:
    """A topic, a group and a transactional id."""
    warehouse.admin().create_topic("orders")
    warehouse.admin().alter_consumer_group_offsets("reports", {TopicPartition("orders", 0): 0})
    warehouse.producer(transactional_id="nightly").init_transactions()


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("topics", "describe", "order"), "orders"),
        (("topics", "describe", "ORDERS"), "orders"),
        (("topics", "delete", "order"), "orders"),
        (("warehouse", "verify", "--topic", "order"), "orders"),
        (("consume", "ordres"), "orders"),
        (("produce", "ordres"), "orders"),
        (("status", "oders"), "orders"),
        (("groups", "describe", "--group", "report"), "reports"),
        (("transactions", "describe", "nihgtly"), "nightly"),
        (("transactions", "abort", "nightl"), "nightly"),
    ],
)
def test_mistyped_name_is_answered_with_the_one_that_was_meant(
    call: Call, arguments: tuple[str, ...], meant: str
) -> None:
    result = call(*arguments)

    assert result.exit_code == 1
    assert result.stderr.endswith(f"(did you mean {meant}?)\n")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("transactions", "describe-producers", "--topic", "orders", "--partition", "9"),
        ("transactions", "abort", "nightly"),
        ("groups", "list", "--state", "dead"),
    ],
)
def test_nothing_is_suggested_where_no_name_is_alike_or_the_name_was_right(
    call: Call, arguments: tuple[str, ...]
) -> None:
    result = call(*arguments)

    assert result.exit_code == 1
    assert "did you mean" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("transactions", "describe", "nobody"),
        ("transactions", "abort", "--topic", "orders", "--partition", "0", "--start-offset", "7"),
        ("snapshot", "--as-of", "yesterday"),
        ("snapshot", "--as-of", "2026-11-20T12:00:00"),
        ("warehouse", "create"),
    ],
)
def test_error_of_a_command_tells_the_remedy_without_names_of_the_python_client(
    call: Call, arguments: tuple[str, ...]
) -> None:
    result = call(*arguments)

    assert result.exit_code == 1
    message = result.stderr.partition("=")[0].rpartition(" ")[0]
    assert "_" not in message.split(" ", 2)[2]


def test_nothing_is_suggested_where_there_are_many_names_and_none_is_alike(call: Call, warehouse: Warehouse) -> None:
    for name in ("alpha", "beta", "gamma", "delta"):
        warehouse.admin().create_topic(name)

    assert "did you mean" not in call("topics", "describe", "zzz").stderr


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("topics", "lst"), "(did you mean list?)"),
        (("topic", "list"), "(did you mean topics?)"),
        (("groups", "list", "--stat", "stable"), "(did you mean --state?)"),
        (("topics", "create", "x", "--config", "retention.mss=1"), "did you mean retention.ms?"),
    ],
)
def test_mistyped_command_option_and_setting_are_answered_in_the_same_manner(
    call: Call, arguments: tuple[str, ...], meant: str
) -> None:
    assert meant in " ".join(call(*arguments).stderr.replace("\u2502", " ").split())


def test_bucket_that_is_not_there_is_not_answered_with_a_command_that_creates_none(warehouse: Warehouse) -> None:
    missing = no_bucket("s3://nowhere/lake")

    assert missing.facts["bucket"] == "nowhere"
    assert suggestion(missing, lambda: warehouse) is None

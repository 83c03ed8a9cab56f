"""Names by their place and by Kafka's options, and what else Kafka's tools are given."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import Call
from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture(autouse=True)
def _filled(warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("orders", partitions=2)
    with warehouse.producer("etl") as producer:
        producer.init_transactions()
        with producer.transaction() as txn:
            txn.send("orders", b"a", partition=0)
    with warehouse.consumer(group_id="g", enable_auto_commit=False) as consumer:
        consumer.commit({TopicPartition("orders", 0): 1})


@pytest.mark.parametrize(
    ("command", "option", "name", "others"),
    [
        (("topics", "describe"), "--topic", "orders", ()),
        (("topics", "delete"), "--topic", "orders", ()),
        (("topics", "alter"), "--topic", "orders", ("--partitions", "3")),
        (("topics", "delete-records"), "--topic", "orders", ("--offset", "0=1")),
        (("offsets", "list"), "--topic", "orders", ()),
        (("groups", "describe"), "--group", "g", ()),
        (("groups", "delete"), "--group", "g", ()),
        (("groups", "delete-offsets"), "--group", "g", ("--topic", "orders")),
        (("groups", "reset-offsets"), "--group", "g", ("--topic", "orders", "--to-earliest")),
        (("transactions", "describe"), "--transactional-id", "etl", ()),
        (("transactions", "fence"), "--transactional-id", "etl", ()),
        (("transactions", "describe-producers"), "--topic", "orders", ("--partition", "0")),
        (("transactions", "find-hanging"), "--topic", "orders", ()),
        (("consume",), "--topic", "orders", ()),
    ],
)
def test_name_is_taken_by_its_place_and_by_kafkas_option(
    call: Call, command: tuple[str, ...], option: str, name: str, others: tuple[str, ...]
) -> None:
    by_place, by_option = call(*command, name, *others), call(*command, *others, option, name)

    assert (by_place.exit_code, by_place.stdout) == (0, by_option.stdout)
    assert by_place.stdout


@pytest.mark.parametrize(
    "said",
    [
        ("a", "x long", "y string"),
        ("a", "--column", "x long", "--column", "y string"),
        ("--topic", "a", "--column", "x long", "--column", "y string"),
        ("a", "x long", "--column", "y string"),
    ],
)
def test_columns_are_taken_by_their_place_and_by_the_option_of_create(
    call: Call, warehouse: Warehouse, said: tuple[str, ...]
) -> None:
    call("topics", "create", "a", "--column", "w long")

    result = call("topics", "add-column", *said)

    assert result.exit_code == 0, result.stderr
    assert warehouse.topic_log("a").settings().schema.names == ["w", "x", "y"]


def test_columns_are_not_left_out(call: Call) -> None:
    result = call("topics", "add-column", "a")

    assert result.exit_code == 2
    assert "--column" in result.stderr


def test_name_is_said_once_and_not_left_out(call: Call) -> None:
    assert call("topics", "delete", "orders", "--topic", "orders").exit_code == 2
    assert "say which one" in call("topics", "delete").stderr
    assert "say which groups" in call("groups", "describe").stderr


def test_several_names_may_be_said_in_both_ways(call: Call) -> None:
    call("topics", "create", "paid")

    described = json.loads(call("topics", "describe", "orders", "--topic", "paid", "--output", "json").stdout)

    assert [each["topic"] for each in described["topics"]] == ["orders", "paid"]


def test_create_if_not_exists_leaves_a_topic_as_it_is(call: Call) -> None:
    again = call("topics", "create", "--topic", "orders", "--if-not-exists", "--partitions", "9", "--output", "json")

    assert (again.exit_code, json.loads(again.stdout)["partition_count"]) == (0, 2)
    assert "stays as it is" in again.stderr
    assert call("topics", "create", "orders").exit_code == 1
    assert call("topics", "create", "new", "--if-not-exists", "--replication-factor", "3").exit_code == 0


def test_shift_of_a_partition_that_is_none_says_that(call: Call) -> None:
    result = call("groups", "reset-offsets", "g", "--topic", "orders:7", "--shift-by", "1")

    assert (result.exit_code, "UNKNOWN_TOPIC_OR_PARTITION" in result.stderr) == (1, True)


def test_nested_column_is_shown_as_spark_sql_does(call: Call) -> None:
    shown = call("topics", "describe", "orders").stdout

    assert "array<struct<key:string,value:binary>>" in shown
    assert "all settings have their defaults: --all-configs shows them" in shown


# -- properties of console tools ----------------------------------------------------------------


@pytest.mark.parametrize("option", ["--property", "--formatter-property"])
def test_consume_takes_properties_as_the_options_that_they_are(call: Call, option: str) -> None:
    result = call("consume", "orders", option, "print.key=true", option, "key.separator=|")

    assert (result.exit_code, result.stdout) == (0, "null|a\n")


@pytest.mark.parametrize(
    ("command", "given", "remedy"),
    [
        ("consume", "print.value=false", "printed always"),
        ("consume", "colour=red", "there are print.timestamp"),
        ("consume", "print.keys=true", "did you mean print.key?"),
        ("consume", "print.key=maybe", "true or false"),
        ("produce", "ignore.error=true", "leave it out"),
        ("produce", "parse.key", "NAME=VALUE"),
    ],
)
def test_property_that_is_none_here_is_refused(call: Call, command: str, given: str, remedy: str) -> None:
    result = call(command, "orders", "--property", given)

    assert result.exit_code == 2
    assert remedy in " ".join(result.stderr.replace("\u2502", " ").split())

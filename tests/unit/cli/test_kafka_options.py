"""Who types what Kafka's tools take is told what is said here."""

from __future__ import annotations

import pytest

from tests.unit.cli.conftest import Call
from txntable.cli.kafka_options import instead_of


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("topics", "list", "--bootstrap-server", "x"), "TXNTABLE_WAREHOUSE"),
        (("--bootstrap-server", "x", "topics", "list"), "TXNTABLE_WAREHOUSE"),
        (("topics", "--list"), "a command here: `list`"),
        (("topics", "create", "t", "--list"), "a command here: `list`"),
        (("groups", "--describe", "--group", "g"), "a command here: `describe`"),
        (("topics", "alter", "t", "--add-config", "a=b"), "--config NAME=VALUE"),
        (("offsets", "--topic", "t"), "the command comes before its options"),
        (("status", "--topic", "t"), "a name stands at its place; --help shows"),
        (("transactions", "run", "--once", "--topic", "t"), "this command takes no such name"),
        (("transactions", "list", "--transactional-id", "etl"), "takes no such name; --help shows what it takes"),
        (("topics", "list", "--topic", "t"), "takes no such name; --help shows what it takes"),
        (("groups", "list", "--group", "g"), "takes no such name; --help shows what it takes"),
        (("check", "--topic", "t"), "takes no such name; --help shows what it takes"),
        (("groups", "describe", "--topic", "t"), "takes no such name"),
        (("topics", "describe", "--group", "t"), "takes no such name"),
        (("warehouse", "describe", "--topic", "t"), "takes no such name"),
        (("report", "--topic", "t"), "takes no such name; --help shows what it takes"),
        (("offsets", "orders"), "the command comes first: list"),
        (("help",), "say --help"),
        (("topics", "help"), "say --help"),
        (("warehouse", "create", "/a/place"), "the warehouse is named by --warehouse"),
        (("warehouse", "alter", "--add-config", "a=b"), "--config NAME=VALUE"),
        (("topics", "describe", "t", "--config", "a=b"), "--config NAME=VALUE"),
        (("transactions", "find-hanging", "--broker-id", "0"), "there are no brokers"),
        (("transactions", "force-terminate", "--transactional-id", "etl"), "`txntable transactions fence ID`"),
        (("topics", "describe", "--under-replicated-partitions"), "the object store keeps the copies"),
        (("consume", "--include", "a.*"), "name one topic"),
        (("consume", "t", "--formatter", "kafka.tools.DefaultMessageFormatter"), "--format json"),
        (("offsets", "list", "--topic-partitions", "t:0"), "name topics"),
        (("offsets", "list", "--topic", "t", "--partitions", "0,1"), "lists every partition"),
        (("consume", "t", "--partitions", "0"), "elsewhere --partition names one"),
        (("topics", "delete-records", "t", "--partition", "0"), "`topics delete-records orders --offset 0=5`"),
        (("version",), "say --version"),
        (("vacuum", "--dry-run"), "a dry run until --execute"),
        (("optimize",), "`txntable compact`"),
        (("abort", "etl"), "`txntable transactions abort`"),
        (("groups", "abort"), "`txntable transactions abort`"),
        (("reset-offsets",), "`txntable groups reset-offsets`"),
        (("purge",), "`txntable erase --purge`"),
        (("topics", "list", "-v"), "--log-level info"),
        (("topics", "list", "--verbose"), "--log-level info"),
        (("groups", "list", "--state"), "every group is listed with its state"),
    ],
)
def test_option_of_kafkas_tools_is_answered_with_what_is_said_here(
    call: Call, arguments: tuple[str, ...], said: str
) -> None:
    result = call(*arguments)

    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("\u2502", " ").split())


@pytest.mark.parametrize(
    "arguments",
    [("init", "--create"), ("compact", "--delete"), ("snapshot", "--list"), ("--list",), ("topics", "--abort")],
)
def test_option_is_called_no_command_where_there_is_no_such_command(call: Call, arguments: tuple[str, ...]) -> None:
    result = call(*arguments)

    assert (result.exit_code, "command here" in result.stderr) == (2, False)


def test_option_that_is_spelt_wrongly_is_still_answered_with_what_is_near(call: Call) -> None:
    assert "--state" in call("groups", "list", "--stat", "stable").stderr


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--never-heard-of", ""),
        (None, "No such command 'lsit'."),
        ("--topic", "Option '--topic' requires an argument."),
    ],
)
def test_nothing_is_said_of_what_is_not_known(option: str | None, message: str) -> None:
    assert instead_of(option, message) is None

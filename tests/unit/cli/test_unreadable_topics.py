"""A topic that cannot be read hides no other: the others are shown, it is named, and the exit code is 1."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Call
from txntable.errors import StorePermissionError
from txntable.format.layout import commit_path, public_root, segments_root
from txntable.format.records import TopicPartition
from txntable.storage.local_folder import LocalFolder
from txntable.storage.object_store import StoredObject
from txntable.warehouse.warehouse import Warehouse

Damage = Callable[[Warehouse], None]
NAMES = ("bids", "clicks", "orders")
SEGMENTS, PUBLIC = segments_root("clicks"), public_root("clicks")


def _truncate(root: str, warehouse: Warehouse) -> None:
    path = commit_path(root, 1)
    found = warehouse.store.get(path)
    assert found is not None
    warehouse.store.put(path, found.data[:100])


def _flip(root: str, warehouse: Warehouse) -> None:
    path = commit_path(root, 1)
    found = warehouse.store.get(path)
    assert found is not None
    middle = len(found.data) // 2
    changed = bytes([found.data[middle] ^ 0xFF])
    warehouse.store.put(path, found.data[:middle] + changed + found.data[middle + 1 :])


def _lose(root: str, warehouse: Warehouse) -> None:
    warehouse.store.delete([commit_path(root, 0)])


def _delete_folder(warehouse: Warehouse) -> None:
    warehouse.store.delete([meta.path for meta in warehouse.store.list("topics/clicks")])
    shutil.rmtree(Path(warehouse.url.removeprefix("file://")) / "topics" / "clicks")


OF_SEGMENTS: dict[str, Damage] = {
    "folder gone": _delete_folder,
    "truncated": partial(_truncate, SEGMENTS),
    "flipped": partial(_flip, SEGMENTS),
    "missing": partial(_lose, SEGMENTS),
}
ANY: dict[str, Damage] = {**OF_SEGMENTS, "truncated public log": partial(_truncate, PUBLIC)}


@pytest.fixture
def topics(warehouse: Warehouse) -> Warehouse:
    for name in NAMES:
        warehouse.admin().create_topic(name)
    with warehouse.producer() as producer:
        for name in NAMES:
            producer.send(name, value=b"v")
    warehouse.admin().alter_consumer_group_offsets("g", {TopicPartition(name, 0): 0 for name in NAMES})
    return warehouse


def leave_open(warehouse: Warehouse, topic: str) -> None:
    """A transaction that nobody has ended, with a record."""
    producer = warehouse.producer("open")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, value=b"open")
    producer.flush()


def sample(text: str, name: str) -> list[int]:
    """The values of a metric."""
    return [int(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(f"txntable_{name}{{")]


@pytest.mark.parametrize("kind", ANY)
@pytest.mark.parametrize("command", [("check",), ("transactions", "run", "--once")])
def test_metrics_count_what_cannot_be_read_and_tell_of_the_rest(
    call: Call, topics: Warehouse, kind: str, command: tuple[str, ...]
) -> None:
    ANY[kind](topics)

    result = call(*command, "--metrics", "prometheus")

    assert result.exit_code == 1
    assert sample(result.stdout, "unreadable") == [1]
    assert 'finding="unreadable"} 1\n' in result.stdout
    lags = [line for line in result.stdout.splitlines() if line.startswith("txntable_publication_lag_ms{")]
    assert [name for name in NAMES if any(f'topic="{name}"' in line for line in lags)] == ["bids", "orders"]
    assert max(sample(result.stdout, "group_lag_max")) == 1
    line = call(*command, "--metrics", "cloudwatch")
    assert (line.exit_code, json.loads(line.stdout)["unreadable"]) == (1, 1)
    if command == ("check",):
        assert "topic clicks: CORRUPT_MESSAGE" in result.stderr


@pytest.mark.parametrize("kind", OF_SEGMENTS)
def test_status_tells_of_the_rest_and_never_that_all_is_well(call: Call, topics: Warehouse, kind: str) -> None:
    leave_open(topics, "orders")
    OF_SEGMENTS[kind](topics)

    result, of_others = call("status", "--output", "json"), call("status", "clicks", "bids")

    document = json.loads(result.stdout)
    assert (result.exit_code, of_others.exit_code) == (1, 1)
    assert [one["transactional_id"] for one in document["transactions"]] == ["open"]
    (unreadable,) = document["unreadable"]
    assert unreadable["where"] == "topic clicks"
    assert unreadable["error"].startswith("CORRUPT_MESSAGE")
    assert of_others.stdout.startswith("topic clicks cannot be read: CORRUPT_MESSAGE")
    assert of_others.stdout.endswith("\nno transaction holds readers back in 1 topic that can be read\n")
    assert "open" in call("status").stdout


@pytest.mark.parametrize("kind", ANY)
def test_watch_shows_the_rest_and_fails_at_the_end(call: Call, topics: Warehouse, kind: str) -> None:
    ANY[kind](topics)

    result, shown = call("watch", "--ticks", "1", "--output", "json"), call("watch", "--ticks", "1")

    document = json.loads(result.stdout)
    assert (result.exit_code, shown.exit_code) == (1, 1)
    assert [one["where"] for one in document["unreadable"]] == ["topic clicks"]
    assert {"bids", "orders"} <= {one["topic"] for one in document["partitions"]}
    assert "topic clicks cannot be read: CORRUPT_MESSAGE" in shown.stdout
    assert "all is well" not in shown.stdout


@pytest.mark.parametrize("kind", ANY)
@pytest.mark.parametrize("verb", ["list", "describe"])
def test_topics_that_can_be_read_are_shown_and_the_others_named(
    call: Call, topics: Warehouse, kind: str, verb: str
) -> None:
    ANY[kind](topics)

    result = call("topics", verb, "--output", "json")

    rows = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [row["topic"] for row in (rows if verb == "list" else rows["topics"])] == ["bids", "orders"]
    assert result.stderr.startswith("error: topic clicks cannot be read: CORRUPT_MESSAGE")
    assert call("topics", "describe", "bids").exit_code == 0


def test_topics_list_does_not_say_that_there_are_none_where_none_can_be_read(call: Call, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("clicks")
    warehouse.store.put(commit_path(SEGMENTS, 0), b"{")

    result = call("topics", "list")

    assert (result.exit_code, result.stdout) == (1, "no topic can be read\n")


def test_topic_that_may_not_be_read_hides_no_other(
    call: Call, topics: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root, whom tests may run as, no right is missing: the store says it."""
    whole = LocalFolder.get_many

    def refusing(self: LocalFolder, paths: Sequence[str]) -> list[StoredObject | None]:
        if any(path.startswith("topics/clicks/") for path in paths):
            raise StorePermissionError("the file system refused; check who owns it", path=paths[0])
        return whole(self, paths)

    monkeypatch.setattr(LocalFolder, "get_many", refusing)

    listed, metrics = call("topics", "list"), call("check", "--metrics", "prometheus")

    assert (listed.exit_code, metrics.exit_code) == (1, 1)
    assert listed.stderr.startswith("error: topic clicks cannot be read: CLUSTER_AUTHORIZATION_FAILED")
    assert "bids" in listed.stdout
    assert sample(metrics.stdout, "unreadable") == [1]
    assert topics.admin().list_topics() == list(NAMES)


@pytest.mark.parametrize("kind", OF_SEGMENTS)
def test_transactions_are_listed_and_looked_at_where_a_topic_of_one_cannot_be_read(
    call: Call, topics: Warehouse, kind: str
) -> None:
    leave_open(topics, "clicks")
    OF_SEGMENTS[kind](topics)

    listed, described = call("transactions", "list"), call("transactions", "describe", "open")
    hanging = call("transactions", "find-hanging")

    assert "open" in listed.stdout
    assert "ONGOING" in described.stdout
    assert hanging.stdout == "nothing hangs in what can be read\n"
    for result in (listed, described, hanging):
        assert result.exit_code == 1
        assert "error: topic clicks cannot be read: CORRUPT_MESSAGE" in result.stderr


@pytest.mark.parametrize("kind", OF_SEGMENTS)
def test_group_is_described_in_the_topics_that_can_be_read(call: Call, topics: Warehouse, kind: str) -> None:
    OF_SEGMENTS[kind](topics)

    result = call("groups", "describe", "--group", "g", "--output", "json")

    assert [(row["topic"], row["current_offset"], row["lag"]) for row in json.loads(result.stdout)] == [
        ("bids", 0, 1),
        ("orders", 0, 1),
    ]
    assert result.exit_code == 1
    assert "error: topic clicks cannot be read: CORRUPT_MESSAGE" in result.stderr


def test_group_is_not_said_to_have_no_offsets_where_its_topic_cannot_be_read(call: Call, warehouse: Warehouse) -> None:
    warehouse.admin().create_topic("clicks")
    warehouse.admin().alter_consumer_group_offsets("g", {TopicPartition("clicks", 0): 0})
    warehouse.store.put(commit_path(SEGMENTS, 0), b"{")

    result = call("groups", "describe", "--group", "g")

    assert (result.exit_code, result.stdout) == (1, "none of its topics can be read\n")


def test_offsets_in_a_topic_that_is_gone_are_deleted_and_then_it_may_be_created(call: Call, topics: Warehouse) -> None:
    _delete_folder(topics)
    delete = ("groups", "delete-offsets", "--group", "g", "--topic", "clicks")

    refused, looked = call("topics", "create", "clicks"), call(*delete, "--output", "json")
    call(*delete, "--execute")

    assert (refused.exit_code, refused.stderr.partition(":")[0]) == (1, "error")
    assert "restore its folder from a backup" in refused.stderr
    assert [(row["topic"], row["current_offset"]) for row in json.loads(looked.stdout)] == [("clicks", 0)]
    assert call("topics", "create", "clicks").exit_code == 0
    assert call("status").exit_code == 0

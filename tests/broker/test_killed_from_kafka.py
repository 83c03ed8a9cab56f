"""Kafka's records in a topic, each once, when the process that mirrors them is killed between any two of its steps."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import txntable
from tests.broker.cluster import Cluster, Message
from tests.documents.page import blocks_of
from txntable.format.schema import KAFKA_SCHEMA

ROOT = Path(__file__).parents[2]
PRODUCER = "txntable.producer.producer:Producer"
# Each is a start of Spark: those between which something is durable.
STEPS = [
    ("txntable.jobs.mirror.inbound:FromKafka._stored", "after"),
    (f"{PRODUCER}.send_offsets_to_transaction", "after"),
    (f"{PRODUCER}.send_offsets_to_transaction", "before"),
    (f"{PRODUCER}.commit_transaction", "before"),
    (f"{PRODUCER}.commit_transaction", "after"),
]


def run(call: str, when: str, *arguments: str) -> int:
    command = [sys.executable, "-m", "tests.broker.killed_mirror", call, when, *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def test_each_record_arrives_once_when_the_mirror_is_killed_between_any_two_steps(
    cluster: Cluster, folder: str
) -> None:
    txntable.Warehouse.create(folder)
    topic = cluster.new_topic()
    arguments = ["mirror", "from-kafka", topic, "--bootstrap-servers", cluster.address]
    arguments += ["--once", "--warehouse", folder]
    sent = 0

    def send() -> None:
        nonlocal sent
        cluster.send(topic, [Message(number % 2, b"k", b"%d" % number) for number in range(sent, sent + 6)])
        sent += 6

    for call, when in STEPS:
        send()
        assert run(call, when, *arguments) == -signal.SIGKILL, (call, when)
        if (call, when) == STEPS[1]:
            # From here on it stands somewhere: the steps behind are those of a transaction with records.
            assert run("-", "", *arguments) == 0

    assert run("-", "", *arguments) == 0
    rows = txntable.Warehouse.open(folder).read_arrow(topic).read_all().to_pylist()
    assert sorted(int(row["value"]) for row in rows) == list(range(sent))
    places = [(row["kafka_partition"], row["kafka_offset"]) for row in rows]
    assert len(set(places)) == len(places) == sent


def test_stream_of_the_page_writes_each_record_once_when_it_is_killed_around_its_commit(
    cluster: Cluster, tmp_path: Path
) -> None:
    schema = pa.schema([*KAFKA_SCHEMA, pa.field("kafka_offset", pa.int64())])
    warehouse = txntable.Warehouse.create(str(tmp_path / "data/warehouse"))
    warehouse.admin().create_topic("orders", partitions=2, schema=schema, key=["key"])
    (shown,) = [block.text for block in blocks_of(ROOT / "docs/how-to/kafka.md") if block.title == "orders_stream.py"]
    program = tmp_path / "orders_stream.py"
    program.write_text(shown.replace("kafka:9092", cluster.address).replace("/data/", f"{tmp_path}/data/"))
    cluster.create("orders", 2)

    for first, when in ((0, "before"), (6, "after")):
        cluster.send("orders", [Message(number % 2, b"k", b"%d" % number) for number in range(first, first + 6)])
        assert run(f"{PRODUCER}.commit_transaction", when, str(program)) == -signal.SIGKILL

    assert run("-", "", str(program)) == 0
    rows = warehouse.read_arrow("orders").read_all().to_pylist()
    assert sorted(int(row["value"]) for row in rows) == list(range(12))

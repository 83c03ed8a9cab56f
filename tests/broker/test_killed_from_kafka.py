"""Kafka's records in a topic, each once, when the process that mirrors them is killed between any two of its steps."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import txntable
from tests.broker.cluster import Cluster, Message

ROOT = Path(__file__).parents[2]
PRODUCER = "txntable.producer.producer:Producer"
STEPS = [
    (f"{PRODUCER}.init_transactions", "after"),
    ("txntable.jobs.mirror.inbound:FromKafka._stored", "after"),
    (f"{PRODUCER}.begin_transaction", "after"),
    (f"{PRODUCER}.send_offsets_to_transaction", "before"),
    (f"{PRODUCER}.send_offsets_to_transaction", "after"),
    (f"{PRODUCER}.commit_transaction", "before"),
    (f"{PRODUCER}.commit_transaction", "after"),
]


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

    def run(call: str, when: str) -> int:
        command = [sys.executable, "-m", "tests.broker.killed_mirror", call, when, *arguments]
        return subprocess.run(command, cwd=ROOT, check=False).returncode

    for call, when in STEPS:
        send()
        assert run(call, when) == -signal.SIGKILL, (call, when)
        if (call, when) == STEPS[2]:
            # From here on it stands somewhere: the steps behind are those of a transaction with records.
            assert run("-", "") == 0

    assert run("-", "") == 0
    rows = txntable.Warehouse.open(folder).read_arrow(topic).read_all().to_pylist()
    assert sorted(int(row["value"]) for row in rows) == list(range(sent))
    places = [(row["kafka_partition"], row["kafka_offset"]) for row in rows]
    assert len(set(places)) == len(places) == sent

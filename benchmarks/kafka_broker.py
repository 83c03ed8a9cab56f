"""A Kafka broker of its own for a benchmark: a folder, a process on loopback, and a transactional producer.

Needs Java, the jars of a broker, and the package confluent-kafka; the jars and the package are no dependencies of this
project, so they are looked for when a benchmark runs.  One node is controller and broker (KRaft), topics are not
replicated, and all else is Kafka's default: a log is written to the page cache and not synced.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import secrets
import shutil
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contenders import Transact, Workload
from benchmarks.server_process import ended, free_port, wait_until

JARS = "BENCH_KAFKA_JARS"
_NEEDS = (
    "Java 17; `pip install confluent-kafka`; and the jars of a broker: `mvn -f benchmarks/kafka_broker.xml"
    f" dependency:copy-dependencies -DoutputDirectory=FOLDER` (an absolute path), then {JARS}=FOLDER in the environment"
)


def missing() -> str | None:
    """Return what a broker needs here, or ``None``: all is there."""
    jars = os.environ.get(JARS)
    has_jars = jars is not None and any(Path(jars).glob("kafka_2*.jar"))
    has_client = importlib.util.find_spec("confluent_kafka") is not None
    return None if has_jars and has_client and shutil.which("java") else _NEEDS


@dataclass(frozen=True, slots=True)
class KafkaBroker:
    """A broker that runs.

    Attributes
    ----------
    address : str
        Host and port.
    """

    address: str

    @property
    def name(self) -> str:
        """For people."""
        return "Kafka"

    def create(self, workload: Workload) -> None:
        """Create the topics."""
        admin = importlib.import_module("confluent_kafka.admin")
        client = admin.AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        new = [admin.NewTopic(topic, workload.partitions, 1) for topic in workload.topics]
        for created in client.create_topics(new).values():
            created.result()

    def connect(self, workload: Workload, number: int) -> Transact:
        """Return a transaction, from begin to the answer to the commit."""
        confluent_kafka = importlib.import_module("confluent_kafka")
        # Each setting makes it faster here than its default does: nothing is waited for.
        fast = {"linger.ms": 0, "socket.nagle.disable": True, "retry.backoff.ms": 1, "retry.backoff.max.ms": 2}
        transactional_id = f"{workload.key}-{number}"
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self.address, "transactional.id": transactional_id, "log_level": 0, **fast}
        )
        producer.init_transactions()
        topic = workload.topic(number)

        def transact() -> None:
            producer.begin_transaction()
            for partition in range(workload.records):
                producer.produce(topic, value=b"1", partition=partition)
            producer.commit_transaction()

        return transact


@contextmanager
def kafka_broker(folder: Path) -> Iterator[KafkaBroker]:
    """Start a broker on loopback, with its files in a new folder, and end it."""
    folder.mkdir()
    port, controller = free_port(), free_port()
    settings = folder / "server.properties"
    settings.write_text(_settings(folder / "data", port, controller))
    java = ["java", "-Xmx1g", "-cp", f"{os.environ[JARS]}/*"]
    cluster_id = urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
    tool = ["kafka.tools.StorageTool", "format", "-t", f"0{cluster_id[1:]}", "-c", str(settings)]
    subprocess.run([*java, *tool], check=True, capture_output=True)
    with (folder / "output").open("wb") as output:
        broker = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=output, stderr=output)
        with ended(broker, broker.terminate):
            address = f"127.0.0.1:{port}"
            wait_until(lambda: _answers(address), broker, folder / "output")
            yield KafkaBroker(address)


def _settings(data: Path, port: int, controller: int) -> str:
    lines = (
        "process.roles=broker,controller",
        "node.id=1",
        f"controller.quorum.voters=1@127.0.0.1:{controller}",
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names=CONTROLLER",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        f"log.dirs={data}",
        "offsets.topic.replication.factor=1",
        "transaction.state.log.replication.factor=1",
        "transaction.state.log.min.isr=1",
    )
    return "\n".join(lines) + "\n"


def _answers(address: str) -> bool:
    confluent_kafka = importlib.import_module("confluent_kafka")
    admin = importlib.import_module("confluent_kafka.admin")
    client = admin.AdminClient({"bootstrap.servers": address, "log_level": 0})
    try:
        return bool(client.list_topics(timeout=1).brokers)
    except confluent_kafka.KafkaException:
        return False

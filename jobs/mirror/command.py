"""``txntable mirror``: a topic of Kafka into one of the warehouse, and one of the warehouse into Kafka.

    txntable mirror from-kafka orders --bootstrap-servers kafka:9092 --once
    txntable mirror to-kafka orders --bootstrap-servers kafka:9092

Exit code 0: done; 1: failed: run it again, what is committed is not mirrored twice; 2: wrong usage; 130 or 143: ended
well after SIGINT or SIGTERM.  Spark is loaded for the first of the two only, confluent-kafka for the second.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Protocol

import typer

from txntable.cli.connection import Connection, named_values, on_warehouse
from txntable.cli.interruption import stopped_by_signals
from txntable.cli.output import tell
from txntable.jobs.mirror.kafka_client import KafkaTarget
from txntable.jobs.mirror.outbound import DEFAULT_MOST_RECORDS, ToKafka
from txntable.jobs.mirror.positions import MirrorRun
from txntable.runtime.environment import Environment

application = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Mirror topics of Kafka here, and topics there, each record once."
)

_NAME = "txntable-mirror"
_KEEP_MS = 60 * 60 * 1000
_STEP_MS = 200

Servers = Annotated[str, typer.Option(metavar="HOST:PORT,…", help="Of the Kafka cluster.")]
CommandConfig = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A file of NAME=VALUE lines with the Kafka client's settings: TLS, SASL, …"),
]
Once = Annotated[bool, typer.Option("--once", help="As far as the source is committed now, and exit.")]
Interval = Annotated[
    int, typer.Option(metavar="MS", min=1, help="Milliseconds to wait when nothing is new, without --once.")
]
At = Annotated[
    list[str] | None,
    typer.Option(metavar="PARTITION=OFFSET", help="Set where the mirror goes on, and exit; may be repeated."),
]


class Mirror(Protocol):
    """Either direction."""

    def ends(self) -> Mapping[int, int]:
        """Return up to where the source is committed now."""

    def run(self, goal: Mapping[int, int] | None = None) -> MirrorRun:
        """Mirror what is new, no further than the goal."""

    def keep(self) -> None:
        """Commit the positions as they are."""

    def seek(self, asked: Mapping[int, int]) -> Mapping[int, int]:
        """Set where the mirror goes on."""

    def close(self) -> None:
        """Close the clients."""


def from_kafka(  # noqa: PLR0913  the options of the command
    connection: Connection,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Kafka's.")],
    bootstrap_servers: Servers,
    into: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Our topic; default: of the same name. Created if need be.")
    ] = None,
    command_config: CommandConfig = None,
    max_offsets_per_partition: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=1, help="The most of one transaction.")
    ] = None,
    at: At = None,
    once: Once = False,
    interval_ms: Interval = 10_000,
) -> None:
    """Mirror a topic of Kafka into the warehouse: records and Kafka's offsets are one transaction."""
    asked, settings = _asked(at), _settings(command_config, bootstrap_servers)
    warehouse = connection.open()
    # Imported here, for the other direction does without Spark; this one first, for it says so where there is none.
    importlib.import_module("txntable.spark.session").require_java()
    kafka_module = importlib.import_module("txntable.jobs.mirror.spark_kafka")
    mirror_module = importlib.import_module("txntable.jobs.mirror.inbound")
    session = importlib.import_module("txntable.jobs.session").spark_session
    packages = {"spark.jars.packages": kafka_module.PACKAGE}
    with (
        session(f"txntable mirror {topic}", warehouse.store.spec, packages) as spark,
        closing(kafka_module.SparkKafka(spark, settings)) as kafka,
        closing(mirror_module.FromKafka(warehouse, kafka, topic, into or topic, max_offsets_per_partition)) as mirror,
    ):
        _mirror(mirror, asked, warehouse.context.environment, None if once else interval_ms)


def to_kafka(  # noqa: PLR0913  the options of the command
    connection: Connection,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Ours; it has the columns key and value as bytes.")],
    bootstrap_servers: Servers,
    into: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Kafka's topic; default: of the same name. Made if need be.")
    ] = None,
    command_config: CommandConfig = None,
    max_records: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, help="The most of one transaction.")
    ] = DEFAULT_MOST_RECORDS,
    at: At = None,
    once: Once = False,
    interval_ms: Interval = 1_000,
) -> None:
    """Mirror a topic of the warehouse into Kafka: committed records and our offsets are one transaction of Kafka."""
    asked, settings = _asked(at), _settings(command_config, bootstrap_servers)
    warehouse = connection.open()
    name, environment = f"{_NAME}-{into or topic}", warehouse.context.environment
    with (
        closing(KafkaTarget(into or topic, name, settings, environment)) as target,
        closing(ToKafka(warehouse, topic, target, max_records)) as mirror,
    ):
        _mirror(mirror, asked, environment, None if once else interval_ms)


def _asked(at: list[str] | None) -> dict[int, int]:
    pairs = named_values(at or (), "--at", "PARTITION=OFFSET")
    if not all(each.isdecimal() for pair in pairs.items() for each in pair):
        raise typer.BadParameter("give PARTITION=OFFSET, two numbers", param_hint="--at")
    return {int(partition): int(offset) for partition, offset in pairs.items()}


def _settings(file: Path | None, servers: str) -> dict[str, str]:
    """Return the settings of the Kafka client: of a file with a line NAME=VALUE for each, and the servers."""
    if file is None:
        return {"bootstrap.servers": servers}
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot be read: {error}", param_hint="--command-config") from error
    if any(line.endswith("\\") for line in lines):
        raise typer.BadParameter("has a value of several lines; put it into one", param_hint="--command-config")
    pairs = named_values([line for line in lines if line and line[0] not in "#!"], "--command-config")
    return {name.strip(): value.strip() for name, value in pairs.items()} | {"bootstrap.servers": servers}


def _mirror(mirror: Mirror, asked: Mapping[int, int], environment: Environment, interval_ms: int | None) -> None:
    """Set where the mirror goes on; or mirror what there is, or forever where there is an interval."""
    if asked:
        tell(
            f"the mirror goes on from {' '.join(f'{number}={at}' for number, at in sorted(mirror.seek(asked).items()))}"
        )
        return
    with stopped_by_signals() as stop:
        repeat(mirror, environment, interval_ms, stop.is_set)


def repeat(mirror: Mirror, environment: Environment, interval_ms: int | None, stop: Callable[[], bool]) -> None:
    """Mirror transaction after transaction.

    Parameters
    ----------
    mirror : Mirror
        Either direction.
    environment : Environment
        Waits.
    interval_ms : int or None
        How long to wait when nothing is new; ``None``: as far as the source is committed now, then return.
    stop : callable
        Asked between transactions, and while there is nothing to do.
    """
    goal = mirror.ends() if interval_ms is None else None
    kept_at = None
    while not stop():
        done = mirror.run(goal)
        if done.read:
            tell(str(done))
            continue
        # Whatever else there is: positions that nobody commits for long expire.
        if kept_at is None or environment.since_ms(kept_at) >= _KEEP_MS:
            mirror.keep()
            kept_at = environment.instant()
        if interval_ms is None:
            return
        began = environment.instant()
        while not stop() and (rest_ms := interval_ms - environment.since_ms(began)) > 0:
            environment.sleep_ms(min(_STEP_MS, rest_ms))


application.command("from-kafka")(on_warehouse(from_kafka))
application.command("to-kafka")(on_warehouse(to_kafka))

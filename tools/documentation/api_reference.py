"""The reference of the Python API: which names stand on which page; mkdocstrings takes their text from docstrings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

NAMES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "warehouse": (
        "Warehouse and snapshots",
        (
            "txntable.warehouse.warehouse.Warehouse",
            "txntable.snapshot.snapshot.Snapshot",
            "txntable.format.warehouse_settings.WarehouseSettings",
            "txntable.format.isolation.IsolationLevel",
            "txntable.upkeep.transaction_coordinator.CoordinatorConfig",
        ),
    ),
    "producer": (
        "Producer and transactions",
        (
            "txntable.producer.producer.Producer",
            "txntable.producer.transaction.Transaction",
            "txntable.format.records.RecordMetadata",
            "txntable.format.records.OffsetRange",
        ),
    ),
    "consumer": (
        "Consumer and groups",
        (
            "txntable.consumer.consumer.Consumer",
            "txntable.consumer.consumer_record.ConsumerRecord",
            "txntable.consumer.consumer_record.OffsetAndTimestamp",
            "txntable.consumer.rebalance_listener.ConsumerRebalanceListener",
            "txntable.format.records.TopicPartition",
            "txntable.offsets.group_commit.OffsetAndMetadata",
        ),
    ),
    "admin": ("Admin client", ("txntable.admin.admin.Admin",)),
    "spark": (
        "Spark",
        (
            "txntable.spark.session.build_session",
            "txntable.spark.topic_schema.topic_schema",
            "txntable.spark.pipelines.pipeline.Pipeline",
            "txntable.spark.pipelines.pipeline.PipelineRun",
            "txntable.spark.pipelines.pipeline_config.PipelineConfig",
        ),
    ),
    "confluent": (
        "confluent-kafka's clients",
        (
            "txntable.compat.confluent",
            "txntable.compat.confluent.producer.Producer",
            "txntable.compat.confluent.consumer.Consumer",
            "txntable.compat.confluent.admin_client.AdminClient",
            "txntable.compat.confluent.message.Message",
            "txntable.compat.confluent.kafka_error.KafkaError",
            "txntable.compat.confluent.kafka_error.KafkaException",
        ),
    ),
    "testing": (
        "Fixtures for tests",
        ("txntable.testing.pytest_plugin", "txntable.testing.moto_server.LockedMotoServer"),
    ),
}
"""Page -> its title and the names on it."""


def _page(title: str, names: tuple[str, ...]) -> str:
    return "\n".join([f"# {title}\n", *(f"::: {name}\n" for name in names)])


PAGES: Mapping[str, Callable[[], str]] = {
    f"reference/api/{page}.md": partial(_page, title, names) for page, (title, names) in NAMES.items()
}
"""Path in the site -> makes the page."""

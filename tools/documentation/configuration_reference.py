"""The reference of settings, from the dataclasses that hold them and the tables of topics' settings and duties."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from griffe import Docstring, DocstringSectionKind

from tools.documentation.tables import prose, table
from txntable.admin.upkeep import UpkeepLimits
from txntable.compaction.compactor import CompactionOptions
from txntable.consumer.consumer_config import SETTINGS as CONSUMER_SETTINGS
from txntable.consumer.consumer_config import ConsumerConfig
from txntable.format.kafka_setting_names import ELSEWHERE, HARMLESS
from txntable.format.topic_config import TOPIC_CONFIG
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.producer.producer_config import SETTINGS as PRODUCER_SETTINGS
from txntable.producer.producer_config import ProducerConfig
from txntable.spark.datasource.read_options import ReadOptions
from txntable.spark.datasource.write_options import WriteOptions
from txntable.spark.pipelines.pipeline_config import PipelineConfig
from txntable.spark.scan.source_options import Option
from txntable.upkeep.transaction_coordinator import CoordinatorConfig
from txntable.warehouse.warehouse import Warehouse

_INTRODUCTION = """# Configuration

Every setting with its default, from the code. Names are Kafka's where Kafka has the setting: producers and consumers
take them with dots or underscores (`transaction.timeout.ms`, `transaction_timeout_ms`), by name or in a dictionary.
Options of stores are in [Stores](../../infra/STORES.md).
"""
DATACLASSES: tuple[tuple[str, str, type, frozenset[str] | None], ...] = (
    ("Warehouse", "`Warehouse.create`, `txntable warehouse create --config`.", WarehouseSettings, None),
    ("Producer", "`Warehouse.producer`.", ProducerConfig, frozenset(PRODUCER_SETTINGS)),
    ("Consumer", "`Warehouse.consumer`.", ConsumerConfig, frozenset(CONSUMER_SETTINGS)),
    ("Coordinator job", "`Warehouse.coordinator`, `txntable transactions run`.", CoordinatorConfig, None),
    ("Compaction", "`txntable compact`.", CompactionOptions, None),
    ("Limits of `txntable check`", "`--limit NAME=NUMBER`.", UpkeepLimits, None),
    ("Pipeline", "The TOML file of `txntable pipeline`.", PipelineConfig, None),
    ("Spark's data source: reading", '`spark.read.format("txntable")`.', ReadOptions, None),
    ("Spark's data source: writing", '`dataframe.write.format("txntable")`.', WriteOptions, None),
)
"""Title, where it is given, the dataclass, and which of its fields; ``None``: all."""
_OPTIONS: Mapping[str, str] = {
    "store": "warehouse",
    "level": "isolation_level",
    "starting": "starting_offsets",
    "ending": "ending_offsets",
    "bytes_per_task": "max_bytes_per_task",
}
"""Field of the data source's dataclasses -> the option's name, where it is another."""


def page() -> str:
    """Return the page, which has every setting of every dataclass."""
    parts = [_INTRODUCTION, _topic_section()]
    parts += [_section(*each) for each in DATACLASSES]
    return "\n".join([*parts, _elsewhere_section()])


def _topic_section() -> str:
    rows = [(f"`{name}`", f"`{key.default}`", key.allowed, key.about) for name, key in TOPIC_CONFIG.items()]
    where = "`Admin.create_topic(config=…)`, `alter_configs`, `txntable topics alter --config`."
    return f"## Topic\n\n{where}\n\n{table(('setting', 'default', 'allowed', 'meaning'), rows)}"


def _section(title: str, where: str, kind: Any, shown: frozenset[str] | None) -> str:
    said = descriptions(kind)
    # A producer's first settings have their defaults where users give them.
    given = inspect.signature(Warehouse.producer).parameters if kind is ProducerConfig else {}
    rows = [
        (f"`{_name_of(kind, field.name)}`", _default(field, given), prose(said.get(field.name)))
        for field in dataclasses.fields(kind)
        if shown is None or field.name in shown
    ]
    return f"## {title}\n\n{where}\n\n{table(('setting', 'default', 'meaning'), rows)}"


def _name_of(kind: type, field: str) -> str:
    """Return the name under which a setting is given."""
    if kind not in {ReadOptions, WriteOptions}:
        return field
    first, *others = _OPTIONS.get(field, field).split("_")
    return Option(first + "".join(word.capitalize() for word in others)).value


def descriptions(kind: type) -> dict[str, str]:
    """Return what a dataclass's docstring says of each of its attributes.

    Parameters
    ----------
    kind : type
        With a docstring in numpydoc's style; several attributes may share a text.
    """
    sections = Docstring(kind.__doc__ or "", parser="numpy").parse()
    return {
        name.strip(): attribute.description
        for section in sections
        if section.kind is DocstringSectionKind.attributes
        for attribute in section.value
        for name in attribute.name.split(",")
    }


def _default(field: dataclasses.Field[Any], given: Mapping[str, inspect.Parameter]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return f"`{field.default_factory()}`"
    value = given[field.name].default if field.name in given else field.default
    # A callable has a name of this run only.
    return "" if value is dataclasses.MISSING or callable(value) else f"`{getattr(value, 'value', value)}`"


def _elsewhere_section() -> str:
    taken = [(f"`{_kafka_name(name)}`", one.taken, one.why) for name, one in sorted(HARMLESS.items())]
    refused = [(f"`{_kafka_name(name)}`", remedy) for name, remedy in sorted(ELSEWHERE.items())]
    return (
        "## Kafka's settings without a counterpart\n\n"
        "In a dictionary, settings that change nothing here are taken with these values, and refused with others.\n\n"
        f"{table(('setting', 'values', 'what happens anyway'), taken)}\n\n"
        "Others are refused by their names, all in one message, with what to do instead.\n\n"
        f"{table(('setting', 'instead'), refused)}"
    )


def _kafka_name(name: str) -> str:
    return name.replace("_", ".")

"""Altering and describing settings of topics, and what compaction demands of records."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.simulation.site import Site
from tests.unit.reading import TOPIC, leave_open, site_with_topic
from txntable.admin.config_admin import ConfigSource
from txntable.errors import (
    InvalidConfigError,
    InvalidRequestError,
    MissingKeyError,
    SchemaMismatchError,
    TransactionAbortableError,
    TxnTableError,
    UnknownTopicOrPartitionError,
)
from txntable.format.topic_config import TOPIC_CONFIG
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

HOUR_MS = 3_600_000
KEYED = pa.schema([pa.field("account", pa.string()), pa.field("day", pa.int32()), pa.field("amount", pa.int64())])


def last_operation(warehouse: Warehouse, topic: str = TOPIC) -> tuple[int | None, int | None]:
    """The versions of both logs."""
    log = warehouse.topic_log(topic)
    return log.segments.refresh().version, log.public.refresh().version


@pytest.fixture
def site() -> Site:
    return site_with_topic()[0]


def test_altered_settings_hold_for_everyone_and_are_projected(site: Site) -> None:
    admin = site.open().admin()

    settings = admin.alter_configs(TOPIC, {"retention.ms": HOUR_MS, "cleanup.policy": ["delete"]})

    assert dict(settings.config) == {"cleanup.policy": "delete", "retention.ms": "3600000"}
    other = site.open().topic_log(TOPIC)
    assert other.settings() == settings
    public = other.public.refresh().metadata
    assert public is not None
    assert public.configuration["txntable.config.retention.ms"] == "3600000"


def test_altering_changes_what_is_named_and_none_leads_back_to_the_default(site: Site) -> None:
    admin = site.open().admin()
    admin.alter_configs(TOPIC, {"retention.ms": HOUR_MS, "segment.bytes": 2**20})

    assert dict(admin.alter_configs(TOPIC, {"retention.ms": None}).config) == {"segment.bytes": "1048576"}


@pytest.mark.parametrize(
    "changes", [{}, {"retention.ms": "3600000"}, {"retention.ms": HOUR_MS}, {"segment.bytes": None}]
)
def test_altering_to_what_holds_already_writes_nothing(site: Site, changes: dict[str, object]) -> None:
    warehouse = site.open()
    warehouse.admin().alter_configs(TOPIC, {"retention.ms": HOUR_MS})
    before = last_operation(warehouse)

    warehouse.admin().alter_configs(TOPIC, changes)

    assert last_operation(warehouse) == before


@pytest.mark.parametrize(
    ("topic", "changes", "error"),
    [
        (TOPIC, {"retention": 1}, InvalidConfigError),
        (TOPIC, {"retention": None}, InvalidConfigError),
        (TOPIC, {"retention.ms": "long"}, InvalidConfigError),
        (TOPIC, {"retention.ms": 1}, InvalidConfigError),
        (TOPIC, {"cleanup.policy": "compact"}, InvalidConfigError),
        (TOPIC, [("retention.ms", 1)], InvalidRequestError),
        ("nowhere", {"retention.ms": HOUR_MS}, UnknownTopicOrPartitionError),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_altering_is_refused_and_changes_nothing(
    site: Site, topic: str, changes: dict[str, object], error: type[TxnTableError], validate_only: bool
) -> None:
    warehouse = site.open()
    before = last_operation(warehouse)

    with pytest.raises(error):
        warehouse.admin().alter_configs(topic, changes, validate_only=validate_only)

    assert last_operation(warehouse) == before


def test_validation_alone_changes_nothing(site: Site) -> None:
    admin = site.open().admin()

    assert dict(admin.alter_configs(TOPIC, {"retention.ms": HOUR_MS}, validate_only=True).config) == {}
    assert dict(admin.alter_configs(TOPIC, {}).config) == {}


def test_settings_are_judged_together_with_those_that_were_set_before(site: Site) -> None:
    admin = site.open().admin()
    admin.alter_configs(TOPIC, {"min.compaction.lag.ms": 2 * HOUR_MS})

    with pytest.raises(InvalidConfigError, match="above the greatest"):
        admin.alter_configs(TOPIC, {"max.compaction.lag.ms": HOUR_MS})
    both = {"max.compaction.lag.ms": HOUR_MS, "min.compaction.lag.ms": None}
    assert dict(admin.alter_configs(TOPIC, both).config) == {"max.compaction.lag.ms": "3600000"}


def test_two_that_alter_at_once_both_find_their_changes(site: Site) -> None:
    first, second = site.open().admin(), site.open().admin()
    second.describe_topics([TOPIC])

    first.alter_configs(TOPIC, {"retention.ms": HOUR_MS})
    settings = second.alter_configs(TOPIC, {"segment.bytes": 2**20})

    assert dict(settings.config) == {"retention.ms": "3600000", "segment.bytes": "1048576"}


def test_open_transaction_goes_on_over_a_change(site: Site) -> None:
    warehouse = site.open()
    producer = leave_open(warehouse, "ann")

    warehouse.admin().alter_configs(TOPIC, {"retention.ms": HOUR_MS})
    producer.commit_transaction()

    assert warehouse.read_arrow(TOPIC).read_all()["account"].to_pylist() == ["ann"]


def test_described_settings_are_all_that_there_are_with_their_source(site: Site) -> None:
    admin = site.open().admin()
    admin.alter_configs(TOPIC, {"retention.ms": HOUR_MS})

    entries = admin.describe_configs([TOPIC])[TOPIC]

    assert list(entries) == sorted(TOPIC_CONFIG)
    assert (entries["retention.ms"].value, entries["retention.ms"].source) == (
        "3600000",
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
    )
    assert entries["retention.ms"].default == "-1"
    assert [entry.name for entry in entries.values() if not entry.is_default] == ["retention.ms"]
    assert entries["cleanup.policy"].value == "delete"


def test_description_is_refused_of_no_topic(site: Site) -> None:
    admin = site.open().admin()

    with pytest.raises(InvalidRequestError):
        admin.describe_configs(TOPIC)
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.describe_configs(["nowhere"])


# -- records without a key ----------------------------------------------------------------------


def compacted(key: tuple[str, ...] = ("account",), schema: pa.Schema | None = KEYED) -> Warehouse:
    warehouse = Site().create()
    warehouse.admin().create_topic("c", schema=schema, key=key, config={"cleanup.policy": "compact"})
    return warehouse


def without_key(producer: Producer, *, many: bool, partition: int | None = None) -> None:
    row = {"account": None, "day": 1, "amount": 1}
    if many:
        producer.send("c", rows=pa.Table.from_pylist([{**row, "account": "ann"}, row], KEYED), partition=partition)
    else:
        producer.send("c", row=row, partition=partition)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("partition", [None, 0])
def test_record_without_a_key_is_refused_when_the_topic_is_compacted_and_spoils_the_transaction(
    many: bool, partition: int | None
) -> None:
    warehouse = compacted()
    producer = warehouse.producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("c", row={"account": "bob", "day": 1, "amount": 1})

    with pytest.raises(MissingKeyError, match="compacted") as refused:
        without_key(producer, many=many, partition=partition)
    with pytest.raises(TransactionAbortableError, match="INVALID_RECORD"):
        producer.commit_transaction()
    producer.abort_transaction()

    assert (refused.value.code, refused.value.facts["column"]) == ("INVALID_RECORD", "account")
    assert warehouse.read_arrow("c").read_all().num_rows == 0


def test_record_without_a_key_column_of_its_own_is_refused_too() -> None:
    with compacted().producer() as producer, pytest.raises(SchemaMismatchError, match="compacted"):
        producer.send("c", row={"day": 1, "amount": 1})


def test_kafkas_record_without_a_key_is_refused_when_the_topic_is_compacted() -> None:
    with compacted((), None).producer() as producer:
        with pytest.raises(SchemaMismatchError, match="column=key"):
            producer.send("c", b"value")
        producer.send("c", None, key=b"tombstone")


def test_record_of_several_key_columns_has_a_key_though_one_is_null() -> None:
    warehouse = compacted(("account", "day"))

    with warehouse.producer() as producer:
        for many in (False, True):
            without_key(producer, many=many)

    assert warehouse.read_arrow("c").read_all().num_rows == 3

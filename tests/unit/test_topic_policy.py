"""Which settings of a topic cannot be kept together, and what those mean that can."""

from __future__ import annotations

import pyarrow as pa
import pytest

from txntable.errors import InvalidConfigError
from txntable.format.topic import TopicSettings
from txntable.format.topic_config import LARGEST_LONG
from txntable.format.topic_policy import check_policy, is_compacted, is_retained, required_key_column
from txntable.format.warehouse_settings import WarehouseSettings

COLUMNS = pa.schema([pa.field("account", pa.string()), pa.field("day", pa.int32()), pa.field("amount", pa.int64())])
MINUTE_MS = 60_000
WAREHOUSE = WarehouseSettings(transaction_max_timeout_ms=10 * MINUTE_MS, snapshot_retention_ms=5 * MINUTE_MS)


def topic(key: tuple[str, ...] = ("account",), **config: object) -> TopicSettings:
    named = {name.replace("_", "."): str(value) for name, value in config.items()}
    return TopicSettings("t", "a" * 32, 1, COLUMNS, key, named)


@pytest.mark.parametrize(
    "settings",
    [
        topic(),
        topic(key=()),
        topic(cleanup_policy="compact"),
        topic(cleanup_policy="compact,delete"),
        topic(key=(), cleanup_policy="delete"),
        topic(retention_ms=-1),
        topic(retention_ms=10 * MINUTE_MS),
        topic(retention_bytes=0),
        # What is compacted only is not retained by age: as with Kafka, the setting waits for the policy.
        topic(cleanup_policy="compact", retention_ms=0),
        topic(cleanup_policy="compact", max_compaction_lag_ms=5 * MINUTE_MS),
        topic(key=(), max_compaction_lag_ms=1),
        topic(cleanup_policy="compact", delete_retention_ms=0, min_cleanable_dirty_ratio=0),
        topic(min_compaction_lag_ms=LARGEST_LONG),
        topic(min_compaction_lag_ms=7, max_compaction_lag_ms=7),
        # A segment may be larger than what stays of a partition, and a record larger than a segment.
        topic(retention_bytes=1, segment_bytes=2**30),
        topic(max_message_bytes=2**30, segment_bytes=2**20),
    ],
    ids=lambda settings: f"{settings.key} {dict(settings.config)}",
)
def test_settings_are_taken_when_they_can_be_kept(settings: TopicSettings) -> None:
    check_policy(settings, WAREHOUSE)


@pytest.mark.parametrize(
    ("settings", "reason", "facts"),
    [
        (topic(key=(), cleanup_policy="compact"), "no key columns", {"cleanup_policy": "compact"}),
        (topic(key=(), cleanup_policy="delete,compact"), "no key columns", {"cleanup_policy": "delete,compact"}),
        (
            topic(retention_ms=10 * MINUTE_MS - 1),
            "a transaction may stay open",
            {"retention_ms": 599_999, "transaction_max_timeout_ms": 600_000},
        ),
        (topic(retention_ms=0), "a transaction may stay open", {"retention_ms": 0}),
        (topic(cleanup_policy="compact,delete", retention_ms=5), "a transaction may stay open", {"retention_ms": 5}),
        (
            topic(min_compaction_lag_ms=8, max_compaction_lag_ms=7),
            "above the greatest",
            {"min_compaction_lag_ms": 8, "max_compaction_lag_ms": 7},
        ),
        (
            topic(cleanup_policy="compact", max_compaction_lag_ms=5 * MINUTE_MS - 1),
            "snapshot retention",
            {"max_compaction_lag_ms": 299_999, "snapshot_retention_ms": 300_000},
        ),
    ],
)
def test_settings_are_refused_with_the_reason_when_they_can_not_be_kept(
    settings: TopicSettings, reason: str, facts: dict[str, object]
) -> None:
    with pytest.raises(InvalidConfigError, match=reason) as refused:
        check_policy(settings, WAREHOUSE)

    assert facts.items() <= refused.value.facts.items()
    assert refused.value.facts["topic"] == "t"


@pytest.mark.parametrize(
    ("policy", "compacted", "retained"),
    [
        (None, False, True),
        ("delete", False, True),
        ("compact", True, False),
        ("compact,delete", True, True),
        ("delete, compact", True, True),
    ],
)
def test_cleanup_policy_says_what_becomes_of_old_records(policy: str | None, compacted: bool, retained: bool) -> None:
    config = {} if policy is None else {"cleanup.policy": policy}

    assert (is_compacted(config), is_retained(config)) == (compacted, retained)


@pytest.mark.parametrize(
    ("key", "policy", "column"),
    [
        (("account",), "compact", "account"),
        (("account",), "compact,delete", "account"),
        (("account",), "delete", None),
        (("account", "day"), "compact", None),
        ((), "delete", None),
    ],
)
def test_only_the_single_key_column_of_a_compacted_topic_is_required(
    key: tuple[str, ...], policy: str, column: str | None
) -> None:
    assert required_key_column(topic(key=key, cleanup_policy=policy)) == column

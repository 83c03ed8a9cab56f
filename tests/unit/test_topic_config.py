"""Topic settings: Kafka's names, what each may be, and what holds by default."""

from __future__ import annotations

import pytest

from txntable.errors import InvalidConfigError
from txntable.format.topic_config import LARGEST_LONG, TOPIC_CONFIG, altered, config_value, validate


@pytest.mark.parametrize("name", TOPIC_CONFIG)
def test_the_default_is_allowed_for_each_setting(name):
    key = TOPIC_CONFIG[name]

    assert validate({name: key.default}) == {name: key.default}
    assert config_value(name, {}) == config_value(name, {name: key.default})


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("cleanup.policy", ("delete",)),
        ("retention.bytes", -1),
        ("delete.retention.ms", 86_400_000),
        ("min.compaction.lag.ms", 0),
        ("max.compaction.lag.ms", LARGEST_LONG),
        ("min.cleanable.dirty.ratio", 0.5),
        ("max.message.bytes", 1_048_588),
        ("message.timestamp.type", "CreateTime"),
        ("compression.type", "producer"),
    ],
)
def test_kafkas_default_holds_where_nothing_is_set(name, default):
    assert config_value(name, {}) == default


def test_records_are_kept_for_ever_where_no_retention_is_set():
    """Kafka's default is seven days: a table that loses its rows unasked would be no table."""
    assert config_value("retention.ms", {}) == -1


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"retention.ms": 3_600_000}, {"retention.ms": "3600000"}),
        ({"retention.ms": "-1"}, {"retention.ms": "-1"}),
        ({"cleanup.policy": ["compact", "delete"]}, {"cleanup.policy": "compact,delete"}),
        ({"cleanup.policy": "compact"}, {"cleanup.policy": "compact"}),
        ({"min.cleanable.dirty.ratio": 0.01}, {"min.cleanable.dirty.ratio": "0.01"}),
        (
            {"segment.bytes": 2**20, "compression.type": "zstd"},
            {"compression.type": "zstd", "segment.bytes": "1048576"},
        ),
    ],
)
def test_settings_are_stored_as_text_when_they_are_allowed(given, stored):
    assert validate(given) == stored


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention.ms", "-2"),
        ("retention.ms", "7 days"),
        ("retention.ms", "1_000"),
        ("retention.ms", 2**63),
        ("retention.ms", "9" * 5_000),
        ("retention.ms", 1.5),
        ("retention.ms", True),
        ("retention.ms", None),
        ("segment.bytes", 100),
        ("max.message.bytes", 2**31),
        ("min.cleanable.dirty.ratio", 1.1),
        ("min.cleanable.dirty.ratio", "nan"),
        ("cleanup.policy", ""),
        ("cleanup.policy", "compact,compact"),
        ("cleanup.policy", "shred"),
        ("message.timestamp.type", "createtime"),
        ("compression.type", "zip"),
        ("max.compaction.lag.ms", 0),
    ],
)
def test_a_value_is_refused_with_what_is_allowed(name, value):
    with pytest.raises(InvalidConfigError) as refused:
        validate({name: value})

    assert refused.value.facts["name"] == name
    assert refused.value.facts["allowed"] == TOPIC_CONFIG[name].allowed


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("retention_ms", "retention.ms"),
        ("Retention.MS", "retention.ms"),
        ("cleanup.polcy", "cleanup.policy"),
        ("max.msg.bytes", "max.message.bytes"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(name, nearest):
    with pytest.raises(InvalidConfigError) as refused:
        validate({name: "1"})

    assert refused.value.facts["name"] == name
    assert f"did you mean {nearest}?" in str(refused.value)


SET = {"cleanup.policy": "compact", "retention.ms": "3600000"}


@pytest.mark.parametrize(
    ("changes", "stored"),
    [
        ({}, SET),
        ({"retention.ms": 7_200_000}, {"cleanup.policy": "compact", "retention.ms": "7200000"}),
        ({"retention.ms": None}, {"cleanup.policy": "compact"}),
        ({"segment.bytes": None}, SET),
        (
            {"cleanup.policy": ["delete"], "retention.bytes": -1},
            {"cleanup.policy": "delete", "retention.bytes": "-1", "retention.ms": "3600000"},
        ),
    ],
)
def test_altered_settings_are_those_that_were_set_with_the_changes(changes, stored):
    assert altered(SET, changes) == stored


@pytest.mark.parametrize("changes", [{"retention": None}, {"retention": 1}, {"retention.ms": "long"}, {5: None}])
def test_a_change_that_is_none_is_refused(changes):
    with pytest.raises(InvalidConfigError):
        altered(SET, changes)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("min.insync.replicas", "keeps the copies"),
        ("SEGMENT_MS", "written once"),
        ("remote.storage.enable", "object store"),
    ],
)
def test_setting_of_kafkas_that_has_no_counterpart_is_refused_with_what_to_do(name: str, remedy: str) -> None:
    with pytest.raises(InvalidConfigError, match=remedy) as refused:
        validate({name: "1"})

    assert "did you mean" not in str(refused.value)


@pytest.mark.parametrize("refuse", [validate, lambda given: altered({}, given)])
def test_all_settings_that_are_wrong_are_said_at_once(refuse):
    given = {"cleanup.policy": "none", "compression.type": "brotli", "retension.ms": 1, "segment.ms": 1}

    with pytest.raises(InvalidConfigError, match=r"4 settings are wrong: \(1\) ") as caught:
        refuse({**given, "retention.ms": 1})

    assert caught.value.facts["setting"] == "cleanup.policy,compression.type,retension.ms,segment.ms"
    assert "did you mean retention.ms?" in str(caught.value)
    assert "brotli" in str(caught.value)

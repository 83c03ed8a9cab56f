"""Which lifecycle rules destroy a warehouse, as a table."""

from __future__ import annotations

import pytest

from txntable.infra.lifecycle import dangers


def rule(**fields: object) -> dict[str, object]:
    return {"ID": "r", "Status": "Enabled", "Filter": {"Prefix": ""}, **fields}


EXPIRES = {"Expiration": {"Days": 365}}


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        (EXPIRES, "deletes objects by age"),
        ({"Expiration": {"Date": "2030-01-01"}}, "deletes objects by age"),
        (EXPIRES | {"Filter": {"Prefix": "lake/one/topics/"}}, "deletes objects by age"),
        (EXPIRES | {"Filter": {"Prefix": "la"}}, "deletes objects by age"),
        (EXPIRES | {"Filter": {"ObjectSizeGreaterThan": 1_000_000}}, "deletes objects by age"),
        (EXPIRES | {"Filter": {"And": {"Prefix": "lake/", "ObjectSizeLessThan": 10}}}, "deletes objects by age"),
        ({"Prefix": "lake/", "Filter": {}} | EXPIRES, "deletes objects by age"),
        ({"Transitions": [{"Days": 90, "StorageClass": "GLACIER"}]}, "GLACIER"),
        ({"Transitions": [{"Days": 90, "StorageClass": "DEEP_ARCHIVE"}]}, "DEEP_ARCHIVE"),
        ({"Transition": {"Days": 90, "StorageClass": "GLACIER"}}, "GLACIER"),
        ({"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}}, "aborts uploads"),
    ],
)
def test_rule_that_takes_what_is_in_use_is_named(fields: dict, what: str) -> None:
    found = dangers([rule(**fields)], "lake/one")

    assert len(found) == 1
    assert what in str(found[0])
    assert "'r'" in str(found[0])


@pytest.mark.parametrize(
    "fields",
    [
        EXPIRES | {"Status": "Disabled"},
        EXPIRES | {"Filter": {"Prefix": "logs/"}},
        EXPIRES | {"Filter": {"Prefix": "lake/one-more/"}},
        EXPIRES | {"Filter": {"Tag": {"Key": "temporary", "Value": "yes"}}},
        EXPIRES | {"Filter": {"And": {"Prefix": "", "Tags": [{"Key": "temporary", "Value": "yes"}]}}},
        EXPIRES | {"Filter": {"Prefix": "lake/one/system/probe/"}},
        EXPIRES | {"Filter": {"Prefix": "lake/one/system/heartbeats/"}},
        {"Expiration": {"ExpiredObjectDeleteMarker": True}},
        {"NoncurrentVersionExpiration": {"NoncurrentDays": 7}},
        {"NoncurrentVersionTransitions": [{"NoncurrentDays": 7, "StorageClass": "GLACIER"}]},
        {"Transitions": [{"Days": 30, "StorageClass": "STANDARD_IA"}, {"Days": 0, "StorageClass": "GLACIER_IR"}]},
        {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}},
    ],
)
def test_harmless_rule_is_passed_over(fields: dict) -> None:
    assert dangers([rule(**fields)], "lake/one") == []


def test_every_rule_reaches_a_warehouse_that_is_the_whole_bucket() -> None:
    assert dangers([rule(**EXPIRES, Filter={"Prefix": "logs/"})], "")


def test_bucket_without_rules_is_safe() -> None:
    assert dangers([], "lake/one") == []

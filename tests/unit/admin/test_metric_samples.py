"""What a look at a warehouse measures, and the texts that monitoring systems take."""

from __future__ import annotations

import json
import re

import pytest

from tests.simulation.site import Site
from tests.unit.admin.administering import opened
from tests.unit.producer.producing import row
from txntable.admin.lag_listing import GroupLag, PartitionEnds, WarehouseLags
from txntable.admin.metric_samples import (
    MetricFormat,
    Sample,
    exported,
    samples_of_findings,
    samples_of_lags,
    samples_of_open,
    samples_of_round,
    samples_of_totals,
)
from txntable.admin.upkeep import Duty, Finding
from txntable.errors import InvalidRequestError, UnknownTopicOrPartitionError
from txntable.format.records import TopicPartition
from txntable.upkeep.coordinator_round import CoordinatorReport

U0 = TopicPartition("u", 0)
LINE = re.compile(r'[a-z_]+\{[a-z]+="(?:[^"\\\n]|\\.)*"(?:,[a-z]+="(?:[^"\\\n]|\\.)*")*\} -?[0-9]+')


def worst(samples: list[Sample]) -> dict[str, int]:
    return {one.name: one.value for one in samples if not one.labels}


def test_lags_are_counted_to_where_readers_stop(site: Site) -> None:
    warehouse = site.open()
    with warehouse.producer() as producer:
        for number in range(3):
            producer.send("u", row=row("one", number))
    opened(warehouse)
    warehouse.admin().alter_consumer_group_offsets("readers", {U0: 1})

    lags = site.open().admin().list_lags(["u"])

    assert lags == WarehouseLags((PartitionEnds(U0, 0, 3, 4),), (("u", 0),), (GroupLag("readers", U0, 1, 2),))
    assert lags.partitions[0].last_stable_offset_lag == 1
    assert worst(samples_of_lags(lags)) == {
        "last_stable_offset_lag_max": 1,
        "publication_lag_ms_max": 0,
        "group_lag_max": 2,
    }


def test_publication_lag_is_the_age_of_what_a_public_table_lacks(site: Site) -> None:
    site.objects.delete("topics/u/_delta_log/00000000000000000000.json")
    admin = site.open().admin()
    site.advance_ms(7_000)

    assert admin.list_lags(["t", "u"]).publication_ms == (("t", 0), ("u", 7_000))


def test_lags_of_a_topic_that_is_none_are_refused(site: Site) -> None:
    admin = site.open().admin()

    with pytest.raises(UnknownTopicOrPartitionError):
        admin.list_lags(["nope"])
    with pytest.raises(InvalidRequestError):
        admin.list_lags("u")


def test_each_duty_is_a_sample_also_without_a_finding() -> None:
    findings = [Finding(Duty.MERGE, "topic t"), Finding(Duty.READ, "topic u")]

    samples = samples_of_findings(findings)

    assert worst(samples) == {"late": 1, "unreadable": 1}
    assert {one.labels["finding"]: one.value for one in samples if one.labels} == {
        **dict.fromkeys((duty.value for duty in Duty), 0),
        Duty.MERGE.value: 1,
        Duty.READ.value: 1,
    }


def test_open_transactions_are_counted_with_the_age_of_the_oldest(site: Site) -> None:
    opened(site.open())
    site.advance_ms(5_000)

    samples = samples_of_open(site.open().admin().find_blocking_transactions())

    assert worst(samples) == {"open_transactions": 1, "oldest_open_transaction_ms": 5_000}


def test_a_round_of_the_coordinator_is_told_whole() -> None:
    assert worst(samples_of_round(CoordinatorReport(3, aborted=2, failures=1)))["coordinator_failures"] == 1


def test_prometheus_text_has_one_type_for_each_name_and_escapes_names_of_others() -> None:
    evil = 'a"b\\c\nd'
    samples = [
        Sample("group_lag", 3, {"group": evil, "topic": "t", "partition": "0"}, "Offsets."),
        Sample("group_lag", 4, {"group": "g", "topic": "t", "partition": "0"}, "Offsets."),
        *samples_of_totals({"log-metrics": {"commit-total": 7}}),
    ]

    text = exported(samples, MetricFormat.PROMETHEUS, "/lake", 0)

    lines = text.splitlines()
    assert [line for line in lines if line.startswith("# TYPE")] == [
        "# TYPE txntable_group_lag gauge",
        "# TYPE txntable_log_metrics_commit_total counter",
    ]
    values = [line for line in lines if not line.startswith("#")]
    assert all(LINE.fullmatch(line) for line in values)
    assert 'txntable_group_lag{warehouse="/lake",group="a\\"b\\\\c\\nd",topic="t",partition="0"} 3' in values
    assert 'txntable_log_metrics_commit_total{warehouse="/lake"} 7' in values


def test_embedded_metrics_are_lines_of_json_with_the_warehouse_as_their_dimension() -> None:
    samples = [
        Sample("group_lag", 3, {"group": "g"}),
        Sample("publication_lag_ms_max", 5),
        *(Sample(f"x{number}", number) for number in range(150)),
    ]

    lines = exported(samples, MetricFormat.CLOUDWATCH, "s3://b/lake", 1_700_000_000_000).splitlines()

    documents = [json.loads(line) for line in lines]
    assert [len(each["_aws"]["CloudWatchMetrics"][0]["Metrics"]) for each in documents] == [100, 51]
    assert documents[0]["_aws"]["Timestamp"] == 1_700_000_000_000
    assert documents[0]["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["warehouse"]]
    assert {"Name": "publication_lag_ms_max", "Unit": "Milliseconds"} in documents[0]["_aws"]["CloudWatchMetrics"][0][
        "Metrics"
    ]
    assert (documents[0]["warehouse"], documents[0]["publication_lag_ms_max"]) == ("s3://b/lake", 5)
    assert "group_lag" not in documents[0]

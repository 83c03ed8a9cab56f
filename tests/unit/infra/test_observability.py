"""Alarms, dashboard and capacity: they watch metrics that jobs export, and bound what runs cost."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.unit.infra.test_template import TEMPLATE, properties, run_of
from txntable.admin.lag_listing import WarehouseLags
from txntable.admin.metric_samples import (
    NAMESPACE,
    WAREHOUSE,
    samples_of_findings,
    samples_of_lags,
    samples_of_open,
    samples_of_round,
    samples_of_verification,
)
from txntable.upkeep.coordinator_round import CoordinatorReport
from txntable.verification.damage import Verification

ALARMS = [name for name, one in TEMPLATE["Resources"].items() if one["Type"] == "AWS::CloudWatch::Alarm"]
URL = "s3://bucket/lake/one"


def exported_names() -> set[str]:
    samples = [
        *samples_of_round(CoordinatorReport(1)),
        *samples_of_findings([]),
        *samples_of_lags(WarehouseLags((), (), ())),
        *samples_of_open([]),
        *samples_of_verification(Verification(0, 0, 0, 0, 0, ())),
    ]
    return {one.name for one in samples if not one.labels}


@pytest.mark.parametrize("name", ALARMS)
def test_alarm_watches_a_metric_that_is_exported_of_this_warehouse(name: str) -> None:
    alarm = properties(name)

    assert alarm["Namespace"] == NAMESPACE
    assert alarm["MetricName"] in exported_names()
    assert alarm["Dimensions"] == [{"Name": WAREHOUSE, "Value": URL}]
    assert "AlarmActions" not in alarm


def test_alarms_go_to_the_topic_that_is_named() -> None:
    assert properties(ALARMS[0], topic="arn:aws:sns:eu-west-1:1:pager")["AlarmActions"] == [
        "arn:aws:sns:eu-west-1:1:pager"
    ]


def test_silence_of_coordinator_and_verification_is_an_alarm() -> None:
    missing = {name: properties(name)["TreatMissingData"] for name in ALARMS}

    silence = {name for name, treated in missing.items() if treated == "breaching"}
    assert silence == {"LateWorkAlarm", "VerificationAlarm"}
    assert [name for name, treated in missing.items() if treated == "ignore"] == ["DamageAlarm"]


def test_no_week_without_a_verification_passes_unseen() -> None:
    alarm = properties("VerificationAlarm")
    every = re.fullmatch(r"rate\((\d) days\)", properties("VerificationSchedule")["ScheduleExpression"])

    # CloudWatch looks back for seven days at most, and a run begins and ends at any time of its day.
    seconds = alarm["Period"] * alarm["EvaluationPeriods"]
    assert seconds <= 7 * 86_400
    assert every is not None
    assert (int(every[1]) + 1) * 86_400 <= seconds


def test_dashboard_shows_metrics_that_are_exported() -> None:
    body: dict[str, Any] = json.loads(properties("Dashboard")["DashboardBody"])

    shown = [metric for widget in body["widgets"] for metric in widget["properties"]["metrics"]]
    assert {metric[1] for metric in shown} <= exported_names()
    assert {(metric[0], *metric[2:]) for metric in shown} == {(NAMESPACE, WAREHOUSE, URL)}
    assert {widget["properties"]["region"] for widget in body["widgets"]} == {"eu-west-1"}


@pytest.mark.parametrize("job", ["Coordinator", "Verification"])
def test_job_prints_its_metrics_where_cloudwatch_reads_them(job: str) -> None:
    run = run_of(job)

    arguments = run["JobDriver"]["SparkSubmit"]["EntryPointArguments"]
    logging = run["ConfigurationOverrides"]["MonitoringConfiguration"]["CloudWatchLoggingConfiguration"]
    assert logging["LogStreamNamePrefix"] == job.lower()
    assert arguments[-2:] == ["--metrics", "cloudwatch"]
    assert (logging["LogGroupName"], logging["LogTypes"]) == ("/txntable/lake", {"SPARK_DRIVER": ["STDOUT", "STDERR"]})


def test_application_has_a_bound() -> None:
    assert properties("Application")["MaximumCapacity"] == {"Cpu": "64 vCPU", "Memory": "512 GB", "Disk": "2000 GB"}

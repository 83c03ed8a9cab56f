"""The template: clean, its policies are those of the code, and its schedules start what is packed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from cfnlint import ConfigMixIn
from cfnlint.runner import Runner

from tests.unit.infra.stack import FILE, resolved, template
from txntable.infra.catalog_policy import GlueDatabase, catalog_policy
from txntable.infra.lifecycle import dangers
from txntable.infra.package import ENVIRONMENT_ARCHIVE, PROGRAMS, PROJECT
from txntable.infra.policies import Role, WarehousePlace, Writes, bucket_policy, role_policy

TEMPLATE = template()
KEY = "arn:aws:kms:eu-west-1:1:key/k"
ROLES = ("PipelineJob", "MaintenanceJob", "VerificationJob", "CatalogJob", "Scheduler")
VALUES = {
    **{name: parameter.get("Default") for name, parameter in TEMPLATE["Parameters"].items()},
    "BucketName": "bucket",
    "Prefix": "lake/one",
    "KmsKeyArn": KEY,
    "PipelineConfig": "s3://bucket/artifacts/pipeline.toml",
    "GlueDatabase": "lake",
    "TablePrefix": "wh_",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::AccountId": "1",
    "Application.ApplicationId": "app",
    "AWS::StackName": "lake",
    "JobLogs": "/txntable/lake",
    "JobLogs.Arn": "logs-arn",
    **{f"{name}Role.Arn": f"{name}-role" for name in ROLES},
    **{name: name for name in TEMPLATE["Resources"] if name.endswith(("Bucket", "Policy"))},
}
EVERY = {
    "Coordinator": "rate(15 minutes)",
    "Compaction": "rate(1 hour)",
    "Vacuum": "rate(1 day)",
    "Verification": "rate(6 days)",
    "Pipeline": "rate(10 minutes)",
    "Catalog": "rate(15 minutes)",
}
OWN_ROLES = {job: f"{job}Job-role" for job in ("Pipeline", "Catalog", "Verification")}


def properties(name: str, *, key: bool = False, writes: Writes = Writes.CHECKED, topic: str = "") -> dict[str, Any]:
    """Return a resource as it is deployed."""
    conditions = {
        "HasKey": key,
        "IsChecked": writes is Writes.CHECKED,
        "IsPaused": writes is Writes.NONE,
        "MakesApplication": True,
        "HasGlueDatabase": True,
        "HasAlarmTopic": bool(topic),
    }
    values = {**VALUES, **conditions, "AlarmTopicArn": topic}
    found = resolved(TEMPLATE["Resources"][name]["Properties"], values, TEMPLATE["Mappings"])
    return dict(found)


def run_of(job: str) -> dict[str, Any]:
    """Return what a schedule sends."""
    return dict(json.loads(properties(f"{job}Schedule")["Target"]["Input"]))


def test_template_is_clean() -> None:
    found = list(Runner(ConfigMixIn(["--", str(FILE)])).run())

    assert [str(match) for match in found] == []


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("key", [KEY, None])
def test_policy_of_a_role_is_that_of_the_code(role: Role, key: str | None) -> None:
    found = properties(f"{role.value.capitalize()}Policy", key=key is not None)["PolicyDocument"]

    assert found == role_policy(role, WarehousePlace("bucket", "lake/one", kms_key=key))


@pytest.mark.parametrize("writes", Writes)
def test_policy_of_the_bucket_is_that_of_the_code(writes: Writes) -> None:
    found = properties("BucketPolicy", writes=writes)["PolicyDocument"]

    assert found == bucket_policy(WarehousePlace("bucket", "lake/one"), writes)


@pytest.mark.parametrize(
    ("name", "equals", "negated"),
    [
        ("HasKey", ["KmsKeyArn", ""], True),
        ("IsChecked", ["Writes", Writes.CHECKED.value], False),
        ("IsPaused", ["Writes", Writes.NONE.value], False),
        ("HasPipeline", ["PipelineConfig", ""], True),
        ("MakesApplication", ["ApplicationId", ""], False),
        ("HasGlueDatabase", ["GlueDatabase", ""], True),
    ],
)
def test_condition_is_about_its_parameter(name: str, equals: list[str], negated: bool) -> None:
    condition = {"Fn::Equals": [{"Ref": equals[0]}, equals[1]]}

    assert TEMPLATE["Conditions"][name] == ({"Fn::Not": [condition]} if negated else condition)


def test_writes_are_those_of_the_code() -> None:
    parameter = TEMPLATE["Parameters"]["Writes"]

    assert (parameter["AllowedValues"], parameter["Default"]) == ([each.value for each in Writes], "checked")


@pytest.mark.parametrize(("name", "days"), [("multipart-leftovers", 7), ("old-versions", 14), ("logs", 30)])
def test_lifecycle_rule_is_as_documented(name: str, days: int) -> None:
    kept: dict[str, dict[str, object]] = {
        "multipart-leftovers": {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": days}},
        "old-versions": {
            "NoncurrentVersionExpiration": {"NoncurrentDays": days},
            "ExpiredObjectDeleteMarker": True,
        },
        "logs": {"Prefix": "logs/", "ExpirationInDays": days},
    }
    rules = {rule["Id"]: rule for rule in properties("Bucket")["LifecycleConfiguration"]["Rules"]}

    assert rules.keys() == kept.keys()
    assert rules[name] == {"Id": name, "Status": "Enabled", **kept[name]}


def test_lifecycle_rules_of_the_bucket_endanger_nothing() -> None:
    rules = properties("Bucket")["LifecycleConfiguration"]["Rules"]
    as_the_api_says = [
        {
            "ID": rule["Id"],
            "Status": rule["Status"],
            "Prefix": rule.get("Prefix", ""),
            "Expiration": {"Days": rule["ExpirationInDays"]} if "ExpirationInDays" in rule else {},
            "AbortIncompleteMultipartUpload": rule.get("AbortIncompleteMultipartUpload", {}),
        }
        for rule in rules
    ]

    assert dangers(as_the_api_says, "warehouse") == []


def test_bucket_outlives_the_stack() -> None:
    assert TEMPLATE["Resources"]["Bucket"]["DeletionPolicy"] == "RetainExceptOnCreate"
    assert TEMPLATE["Resources"]["Bucket"]["UpdateReplacePolicy"] == "Retain"


def test_schedules_name_every_packed_program_once() -> None:
    schedules = [name.removesuffix("Schedule") for name in TEMPLATE["Resources"] if name.endswith("Schedule")]
    entry_points = [run_of(job)["JobDriver"]["SparkSubmit"]["EntryPoint"] for job in schedules]

    assert schedules == list(EVERY)
    assert entry_points == [f"s3://bucket/artifacts/{program}" for program in PROGRAMS]


@pytest.mark.parametrize("job", EVERY)
def test_schedule_starts_the_job_once_under_its_own_role(job: str) -> None:
    schedule, run = properties(f"{job}Schedule"), run_of(job)

    submit = run["JobDriver"]["SparkSubmit"]
    assert schedule["ScheduleExpression"] == EVERY[job]
    assert schedule["Target"]["RoleArn"] == "Scheduler-role"
    assert run["ClientToken"] == "<aws.scheduler.execution-id>"
    assert (run["Name"], run["ApplicationId"]) == (job.lower(), "app")
    assert run["ExecutionRoleArn"] == OWN_ROLES.get(job, "MaintenanceJob-role")
    assert submit["EntryPointArguments"][:2] == ["--warehouse", "s3://bucket/lake/one"]
    options = submit["SparkSubmitParameters"].split(" ")
    assert options[::2] == ["--conf"] * (len(options) // 2)
    assert f"spark.archives=s3://bucket/artifacts/{ENVIRONMENT_ARCHIVE}#environment" in options
    assert ("spark.files=s3://bucket/artifacts/pipeline.toml" in options) == (job == "Pipeline")
    assert len(options) == (20 if job == "Pipeline" else 18)


@pytest.mark.parametrize("job", EVERY)
@pytest.mark.parametrize("writes", Writes)
def test_no_job_is_started_while_a_backup_or_a_restore_is_made(job: str, writes: Writes) -> None:
    state = properties(f"{job}Schedule", writes=writes)["State"]

    assert state == ("ENABLED" if writes is Writes.CHECKED else "DISABLED")


def test_jobs_that_need_settings_wait_for_them() -> None:
    conditions = {job: TEMPLATE["Resources"][f"{job}Schedule"].get("Condition") for job in EVERY}

    assert conditions == {**dict.fromkeys(EVERY), "Pipeline": "HasPipeline", "Catalog": "HasGlueDatabase"}


def test_policy_of_the_catalog_is_that_of_the_code_and_its_job_reads_only() -> None:
    found = properties("CatalogPolicy")["PolicyDocument"]

    assert found == catalog_policy(GlueDatabase("lake", "eu-west-1", "1", "wh_"))
    assert properties("CatalogJobRole")["ManagedPolicyArns"] == ["ReaderPolicy", "CatalogPolicy"]
    conditions = {TEMPLATE["Resources"][name].get("Condition") for name in ("CatalogPolicy", "CatalogJobRole")}
    assert conditions == {"HasGlueDatabase"}


def test_scheduler_passes_the_roles_of_its_jobs_and_no_other() -> None:
    passing = properties("SchedulerRole")["Policies"][0]["PolicyDocument"]["Statement"][1]

    assert passing["Resource"] == ["PipelineJob-role", "MaintenanceJob-role", "VerificationJob-role", "CatalogJob-role"]


def test_verification_reads_only_and_writes_logs_alone() -> None:
    role = properties("VerificationJobRole")

    actions = {action for each in role["Policies"][0]["PolicyDocument"]["Statement"] for action in each["Action"]}
    assert role["ManagedPolicyArns"] == ["ReaderPolicy"]
    logs = {"logs:DescribeLogGroups", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"}
    assert actions == {"s3:GetObject", "s3:PutObject", *logs}
    assert role["Policies"] == properties("MaintenanceJobRole")["Policies"]


def test_catalog_job_registers_in_the_database_under_the_prefix() -> None:
    arguments = run_of("Catalog")["JobDriver"]["SparkSubmit"]["EntryPointArguments"]

    assert arguments[2:] == ["--glue", "--database", "lake", "--prefix=wh_"]


@pytest.mark.parametrize("job", EVERY)
def test_program_of_a_job_takes_its_options(job: str) -> None:
    submit = run_of(job)["JobDriver"]["SparkSubmit"]
    program = PROJECT / submit["EntryPoint"].removeprefix("s3://bucket/artifacts/")
    command = [sys.executable, str(program), *submit["EntryPointArguments"], "--help"]

    # An unknown option is found before help is given.
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0

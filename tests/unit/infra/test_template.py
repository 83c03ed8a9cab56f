"""The template: clean, made from the code, and its policies are those of the code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cfnlint import ConfigMixIn
from cfnlint.runner import Runner

from txntable.infra.jobs import JOBS
from txntable.infra.lifecycle import dangers
from txntable.infra.policies import Role, WarehousePlace, Writes, bucket_policy, role_policy
from txntable.infra.template import template, template_text

FILE = Path(__file__).parents[3] / "infra" / "warehouse.yaml"
VALUES = {
    "BucketName": "bucket",
    "Prefix": "lake/one",
    "KmsKeyArn": "arn:aws:kms:eu-west-1:1:key/k",
    "AWS::Partition": "aws",
    "AWS::AccountId": "1",
    "PipelineConfig": "s3://bucket/artifacts/pipeline.toml",
    "Application": "app",
    "PipelineJobRole.Arn": "pipeline-role",
    "MaintenanceJobRole.Arn": "maintenance-role",
}
RESOURCES = template()["Resources"]


def resolved(value: Any, *, has_key: bool = True) -> Any:
    """Give parameters their values, as CloudFormation does."""
    if isinstance(value, list):
        return [resolved(item, has_key=has_key) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"Fn::Sub"}:
        text = value["Fn::Sub"] if isinstance(value["Fn::Sub"], str) else value["Fn::Sub"][0]
        return re.sub(r"\$\{([^}]+)\}", lambda match: VALUES[match[1]], text)
    if set(value) == {"Fn::If"}:
        _, when, otherwise = value["Fn::If"]
        return resolved(when if has_key else otherwise, has_key=has_key)
    return {name: resolved(item, has_key=has_key) for name, item in value.items()}


def test_template_is_clean() -> None:
    found = list(Runner(ConfigMixIn(["--", str(FILE)])).run())

    assert [str(match) for match in found] == []


def test_file_is_what_the_code_makes() -> None:
    assert FILE.read_text() == template_text(), (
        "make it again: python -m txntable.infra.template > infra/warehouse.yaml"
    )


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("key", [VALUES["KmsKeyArn"], None])
def test_policy_of_a_role_is_that_of_the_code(role: Role, key: str | None) -> None:
    document = RESOURCES[f"{role.value.capitalize()}Policy"]["Properties"]["PolicyDocument"]

    assert resolved(document, has_key=key is not None) == role_policy(
        role, WarehousePlace("bucket", "lake/one", kms_key=key)
    )


def test_policy_of_the_bucket_is_that_of_the_code() -> None:
    document = RESOURCES["BucketPolicy"]["Properties"]["PolicyDocument"]
    paused, unpaused = document["Fn::If"][1:]
    checked, unchecked = unpaused["Fn::If"][1:]
    place = WarehousePlace("bucket", "lake/one")

    assert document["Fn::If"][0] == "IsPaused"
    assert unpaused["Fn::If"][0] == "IsChecked"
    for found, writes in ((paused, Writes.NONE), (checked, Writes.CHECKED), (unchecked, Writes.ANY)):
        assert resolved(found) == bucket_policy(place, writes)


def test_lifecycle_rules_of_the_bucket_endanger_nothing() -> None:
    rules = RESOURCES["Bucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
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
    assert RESOURCES["Bucket"]["DeletionPolicy"] == "RetainExceptOnCreate"
    assert RESOURCES["Bucket"]["UpdateReplacePolicy"] == "Retain"


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_schedule_starts_the_job_once_under_its_own_role(job) -> None:
    target = RESOURCES[f"{job.name}Schedule"]["Properties"]["Target"]

    run = json.loads(resolved(target["Input"]))

    assert run["ClientToken"] == "<aws.scheduler.execution-id>"
    assert run["ExecutionRoleArn"] == ("pipeline-role" if job.name == "Pipeline" else "maintenance-role")
    submit = run["JobDriver"]["SparkSubmit"]
    assert submit["EntryPoint"] == f"s3://bucket/artifacts/{job.entry_point}"
    assert submit["EntryPointArguments"][:2] == ["--warehouse", "s3://bucket/lake/one"]
    assert (
        "spark.archives=s3://bucket/artifacts/txntable-environment.tar.gz#environment"
        in submit["SparkSubmitParameters"]
    )


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_program_of_a_job_takes_its_options(job) -> None:
    command = [sys.executable, str(FILE.parents[1] / job.entry_point), "--warehouse", "w", *job.arguments, "--help"]

    # An unknown option is found before help is given.
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0

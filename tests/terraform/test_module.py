"""The Terraform module makes what the CloudFormation template makes: the same permissions, jobs, alarms, bucket."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.terraform.module import MODULE, kinds, resources, without_resources
from tests.unit.infra.test_template import EVERY, KEY, TEMPLATE, properties, run_of
from txntable.infra.catalog_policy import GlueDatabase, catalog_policy
from txntable.infra.policies import Role, WarehousePlace, Writes, bucket_policy, role_policy

TOFU = os.environ.get("TOFU") or shutil.which("tofu") or shutil.which("terraform")
ALARMS = {
    "late": "LateWorkAlarm",
    "unreadable": "UnreadableAlarm",
    "damage": "DamageAlarm",
    "verification": "VerificationAlarm",
    "job-failure": "JobFailureAlarm",
    "open-transaction": "OpenTransactionAlarm",
    "publication": "PublicationAlarm",
    "group-lag": "GroupLagAlarm",
}
IN_CLOUDFORMATION = {
    "alarm_description": "AlarmDescription",
    "namespace": "Namespace",
    "metric_name": "MetricName",
    "statistic": "Statistic",
    "period": "Period",
    "evaluation_periods": "EvaluationPeriods",
    "comparison_operator": "ComparisonOperator",
    "treat_missing_data": "TreatMissingData",
}
PEOPLE = ("Reader", "Consumer", "Producer", "Admin")
ROLES = (*PEOPLE, "PipelineJob", "MaintenanceJob", "VerificationJob", "CatalogJob", "Scheduler")
JOBS = {
    "coordinator": "Coordinator",
    "compaction": "Compaction",
    "vacuum": "Vacuum",
    "verification": "Verification",
    "pipeline": "Pipeline",
    "catalog": "Catalog",
}
GLUE = GlueDatabase("lake", "eu-west-1", "1", "wh_")


needs_the_program = pytest.mark.skipif(
    TOFU is None, reason="neither tofu nor terraform is on the PATH, and TOFU names none"
)


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the program itself."""
    return subprocess.run([str(TOFU), *words], cwd=folder, capture_output=True, text=True, check=False)


def applied(folder: Path, **variables: str) -> dict[str, Any]:
    """Return what the module decides, by the program itself: a module without resources needs no provider."""
    without_resources(folder, ("documents", "inputs", "alarms"), variables)
    for words in (["init"], ["apply", "-auto-approve"]):
        done = run([*words, "-input=false", "-no-color"], folder)
        assert done.returncode == 0, done.stderr
    return {name: one["value"] for name, one in json.loads(run(["output", "-json"], folder).stdout).items()}


def submitted(job: dict[str, Any]) -> dict[str, Any]:
    """Return a run whose settings of Spark are in one order."""
    submit = job["JobDriver"]["SparkSubmit"]
    submit["SparkSubmitParameters"] = sorted(submit["SparkSubmitParameters"].split())
    return job


def policy_of(role: dict[str, Any], inner: str = "policy") -> Any:
    """Return a policy document that stands as text."""
    return json.loads(role[inner])


@needs_the_program
def test_module_is_formatted_as_the_program_formats_it() -> None:
    done = run(["fmt", "-check", "-diff", "-recursive"], MODULE)

    assert (done.returncode, done.stdout) == (0, "")


@needs_the_program
def test_the_program_evaluates_the_documents_to_what_the_code_says(tmp_path: Path) -> None:
    found = applied(tmp_path, kms_key_arn=KEY, writes="none")

    place = WarehousePlace("bucket", "lake/one", kms_key=KEY)
    documents = {role.value: role_policy(role, place) for role in Role}
    documents["bucket"] = bucket_policy(place, Writes.NONE)
    documents["catalog"] = catalog_policy(GLUE)
    assert {name: json.loads(text) for name, text in found["documents"].items()} == documents
    assert {name: submitted(json.loads(text)) for name, text in found["inputs"].items()} == {
        job: submitted(run_of(JOBS[job])) for job in JOBS
    }
    assert found["alarms"].keys() == ALARMS.keys() - {"group-lag"}


@needs_the_program
@pytest.mark.parametrize(
    "wrong",
    [
        {"writes": "some"},
        {"prefix": "logs/lake"},
        {"prefix": "a*"},
        {"bucket_name": "B"},
        {"pipeline_config": "s3://b/x"},
        {"glue_database": "a*"},
        {"table_prefix": "a*"},
    ],
)
def test_the_program_refuses_what_cloudformation_refuses(tmp_path: Path, wrong: dict[str, str]) -> None:
    with pytest.raises(AssertionError, match="Invalid value for variable"):
        applied(tmp_path, **wrong)


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("key", [KEY, None])
def test_policy_of_a_role_is_that_of_the_code(role: Role, key: str | None) -> None:
    policy = resources("aws_iam_policy", kms_key_arn=key or "")[f'role["{role.value}"]']

    assert policy_of(policy) == role_policy(role, WarehousePlace("bucket", "lake/one", kms_key=key))


def test_policy_of_the_catalog_is_that_of_the_code() -> None:
    assert policy_of(resources("aws_iam_policy")['role["catalog"]']) == catalog_policy(GLUE)


@pytest.mark.parametrize("writes", Writes)
def test_policy_of_the_bucket_is_that_of_the_code(writes: Writes) -> None:
    policy = resources("aws_s3_bucket_policy", writes=writes.value)["warehouse"]

    assert policy_of(policy) == bucket_policy(WarehousePlace("bucket", "lake/one"), writes)


@pytest.mark.parametrize("role", ROLES)
def test_role_is_assumed_by_whom_the_template_says(role: str) -> None:
    job = role.removesuffix("Job").lower()
    address = {"Scheduler": "scheduler", job.title() + "Job": f'job["{job}"]'}.get(role, f'people["{job}"]')
    trusted = resources("aws_iam_role")[address]

    assert policy_of(trusted, "assume_role_policy") == properties(f"{role}Role")["AssumeRolePolicyDocument"]


def test_roles_have_the_policies_of_the_template() -> None:
    attached = set(resources("aws_iam_role_policy_attachment"))
    expected = set()
    for name, resource in TEMPLATE["Resources"].items():
        for policy in resource["Properties"].get("ManagedPolicyArns", ()):
            role, of = name.removesuffix("Role"), policy["Ref"].removesuffix("Policy").lower()
            job = role.removesuffix("Job").lower()
            expected.add(f'job["{job}-{of}"]' if role.endswith("Job") else f'people["{job}"]')

    assert attached == expected


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ('job["pipeline"]', "PipelineJobRole"),
        ('job["maintenance"]', "MaintenanceJobRole"),
        ('job["verification"]', "VerificationJobRole"),
        ('job["catalog"]', "CatalogJobRole"),
        ("scheduler", "SchedulerRole"),
    ],
)
def test_what_a_role_of_a_job_may_do_beside_the_warehouse_is_in_the_template(address: str, name: str) -> None:
    # CloudFormation's ARN of a log group ends with its streams.
    logs = "arn:aws:logs:eu-west-1:1:log-group:/txntable/lake:*"
    ((own,),) = [properties(name)["Policies"]]
    found = resources("aws_iam_role_policy")[address]

    assert found["name"] == own["PolicyName"]
    assert policy_of(found) == json.loads(json.dumps(own["PolicyDocument"]).replace("logs-arn", logs))


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("writes", Writes)
def test_schedule_starts_what_that_of_the_template_starts(job: str, writes: Writes) -> None:
    expected = properties(f"{JOBS[job]}Schedule", writes=writes)
    found = resources("aws_scheduler_schedule", writes=writes.value)[f'job["{job}"]']

    target = found["target"]
    assert submitted(json.loads(target["input"])) == submitted(run_of(JOBS[job]))
    assert '"<aws.scheduler.execution-id>"' in target["input"]
    assert found["description"] == expected["Description"]
    assert (found["schedule_expression"], found["state"]) == (EVERY[JOBS[job]], expected["State"])
    assert found["flexible_time_window"] == {"mode": expected["FlexibleTimeWindow"]["Mode"]}
    assert (target["arn"], target["role_arn"]) == (expected["Target"]["Arn"], expected["Target"]["RoleArn"])
    assert target["retry_policy"] == {
        "maximum_retry_attempts": expected["Target"]["RetryPolicy"]["MaximumRetryAttempts"],
        "maximum_event_age_in_seconds": expected["Target"]["RetryPolicy"]["MaximumEventAgeInSeconds"],
    }


@pytest.mark.parametrize("topic", ["", "arn:aws:sns:eu-west-1:1:pager"])
def test_alarms_are_those_of_the_template(topic: str) -> None:
    found = resources("aws_cloudwatch_metric_alarm", group_lag=5, alarm_topic_arn=topic)

    assert found.keys() == {f'warehouse["{name}"]' for name in ALARMS}
    for name, resource in ALARMS.items():
        alarm, expected = found[f'warehouse["{name}"]'], properties(resource, topic=topic)
        assert {there: alarm[here] for here, there in IN_CLOUDFORMATION.items()} == {
            there: expected[there] for there in IN_CLOUDFORMATION.values()
        }
        threshold = 5 if name == "group-lag" else expected["Threshold"]
        assert (alarm["threshold"], alarm["alarm_actions"]) == (threshold, expected.get("AlarmActions", []))
        assert alarm["dimensions"] == {each["Name"]: each["Value"] for each in expected["Dimensions"]}


def test_template_has_no_alarm_that_the_module_has_not() -> None:
    alarms = {name for name, one in TEMPLATE["Resources"].items() if one["Type"] == "AWS::CloudWatch::Alarm"}

    assert alarms == set(ALARMS.values())


def test_dashboard_is_that_of_the_template() -> None:
    found, expected = resources("aws_cloudwatch_dashboard")["warehouse"], properties("Dashboard")

    assert found["dashboard_name"] == expected["DashboardName"]
    assert json.loads(found["dashboard_body"]) == json.loads(expected["DashboardBody"])


def test_application_is_bounded_and_stops_as_that_of_the_template() -> None:
    found, expected = resources("aws_emrserverless_application")["jobs[0]"], properties("Application")

    bound = {name.lower(): value for name, value in expected["MaximumCapacity"].items()}
    assert (found["type"].upper(), found["release_label"]) == (expected["Type"], expected["ReleaseLabel"])
    assert found["maximum_capacity"] == bound
    assert found["auto_start_configuration"] == {"enabled": True}
    idle = expected["AutoStopConfiguration"]["IdleTimeoutMinutes"]
    assert found["auto_stop_configuration"] == {"enabled": True, "idle_timeout_minutes": idle}


def test_logs_are_kept_as_long_as_in_the_template() -> None:
    found, expected = resources("aws_cloudwatch_log_group")["jobs"], properties("JobLogs")

    assert (found["name"], found["retention_in_days"]) == (expected["LogGroupName"], expected["RetentionInDays"])


def test_what_is_not_asked_for_is_not_made() -> None:
    less = kinds(application_id="mine", pipeline_config="", glue_database="")

    assert "aws_emrserverless_application" not in less
    assert (less["aws_scheduler_schedule"], less["aws_cloudwatch_metric_alarm"]) == (4, 7)
    assert (less["aws_iam_policy"], less["aws_iam_role"]) == (5, 8)


@pytest.mark.parametrize("key", [KEY, ""])
def test_bucket_is_private_versioned_and_encrypted(key: str) -> None:
    public = resources("aws_s3_bucket_public_access_block")["warehouse"]
    encryption = resources("aws_s3_bucket_server_side_encryption_configuration", kms_key_arn=key)["warehouse"]["rule"]
    owner = resources("aws_s3_bucket_ownership_controls")["warehouse"]["rule"]

    blocks = ("block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets")
    assert [public[each] for each in blocks] == [True] * 4
    default = encryption["apply_server_side_encryption_by_default"]
    assert default["sse_algorithm"] == ("aws:kms" if key else "AES256")
    assert (default.get("kms_master_key_id"), encryption["bucket_key_enabled"]) == (key or None, bool(key))
    assert owner == {"object_ownership": "BucketOwnerEnforced"}
    assert resources("aws_s3_bucket_versioning")["warehouse"]["versioning_configuration"] == {"status": "Enabled"}


def test_lifecycle_rules_are_those_of_the_template() -> None:
    expected = {rule["Id"]: rule for rule in properties("Bucket")["LifecycleConfiguration"]["Rules"]}
    # The parser has ids of its own in their place, so the names of the rules are read from the text.
    names = re.findall(r'^    id     = "([a-z-]+)"$', (MODULE / "main.tf").read_text(), re.MULTILINE)
    rules = resources("aws_s3_bucket_lifecycle_configuration")["warehouse"]["rule"]
    found = dict(zip(names, rules, strict=True))

    leftovers, old, logs = (expected[name] for name in ("multipart-leftovers", "old-versions", "logs"))
    assert names == list(expected)
    assert {rule["status"] for rule in found.values()} == {"Enabled"}
    filters = {name: rule["filter"] for name, rule in found.items() if rule["filter"]}
    assert filters == {"logs": {"prefix": logs["Prefix"]}}
    assert found["logs"]["expiration"] == {"days": logs["ExpirationInDays"]}
    assert found["old-versions"]["expiration"] == {"expired_object_delete_marker": old["ExpiredObjectDeleteMarker"]}
    days = old["NoncurrentVersionExpiration"]["NoncurrentDays"]
    assert found["old-versions"]["noncurrent_version_expiration"] == {"noncurrent_days": days}
    days = leftovers["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"]
    assert found["multipart-leftovers"]["abort_incomplete_multipart_upload"] == {"days_after_initiation": days}

"""The CloudFormation template of a warehouse, made from the policies; ``warehouse.yaml`` beside it is what this writes.

    python -m txntable.infra.template > infra/warehouse.yaml

Pure, but for its main function.  Owns which resources a deployment has.  Must not know how it is deployed.

Invariants: the policies are those of :mod:`txntable.infra.policies`, with parameters in place of names; the bucket
outlives the stack; the bucket has one warehouse, below a prefix, so that what the jobs are made of can lie beside it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import yaml

from txntable.infra.jobs import JOBS, Job, submit_parameters
from txntable.infra.policies import Document, Role, WarehousePlace, Writes, bucket_policy, role_policy

PLACE = WarehousePlace("${BucketName}", "${Prefix}", "${AWS::Partition}", "${KmsKeyArn}")
APPLICATION_ID = {
    "Fn::If": ["MakesApplication", {"Fn::GetAtt": ["Application", "ApplicationId"]}, {"Ref": "ApplicationId"}]
}
LEFTOVER_DAYS = 7
LOG_DAYS = 30

_ROLE_NAMES = {
    Role.READER: "Reader",
    Role.CONSUMER: "Consumer",
    Role.PRODUCER: "Producer",
    Role.MAINTENANCE: "Maintenance",
    Role.ADMIN: "Admin",
}


def template() -> Document:
    """Return the template."""
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "A txntable warehouse: bucket, roles, an EMR Serverless application and the runs of its jobs.",
        "Parameters": _parameters(),
        "Conditions": {
            "HasKey": {"Fn::Not": [{"Fn::Equals": [{"Ref": "KmsKeyArn"}, ""]}]},
            "IsChecked": {"Fn::Equals": [{"Ref": "Writes"}, Writes.CHECKED.value]},
            "IsPaused": {"Fn::Equals": [{"Ref": "Writes"}, Writes.NONE.value]},
            "HasPipeline": {"Fn::Not": [{"Fn::Equals": [{"Ref": "PipelineConfig"}, ""]}]},
            "MakesApplication": {"Fn::Equals": [{"Ref": "ApplicationId"}, ""]},
        },
        "Resources": {
            "Bucket": _bucket(),
            "BucketPolicy": _bucket_policy(),
            **{f"{name}Policy": _managed_policy(role) for role, name in _ROLE_NAMES.items()},
            **{f"{name}Role": _people_role(name) for role, name in _ROLE_NAMES.items() if role is not Role.MAINTENANCE},
            "PipelineJobRole": _job_role("Consumer", "Producer"),
            "MaintenanceJobRole": _job_role("Maintenance"),
            "Application": _application(),
            "SchedulerRole": _scheduler_role(),
            **{f"{job.name}Schedule": _schedule(job) for job in JOBS},
        },
        "Outputs": {
            "Warehouse": {"Value": _sub("s3://${BucketName}/${Prefix}")},
            "ApplicationId": {"Value": APPLICATION_ID},
            **{
                f"{name}RoleArn": {"Value": {"Fn::GetAtt": [f"{name}Role", "Arn"]}}
                for name in ("Reader", "Consumer", "Producer", "Admin", "PipelineJob", "MaintenanceJob")
            },
        },
    }


def _parameters() -> Document:
    return {
        "BucketName": {"Type": "String", "AllowedPattern": "[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"},
        "Prefix": {
            "Type": "String",
            "Default": "warehouse",
            # Not in a folder of which the stack itself expires or replaces objects.
            "AllowedPattern": "(?!(logs|artifacts)(/|$))[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*",
            "Description": "Where in the bucket the warehouse is; artifacts/ and logs/ lie beside it.",
        },
        "KmsKeyArn": _parameter(
            "ARN of the key that encrypts the bucket, its policy letting IAM decide; empty: S3's keys.", ""
        ),
        "Writes": {
            "Type": "String",
            "AllowedValues": [each.value for each in Writes],
            "Default": Writes.CHECKED.value,
            "Description": "none: nobody writes, for a backup; any: log entries can be copied, for a restore.",
        },
        "VersionDays": {
            "Type": "Number",
            "Default": 14,
            "MinValue": 1,
            "Description": "For how many days a deleted or replaced object can be brought back.",
        },
        "ApplicationId": _parameter(
            "An EMR Serverless application for Spark that runs the jobs; empty: one is made.", ""
        ),
        "ReleaseLabel": _parameter("Of EMR Serverless.", "emr-spark-8.2.0"),
        "PipelineConfig": {
            **_parameter("s3:// URL of the pipeline's TOML; empty: no pipeline is scheduled.", ""),
            # The job looks for a file of that name, and its role reads no other folder.
            "AllowedPattern": r"|s3://[a-z0-9.-]+/artifacts/(.+/)?pipeline\.toml",
        },
        **{f"{job.name}Every": _parameter("A schedule expression.", job.every) for job in JOBS},
    }


def _parameter(description: str, default: str) -> Document:
    return {"Type": "String", "Default": default, "Description": description}


def _bucket() -> Document:
    by_key = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": {"Ref": "KmsKeyArn"}}
    encryption = {
        "ServerSideEncryptionByDefault": {"Fn::If": ["HasKey", by_key, {"SSEAlgorithm": "AES256"}]},
        "BucketKeyEnabled": {"Fn::If": ["HasKey", True, False]},
    }
    blocked = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    return {
        "Type": "AWS::S3::Bucket",
        # Kept when the stack goes; but a creation that failed must leave nothing in the way of the next.
        "DeletionPolicy": "RetainExceptOnCreate",
        "UpdateReplacePolicy": "Retain",
        "Properties": {
            "BucketName": {"Ref": "BucketName"},
            "BucketEncryption": {"ServerSideEncryptionConfiguration": [encryption]},
            "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
            "PublicAccessBlockConfiguration": dict.fromkeys(blocked, True),
            "VersioningConfiguration": {"Status": "Enabled"},
            "LifecycleConfiguration": {"Rules": _lifecycle_rules()},
        },
    }


def _lifecycle_rules() -> list[Document]:
    """Return the rules; none of them touches what is current in the warehouse."""
    return [
        {
            "Id": "multipart-leftovers",
            "Status": "Enabled",
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": LEFTOVER_DAYS},
        },
        {
            "Id": "old-versions",
            "Status": "Enabled",
            "NoncurrentVersionExpiration": {"NoncurrentDays": {"Ref": "VersionDays"}},
            "ExpiredObjectDeleteMarker": True,
        },
        {"Id": "logs", "Status": "Enabled", "Prefix": "logs/", "ExpirationInDays": LOG_DAYS},
    ]


def _bucket_policy() -> Document:
    documents = {writes: _with_parameters(bucket_policy(PLACE, writes)) for writes in Writes}
    unpaused = {"Fn::If": ["IsChecked", documents[Writes.CHECKED], documents[Writes.ANY]]}
    document = {"Fn::If": ["IsPaused", documents[Writes.NONE], unpaused]}
    return {
        "Type": "AWS::S3::BucketPolicy",
        "Properties": {"Bucket": {"Ref": "Bucket"}, "PolicyDocument": document},
    }


def _managed_policy(role: Role) -> Document:
    with_key, without = (_with_parameters(role_policy(role, place)) for place in (PLACE, replace(PLACE, kms_key=None)))
    return {
        "Type": "AWS::IAM::ManagedPolicy",
        "Properties": {
            "Description": f"{role.value} of a txntable warehouse",
            "PolicyDocument": {"Fn::If": ["HasKey", with_key, without]},
        },
    }


def _people_role(name: str) -> Document:
    """Return a role that whoever in the account is allowed to may assume."""
    return _role({"AWS": _sub("arn:${AWS::Partition}:iam::${AWS::AccountId}:root")}, [name], [])


def _job_role(*names: str) -> Document:
    """Return a role that the jobs run under: its warehouse policies, what they are made of, and their logs."""
    bucket = "arn:${AWS::Partition}:s3:::${BucketName}"
    beside = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": [_sub(f"{bucket}/artifacts/*")]},
            {"Effect": "Allow", "Action": ["s3:PutObject"], "Resource": [_sub(f"{bucket}/logs/*")]},
        ],
    }
    return _role({"Service": "emr-serverless.amazonaws.com"}, names, [("artifacts-and-logs", beside)])


def _scheduler_role() -> Document:
    jobs = [{"Fn::GetAtt": [name, "Arn"]} for name in ("PipelineJobRole", "MaintenanceJobRole")]
    arn = "arn:${AWS::Partition}:emr-serverless:${AWS::Region}:${AWS::AccountId}:/applications/${Id}"
    application: Document = {"Fn::Sub": [arn, {"Id": APPLICATION_ID}]}
    start = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": ["emr-serverless:StartJobRun"], "Resource": [application]},
            {
                "Effect": "Allow",
                "Action": ["iam:PassRole"],
                "Resource": jobs,
                "Condition": {"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}},
            },
        ],
    }
    return _role({"Service": "scheduler.amazonaws.com"}, [], [("start-jobs", start)])


def _role(principal: Document, policies: Any, inline: list[tuple[str, Document]]) -> Document:
    statement = {"Effect": "Allow", "Principal": principal, "Action": ["sts:AssumeRole"]}
    if "Service" in principal:
        # Nobody else's job or schedule may borrow the role.
        statement["Condition"] = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    properties: Document = {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [statement]}}
    if policies:
        properties["ManagedPolicyArns"] = [{"Ref": f"{name}Policy"} for name in policies]
    if inline:
        properties["Policies"] = [{"PolicyName": name, "PolicyDocument": document} for name, document in inline]
    return {"Type": "AWS::IAM::Role", "Properties": properties}


def _application() -> Document:
    return {
        "Type": "AWS::EMRServerless::Application",
        "Condition": "MakesApplication",
        "Properties": {
            "Type": "SPARK",
            "ReleaseLabel": {"Ref": "ReleaseLabel"},
            "AutoStartConfiguration": {"Enabled": True},
            "AutoStopConfiguration": {"Enabled": True, "IdleTimeoutMinutes": 15},
        },
    }


def _schedule(job: Job) -> Document:
    run = {
        # The same for every attempt at one run: a retry of the scheduler starts nothing twice.
        "ClientToken": "<aws.scheduler.execution-id>",
        "Name": job.name.lower(),
        "ApplicationId": "${Application}",
        "ExecutionRoleArn": f"${{{job.role}.Arn}}",
        "JobDriver": {
            "SparkSubmit": {
                "EntryPoint": f"s3://${{BucketName}}/artifacts/{job.entry_point}",
                "EntryPointArguments": ["--warehouse", "s3://${BucketName}/${Prefix}", *job.arguments],
                "SparkSubmitParameters": submit_parameters("s3://${BucketName}/artifacts", job),
            }
        },
        "ConfigurationOverrides": {
            "MonitoringConfiguration": {"S3MonitoringConfiguration": {"LogUri": "s3://${BucketName}/logs/"}}
        },
        "ExecutionTimeoutMinutes": job.timeout_minutes,
    }
    schedule: Document = {
        "Type": "AWS::Scheduler::Schedule",
        "Properties": {
            "Description": job.description,
            "ScheduleExpression": {"Ref": f"{job.name}Every"},
            "FlexibleTimeWindow": {"Mode": "OFF"},
            # No job may come between the parts of a backup or a restore.
            "State": {"Fn::If": ["IsChecked", "ENABLED", "DISABLED"]},
            "Target": {
                "Arn": _sub("arn:${AWS::Partition}:scheduler:::aws-sdk:emrserverless:startJobRun"),
                "RoleArn": {"Fn::GetAtt": ["SchedulerRole", "Arn"]},
                "Input": {"Fn::Sub": [json.dumps(run), {"Application": APPLICATION_ID}]},
                "RetryPolicy": {"MaximumRetryAttempts": 3, "MaximumEventAgeInSeconds": 3600},
            },
        },
    }
    if job.condition is not None:
        schedule["Condition"] = job.condition
    return schedule


def _sub(text: str) -> Document:
    return {"Fn::Sub": text}


def _with_parameters(value: Any) -> Any:
    """Return a document with every text that names a parameter made into CloudFormation's substitution."""
    if isinstance(value, dict):
        return {name: _with_parameters(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_parameters(each) for each in value]
    return _sub(value) if isinstance(value, str) and "${" in value else value


def template_text() -> str:
    """Return the template as YAML."""
    head = (
        "# Made by `python -m txntable.infra.template` from infra/policies.py and infra/jobs.py;\n"
        "# a test holds it against them.\n"
    )
    # Through JSON: parts that are used twice would be written as references.
    text: str = yaml.safe_dump(json.loads(json.dumps(template())), sort_keys=False, width=120)
    return head + text


def main() -> None:
    """Write the template to the standard output."""
    sys.stdout.write(template_text())


if __name__ == "__main__":
    main()

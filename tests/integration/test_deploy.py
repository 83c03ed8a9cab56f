"""The stack deployed to moto, and looked at through the APIs of S3 and IAM.

moto takes only the name, encryption and tags of a bucket from a template, and none of: the policy of a bucket,
an application of EMR Serverless, schedules.  It attaches no policy to a role. What the bucket
lacks then is what the deployment must report.  ``AWS::NoValue`` in a list is a null to moto: a fixture takes it out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import boto3  # noqa: TID251  looks at what was deployed past every client of ours
import pytest
from moto.backends import get_backend
from moto.cloudformation import parsing

from tests.unit.infra.stack import template
from txntable.infra.deploy import main
from txntable.infra.policies import Role, Writes, bucket_policy, place_of, role_policy
from txntable.testing.moto_server import LockedMotoServer

# Of these it says so, and goes on.
pytestmark = [pytest.mark.s3, pytest.mark.filterwarnings("ignore:Tried to parse")]

# moto makes no application from a template: it is told of one.
DEPLOY = ["--stack", "lake", "--bucket", "my-lake", "--parameter", "ApplicationId=00f1"]
# moto knows each of them by a type of its own.
_SERVICES: Any = ("cloudformation", "iam", "emrserverless", "logs", "scheduler", "cloudwatch")
PLACE = place_of("s3://my-lake/warehouse")


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    given = parsing.clean_json

    def without_null(part: object, resources: parsing.ResourceMap) -> object:
        found = given(part, resources)
        return [each for each in found if each is not None] if isinstance(found, list) else found

    monkeypatch.setattr(parsing, "clean_json", without_null)
    with LockedMotoServer("other") as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        session = boto3.Session()
        yield session
        _tidy(session)


def _tidy(session: boto3.Session) -> None:
    """Leave nothing to who comes next in this process: with another server at work, the last one resets nothing."""
    for service in _SERVICES:
        for _, _, backend in get_backend(service).iter_backends():
            backend.reset()
    for bucket in session.client("s3").list_buckets()["Buckets"]:
        if bucket["Name"] == "my-lake":
            session.client("s3").delete_bucket(Bucket="my-lake")


def test_dry_run_shows_every_resource_and_leaves_nothing_behind(session: boto3.Session, capsys) -> None:
    code = main(DEPLOY)

    shown = capsys.readouterr().out
    assert code == 0
    for name, resource in template()["Resources"].items():
        assert f"change: Add {resource['Type']} {name}\n" in shown
    assert "nothing was changed" in shown
    assert "my-lake" not in [bucket["Name"] for bucket in session.client("s3").list_buckets()["Buckets"]]
    assert session.client("iam").list_roles()["Roles"] == []
    assert session.client("cloudformation").describe_stacks()["Stacks"] == []


def test_deployed_stack_has_its_roles_and_says_what_the_bucket_lacks(session: boto3.Session, capsys) -> None:
    code = main([*DEPLOY, "--execute"])

    shown = capsys.readouterr().out
    iam = session.client("iam")
    documents = [document_of(iam, policy["Arn"]) for policy in iam.list_policies(Scope="Local")["Policies"]]
    assert all(role_policy(role, PLACE) in documents for role in Role)
    trusted = [role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"] for role in iam.list_roles()["Roles"]]
    assert trusted.count({"Service": "emr-serverless.amazonaws.com"}) == 3
    assert session.client("s3").get_bucket_encryption(Bucket="my-lake")
    assert code == 1
    for lack in ("public access", "brought back", "parts of uploads", "DenyWithoutTls", "DenyReplacingLogEntries"):
        assert lack in shown


def document_of(iam, arn: str) -> object:
    version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    return iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]


def protect(s3, rules: Sequence[Mapping[str, object]]) -> None:
    """Do by hand what moto leaves out."""
    blocked = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    s3.put_public_access_block(Bucket="my-lake", PublicAccessBlockConfiguration=dict.fromkeys(blocked, True))
    s3.put_bucket_versioning(Bucket="my-lake", VersioningConfiguration={"Status": "Enabled"})
    s3.put_bucket_policy(Bucket="my-lake", Policy=json.dumps(bucket_policy(PLACE)))
    s3.put_bucket_lifecycle_configuration(Bucket="my-lake", LifecycleConfiguration={"Rules": rules})


LEFTOVERS = {
    "ID": "multipart-leftovers",
    "Status": "Enabled",
    "Filter": {"Prefix": ""},
    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
}


def test_second_deployment_changes_nothing_and_finds_everything_in_place(session: boto3.Session, capsys) -> None:
    main([*DEPLOY, "--execute"])
    protect(session.client("s3"), [LEFTOVERS])
    capsys.readouterr()

    code = main([*DEPLOY, "--execute"])

    assert "missing" not in capsys.readouterr().out
    assert code == 0


def test_dry_run_finds_a_lifecycle_rule_that_would_destroy_the_warehouse(session: boto3.Session, capsys) -> None:
    main([*DEPLOY, "--execute"])
    tidy = {"ID": "tidy", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 30}}
    protect(session.client("s3"), [LEFTOVERS, tidy])
    capsys.readouterr()

    code = main(DEPLOY)

    assert "danger: rule 'tidy' deletes objects by age" in capsys.readouterr().out
    assert code == 1


@pytest.mark.parametrize("writes", [Writes.ANY, Writes.NONE])
def test_deployment_for_a_backup_or_a_restore_wants_another_policy(session: boto3.Session, capsys, writes) -> None:
    other = [*DEPLOY, "--parameter", f"Writes={writes.value}", "--execute"]
    main(other)
    protect(session.client("s3"), [LEFTOVERS])
    policy = bucket_policy(PLACE, writes)
    # As S3 gives it back.
    policy["Statement"][0]["Principal"] = {"AWS": "*"}
    policy["Statement"][0]["Action"] = "s3:*"
    session.client("s3").put_bucket_policy(Bucket="my-lake", Policy=json.dumps(policy))
    capsys.readouterr()

    assert main(other) == 0


def test_wrong_place_is_refused_before_anything_is_changed(session: boto3.Session, capsys) -> None:
    assert main([*DEPLOY, "--prefix", "w*"]) == 2
    assert "url=s3://my-lake/w*" in capsys.readouterr().err


def test_warehouse_that_was_deployed_does_not_move(session: boto3.Session, capsys) -> None:
    main([*DEPLOY, "--execute"])

    assert main([*DEPLOY, "--prefix", "elsewhere"]) == 2
    assert "does not move" in capsys.readouterr().err


@pytest.mark.parametrize("bucket", ["My_Lake", "s3://my-lake", "my-lake/warehouse", ""])
def test_what_is_no_name_of_a_bucket_is_refused_before_anything_is_asked(
    capsys: pytest.CaptureFixture[str], bucket: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--stack", "lake", "--bucket", bucket])

    assert "--bucket: give its bare name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({}, "You must specify a region; set AWS_REGION, or name a profile"),
        ({"AWS_REGION": "us-east-1"}, "Unable to locate credentials; give boto3 some"),
        (
            {
                **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "k"),
                "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            },
            "; check the network, the region's name and what proxies are set",
        ),
    ],
    ids=["no region", "no credentials", "no endpoint"],
)
def test_what_keeps_the_first_request_from_being_made_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variables: Mapping[str, str], told: str
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)

    assert main(DEPLOY) == 1

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert told in line

"""What a deployment asks of CloudFormation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, WaiterError  # noqa: TID251

from txntable.infra.deploy import Deployment, _change_set, _unmoved
from txntable.infra.policies import Writes, place_of

PLACE = place_of("s3://my-lake/warehouse")


def test_later_deployment_keeps_the_parameters_that_it_does_not_name_but_ends_a_pause() -> None:
    deployment = Deployment("lake", PLACE, {"VersionDays": "3"})

    asked = deployment.all_parameters({"CompactionEvery": "rate(2 hours)", "VersionDays": "14", "Writes": "none"})

    assert {each["ParameterKey"]: each["ParameterValue"] for each in asked} == {
        "BucketName": "my-lake",
        "Prefix": "warehouse",
        "CompactionEvery": "rate(2 hours)",
        "VersionDays": "3",
    }
    assert deployment.writes is Writes.CHECKED


def test_pause_is_asked_for_by_its_parameter() -> None:
    deployment = Deployment("lake", PLACE, {"Writes": "none"})

    assert {"ParameterKey": "Writes", "ParameterValue": "none"} in deployment.all_parameters({})
    assert deployment.writes is Writes.NONE


@pytest.mark.parametrize(
    ("before", "bucket", "prefix", "expected"),
    [
        ({}, "my-lake", None, "warehouse"),
        ({}, "my-lake", "lake/one", "lake/one"),
        ({"BucketName": "my-lake", "Prefix": "lake/one"}, "my-lake", None, "lake/one"),
        ({"BucketName": "my-lake", "Prefix": "lake/one"}, "my-lake", "lake/one", "lake/one"),
    ],
)
def test_warehouse_of_a_stack_stays_where_it_is(before, bucket, prefix, expected) -> None:
    assert _unmoved(before, bucket, prefix) == expected


@pytest.mark.parametrize(("bucket", "prefix"), [("other", None), ("my-lake", "warehouse"), ("other", "lake/one")])
def test_deployment_that_would_move_the_warehouse_is_refused(bucket, prefix) -> None:
    with pytest.raises(ValueError, match="does not move"):
        _unmoved({"BucketName": "my-lake", "Prefix": "lake/one"}, bucket, prefix)


class FailingCloudFormation:
    """Makes no change set, or fails while it executes one; remembers what it was asked."""

    def __init__(self, fails_at: str, status: str | None = None) -> None:
        self.fails_at, self.status = fails_at, status
        self.asked: list[str] = []

    def describe_stacks(self, **_: Any) -> dict[str, Any]:
        if self.status is None:
            raise ClientError({"Error": {"Code": "ValidationError", "Message": "it does not exist"}}, "DescribeStacks")
        return {"Stacks": [{"StackStatus": self.status}]}

    def create_change_set(self, **_: Any) -> None:
        self.status = self.status or "REVIEW_IN_PROGRESS"

    def get_waiter(self, name: str) -> Any:
        if name.startswith(self.fails_at):
            error = WaiterError(name, "it failed", {})
            return SimpleNamespace(wait=lambda **_: (_ for _ in ()).throw(error))
        return SimpleNamespace(wait=lambda **_: None)

    def describe_change_set(self, **_: Any) -> dict[str, Any]:
        change = {"Action": "Add", "ResourceType": "AWS::S3::Bucket", "LogicalResourceId": "Bucket"}
        return {"StatusReason": "no capability", "Changes": [{"ResourceChange": change}]}

    def describe_stack_events(self, **_: Any) -> dict[str, Any]:
        failed = {"ResourceStatus": "CREATE_FAILED", "LogicalResourceId": "Bucket", "ResourceStatusReason": "taken"}
        return {"StackEvents": [{"ResourceStatus": "ROLLBACK_COMPLETE"}, failed]}

    def __getattr__(self, name: str) -> Any:
        return lambda **_: self.asked.append(name)


def proposed(cloudformation: FailingCloudFormation) -> None:
    with _change_set(cloudformation, Deployment("lake", PLACE), keep=True):
        pass


def test_change_set_that_can_not_be_made_leaves_nothing_behind() -> None:
    cloudformation = FailingCloudFormation("change_set")

    with pytest.raises(RuntimeError, match="no capability"):
        proposed(cloudformation)

    assert cloudformation.asked == ["delete_change_set", "delete_stack"]


def test_change_that_fails_names_what_failed_first() -> None:
    with pytest.raises(RuntimeError, match="Bucket: taken"):
        proposed(FailingCloudFormation("stack_create"))


def test_stack_whose_creation_failed_is_to_be_deleted_first() -> None:
    with pytest.raises(RuntimeError, match="delete-stack"):
        proposed(FailingCloudFormation("never", "ROLLBACK_COMPLETE"))

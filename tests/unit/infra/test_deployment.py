"""What a deployment asks of CloudFormation."""

from __future__ import annotations

from infra.deploy import Deployment
from infra.policies import Writes, place_of

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

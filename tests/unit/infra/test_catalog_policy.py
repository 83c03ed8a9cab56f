"""What the catalog's job may do in Glue, as IAM matches."""

from __future__ import annotations

import fnmatch

import pytest

from txntable.infra.catalog_policy import GlueDatabase, catalog_policy

PLACE = GlueDatabase("lake", "eu-west-1", "1", "wh_")
ROOT = "arn:aws:glue:eu-west-1:1"


def allowed(action: str, resource: str) -> bool:
    return any(
        f"glue:{action}" in statement["Action"] and fnmatch.fnmatchcase(f"{ROOT}:{resource}", pattern)
        for statement in catalog_policy(PLACE)["Statement"]
        for pattern in statement["Resource"]
    )


@pytest.mark.parametrize("resource", ["catalog", "database/lake", "table/lake/wh_orders"])
@pytest.mark.parametrize("action", ["GetTable", "GetTables", "CreateTable", "UpdateTable", "DeleteTable"])
def test_tables_below_the_prefix_are_registered(action: str, resource: str) -> None:
    assert allowed(action, resource)


@pytest.mark.parametrize("action", ["CreateTable", "UpdateTable", "DeleteTable"])
@pytest.mark.parametrize("resource", ["table/lake/orders", "table/lakes/wh_orders", "database/other"])
def test_what_lies_elsewhere_is_not_changed(action: str, resource: str) -> None:
    assert not allowed(action, resource)


@pytest.mark.parametrize("action", ["DeleteDatabase", "CreateDatabase", "DeleteTableVersion", "GetPartitions", "*"])
def test_nothing_else_is_allowed(action: str) -> None:
    assert not any(allowed(action, resource) for resource in ("catalog", "database/lake", "table/lake/wh_orders"))


@pytest.mark.parametrize(
    ("database", "region", "account", "prefix"),
    [
        ("*", "eu-west-1", "1", ""),
        ("la/ke", "eu-west-1", "1", ""),
        ("", "eu-west-1", "1", ""),
        ("lake", "*", "1", ""),
        ("lake", "eu-west-1", "1:x", ""),
        ("lake", "eu-west-1", "1", "a*"),
    ],
)
def test_name_that_would_mean_more_in_a_policy_is_refused(
    database: str, region: str, account: str, prefix: str
) -> None:
    with pytest.raises(ValueError, match="database="):
        GlueDatabase(database, region, account, prefix)

"""The policies as data: which resources they name, and what a bucket's policy denies."""

from __future__ import annotations

import fnmatch

import pytest

from tests.unit.infra.paths import ALLOWED, OUTSIDE, PATHS
from txntable.infra.policies import GRANTS, Role, WarehousePlace, Writes, bucket_policy, place_of, role_policy

PLACE = place_of("s3://bucket/lake/one")
ACTIONS = {"r": "s3:GetObject", "w": "s3:PutObject", "d": "s3:DeleteObject"}


def allowed(policy: dict, action: str, key: str) -> bool:
    """Whether an identity policy allows an action on an object, as IAM matches (its ``*`` spans slashes)."""
    return any(
        action in statement["Action"] and fnmatch.fnmatchcase(f"arn:aws:s3:::bucket/{key}", resource)
        for statement in policy["Statement"]
        for resource in statement["Resource"]
    )


@pytest.mark.parametrize("kind", ALLOWED)
@pytest.mark.parametrize("role", Role)
def test_role_may_do_what_the_table_says_and_nothing_else(role: Role, kind: str) -> None:
    key = OUTSIDE[kind] if kind in OUTSIDE else f"lake/one/{PATHS[kind]}"

    policy = role_policy(role, PLACE)

    may = "".join(letter for letter, action in ACTIONS.items() if allowed(policy, action, key))
    assert may == ALLOWED[kind][role.value]


def test_table_knows_every_kind_of_path() -> None:
    assert ALLOWED.keys() == PATHS.keys() | OUTSIDE.keys()


@pytest.mark.parametrize("role", Role)
def test_every_resource_is_the_bucket_or_lies_below_the_warehouse(role: Role) -> None:
    resources = [each for statement in role_policy(role, PLACE)["Statement"] for each in statement["Resource"]]

    assert all(each == "arn:aws:s3:::bucket" or each.startswith("arn:aws:s3:::bucket/lake/one/") for each in resources)


@pytest.mark.parametrize("role", Role)
def test_every_role_may_list_so_that_an_absent_object_is_answered_404(role: Role) -> None:
    listing = role_policy(role, PLACE)["Statement"][0]

    assert listing["Action"] == ["s3:ListBucket"]
    # Without IfExists the condition would fail for a GET, which has no prefix, and S3 would answer 403.
    assert listing["Condition"] == {"StringLikeIfExists": {"s3:prefix": ["lake/one", "lake/one/*"]}}


def test_warehouse_that_is_the_whole_bucket_needs_no_condition() -> None:
    policy = role_policy(Role.READER, place_of("s3://bucket"))

    assert "Condition" not in policy["Statement"][0]
    assert "arn:aws:s3:::bucket/_warehouse.json" in policy["Statement"][1]["Resource"]


@pytest.mark.parametrize(
    ("role", "actions"),
    [(Role.READER, ["kms:Decrypt"]), (Role.PRODUCER, ["kms:Decrypt", "kms:GenerateDataKey"])],
)
def test_key_of_the_bucket_is_used_as_the_role_needs_it(role: Role, actions: list[str]) -> None:
    key = "arn:aws:kms:eu-west-1:1:key/k"

    last = role_policy(role, WarehousePlace("bucket", "w", kms_key=key))["Statement"][-1]

    assert last == {"Sid": "UseKey", "Effect": "Allow", "Action": actions, "Resource": [key]}


def test_only_who_maintains_may_find_the_uploads_of_others() -> None:
    assert {role for role, grants in GRANTS.items() if grants.finds_uploads} == {Role.MAINTENANCE, Role.ADMIN}


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/a*", "s3://bucket/a?b", "s3://bucket/${aws:username}", "s3://b", "gs://bucket/w", "/folder",
        "s3://bucket/a//b", "s3://buc*ket/w",
    ],
)  # fmt: skip
def test_url_that_would_mean_more_in_a_policy_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="url="):
        place_of(url)


@pytest.mark.parametrize("kind", PATHS)
def test_bucket_demands_put_if_absent_of_entries_checkpoints_and_the_identity_only(kind: str) -> None:
    statement = bucket_policy(PLACE)["Statement"][1]
    key = f"arn:aws:s3:::bucket/lake/one/{PATHS[kind]}"

    denied = any(fnmatch.fnmatchcase(key, resource) for resource in statement["Resource"])

    assert denied == (kind == "identity" or (kind.endswith((" entry", " checkpoint")) and kind != "state entry"))
    assert statement["Condition"] == {
        "Null": {"s3:if-none-match": "true"},
        "Bool": {"s3:ObjectCreationOperation": "true"},
    }


def test_bucket_denies_everything_without_tls() -> None:
    assert bucket_policy(PLACE)["Statement"][0] == {
        "Sid": "DenyWithoutTls",
        "Effect": "Deny",
        "Principal": "*",
        "Action": ["s3:*"],
        "Resource": ["arn:aws:s3:::bucket", "arn:aws:s3:::bucket/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }


@pytest.mark.parametrize(
    ("writes", "sids"),
    [
        (Writes.CHECKED, ["DenyWithoutTls", "DenyReplacingLogEntries"]),
        (Writes.ANY, ["DenyWithoutTls"]),
        (Writes.NONE, ["DenyWithoutTls", "DenyWrites"]),
    ],
)
def test_bucket_lets_pass_what_a_backup_and_a_restore_need(writes: Writes, sids: list[str]) -> None:
    assert [statement["Sid"] for statement in bucket_policy(PLACE, writes)["Statement"]] == sids


def test_pause_denies_writing_and_deleting_in_the_warehouse_and_nowhere_else() -> None:
    pause = bucket_policy(PLACE, Writes.NONE)["Statement"][1]

    assert pause["Action"] == ["s3:PutObject", "s3:DeleteObject"]
    assert pause["Resource"] == ["arn:aws:s3:::bucket/lake/one/*"]

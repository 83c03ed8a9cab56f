"""Keys that a store refuses before their end are asked for anew, and the call is made again with those."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.storage.test_credentials import answer_sts, calls, error_of, keys_of_puts, role_spec
from txntable.errors import StorePermissionError, StoreUnavailableError
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store


def refusal(code: str) -> str:
    return f"<Error><Code>{code}</Code><Message>m</Message></Error>"


def given_by_a_file(monkeypatch, file: Path, key: str) -> None:
    file.write_text(f"[default]\naws_access_key_id={key}\naws_secret_access_key=s\naws_session_token=t\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))


@pytest.fixture
def store_of_file(aws_config, monkeypatch, tmp_path, stubbed_s3):
    """A store whose keys OLD come from a file, have worked, and are replaced by NEW there."""
    given_by_a_file(monkeypatch, tmp_path / "keys", "OLD")
    options = {name: value for name, value in stubbed_s3.spec().options.items() if "key" not in name}
    store = open_store(StoreSpec("s3://bucket", {**options, "retry_timeout": "5s"}))
    store.put("a", b"")
    given_by_a_file(monkeypatch, tmp_path / "keys", "NEW")
    del stubbed_s3.headers[:]
    return store


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "ExpiredToken"), (403, "ExpiredToken"), (403, "InvalidAccessKeyId"), (400, "InvalidToken")],
)
@pytest.mark.parametrize("call", ["get", "head", "put", "list", "delete", "delete_unordered", "writer"])
def test_call_is_made_again_with_the_new_keys_when_the_old_ones_are_refused(
    store_of_file, stubbed_s3, status, code, call
):
    stubbed_s3.refused["OLD"] = (status, refusal(code))
    listing = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
    stubbed_s3.answer["body"] = listing if call == "list" else ""

    error = error_of(calls(store_of_file)[call])

    assert keys_of_puts(stubbed_s3)[:2] == ["OLD", "NEW"]
    assert error is None or not isinstance(error, StorePermissionError)


def test_put_if_absent_is_left_to_the_log_when_the_old_keys_are_refused(store_of_file, stubbed_s3):
    stubbed_s3.refused["OLD"] = (400, refusal("ExpiredToken"))

    with pytest.raises(StoreUnavailableError, match="renewed"):
        store_of_file.put_if_absent("a", b"")

    assert keys_of_puts(stubbed_s3) == ["OLD"]
    store_of_file.put_if_absent("a", b"")
    assert keys_of_puts(stubbed_s3) == ["OLD", "NEW"]


def test_refusal_is_told_when_the_new_keys_are_refused_too(store_of_file, stubbed_s3):
    stubbed_s3.refused.update(dict.fromkeys(("OLD", "NEW"), (400, refusal("ExpiredToken"))))

    with pytest.raises(StorePermissionError, match="session token"):
        store_of_file.put("a", b"")

    assert keys_of_puts(stubbed_s3) == ["OLD", "NEW"]


def test_refusal_for_want_of_a_permission_asks_for_no_other_keys(store_of_file, stubbed_s3):
    stubbed_s3.refused["OLD"] = (403, refusal("AccessDenied"))

    with pytest.raises(StorePermissionError):
        store_of_file.put("a", b"")

    assert keys_of_puts(stubbed_s3) == ["OLD"]


def test_keys_of_the_options_are_no_others_when_they_are_refused(aws_config, stubbed_s3):
    store = open_store(stubbed_s3.spec(retry_timeout="5s"))
    store.put("a", b"")
    stubbed_s3.refused["KEY-NAME"] = (400, refusal("ExpiredToken"))

    with pytest.raises(StorePermissionError, match="session token"):
        store.put("a", b"")

    assert keys_of_puts(stubbed_s3) == ["KEY-NAME"] * 2


def test_role_whose_sessions_were_revoked_is_assumed_again(aws_config, stubbed_s3):
    answer_sts(stubbed_s3, "REVOKED", 3_600_000)
    store = open_store(role_spec(stubbed_s3, retry_timeout="5s"))
    store.put("a", b"")
    stubbed_s3.refused["REVOKED"] = (403, refusal("ExpiredToken"))
    answer_sts(stubbed_s3, "NEXT", 3_600_000)

    store.put("b", b"")

    assert keys_of_puts(stubbed_s3) == ["REVOKED", "REVOKED", "NEXT"]

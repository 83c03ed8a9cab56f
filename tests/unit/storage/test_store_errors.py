"""Every code of a store's error says what it is, with its own remedy."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError  # noqa: TID251

from txntable.errors import (
    InvalidConfigError,
    StoreFullError,
    StorePermissionError,
    StoreUnavailableError,
    StoreUnsuitableError,
    TxnTableError,
)
from txntable.storage.object_store import StoreSpec
from txntable.storage.remote import RemoteStore
from txntable.storage.store_errors import MEANINGS, error_code, meaning_of
from txntable.storage.unfinished_uploads import unfinished_uploads

BODY = "<Error><Code>{}</Code><Message>words of the store</Message></Error>"
STATUS = {StorePermissionError: 403, InvalidConfigError: 400, StoreUnsuitableError: 501, StoreUnavailableError: 503}
STATUS[StoreFullError] = 507


@pytest.mark.parametrize("call", ["get", "put_if_absent"])
@pytest.mark.parametrize("code", MEANINGS)
def test_error_says_what_the_code_means(stubbed_s3, code: str, call: str) -> None:
    kind, says = MEANINGS[code]
    stubbed_s3.answer.update(status=STATUS[kind], body=BODY.format(code))
    store = RemoteStore(stubbed_s3.spec())

    with pytest.raises(TxnTableError) as raised:
        store.get("a") if call == "get" else store.put_if_absent("a", b"")

    assert type(raised.value) is kind
    assert raised.value.message == says
    assert "grant" not in says, "no permission would help"
    assert raised.value.facts["path"] == "a"
    assert code in str(raised.value)


@pytest.mark.parametrize("code", ["SignatureDoesNotMatch", "InvalidAccessKeyId", "RequestTimeTooSkewed"])
def test_refusals_that_no_permission_mends_have_each_a_remedy_of_their_own(code: str) -> None:
    others = [says for name, (_, says) in MEANINGS.items() if name not in {code, "RequestExpired"}]

    assert MEANINGS[code][1] not in others


@pytest.mark.parametrize("code", ["RequestTimeTooSkewed", "SlowDown", "NotImplemented", "AllAccessDisabled"])
def test_listing_of_uploads_says_what_the_code_means(monkeypatch, code: str) -> None:
    class Client:
        def get_paginator(self, _: str) -> object:
            raise ClientError({"Error": {"Code": code, "Message": "m"}}, "ListMultipartUploads")

    monkeypatch.setattr("txntable.storage.unfinished_uploads.place", lambda spec: (Client(), "bucket", ""))

    with pytest.raises(MEANINGS[code][0]) as raised:
        list(unfinished_uploads(StoreSpec("s3://bucket")))

    assert raised.value.message == MEANINGS[code][1]


@pytest.mark.parametrize("body", ["", BODY.format("NotImplemented"), "<html>nginx</html>"])
@pytest.mark.parametrize("call", ["get", "head", "put", "put_if_absent"])
def test_store_that_does_not_know_a_request_is_unsuitable_however_it_says_so(stubbed_s3, call: str, body: str) -> None:
    stubbed_s3.answer.update(status=501, body=body)
    store = RemoteStore(stubbed_s3.spec())

    with pytest.raises(StoreUnsuitableError, match="choose S3"):
        getattr(store, call)("a", *([b""] if "put" in call else []))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("status code: 400 Bad Request: <Error><Code>KMS.DisabledException</Code>", "KMS.DisabledException"),
        ("DeleteObjects request failed for key w/a: busy (code: SlowDown)", "SlowDown"),
        ("Server returned non-2xx status code: 501 Not Implemented: ", "NotImplemented"),
        ("Server returned non-2xx status code: 403 Forbidden: ", None),
        ("HTTP error: error sending request", None),
    ],
)
def test_code_is_found_where_the_store_gives_one(text: str, code: str | None) -> None:
    assert error_code(text) == code


def test_unknown_code_means_nothing_and_a_missing_permission_is_no_code() -> None:
    assert meaning_of(None) is None
    assert meaning_of("NeverHeardOf") is None
    assert meaning_of("AccessDenied") is None

"""What is told of a refused request, by the words of obstore's errors as they came from S3's API."""

from __future__ import annotations

import pytest

from txntable.storage.refusal import is_refusal, missing_s3_action


def refused(request: str) -> str:
    return f"Error performing {request} in 8.9ms - Server returned non-2xx status code: 403 Forbidden: <Error>"


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (refused("GET http://s3/b/w/a"), "s3:GetObject,s3:ListBucket"),
        (refused("HEAD http://s3/b/w/a"), "s3:GetObject,s3:ListBucket"),
        (refused("PUT http://s3/b/w/a"), "s3:PutObject"),
        (refused("PUT http://s3/b/w/a?partNumber=1&uploadId=x"), "s3:PutObject"),
        (refused("POST http://s3/b/w/a?uploads="), "s3:PutObject"),
        (refused("POST http://s3/b/w/a?uploadId=x"), "s3:PutObject"),
        (refused("DELETE http://s3/b/w/a?uploadId=x"), "s3:AbortMultipartUpload"),
        (refused("DELETE http://s3/b/w/a"), "s3:DeleteObject"),
        (refused("POST http://s3/b?delete"), "s3:DeleteObject"),
        (refused("GET http://s3/b?delimiter=%2F&list-type=2&prefix=w"), "s3:ListBucket"),
        ("DeleteObjects request failed for key w/a: Access Denied (code: AccessDenied)", "s3:DeleteObject"),
        (refused("PUT http://s3/b") + "\nis not authorized to perform: kms:Decrypt on", "kms:Decrypt"),
        ("non-2xx status code: 403 Forbidden", None),
    ],
)  # fmt: skip
def test_refusal_names_the_action_that_would_have_allowed_it(text: str, action: str | None) -> None:
    assert is_refusal(text)
    assert missing_s3_action(text) == action


def test_other_failure_is_no_refusal() -> None:
    assert not is_refusal("Error performing PUT http://s3/b/a in 1ms - Server returned non-2xx status code: 500: x")

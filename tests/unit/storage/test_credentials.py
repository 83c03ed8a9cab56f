"""Keys that expire, that cannot be had, and that must not be told."""

from __future__ import annotations

import datetime
import json
import pickle
import sys
import traceback
from collections.abc import Callable

import pytest
from botocore.credentials import Credentials, RefreshableCredentials  # noqa: TID251
from botocore.exceptions import (  # noqa: TID251
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    UnauthorizedSSOTokenError,
)

from tests.doubles.manual_environment import ManualEnvironment
from txntable.errors import InvalidConfigError, StorePermissionError, StoreUnavailableError, TxnTableError
from txntable.runtime.environment import SystemEnvironment
from txntable.storage.credentials import S3Keys, key_failure
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store

ROLE = "arn:aws:iam::123456789012:role/etl"
MINUTE_MS = 60_000


def date(environment, later_ms: int = 0) -> datetime.datetime:
    return datetime.datetime.fromtimestamp((environment.instant().wall_ms + later_ms) / 1000, datetime.UTC)


class Issuer:
    """Gives keys that live for some minutes of a manual clock."""

    def __init__(self, environment: ManualEnvironment, minutes: int) -> None:
        self.environment = environment
        self.minutes = minutes
        self.issued = 0

    def issue(self) -> dict[str, str]:
        self.issued += 1
        ends = date(self.environment, self.minutes * MINUTE_MS)
        return {
            "access_key": f"KEY-{self.issued}",
            "secret_key": "SECRET",
            "token": ends.isoformat(),
            "expiry_time": ends.isoformat(),
        }

    def credentials(self) -> RefreshableCredentials:
        first = self.issue()
        ends = datetime.datetime.fromisoformat(first.pop("expiry_time"))
        return RefreshableCredentials(
            **first,
            expiry_time=ends,
            refresh_using=self.issue,
            method="test",
            time_fetcher=lambda: date(self.environment),
        )


@pytest.mark.parametrize("minutes", [1, 5, 15, 60, 720])
def test_long_job_never_holds_keys_that_ended(minutes):
    environment = ManualEnvironment()
    issuer = Issuer(environment, minutes)
    keys = S3Keys(issuer.credentials(), environment)

    held = keys()
    for _ in range(2 * 13 * 60):
        if date(environment) >= held["expires_at"]:
            held = keys()
        assert date(environment) < datetime.datetime.fromisoformat(held["token"])
        environment.advance_ms(MINUTE_MS / 2)

    assert issuer.issued > 1


def test_keys_that_do_not_expire_are_asked_for_once():
    assert S3Keys(Credentials("k", "s"), ManualEnvironment())() == {
        "access_key_id": "k",
        "secret_access_key": "s",
        "token": None,
        "expires_at": None,
    }


def refused(code: str, status: int) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}}, "AssumeRole"
    )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (refused("AccessDenied", 403), StorePermissionError),
        (refused("ExpiredTokenException", 400), StorePermissionError),
        (refused("InternalFailure", 500), StoreUnavailableError),
        (refused("Throttling", 400), StoreUnavailableError),
        (EndpointConnectionError(endpoint_url="https://sts"), StoreUnavailableError),
        (ConnectTimeoutError(endpoint_url="https://sts"), StoreUnavailableError),
        (UnauthorizedSSOTokenError(), StorePermissionError),
        (CredentialRetrievalError(provider="sso", error_msg="m"), StorePermissionError),
        (FileNotFoundError("no token file"), StorePermissionError),
        (RuntimeError("the refreshed credentials are still expired"), StorePermissionError),
    ],
)
def test_failure_to_get_keys_is_sorted_by_what_the_caller_does(error, expected):
    assert type(key_failure(error)) is expected


def token_answer(key: str, ends_in_ms: int) -> str:
    ends = date(SystemEnvironment(), ends_in_ms).strftime("%Y-%m-%dT%H:%M:%SZ")
    keys = (
        f"<Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>ROLE-SECRET</SecretAccessKey>"
        f"<SessionToken>ROLE-TOKEN</SessionToken><Expiration>{ends}</Expiration></Credentials>"
    )
    return "".join(f"<{name}Result>{keys}</{name}Result>" for name in ("AssumeRole", "AssumeRoleWithWebIdentity"))


def calls(store) -> dict[str, Callable[[], object]]:
    return {
        "get": lambda: store.get("a"),
        "head": lambda: store.head("a"),
        "put": lambda: store.put("a", b""),
        "put_if_absent": lambda: store.put_if_absent("a", b""),
        "list": lambda: list(store.list("a")),
        "folders": lambda: store.folders("a"),
        "delete": lambda: store.delete(["a"]),
        "delete_unordered": lambda: store.delete_unordered(["a", "b"]),
        "writer": lambda: store.writer("a").close(),
    }


def error_of(call: Callable[[], object]) -> TxnTableError | None:
    try:
        call()
    except TxnTableError as error:
        return error
    return None


def role_spec(stub, **options: str) -> StoreSpec:
    return stub.spec(role_arn=ROLE, sts_endpoint=stub.url, **options)


def answer_sts(stub, key: str, ends_in_ms: int) -> None:
    stub.answer["body"] = f"<Response>{token_answer(key, ends_in_ms)}</Response>"


def keys_of_puts(stub) -> list[str]:
    signed = [found for headers in stub.headers if "/s3/aws4_request" in (found := headers.get("authorization", ""))]
    return [text.partition("Credential=")[2].partition("/")[0] for text in signed]


def test_role_is_assumed_again_before_its_keys_end(aws_config, stubbed_s3):
    answer_sts(stubbed_s3, "FIRST", 100_000)
    store = open_store(role_spec(stubbed_s3))
    store.put("a", b"")
    answer_sts(stubbed_s3, "SECOND", 3_600_000)
    store.put("b", b"")
    answer_sts(stubbed_s3, "THIRD", 3_600_000)
    store.put("c", b"")
    store.put_if_absent("d", b"")

    assert keys_of_puts(stubbed_s3) == ["FIRST", "SECOND", "SECOND", "SECOND"]
    assert {headers.get("x-amz-security-token") for headers in stubbed_s3.headers} == {None, "ROLE-TOKEN"}


@pytest.mark.parametrize(
    ("status", "code"),
    [(403, "AccessDenied"), (400, "ExpiredTokenException")],
)
def test_every_call_says_why_the_role_can_not_be_assumed(aws_config, stubbed_s3, status, code):
    error = f"<ErrorResponse><Error><Code>{code}</Code><Message>told by sts</Message></Error></ErrorResponse>"
    stubbed_s3.answer.update(status=status, body=error)
    store = open_store(role_spec(stubbed_s3))

    for name, call in calls(store).items():
        with pytest.raises(StorePermissionError, match="told by sts") as raised:
            call()
        assert code in str(raised.value), name

    assert keys_of_puts(stubbed_s3) == []


def test_web_identity_needs_no_keys_and_reads_its_token_each_time(aws_config, monkeypatch, tmp_path, stubbed_s3):
    token = tmp_path / "token"
    token.write_text("TOKEN-1")
    answer_sts(stubbed_s3, "WEB", 100_000)
    options = {name: value for name, value in stubbed_s3.spec().options.items() if "key" not in name}
    asked = {"role_arn": ROLE, "web_identity_token_file": str(token), "sts_endpoint": stubbed_s3.url}
    store = open_store(StoreSpec("s3://bucket", {**options, **asked}))
    store.put("a", b"")
    token.unlink()

    with pytest.raises(StorePermissionError, match="token"):
        store.put("b", b"")

    assert "authorization" not in stubbed_s3.headers[0]
    assert keys_of_puts(stubbed_s3) == ["WEB"]


def test_half_of_a_web_identity_in_the_environment_is_completed_by_the_option(
    aws_config, monkeypatch, tmp_path, stubbed_s3
):
    (tmp_path / "token").write_text("TOKEN-1")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    answer_sts(stubbed_s3, "WEB", 3_600_000)
    options = {name: value for name, value in stubbed_s3.spec().options.items() if "key" not in name}

    open_store(StoreSpec("s3://bucket", {**options, "role_arn": ROLE, "sts_endpoint": stubbed_s3.url})).put("a", b"")

    assert keys_of_puts(stubbed_s3) == ["WEB"]


SOURCE = """
[profile base]
aws_access_key_id = BASE
aws_secret_access_key = BASE-SECRET
[profile chained]
role_arn = arn:aws:iam::123456789012:role/chained
source_profile = base
role_session_name = chained
external_id = external
"""


def test_role_of_a_profile_is_assumed_from_its_source_profile(aws_config, monkeypatch, stubbed_s3):
    aws_config.write_text(SOURCE)
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", stubbed_s3.url)
    answer_sts(stubbed_s3, "CHAINED", 3_600_000)
    options = {name: value for name, value in stubbed_s3.spec().options.items() if "key" not in name}

    open_store(StoreSpec("s3://bucket", {**options, "profile": "chained"})).put("a", b"")

    assert "Credential=BASE/" in stubbed_s3.headers[0]["authorization"]
    assert keys_of_puts(stubbed_s3) == ["CHAINED"]


def process(answer: str) -> str:
    return f"[profile helper]\ncredential_process = {sys.executable} -c \"print('{answer}')\"\n"


def told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error) + str(pickle.dumps(error))


ECHOED = (
    "<Error><Code>{code}</Code><Message>m</Message><Token-0>SECRET-TOKEN</Token-0><StringToSign>SECRET</StringToSign>"
    "<CanonicalRequest>PUT\nx-amz-security-token:SECRET-TOKEN</CanonicalRequest>"
    "<CanonicalRequestBytes>53 45 43</CanonicalRequestBytes></Error>"
)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "ExpiredToken"),
        (400, "InvalidToken"),
        (403, "SignatureDoesNotMatch"),
        (403, "InvalidAccessKeyId"),
        (400, "AuthorizationHeaderMalformed"),
        (301, "PermanentRedirect"),
        (404, "NoSuchBucket"),
        (409, "OperationAborted"),
        (500, "InternalError"),
        (200, "InternalError"),
    ],
)
def test_no_error_tells_what_the_store_echoed(stubbed_s3, status, code):
    stubbed_s3.answer.update(status=status, body=ECHOED.format(code=code))
    spec = stubbed_s3.spec(aws_session_token="SECRET-TOKEN")
    store = open_store(spec)
    errors = [error for call in calls(store).values() if (error := error_of(call)) is not None]

    text = "".join(map(told, errors)) + repr(store) + repr(spec)
    assert errors
    assert [word for word in ("SECRET", "53 45 43") if word in text] == []


@pytest.mark.parametrize(
    ("status", "body", "expected", "region"),
    [
        (301, "", InvalidConfigError, None),
        (
            400,
            "<Error><Code>AuthorizationHeaderMalformed</Code><Message>region: expecting 'eu-west-1'</Message></Error>",
            InvalidConfigError,
            "eu-west-1",
        ),
        (400, '<?xml version="1.0"?>\n<Error><Code>ExpiredToken</Code></Error>', StorePermissionError, None),
        (400, "Content-MD5 OR x-amz-checksum- HTTP header is required", InvalidConfigError, None),
        (400, "<Error><Code>EntityTooLarge</Code></Error>", StoreUnavailableError, None),
    ],
)
def test_error_names_the_remedy_of_a_wrong_region_and_of_ended_keys(stubbed_s3, status, body, expected, region):
    stubbed_s3.answer.update(status=status, body=body)

    with pytest.raises(expected) as raised:
        open_store(stubbed_s3.spec()).put_if_absent("a", b"")

    assert raised.value.facts.get("bucket_region") == region
    remedies = [
        remedy for remedy in ("aws_region", "checksum_algorithm", "ExpiredToken") if remedy in str(raised.value)
    ]
    assert len(remedies) == (expected is not StoreUnavailableError)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("s3://b", {"access_key_id": "k", "secret_access_key": "SECRET", "sse_customer_key_base64": "SECRET!"}),
        ("s3://b", {"access_key_id": "k", "secret_access_key": "SECRET", "checksum_algorithm": "SECRET"}),
        ("s3://b", {"access_key_id": "k", "secret_access_key": "SECRET", "proxy_url": "::SECRET"}),
        ("s3://k:SECRET@b/p", {}),
        ("s3://SECRET@b/p", {}),
        ("az://c?sig=SECRET", {"account_name": "a"}),
        ("az://c", {"account_name": "a", "account_key": "SECRET!!"}),
        ("az://c", {"account_name": "a", "sas_key": "SECRET"}),
        ("gs://b", {"service_account_key": "{SECRET"}),
        ("gs://b", {"service_account_key": json.dumps({"private_key": "SECRET", "client_email": "e"})}),
    ],
)
def test_opening_is_refused_without_telling_secrets(aws_config, url, options):
    with pytest.raises(TxnTableError) as raised:
        open_store(StoreSpec(url, options))

    assert "SECRET" not in told(raised.value)


@pytest.mark.parametrize(
    "answer", ["SECRET", '{\\"Version\\": 9, \\"SecretAccessKey\\": \\"SECRET\\"}', '{\\"Version\\": 1}']
)
def test_failing_helper_of_a_profile_tells_no_keys(aws_config, answer):
    aws_config.write_text(process(answer))

    with pytest.raises(TxnTableError) as raised:
        open_store(StoreSpec("s3://b", {"profile": "helper"})).put("a", b"")

    assert "SECRET" not in told(raised.value).replace(sys.executable, "")


def test_keys_of_the_machine_do_not_travel_with_a_store(monkeypatch, aws_config, stubbed_s3):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "DRIVER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "DRIVER-SECRET")
    options = {name: value for name, value in stubbed_s3.spec().options.items() if "key" not in name}
    pickled = pickle.dumps(open_store(StoreSpec("s3://bucket", options)))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "EXECUTOR")

    pickle.loads(pickled).put("a", b"")

    assert b"DRIVER" not in pickled
    assert keys_of_puts(stubbed_s3) == ["EXECUTOR"]

"""How obstore's answers are read; against a stub that answers any status."""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
import traceback

import pytest

from txntable.errors import (
    IllegalStateError,
    InvalidConfigError,
    InvalidRequestError,
    StorePermissionError,
    StoreUnavailableError,
    WarehouseNotFoundError,
)
from txntable.storage.object_store import PutOutcome, StoreSpec
from txntable.storage.open import open_store
from txntable.storage.remote import RemoteStore

NO_BUCKET = "<Error><Code>NoSuchBucket</Code></Error>"
NO_KEY = "<Error><Code>NoSuchKey</Code></Error>"


@pytest.mark.parametrize("status", [409, 412])
def test_put_if_absent_says_exists_when_the_store_says_conflict(stubbed_s3, status):
    stubbed_s3.answer["status"] = status

    assert RemoteStore(stubbed_s3.spec()).put_if_absent("a", b"") is PutOutcome.EXISTS


@pytest.mark.parametrize("status", [500, 503, 429])
def test_put_if_absent_is_sent_once_when_the_store_fails(stubbed_s3, status):
    stubbed_s3.answer["status"] = status

    with pytest.raises(StoreUnavailableError):
        RemoteStore(stubbed_s3.spec(retry_timeout="5s")).put_if_absent("a", b"")

    assert stubbed_s3.requests == [("PUT", "/bucket/prefix/a")]


@pytest.mark.parametrize(("status", "body"), [(500, ""), (507, "<Error><Code>QuotaExceeded</Code></Error>")])
def test_get_is_sent_again_when_the_store_fails_or_is_full(stubbed_s3, status, body):
    stubbed_s3.answer.update(status=status, body=body)

    with pytest.raises(StoreUnavailableError):
        RemoteStore(stubbed_s3.spec(retry_timeout="400ms")).get("a")

    assert len(stubbed_s3.requests) >= 2


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (401, "", StorePermissionError),
        (403, "", StorePermissionError),
        (500, "", StoreUnavailableError),
        (400, "", StoreUnavailableError),
        (404, NO_BUCKET, WarehouseNotFoundError),
    ],
)
@pytest.mark.parametrize("call", ["get", "put", "put_if_absent", "list", "delete", "delete_unordered", "writer"])
def test_every_call_raises_by_what_the_caller_can_do(stubbed_s3, status, body, expected, call):
    stubbed_s3.answer.update(status=status, body=body)
    store = RemoteStore(stubbed_s3.spec())
    calls = {
        "get": lambda: store.get("a"),
        "put": lambda: store.put("a", b""),
        "put_if_absent": lambda: store.put_if_absent("a", b""),
        "list": lambda: list(store.list("a")),
        "delete": lambda: store.delete(["a"]),
        "delete_unordered": lambda: store.delete_unordered(["a"]),
        "writer": lambda: store.writer("a").close(),
    }

    with pytest.raises(expected) as raised:
        calls[call]()

    assert raised.value.__cause__ is not None


@pytest.mark.parametrize("blocks", [1, 30])
def test_writer_raises_and_never_waits_for_ever_when_the_upload_fails(stubbed_s3, blocks):
    stubbed_s3.answer["status"] = 403
    store = RemoteStore(stubbed_s3.spec())

    with pytest.raises(StorePermissionError), store.writer("a") as file:  # noqa: PT012
        for _ in range(blocks):
            file.write(b"x" * 4_000_000)


@pytest.mark.parametrize("user", ["", "ann:secret@"])
def test_store_that_cannot_be_reached_is_told_with_its_endpoint_and_without_a_password(user: str) -> None:
    endpoint = f"http://{user}127.0.0.1:9"
    options = {"endpoint": endpoint, "allow_http": "true", "region": "us-east-1", "skip_signature": "true"}

    with pytest.raises(StoreUnavailableError, match="check the network, and endpoint and proxy") as raised:
        RemoteStore(StoreSpec("s3://bucket", {**options, "retry_timeout": "0s"})).get("a")

    assert raised.value.facts["endpoint"] == "http://127.0.0.1:9"
    assert "secret" not in str(raised.value)


def test_get_returns_none_when_the_object_is_absent(stubbed_s3):
    stubbed_s3.answer.update(status=404, body=NO_KEY)

    assert RemoteStore(stubbed_s3.spec()).get("a") is None


def test_secrets_are_in_no_repr_and_no_error(stubbed_s3):
    stubbed_s3.answer["status"] = 403
    spec = stubbed_s3.spec()
    store = RemoteStore(spec)

    with pytest.raises(StorePermissionError) as raised:
        store.get("a")

    told = "".join(traceback.format_exception(raised.value))
    assert "KEY-SECRET" not in told + repr(store) + repr(spec) + repr(raised.value)


@pytest.mark.parametrize(
    ("url", "options", "nearest"),
    [
        ("s3://b", {"aws_acces_key": "SECRET"}, "access_key_id"),
        ("s3://b", {"AWS_ALLOW_HTT": "SECRET"}, "allow_http"),
        ("gs://b", {"google_service_acount": "SECRET"}, "service_account"),
        ("az://c", {"azure_storage_acount_name": "SECRET"}, "account_name"),
        ("s3://b", {"bucket": "SECRET"}, None),
        ("s3://b", {"region": "SECRET", "AWS_REGION": "SECRET"}, None),
        ("s3://b", {"retry_timeout": "SECRET"}, None),
    ],
)
def test_opening_is_refused_when_an_option_is_unusable(url, options, nearest):
    with pytest.raises(InvalidConfigError) as raised:
        open_store(StoreSpec(url, options))

    assert next(iter(raised.value.facts.values())) in options
    assert nearest is None or f"did you mean {nearest}?" in str(raised.value)
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("s3a://b/p", {"AWS_ACCESS_KEY_ID": "k", "secret_access_key": "s", "aws_default_region": "eu-west-1"}),
        ("s3://b/p", {"skip_signature": "true", "timeout": "3s", "aws_endpoint": "https://127.0.0.1"}),
        ("gs://b/p", {"GOOGLE_SKIP_SIGNATURE": "true"}),
        ("az://c/p", {"AZURE_STORAGE_ACCOUNT_NAME": "a", "azure_storage_account_key": "a2V5"}),
        ("abfs://c@a.dfs.core.windows.net/p", {"sas_token": "sv=1&sig=2"}),
        ("memory://m", {}),
    ],
)
def test_store_opens_with_the_usual_names_of_options(url, options):
    assert open_store(StoreSpec(url, options)).spec.url == url


@pytest.mark.parametrize("url", ["ftp://x", "s3://", "s3:/bucket", "file://host/x", "az://container"])
def test_opening_is_refused_when_the_url_is_none(url):
    with pytest.raises(InvalidRequestError):
        open_store(StoreSpec(url))


def test_opening_is_refused_when_there_are_no_credentials(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ROLE_ARN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))

    with pytest.raises(StorePermissionError, match="aws_access_key_id"):
        open_store(StoreSpec("s3://b"))


def test_keys_come_from_the_environment_when_no_option_gives_them(monkeypatch, stubbed_s3):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    options = {name: value for name, value in stubbed_s3.spec().options.items() if "key" not in name}

    assert RemoteStore(StoreSpec("s3://bucket", options)).put_if_absent("a", b"") is PutOutcome.CREATED


def test_memory_store_is_shared_by_its_url_and_opens_again_from_its_pickle():
    store = open_store(StoreSpec("memory://shared-by-url"))
    store.put("a", b"1")

    assert pickle.loads(pickle.dumps(store)).get("a").data == b"1"
    assert open_store(StoreSpec("memory://another")).get("a") is None


def test_every_call_is_refused_after_a_fork(monkeypatch):
    store = open_store(StoreSpec("memory://forked"))
    monkeypatch.setattr("os.getpid", lambda: -7)

    for call in (lambda: store.get("a"), lambda: store.put_if_absent("a", b""), lambda: store.writer("a")):
        with pytest.raises(IllegalStateError, match="spawn"):
            call()


def test_process_ends_well_when_a_stream_was_left_open():
    code = (
        "from txntable.storage.object_store import StoreSpec\n"
        "from txntable.storage.open import open_store\n"
        "file = open_store(StoreSpec('memory://left')).writer('a')\n"
        "for _ in range(9): file.write(b'x' * 2_000_000)\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_unordered_delete_takes_one_request_for_many_objects(stubbed_s3):
    stubbed_s3.answer["body"] = (
        '<DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        + "".join(f"<Deleted><Key>prefix/{number}</Key></Deleted>" for number in range(50))
        + "</DeleteResult>"
    )

    RemoteStore(stubbed_s3.spec()).delete_unordered([str(number) for number in range(50)])

    assert [method for method, _ in stubbed_s3.requests] == ["POST"]


def every_call(store: RemoteStore) -> None:
    def stream() -> None:
        with store.writer("w") as file:
            file.write(b"x" * 9_000_000)

    for call in (
        lambda: store.get("a"),
        lambda: store.get_range("a", 0, 1),
        lambda: store.head("a"),
        lambda: store.put("a", b""),
        lambda: store.put_if_absent("b", b""),
        lambda: list(store.list("a")),
        lambda: store.folders("a"),
        lambda: store.delete(["a"]),
        lambda: store.delete_unordered(["a", "b"]),
        stream,
    ):
        with contextlib.suppress(StoreUnavailableError):
            call()


@pytest.mark.parametrize("said", ["true", "requester"])
def test_every_kind_of_request_says_that_the_requester_pays(stubbed_s3, said):
    stubbed_s3.answer["body"] = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"

    every_call(RemoteStore(stubbed_s3.spec(aws_request_payer=said)))

    kinds = {(method, path.partition("?")[2].partition("=")[0]) for method, path in stubbed_s3.requests}
    assert {method for method, _ in kinds} == {"GET", "HEAD", "PUT", "POST", "DELETE"}
    assert {"list-type", "uploads", "delete", "uploadId", "partNumber"} <= {query for _, query in kinds}
    assert {headers.get("x-amz-request-payer") for headers in stubbed_s3.headers} == {"requester"}
    assert all("x-amz-request-payer" in headers["authorization"] for headers in stubbed_s3.headers)


def test_every_write_carries_a_checksum_when_that_is_said(stubbed_s3):
    stubbed_s3.answer["body"] = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"

    every_call(RemoteStore(stubbed_s3.spec(checksum_algorithm="SHA256")))

    of_writes = [
        headers for (method, _), headers in zip(stubbed_s3.requests, stubbed_s3.headers, strict=True) if method == "PUT"
    ]
    assert len(of_writes) >= 4
    assert all("x-amz-checksum-sha256" in headers for headers in of_writes)


@pytest.mark.parametrize(
    ("url", "options", "condition"),
    [
        ("gs://b/p", {"bearer_token": "t", "base_url": ""}, ("x-goog-if-generation-match", "0")),
        ("az://c/p", {"account_name": "a", "token": "t", "endpoint": ""}, ("if-none-match", "*")),
    ],
)
def test_put_if_absent_carries_the_condition_of_each_cloud(stubbed_s3, url, options, condition):
    address = {name: value or stubbed_s3.url for name, value in options.items()}
    store = RemoteStore(StoreSpec(url, {**address, "allow_http": "true", "retry_timeout": "0"}))

    stubbed_s3.answer["status"] = 201
    created = store.put_if_absent("a", b"")
    stubbed_s3.answer["status"] = 412
    existing = store.put_if_absent("a", b"")

    name, value = condition
    assert [headers.get(name) for headers in stubbed_s3.headers] == [value, value]
    assert (created, existing) == (PutOutcome.CREATED, PutOutcome.EXISTS)


@pytest.mark.parametrize("option", ["proxy_url", "environment"])
def test_requests_go_through_the_proxy_that_is_named(monkeypatch, stubbed_s3, option):
    options = {"aws_endpoint_url": "http://store.invalid"}
    if option == "environment":
        monkeypatch.setenv("HTTP_PROXY", stubbed_s3.url)
    else:
        options["proxy_url"] = stubbed_s3.url

    RemoteStore(stubbed_s3.spec(**options)).put("a", b"")

    assert stubbed_s3.requests == [("PUT", "http://store.invalid/bucket/prefix/a")]

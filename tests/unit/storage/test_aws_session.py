"""What the machine says when the options do not: profiles, regions, endpoints, certificates, roles."""

from __future__ import annotations

import pytest

from txntable.errors import InvalidConfigError, StorePermissionError
from txntable.storage.aws_session import open_session, s3_client
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store
from txntable.storage.storage_options import parse_options

KEYS = {"access_key_id": "OPTION-KEY", "secret_access_key": "OPTION-SECRET"}
ROLE = "arn:aws:iam::123456789012:role/etl"
PROFILES = """
[default]
region = of-default
[profile work]
region = of-profile
aws_access_key_id = PROFILE-KEY
aws_secret_access_key = PROFILE-SECRET
endpoint_url = https://all.of.profile
services = own
[services own]
s3 =
  endpoint_url = https://s3.of.profile
"""


def session(**options: str):
    return open_session(parse_options("s3", options))


def key(found) -> tuple[str, str | None]:
    keys = found.get_credentials().get_frozen_credentials()
    return keys.access_key, keys.token


@pytest.mark.parametrize(
    ("options", "environment", "region"),
    [
        ({"region": "of-option", "profile": "work"}, {"AWS_REGION": "of-environment"}, "of-option"),
        ({"profile": "work"}, {"AWS_REGION": "first", "AWS_DEFAULT_REGION": "second"}, "first"),
        ({"profile": "work"}, {"AWS_DEFAULT_REGION": "second"}, "second"),
        ({"profile": "work"}, {}, "of-profile"),
        ({}, {"AWS_PROFILE": "work"}, "of-profile"),
        ({}, {}, "of-default"),
    ],
)
def test_region_is_taken_from_the_nearest_place_that_says_one(aws_config, monkeypatch, options, environment, region):
    aws_config.write_text(PROFILES)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert session(**options).region_name == region


def test_region_is_us_east_1_when_no_place_says_one(aws_config):
    assert session().region_name == "us-east-1"


@pytest.mark.parametrize(
    ("options", "environment", "expected"),
    [
        ({"endpoint": "https://of.option"}, {"AWS_ENDPOINT_URL_S3": "https://of.s3"}, "https://of.option"),
        ({}, {"AWS_ENDPOINT_URL_S3": "https://of.s3", "AWS_ENDPOINT_URL": "https://of.all"}, "https://of.s3"),
        ({}, {"AWS_ENDPOINT_URL": "https://of.all"}, "https://of.all"),
        ({}, {"AWS_PROFILE": "work"}, "https://s3.of.profile"),
        ({}, {"AWS_PROFILE": "work", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, None),
        ({}, {}, None),
    ],
)
def test_endpoint_is_taken_from_the_nearest_place_that_says_one(
    aws_config, monkeypatch, options, environment, expected
):
    aws_config.write_text(PROFILES)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    client = s3_client(StoreSpec("s3://bucket", {**KEYS, **options}))

    assert client.meta.endpoint_url == (expected or f"https://s3.{client.meta.region_name}.amazonaws.com")


@pytest.mark.parametrize(
    ("options", "environment", "expected"),
    [
        ({**KEYS, "profile": "work"}, {}, ("OPTION-KEY", None)),
        ({"profile": "work"}, {}, ("PROFILE-KEY", None)),
        ({}, {"AWS_PROFILE": "work"}, ("PROFILE-KEY", None)),
        (KEYS, {"AWS_SESSION_TOKEN": "of-other-keys"}, ("OPTION-KEY", None)),
        ({**KEYS, "session_token": "own"}, {"AWS_SESSION_TOKEN": "of-other-keys"}, ("OPTION-KEY", "own")),
        (
            {},
            {"AWS_ACCESS_KEY_ID": "ENV-KEY", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"},
            ("ENV-KEY", "t"),
        ),
    ],
)
def test_keys_are_taken_from_one_place_and_never_mixed(aws_config, monkeypatch, options, environment, expected):
    aws_config.write_text(PROFILES)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert key(session(**options)) == expected


def test_request_takes_no_session_token_from_the_environment_beside_keys_of_options(monkeypatch, stubbed_s3):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-other-keys")

    open_store(stubbed_s3.spec()).put("a", b"")

    assert "x-amz-security-token" not in stubbed_s3.headers[-1]
    assert "Credential=KEY-NAME/" in stubbed_s3.headers[-1]["authorization"]


@pytest.mark.parametrize(
    "options",
    [
        {"access_key_id": "k"},
        {"secret_access_key": "SECRET"},
        {"session_token": "SECRET"},
        {"role_session_name": "n"},
        {"external_id": "SECRET"},
        {"sts_endpoint": "https://sts"},
        {"web_identity_token_file": "/token"},
        {**KEYS, "role_arn": ROLE, "web_identity_token_file": "/token"},
        {"external_id": "SECRET", "role_arn": ROLE, "web_identity_token_file": "/token"},
        {"profile": "none"},
    ],
)
def test_session_is_refused_when_an_option_would_be_left_out_silently(aws_config, options):
    with pytest.raises(InvalidConfigError) as raised:
        session(**options)

    assert "SECRET" not in str(raised.value)


def test_role_is_refused_when_there_are_no_keys_to_assume_it_with(aws_config):
    with pytest.raises(StorePermissionError, match="assume"):
        open_store(StoreSpec("s3://bucket", {"role_arn": ROLE}))


@pytest.mark.parametrize("options", [{}, {"allow_http": "false"}])
def test_opening_is_refused_when_the_endpoint_is_not_encrypted_and_no_option_allows_that(aws_config, options):
    with pytest.raises(InvalidConfigError, match="allow_http"):
        open_store(StoreSpec("s3://bucket", {**KEYS, **options, "endpoint": "http://127.0.0.1:1"}))


def test_environment_gives_the_endpoint_and_allows_it_to_be_unencrypted(aws_config, monkeypatch, stubbed_s3):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", stubbed_s3.url)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    spec = StoreSpec("s3://bucket", KEYS)

    open_store(spec).put("a", b"")
    s3_client(spec).list_multipart_uploads(Bucket="bucket")

    assert [method for method, _ in stubbed_s3.requests] == ["PUT", "GET"]


@pytest.mark.parametrize("given", ["/none.pem", "-----BEGIN CERTIFICATE-----\nSECRET"])
def test_opening_is_refused_when_the_certificates_are_unusable(aws_config, given):
    with pytest.raises(InvalidConfigError) as raised:
        open_store(StoreSpec("s3://bucket", {**KEYS, "root_certificate": given}))

    assert "SECRET" not in str(raised.value)


def test_certificates_of_the_environment_are_trusted_by_both_clients(aws_config, monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "none.pem"))

    with pytest.raises(InvalidConfigError, match="AWS_CA_BUNDLE"):
        open_store(StoreSpec("s3://bucket", KEYS))


@pytest.mark.parametrize("host", ["s3.test:1", "bucket.s3.test:1"])
def test_bucket_stands_in_the_host_once_when_requests_are_virtual_hosted(aws_config, stubbed_s3, host):
    options = {"virtual_hosted_style_request": "true", "endpoint": f"http://{host}", "proxy_url": stubbed_s3.url}
    spec = stubbed_s3.spec(**options)
    options = {name: value for name, value in spec.options.items() if name != "aws_endpoint_url"}
    spec = StoreSpec("s3://bucket/prefix", options)

    open_store(spec).put("a", b"")
    s3_client(spec).list_multipart_uploads(Bucket="bucket")

    assert [headers["host"] for headers in stubbed_s3.headers] == ["bucket.s3.test:1", "bucket.s3.test:1"]


def test_boto3_goes_by_the_same_options(stubbed_s3):
    spec = stubbed_s3.spec(request_payer="true", timeout="7s", connect_timeout="3s")

    client = s3_client(spec)
    client.list_multipart_uploads(Bucket="bucket")

    assert client.meta.config.connect_timeout == 3
    assert client.meta.config.read_timeout == 7
    assert stubbed_s3.requests == [("GET", "/bucket?uploads")]
    assert stubbed_s3.headers[0]["x-amz-request-payer"] == "requester"
    assert "x-amz-request-payer" in stubbed_s3.headers[0]["authorization"]
    assert "Credential=KEY-NAME/" in stubbed_s3.headers[0]["authorization"]


@pytest.mark.parametrize(("said", "signed"), [("true", False), ("false", True)])
def test_requests_go_unsigned_only_when_that_is_said(stubbed_s3, said, signed):
    spec = stubbed_s3.spec(skip_signature=said)

    open_store(spec).put("a", b"")
    s3_client(spec).list_multipart_uploads(Bucket="bucket")

    assert ["authorization" in headers for headers in stubbed_s3.headers] == [signed, signed]


@pytest.mark.parametrize("region", [{}, {"region": "eu-west-1"}])
def test_profile_that_is_not_there_is_named_wherever_the_region_comes_from(aws_config, monkeypatch, region):
    monkeypatch.setenv("AWS_PROFILE", "nobody")

    with pytest.raises(InvalidConfigError, match="nobody"):
        open_store(StoreSpec("s3://bucket", region))

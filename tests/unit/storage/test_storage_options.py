"""The names and values that storage options may have."""

from __future__ import annotations

import pytest

from txntable.errors import InvalidConfigError
from txntable.storage.storage_options import parse_options


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"AWS_PROFILE": "p"}, {"profile": "p"}),
        ({"profile_name": "p"}, {"profile": "p"}),
        ({"region_name": "r"}, {"region": "r"}),
        ({"AWS_ENDPOINT_URL_S3": "e"}, {"endpoint": "e"}),
        ({"AWS_IAM_ROLE_ARN": "r"}, {"role_arn": "r"}),
        ({"AWS_S3_ASSUME_ROLE_ARN": "r"}, {"role_arn": "r"}),
        ({"AWS_IAM_ROLE_SESSION_NAME": "n"}, {"role_session_name": "n"}),
        ({"AWS_ENDPOINT_URL_STS": "e"}, {"sts_endpoint": "e"}),
        ({"aws_session_token": "t"}, {"session_token": "t"}),
        ({"addressing_style": "path"}, {"virtual_hosted_style_request": "false"}),
        ({"AWS_S3_ADDRESSING_STYLE": "virtual"}, {"virtual_hosted_style_request": "true"}),
        ({"AWS_S3_FORCE_PATH_STYLE": "true"}, {"virtual_hosted_style_request": "false"}),
        ({"path_style_access": "0"}, {"virtual_hosted_style_request": "true"}),
        ({"AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "True"}, {"virtual_hosted_style_request": "true"}),
        ({"request_payer": "requester"}, {"request_payer": "true"}),
        ({"sse_kms_key_id": "k"}, {"sse_kms_key_id": "k", "server_side_encryption": "aws:kms"}),
        ({"sse_customer_key_base64": "k"}, {"sse_customer_key_base64": "k", "server_side_encryption": "sse-c"}),
        (
            {"AWS_SERVER_SIDE_ENCRYPTION": "aws:kms:dsse", "AWS_SSE_KMS_KEY_ID": "k"},
            {"sse_kms_key_id": "k", "server_side_encryption": "aws:kms:dsse"},
        ),
    ],
)
def test_option_means_the_same_under_each_usual_name(given, meant):
    assert parse_options("s3", given).store == meant


@pytest.mark.parametrize(
    ("given", "meant", "seconds"),
    [("30s", "30s", 30), ("30", "30s", 30), ("2 m", "2m", 120), ("500ms", "500ms", 0.5), ("1h", "1h", 3600)],
)
def test_duration_is_read_with_and_without_its_unit(given, meant, seconds):
    settings = parse_options("gs", {"timeout": given})

    assert settings.client == {"timeout": meant}
    assert settings.seconds("timeout") == seconds
    assert settings.seconds("read_timeout") is None


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": "SECRET"},
        {"timeout": "-3s"},
        {"retry_timeout": "SECRET"},
        {"skip_signature": "SECRET"},
        {"request_payer": "SECRET"},
        {"addressing_style": "SECRET"},
        {"force_path_style": "SECRET"},
        {"server_side_encryption": "SECRET"},
        {"server_side_encryption": "AES256", "sse_kms_key_id": "SECRET"},
        {"server_side_encryption": "aws:kms", "sse_customer_key_base64": "SECRET"},
        {"sse_kms_key_id": "SECRET", "sse_customer_key_base64": "SECRET"},
        {"region": "SECRET", "AWS_REGION": "SECRET"},
        {"addressing_style": "path", "virtual_hosted_style_request": "false"},
        {"container_credentials_relative_uri": "SECRET"},
    ],
)
def test_options_are_refused_without_telling_their_values(options):
    with pytest.raises(InvalidConfigError) as raised:
        parse_options("s3", options)

    assert "SECRET" not in str(raised.value)
    assert raised.value.facts["option"] in options


def test_settings_print_names_and_no_values():
    settings = parse_options("s3", {"aws_secret_access_key": "SECRET", "proxy_url": "http://u:SECRET@p"})

    assert repr(settings) == "ClientSettings(['secret_access_key'], ['proxy_url'], retry_timeout_ms=120000)"

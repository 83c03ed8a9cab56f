"""Where a machine keeps keys when nobody names any: containers, instances, single sign-on."""

from __future__ import annotations

import datetime
import hashlib
import json

import pytest

from tests.unit.storage.test_credentials import date, keys_of_puts, told
from txntable.errors import StorePermissionError
from txntable.runtime.environment import SystemEnvironment
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store

SIGNED_ON = """
[profile signed-on]
sso_start_url = https://signed.on
sso_region = us-east-1
sso_account_id = 123456789012
sso_role_name = etl
"""


def answer_everything(stub, ends: datetime.datetime) -> None:
    """Answer as containers, instances and single sign-on do, with the same keys."""
    keys = {"AccessKeyId": "MACHINE", "SecretAccessKey": "s", "Token": "t", "Expiration": ends.isoformat()}
    ends_ms = int(ends.timestamp() * 1000)
    signed_on = {"accessKeyId": "MACHINE", "secretAccessKey": "s", "sessionToken": "t", "expiration": ends_ms}
    stub.answer["body"] = json.dumps({**keys, "roleCredentials": signed_on, "Code": "Success"})


@pytest.mark.parametrize("place", ["container", "instance", "sign-on", "expired sign-on"])
def test_keys_come_from_where_the_machine_keeps_them(aws_config, monkeypatch, tmp_path, stubbed_s3, place):
    environment = SystemEnvironment()
    options = {name: value for name, value in stubbed_s3.spec().options.items() if "key" not in name}
    if place == "container":
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{stubbed_s3.url}/keys")
    elif place == "instance":
        monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", stubbed_s3.url)
    else:
        aws_config.write_text(SIGNED_ON)
        # botocore looks for its home when it is imported
        monkeypatch.setattr("botocore.credentials.SSOProvider._SSO_TOKEN_CACHE_DIR", str(tmp_path))
        monkeypatch.setenv("AWS_ENDPOINT_URL_SSO", stubbed_s3.url)
        cache = tmp_path / f"{hashlib.sha1(b'https://signed.on').hexdigest()}.json"
        ends = date(environment, -1 if place == "expired sign-on" else 3_600_000).strftime("%Y-%m-%dT%H:%M:%SZ")
        cache.write_text(json.dumps({"accessToken": "SECRET", "expiresAt": ends}))
        options["profile"] = "signed-on"
    answer_everything(stubbed_s3, date(environment, 3_600_000))

    if place == "expired sign-on":
        with pytest.raises(StorePermissionError, match="expired") as raised:
            open_store(StoreSpec("s3://bucket", options)).put("a", b"")
        assert "SECRET" not in told(raised.value)
    else:
        open_store(StoreSpec("s3://bucket", options)).put("a", b"")
        assert keys_of_puts(stubbed_s3) == ["MACHINE"]

"""A server of S3 and IAM that asks who it is: the locked moto in a process of its own, with its policies in force.

moto looks once, while it is imported, whether it is to enforce; hence the process.  Until :meth:`GuardedServer.guard`
everybody may do everything.  moto ignores the ``Condition``s of policies, and asks of a bulk delete only whether the
caller may delete the bucket; here each key is asked for, as AWS does.  The server's time is moved on by its tests.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3  # noqa: TID251  users and their policies are made past every client of ours
from botocore.config import Config  # noqa: TID251  the same
from moto.core.utils import utcnow
from moto.iam.access_control import PermissionResult
from moto.s3.exceptions import BucketAccessDeniedError, S3AccessDeniedError
from moto.s3.models import FakeBucket
from moto.s3.responses import S3Response

from txntable.testing.moto_server import LockedMotoServer

REGION = "us-east-1"
_MODULE = "tests.integration.guarded_server"
_ROOT = Path(__file__).parents[2]
_permission_of_bucket = FakeBucket.get_permission
_delete_keys = S3Response._bucket_response_delete_keys


class GuardedServer:
    """The server, as a context manager.

    Parameters
    ----------
    bucket : str
        Made at the start.
    """

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self.endpoint = ""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> GuardedServer:
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE, self.bucket],
            cwd=_ROOT,
            env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "1000"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.endpoint = self._line()
        assert self.endpoint, "the server has not started"
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            # The end of its standard input is the end of the server.
            self._process.communicate()

    def user(self, name: str, *policies: Mapping[str, Any]) -> dict[str, str]:
        """Make a user with inline policies; return the storage options of its key."""
        iam = self.client("iam")
        iam.create_user(UserName=name)
        for number, policy in enumerate(policies):
            iam.put_user_policy(UserName=name, PolicyName=f"p{number}", PolicyDocument=json.dumps(policy))
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return {
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }

    def guard(self) -> None:
        """Enforce from now on."""
        request = urllib.request.Request(
            f"{self.endpoint}/moto-api/reset-auth", method="POST", data=b"0", headers={"Content-Type": "text/plain"}
        )
        with urllib.request.urlopen(request):
            pass

    def advance_ms(self, milliseconds: int) -> None:
        """Let the store's time pass; the clocks of its clients go on as they did."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{milliseconds}\n")
        self._process.stdin.flush()
        assert self._line() == "advanced"

    def _line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def client(self, service: str, options: Mapping[str, str] | None = None) -> Any:
        """Return boto3's client, with the keys of `options`; it sends every request once."""
        keys = options or {}
        return boto3.client(
            service,
            region_name=REGION,
            endpoint_url=self.endpoint,
            aws_access_key_id=keys.get("AWS_ACCESS_KEY_ID", "root"),
            aws_secret_access_key=keys.get("AWS_SECRET_ACCESS_KEY", "root"),
            config=Config(retries={"total_max_attempts": 1}),
        )


# -- in the server's process --------------------------------------------------------------------


def _delete_each(response: S3Response, bucket_name: str, authenticated: bool = True) -> Any:
    """Delete the keys that the caller may, and answer ``AccessDenied`` for each other; in place of moto's method.

    `authenticated` is what moto found for the bucket; who the caller is was asked before.
    """

    def permission(bucket: FakeBucket, action: str, arn: str) -> Any:
        if _may_delete(response, bucket_name, arn.partition("/")[2]):
            return _permission_of_bucket(bucket, action, arn)
        return PermissionResult.DENIED

    # The server answers one request at a time.
    with patch.object(FakeBucket, "get_permission", permission):
        return _delete_keys(response, bucket_name)


def _may_delete(response: S3Response, bucket_name: str, key: str) -> bool:
    try:
        response._authenticate_and_authorize_s3_action(bucket_name=bucket_name, key_name=key)
    except (BucketAccessDeniedError, S3AccessDeniedError):
        return False
    return True


def _serve(bucket: str) -> None:
    """Serve until the standard input ends; each line of it says how many milliseconds pass."""
    passed = dt.timedelta()
    with (
        patch.object(S3Response, "_bucket_response_delete_keys", _delete_each),
        patch("moto.s3.models.utcnow", lambda: utcnow() + passed),
        LockedMotoServer(bucket) as server,
    ):
        _say(server.endpoint)
        for line in sys.stdin:
            passed += dt.timedelta(milliseconds=int(line))
            _say("advanced")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _serve(sys.argv[1])

"""A server of S3 and IAM that asks who it is: the locked moto in a process of its own, with its policies in force.

moto looks once, while it is imported, whether it is to enforce; hence the process.  Until :meth:`GuardedServer.guard`
everybody may do everything.  moto ignores the ``Condition``s of policies.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from typing import Any

import boto3  # noqa: TID251  users and their policies are made past every client of ours
from botocore.config import Config  # noqa: TID251  the same

REGION = "us-east-1"
_SERVE = """
import sys
from txntable.testing.moto_server import LockedMotoServer
with LockedMotoServer(sys.argv[1]) as server:
    print(server.endpoint, flush=True)
    sys.stdin.read()
"""


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
            [sys.executable, "-c", _SERVE, self.bucket],
            env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "1000"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.endpoint = self._process.stdout.readline().strip()
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

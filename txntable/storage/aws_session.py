"""boto3 for this project: sessions and S3 clients that go by the storage options.

Keys that the options do not give come from boto3's chain: environment, profile, single sign-on,
web identity, container, instance.  Options win and are never mixed with it: keys that are given
take no session token from the environment.
A role is assumed with the keys so found, or with a token file, and assumed again before its keys
expire.  Must not know what objects mean.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import boto3  # noqa: TID251
from botocore import UNSIGNED  # noqa: TID251
from botocore.config import Config  # noqa: TID251
from botocore.credentials import (  # noqa: TID251
    AssumeRoleCredentialFetcher,
    AssumeRoleWithWebIdentityCredentialFetcher,
    Credentials,
    DeferredRefreshableCredentials,
    FileWebIdentityTokenLoader,
)
from botocore.session import Session  # noqa: TID251

from txntable.errors import InvalidConfigError, StorePermissionError, TxnTableError
from txntable.storage.aws_configuration import configured_endpoint, configured_session, endpoint_without_bucket
from txntable.storage.credentials import key_failure
from txntable.storage.object_store import StoreSpec
from txntable.storage.storage_options import ClientSettings, parse_options

SESSION_OPTIONS = frozenset(
    {"access_key_id", "secret_access_key", "session_token", "profile", "role_arn", "role_session_name", "external_id"}
    | {"web_identity_token_file", "sts_endpoint"}
)
"""What a session is opened with; obstore is given its keys, and none of these."""
_OF_A_ROLE = frozenset({"external_id", "role_session_name", "sts_endpoint", "web_identity_token_file"})
_SESSION_NAME = "txntable"


def open_session(settings: ClientSettings) -> boto3.Session:
    """Return a session with the keys, profile, role and region that the options say.

    Parameters
    ----------
    settings : ClientSettings
        Of a store of the kind ``"s3"``.

    Raises
    ------
    InvalidConfigError
        The options contradict each other, or there is no such profile: correct them.
    StorePermissionError
        There are no credentials to assume the role with.
    """
    return boto3.Session(botocore_session=open_botocore_session(settings))


def open_botocore_session(settings: ClientSettings) -> Session:
    """Return the session that :func:`open_session` wraps; raises what that raises."""
    options = settings.store
    role, token_file = _role(options)
    _check(options, role)
    source = configured_session(settings)
    if "access_key_id" in options:
        keys = options["access_key_id"], options["secret_access_key"], options.get("session_token")
        source.set_credentials(*keys)
    if role is None:
        return source
    session = configured_session(settings)
    session.register_component("credential_provider", _Assumed(source, role, token_file, options))
    return session


def find_credentials(session: Session) -> Credentials:
    """Return the session's credentials, which renew themselves where they expire.

    Raises
    ------
    StorePermissionError
        There are none, or what should give them failed; the message says how to give some.
    """
    try:
        found = session.get_credentials()
    except TxnTableError:
        raise
    except Exception as error:
        # a helper that a profile names fails in any way
        raise key_failure(error) from error
    if found is None:
        raise StorePermissionError(
            "no AWS credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile, or pass "
            "aws_access_key_id and aws_secret_access_key as storage options"
        )
    return found


def s3_client(spec: StoreSpec) -> Any:
    """Return botocore's S3 client for the store's bucket, for what obstore has no call for.

    Credentials, region, endpoint, path style, timeouts, proxy, certificates and the requester's
    paying are the store's; how objects are encrypted is said in each call.

    Parameters
    ----------
    spec : StoreSpec
        With a URL ``s3://…`` or ``s3a://…``.

    Raises
    ------
    InvalidConfigError
        A storage option is unknown or unusable.
    StorePermissionError
        There are no credentials at all.
    """
    settings = parse_options("s3", spec.options)
    session = open_botocore_session(settings)
    style = "virtual" if settings.flag("virtual_hosted_style_request") else "path"
    config = Config(s3={"addressing_style": style})
    if settings.flag("skip_signature"):
        config = config.merge(Config(signature_version=UNSIGNED))
    else:
        find_credentials(session)
    endpoint = configured_endpoint(settings, session)
    if endpoint is not None:
        endpoint = endpoint_without_bucket(endpoint, urlsplit(spec.url).netloc)
    client = boto3.Session(botocore_session=session).client("s3", endpoint_url=endpoint, config=config)
    if settings.flag("request_payer"):
        client.meta.events.register("before-sign.s3", _say_that_the_requester_pays)
    return client


class _Assumed:
    """botocore's place for credentials, holding those of one role."""

    def __init__(self, source: Session, role: str, token_file: str | None, options: Mapping[str, str]) -> None:
        self._source = source
        self._role = role
        self._token_file = token_file
        self._options = options

    def load_credentials(self) -> Credentials:
        """Return credentials that assume the role when first used, and again before they expire."""
        create_client = functools.partial(self._source.create_client, endpoint_url=self._options.get("sts_endpoint"))
        arguments = {"RoleSessionName": self._options.get("role_session_name", _SESSION_NAME)}
        if self._token_file is not None:
            loader = FileWebIdentityTokenLoader(self._token_file)
            fetcher = AssumeRoleWithWebIdentityCredentialFetcher(create_client, loader, self._role, arguments)
            return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role-with-web-identity")
        if "external_id" in self._options:
            arguments["ExternalId"] = self._options["external_id"]
        keys = self._source.get_credentials()
        if keys is None:
            raise StorePermissionError(
                "no AWS credentials found to assume the role with; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                "or a profile, or give a web_identity_token_file",
                role_arn=self._role,
            )
        fetcher = AssumeRoleCredentialFetcher(create_client, keys, self._role, arguments)
        return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")


def _role(options: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the role that the options ask for, and the token file that it is assumed with."""
    role, token_file = options.get("role_arn"), options.get("web_identity_token_file")
    if token_file is not None:
        return role or os.environ.get("AWS_ROLE_ARN"), token_file
    if role is not None and "AWS_ROLE_ARN" not in os.environ and "access_key_id" not in options:
        # half of a web identity is in the environment: the option is its other half
        return role, os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE")
    return role, None


def _check(options: Mapping[str, str], role: str | None) -> None:
    if ("access_key_id" in options) != ("secret_access_key" in options):
        raise InvalidConfigError("access_key_id and secret_access_key go together; give both or none")
    if "session_token" in options and "access_key_id" not in options:
        raise InvalidConfigError("a session token goes with its keys; give access_key_id and secret_access_key too")
    without_role = sorted(_OF_A_ROLE & options.keys())
    if role is None and without_role:
        raise InvalidConfigError("these options are of a role; give role_arn too", options=",".join(without_role))
    if "web_identity_token_file" in options and {"external_id", "access_key_id"} & options.keys():
        raise InvalidConfigError("a web identity takes no keys and no external id; leave one out", role_arn=role)


def _say_that_the_requester_pays(request: Any, **_: object) -> None:
    request.headers["x-amz-request-payer"] = "requester"

"""The keys that S3's requests are signed with, for as long as a job runs.

obstore calls :class:`S3Keys` before it signs and keeps what it is given until it expires.  What
expires is asked for again each minute, and each time when little of it is left: botocore renews
keys from ten minutes before their end, so that a request never goes out with keys that ended.
Keys are never printed and never pickled: each process asks its own chain.  Keys that the store refuses before their
end, or that have none, are asked for anew by ``RemoteStore``.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.credentials import Credentials, RefreshableCredentials  # noqa: TID251
from botocore.exceptions import ClientError, HTTPClientError  # noqa: TID251
from botocore.exceptions import ConnectionError as NoConnectionError  # noqa: TID251

from txntable.errors import StorePermissionError, StoreUnavailableError, TxnTableError
from txntable.runtime.environment import Environment

_KEPT_SECONDS = 60
_FAILING_STATUS = 500
_THROTTLED = frozenset(
    {"Throttling", "ThrottlingException", "RequestLimitExceeded", "SlowDown", "IDPCommunicationError"}
)
_UNANSWERED = (NoConnectionError, HTTPClientError)


class S3Keys:
    """Where obstore gets the keys from.

    Parameters
    ----------
    credentials : Credentials
        Of a session (:func:`txntable.storage.aws_session.find_credentials`).
    environment : Environment
        Says until when obstore may keep the keys.
    """

    def __init__(self, credentials: Credentials, environment: Environment) -> None:
        self._credentials = credentials
        self._environment = environment

    def __repr__(self) -> str:
        return f"S3Keys(method={self._credentials.method!r})"

    def __call__(self) -> dict[str, Any]:
        """Return the present keys, and until when they may be kept.

        Raises
        ------
        StoreUnavailableError
            What gives the keys does not answer; try again.
        StorePermissionError
            It refused, or what it gave has expired.
        """
        access_key_id, secret_access_key, token = self.current()
        return {
            "access_key_id": access_key_id,
            "secret_access_key": secret_access_key,
            "token": token,
            "expires_at": self._kept_until(),
        }

    def current(self) -> tuple[str, str, str | None]:
        """Return the present keys: access key id, secret key, session token; raises what a call raises."""
        try:
            keys = self._credentials.get_frozen_credentials()
        except Exception as error:
            raise key_failure(error) from error
        return keys.access_key, keys.secret_key, keys.token

    def _kept_until(self) -> datetime | None:
        if not isinstance(self._credentials, RefreshableCredentials):
            return None
        now = datetime.fromtimestamp(self._environment.instant().wall_ms / 1000, UTC)
        if self._credentials.refresh_needed(2 * _KEPT_SECONDS):
            return now
        return now + timedelta(seconds=_KEPT_SECONDS)


def key_failure(error: Exception) -> TxnTableError:
    """Return what to raise when keys could not be had, by what the caller does then.

    Parameters
    ----------
    error : Exception
        botocore's; its text names no keys.
    """
    reason = " ".join(str(error).split())
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        passing = status >= _FAILING_STATUS or error.response.get("Error", {}).get("Code") in _THROTTLED
    else:
        passing = isinstance(error, _UNANSWERED)
    if passing:
        return StoreUnavailableError("what gives the AWS keys did not answer; try again", reason=reason)
    return StorePermissionError(
        "no valid AWS keys could be had; sign in again, or mend the profile, role or token", reason=reason
    )

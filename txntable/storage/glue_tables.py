"""The tables of one database of AWS Glue's Data Catalog, as the documents that Glue has them in.

Owns how Glue is spoken to: keys, role, region, timeouts, proxy and certificates are those of the warehouse's storage
options; pages are followed; what passes by itself, throttling in the first place, is tried again for as long as a
store's calls are.  Each change may be made twice: what a lost answer leaves open, the next look tells.
Must not know what a table means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import boto3  # noqa: TID251
from botocore.config import Config  # noqa: TID251
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError  # noqa: TID251

from txntable.errors import (
    InvalidConfigError,
    InvalidRequestError,
    StorePermissionError,
    StoreUnavailableError,
    TxnTableError,
)
from txntable.runtime.environment import Environment
from txntable.storage.aws_configuration import checked_endpoint
from txntable.storage.aws_session import find_credentials, open_botocore_session
from txntable.storage.object_store import StoreSpec
from txntable.storage.retries import Attempts
from txntable.storage.storage_options import parse_options
from txntable.storage.written import Written

Document = dict[str, Any]
T = TypeVar("T")

_PASSING = frozenset(
    {"InternalServiceException", "OperationTimeoutException", "RequestLimitExceeded", "ServiceUnavailable"}
    | {"Throttling", "ThrottlingException", "TooManyRequestsException", "ResourceNotReadyException"}
)
_REFUSED = frozenset(
    {"AccessDeniedException", "AccessDenied", "UnrecognizedClientException", "InvalidSignatureException"}
    | {"ExpiredTokenException", "GlueEncryptionException", "IncompleteSignature", "MissingAuthenticationToken"}
)
_MOVED = frozenset({"AlreadyExistsException", "ConcurrentModificationException", "VersionMismatchException"})
_ABSENT = "EntityNotFoundException"
_FORBIDDEN_STATUS = 403
_FAILING_STATUS = 500


class GlueTables:
    """The tables of a database.

    Parameters
    ----------
    spec : StoreSpec
        The warehouse's store, in S3: whose storage options count here, too.
    database : str
        The database's name.
    endpoint : str, optional
        Glue's; default: what AWS's own tools would use (``AWS_ENDPOINT_URL_GLUE``, a profile), else the region's.  The
        store's own endpoint is S3's.
    environment : Environment
        Waits between attempts.

    Raises
    ------
    InvalidConfigError
        A storage option, or the endpoint, cannot be used.
    StorePermissionError
        There are no credentials.
    """

    def __init__(self, spec: StoreSpec, database: str, endpoint: str | None, environment: Environment) -> None:
        settings = parse_options("s3", spec.options)
        session = open_botocore_session(settings)
        find_credentials(session)
        # One loop tries again, and it is ours.
        config = Config(retries={"total_max_attempts": 1})
        self._client = boto3.Session(botocore_session=session).client(
            "glue", endpoint_url=checked_endpoint(settings, endpoint), config=config
        )
        self._timeout_ms, self._environment = settings.retry_timeout_ms, environment
        self._database = database

    def list(self) -> Iterator[Document]:
        """Yield every table and view of the database.

        Raises
        ------
        InvalidRequestError
            There is no such database: create it, or correct its name.
        StorePermissionError, StoreUnavailableError
            Glue refused, or did not answer.
        """
        token: dict[str, str] = {}
        while True:
            page = self._asked("glue:GetTables", partial(self._client.get_tables, DatabaseName=self._database, **token))
            if page is None:
                raise InvalidRequestError(
                    "glue has no such database; create it, or correct its name", database=self._database
                )
            yield from page["TableList"]
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}

    def get(self, name: str) -> Document | None:
        """Return a table; ``None``: there is none."""
        found = self._asked("glue:GetTable", partial(self._client.get_table, DatabaseName=self._database, Name=name))
        table: Document | None = None if found is None else found["Table"]
        return table

    def create(self, table: Mapping[str, Any]) -> Written:
        """Create a table, unless there is one of its name."""
        return self._written(
            "glue:CreateTable", partial(self._client.create_table, DatabaseName=self._database, TableInput=table)
        )

    def update(self, table: Mapping[str, Any], version: str | None) -> Written:
        """Replace a table, if it has this version still; its earlier versions are not kept."""
        condition = {} if version is None else {"VersionId": version}
        return self._written(
            "glue:UpdateTable",
            lambda: self._client.update_table(
                # Each version that is kept counts towards a quota, and nobody goes back to one.
                DatabaseName=self._database,
                TableInput=table,
                SkipArchive=True,
                **condition,
            ),
        )

    def delete(self, name: str) -> Written:
        """Delete a table; one that is not there is deleted.  Glue has no condition for it."""
        self._asked("glue:DeleteTable", partial(self._client.delete_table, DatabaseName=self._database, Name=name))
        return Written.DONE

    def _written(self, action: str, call: Callable[[], object]) -> Written:
        try:
            # What is not there any more was somebody's, too: a table, or the whole database, which the next look tells.
            return Written.OVERTAKEN if self._asked(action, call) is None else Written.DONE
        except _Moved:
            return Written.OVERTAKEN

    def _asked(self, action: str, call: Callable[[], T]) -> T | None:
        """Return Glue's answer; ``None``: it does not have what was asked for."""
        attempts = Attempts(self._timeout_ms, self._environment)
        while True:
            try:
                return call()
            except ClientError as error:
                code = error.response["Error"]["Code"]
                if code == _ABSENT:
                    return None
                if code in _MOVED:
                    raise _Moved from error
                if not _passes(error) or not attempts.wait():
                    raise _failure(error, action, attempts.tried_for_ms) from error
            except HTTPClientError as error:
                if not attempts.wait():
                    raise _failure(error, action, attempts.tried_for_ms) from error
            except BotoCoreError as error:
                raise InvalidConfigError("glue cannot be asked; correct the options", reason=str(error)) from error


class _Moved(Exception):
    """Somebody else changed the table before."""


def _passes(error: ClientError) -> bool:
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status >= _FAILING_STATUS or error.response["Error"]["Code"] in _PASSING


def _failure(error: ClientError | HTTPClientError, action: str, tried_for_ms: int) -> TxnTableError:
    reason = " ".join(str(error).split())
    if not isinstance(error, ClientError) or _passes(error):
        return StoreUnavailableError(
            "glue gave no usable answer; run this again", action=action, reason=reason, tried_for_ms=tried_for_ms
        )
    code = error.response["Error"]["Code"]
    if code in _REFUSED or error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == _FORBIDDEN_STATUS:
        return StorePermissionError(
            "glue refused the request for these credentials; the role needs this action, and where lake formation "
            "manages the database, its grant",
            action=action,
            code=code,
            reason=reason,
        )
    return InvalidRequestError("glue does not take the table as it is", action=action, code=code, reason=reason)

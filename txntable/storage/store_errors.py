"""The codes by which a store says why it did not do a request, and what each asks of the caller.

Owns the table, S3's codes in the first place; what other stores add to them stands there too.  A refusal for want of
a permission (``AccessDenied``) is not in it: :mod:`txntable.storage.refusal` names the permission.
Pure.  Must not know which request it was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from txntable.errors import (
    InvalidConfigError,
    StorePermissionError,
    StoreUnavailableError,
    StoreUnsuitableError,
    TxnTableError,
)

_RAISED = re.compile(r"External AWS credential provider: (\w+): ([^\n]*)")

Meaning: TypeAlias = tuple[type[TxnTableError], str]
"""The error to raise, and its message with the remedy."""

_TOKEN = "the AWS session token is not valid any more; get another"
_CLOCK = "this machine's clock and the store's are too far apart; set this machine's clock"
_ACCOUNT = "the store has closed this account, or its owner has not paid; ask the account's owner"
_KEY_DISABLED = "the KMS key that encrypts the bucket cannot be used now; enable it"
_KEY_WRONG = "there is no such KMS key; correct sse_kms_key_id, or the bucket's default encryption"
_REGION = "the bucket lies in another region; set aws_region to its own"
_BUSY = "the store is busy and asks for fewer requests; try again later"
_FAILED = "the store failed; try again"
_FULL = "the store is full, or its quota is used up; make room, then try again"

MEANINGS: Mapping[str, Meaning] = {
    # the keys, and who they belong to
    "SignatureDoesNotMatch": (
        StorePermissionError,
        "the secret key is not that of the access key id, or a proxy changed the request; correct the keys",
    ),
    "InvalidAccessKeyId": (StorePermissionError, "the store knows no such access key id; correct the keys"),
    "ExpiredToken": (StorePermissionError, _TOKEN),
    "InvalidToken": (StorePermissionError, _TOKEN),
    "TokenRefreshRequired": (StorePermissionError, _TOKEN),
    "RequestTimeTooSkewed": (StorePermissionError, _CLOCK),
    "RequestExpired": (StorePermissionError, _CLOCK),
    "AccountProblem": (StorePermissionError, _ACCOUNT),
    "AllAccessDisabled": (StorePermissionError, _ACCOUNT),
    "NotSignedUp": (StorePermissionError, _ACCOUNT),
    "AccountIsDisabled": (StorePermissionError, _ACCOUNT),
    "InvalidSecurity": (StorePermissionError, "the store does not take these keys; correct them"),
    "AuthenticationFailed": (StorePermissionError, "the store does not take these keys; correct them"),
    "InvalidPayer": (StorePermissionError, "the bucket's reader pays and this account may not; ask its owner"),
    # the key that encrypts
    "KMS.DisabledException": (StorePermissionError, _KEY_DISABLED),
    "KMS.InvalidStateException": (StorePermissionError, _KEY_DISABLED),
    "KMS.KMSInvalidStateException": (StorePermissionError, _KEY_DISABLED),
    "KMS.InvalidKeyUsageException": (InvalidConfigError, _KEY_WRONG),
    "KMS.NotFoundException": (InvalidConfigError, _KEY_WRONG),
    "KMS.ThrottlingException": (StoreUnavailableError, _BUSY),
    "KMS.KMSInternalException": (StoreUnavailableError, _FAILED),
    "KMS.DependencyTimeoutException": (StoreUnavailableError, _FAILED),
    # the storage options
    "AuthorizationHeaderMalformed": (InvalidConfigError, _REGION),
    "PermanentRedirect": (InvalidConfigError, _REGION),
    "IllegalLocationConstraintException": (InvalidConfigError, _REGION),
    "InvalidBucketName": (InvalidConfigError, "no bucket can have this name; correct the url"),
    "InvalidEncryptionAlgorithmError": (InvalidConfigError, "there is no such encryption; correct the storage options"),
    # what this store cannot do
    "NotImplemented": (
        StoreUnsuitableError,
        "the store does not know this request, which a warehouse needs; choose S3, GCS, Azure or a local disk",
    ),
    "MethodNotAllowed": (
        StoreUnsuitableError,
        "the store does not allow this request here; give the address of its S3 API as the endpoint",
    ),
    "InvalidObjectState": (
        StoreUnsuitableError,
        "the object was archived and cannot be read; restore it, and end the lifecycle rule that archives",
    ),
    # what passes
    "SlowDown": (StoreUnavailableError, _BUSY),
    "SlowDownRead": (StoreUnavailableError, _BUSY),
    "SlowDownWrite": (StoreUnavailableError, _BUSY),
    "RequestLimitExceeded": (StoreUnavailableError, _BUSY),
    "Throttling": (StoreUnavailableError, _BUSY),
    "ThrottlingException": (StoreUnavailableError, _BUSY),
    "TooManyRequests": (StoreUnavailableError, _BUSY),
    "ServerBusy": (StoreUnavailableError, _BUSY),
    "ServiceUnavailable": (StoreUnavailableError, _FAILED),
    "InternalError": (StoreUnavailableError, _FAILED),
    "OperationTimedOut": (StoreUnavailableError, _FAILED),
    "OperationAborted": (StoreUnavailableError, "another request for the same object was under way; try again"),
    "RequestTimeout": (StoreUnavailableError, "the store waited too long for the request's body; try again"),
    "XMinioStorageFull": (StoreUnavailableError, _FULL),
    "QuotaExceeded": (StoreUnavailableError, _FULL),
    "XMinioAdminBucketQuotaExceeded": (StoreUnavailableError, _FULL),
}
"""Code -> what it means."""

_CODE = re.compile(r"<Code>([A-Za-z0-9.]+)</Code>|\(code: ([A-Za-z0-9.]+)\)")
_STATUS = re.compile(r"status code: (\d{3})\b")
# An answer to HEAD has no body, and some stores send none at all: the status is all that is told.
_BY_STATUS: Mapping[str, str] = {"501": "NotImplemented", "405": "MethodNotAllowed", "507": "QuotaExceeded"}


def error_code(text: str) -> str | None:
    """Return the store's code in the text of an error of obstore, or ``None`` when it gave none.

    Parameters
    ----------
    text : str
        Without secrets (:func:`txntable.storage.failure_words.without_secrets`).
    """
    named = _CODE.search(text)
    if named is not None:
        return named[1] or named[2]
    status = http_status(text)
    return None if status is None else _BY_STATUS.get(status)


def http_status(text: str) -> str | None:
    """Return the three digits of the answer's status, or ``None`` when there was no answer."""
    found = _STATUS.search(text)
    return None if found is None else found[1]


def meaning_of(code: str | None) -> Meaning | None:
    """Return what a code asks of the caller, or ``None`` when the table does not have it.

    Parameters
    ----------
    code : str or None
        As :func:`error_code` returns it.
    """
    return None if code is None else MEANINGS.get(code)


def key_failure_in(text: str) -> TxnTableError | None:
    """Return the error that :class:`txntable.storage.credentials.S3Keys` raised, when obstore's text tells of one.

    Parameters
    ----------
    text : str
        Of an error of obstore, which keeps no more of an error of ours than its words.
    """
    found = _RAISED.search(text)
    if found is None:
        return None
    return (StoreUnavailableError if found[1] == StoreUnavailableError.__name__ else StorePermissionError)(found[2])

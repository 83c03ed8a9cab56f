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
    StoreFullError,
    StorePermissionError,
    StoreUnavailableError,
    StoreUnsuitableError,
    TxnTableError,
)

_RAISED = re.compile(r"External AWS credential provider: (\w+): ([^\n]*)")

Meaning: TypeAlias = tuple[type[TxnTableError], str]
"""The error to raise, and its message with the remedy."""

_MEANINGS: Mapping[type[TxnTableError], Mapping[str, str]] = {
    # the keys, who they belong to, and the key that encrypts
    StorePermissionError: {
        "SignatureDoesNotMatch": (
            "the secret key is not that of the access key id, or a proxy changed the request; correct the keys"
        ),
        "InvalidAccessKeyId": "the store knows no such access key id; correct the keys",
        "ExpiredToken InvalidToken TokenRefreshRequired": "the AWS session token is not valid any more; get another",
        "RequestTimeTooSkewed RequestExpired": (
            "this machine's clock and the store's are too far apart; set this machine's clock"
        ),
        "AccountProblem AllAccessDisabled NotSignedUp AccountIsDisabled": (
            "the store has closed this account, or its owner has not paid; ask the account's owner"
        ),
        "InvalidSecurity AuthenticationFailed": "the store does not take these keys; correct them",
        "InvalidPayer": "the bucket's reader pays and this account may not; ask its owner",
        "KMS.DisabledException KMS.InvalidStateException KMS.KMSInvalidStateException": (
            "the KMS key that encrypts the bucket cannot be used now; enable it"
        ),
    },
    # the storage options
    InvalidConfigError: {
        "KMS.InvalidKeyUsageException KMS.NotFoundException": (
            "there is no such KMS key; correct sse_kms_key_id, or the bucket's default encryption"
        ),
        "AuthorizationHeaderMalformed PermanentRedirect IllegalLocationConstraintException": (
            "the bucket lies in another region; set aws_region to its own"
        ),
        "InvalidBucketName": "no bucket can have this name; correct the url",
        "InvalidEncryptionAlgorithmError": "there is no such encryption; correct the storage options",
    },
    # what this store cannot do
    StoreUnsuitableError: {
        "NotImplemented": (
            "the store does not know this request, which a warehouse needs; choose S3, GCS, Azure or a local disk"
        ),
        "MethodNotAllowed": (
            "the store does not allow this request here; give the address of its S3 API as the endpoint"
        ),
        "InvalidObjectState": (
            "the object was archived and cannot be read; restore it, and end the lifecycle rule that archives"
        ),
    },
    # what passes
    StoreUnavailableError: {
        "KMS.ThrottlingException SlowDown SlowDownRead SlowDownWrite"
        " RequestLimitExceeded Throttling ThrottlingException TooManyRequests ServerBusy": (
            "the store is busy and asks for fewer requests; try again later"
        ),
        "KMS.KMSInternalException KMS.DependencyTimeoutException"
        " ServiceUnavailable InternalError OperationTimedOut": "the store failed; try again",
        "OperationAborted": "another request for the same object was under way; try again",
        "RequestTimeout": "the store waited too long for the request's body; try again",
    },
    StoreFullError: {
        "XMinioStorageFull QuotaExceeded XMinioAdminBucketQuotaExceeded": (
            "the store is full, or its quota is used up; make room, then try again"
        ),
    },
}
MEANINGS: Mapping[str, Meaning] = {
    code: (error, message)
    for error, messages in _MEANINGS.items()
    for codes, message in messages.items()
    for code in codes.split()
}
"""Code -> what it means."""

_CODE = re.compile(r"<Code>([A-Za-z0-9.]+)</Code>|\(code: ([A-Za-z0-9.]+)\)")
_STATUS = re.compile(r"status code: (\d{3})\b")
# An answer to HEAD has no body, and some stores send none at all: the status is all that is told.
_BY_STATUS: Mapping[str, str] = {"501": "NotImplemented", "405": "MethodNotAllowed", "507": "QuotaExceeded"}

_OUTDATED = frozenset({"ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId"})
_REFUSING_STATUS = frozenset({"400", "401", "403"})
RENEWED = "External AWS credential provider: StoreUnavailableError: the keys have been renewed since; try again"
"""The text of an error in place of a refusal of keys that were renewed since, as obstore tells of one of S3Keys'."""


def keys_may_be_outdated(text: str) -> bool:
    """Return whether a store has refused keys in a way in which it refuses those that have ended or were taken away.

    Parameters
    ----------
    text : str
        Of an error of obstore.  The answer to a HEAD has no body, and so no code.
    """
    code = error_code(text)
    return code in _OUTDATED if code is not None else http_status(text) in _REFUSING_STATUS


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

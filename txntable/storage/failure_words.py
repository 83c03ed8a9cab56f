"""What the words of a store's failure tell, and what of them may be told on.

Pure.  S3 answers with the session token, or with the whole request that it was to sign: such
parts are taken out before an error is raised or chained.  Must not know which call failed.
"""

from __future__ import annotations

import re

from obstore.exceptions import BaseError

from txntable.errors import InvalidConfigError

_SECRET = re.compile(
    r"<(Token-\d+|CanonicalRequest|CanonicalRequestBytes|StringToSign|StringToSignBytes|SignatureProvided)>"
    r".*?(</\1>|$)",
    re.DOTALL,
)
# an address says nothing that the path does not, and an upload's is long; the rest is S3's envelope
_NOT_TOLD = re.compile(
    r" https?://\S+|<\?xml[^>]*\?>\s*|</?Error[^>]*>|<(RequestId|HostId|Resource|BucketName|Key)>.*?</\1>"
)
_REASON_CHARACTERS = 300
_UNREACHED = re.compile(r"\bkind: Connect\b")
# Without a user and a password before the host.
_ORIGIN = re.compile(r"(https?://)(?:[^/@\s]*@)?([\w.:\[\]-]+)")
_WRONG_REGION = re.compile(r"S3 error: .*redirect without LOCATION|AuthorizationHeaderMalformed.*\bregion\b")
_RIGHT_REGION = re.compile(r"expecting '([a-z0-9-]+)'")
_CHECKSUM_WANTED = re.compile(r"Content-MD5 or x-amz-", re.IGNORECASE)


def without_secrets(error: Exception) -> Exception:
    """Return the error, or one of its kind without the secrets that the store sent back.

    Parameters
    ----------
    error : Exception
        obstore's.
    """
    text = str(error)
    told = _SECRET.sub(r"<\1>...\2", text)
    if told == text:
        return error
    return type(error)(told) if isinstance(error, BaseError) else BaseError(told)


def short_reason(text: str) -> str:
    """Return what an error of obstore says in the first place, on one line: S3's code and message among it.

    Parameters
    ----------
    text : str
        Already without secrets.
    """
    first = text.partition("\n\nDebug source")[0]
    return " ".join(_NOT_TOLD.sub("", first).split())[:_REASON_CHARACTERS]


def unreached_endpoint(text: str) -> str | None:
    """Return the scheme, host and port to which no connection could be made; ``None``: it failed otherwise.

    Parameters
    ----------
    text : str
        Of an error of obstore, already without secrets.
    """
    found = _ORIGIN.search(text) if _UNREACHED.search(text) else None
    return None if found is None else f"{found[1]}{found[2]}"


def misconfiguration(text: str, url: str) -> InvalidConfigError | None:
    """Return the error that names the storage option to set, when S3 says that one is wrong or wanting.

    Parameters
    ----------
    text : str
        Of an error of obstore.
    url : str
        The store's.
    """
    if _WRONG_REGION.search(text):
        named = _RIGHT_REGION.search(text)
        region = None if named is None else named[1]
        return InvalidConfigError(
            "the bucket lies in another region; set aws_region to its own", url=url, bucket_region=region
        )
    if _CHECKSUM_WANTED.search(text):
        return InvalidConfigError("a bucket with object lock wants checksums; set checksum_algorithm=SHA256", url=url)
    return None

"""What a store's refusal says, and which permission would have allowed the request.

Pure.  Owns how obstore words a refused request; must not know which role is to have which permission.
"""

from __future__ import annotations

import re

_REFUSED = re.compile(r"non-2xx status code: 40[13]\b|code: AccessDenied\b")
_NAMED = re.compile(r"is not authorized to perform: ([a-z0-9-]+:[A-Za-z]+)")
_REQUEST = re.compile(r"Error performing (?P<method>[A-Z]+) \S*?(?P<query>\?\S*)? in \S+s\b")
_BULK_DELETE = "DeleteObjects request"

# S3 says of an absent object that it is absent to those only who may list its bucket.
_READ = "s3:GetObject,s3:ListBucket"
_ACTIONS = {"GET": _READ, "HEAD": _READ, "PUT": "s3:PutObject", "POST": "s3:PutObject", "DELETE": "s3:DeleteObject"}


def is_refusal(text: str) -> bool:
    """Return whether an error's text is a refusal for want of a permission, where its type does not say so."""
    return _REFUSED.search(text) is not None


def missing_s3_action(text: str) -> str | None:
    """Return the IAM action, or actions, that a request to S3 was refused for.

    Parameters
    ----------
    text : str
        The whole text of obstore's error.

    Returns
    -------
    str or None
        What S3 names, else what the request needs; ``None``: the text does not tell which request it was.
    """
    named = _NAMED.search(text)
    if named is not None:
        return named[1]
    request = _REQUEST.search(text)
    if request is None:
        return "s3:DeleteObject" if _BULK_DELETE in text else None
    return _action(request["method"], request["query"] or "")


def _action(method: str, query: str) -> str | None:
    if "list-type=" in query:
        return "s3:ListBucket"
    if method == "DELETE" and "uploadId=" in query:
        return "s3:AbortMultipartUpload"
    if method == "POST" and query.startswith("?delete"):
        return "s3:DeleteObject"
    return _ACTIONS.get(method)

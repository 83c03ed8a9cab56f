"""The digest of a segment's file, by which a log knows its bytes (PROTOCOL.md §5.2).

Owns its text, ``<algorithm>:<hex digits>``, and what is said of a file that has another.  Writers of this version
take SHA-256; a digest of an algorithm that is not known here is not checked by readers, and told by who verifies.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from txntable.errors import DamagedDataError

_ALGORITHM = "sha256"
_TEXT = re.compile(r"[a-z0-9]{1,32}:[0-9a-f]{8,256}")


class SegmentDigest:
    """The digest of bytes that come piece by piece."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def update(self, data: Any) -> None:
        """Take the next bytes (anything with a buffer)."""
        self._hash.update(data)

    @property
    def text(self) -> str:
        """The digest of all bytes so far, as a tag has it."""
        return f"{_ALGORITHM}:{self._hash.hexdigest()}"


class DigestedFile:
    """A file to write to that takes the digest of what goes through it.

    Parameters
    ----------
    file : BinaryIO
        Where the bytes go.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self.digest = SegmentDigest()

    @property
    def closed(self) -> bool:
        """Whether the file is closed; Arrow asks."""
        return bool(self._file.closed)

    def write(self, data: Any) -> int:
        """Add bytes and return their number; raises as the file does."""
        self.digest.update(data)
        return int(self._file.write(data))

    def tell(self) -> int:
        """Return how many bytes were written."""
        return int(self._file.tell())

    def flush(self) -> None:
        """Do nothing: Arrow asks for it."""

    def close(self) -> None:
        """Publish the object; raises as the file does."""
        self._file.close()

    def discard(self) -> None:
        """Close without publishing: nothing appears."""
        self._file.__exit__(_DiscardedError, _DiscardedError(), None)


class _DiscardedError(Exception):
    """Makes an object's writer discard it instead of publishing."""


def digest_of(data: Any) -> str:
    """Return the digest of bytes."""
    digest = SegmentDigest()
    digest.update(data)
    return digest.text


def check_text(text: str) -> str:
    """Return a digest's text when it is one.

    Raises
    ------
    ValueError
        It is none.
    """
    if _TEXT.fullmatch(text) is None:
        raise ValueError("no digest")
    return text


def is_known(said: str) -> bool:
    """Return whether a digest is of an algorithm that can be checked here."""
    return said.startswith(f"{_ALGORITHM}:")


def check_digest(said: str | None, found: str) -> None:
    """Return when bytes are those of the log, as far as can be told.

    Parameters
    ----------
    said : str, optional
        What the log says; ``None``: nothing.
    found : str
        Of the bytes.

    Raises
    ------
    DamagedDataError
        They are others: the file was replaced.
    """
    if said is not None and is_known(said) and said != found:
        raise DamagedDataError("the file has another digest than its row: it was changed or replaced")

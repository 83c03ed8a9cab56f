"""Which paths a store accepts: the same ones in every store, so that a warehouse can be moved (PROTOCOL.md §2).

Pure.  Owns the one reserved name: a segment that begins with :data:`TEMPORARY_PREFIX` is an
unfinished file of :mod:`txntable.storage.local_folder` and never an object.
"""

from __future__ import annotations

from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidRequestError

TEMPORARY_PREFIX = ".unfinished-"

_REFUSED_SEGMENTS = frozenset({"", ".", ".."})


def check_path(path: str) -> str:
    """Return `path` when it can name an object.

    Parameters
    ----------
    path : str
        Relative to the store's root.

    Raises
    ------
    InvalidRequestError
        The path is empty or absolute, or has an empty segment, ``.``, ``..``, a NUL, a
        backslash, or a name reserved for unfinished files; use another.
    """
    segments = path.split("/")
    refused = not _REFUSED_SEGMENTS.isdisjoint(segments) or "\0" in path or "\\" in path
    if TEMPORARY_PREFIX in path:
        refused = refused or any(segment.startswith(TEMPORARY_PREFIX) for segment in segments)
    if not refused:
        return path
    raise InvalidRequestError(
        "a path is relative, without empty segments, '.', '..', backslash, NUL or reserved names", path=shown(path)
    )


def check_folder(prefix: str) -> str:
    """Return the folder `prefix` without a closing ``/``; the empty string is the root.

    Raises
    ------
    InvalidRequestError
        As :func:`check_path`.
    """
    folder = prefix.removesuffix("/")
    return check_path(folder) if folder else ""


def parent_of(path: str) -> str:
    """Return the folder that `path` lies in; the empty string is the root."""
    return path.rpartition("/")[0]

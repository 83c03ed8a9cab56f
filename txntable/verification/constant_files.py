"""The constant files behind the rows that live in a log only (PROTOCOL.md §3.3).

Owns that each live row of T and O, each marker and each state entry has one, of the right bytes: other Delta readers
open it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from txntable.log.constant_file import CONSTANT_FILE
from txntable.storage.object_store import ObjectStore
from txntable.verification.damage import Damage, DamageKind, Progress

_WINDOW = 256


def damages_of_constant_files(
    store: ObjectStore, root: str, paths: Sequence[str], progress: Progress
) -> Iterator[Damage]:
    """Read the files of some rows.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    root : str
        The table's.
    paths : sequence of str
        Relative to it.
    progress : callable
        Is told how far it is.
    """
    for start in range(0, len(paths), _WINDOW):
        window = [f"{root}/{path}" for path in paths[start : start + _WINDOW]]
        for path, found in zip(window, store.get_many(window), strict=True):
            if found is None or found.data != CONSTANT_FILE:
                yield Damage(DamageKind.CONSTANT_FILE, path, "it is gone" if found is None else "it has other bytes")
        progress(f"{root}: constant file {min(start + _WINDOW, len(paths)):,} of {len(paths):,}")

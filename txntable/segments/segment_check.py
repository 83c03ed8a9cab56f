"""Reading a whole file, whatever is in it, to compare its bytes with what a log says of them (PROTOCOL.md §10).

In bounded memory, piece by piece.  Must not know Parquet.
"""

from __future__ import annotations

from txntable.segments.segment_digest import SegmentDigest, check_digest
from txntable.storage.object_reader import ObjectReader
from txntable.storage.object_store import ObjectStore

_PIECE_BYTES = 8 * 1024 * 1024


def check_file(store: ObjectStore, path: str, size: int, digest: str | None) -> None:
    """Return when an object has the size and the digest that a log says.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    path : str
        Of the object.
    size : int
        Bytes, as the log says.
    digest : str, optional
        As the log says; ``None``, or one of an unknown algorithm: only the size is compared.

    Raises
    ------
    DamagedDataError
        It is gone, or another one.
    StoreUnavailableError
        Try again.
    """
    reader, found = ObjectReader(store, path, size), SegmentDigest()
    while piece := reader.read(_PIECE_BYTES):
        found.update(piece)
    # The end is asked for with a byte more than there should be: an object that is longer is another one.
    reader.seek(max(0, size - 1))
    reader.read(1)
    check_digest(digest, found.text)

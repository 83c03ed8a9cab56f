"""Whether paths of files are distinct, for a million of them at once.

Owns a quick hash that only ever saves work: where two of them are alike, the paths themselves are compared.  Pure.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_WORD = 8
_FEW = 10_000
# An odd number of 64 bits without a pattern, and about half of them: each bit of a word reaches all of the hash.
_FACTOR, _SHIFT = np.uint64(0x9E37_79B9_7F4A_7C15), np.uint64(29)


def are_distinct(paths: pa.ChunkedArray) -> bool:
    """Return whether no path is there twice.

    Parameters
    ----------
    paths : pyarrow.ChunkedArray
        Of texts; none is null.
    """
    if len(paths) > _FEW and paths.type == pa.string() and pc.min(pc.binary_length(paths)).as_py() >= _WORD:
        hashes = np.sort(np.concatenate([_hashes(chunk) for chunk in paths.chunks if len(chunk)]))
        if np.all(hashes[1:] != hashes[:-1]):
            return True
    return bool(pc.count_distinct(paths).as_py() == len(paths))


def _hashes(paths: pa.StringArray) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return a hash of each path of at least eight bytes: word by word; the last may overlap the one before."""
    _, ends, texts = paths.buffers()
    bounds = np.frombuffer(ends, np.int32)[paths.offset : paths.offset + len(paths) + 1].astype(np.int64)
    starts, lasts = bounds[:-1], bounds[1:] - _WORD
    words = np.ndarray((texts.size - _WORD + 1,), "<u8", texts, strides=(1,))
    found = np.zeros(len(paths), np.uint64)
    for step in range(0, int(np.max(lasts - starts)) + _WORD, _WORD):
        found = found * _FACTOR ^ words[np.minimum(starts + step, lasts)]
        found ^= found >> _SHIFT
    return found

"""Kafka's murmur2, for one key and for many at once (PROTOCOL.md §9).

Pure arithmetic: 32 bits, little-endian words, Kafka's seed.  The result is signed, as in Java.
Must not know what a key is.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF
_WORD_BYTES = 4

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]


def murmur2(data: bytes) -> int:
    """Return the hash of `data`, between -2**31 and 2**31 - 1."""
    whole = len(data) // _WORD_BYTES * _WORD_BYTES
    state = (_SEED ^ len(data)) & _MASK
    for start in range(0, whole, _WORD_BYTES):
        word = int.from_bytes(data[start : start + _WORD_BYTES], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        state = state * _MULTIPLIER & _MASK ^ word
    if whole < len(data):
        state = (state ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    state = (state ^ state >> 13) * _MULTIPLIER & _MASK
    state ^= state >> 15
    return state - (1 << 32) if state >> 31 else state


def murmur2_many(data: Bytes, starts: Positions, lengths: Positions) -> npt.NDArray[np.int32]:
    """Return the hashes of many pieces of one buffer.

    Parameters
    ----------
    data : numpy.ndarray of uint8
        Holds all pieces.
    starts, lengths : numpy.ndarray of int64
        Of each piece, in bytes.
    """
    if len(starts) == 0:
        return np.zeros(0, np.int32)
    # Longest first: those that have an n-th word are then a prefix.
    uniform = bool((lengths == lengths[0]).all())
    order = None if uniform else np.argsort(-lengths, kind="stable")
    if order is not None:
        starts, lengths = starts[order], lengths[order]
    hashes = _hash_sorted(data, starts, lengths)
    if order is None:
        return hashes
    restored = np.empty_like(hashes)
    restored[order] = hashes
    return restored


def _hash_sorted(data: Bytes, starts: Positions, lengths: Positions) -> npt.NDArray[np.int32]:
    multiplier = np.uint32(_MULTIPLIER)
    # The last word of the last piece may reach beyond the buffer.
    padded = np.concatenate([data, np.zeros(_WORD_BYTES, np.uint8)])
    words: npt.NDArray[np.uint32] = np.ndarray((len(padded) - _WORD_BYTES + 1,), "<u4", padded.data, strides=(1,))
    state = np.uint32(_SEED) ^ lengths.astype(np.uint32)
    counts = lengths // _WORD_BYTES
    for index in range(int(counts[0])):
        active = len(counts) - int(np.searchsorted(counts[::-1], index, side="right"))
        word = words[starts[:active] + index * _WORD_BYTES] * multiplier
        word ^= word >> np.uint32(24)
        word *= multiplier
        state[:active] *= multiplier
        state[:active] ^= word
    rest = (lengths % _WORD_BYTES).astype(np.uint32)
    (ragged,) = np.nonzero(rest)
    if len(ragged):
        kept = (np.uint32(1) << (rest[ragged] * np.uint32(8))) - np.uint32(1)
        tail = words[starts[ragged] + counts[ragged] * _WORD_BYTES] & kept
        state[ragged] = (state[ragged] ^ tail) * multiplier
    state ^= state >> np.uint32(13)
    state *= multiplier
    state ^= state >> np.uint32(15)
    return state.view(np.int32)

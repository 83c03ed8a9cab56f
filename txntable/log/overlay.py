"""A mapping that is written on without being changed: what a commit would make of a state, before it is put.

The rules are those of PROTOCOL.md §4.2.

Owns one idea: changes are kept beside a base that stays as it is.  Laying one over a mapping costs the same whatever
is in it, and so does each change.  Must not know what it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Final, TypeVar, cast

K = TypeVar("K")
V = TypeVar("V")


class _Gone:
    """Takes the place of the value of a key that was deleted."""


_GONE: Final = _Gone()


class Overlay(MutableMapping[K, V]):
    """A view of a mapping that keeps its own changes.

    Parameters
    ----------
    base : Mapping
        Not to be changed for as long as this is in use.
    over : callable, optional
        Value -> what stands for it here, where values can be changed themselves: an overlay of the value.
    """

    __slots__ = ("_base", "_changes", "_count", "_over")

    def __init__(self, base: Mapping[K, V], over: Callable[[V], V] | None = None) -> None:
        self._base = base
        self._over = over
        self._changes: dict[K, V | _Gone] = {}
        self._count = len(base)

    def __getitem__(self, key: K) -> V:
        if key in self._changes:
            value = self._changes[key]
            if value is _GONE:
                raise KeyError(key)
            return cast(V, value)
        found = self._base[key]
        if self._over is not None:
            found = self._changes[key] = self._over(found)
        return found

    def __contains__(self, key: object) -> bool:
        return self._changes[key] is not _GONE if key in self._changes else key in self._base

    def __setitem__(self, key: K, value: V) -> None:
        self._count += key not in self
        self._changes[key] = value

    def __delitem__(self, key: K) -> None:
        if key not in self:
            raise KeyError(key)
        self._count -= 1
        self._changes[key] = _GONE

    def __iter__(self) -> Iterator[K]:
        yield from (key for key in self._base if key not in self._changes)
        yield from (key for key, value in self._changes.items() if value is not _GONE)

    def __len__(self) -> int:
        return self._count

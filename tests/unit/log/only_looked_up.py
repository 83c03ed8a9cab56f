"""A mapping that tells what was asked of it, and never shows everything: for tests of what a cost grows with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn


class OnlyLookedUp(dict[Any, Any]):
    """A mapping that answers for a key, and never shows everything.

    Attributes
    ----------
    asked : int
        How often any of them was asked.
    walkable : bool
        Whether it shows everything after all: of one whose test is over.
    """

    asked = 0
    walkable = False

    def __getitem__(self, key: Any) -> Any:
        type(self).asked += 1
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        type(self).asked += 1
        return super().__contains__(key)

    def __iter__(self) -> Iterator[Any]:
        if self.walkable:
            return super().__iter__()
        raise AssertionError("the whole table was walked")

    def items(self) -> NoReturn:
        raise AssertionError("the whole table was walked")

    keys = values = copy = items

"""What the logs of a run had, also what was cleaned up since: looked at from outside, again and again.

Owns the entries that were seen first, and what landed in their slots later.  Must not import the product.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tests.checker.gathering import Stored

_EVERY_S = 0.25

Stamped = Mapping[str, tuple[int, Callable[[], bytes]]]
"""Log entries by their paths: when each was written, ms since 1970, and what reads it."""


class Archive:
    """Keeps log entries.

    Parameters
    ----------
    listed : callable
        Returns the log entries that are there.
    objects : callable
        Returns all objects that are there.
    """

    def __init__(self, listed: Callable[[], Stamped], objects: Callable[[], Mapping[str, bytes]]) -> None:
        self._listed, self._objects = listed, objects
        self._since_ms: dict[str, int] = {}
        self._entries: dict[str, bytes] = {}
        self._recreated: list[tuple[str, bytes, int]] = []
        self._over = threading.Event()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Look again and again, until the end."""
        looking = threading.Thread(target=self._look_on, daemon=True)
        looking.start()
        try:
            yield
        finally:
            self._over.set()
            looking.join()

    def stored(self) -> Stored:
        """Return what is there, and the entries that were."""
        self._look()
        return Stored(self._objects(), dict(self._entries), tuple(self._recreated))

    def _look_on(self) -> None:
        while not self._over.wait(_EVERY_S):
            self._look()

    def _look(self) -> None:
        for path, (written_ms, read) in self._listed().items():
            if self._since_ms.get(path) == written_ms:
                continue
            try:
                data = read()
            except (FileNotFoundError, KeyError):
                # Cleaned up since it was listed: it was seen before, or the next look of the logs shows a gap.
                continue
            if path not in self._entries:
                self._entries[path] = data
            elif data != self._entries[path]:
                self._recreated.append((path, data, written_ms - self._since_ms[path]))
            self._since_ms[path] = written_ms

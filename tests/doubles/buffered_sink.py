"""A sink for stores in memory."""

from __future__ import annotations

from collections.abc import Callable


class BufferedSink:
    """A sink that keeps the whole object and hands it over at once.

    Parameters
    ----------
    publish : Callable
        Gets the object's bytes.
    """

    def __init__(self, publish: Callable[[bytes], None]) -> None:
        self._publish = publish
        self._blocks: list[bytes] = []

    def write(self, block: bytes) -> None:
        """Keep the next bytes."""
        self._blocks.append(block)

    def publish(self) -> None:
        """Hand over."""
        self._publish(b"".join(self._blocks))

    def discard(self) -> None:
        """Forget the bytes."""
        self._blocks.clear()

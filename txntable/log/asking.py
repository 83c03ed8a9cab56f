"""Readings of several logs side by side: what they ask for at the same time is one round trip (PROTOCOL.md §4.3).

A reading is a generator: it yields the paths of objects, is given the objects, and returns what it made of them.  So
it does not know whether another one is under way, and no thread runs it but the caller's: the store alone asks for
many objects at once.  Must not know what is read.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import islice
from typing import TypeAlias, TypeVar

from txntable.storage.object_store import ObjectStore, StoredObject

T = TypeVar("T")
Found: TypeAlias = Sequence[StoredObject | None]
Asking: TypeAlias = Generator[Sequence[str], Found, T]


def answer(store: ObjectStore, asking: Asking[T]) -> T:
    """Run one reading to its end and return what it made."""
    return answer_all(store, [asking])[0]


def answer_all(store: ObjectStore, askings: Sequence[Asking[T]]) -> list[T]:
    """Run readings side by side to their ends.

    Parameters
    ----------
    store : ObjectStore
        Answers.
    askings : sequence of generators
        What one raises ends them all.

    Returns
    -------
    list
        What each made, in their order.
    """
    made: dict[int, T] = {}
    answers: dict[int, Found | None] = dict.fromkeys(range(len(askings)))
    try:
        while answers:
            asked: dict[int, Sequence[str]] = {}
            for number, found in answers.items():
                try:
                    # None begins it.
                    asked[number] = askings[number].send(found)  # type: ignore[arg-type]
                except StopIteration as end:
                    made[number] = end.value
            objects = iter(store.get_many([path for paths in asked.values() for path in paths]) if asked else ())
            answers = {number: list(islice(objects, len(paths))) for number, paths in asked.items()}
    finally:
        for asking in askings:
            asking.close()
    return [made[number] for number in range(len(askings))]

"""Every chance of a run, by name: drawn from a seed and recorded, or played again, also after it was edited.

A run is a function of its world and its tape.  A stream that is at its end goes on with :data:`CALM`, so that a tape
with less on it is a tape of a quieter run.  Must not know what the chances decide.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_STEPS_OF_CHANCE = 1 << 53
_EVERY_SMALL_NUMBER = 232_792_560  # the least common multiple of 1 to 20

CALM = (_STEPS_OF_CHANCE // _EVERY_SMALL_NUMBER) * _EVERY_SMALL_NUMBER / _STEPS_OF_CHANCE
"""Almost 1, so that no chance of `random() < chance` comes true; and of up to 20 choices it makes the first."""


class Stream(random.Random):
    """One name's chances; everything that `random.Random` can do draws them here.

    Parameters
    ----------
    seed : str, optional
        Where the chances come from that are not given; ``None``: they are calm.
    given : sequence of float
        Comes first.

    Attributes
    ----------
    drawn : list of float
        All chances so far.
    """

    def __init__(self, seed: str | None = None, given: Sequence[float] = ()) -> None:
        super().__init__(0)
        self._fresh = None if seed is None else random.Random(seed)
        self._given = given
        self.drawn: list[float] = []

    def random(self) -> float:
        """Return the next chance, in [0, 1)."""
        place = len(self.drawn)
        if place < len(self._given):
            value = self._given[place]
        else:
            value = CALM if self._fresh is None else self._fresh.random()
        self.drawn.append(value)
        return value


@dataclass(frozen=True, slots=True)
class Recording:
    """What is on a tape.

    Attributes
    ----------
    streams : mapping of str to tuple of float
        Each name's chances, without the calm ones at their ends.
    absent : frozenset of str
        Processes that do not take part.
    """

    streams: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """Return how many chances are not calm: what shrinking makes less."""
        return sum(sum(value != CALM for value in values) for values in self.streams.values())

    def with_stream(self, name: str, values: Sequence[float]) -> Recording:
        """Return the recording with other chances of one name."""
        return Recording({**self.streams, name: _without_calm_end(values)}, self.absent)

    def encode(self) -> str:
        """Return it as JSON."""
        return json.dumps({"absent": sorted(self.absent), "streams": {k: list(v) for k, v in self.streams.items()}})

    @classmethod
    def decode(cls, text: str) -> Recording:
        """Return what :meth:`encode` wrote."""
        found = json.loads(text)
        return cls({name: tuple(values) for name, values in found["streams"].items()}, frozenset(found["absent"]))


class Tape:
    """The chances of one run.

    Parameters
    ----------
    source : int or Recording
        A seed, or what is played again.
    """

    def __init__(self, source: int | Recording) -> None:
        self._seed = source if isinstance(source, int) else None
        self._recording = source if isinstance(source, Recording) else Recording()
        self._streams: dict[str, Stream] = {}

    @property
    def absent(self) -> frozenset[str]:
        """Return the processes that do not take part."""
        return self._recording.absent

    def stream(self, name: str) -> Stream:
        """Return the chances of that name; always the same object."""
        if name not in self._streams:
            seed = None if self._seed is None else f"{self._seed}/{name}"
            self._streams[name] = Stream(seed, self._recording.streams.get(name, ()))
        return self._streams[name]

    def recorded(self) -> Recording:
        """Return what has been drawn so far."""
        streams = {name: _without_calm_end(stream.drawn) for name, stream in sorted(self._streams.items())}
        return Recording({name: values for name, values in streams.items() if values}, self.absent)


def _without_calm_end(values: Sequence[float]) -> tuple[float, ...]:
    end = len(values)
    while end and values[end - 1] == CALM:
        end -= 1
    return tuple(values[:end])

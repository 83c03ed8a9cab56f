"""One behaviour of Kafka, and how this project has it: the row of the tables beside this module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What Kafka does, and which tests show that it holds here.

    Attributes
    ----------
    number : str
        Its place in the list of behaviours.
    statement : str
        What Kafka does, in a line or two.
    tests : Mapping[str, Sequence[str]]
        Path below ``tests/`` -> names of tests; empty: it has no meaning here.
    note : str
        Why it has no meaning here, how it differs on purpose, or what of it comes later.
    """

    number: str
    statement: str
    tests: Mapping[str, Sequence[str]] = field(default_factory=dict)
    note: str = ""

    @property
    def test_ids(self) -> list[str]:
        """The tests as ``path::name``."""
        return [f"{path}::{name}" for path, names in self.tests.items() for name in names]

"""What differs from Kafka and why, from the tests' own tables of Kafka's behaviours."""

from __future__ import annotations

from collections.abc import Iterable

from tests.kafka.behaviour import Behaviour
from tests.kafka_behaviours import ANSWERS, BEHAVIOURS
from tools.documentation.tables import table


def section() -> str:
    """Return the behaviours of Kafka's brokers and clients that are not the same here."""
    return _differences(BEHAVIOURS)


def answers_section() -> str:
    """Return the answers of Kafka's brokers that are not the same here."""
    return _differences(ANSWERS)


def _differences(behaviours: Iterable[Behaviour]) -> str:
    rows = [(each.number, each.statement, each.note, _shown_by(each)) for each in behaviours if each.note]
    return table(("number", "Kafka", "here", "shown by"), rows)


def _shown_by(behaviour: Behaviour) -> str:
    count = len(behaviour.test_ids)
    return "no meaning here" if count == 0 else "1 test" if count == 1 else f"{count} tests"

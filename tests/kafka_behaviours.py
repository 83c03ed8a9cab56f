"""Kafka's behaviours, and the tests that show each of them here, or why it has no meaning here.

The tables stand in ``tests/kafka``; ``tests/unit/test_kafka_behaviours.py`` checks that they are whole and that every
test exists.
"""

from __future__ import annotations

from tests.kafka import (
    broker_answers,
    cleaning_behaviours,
    client_behaviours,
    coordinator_behaviours,
    group_behaviours,
    partition_behaviours,
    reading_behaviours,
    upkeep_behaviours,
)

BEHAVIOURS = sorted(
    (
        *coordinator_behaviours.BEHAVIOURS,
        *upkeep_behaviours.BEHAVIOURS,
        *partition_behaviours.BEHAVIOURS,
        *cleaning_behaviours.BEHAVIOURS,
        *reading_behaviours.BEHAVIOURS,
        *client_behaviours.BEHAVIOURS,
        *group_behaviours.BEHAVIOURS,
    ),
    key=lambda behaviour: int(behaviour.number),
)
ANSWERS = broker_answers.ANSWERS

"""Kafka's behaviours, and the tests that show each of them here, or why it has no meaning here.

The tables stand in ``tests/kafka``; ``tests/unit/test_kafka_behaviours.py`` checks that they are whole and that every
test exists.  Missing numbers belong to reading, log cleaning and consumer groups, which come later.
"""

from __future__ import annotations

from tests.kafka import (
    broker_answers,
    client_behaviours,
    coordinator_behaviours,
    partition_behaviours,
    upkeep_behaviours,
)

BEHAVIOURS = (
    *coordinator_behaviours.BEHAVIOURS,
    *upkeep_behaviours.BEHAVIOURS,
    *partition_behaviours.BEHAVIOURS,
    *client_behaviours.BEHAVIOURS,
)
ANSWERS = broker_answers.ANSWERS

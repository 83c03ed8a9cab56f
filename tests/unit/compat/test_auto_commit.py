"""A consumer that auto-commits in a transaction: the refusal names the setting as it is written."""

from __future__ import annotations

from typing import Any

import pytest

from txntable.compat.confluent import Consumer, KafkaException, Producer, TopicPartition


def test_offsets_of_a_consumer_that_auto_commits_are_refused_with_the_settings_dotted_name(
    reading: dict[str, Any], writing: dict[str, Any]
) -> None:
    producer = Producer(writing)
    producer.init_transactions()
    producer.begin_transaction()
    consumer = Consumer({**reading, "enable.auto.commit": True})

    with pytest.raises(KafkaException, match=r"create it with enable\.auto\.commit=False"):
        producer.send_offsets_to_transaction([TopicPartition("orders", 0, 7)], consumer.consumer_group_metadata())

    producer.abort_transaction()
    consumer.close()

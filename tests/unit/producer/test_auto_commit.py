"""A consumer that auto-commits, and a transaction that would have its offsets: one of the two has to go."""

from __future__ import annotations

import pytest

from tests.simulation.site import TWO_COLUMNS, Site
from txntable.errors import IllegalStateError
from txntable.format.records import TopicPartition

IN = TopicPartition("in", 0)


def test_group_metadata_of_a_consumer_that_auto_commits_is_refused_before_an_abort_can_lose_anything() -> None:
    warehouse = Site().create()
    warehouse.admin().create_topic("in", schema=TWO_COLUMNS)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    with warehouse.consumer(group_id="g") as by_itself:
        metadata = by_itself.group_metadata()

    with pytest.raises(IllegalStateError, match="create it with enable_auto_commit=False"):
        producer.send_offsets_to_transaction({IN: 7}, metadata)

    with warehouse.consumer(group_id="g", enable_auto_commit=False) as by_transactions:
        producer.send_offsets_to_transaction({IN: 7}, by_transactions.group_metadata())
        producer.commit_transaction()
        found = by_transactions.committed(IN)
    assert found is not None
    assert found.offset == 7

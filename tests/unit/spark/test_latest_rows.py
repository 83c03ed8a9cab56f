"""What ``latest_rows`` refuses before Spark is asked for anything."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from txntable.errors import InvalidRequestError
from txntable.format.topic import TopicSettings
from txntable.spark.pipelines.latest_rows import latest_rows

UNKEYED = TopicSettings("t", "0" * 32, 1, pa.schema([pa.field("a", pa.int64())]))


@pytest.mark.parametrize(
    ("settings", "said"), [("t", "admin.describe_topics"), (None, "found=NoneType"), (UNKEYED, "a topic with a key")]
)
def test_what_is_no_topic_with_a_key_is_refused(settings: Any, said: str) -> None:
    records: Any = None

    with pytest.raises(InvalidRequestError, match=said):
        latest_rows(records, settings)

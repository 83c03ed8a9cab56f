"""Settings of a producer, with Kafka's names and defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from txntable.errors import InvalidConfigError


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """How a producer behaves.

    Attributes
    ----------
    transactional_id : str or None
        ``None``: no transactions.
    transaction_timeout_ms : int
        From the first enrolment on, by the store's time.
    enable_idempotence : bool
        ``False``: at least once; not possible with a transactional id.
    write_dataframe : callable
        (producer, topic, DataFrame) -> RecordMetadata; handed in because this package does not know Spark.

    Raises
    ------
    InvalidConfigError
        The settings contradict each other.
    """

    transactional_id: str | None
    transaction_timeout_ms: int
    enable_idempotence: bool
    write_dataframe: Callable[[Any, str, Any], Any]

    def __post_init__(self) -> None:
        if self.transactional_id is not None and not self.enable_idempotence:
            raise InvalidConfigError(
                "a transactional producer is idempotent; leave enable_idempotence on", setting="enable_idempotence"
            )

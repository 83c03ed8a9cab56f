"""What a pipeline reads, writes and keeps: its settings, checked before anything is read.

Must not know how the function is found, nor of Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from txntable.errors import InvalidConfigError
from txntable.format.topic import TopicSettings
from txntable.groups.member_config import DEFAULT_SESSION_TIMEOUT_MS
from txntable.producer.producer_config import DEFAULT_TRANSACTION_TIMEOUT_MS

DEFAULT_INSTANCE = "0"
DEFAULT_INTERVAL_MS = 10_000


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """One pipeline.

    Attributes
    ----------
    group : str
        The consumer group, and the beginning of the transactional id.
    sources : tuple of str
        The topics that are read.
    targets : tuple of str
        The topics that are written.
    state : str or None
        A keyed topic in which the pipeline keeps rows for itself; the latest of each key is handed to the function.
    instance : str
        Names one of several instances that share the group's partitions: the static member of the group, and the end of
        the transactional id.  An instance that is started again takes over from its earlier process at once.
    max_offsets_per_partition : int or None
        The most offsets of a partition that one run reads; ``None``: all.
    auto_offset_reset : str
        Where the group begins: ``"earliest"``, ``"latest"`` or ``"none"``.
    transaction_timeout_ms : int
        From the first append on, by the store's time, ms.
    session_timeout_ms : int
        How long an instance may be silent before others get its partitions, ms.
    interval_ms : int
        How long to wait after a run that found nothing, ms.
    distribution_mode : str
        See :meth:`txntable.Transaction.write`.

    Raises
    ------
    InvalidConfigError
        A setting is missing, or two contradict each other.
    """

    group: str
    sources: tuple[str, ...]
    targets: tuple[str, ...] = ()
    state: str | None = None
    instance: str = DEFAULT_INSTANCE
    max_offsets_per_partition: int | None = None
    auto_offset_reset: str = "earliest"
    transaction_timeout_ms: int = DEFAULT_TRANSACTION_TIMEOUT_MS
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    interval_ms: int = DEFAULT_INTERVAL_MS
    distribution_mode: str = "none"

    def __post_init__(self) -> None:
        for setting, found in (("group", self.group), ("sources", self.sources), ("instance", self.instance)):
            if not found:
                _refuse("a pipeline needs a group, at least one source, and an instance", setting, found)
        if not self.outputs:
            _refuse("a pipeline writes at least one topic; name targets, or a state topic", "targets", self.targets)
        topics = Counter([*self.sources, *self.outputs])
        if twice := [topic for topic, times in topics.items() if times > 1]:
            _refuse("a topic is a source, a target or the state of a pipeline, and once", "topics", ",".join(twice))
        if self.state is not None and self.instance != DEFAULT_INSTANCE:
            _refuse(
                "a pipeline with state has one instance; leave it out, or leave out the state",
                "instance",
                self.instance,
            )
        if self.max_offsets_per_partition is not None and self.max_offsets_per_partition < 1:
            _refuse("a run reads at least one offset", "max_offsets_per_partition", self.max_offsets_per_partition)
        if self.interval_ms < 0:
            _refuse("an interval is a number of ms from 0", "interval_ms", self.interval_ms)

    @property
    def outputs(self) -> tuple[str, ...]:
        """All topics that are written: the targets, then the state's."""
        return self.targets if self.state is None else (*self.targets, self.state)

    @property
    def transactional_id(self) -> str:
        """Of the producer."""
        return f"{self.group}-{self.instance}"


def check_topics(config: PipelineConfig, settings_of: Callable[[str], TopicSettings]) -> None:
    """Refuse a pipeline whose topics are not there, or whose state has no place.

    Parameters
    ----------
    config : PipelineConfig
        The pipeline.
    settings_of : callable
        Topic name -> its settings.

    Raises
    ------
    UnknownTopicOrPartitionError
        There is no such topic.
    InvalidConfigError
        The state topic has no key, or one that may be null: a row without a key has no latest one.
    """
    found = {topic: settings_of(topic) for topic in (*config.sources, *config.outputs)}
    if config.state is None:
        return
    key, schema = found[config.state].key, found[config.state].schema
    if not key or all(schema.field(name).nullable for name in key):
        _refuse("a state topic has a key that is not nullable; create it so", "state", config.state)


def _refuse(message: str, setting: str, value: object) -> NoReturn:
    raise InvalidConfigError(message, setting=setting, value=repr(value))

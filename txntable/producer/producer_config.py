"""Settings of a producer, with Kafka's names and, where they make sense for files, Kafka's defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from txntable.coordinator.error_kinds import shown
from txntable.coordinator.row_json import check_name, check_number
from txntable.errors import InvalidConfigError, InvalidRequestError
from txntable.format.kafka_settings import configured, given_twice
from txntable.partition.batch import ProducerEpoch
from txntable.producer.partitioner import PARTITIONERS, Partitioner

# A segment is a file: Kafka's 16 KiB would make very small ones.
DEFAULT_BATCH_SIZE = 16 * 1024 * 1024
DEFAULT_MAX_REQUEST_SIZE = 1024 * 1024
DEFAULT_TRANSACTION_TIMEOUT_MS = 60_000
# Below a second no transaction ends in time on an object store: who says 60 means a minute.
SMALLEST_TRANSACTION_TIMEOUT_MS = 1_000
# Above an hour, the time of one call was meant in milliseconds.
LONGEST_CALL_SECONDS = 3_600
# The texts of a batch become one Arrow array, which holds 2 GiB.
LARGEST_BATCH_SIZE = 1024 * 1024 * 1024
LARGEST_LINGER_MS = 2**31 - 1
COMPRESSION_TYPES = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """How a producer behaves.

    Attributes
    ----------
    transactional_id : str or None
        ``None``: no transactions.
    transaction_timeout_ms : int
        From the first enrolment on, by the store's time; at least 1,000.
    enable_idempotence : bool
        ``False``: at least once; not possible with a transactional id.
    write_dataframes : callable
        (producer, [(topic, DataFrame)], distribution mode) -> [RecordMetadata]; handed in because this package does
        not know Spark.
    linger_ms : int or None
        How long a record waits at most, ms; ``None``: until flush, close or a full batch.  Only without transactions.
    batch_size : int
        Bytes of waiting values of one partition at which they become a segment.
    max_request_size : int
        Bytes of the largest record.
    partitioner : str or callable
        ``"default"``, ``"round_robin"``, or (topic, key bytes or None, partitions) -> partition.
    partitioner_ignore_keys : bool
        Whether the default partitioner treats every record as one without a key.
    compression_type : str
        Codec of segments where the topic's ``compression.type`` is ``producer``.

    Raises
    ------
    InvalidConfigError
        A setting is out of its bounds, or two contradict each other.
    """

    transactional_id: str | None
    transaction_timeout_ms: int
    enable_idempotence: bool
    write_dataframes: Callable[..., Any]
    linger_ms: int | None = None
    batch_size: int = DEFAULT_BATCH_SIZE
    max_request_size: int = DEFAULT_MAX_REQUEST_SIZE
    partitioner: Partitioner = "default"
    partitioner_ignore_keys: bool = False
    compression_type: str = "zstd"

    def __post_init__(self) -> None:
        if self.transactional_id is not None and not self.enable_idempotence:
            raise InvalidConfigError(
                "a transactional producer must be idempotent; leave enable_idempotence on", setting="enable_idempotence"
            )
        if self.transactional_id is not None:
            self._check_id(self.transactional_id)
        self._check_linger()
        # Its other bounds are the warehouse's: init_transactions checks them.
        timeout_ms = self.transaction_timeout_ms
        if type(timeout_ms) is not int or 0 < timeout_ms < SMALLEST_TRANSACTION_TIMEOUT_MS:
            _refuse(
                "transaction_timeout_ms", timeout_ms, f"int from {SMALLEST_TRANSACTION_TIMEOUT_MS} on: milliseconds"
            )
        if not isinstance(self.enable_idempotence, bool):
            _refuse("enable_idempotence", self.enable_idempotence, "True|False")
        _check_int("batch_size", self.batch_size, 1, LARGEST_BATCH_SIZE)
        _check_int("max_request_size", self.max_request_size, 0, LARGEST_BATCH_SIZE)
        if not callable(self.partitioner) and self.partitioner not in PARTITIONERS:
            _refuse("partitioner", self.partitioner, f"{'|'.join(PARTITIONERS)}|callable")
        if not isinstance(self.partitioner_ignore_keys, bool):
            _refuse("partitioner_ignore_keys", self.partitioner_ignore_keys, "True|False")
        if self.partitioner_ignore_keys and self.partitioner != "default":
            raise InvalidConfigError(
                "only the default partitioner can ignore keys; leave one of the two settings out",
                setting="partitioner_ignore_keys",
                partitioner=self.partitioner,
            )
        if self.compression_type not in COMPRESSION_TYPES:
            _refuse("compression_type", self.compression_type, "|".join(COMPRESSION_TYPES))

    def _check_id(self, transactional_id: str) -> None:
        """Refuse an id that no call would take: here, as Kafka's producers do, not when it is used first."""
        try:
            check_name(transactional_id, "a transactional id")
        except InvalidRequestError as error:
            raise InvalidConfigError(
                error.message + "; or leave transactional_id out",
                setting="transactional_id",
                value=error.facts["name"],
                **{fact: value for fact, value in error.facts.items() if fact != "name"},
            ) from error

    def _check_linger(self) -> None:
        if self.linger_ms is None:
            return
        _check_int("linger_ms", self.linger_ms, 0, LARGEST_LINGER_MS)
        if self.transactional_id is not None:
            raise InvalidConfigError(
                "in a transaction, records are sent by flush, commit or a full batch; leave linger_ms out",
                setting="linger_ms",
                value=self.linger_ms,
            )


SETTINGS: Mapping[str, type] = {
    "transactional_id": object,
    "transaction_timeout_ms": int,
    "enable_idempotence": bool,
    "linger_ms": int,
    "batch_size": int,
    "max_request_size": int,
    "partitioner": object,
    "partitioner_ignore_keys": bool,
    "compression_type": object,
}
"""What users set, and what text of it is read as."""


def with_kafka_settings(config: ProducerConfig, given: Mapping[str, object]) -> ProducerConfig:
    """Return a config with the settings of one of Kafka's configuration dictionaries.

    Parameters
    ----------
    config : ProducerConfig
        With what was said by name.
    given : Mapping of str to object
        See :func:`txntable.format.kafka_settings.configured`.  ``linger.ms`` of a transactional producer says nothing:
        it tunes batches, and what is sent in a transaction is seen by nobody before its commit.

    Raises
    ------
    InvalidConfigError
        A setting is unknown, out of its bounds, or said in both places.
    """
    plain = ProducerConfig(None, DEFAULT_TRANSACTION_TIMEOUT_MS, True, config.write_dataframes)

    def made(settings: dict[str, Any]) -> ProducerConfig:
        twice = [name for name, value in settings.items() if getattr(config, name) not in (getattr(plain, name), value)]
        if twice:
            raise given_twice(twice)
        if settings.get("transactional_id", config.transactional_id) is not None and "linger_ms" in settings:
            _check_int("linger_ms", settings["linger_ms"], 0, LARGEST_LINGER_MS)
            settings = {name: value for name, value in settings.items() if name != "linger_ms"}
        return replace(config, **settings)

    return configured(given, SETTINGS, made)


def check_identity(identity: object) -> None:
    """Refuse what is no identity of a producer.

    Raises
    ------
    InvalidRequestError
        No producer id and epoch, or numbers that can be none.
    """
    if not isinstance(identity, ProducerEpoch):
        raise InvalidRequestError("an identity must be a ProducerEpoch; pass that of the other producer")
    check_number(identity.producer_id, "a producer id")
    check_number(identity.epoch, "a producer epoch")


def timeout_ms_of(timeout: object) -> float:
    """Return a timeout that is given in seconds, in ms.

    Raises
    ------
    InvalidRequestError
        It is no number from 0 to 3,600: more than an hour was meant in milliseconds.
    """
    fits = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not fits or not 0 <= timeout <= LONGEST_CALL_SECONDS:  # type: ignore[operator]
        raise InvalidRequestError(
            f"a producer's timeout is a number of seconds from 0 to {LONGEST_CALL_SECONDS}, not of milliseconds; leave"
            " it out to wait as long as the store's options say",
            timeout=shown(timeout),
        )
    return timeout * 1_000  # type: ignore[operator]


def _check_int(setting: str, value: object, lowest: int, highest: int) -> None:
    if type(value) is not int or not lowest <= value <= highest:
        _refuse(setting, value, f"int from {lowest} to {highest}")


def _refuse(setting: str, value: object, allowed: str) -> NoReturn:
    raise InvalidConfigError(
        "a producer setting has an invalid value; correct it",
        setting=setting,
        value=shown(value),
        allowed=allowed,
    )

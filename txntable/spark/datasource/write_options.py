"""The options of a write by ``format("txntable")``, batch or stream: what Spark hands over as text, as what it means.

Owns their defaults.  Pure; options of the store are never printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from txntable.coordinator.batch_memory import BatchId, is_digits_alone
from txntable.errors import InvalidRequestError
from txntable.producer.producer_config import DEFAULT_TRANSACTION_TIMEOUT_MS
from txntable.spark.scan.source_options import Option, SourceOptions, source_options
from txntable.spark.writing.distribution import DistributionMode, distribution_mode
from txntable.storage.object_store import StoreSpec

_OF_READING = (
    Option.ISOLATION_LEVEL,
    Option.AS_OF,
    Option.STARTING_OFFSETS,
    Option.ENDING_OFFSETS,
    Option.FILTERS,
    Option.MAX_BYTES_PER_TASK,
)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What a write was asked for.

    Attributes
    ----------
    store : StoreSpec
        The warehouse's URL; its store's options have names that begin with ``storage.``, and ``durability`` is that of
        :meth:`txntable.Warehouse.open`.
    topic : str
        The topic's name.
    transactional_id : str or None
        Under which to commit; ``None``: a batch write that runs twice writes everything twice, and a stream goes by its
        checkpoint's id, so that it writes again what it reads again under a new checkpoint.
    batch_id : str, int or None
        Names the run, so that it commits once; digits alone are an integer, which must rise.
    transaction_timeout_ms : int
        From the first enrolment on, by the store's time, ms.
    checkpoint_location : str or None
        Of a streaming query, where it was given as an option.
    """

    store: StoreSpec
    topic: str
    transactional_id: str | None
    batch_id: BatchId | None
    transaction_timeout_ms: int
    checkpoint_location: str | None


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """Return what the options of a DataFrameWriter or DataStreamWriter say.

    Parameters
    ----------
    given : Mapping[str, str]
        By name, in any case.

    Raises
    ------
    InvalidRequestError
        One is missing, unknown, cannot be read, or asks for what a data source cannot do; the message names it.
    """
    options = source_options(given)
    _check_columns(options)
    _check_distribution(options)
    transactional_id, batch = options.text(Option.TRANSACTIONAL_ID), options.text(Option.BATCH_ID)
    if batch is not None and transactional_id is None:
        raise InvalidRequestError(
            f"a batch id belongs to a transactional id; give the option {Option.TRANSACTIONAL_ID} too",
            batch_id=batch,
        )
    return WriteOptions(
        options.store,
        options.topic,
        transactional_id,
        int(batch) if batch is not None and is_digits_alone(batch) else batch,
        options.positive(Option.TRANSACTION_TIMEOUT_MS, DEFAULT_TRANSACTION_TIMEOUT_MS, "ms"),
        options.text(Option.CHECKPOINT_LOCATION),
    )


def check_not_reading(given: Mapping[str, str]) -> None:
    """Refuse options of reading where nothing can be read: at a writer, but not at a view, which is both.

    Parameters
    ----------
    given : Mapping[str, str]
        By name, in any case.

    Raises
    ------
    InvalidRequestError
        There are some; the message names all.
    """
    options = source_options(given)
    found = [option for option in _OF_READING if options.text(option) is not None]
    if found:
        raise InvalidRequestError(
            "a write takes no options of reading; leave them out, or give them to spark.read.format('txntable')",
            topic=options.topic,
            options=",".join(found),
        )


def _check_columns(options: SourceOptions) -> None:
    # A view that shows the topic's columns alone would take rows by position, whatever their names.
    if options.text(Option.COLUMNS) is not None:
        raise InvalidRequestError(
            "a write has all columns of the topic, by name; leave the option columns out, and insert BY NAME or with a"
            " list of columns",
            topic=options.topic,
            columns=options.text(Option.COLUMNS),
        )


def _check_distribution(options: SourceOptions) -> None:
    if distribution_mode(options.text(Option.DISTRIBUTION_MODE) or DistributionMode.NONE) is not DistributionMode.NONE:
        raise InvalidRequestError(
            "a data source cannot shuffle what it is given; call txn.write(topic, dataframe, distribution_mode=…)",
            option=Option.DISTRIBUTION_MODE.value,
            found=repr(options.text(Option.DISTRIBUTION_MODE)),
        )

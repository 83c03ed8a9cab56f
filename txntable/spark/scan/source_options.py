"""What the options of ``format("txntable")`` have in common: their names, the store, the topic.

Owns their names.  One that nobody knows is refused: a misspelt level must not read another one.  Reading passes over
what only a write is told, and an INSERT into a view what only a read is: a view in SQL is both.  Pure; options of the
store are never printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from txntable.errors import InvalidRequestError
from txntable.format.near_names import about_nearest
from txntable.storage.object_store import StoreSpec

STORE_PREFIX = "storage."
_PLACE = "a topic has a name in place of a path: give the options warehouse and topic"
_AS_OF = "asOf is the position, or the time with its zone, of a snapshot of all topics"
_BATCH = "transactionalId and batchId make a job that runs twice write once"
_SCHEMA = "a topic gets columns by admin.add_columns or `txntable topics add-column`, never by a write"
_OF_DELTA: Mapping[str, str] = {
    "path": _PLACE,
    "versionasof": _AS_OF,
    "timestampasof": _AS_OF,
    "txnappid": _BATCH,
    "txnversion": _BATCH,
    "mergeschema": _SCHEMA,
    "overwriteschema": _SCHEMA,
    "replacewhere": "a topic is only appended to",
    "partitionoverwritemode": "a topic is only appended to",
}
"""Delta's options in lower case -> what is here in place of each."""
# Of options as CREATE TABLE hands them over a second time.
_TABLE_PREFIX = "option."


class Option(StrEnum):
    """The options, as they are documented; Spark does not mind their case."""

    WAREHOUSE = "warehouse"
    TOPIC = "topic"
    DURABILITY = "durability"
    ISOLATION_LEVEL = "isolationLevel"
    AS_OF = "asOf"
    STARTING_OFFSETS = "startingOffsets"
    ENDING_OFFSETS = "endingOffsets"
    COLUMNS = "columns"
    FILTERS = "filters"
    MAX_BYTES_PER_TASK = "maxBytesPerTask"
    TRANSACTIONAL_ID = "transactionalId"
    BATCH_ID = "batchId"
    TRANSACTION_TIMEOUT_MS = "transactionTimeoutMs"
    DISTRIBUTION_MODE = "distributionMode"
    # Spark's own.
    CHECKPOINT_LOCATION = "checkpointLocation"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options by name, with what all of them need.

    Attributes
    ----------
    store : StoreSpec
        The warehouse's.
    topic : str
        The topic's name.
    texts : Mapping[Option, str]
        Those that were given.
    """

    store: StoreSpec
    topic: str
    texts: Mapping[Option, str] = field(repr=False)

    def text(self, option: Option) -> str | None:
        """Return what was given; ``None``: nothing."""
        return self.texts.get(option)

    def positive(self, option: Option, default: int, unit: str) -> int:
        """Return a number above 0.

        Parameters
        ----------
        option : Option
            Which one.
        default : int
            Where it was not given.
        unit : str
            For the message.

        Raises
        ------
        InvalidRequestError
            It is none; the message names the option.
        """
        text = self.texts.get(option)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit()) or int(text) == 0:
            raise unreadable(option, text, f"a number of {unit} above 0")
        return int(text)


def source_options(given: Mapping[str, str]) -> SourceOptions:
    """Return the options that Spark hands over.

    Parameters
    ----------
    given : Mapping[str, str]
        By name, in any case.

    Raises
    ------
    InvalidRequestError
        One is missing or unknown; the message names it.
    """
    lowered = {name.lower(): value for name, value in given.items()}
    if not lowered or any(name.startswith(_TABLE_PREFIX) for name in lowered):
        raise InvalidRequestError(
            "spark forgets the options of a table that is made by CREATE TABLE … USING; CREATE TEMPORARY VIEW … USING"
            " txntable OPTIONS (…) keeps them, and format('txntable') needs neither",
        )
    storage = {name.removeprefix(STORE_PREFIX): lowered[name] for name in lowered if name.startswith(STORE_PREFIX)}
    texts = {option: lowered[option.lower()] for option in Option if option.lower() in lowered}
    unknown = sorted(set(lowered) - {option.lower() for option in texts} - {STORE_PREFIX + name for name in storage})
    missing = [option for option in (Option.WAREHOUSE, Option.TOPIC) if option not in texts]
    if unknown or missing:
        raise InvalidRequestError(
            "the options name a warehouse and a topic, and nothing that is not known; storage.<name> goes to the store"
            + _hint(unknown),
            missing=",".join(missing) or None,
            unknown=",".join(unknown) or None,
            # As another format's option it is taken where it changes nothing: nobody is to be sent there.
            known=",".join(option for option in Option if option is not Option.DISTRIBUTION_MODE),
        )
    store = StoreSpec(texts[Option.WAREHOUSE], storage, texts.get(Option.DURABILITY, "full"))
    return SourceOptions(store, texts[Option.TOPIC], texts)


def _hint(unknown: Iterable[str]) -> str:
    # Spark hands names over in lower case, and Python's have an underscore.
    said = [_OF_DELTA.get(name) or about_nearest(name.replace("_", ""), list(Option)) for name in unknown]
    return "".join(f"; {each}" for each in dict.fromkeys(said) if each is not None)


def unreadable(option: Option, text: str, expected: str) -> InvalidRequestError:
    """Return the error of an option that cannot be read."""
    return InvalidRequestError(
        "an option cannot be read; write it as expected", option=option.value, found=repr(text), expected=expected
    )

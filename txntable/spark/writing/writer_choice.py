"""Which of two writers makes the segments of a DataFrame: Spark's own Parquet writer, or our tasks in Python.

Owns the rule, and a reason for each refusal.  Spark's own writer takes the place of a pass of all rows through Python;
it is reached by classes of Spark and Delta that are no public interface, so only versions that were tested with it are
taken, and whatever it cannot do exactly as the other one is left to the other one.  Both make the same segments
(PROTOCOL.md §5.2).  Pure: must not know how a session is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

import pyarrow as pa

from txntable.format.conform import TIMESTAMP_COLUMN, is_same_type, requires_inside
from txntable.format.delta_types import TIMESTAMP
from txntable.format.topic import TopicSettings
from txntable.format.widening import widens
from txntable.spark.writing.distribution import DistributionMode
from txntable.storage.object_store import StoreSpec
from txntable.storage.storage_options import says_encryption

SWITCH = "spark.txntable.sparkWriter"
"""A setting of the session, one of :class:`Wish`."""
KNOWN_SCHEMES = frozenset({"", "s3"})
"""Of warehouses; the empty one is a local folder."""
SMALLEST_BYTES = 8 * 1024 * 1024
"""Of what Spark takes a DataFrame's size for: below it, preparing the job costs more than is won."""


class Wish(Enum):
    """What the user has set :data:`SWITCH` to."""

    AUTO = "auto"
    """Spark's own writer where it can, and is expected to cost less; without a setting."""
    ALWAYS = "always"
    """Wherever it can, however small the DataFrame."""
    NEVER = "never"
    """Tasks in Python."""


class SegmentsBy(Enum):
    """Who makes segments; the value is what is told."""

    SPARK = "spark"
    """Spark's own Parquet writer; files are registered as they are."""
    PYTHON = "python"
    """Tasks in Python (:mod:`txntable.spark.writing.segment_task`)."""


@dataclass(frozen=True, slots=True)
class WriterChoice:
    """What was chosen for a DataFrame.

    Attributes
    ----------
    segments_by : SegmentsBy
        Who makes its segments.
    reason : str or None
        Why not Spark; ``None``: it is Spark.
    """

    segments_by: SegmentsBy
    reason: str | None = None

    def __str__(self) -> str:
        return self.segments_by.value if self.reason is None else f"{self.segments_by.value}: {self.reason}"


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What a session tells.

    Attributes
    ----------
    is_classic : bool
        Whether its JVM can be called: not over Spark Connect, and calls of a thread keep to one thread of the JVM.
    wish : Wish
        What the user has set.
    is_known : bool
        Whether Spark and Delta are of versions that were tested.
    has_classes : bool
        Whether all that is called is there.
    encrypts : bool
        Whether Parquet files are to be encrypted.
    in_micro_batch : bool
        Whether a streaming query is handing over a micro-batch.
    """

    is_classic: bool
    wish: Wish = Wish.AUTO
    is_known: bool = False
    has_classes: bool = True
    encrypts: bool = False
    in_micro_batch: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be written, and where.

    Attributes
    ----------
    session : SessionFacts
        The DataFrame's.
    store : StoreSpec
        The warehouse's.
    settings : TopicSettings
        The topic.
    mode : DistributionMode
        How rows come to tasks.
    given : pyarrow.Schema
        The DataFrame's columns, which fit the topic.
    """

    session: SessionFacts
    store: StoreSpec
    settings: TopicSettings
    mode: DistributionMode
    given: pa.Schema


def _scheme(asked: Question) -> str:
    return urlsplit(asked.store.url).scheme


def _requires_what_no_footer_counts(asked: Question) -> bool:
    return any(
        requires_inside(field.type) or (pa.types.is_nested(field.type) and not field.nullable)
        for field in asked.settings.schema
    )


def _converts_inside(asked: Question) -> bool:
    """Return whether a column is converted otherwise than as a whole: inside of it Spark goes by place, not by name."""
    wanted = {**{field.name: field.type for field in asked.settings.schema}, TIMESTAMP_COLUMN: TIMESTAMP}
    return any(
        not (pa.types.is_null(field.type) or is_same_type(field.type, wanted[field.name]))
        and not widens(field.type, wanted[field.name])
        for field in asked.given
    )


_Rule = tuple[Callable[[Question], object], str]

_RULES: tuple[_Rule, ...] = (
    (lambda asked: not asked.session.is_classic, "the session's jvm cannot be called"),
    (lambda asked: asked.session.wish is Wish.NEVER, f"{SWITCH} is never"),
    (lambda asked: not asked.session.is_known, "another version of spark or delta than is known"),
    (lambda asked: not asked.session.has_classes, "a class of spark or delta is missing"),
    (lambda asked: asked.session.encrypts, "parquet files are to be encrypted"),
    (lambda asked: asked.session.in_micro_batch and asked.session.wish is Wish.AUTO, "a micro-batch"),
    (lambda asked: _scheme(asked) not in KNOWN_SCHEMES, "a store of another kind"),
    (
        # Spark's file systems have settings of their own, and would write objects that are encrypted otherwise.
        lambda asked: _scheme(asked) == "s3" and says_encryption(asked.store.options),
        "storage options say how objects are encrypted",
    ),
    (
        lambda asked: asked.settings.key and asked.mode is not DistributionMode.HASH,
        "a topic with a key, and no distribution_mode hash",
    ),
    (_requires_what_no_footer_counts, "a nested column has what must not be null"),
    (_converts_inside, "a nested column has another type than the topic's"),
)


def refusal(asked: Question) -> str | None:
    """Return why Spark's own writer does not take a DataFrame; ``None``: as far as can be told for nothing, it does."""
    return next((reason for applies, reason in _RULES if applies(asked)), None)


def refusal_by_size(wish: Wish, size: int) -> str | None:
    """Return why it does not take one that Spark takes for so many bytes; ``None``: it does."""
    return "a small dataframe" if wish is Wish.AUTO and size < SMALLEST_BYTES else None


UNREACHABLE = "spark's file systems do not reach the warehouse"

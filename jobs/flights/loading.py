"""The demo's first pipeline: each month of flights is one transaction of the topic ``flights``.

Owns the two accidents that it meets, once each: a failure when half of a month is written, and a
second writer that takes over the transactional id.  Who has committed a month is never asked of
this module: the batch id knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from txntable.errors import TxnTableError
from txntable.format.isolation import IsolationLevel
from txntable.jobs.flights.source import SCHEMA, month_name
from txntable.jobs.flights.story import Event, Story
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

TOPIC = "flights"
PARTITIONS = 4
KEY = ("carrier",)
TRANSACTIONAL_ID = "flights-loader"
LAST_DAY_OF_THE_FIRST_HALF = 15
FENCED = "PRODUCER_FENCED"


@dataclass(frozen=True, slots=True)
class Accidents:
    """In which months something goes wrong.

    Attributes
    ----------
    failing : int
        The month whose first attempt fails half-way.
    taken_over : int
        The month in which a second writer appears.
    """

    failing: int
    taken_over: int


def accidents_of(months: Sequence[int]) -> Accidents:
    """Return when the accidents happen: in March and July, or as late as there are months."""
    return Accidents(failing=months[min(2, len(months) - 1)], taken_over=months[min(6, len(months) - 1)])


class _HalfWayFailure(Exception):
    """What kills the first attempt of a month."""


class FlightsLoading:
    """Brings months of flights into the topic.

    Parameters
    ----------
    warehouse : Warehouse
        Has the topic.
    flights : DataFrame
        Of the source.
    story : Story
        Is told what happens.
    """

    def __init__(self, warehouse: Warehouse, flights: DataFrame, story: Story) -> None:
        self._warehouse, self._flights, self._story = warehouse, flights, story
        self._producer = self._new_producer(warehouse)

    def load(self, months: Sequence[int]) -> tuple[int, int]:
        """Load months in order; one that has committed before is skipped.

        Returns
        -------
        tuple of int
            How many were loaded, and how many skipped.
        """
        accidents = accidents_of(months)
        loaded = 0
        for month in months:
            if not self._producer.is_committed(month_name(month)):
                self._load(month, accidents)
                loaded += 1
            self._story.advance()
        skipped = len(months) - loaded
        for count, what, outcome in ((loaded, "written", "COMMIT"), (skipped, "skipped", "BATCH_ALREADY_COMMITTED")):
            if count:
                self._story.tell(
                    Event(TRANSACTIONAL_ID, f"{count} months", f"one transaction a month: {what}", outcome)
                )
        return loaded, skipped

    def committed_months(self) -> list[int]:
        """Return every month that has committed, in this run or before."""
        return [month for month in range(1, 13) if self._producer.is_committed(month_name(month))]

    def _load(self, month: int, accidents: Accidents) -> None:
        if month == accidents.failing:
            self._fail_half_way(month)
        if month == accidents.taken_over:
            self._be_taken_over(month)
        self._story.step(month_name(month))
        with self._producer.transaction(batch_id=month_name(month)) as transaction:
            transaction.write(TOPIC, flights_of(self._flights, month))

    def _fail_half_way(self, month: int) -> None:
        batch = month_name(month)
        self._story.step(f"{batch}: fails half-way")
        before = during = self._records(IsolationLevel.SNAPSHOT)
        uncommitted = 0
        try:
            with self._producer.transaction(batch_id=batch) as transaction:
                transaction.write(TOPIC, first_half_of(self._flights, month))
                transaction.flush()
                during = self._records(IsolationLevel.SNAPSHOT)
                uncommitted = self._records(IsolationLevel.READ_UNCOMMITTED) - before
                raise _HalfWayFailure
        except _HalfWayFailure:
            pass
        self._story.check("records that an open transaction shows to a snapshot", 0, during - before)
        self._story.tell(
            Event(
                TRANSACTIONAL_ID,
                batch,
                f"fails with {uncommitted:,} records appended, which no snapshot ever shows; the month is done again",
                "ABORT",
            )
        )

    def _be_taken_over(self, month: int) -> None:
        batch = month_name(month)
        self._story.step(f"{batch}: a second writer appears")
        zombie = self._producer
        code = "no error"
        try:
            with zombie.transaction(batch_id=batch) as transaction:
                transaction.write(TOPIC, first_half_of(self._flights, month))
                transaction.flush()
                # As in another process: it shares nothing with the first one but the store.
                successor = Warehouse.open(self._warehouse.url, self._warehouse.store.spec.options)
                self._producer = self._new_producer(successor)
        except TxnTableError as error:
            code = error.code
        self._story.check("error of the first writer's commit", FENCED, code)
        self._story.tell(
            Event(TRANSACTIONAL_ID, batch, "a second writer with the same id takes over; the first one commits", code)
        )

    def _new_producer(self, warehouse: Warehouse) -> Producer:
        producer = warehouse.producer(transactional_id=TRANSACTIONAL_ID)
        producer.init_transactions()
        return producer

    def _records(self, level: IsolationLevel) -> int:
        spark = self._flights.sparkSession
        return self._warehouse.read(spark, TOPIC, isolation_level=level.value).count()


def create_topic(warehouse: Warehouse) -> None:
    """Create the topic unless it is there."""
    warehouse.admin().create_topic(TOPIC, partitions=PARTITIONS, schema=SCHEMA, key=KEY, exist_ok=True)


def flights_of(flights: DataFrame, month: int) -> DataFrame:
    """Return the flights of one month."""
    return flights.select(*SCHEMA.names).where(F.col("month") == month)


def first_half_of(flights: DataFrame, month: int) -> DataFrame:
    """Return the flights of the first half of one month."""
    return flights_of(flights, month).where(F.col("day") <= LAST_DAY_OF_THE_FIRST_HALF)

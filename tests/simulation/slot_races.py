"""Small worlds of one race each: somebody halts before a put, and finds the slot, the row or the log changed.

*zombies*: an append that halts while its id is taken over, and while the partitions forget who was fenced.
*freed-slots*: a put that halts until its slot was taken by others, and cleaned up.
*cut-off*: a producer that loses the store in the middle of an append, and makes the same call again.
*late-landings*: a put of a transaction or of an admin that lands late, after its next try was answered with a 409.
*late-reapers*: somebody who has seen a transaction that is too old, and halts until the id is in its next one.

*clock-ahead*: the store's own clock is ahead for a while, and put right: what began meanwhile ends all the same.
*asked-again*: a commit that was not answered, and a token, asked of again after later transactions of the same id.

Nothing else goes wrong in them: who halts where is drawn, and how often the others have the turn meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tests.checker.operations import Topics
from tests.doubles.fault_plan import Fault, Operation, Rule, Step, on
from tests.doubles.manual_environment import StoreTime
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.ending import judge
from tests.simulation.journal import Journal
from tests.simulation.onlookers import DAY_MS, MINUTE_MS, TOPICS, Onlooker, Told
from tests.simulation.rubbish import merge
from tests.simulation.small_worlds import SmallWorld
from tests.simulation.turns import Process, Turns, Weather, World
from txntable.errors import (
    DamagedDataError,
    InvalidPartitionsError,
    InvalidTxnStateError,
    RetriableError,
    TxnTableError,
)
from txntable.format.layout import TRANSACTION_LOG_ROOT
from txntable.format.records import TopicPartition
from txntable.producer.producer import Producer

# Turns: more than a run has.  Who rests for the fewest goes on when all rest.
UNTIL_OTHERS_HALT, UNTIL_ALL_ENDED, BEYOND_ALL = 10_000, 20_000, 40_000
OF_SEGMENTS = "/_segments/_delta_log/"
OF_TRANSACTIONS = f"{TRANSACTION_LOG_ROOT}/_delta_log/"


class Actor(Onlooker):
    """A process that does one thing, from its beginning to its end or to an error of the product."""

    def __init__(self, process: Process, told: Told) -> None:
        super().__init__(process, told)
        self.halts: tuple[str, int, int] | None = None

    def run(self) -> None:
        """Open the warehouse and do it."""
        self.warehouse = self.process.opened(self.before)
        try:
            self.act()
        except DamagedDataError:
            raise
        except TxnTableError:
            return

    def act(self) -> None:
        """Do it."""
        raise NotImplementedError

    def halt(self, log: str, puts: int, turns: int) -> None:
        """Let one of the next puts of entries of these logs halt for so many turns of others."""
        self.halts = (log, self.random.randint(1, puts), turns)

    def before(self, step: Step) -> None:
        """Halt, when this is the put that is to halt."""
        if self.halts is not None and step.operation is Operation.PUT_IF_ABSENT and self.halts[0] in step.path:
            log, left, turns = self.halts
            self.halts = (log, left - 1, turns) if left > 1 else None
            if left == 1:
                self.process.rest(turns, 0)

    def producer(self, transactional_id: str) -> Producer:
        """A producer that has its id."""
        producer = self.warehouse.producer(transactional_id, transaction_timeout_ms=MINUTE_MS)
        producer.init_transactions()
        return producer

    def transact(self, producer: Producer) -> None:
        """One transaction, committed."""
        producer.begin_transaction()
        value = self.fill(producer)
        self.end(producer, value)


class Zombie(Actor):
    """Halts before an append until all others have ended: somebody else has its id by then."""

    def act(self) -> None:
        producer = self.producer("x")
        self.halt(OF_SEGMENTS, 2, UNTIL_ALL_ENDED)
        self.transact(producer)


class Successor(Actor):
    """Takes the id over; goes on with a transaction of its own, or lets the partitions forget the id's producer."""

    def act(self) -> None:
        self.process.rest(self.random.choice([20, 40, UNTIL_OTHERS_HALT, UNTIL_OTHERS_HALT]), 0)
        producer = self.producer("x")
        if self.random.random() < 0.5:
            self.forget()
            return
        producer.begin_transaction()
        value = self.fill(producer)
        producer.flush()
        if self.random.random() < 0.7:
            self.process.rest(BEYOND_ALL, 0)
        self.end(producer, value)

    def forget(self) -> None:
        """Take away what was aborted and its markers; then only the transaction log knows who is fenced."""
        for topic in TOPICS:
            merge(self.warehouse, topic)
        self.site.advance_ms(DAY_MS)
        for topic in TOPICS:
            self.warehouse.topic_log(topic).expire_producers(MINUTE_MS)


class Stalled(Actor):
    """Halts before a put of the transaction log or of a partition log, until its slot was taken and cleaned up."""

    def act(self) -> None:
        producer = self.producer("x")
        self.halt(self.random.choice([OF_TRANSACTIONS, OF_SEGMENTS]), 2, UNTIL_ALL_ENDED)
        self.transact(producer)


class Cleaner(Actor):
    """Goes on writing, and cleans the logs up."""

    def act(self) -> None:
        self.process.rest(self.random.choice([40, UNTIL_OTHERS_HALT, UNTIL_OTHERS_HALT]), 0)
        producer = self.producer("y")
        for _ in range(self.random.randint(1, 3)):
            self.transact(producer)
        for _ in range(2):
            self.site.advance_ms(2 * DAY_MS)
            self.clean()


class CutOff(Actor):
    """Sends record by record, loses the store in the middle of an append, and flushes again."""

    connected = True
    lost: Rule | None = None

    def act(self) -> None:
        store = self.warehouse.store
        assert isinstance(store, SteppingStore)
        fault = self.random.choice([Fault.LOST_ANSWER, Fault.LOST_ANSWER, Fault.FAIL_BEFORE])
        self.lost = on(Operation.PUT_IF_ABSENT, OF_SEGMENTS, fault, occurrence=self.random.randint(1, 3))
        store.plan = (Rule(Fault.FAIL_BEFORE, lambda _: not self.connected, None), self.lost)
        producer = self.warehouse.producer()
        for number in range(self.random.randint(2, 4)):
            value = f"{self.process.name}-{number}"
            producer.send(TOPICS[0], value.encode(), partition=0)
            self.flush(producer)
            self.told.committed[value] = 1

    def before(self, step: Step) -> None:
        """Lose the store with the call that follows the one whose answer was lost."""
        if self.lost is not None:
            steps = self.process.stores[-1].steps
            last = steps[-2] if len(steps) > 1 else step
            if self.lost.matches(last) and last.outcome == "StoreUnavailableError":
                self.connected = False

    def flush(self, producer: Producer) -> None:
        """Flush; where the store cannot be reached, wait until it can, and make the same call again."""
        while True:
            try:
                producer.flush()
            except RetriableError:
                self.process.rest(self.random.choice([60, UNTIL_OTHERS_HALT]), 0)
                self.connected = True
            else:
                return


class Follower(Actor):
    """Follows a topic: it is given every record once."""

    def act(self) -> None:
        given = Counter[str]()
        with self.warehouse.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(TOPICS[0], partition) for partition in (0, 1)])
            for turns in (*[5] * 60, UNTIL_ALL_ENDED, 0):
                for records in consumer.poll().values():
                    given.update(record.value.decode() for record in records if record.value)
                twice = [value for value, count in given.items() if count > 1]
                assert not twice, f"given twice to who follows: {twice}"
                self.process.rest(turns, 0)


class Unanswered(Actor):
    """One of its puts is not answered, the next try of it is answered with a 409, and then the first one lands."""

    def act(self) -> None:
        if self.random.random() < 0.5:
            self.goes_unanswered(OF_TRANSACTIONS, self.random.randint(2, 4))
            self.transact(self.producer("x"))
        else:
            self.goes_unanswered(OF_SEGMENTS, 1)
            # Nobody else does: an error that it was done before would be about its own.
            try:
                self.warehouse.admin().create_partitions({TOPICS[1]: 3})
            except InvalidPartitionsError as error:
                raise AssertionError(f"refused, and done: {error}") from error

    def goes_unanswered(self, log: str, number: int) -> None:
        """Let this happen to the put of that number into these logs."""
        put = Operation.PUT_IF_ABSENT
        self.process.stores[-1].plan = (
            on(put, log, Fault.LATE_LANDING, occurrence=number),
            on(put, log, Fault.CONFLICT_409, occurrence=number + 1),
        )

    def before(self, step: Step) -> None:
        """Let it land before the third put into the slot; others go on from there, before that put is made."""
        store = self.process.stores[-1]
        answers = [one.outcome for one in store.steps[:-1] if (one.operation, one.path) == (step.operation, step.path)]
        if step.operation is Operation.PUT_IF_ABSENT and store.late and "exists" in answers:
            store.land()
            self.process.rest(self.random.choice([0, UNTIL_ALL_ENDED]), 0)


class Leisurely(Actor):
    """Lets one transaction grow too old, ends it all the same, and begins the next one of its id."""

    def act(self) -> None:
        producer = self.producer("x")
        producer.begin_transaction()
        value = self.fill(producer)
        producer.flush()
        self.site.advance_ms(MINUTE_MS + 1)
        self.process.rest(self.random.choice([20, 40]), 0)
        self.end(producer, value)
        began_ms = self.site.time.instant().boot_ms
        refusal = self.refused(producer)
        passed_ms = self.site.time.instant().boot_ms - began_ms
        assert refusal is None or passed_ms > MINUTE_MS, f"timed out after {passed_ms} ms: {refusal}"

    def refused(self, producer: Producer) -> str | None:
        """One transaction; return what it is refused with."""
        try:
            producer.begin_transaction()
            value = self.fill(producer)
            producer.flush()
            self.process.rest(UNTIL_ALL_ENDED, 0)
            self.end(producer, value)
        except TxnTableError as error:
            return error.code
        return None


class Reaper(Actor):
    """Aborts what is too old, and halts just before it."""

    def act(self) -> None:
        for _ in range(40):
            self.halt(OF_TRANSACTIONS, 1, self.random.choice([40, 80, 160]))
            self.warehouse.completer.abort_timed_out()
            self.process.rest(5, 0)


class Unheard(Actor):
    """Loses the store while it commits, and asks again when others have had its id."""

    connected = True

    def act(self) -> None:
        producer = self.producer("x")
        producer.begin_transaction(self.random.choice([None, None, self.process.name]))
        value = self.fill(producer)
        producer.flush()
        store, put = self.process.stores[-1], Operation.PUT_IF_ABSENT
        fault = self.random.choice([Fault.LOST_ANSWER, Fault.LOST_ANSWER, Fault.FAIL_BEFORE])
        lost = on(put, OF_TRANSACTIONS, fault)
        store.plan = (lost, Rule(Fault.FAIL_BEFORE, lambda _: not self.connected, None))
        self.connected = False
        try:
            producer.commit_transaction()
        except RetriableError:
            self.process.rest(self.random.choice([60, 300, UNTIL_ALL_ENDED]), 0)
            self.connected, store.plan = True, ()
            self.ask_again(producer, value)
        self.told.committed[value] = self.records


class Dealer(Actor):
    """Commits outside what it has prepared here; whether that was aborted here it asks when others have had its id."""

    def act(self) -> None:
        producer = self.warehouse.producer("x", transaction_timeout_ms=MINUTE_MS)
        producer.init_transactions(keep_prepared=True)
        if producer.state == "PREPARED_TRANSACTION":
            producer.complete_transaction(None)
        producer.begin_transaction()
        value = self.fill(producer)
        token = producer.prepare_transaction()
        if self.random.random() < 0.6:
            self.warehouse.admin().abort_transaction("x")
        else:
            producer.complete_transaction(token)
        self.process.rest(self.random.choice([60, 300, UNTIL_ALL_ENDED, UNTIL_ALL_ENDED]), 0)
        heir = self.warehouse.producer("x", transaction_timeout_ms=MINUTE_MS)
        heir.init_transactions(keep_prepared=True)
        try:
            heir.complete_transaction(token)
        except InvalidTxnStateError:
            self.told.refused.add(value)
            raise
        self.told.committed[value] = self.records


class Regular(Actor):
    """Has the id now and then: takes it, commits, aborts, or only takes it."""

    def act(self) -> None:
        for _ in range(self.random.randint(2, 4)):
            self.process.rest(self.random.choice([10, 40, 100]), 0)
            try:
                producer = self.producer("x")
                for _ in range(self.random.randint(0, 3)):
                    self.transact(producer)
            except TxnTableError:
                continue


class Astray(Actor):
    """Begins, and perhaps decides, while the store's clock is months ahead; then that is put right."""

    def act(self) -> None:
        clock = self.site.objects.clock
        assert isinstance(clock, StoreTime)
        clock.skew_ms += (ahead_ms := self.random.choice([20 * MINUTE_MS, 40 * DAY_MS]))
        try:
            # Opened only now: who knew the time before goes by that for a quarter of an hour.
            self.warehouse = self.process.opened(self.before)
            producer = self.producer(self.random.choice(["x", "alone"]))
            producer.begin_transaction()
            value = self.fill(producer)
            producer.flush()
            if self.random.random() < 0.4:
                self.halt(OF_SEGMENTS, 1, UNTIL_ALL_ENDED)
                self.end(producer, value)
            else:
                self.process.rest(self.random.choice([0, 40]), 0)
        finally:
            clock.skew_ms -= ahead_ms


class Race(SmallWorld):
    """A small world in fair weather, whose store the history checker looks at, too."""

    def __init__(self, *kinds: type[Onlooker]) -> None:
        super().__init__(kinds, rough=Weather)

    def play(self, turns: Turns) -> None:
        """Play it, and let the checker judge what the store shows."""
        super().play(turns)
        judge(turns.site, Journal(), Topics())


SLOT_RACES: Mapping[str, World] = {
    "zombies": Race(Zombie, Successor),
    "freed-slots": SmallWorld((Stalled, Cleaner), rough=Weather),
    "cut-off": Race(CutOff, Follower),
    "late-landings": Race(Unanswered, Successor),
    "late-reapers": Race(Leisurely, Reaper),
    "clock-ahead": Race(Astray, Regular),
    "asked-again": Race(Unheard, Dealer, Regular, Regular),
}

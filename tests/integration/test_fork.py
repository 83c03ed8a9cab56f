"""Clients that a process inherits from the one that forked it: refused, and no harm to the original."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from txntable import TopicPartition, Warehouse
from txntable.errors import IllegalStateError, TxnTableError
from txntable.runtime.one_process import OfOneProcess

# Python warns of a fork beside threads: that is what is tried here.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

CHILDREN = 3
_FORKED = multiprocessing.get_context("fork")
LONGEST_SECONDS = 60


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse.create(str(tmp_path / "warehouse"), durability="page-cache")
    warehouse.admin().create_topic("t", partitions=1)
    return warehouse


def in_children(call: Callable[[int], object], children: int = CHILDREN) -> list[str]:
    """What a call came to in each of some forked processes, which end as Python's do."""
    told = _FORKED.Queue()

    def run(number: int) -> None:
        signal.alarm(LONGEST_SECONDS)
        try:
            told.put(f"returned {call(number)}")
        except TxnTableError as error:
            told.put(f"{error.code}: {error}")
        gc.collect()

    processes = [_FORKED.Process(target=run, args=(number,)) for number in range(children)]
    for process in processes:
        process.start()
    found = [told.get(timeout=LONGEST_SECONDS) for _ in processes]
    for process in processes:
        process.join(LONGEST_SECONDS)
        assert process.exitcode == 0
    return found


def _calling(call: Callable[[], object]) -> Callable[[int], object]:
    return lambda number: call()


def values(warehouse: Warehouse) -> list[bytes]:
    return sorted(warehouse.read_arrow("t").read_all()["value"].to_pylist())


def assert_all_refused(told: list[str]) -> None:
    for answer in told:
        assert answer.startswith("ILLEGAL_STATE: "), answer
        assert "open the warehouse in the new process" in answer
        assert "spawn" in answer


def test_inherited_idempotent_producer_is_refused_and_the_parent_goes_on(warehouse: Warehouse) -> None:
    producer = warehouse.producer()
    producer.send("t", b"before")
    producer.flush()

    def send(number: int) -> None:
        producer.send("t", f"child {number}".encode())
        producer.flush()

    assert_all_refused(in_children(send))
    producer.send("t", b"after")
    producer.close()
    assert values(warehouse) == [b"after", b"before"]


@pytest.mark.parametrize("last", ["commit_transaction", "abort_transaction", "flush", "close"])
def test_inherited_open_transaction_is_the_parents_alone(warehouse: Warehouse, last: str) -> None:
    producer = warehouse.producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", b"one")
    producer.flush()
    producer.send("t", b"waits")

    assert_all_refused(in_children(lambda number: getattr(producer, last)()))
    assert_all_refused(in_children(lambda number: producer.send("t", b"child")))
    producer.commit_transaction()

    assert values(warehouse) == [b"one", b"waits"]


def test_child_that_leaves_the_transactions_block_ends_nothing(warehouse: Warehouse) -> None:
    with warehouse.producer("etl") as producer:
        producer.init_transactions()
        with producer.transaction() as transaction:
            transaction.send("t", b"one")
            child = os.fork()
            if child == 0:
                signal.alarm(LONGEST_SECONDS)
                try:
                    sys.exit(7)
                finally:
                    # What the blocks do on the way out is done below, by hand: pytest must not run twice.
                    error = sys.exc_info()[1]
                    assert error is not None
                    producer._abort_after(error)
                    producer.__exit__(SystemExit, error, None)
                    os._exit(len(error.__notes__))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1

    assert values(warehouse) == [b"one"]


def test_inherited_member_leaves_and_expels_nobody(warehouse: Warehouse) -> None:
    with warehouse.producer() as producer:
        producer.send("t", b"one")
    consumer = warehouse.consumer(group_id="readers", auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.subscribe(["t"])
    assert consumer.poll(timeout_ms=5_000)
    (before,) = warehouse.admin().describe_consumer_groups(["readers"]).values()

    for call in (consumer.poll, consumer.commit, consumer.close, consumer.unsubscribe):
        assert_all_refused(in_children(_calling(call), 1))

    (after,) = warehouse.admin().describe_consumer_groups(["readers"]).values()
    assert [member.member_id for member in after.members] == [member.member_id for member in before.members]
    consumer.commit()
    consumer.close()
    committed = warehouse.admin().list_consumer_group_offsets("readers")[TopicPartition("t", 0)]
    assert committed is not None
    assert committed.offset == 1


ENDING = """
import os, sys
from txntable import Warehouse
warehouse = Warehouse.open(sys.argv[1], durability="page-cache")
consumer = warehouse.consumer(group_id="readers", auto_offset_reset="earliest")
consumer.subscribe(["t"])
consumer.poll(timeout_ms=5000)
producer = warehouse.producer("etl")
producer.init_transactions()
producer.begin_transaction()
producer.send("t", b"one")
producer.flush()
upload = warehouse.store.writer("half")
upload.write(b"half of ")
child = os.fork()
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    upload.write(b"an object")
    upload.close()
    producer.commit_transaction()
    (group,) = warehouse.admin().describe_consumer_groups(["readers"]).values()
    print(warehouse.store.get("half").data.decode(), len(group.members))
    consumer.close()
"""


def test_child_that_ends_as_python_does_takes_nothing_from_its_parent(warehouse: Warehouse) -> None:
    """Destructors, what is registered for the exit, and garbage: an unfinished upload, a heartbeat, a transaction."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", ENDING, warehouse.url],
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "half of an object 1\n", "")
    assert values(warehouse) == [b"one"]


def test_child_of_a_process_with_a_held_lock_is_refused_at_once(warehouse: Warehouse) -> None:
    """The thread that holds it is not in the child: who waited for it would wait for ever."""
    producer = warehouse.producer()
    producer.send("t", b"one")
    producer.flush()
    log = warehouse.topic_log("t").segments
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with producer.lock, log.lock:
            held.set()
            done.wait(LONGEST_SECONDS)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(LONGEST_SECONDS)

    assert_all_refused(in_children(lambda number: producer.flush(), 1))
    assert_all_refused(in_children(lambda number: log.refresh(), 1))
    done.set()
    thread.join()


def test_handles_and_whatever_they_gave_are_refused(warehouse: Warehouse) -> None:
    admin, snapshot, job = warehouse.admin(), warehouse.snapshot(), warehouse.coordinator()
    for call in (
        warehouse.producer,
        warehouse.consumer,
        warehouse.snapshot,
        admin.list_topics,
        lambda: snapshot.read_arrow("t"),
        job.run_once,
    ):
        assert_all_refused(in_children(_calling(call), 1))


def test_inherited_read_waits_for_no_thread_and_the_parent_reads_on() -> None:
    """What was under way at the fork is answered to the parent alone."""
    remote = Warehouse.create("memory://warehouse")
    remote.admin().create_topic("t", partitions=1)
    sent = [f"{number}".encode() for number in range(100)]
    with remote.producer() as producer:
        for value in sent:
            producer.send("t", value)
            producer.flush()
    reader = remote.read_arrow("t")
    first = reader.read_next_batch()

    assert_all_refused(in_children(_calling(reader.read_all), 1))

    assert first["value"].to_pylist() + reader.read_all()["value"].to_pylist() == sent


def test_child_that_opens_the_warehouse_itself_writes_what_it_is_told(warehouse: Warehouse) -> None:
    def send(number: int) -> str:
        own = Warehouse.open(warehouse.url, durability="page-cache")
        with own.producer() as producer:
            sent = producer.send("t", f"child {number}".encode())
        return str(sent.is_delivered)

    assert in_children(send) == ["returned True"] * CHILDREN
    assert values(warehouse) == [f"child {number}".encode() for number in range(CHILDREN)]


# -- the class ----------------------------------------------------------------------------------


def _of_one_process(base: type[OfOneProcess] = OfOneProcess) -> list[type[OfOneProcess]]:
    kinds: list[type[OfOneProcess]] = list(base.__subclasses__())
    return [one for kind in kinds for one in (kind, *_of_one_process(kind))]


def test_everything_with_a_state_is_of_one_process(warehouse: Warehouse) -> None:
    """Who makes another client derives it from there: what a warehouse hands out is looked at."""
    made: list[Any] = [
        warehouse,
        warehouse.admin(),
        warehouse.producer(),
        warehouse.consumer(),
        warehouse.coordinator(),
        warehouse.snapshot(),
        warehouse.topic_log("t").segments,
        warehouse.transactions.log,
        warehouse.offsets.log,
        warehouse.context.clock,
    ]

    assert [type(one).__name__ for one in made if not isinstance(one, OfOneProcess)] == []


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.__name__) for kind in _of_one_process()])
def test_every_public_call_is_refused_in_another_process(kind: type[OfOneProcess]) -> None:
    """Before it looks at its arguments, or at anything else."""
    another: OfOneProcess = object.__new__(kind)
    another._made_in = -1
    names = [
        name
        for name in dir(kind)
        if isinstance(vars(_definer(kind, name)).get(name), FunctionType)
        and (not name.startswith("_") or name in ("__enter__", "__iter__", "__next__"))
    ]

    for name in names:
        with pytest.raises(IllegalStateError, match="fork"):
            getattr(another, name)()


def _definer(kind: type, name: str) -> type:
    return next(base for base in kind.__mro__ if name in vars(base))

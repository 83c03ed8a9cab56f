"""Both implementations at work on one warehouse, judged by the history checker.

The product's producers and processes of the clean room take the same partitions: they commit, abort, leave
transactions open, and fence each other, while both read.  What each was told and saw, and what the store holds in the
end, read by code that shares nothing with either, is held against all rules of ``tests/checker``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.checker.check import check, violations
from tests.checker.gathering import Folder, Stored, gather
from tests.checker.operations import End, Init, Level, Operation, Outcome, Read, Seen, Send, Topics, Write
from tests.checker.recorder import Recorder
from txntable import TxnTableError, Warehouse

CLEAN_ROOM = Path(__file__).parent / "clean_room.py"
SCHEMA = pa.schema([("value", pa.string()), ("amount", pa.int64())])
TOPIC, PARTITIONS, ROUNDS = "money", 2, 4
DONE, REFUSED = 0, 2
ENDS = ("commit", "abort", "commit", "leave")


@dataclass
class Run:
    """A warehouse at which both kinds work, and what each call of theirs came to."""

    warehouse: Warehouse
    history: dict[tuple[str, int], Operation] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)
    # One clock for all: what was asked before another was answered has the lower moment.
    moments: Iterator[int] = field(default_factory=count)

    def recorder(self, process: str) -> Recorder:
        def keep(number: int, told: Operation) -> None:
            self.history[process, number] = told

        return Recorder(process, lambda: next(self.moments), keep)

    def transfer(self) -> tuple[Write, ...]:
        """Records that sum up to nothing, each of a value of its own."""
        names = [f"v{next(self.numbers)}" for _ in range(2)]
        return tuple(Write((TOPIC, 0), name, amount=amount) for name, amount in zip(names, (5, -5), strict=True))


def rows_of(writes: Sequence[Write]) -> list[dict[str, Any]]:
    return [{"value": write.value, "amount": write.amount} for write in writes]


def clean_room(run: Run, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    """Run one command of the clean room; return its exit code and what it said."""
    command = [sys.executable, "-P", str(CLEAN_ROOM), "-w", run.warehouse.url.removeprefix("file://"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def transact_in_the_clean_room(run: Run, transactional_id: str) -> None:
    """Transactions of processes of the clean room, one after the other; every fourth is left open."""
    recorder = run.recorder(f"clean room {transactional_id}")
    for number in range(ROUNDS):
        txn, end, writes = f"{transactional_id} c{number}", ENDS[number % len(ENDS)], run.transfer()
        values = json.dumps(rows_of(writes))
        arguments = [transactional_id, "--topic", TOPIC, "--partition", "0", "--values", values, "--end", end]
        arguments += ["--leave-complete"] if number % 3 else []
        # One command does all of it: each of its calls may have been made at any time in between.
        with (
            recorder.calling(Init(transactional_id)) as init,
            recorder.calling(Send(f"{recorder.process} {number}", txn, writes)) as send,
            recorder.calling(End(txn, end == "commit", transactional_id=transactional_id)) as ended,
        ):
            code, said = clean_room(run, "transact", *arguments)
            if code == DONE:
                identity = {"producer_id": said[0]["producer_id"], "epoch": said[0]["producer_epoch"]}
                for call in (init, send, ended):
                    call.saw(**identity)
                ended.outcome = Outcome.INFO if end == "leave" else Outcome.OK
            else:
                # It was fenced on its way, by whom it met: nothing of it is committed, but of an init nothing is known.
                assert code == REFUSED, said
                init.outcome = send.outcome = Outcome.INFO
                ended.outcome = Outcome.FAIL


def transact_in_the_product(run: Run, transactional_id: str) -> None:
    """The same by the product, with a producer for each transaction."""
    recorder = run.recorder(f"product {transactional_id}")
    for number in range(ROUNDS):
        txn, end, writes = f"{transactional_id} p{number}", ENDS[number % len(ENDS)], run.transfer()
        producer = run.warehouse.producer(transactional_id)
        with suppress(TxnTableError):
            with recorder.calling(Init(transactional_id)) as init:
                producer.init_transactions()
                who, epoch = producer.producer_id, producer.producer_epoch
                init.saw(producer_id=who, epoch=epoch)
            producer.begin_transaction()
            with recorder.calling(Send(f"{recorder.process} {number}", txn, writes, who, epoch)):
                for row in rows_of(writes):
                    producer.send(TOPIC, row=row, partition=0)
                producer.flush()
            if end != "leave":
                with recorder.calling(End(txn, end == "commit", None, transactional_id, who, epoch)):
                    producer.commit_transaction() if end == "commit" else producer.abort_transaction()


def seen_of(records: Sequence[dict[str, Any]]) -> tuple[Seen, ...]:
    return tuple(Seen((TOPIC, each["_partition"]), each["_offset"], each["value"]) for each in records)


def read_in_the_clean_room(run: Run, recorder: Recorder, *, final: bool = False) -> None:
    for level in Level:
        with recorder.calling(Read(level, final=final)) as call:
            at: list[str] = []
            if level is Level.SNAPSHOT:
                position = clean_room(run, "describe")[1][0]["position"]
                at = ["--position", str(position)]
                call.saw(position=position, as_of=not final)
            code, records = clean_room(run, "read", TOPIC, "--isolation", level.value, *at)
            assert code == DONE, records
            call.saw(records=seen_of(records))


def read_in_the_product(run: Run, recorder: Recorder, *, final: bool = False) -> None:
    columns = ["value", "_partition", "_offset"]
    for level in Level:
        with recorder.calling(Read(level, final=final)) as call:
            if level is Level.SNAPSHOT:
                snapshot = run.warehouse.snapshot()
                call.saw(position=snapshot.position)
                found = snapshot.read_arrow(TOPIC, columns=columns)
            else:
                run.warehouse.complete()
                found = run.warehouse.read_arrow(TOPIC, columns=columns, isolation_level=level.value)
            call.saw(records=seen_of(found.read_all().to_pylist()))


def read_while_others_write(run: Run) -> None:
    of_clean_room, of_product = run.recorder("clean room's reader"), run.recorder("product's reader")
    for _ in range(2):
        read_in_the_clean_room(run, of_clean_room)
        read_in_the_product(run, of_product)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = Warehouse.create(str(tmp_path / "wh"), durability="page-cache")
    made.admin().create_topic(TOPIC, partitions=PARTITIONS, schema=SCHEMA)
    return Run(made)


def test_history_of_both_implementations_at_once_breaks_no_rule(run: Run) -> None:
    """They share the id `both`, so they fence each other; of the others each is one kind's alone."""
    work = [
        lambda: transact_in_the_clean_room(run, "both"),
        lambda: transact_in_the_product(run, "both"),
        lambda: transact_in_the_clean_room(run, "clean"),
        lambda: transact_in_the_product(run, "ours"),
        lambda: read_while_others_write(run),
    ]
    with ThreadPoolExecutor(len(work)) as threads:
        for each in [threads.submit(one) for one in work]:
            each.result()
    for transactional_id in ("both", "clean", "ours"):
        with run.recorder(f"judge of {transactional_id}").calling(Init(transactional_id)) as call:
            (identity,) = run.warehouse.admin().fence_producers([transactional_id]).values()
            call.saw(producer_id=identity[0], epoch=identity[1])
    read_in_the_clean_room(run, run.recorder("clean room's last reader"), final=True)
    read_in_the_product(run, run.recorder("product's last reader"), final=True)

    history = list(run.history.values())
    evidence = gather(Stored(Folder(Path(run.warehouse.url.removeprefix("file://")))))
    topics = Topics(accounts=frozenset({TOPIC}))
    assert violations(check(history, evidence, topics)) == []
    for kind in ("clean", "product"):
        # Each kind has committed, and a lie about it would have been found.
        done = next(one for one in history if one.process.startswith(kind) and is_committed(one))
        lied = [replace(one, outcome=Outcome.FAIL) if one is done else one for one in history]
        assert violations(check(lied, evidence, topics)) != []


def is_committed(operation: Operation) -> bool:
    return isinstance(operation.call, End) and operation.call.commit and operation.outcome is Outcome.OK

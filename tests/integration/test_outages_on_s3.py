"""A real S3 API that answers nothing well for a while is ridden out: in real time, by obstore's connections.

A build has outages of one second; ``HYPOTHESIS_PROFILE=explore`` has those of 1, 5, 10 and 30 seconds at each place.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.doubles.faulty_proxy import FaultyServer, HttpFault, HttpRule, RequestKind
from tests.simulation.site import TWO_COLUMNS
from txntable.compaction.vacuum import vacuum
from txntable.storage.multipart_upload import PART_BYTES
from txntable.warehouse.warehouse import Warehouse

pytestmark = pytest.mark.s3

SECONDS = (1, 5, 10, 30) if os.environ.get("HYPOTHESIS_PROFILE") == "explore" else (1,)
EVER = 1_000_000


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with FaultyServer("outages") as running:
        yield running


@pytest.fixture
def warehouse(server: FaultyServer, request: pytest.FixtureRequest) -> Warehouse:
    url = f"{server.url}/{abs(hash(request.node.nodeid)):x}"
    made = Warehouse.create(url, server.storage_options)
    made.admin().create_topic("t", partitions=1, schema=TWO_COLUMNS)
    return made


class Outage:
    """Every request fails for a while, in a way that stands for all."""

    def __init__(self, server: FaultyServer, fault: HttpFault, seconds: float) -> None:
        self._server, self._fault, self._seconds = server, fault, seconds

    def begin(self) -> None:
        self._server.follow(*(HttpRule(self._fault, kind, times=EVER) for kind in RequestKind))
        threading.Timer(self._seconds, self._server.heal).start()


def transact(warehouse: Warehouse, before: dict[str, Callable[[], None]]) -> None:
    """A transaction and all that reads it, with something happening at one place."""

    def at(place: str) -> None:
        before.get(place, lambda: None)()

    producer = warehouse.producer("etl")
    at("init")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", row={"account": "a", "amount": 1})
    at("commit")
    producer.commit_transaction()
    at("poll")
    consumer = warehouse.consumer(group_id="g", auto_offset_reset="earliest")
    consumer.subscribe(["t"])
    found = consumer.poll(timeout_ms=100_000)
    assert sum(len(records) for records in found.values()) == 1
    at("jobs")
    warehouse.coordinator().run_once()
    vacuum(warehouse, execute=True)
    at("upload")
    with warehouse.store.writer("large") as file:
        for number in range(3):
            file.write(b"x" * PART_BYTES)
            if number == 0:
                at("part")
    large = warehouse.store.head("large")
    assert large is not None
    assert large.size == 3 * PART_BYTES


@pytest.mark.parametrize("seconds", SECONDS)
@pytest.mark.parametrize(
    ("place", "fault"),
    [
        ("init", HttpFault.RESET_BEFORE),
        ("commit", HttpFault.RESET_AFTER),
        ("poll", HttpFault.ERROR_500),
        ("jobs", HttpFault.SLOW_DOWN),
        ("part", HttpFault.SLOW_DOWN),
    ],
)
def test_outage_is_ridden_out(
    warehouse: Warehouse, server: FaultyServer, place: str, fault: HttpFault, seconds: float
) -> None:
    transact(warehouse, {place: Outage(server, fault, seconds).begin})

    assert warehouse.read_arrow("t").read_all().num_rows == 1


def test_interrupt_ends_a_call_that_is_tried_again_at_once(server: FaultyServer) -> None:
    with socket.socket() as refused:
        refused.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{refused.getsockname()[1]}"
        options = {name: nowhere if "ENDPOINT" in name else value for name, value in server.storage_options.items()}
        code = (
            "import sys; from txntable import Warehouse\n"
            "import txntable.storage.retries as retries\n"
            "wait = retries.Attempts.wait\n"
            "def told(attempts):\n"
            "    if attempts.failed == 5: print('waiting', flush=True)\n"
            "    return wait(attempts)\n"
            "retries.Attempts.wait = told\n"
            f"Warehouse.open({server.url!r} + '/none', {options!r})\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "waiting\n"
            child.send_signal(signal.SIGINT)
            # The next attempts would take two minutes.
            _, told = child.communicate(timeout=30)

    assert "KeyboardInterrupt" in told
    assert child.returncode != 0

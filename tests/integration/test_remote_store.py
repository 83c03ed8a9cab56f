"""RemoteStore against a real S3 API (moto behind a lock)."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from txntable.storage.object_store import PutOutcome, StoreSpec
from txntable.storage.open import open_store
from txntable.storage.remote import RemoteStore
from txntable.testing.moto_server import LockedMotoServer

RACES = 200
RACERS = 4


@pytest.fixture(scope="module")
def server() -> Iterator[LockedMotoServer]:
    with LockedMotoServer() as running:
        yield running


@pytest.fixture
def store(server: LockedMotoServer) -> RemoteStore:
    opened = open_store(StoreSpec(f"{server.url}/prefix", server.storage_options))
    assert isinstance(opened, RemoteStore)
    return opened


@pytest.fixture
def _threads_switch_anywhere() -> Iterator[None]:
    """Make check-then-act show: an unlocked moto has two winners in 1 to 2.5 % of races."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("_threads_switch_anywhere")
def test_put_if_absent_creates_once_in_each_of_many_races(store):
    barrier = threading.Barrier(RACERS)

    def race(racer: int) -> list[PutOutcome]:
        outcomes = []
        for number in range(RACES):
            barrier.wait()
            outcomes.append(store.put_if_absent(f"races/{number:04d}", b"%d" % racer))
        return outcomes

    with ThreadPoolExecutor(RACERS) as pool:
        outcomes = list(zip(*pool.map(race, range(RACERS)), strict=True))

    assert [race.count(PutOutcome.CREATED) for race in outcomes] == [1] * RACES
    winners = [b"%d" % race.index(PutOutcome.CREATED) for race in outcomes]
    assert [found.data for found in store.get_many([f"races/{n:04d}" for n in range(RACES)])] == winners


def test_given_up_stream_leaves_no_parts_behind(store, server):
    with pytest.raises(KeyError), store.writer("stream") as file:  # noqa: PT012
        file.write(b"x" * 30_000_000)
        raise KeyError

    assert store.get("stream") is None
    assert b"<Upload>" not in server.ask("GET", f"{server.bucket}?uploads")


def test_small_stream_is_one_request(store, server):
    server.requests.clear()

    with store.writer("small") as file:
        file.write(b"x")

    assert server.requests == {"PUT": 1}


def test_objects_lie_under_the_prefix_and_others_are_not_seen(store, server):
    whole_bucket = open_store(StoreSpec(server.url, server.storage_options))
    whole_bucket.put("prefix-2/other", b"")
    store.put("a/b", b"content")

    assert [meta.path for meta in store.list("a")] == ["a/b"]
    assert store.get("other") is None
    assert [meta.path for meta in whole_bucket.list("prefix/a")] == ["prefix/a/b"]


def test_list_yields_everything_when_it_takes_several_pages(store, monkeypatch):
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "10")
    written = [f"many/{number:04d}" for number in range(35)]
    for path in written:
        store.put(path, b"")

    assert [meta.path for meta in store.list("many")] == written


def test_another_process_opens_the_same_store_from_its_spec(store):
    code = (
        "import sys, pickle; from txntable.storage.open import open_store\n"
        "open_store(pickle.load(sys.stdin.buffer)).put('from-another', b'hello')"
    )
    pickled = pickle.dumps(store.spec)

    subprocess.run([sys.executable, "-c", code], input=pickled, check=True)

    assert store.get("from-another").data == b"hello"

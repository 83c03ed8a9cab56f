"""Every call of a store against every fault of S3: what reaches the caller, what was done, how often it was sent.

A put-if-absent is sent once; everything else is sent again, a bounded number of times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from tests.doubles.faulty_proxy import FaultyServer, HttpFault, HttpRule, RequestKind
from txntable.errors import StorePermissionError, StoreUnavailableError, TxnTableError
from txntable.storage.object_store import PutOutcome, StoreSpec
from txntable.storage.remote import RemoteStore

pytestmark = pytest.mark.s3

# A call that is never answered well is given up after so long, and by then it has been made so often at most.
IMPATIENT = "200ms"
MOST_ATTEMPTS = 12
DATA = b"0123456789" * 1000
PART = 8 * 1024 * 1024
EVER = 1000

Fault: TypeAlias = HttpFault
Kind: TypeAlias = RequestKind
RETRIED = [Fault.ERROR_500, Fault.SLOW_DOWN, Fault.RESET_BEFORE, Fault.LOST_500, Fault.RESET_AFTER]


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with FaultyServer("faults") as running:
        yield running


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait hardly at all between two attempts."""
    monkeypatch.setattr("txntable.storage.retries.FIRST_BACKOFF_MS", 10.0)
    monkeypatch.setattr("txntable.storage.retries.LARGEST_BACKOFF_MS", 40.0)


@pytest.fixture
def store(server: FaultyServer, request: pytest.FixtureRequest) -> Iterator[RemoteStore]:
    """A store with two small objects, opened by a client that tries again."""
    opened = RemoteStore(StoreSpec(f"{server.url}/{abs(hash(request.node.nodeid)):x}", server.storage_options))
    for path in ("a", "b"):
        opened.put(path, DATA)
    yield opened
    server.heal()


@pytest.fixture
def impatient(store: RemoteStore) -> RemoteStore:
    """The same store, opened by a client that soon gives up."""
    return RemoteStore(StoreSpec(store.spec.url, {**store.spec.options, "retry_timeout": IMPATIENT}))


def stream(store: RemoteStore) -> int:
    with store.writer("streamed") as file:
        file.write(b"x" * PART)
        file.write(b"x")
    found = store.head("streamed")
    assert found is not None
    return found.size


def stream_small(store: RemoteStore) -> bytes:
    """One request, which replaces nothing: an attempt whose answer was lost is met again, and is ours."""
    with store.writer("small") as file:
        file.write(DATA)
    found = store.get("small")
    assert found is not None
    return found.data


CALLS: dict[Kind, tuple[Callable[[RemoteStore], object], object]] = {
    Kind.GET: (lambda store: store.get("a").data, DATA),  # type: ignore[union-attr]
    Kind.RANGED_GET: (lambda store: store.get_range("a", 10, 500), DATA[10:510]),
    Kind.HEAD: (lambda store: store.head("a").size, len(DATA)),  # type: ignore[union-attr]
    Kind.LIST: (lambda store: [meta.path for meta in store.list("")], ["a", "b"]),
    Kind.PUT: (lambda store: (store.put("a", b"new"), store.get("a").data)[1], b"new"),  # type: ignore[func-returns-value, union-attr]
    Kind.BULK_DELETE: (lambda store: (store.delete_unordered(["a", "b"]), list(store.list("")))[1], []),  # type: ignore[func-returns-value]
    Kind.CONDITIONAL_PUT: (stream_small, DATA),
    Kind.CREATE_MULTIPART: (stream, PART + 1),
    Kind.UPLOAD_PART: (stream, PART + 1),
    Kind.COMPLETE_MULTIPART: (stream, PART + 1),
}
SMALL = [Kind.GET, Kind.RANGED_GET, Kind.HEAD, Kind.LIST, Kind.PUT, Kind.BULK_DELETE]
STREAMS = [Kind.CREATE_MULTIPART, Kind.UPLOAD_PART, Kind.COMPLETE_MULTIPART]
PASSING = [
    *((kind, fault) for kind in SMALL for fault in RETRIED),
    *((kind, fault) for kind in STREAMS for fault in (Fault.SLOW_DOWN, Fault.RESET_AFTER)),
    *((kind, Fault.CONFLICT) for kind in SMALL),
    *((kind, Fault.TIMED_OUT) for kind in SMALL if kind is not Kind.HEAD),
    *((kind, Fault.TRUNCATED) for kind in (Kind.GET, Kind.RANGED_GET, Kind.LIST, Kind.BULK_DELETE)),
    *((Kind.CONDITIONAL_PUT, fault) for fault in (*RETRIED, Fault.CONFLICT, Fault.TIMED_OUT, Fault.LOST_412)),
    (Kind.BULK_DELETE, Fault.PARTIAL),
    (Kind.BULK_DELETE, Fault.ERROR_IN_200),
    # done, and never known: the object itself tells whose it is
    *((Kind.COMPLETE_MULTIPART, fault) for fault in (Fault.TRUNCATED, Fault.LOST_412, Fault.ERROR_IN_200)),
]


@pytest.mark.parametrize(("kind", "fault"), PASSING)
def test_call_succeeds_when_one_answer_goes_wrong(
    store: RemoteStore, server: FaultyServer, kind: Kind, fault: Fault
) -> None:
    call, expected = CALLS[kind]
    server.follow(HttpRule(fault, kind))

    assert call(store) == expected
    asked = [request.kind for request in server.seen]
    # the rest of an object is asked for by its range; a bulk delete that failed is made one by one
    assert 1 <= sum(found in {kind, Kind.RANGED_GET} for found in asked) <= 4


@pytest.mark.parametrize("fault", [Fault.SLOW, Fault.LATE])
@pytest.mark.parametrize("kind", [Kind.GET, Kind.PUT, Kind.COMPLETE_MULTIPART])
def test_call_succeeds_when_an_answer_is_held_back_for_longer_than_the_timeout(
    server: FaultyServer, kind: Kind, fault: Fault
) -> None:
    options = {**server.storage_options, "timeout": "500ms"}
    store = RemoteStore(StoreSpec(f"{server.url}/slow-{kind.name}-{fault.name}", options))
    store.put("a", DATA)
    call, expected = CALLS[kind]
    server.follow(HttpRule(fault, kind))

    assert call(store) == expected
    server.heal()


@pytest.mark.parametrize("fault", [Fault.SLOW_DOWN, Fault.RESET_BEFORE, Fault.CONFLICT])
@pytest.mark.parametrize("kind", [Kind.GET, Kind.RANGED_GET, Kind.HEAD, Kind.LIST, Kind.PUT, Kind.UPLOAD_PART])
def test_call_gives_up_after_a_bounded_number_of_requests_when_no_answer_is_good(
    impatient: RemoteStore, server: FaultyServer, kind: Kind, fault: Fault
) -> None:
    call, _ = CALLS[kind]
    server.follow(HttpRule(fault, kind, times=EVER))

    with pytest.raises(StoreUnavailableError) as raised:
        call(impatient)

    parts = 2 if kind is Kind.UPLOAD_PART else 1
    assert sum(request.kind is kind for request in server.seen) <= parts * MOST_ATTEMPTS
    assert set(raised.value.facts) == {"path", "reason", "tried_for_ms"}
    assert "127.0.0.1" not in str(raised.value)
    assert isinstance(raised.value.facts["tried_for_ms"], int)


def test_truncated_object_is_never_returned_short_when_every_answer_breaks_off(
    impatient: RemoteStore, server: FaultyServer
) -> None:
    server.follow(
        HttpRule(Fault.TRUNCATED, Kind.GET, times=EVER), HttpRule(Fault.TRUNCATED, Kind.RANGED_GET, times=EVER)
    )

    for call in (lambda: impatient.get("a"), lambda: impatient.get_range("a", 10, 500)):
        with pytest.raises(StoreUnavailableError):
            call()

    assert len(server.seen) <= 2 * MOST_ATTEMPTS


@pytest.mark.parametrize(
    ("fault", "outcome", "there"),
    [
        (Fault.CONFLICT, PutOutcome.EXISTS, False),
        (Fault.LOST_412, PutOutcome.EXISTS, True),
        (Fault.ERROR_500, StoreUnavailableError, False),
        (Fault.SLOW_DOWN, StoreUnavailableError, False),
        (Fault.RESET_BEFORE, StoreUnavailableError, False),
        (Fault.LOST_500, StoreUnavailableError, True),
        (Fault.RESET_AFTER, StoreUnavailableError, True),
        (Fault.DENIED, StorePermissionError, False),
    ],
)
def test_put_if_absent_is_sent_once_and_is_never_said_to_have_created_when_its_answer_goes_wrong(
    store: RemoteStore,
    server: FaultyServer,
    fault: Fault,
    outcome: PutOutcome | type[TxnTableError],
    there: bool,
) -> None:
    server.follow(HttpRule(fault, Kind.CONDITIONAL_PUT, times=EVER))

    if isinstance(outcome, PutOutcome):
        assert store.put_if_absent("new", b"1") is outcome
    else:
        with pytest.raises(outcome):
            store.put_if_absent("new", b"1")

    assert [request.kind for request in server.seen] == [Kind.CONDITIONAL_PUT]
    assert (store.get("new") is not None) is there


def test_listing_goes_on_where_it_broke_off_when_a_later_page_is_cut(
    store: RemoteStore, server: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "2")
    for number in range(5):
        store.put(f"c{number}", b"")
    server.follow(HttpRule(Fault.TRUNCATED, Kind.LIST, first=2))

    assert [meta.path for meta in store.list("")] == ["a", "b", "c0", "c1", "c2", "c3", "c4"]


def test_partial_bulk_delete_raises_when_an_object_is_refused_for_ever(
    impatient: RemoteStore, server: FaultyServer
) -> None:
    server.follow(HttpRule(Fault.PARTIAL, Kind.BULK_DELETE, times=EVER))

    with pytest.raises(StoreUnavailableError):
        impatient.delete_unordered(["a", "b"])

    assert len(server.seen) <= 2 * MOST_ATTEMPTS
    assert [meta.path for meta in impatient.list("")] == ["a"]


def test_completion_that_was_not_done_is_not_taken_for_done_when_an_older_object_has_the_same_size(
    store: RemoteStore, server: FaultyServer
) -> None:
    stream(store)
    server.follow(HttpRule(Fault.NO_UPLOAD, Kind.COMPLETE_MULTIPART, times=EVER))

    with pytest.raises(StoreUnavailableError):
        stream(store)

    assert server.seen[-2].kind is Kind.ABORT_MULTIPART


def test_completion_is_found_to_be_done_when_its_answer_was_lost_and_the_next_one_meets_no_upload(
    store: RemoteStore, server: FaultyServer
) -> None:
    server.follow(
        HttpRule(Fault.RESET_AFTER, Kind.COMPLETE_MULTIPART), HttpRule(Fault.NO_UPLOAD, Kind.COMPLETE_MULTIPART)
    )

    assert stream(store) == PART + 1

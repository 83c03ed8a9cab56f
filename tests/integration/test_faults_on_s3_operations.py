"""Every operation of users against every fault of S3 at every kind of its requests: nothing is lost, nothing doubled.

The requests are found by running an operation once, so that a new one cannot be forgotten.  Then it is run again with
one of them going wrong: it succeeds, or raises a clear error and succeeds when it is called again.  The store tries
nothing again here, so each fault reaches the layers above; what the store does is tested beside this.

``HYPOTHESIS_PROFILE=explore`` lets each request go wrong in every way.  Else the first and the last of each kind do,
in turn, and each commit in two ways; of the jobs' commits every third or fifth.  A build tries a third of all that.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeAlias

import pyarrow as pa
import pytest

from tests.doubles.faulty_proxy import HttpFault, HttpRule, Request, RequestKind
from tests.integration.faulty_site import Attempt, FaultySite, served
from tests.parts import parts
from tests.simulation.copying import member_of
from tests.simulation.picture import records
from tests.simulation.rubbish import check_whole, data_files, needed_files
from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.simulation.test_compaction_crashes import check_kept, everything, site_to_compact
from tests.simulation.test_crashes import (
    abort,
    committed_transfers,
    prepared,
    recover,
    site_with_work_for_the_coordinator,
    transfer,
)
from tests.simulation.test_group_crashes import GROUP, IN, abort_copy, copy, site_with_input
from tests.simulation.test_retention_crashes import delete_records, expire, site_with_old_records
from tests.simulation.test_vacuum import tidy_up, untidy
from tests.unit.reading import TOPIC
from txntable.compaction.compactor import compact
from txntable.errors import DamagedDataError, RetriableError, TopicAlreadyExistsError, TxnTableError
from txntable.format.layout import commit_path, last_checkpoint_path, public_root
from txntable.warehouse.warehouse import Warehouse

pytestmark = pytest.mark.s3

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
EVER = 1000
PARTS = 3
# Requests of a run that failed, was waited for and was done again, for each of a run that went well.
MOST_TIMES, AND = 3, 40

Fault: TypeAlias = HttpFault
Kind: TypeAlias = RequestKind
# Faults, and to how many requests for the same object in a row.
WRONG: dict[Kind, list[tuple[Fault, int]]] = {
    Kind.CONDITIONAL_PUT: [
        (Fault.LOST_412, 1),
        (Fault.RESET_AFTER, 1),
        (Fault.CONFLICT, 2),
        (Fault.ERROR_500, 1),
        (Fault.LOST_500, EVER),
        (Fault.SLOW_DOWN, EVER),
    ],
    Kind.PUT: [(Fault.SLOW_DOWN, 1), (Fault.RESET_AFTER, 1)],
    Kind.GET: [(Fault.SLOW_DOWN, EVER), (Fault.ERROR_500, 1), (Fault.TRUNCATED, 1)],
    Kind.RANGED_GET: [(Fault.RESET_BEFORE, 1), (Fault.TRUNCATED, 1), (Fault.SLOW_DOWN, EVER)],
    Kind.HEAD: [(Fault.ERROR_500, 1)],
    Kind.LIST: [(Fault.SLOW_DOWN, 1), (Fault.TRUNCATED, 1)],
    Kind.LIST_UPLOADS: [(Fault.DENIED, 1)],
    Kind.BULK_DELETE: [(Fault.ERROR_500, 1), (Fault.RESET_AFTER, 1), (Fault.PARTIAL, 2)],
}


@pytest.fixture(scope="module")
def site() -> Iterator[FaultySite]:
    with served("operations") as running, pytest.MonkeyPatch.context() as patch:
        # Of two, both may be answered that another is there.
        patch.setattr("txntable.storage.probe.RACERS", 3)
        yield running


@dataclass(frozen=True)
class Case:
    """An operation of users.

    Attributes
    ----------
    prepared : Callable
        Makes the site that it is done on.
    operation : Callable
        What is done.
    check : Callable
        Looks at the site before and after, past S3.
    every : int
        Of how many of its commits one goes wrong.
    """

    prepared: Callable[[], Site]
    operation: Callable[[Attempt], object]
    check: Callable[[Site, Site, str], None]
    every: int = 1


# -- operations ---------------------------------------------------------------------------------


def create_topic(warehouse: Warehouse) -> None:
    # A call whose answer was lost, made again: the topic is there, with these settings.
    with suppress(TopicAlreadyExistsError):
        warehouse.admin().create_topic("fresh", partitions=2, schema=TWO_COLUMNS, key=["account"])
    warehouse.topic_log("fresh").catch_up()


def send_idempotent(attempt: Attempt) -> None:
    """One producer sends records, and flushes again what it could not flush."""
    producer = attempt.twice(lambda: attempt.site.open().producer())
    records = pa.table({"account": ["plain 0", "plain 1", "plain 2"], "amount": [1, 2, 3]}, schema=TWO_COLUMNS)
    attempt.twice(lambda: producer.send("debit", rows=records, partition=0))
    attempt.twice(producer.flush)


def consume(attempt: Attempt) -> None:
    """A member of a group polls until it has everything, commits and leaves."""
    seen: list[tuple[int, int]] = []
    consumer = attempt.twice(lambda: member_of(attempt.site.open(), GROUP, enable_auto_commit=False))
    attempt.twice(lambda: consumer.subscribe(["debit"]))

    def poll() -> None:
        while len(seen) < 2:
            # Without a timeout, in which it would try again by itself.
            found = consumer.poll()
            seen.extend((each.partition, each.offset) for several in found.values() for each in several)

    attempt.twice(poll)
    attempt.twice(consumer.commit)
    attempt.twice(consumer.close)
    assert seen == [(0, 0), (0, 1)]


def read_arrow(attempt: Attempt) -> None:
    found = []
    attempt.at(lambda warehouse: found.append(records(warehouse.read_arrow("debit").read_all())))
    assert len(found[-1]) == 6


def vacuum_all(warehouse: Warehouse) -> None:
    require_none(tidy_up(warehouse).failures)


def compact_all(warehouse: Warehouse) -> None:
    require_none([failure for report in compact(warehouse) for failure in report.failures])


def coordinate(warehouse: Warehouse) -> None:
    require_none(warehouse.coordinator().run_once().failures)


def require_none(failures: object) -> None:
    """What these jobs could not do is in their reports, and is left to their next run."""
    if failures:
        raise RetriableError("left to the next run", failures=failures)


# -- what must be true --------------------------------------------------------------------------


def check_warehouse(before: Site, after: Site, where: str) -> None:
    after.create().admin().create_topic("t")
    assert after.open().admin().list_topics() == ["t"], where


def check_topic(before: Site, after: Site, where: str) -> None:
    topic = after.open().topic_log("fresh")
    assert topic.public.refresh().version == 0, where
    assert topic.segments.refresh().version == 0, where


def check_transfer(before: Site, after: Site, where: str) -> None:
    recover(after)
    assert committed_transfers(after, where) == committed_transfers(before, where) + 1, where


def check_no_transfer(before: Site, after: Site, where: str) -> None:
    recover(after)
    assert committed_transfers(after, where) == 0, where


def check_copied(before: Site, after: Site, where: str) -> None:
    other = recover(after)
    assert sorted(row["account"] for row in published(other, "credit")) == ["copy 0", "copy 1"], where
    assert offset_of_group(other) == 2, where


def offset_of_group(warehouse: Warehouse) -> int:
    found = warehouse.admin().list_consumer_group_offsets(GROUP)[IN]
    assert found is not None
    return found.offset


def check_not_copied(before: Site, after: Site, where: str) -> None:
    other = recover(after)
    assert published(other, "credit") == [], where
    assert other.admin().list_consumer_group_offsets(GROUP) == {}, where


def check_sent(before: Site, after: Site, where: str) -> None:
    sent = [row["account"] for row in published(recover(after), "debit")]
    assert sent == ["plain 0", "plain 1", "plain 2"], where


def check_group(before: Site, after: Site, where: str) -> None:
    assert published(after.open(), "debit") == published(before.open(), "debit"), where
    assert offset_of_group(after.open()) == 2, where


def check_same(before: Site, after: Site, where: str) -> None:
    for topic in before.open().admin().list_topics():
        assert published(after.open(), topic) == published(before.open(), topic), where


def check_coordinated(before: Site, after: Site, where: str) -> None:
    check_whole(after)
    assert not after.open().transactions.log.fold.under_way, where
    whole = before.copy()
    coordinate(whole.open())
    check_same(whole, after, where)


def check_compacted(before: Site, after: Site, where: str) -> None:
    check_kept(everything(before), after, where)


def check_deleted(before: Site, after: Site, where: str) -> None:
    assert [row["account"] for row in published(after.open(), TOPIC)] == ["b6", "b7", "c9"], where


def check_expired(before: Site, after: Site, where: str) -> None:
    whole = before.copy()
    expire(whole.open())
    check_same(whole, after, where)


def check_tidy(before: Site, after: Site, where: str) -> None:
    check_whole(after)
    assert data_files(after) == needed_files(after), where
    check_same(before, after, where)


def with_transfer() -> Site:
    made = prepared()
    transfer(made.open())
    return made


def with_work_for_the_coordinator() -> Site:
    made = site_with_work_for_the_coordinator()
    # S3 tells the time in whole seconds.
    made.advance_ms(1_000)
    return made


CASES = {
    "create warehouse": Case(Site, Attempt.creating, check_warehouse),
    "create topic": Case(prepared, lambda a: a.at(create_topic), check_topic),
    "commit": Case(prepared, lambda a: a.at(transfer), check_transfer),
    "commit with offsets": Case(site_with_input, lambda a: a.at(copy), check_copied),
    "abort": Case(prepared, lambda a: a.at(abort), check_no_transfer),
    "abort with offsets": Case(site_with_input, lambda a: a.at(abort_copy), check_not_copied),
    "send": Case(prepared, send_idempotent, check_sent),
    "read": Case(with_transfer, read_arrow, check_same),
    "poll": Case(site_with_input, consume, check_group),
    "coordinator": Case(with_work_for_the_coordinator, lambda a: a.at(coordinate), check_coordinated, every=5),
    "compact": Case(site_to_compact, lambda a: a.at(compact_all), check_compacted, every=3),
    "delete records": Case(site_with_old_records, lambda a: a.at(delete_records), check_deleted),
    "retention": Case(site_with_old_records, lambda a: a.at(expire), check_expired),
    "vacuum": Case(untidy, lambda a: a.at(vacuum_all), check_tidy, every=3),
}


def rules(case: Case, seen: list[Request]) -> Iterator[HttpRule]:
    """What is to go wrong in turn, of the requests that an operation makes; their paths are the same in each run."""
    of_kind: dict[Kind, list[HttpRule]] = {}
    times = Counter[Request]()
    for request in seen:
        times[request] += 1
        rule = HttpRule(Fault.SLOW_DOWN, request.kind, request.path, first=times[request])
        of_kind.setdefault(request.kind, []).append(rule)
    for kind, found in of_kind.items():
        wrong = WRONG[kind]
        commits = [rule for rule in found if kind is Kind.CONDITIONAL_PUT and "/_delta_log/" in rule.path]
        rest = [rule for rule in found if rule not in commits]
        chosen = [(rule, wrong[number % len(wrong)]) for number, rule in enumerate(commits[:: case.every])]
        if case.every == 1:
            chosen += [(rule, (Fault.LOST_412, 1)) for rule in commits]
        if rest:
            chosen += [(rest[-(number % 2)], each) for number, each in enumerate(wrong)]
        if THOROUGH:
            chosen = [(rule, each) for rule in found for each in wrong]
        yield from (replace(rule, fault=fault, times=times) for rule, (fault, times) in dict.fromkeys(chosen))


@pytest.mark.parametrize("part", parts(PARTS, of_a_build=1))
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_lost_or_doubled_when_a_request_goes_wrong(site: FaultySite, name: str, part: int) -> None:
    case = CASES[name]
    before = case.prepared()
    clean = before.copy()
    well = site.run(clean, case.operation)
    assert well.error is None
    case.check(before, clean, "without a fault")
    failed = 0
    for rule in islice(rules(case, well.requests), part, None, PARTS):
        after = before.copy()
        where = f"{name}: {rule.fault.name} at {rule.kind.name} {rule.path} {rule.first}"

        outcome = site.run(after, case.operation, rule)

        failed += outcome.error is not None
        case.check(before, after, where)
        assert len(outcome.requests) <= MOST_TIMES * len(well.requests) + AND, where
    assert failed or name in {"vacuum", "coordinator"}, "some fault has to reach the caller"


def with_checkpoint_to_be_listed() -> Site:
    """The hint is lost, and the beginning of the log cleaned up: only a listing tells where it begins."""
    made = with_transfer()
    log = made.open().topic_log("debit").public
    log.write_checkpoint()
    made.objects.delete(last_checkpoint_path(log.root))
    made.objects.delete(commit_path(log.root, 0))
    return made


@pytest.mark.parametrize("path", [".checkpoint.parquet", "_segments/p0000"])
def test_reading_succeeds_or_names_the_object_when_one_is_not_found_that_was_listed_or_named(
    site: FaultySite, path: str
) -> None:
    """No answer of S3: other stores list what they do not find yet.  An entry of a log that is not found is its end."""
    before = with_checkpoint_to_be_listed()
    after = before.copy()
    errors: list[TxnTableError] = []

    def read_twice(attempt: Attempt) -> None:
        try:
            attempt.site.open().read_arrow("debit").read_all()
        except DamagedDataError as error:
            errors.append(error)
        read_arrow(attempt)

    outcome = site.run(after, read_twice, HttpRule(Fault.ABSENT, Kind.GET, path))

    assert outcome.error is None
    assert any(path in request.path for request in outcome.requests)
    assert all(error.facts.get("log") == public_root("debit") or path in str(error.facts) for error in errors), errors
    check_same(before, after, path)

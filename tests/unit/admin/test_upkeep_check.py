"""What an alarm says of a warehouse for which nobody works: each duty is found when it is late, and not before."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.doubles.fault_plan import Fault, Operation, Step, on
from tests.doubles.manual_environment import ManualEnvironment
from tests.doubles.memory_store import MemoryStore
from tests.doubles.read_only_store import ReadOnlyStore
from tests.doubles.stepping_store import ProcessKilled, SteppingStore
from tests.simulation.site import TWO_COLUMNS, Site
from tests.simulation.test_erasure_crashes import erase_in
from tests.unit.admin.administering import decide_only, lose_id, opened, prepare
from tests.unit.producer.producing import row, started, store_of
from txntable.admin.upkeep import REMEDIES, Duty, Finding, UpkeepLimits, limits_from_text
from txntable.compaction.compactor import compact
from txntable.compaction.vacuum import vacuum
from txntable.errors import InvalidConfigError
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT, commit_path
from txntable.runtime.environment import Instant
from txntable.warehouse.warehouse import Warehouse, open_on

MINUTE_MS, DAY_MS = 60_000, 86_400_000
SNAPSHOT_RETENTION_MS = 60 * MINUTE_MS
# Of S, for its removed files.
SEGMENTS_RETENTION_MS = 3 * DAY_MS
DEFAULTS = UpkeepLimits()


class Watch:
    """Looks at a site with credentials that may not write, on a machine whose clock is right."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.store = SteppingStore(MemoryStore(site.objects))

    def findings(self, **limits: int) -> list[Finding]:
        now_ms = self._site.objects.clock()
        machine = ManualEnvironment(seed=99, wall_ms=now_ms)
        warehouse = open_on(ReadOnlyStore(self.store), machine)
        assert machine.instant() == Instant(0, now_ms)
        return warehouse.admin().check_upkeep(UpkeepLimits(**limits))

    def duties(self, **limits: int) -> set[Duty]:
        return {finding.duty for finding in self.findings(**limits)}


@pytest.fixture
def warehouse(site: Site) -> Warehouse:
    """In which the coordinator job has run once."""
    warehouse = site.open()
    warehouse.coordinator().run_once()
    return warehouse


@pytest.fixture
def watch(site: Site, warehouse: Warehouse) -> Watch:
    return Watch(site)


def send_many(warehouse: Warehouse, topic: str, segments: int) -> None:
    producer = warehouse.producer()
    for _ in range(segments):
        producer.send(topic, row=row("one"), partition=0)
        producer.flush()


def grow(warehouse: Warehouse, entries: int) -> None:
    """Let the transaction log grow."""
    for _ in range(entries):
        warehouse.transactions.allocate_producer_ids()


def decided(warehouse: Warehouse) -> None:
    decide_only(warehouse, opened(warehouse))


def prepared(warehouse: Warehouse) -> None:
    opened(warehouse)
    prepare(warehouse)


def hanging(warehouse: Warehouse) -> None:
    opened(warehouse)
    lose_id(warehouse)


def unpublished(warehouse: Warehouse) -> None:
    producer = warehouse.producer()
    producer.send("u", row=row("one"))
    store_of(warehouse).plan = (on(Operation.PUT_IF_ABSENT, "topics/u/_delta_log/", Fault.KILL_BEFORE),)
    with pytest.raises(ProcessKilled):
        producer.flush()


@pytest.mark.parametrize(
    "case",
    [
        (decided, Duty.COMPLETE, DEFAULTS.decision_age_ms),
        (opened, Duty.TIME_OUT, MINUTE_MS + DEFAULTS.timeout_grace_ms),
        (prepared, Duty.END_PREPARED, DEFAULTS.prepared_age_ms),
        (hanging, Duty.END_HANGING, 15 * MINUTE_MS + DEFAULTS.timeout_grace_ms),
        (unpublished, Duty.PUBLISH, DEFAULTS.publication_age_ms),
        (lambda warehouse: send_many(warehouse, "u", 101), Duty.MERGE, DAY_MS + SNAPSHOT_RETENTION_MS),
        (lambda warehouse: send_many(warehouse, "latest", 1), Duty.COMPACT_BY_KEY, DAY_MS + SNAPSHOT_RETENTION_MS),
        (lambda warehouse: grow(warehouse, 110), Duty.CLEAN_UP, 30 * DAY_MS + DEFAULTS.cleanup_grace_ms),
    ],
    ids=lambda case: case[1].value,
)
def test_neglect_is_found_when_it_is_late_and_not_before(
    site: Site, warehouse: Warehouse, watch: Watch, case: tuple[Callable[[Warehouse], object], Duty, int]
) -> None:
    neglect, duty, late_ms = case
    warehouse.admin().create_topic("latest", schema=TWO_COLUMNS, key=["account"], config={"cleanup.policy": "compact"})
    neglect(site.open())

    site.advance_ms(late_ms)
    assert duty not in watch.duties()
    # Times in commits are ahead of a clock that stands still.
    site.advance_ms(1_000)

    assert watch.duties() == {duty}


def test_table_that_is_never_published_is_found_also_while_its_topic_is_in_use(
    site: Site, warehouse: Warehouse, watch: Watch
) -> None:
    for _ in range(5):
        unpublished(site.open())
        site.advance_ms(DEFAULTS.publication_age_ms // 3)

    assert Duty.PUBLISH in watch.duties()


@pytest.mark.parametrize("neglect", [decided, opened, unpublished], ids=["decided", "open", "unpublished"])
def test_nothing_is_late_after_the_coordinator_job_has_run(
    site: Site, warehouse: Warehouse, watch: Watch, neglect: Callable[[Warehouse], object]
) -> None:
    neglect(site.open())
    site.advance_ms(DAY_MS)
    assert watch.duties()

    site.open().coordinator().run_once()

    assert watch.findings() == []


def test_warehouse_that_no_coordinator_ever_looked_after_is_found_after_a_day(site: Site) -> None:
    watch = Watch(site)
    site.advance_ms(DAY_MS)
    assert watch.findings() == []
    site.advance_ms(1)

    (found,) = watch.findings()

    assert (found.duty, found.note) == (Duty.COORDINATE, "never claimed since the warehouse was made")


def test_last_claim_of_the_lease_is_looked_at_only_when_its_age_is_limited(
    site: Site, warehouse: Warehouse, watch: Watch
) -> None:
    site.advance_ms(60 * MINUTE_MS + 1)

    assert watch.duties() == set()
    assert watch.duties(coordinator_age_ms=60 * MINUTE_MS) == {Duty.COORDINATE}
    site.open().coordinator().run_once()
    assert watch.duties(coordinator_age_ms=60 * MINUTE_MS) == set()


def test_lease_whose_claim_an_erasure_took_with_the_history_is_late_only_when_that_is_old(
    site: Site, warehouse: Warehouse, watch: Watch
) -> None:
    warehouse.admin().create_topic("people", schema=TWO_COLUMNS)
    with started(site.open()).transaction() as transaction:
        transaction.send("people", row={"account": "ann", "amount": 1})
    site.open().coordinator().run_once()
    lease = site.open().transactions.lease()
    assert lease is not None
    assert erase_in(site, site.open(), "ann").is_proved
    assert watch.store.head(commit_path(TRANSACTION_LOG_ROOT, lease.position)) is None

    assert watch.duties(coordinator_age_ms=60 * MINUTE_MS) == set()
    site.advance_ms(60 * MINUTE_MS + 1)
    assert watch.duties(coordinator_age_ms=60 * MINUTE_MS) == {Duty.COORDINATE}


def test_tail_without_checkpoints_is_found_when_it_is_three_times_as_long_as_it_may_be(
    warehouse: Warehouse, watch: Watch
) -> None:
    store_of(warehouse).plan = (on(None, "checkpoint", Fault.FAIL_BEFORE, occurrence=None),)
    written = warehouse.transactions.refresh() + 1
    grow(warehouse, 300 - written)
    assert watch.findings() == []
    grow(warehouse, 1)

    (found,) = watch.findings()

    assert (found.duty, found.where, found.found) == (Duty.WRITE_CHECKPOINT, TRANSACTION_LOG_ROOT, 301)


def test_removed_files_are_found_when_no_vacuum_takes_them_away(site: Site, warehouse: Warehouse, watch: Watch) -> None:
    opened(warehouse).abort_transaction()
    warehouse.completer.record()
    compact(warehouse)
    site.advance_ms(SEGMENTS_RETENTION_MS + DEFAULTS.vacuum_grace_ms)
    assert watch.findings() == []
    site.advance_ms(1)

    (found,) = watch.findings()

    # The segment, and its marker's file.
    assert (found.duty, found.where, found.found) == (Duty.VACUUM, "topic u", 2)
    vacuum(site.open(), execute=True)
    assert watch.findings() == []


def test_files_that_a_compaction_has_merged_are_found_after_the_public_tables_retention_and_not_before(
    site: Site, warehouse: Warehouse, watch: Watch
) -> None:
    send_many(warehouse, "u", 2)
    site.advance_ms(2 * SNAPSHOT_RETENTION_MS)
    compact(site.open())
    site.advance_ms(30 * DAY_MS + DEFAULTS.vacuum_grace_ms)
    assert watch.findings() == [], "the public table keeps them, and a guard longer"
    site.advance_ms(warehouse.context.guard_ms + 1_000)

    found = {finding.duty: finding.found for finding in watch.findings()}

    assert found == {Duty.VACUUM: 2}


def test_removed_files_are_found_behind_older_ones_that_a_vacuum_has_deleted(
    site: Site, warehouse: Warehouse, watch: Watch
) -> None:
    orphan = f"topics/u/_segments/p00000/{'a' * 32}-x-x-{'b' * 32}.parquet"
    site.objects.put(orphan, b"")
    site.advance_ms(8 * DAY_MS)
    vacuum(site.open(), execute=True)
    assert site.objects.get(orphan) is None
    with opened(site.open()) as producer:
        producer.abort_transaction()
    compact(site.open())
    site.advance_ms(SEGMENTS_RETENTION_MS + DEFAULTS.vacuum_grace_ms + 1)

    found = {finding.duty: finding.found for finding in watch.findings()}

    assert found == {Duty.VACUUM: 2}


def test_transaction_that_ends_while_it_is_looked_at_does_not_hang(
    site: Site, warehouse: Warehouse, watch: Watch
) -> None:
    producer = opened(site.open(), transaction_timeout_ms=15 * MINUTE_MS)
    site.advance_ms(31 * MINUTE_MS)
    ended: list[Step] = []

    def end(step: Step) -> None:
        seen = any(earlier.path.startswith("topics/u/_segments/") for earlier in watch.store.steps)
        if seen and not ended and step.path.startswith("system/transaction_log/"):
            ended.append(step)
            producer.commit_transaction()

    watch.store.on_step = end

    assert Duty.END_HANGING not in watch.duties()
    assert len(ended) == 1


def test_compaction_by_key_is_found_late_again_only_when_enough_is_new(
    site: Site, warehouse: Warehouse, watch: Watch
) -> None:
    warehouse.admin().create_topic("latest", schema=TWO_COLUMNS, key=["account"], config={"cleanup.policy": "compact"})
    send_many(warehouse, "latest", 2)
    site.advance_ms(2 * DAY_MS)
    assert watch.duties() == {Duty.COMPACT_BY_KEY}

    compact(site.open())

    assert watch.findings() == []


def test_damage_in_one_topic_is_told_and_does_not_hide_what_is_late_in_another(
    site: Site, warehouse: Warehouse, watch: Watch
) -> None:
    unpublished(site.open())
    site.objects.put(commit_path("topics/t/_segments", 1), b"{}")
    site.advance_ms(DAY_MS)

    found = {finding.duty: finding for finding in watch.findings()}

    assert found.keys() == {Duty.READ, Duty.PUBLISH}
    assert (found[Duty.READ].where, found[Duty.PUBLISH].where) == ("topic t", "topic u")
    assert "00000000000000000001.json" in found[Duty.READ].note


def test_deleted_topic_is_no_finding(site: Site, warehouse: Warehouse, watch: Watch) -> None:
    send_many(warehouse, "u", 1)
    warehouse.admin().delete_topic("u")
    site.advance_ms(2 * DAY_MS)

    assert watch.findings() == []


def test_check_lists_no_segments(site: Site, warehouse: Warehouse, watch: Watch) -> None:
    send_many(warehouse, "u", 3)

    watch.findings()

    listed = [step.path for step in watch.store.steps if step.operation is Operation.LIST]
    logs = [TRANSACTION_LOG_ROOT, OFFSET_LOG_ROOT]
    logs += [f"topics/{topic}{folder}" for topic in ("raw", "t", "u") for folder in ("", "/_segments")]
    assert sorted(listed) == sorted(["topics", *(f"{log}/_delta_log" for log in logs)])


def test_every_duty_has_a_remedy() -> None:
    assert REMEDIES.keys() == set(Duty)


@pytest.mark.parametrize("value", [-1, True, 1.5, "1", 2**53 + 1])
def test_limit_that_is_no_whole_number_is_refused(value: object) -> None:
    with pytest.raises(InvalidConfigError, match="limit=lag_records"):
        UpkeepLimits(lag_records=value)  # type: ignore[arg-type]


def test_limits_are_read_from_text() -> None:
    assert limits_from_text({"lag_records": "7", "tail_entries": "0"}) == UpkeepLimits(lag_records=7, tail_entries=0)
    with pytest.raises(InvalidConfigError, match="known=decision_age_ms,"):
        limits_from_text({"lag": "7"})
    with pytest.raises(InvalidConfigError, match="limit=lag_records value='-7'"):
        limits_from_text({"lag_records": "-7"})


@pytest.mark.parametrize(("asked", "expected"), [(0, set()), (3, set()), (100, {Duty.READ})])
def test_changed_entry_below_a_checkpoint_is_found_when_as_many_are_looked_at(
    site: Site, warehouse: Warehouse, watch: Watch, asked: int, expected: set[Duty]
) -> None:
    grow(warehouse, 8)
    changed = commit_path(TRANSACTION_LOG_ROOT, 3)
    entry = site.objects.snapshot()[changed].data
    site.objects.put(changed, entry.replace(b'"engineInfo":"', b'"engineInfo":"x'))
    warehouse.transactions.log.write_checkpoint()

    assert watch.duties(chain_entries=asked) == expected


def test_unchanged_entries_are_no_finding(warehouse: Warehouse, watch: Watch) -> None:
    grow(warehouse, 20)
    send_many(warehouse, "u", 3)

    assert watch.findings(chain_entries=1_000) == []

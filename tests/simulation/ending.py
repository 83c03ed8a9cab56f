"""How a run ends: nobody dies any more, everything is finished, read once more, and judged.

The checker judges what clients asked and saw; what is here besides it is said of the logs themselves, by folding every
commit that ever was.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tests.checker.check import check
from tests.checker.evidence import Evidence
from tests.checker.gathering import Stored, gather
from tests.checker.operations import FetchOffsets, Init, Level, Poll, Read, Topics
from tests.simulation.actor import DAY_MS
from tests.simulation.exchange import ExternalDatabase
from tests.simulation.history import SegmentsHistory, TransactionHistory, check_completion, check_numbers, folded
from tests.simulation.journal import Journal, Witness
from tests.simulation.raw_history import check_history
from tests.simulation.recorded import RecordedProducer, read
from tests.simulation.rubbish import check_whole as check_files
from tests.simulation.rubbish import data_files, needed_files
from tests.simulation.site import Site, published
from tests.simulation.turns import ManySite
from txntable.compaction.vacuum import vacuum
from txntable.coordinator.transaction_state import TransactionState
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT, commit_path, public_root, segments_root
from txntable.format.records import TopicPartition
from txntable.log.table_state import TableState
from txntable.offsets.offset_log import OffsetLogFold
from txntable.partition.partition_log import PartitionLogs
from txntable.transactions.transaction_log import TransactionLogFold
from txntable.upkeep.transaction_coordinator import TransactionCoordinator
from txntable.warehouse.warehouse import Warehouse

_MOST = 5
_MOMENT_MS = 1_000
_LETTERS = {TRANSACTION_LOG_ROOT: "T", OFFSET_LOG_ROOT: "O"}


def heal(site: ManySite, witness: Witness, database: ExternalDatabase, timeout_ms: int) -> Warehouse:
    """Nobody dies any more: the coordinator job and the external database's owners end everything."""
    site.advance_ms(timeout_ms)
    warehouse = site.open()
    if warehouse.transactions.log.table.next_version % 2:
        _read_on(site)
    job = warehouse.coordinator()
    _require_whole_round(job)
    prepared = list(warehouse.transactions.log.fold.under_way.values())
    for row in prepared:
        assert row.state is TransactionState.PREPARED, f"after a round of the job a transaction is under way: {row}"
        heir = RecordedProducer(warehouse.producer(row.transactional_id), warehouse, witness)
        heir.init(keep_prepared=True)
        database.recover(row.transactional_id, heir)
    # What the first round expired lets the second clean up.
    if prepared or job.run_once().did_something:
        _require_whole_round(job)
        assert not job.run_once().did_something, "the job finds something to do round after round"
    assert not warehouse.transactions.log.fold.under_way, "a transaction is under way, and nobody will end it"
    return warehouse


def _read_on(site: ManySite) -> None:
    """Nobody runs but consumers: what is beyond its timeout holds none of them back."""
    site.advance_ms(_MOMENT_MS)
    warehouse = site.open()
    admin = warehouse.admin()
    topics, everything = admin.list_topics(), []
    for topic in topics:
        with warehouse.consumer() as consumer:
            partitions = [TopicPartition(topic, one) for one in consumer.partitions_for_topic(topic)]
            consumer.assign(partitions)
            consumer.poll()
        everything += partitions
    # Offsets that a transaction has hold back whoever asks where the group stands.
    for group in admin.list_consumer_groups():
        with warehouse.consumer(group_id=group.group_id, enable_auto_commit=False) as member:
            member.committed(everything)
    held = [one for one in admin.find_blocking_transactions(topics) if one.timeout_ms is not None]
    assert not held, f"consumers are held back by transactions beyond their timeouts: {held}"


def _require_whole_round(job: TransactionCoordinator) -> None:
    failures = job.run_once().failures
    assert failures == 0, f"a round of the job failed in {failures} places, in fair weather"


def fence_all(warehouse: Warehouse, witness: Witness) -> None:
    """Take every transactional id from whoever has it."""
    admin = warehouse.admin()
    for owner in [row.transactional_id for row in admin.list_transactions()]:
        with witness.calling(Init(owner)) as asked:
            producer_id, epoch = admin.fence_producers([owner])[owner]
            asked.saw(producer_id=producer_id, epoch=epoch)


def look_at_all(warehouse: Warehouse, witness: Witness, levels: Sequence[Level], *, final: bool) -> None:
    """Read everything."""
    admin = warehouse.admin()
    topics, groups = admin.list_topics(), [listing.group_id for listing in admin.list_consumer_groups()]
    for level in levels:
        wanted = Read(level, final=final, groups=frozenset(groups if level is Level.SNAPSHOT else ()))
        read(witness, warehouse, wanted, topics)
    for group in groups:
        with witness.calling(FetchOffsets(group)) as asked:
            found = admin.list_consumer_group_offsets(group)
            asked.saw(offsets={tuple(place): one.offset for place, one in found.items() if one is not None})


def judge(site: ManySite, journal: Journal, topics: Topics) -> Evidence:
    """Let the checker judge the whole history; return what the store shows of it."""
    objects = {path: found.data for path, found in site.objects.snapshot().items()}
    stored = Stored(objects, site.objects.entries, site.objects.recreated)  # type: ignore[attr-defined]
    evidence = gather(stored)
    violations = [finding for finding in check(journal.operations(), evidence, topics) if finding.violation]
    assert not violations, "\n".join(f"{found.number} {found.name}: {found.facts}" for found in violations[:_MOST])
    return evidence


def check_tidied(site: ManySite, fresh: Warehouse) -> None:
    """Once every retention is over, everything that nobody needs is gone, and nothing else."""
    topics = fresh.admin().list_topics()
    before = {topic: published(fresh, topic) for topic in topics}
    site.advance_ms(3 * DAY_MS)
    _require_whole_round(site.open().coordinator())
    site.advance_ms(30 * DAY_MS)
    vacuum(site.open(), execute=True)
    files, needed = data_files(site), needed_files(site)
    assert files == needed, f"left, and not needed: {files - needed}; needed, and gone: {needed - files}"
    after = site.open()
    assert {topic: published(after, topic) for topic in topics} == before, "tidying up changed what is published"


def reached(evidence: Evidence, journal: Journal, base: Site) -> Iterator[str]:
    """What a run came to: entries of logs, calls and how they ended; without what the base has."""
    there = base.objects.snapshot()
    for entry in evidence.entries:
        if commit_path(entry.log, entry.version) not in there:
            yield f"entry {_LETTERS.get(entry.log, 'S' if entry.log.endswith('_segments') else 'P')} {entry.operation}"
    for operation in journal.operations():
        call = type(operation.call).__name__
        yield f"call {call} {operation.outcome.name}"
        if isinstance(operation.call, Poll | Read) and operation.call.records:
            yield f"records {call}"


# -- the logs -------------------------------------------------------------------------------


def check_logs(
    site: ManySite, fresh: Warehouse, journal: Journal, database: ExternalDatabase, shrinking: frozenset[str]
) -> None:
    """What must be true of every log, by its whole history."""
    hanging = fresh.admin().find_hanging_transactions(max_transaction_timeout_ms=0)
    assert hanging == [], f"data of transactions that nothing will ever decide: {hanging}"
    names = {root.split("/")[1] for root in site.objects.entries if root.startswith("topics/")}  # type: ignore[attr-defined]
    for topic in fresh.admin().list_topics():
        check_topic(site, fresh, topic)
        for root in (segments_root(topic), public_root(topic)):
            check_numbers(site, root)
    check_transaction_log(site, fresh)
    check_offset_log(site, fresh)
    check_numbers(site, TRANSACTION_LOG_ROOT)
    check_numbers(site, OFFSET_LOG_ROOT)
    check_files(site, fresh)
    check_history(site)
    log = TransactionHistory.read(site)
    check_completion(site, log)
    check_orders(database, log)
    check_batches(journal, log)
    for topic in sorted(names):
        SegmentsHistory.read(site, topic, shrinks=topic in shrinking)


def check_orders(database: ExternalDatabase, log: TransactionHistory) -> None:
    """An order arrived exactly when the external database committed it, unless an admin aborted it meanwhile."""
    for token, operation in log.tokens.items():
        agreed = operation == "TERMINATE" or (operation == "COMMIT") == (token in database.committed)
        assert agreed, f"{operation}, and the external database decided otherwise: {token}"
    for token in database.committed:
        ended = log.tokens.get(token)
        assert ended in ("COMMIT", "TERMINATE"), f"committed in it, and here it is {ended}: {token}"


def check_batches(journal: Journal, log: TransactionHistory) -> None:
    """A batch id is committed once, and again only after it was forgotten."""
    committed = {end.txn for end in journal.committed()}
    counts = Counter(batch for txn, batch in journal.batches.items() if txn in committed)
    for batch, count in counts.items():
        assert count <= log.committed_batches[batch], f"a batch id was committed twice, and never forgotten: {batch}"


def check_transaction_log(site: ManySite, fresh: Warehouse) -> None:
    """T by a fresh client is T by the whole history."""
    live = fresh.transactions.log
    fold = TransactionLogFold()
    whole = folded(site, TRANSACTION_LOG_ROOT, fold)
    live.refresh()
    _require_same(whole, live.table, "the transaction log")
    assert fold.under_way == live.fold.under_way == {}, "transactions are under way, and nobody will end them"
    assert fold.decided_at_ms == live.fold.decided_at_ms == {}, "decided transactions are not complete"


def check_offset_log(site: ManySite, fresh: Warehouse) -> None:
    """O by a fresh client is O by the whole history, and nothing is pending."""
    live = fresh.offsets.log
    fold = OffsetLogFold()
    whole = folded(site, OFFSET_LOG_ROOT, fold)
    live.refresh()
    _require_same(whole, live.table, "the offset log")
    assert not fold.pending, "offsets are pending, and nobody will settle them"
    assert not live.fold.pending, "offsets are pending for who opens the log, and settled by its whole history"


def _require_same(whole: TableState, live: TableState, log: str) -> None:
    numbers = (whole.version, whole.numbers), (live.version, live.numbers)
    assert numbers[0] == numbers[1], f"{log} by a fresh client has other numbers than by its history: {numbers}"
    assert rows_of(whole) == rows_of(live), f"{log} by a fresh client has other rows than by its history"


def rows_of(table: TableState) -> Mapping[str, dict[str, str | None]]:
    """What the rows of a table say."""
    return {add.path: dict(add.partition_values) for add in table.files}


def check_topic(site: ManySite, fresh: Warehouse, topic: str) -> None:
    """S by a fresh client is S by the whole history; no offset is taken twice; P is what S says."""
    log = fresh.topic_log(topic)
    segments = log.segments.refresh()
    logs = PartitionLogs(topic)
    whole = folded(site, segments_root(topic), logs)
    restored = PartitionLogs(topic)
    restored.restore(whole)
    _require_same(whole, segments, f"log S of {topic}")
    for other in (log.segments.fold, restored):
        assert logs.open == other.open == {}, f"data of a transaction is open in {topic}, and nobody will end it"
        same = (logs.markers, logs.producers) == (other.markers, other.producers)
        assert same, f"markers or producers of {topic} are others by a checkpoint than by the history"
    taken = sorted(places(segments))
    assert all(a[0] != b[0] or a[2] < b[1] for a, b in pairwise(taken)), "an offset is taken twice"
    public = {
        add.path.removeprefix("_segments/"): add.partition_values["_commit"] for add in log.public.refresh().files
    }
    assert public == naive_public(segments), f"the public table of {topic} is not what its partition logs say"
    reflects = log.public.table.number("reflects")
    assert reflects == segments.version, f"the public table of {topic} is behind: {reflects} of {segments.version}"


def places(segments: TableState) -> list[tuple[int, int, int]]:
    """Partition, first and last offset of everything that takes offsets."""
    found = []
    for add in segments.files:
        values = add.partition_values
        if values["_control"] is None:
            partition, first, last = (
                int(values[name] or "") for name in ("_partition", "_base_offset", "_last_offset")
            )
            found.append((partition, first, last))
        elif values["_marker"] is not None:
            offsets = json.loads(values["_marker"])["offsets"]
            found += [(int(number), offset, offset) for number, offset in offsets.items()]
    return [place for place in found if not _inside_of_another(place, found)]


def _inside_of_another(place: tuple[int, int, int], others: list[tuple[int, int, int]]) -> bool:
    """A marker may stand in a gap of a merged segment."""
    partition, first, last = place
    return first == last and any(p == partition and low < first < high for p, low, high in others)


def naive_public(segments: TableState) -> dict[str, str | None]:
    """The definition of P, spelt out."""
    commits: dict[tuple[str | None, str | None], str] = {}
    for add in segments.files:
        if add.partition_values["_control"] == "COMMIT":
            marker = json.loads(add.partition_values["_marker"] or "")
            commits[add.partition_values["_producer_id"], str(marker["ends"])] = str(marker["position"])
    visible: dict[str, str | None] = {}
    for add in segments.files:
        values, tag = add.partition_values, json.loads(add.tag or "{}")
        owner = (values["_producer_id"], values["_producer_epoch"])
        if values["_control"] is None and ("decided" in tag or not tag.get("transactional") or owner in commits):
            plain = "0" if not tag.get("transactional") else commits.get(owner)
            visible[add.path] = str(tag["decided"][1]) if "decided" in tag else plain
    return visible

"""What makes a warehouse untidy, and what must be true however it is tidied up."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress

from tests.doubles.fault_plan import Fault, Operation, on
from tests.doubles.stepping_store import ProcessKilled
from tests.simulation.decoding import entry_of
from tests.simulation.site import Site
from txntable.errors import UnknownTopicOrPartitionError
from txntable.format.isolation import IsolationLevel
from txntable.format.layout import PROBE_FOLDER, TOPICS_FOLDER, commit_path, heartbeat_path, public_root, segments_root
from txntable.log.actions import Commit, Remove
from txntable.log.table_state import TableState
from txntable.partition.markers import Control
from txntable.partition.rewriting import Rewrite, RewriteRequest
from txntable.segments.segment import SegmentPlan
from txntable.segments.segment_rewriting import RewritePlan, rewrite_segments
from txntable.topics.topic_log import TopicLog
from txntable.warehouse.warehouse import Warehouse

PART = "part-00000-3f0c1d2e-aaaa-bbbb-cccc-0123456789ab.c000.snappy.parquet"


def upload_and_die(site: Site, topic: str, partition: int = 0) -> None:
    """Leave a segment that no log names."""
    dying = site.open(on(Operation.PUT_IF_ABSENT, f"topics/{topic}/_segments/_delta_log", Fault.KILL_BEFORE))
    producer = dying.producer()
    producer.send(topic, row={"account": "orphan", "amount": 0}, partition=partition)
    with suppress(ProcessKilled):
        producer.flush()


def leave_junk(site: Site, topic: str) -> None:
    """Leave what other software, probes and members leave."""
    for path in (f"_partition=0/_base_offset=0/{PART}", f"_segments/{PART}"):
        site.objects.put(f"{public_root(topic)}/{path}", b"junk")
    site.objects.put(f"{PROBE_FOLDER}/left-0", b"probe")
    site.objects.put(heartbeat_path("nobody", "m"), b"")


def merge(warehouse: Warehouse, topic: str) -> None:
    """Take away what was aborted, and let one new segment of each partition take the place of its committed ones."""
    with suppress(UnknownTopicOrPartitionError):
        reader, log = warehouse.topic_reader(topic), warehouse.topic_log(topic)
        reader.catch_up()
        settings, view = log.settings(), reader.view(IsolationLevel.READ_UNCOMMITTED)
        published = {path.removeprefix("_segments/") for path in log.public.refresh().files.paths()}
        now_ms, new_id = warehouse.context.clock.now_ms(), warehouse.context.environment.new_id
        plan = RewritePlan(SegmentPlan(log.segments.root, settings, None, now_ms), 1 << 30, new_id)
        rewrites = []
        for partition in range(settings.partitions):
            end = view.bounds_of(partition).last_stable_offset
            mine = [s for s in view.plan() if s.partition == partition and s.path in published and s.last_offset < end]
            if len(mine) > 1:
                outputs = tuple(rewrite_segments(warehouse.store, plan, mine))
                rewrites.append(Rewrite(partition, tuple(s.path for s in mine), outputs))
        aborted = tuple(aborted_rows(log))
        log.rewrite(RewriteRequest(settings.topic_id, tuple(rewrites), aborted))


def aborted_rows(log: TopicLog) -> list[str]:
    """The live segments of aborted transactions."""
    ended = {key for key, marker in log.segments.fold.markers.items() if marker.control is Control.ABORT}
    owners = {
        add.path: (add.partition_values["_producer_id"], add.partition_values["_producer_epoch"])
        for add in log.segments.table.files
        if add.partition_values["_control"] is None and '"transactional":true' in (add.tag or "")
    }
    return sorted(path for path, (i, e) in owners.items() if i is not None and (int(i), int(e or "")) in ended)


# -- what must be true ------------------------------------------------------------------------


def check_whole(site: Site, warehouse: Warehouse | None = None) -> None:
    """Every file is there that S or P names, or that a version of P names which is retained."""
    warehouse, there = warehouse or site.open(), set(site.objects.snapshot())
    for topic in warehouse.store.folders(TOPICS_FOLDER):
        log = warehouse.topic_log(topic)
        named = {f"{log.segments.root}/{add.path}" for add in log.segments.refresh().files}
        named |= {f"{log.public.root}/{path}" for path in retained_paths(site, log.public.root)}
        assert not sorted(named - there), "a log names what is not there"


def retained_paths(site: Site, root: str) -> set[str]:
    """What the versions of a table name that were the newest at some time within its retention."""
    named: set[str] = set()
    state = TableState()
    for commit in commits_of(site, root):
        # The version below was the newest until this one came.
        if commit.info.timestamp_ms >= site.objects.clock() - retention_ms(state):
            named |= state.files.paths()
        state.apply(commit)
    return named | state.files.paths()


def commits_of(site: Site, root: str) -> Iterator[Commit]:
    """Every commit of a log, the oldest first; those that were cleaned up where the site remembers them."""
    remembered = getattr(site.objects, "entries", None)
    stored = remembered or {path: found.data for path, found in site.objects.snapshot().items()}
    for version in itertools.count():
        data = stored.get(commit_path(root, version))
        if data is None:
            return
        yield entry_of(version, data, commit_path(root, version))


def retention_ms(state: TableState) -> int:
    return state.deleted_files_retention_ms


def data_files(site: Site) -> set[str]:
    """Everything below the topics but their logs."""
    return {path for path in site.objects_below(TOPICS_FOLDER) if "/_delta_log/" not in path}


def needed_files(site: Site) -> set[str]:
    """What S names, and the files of state entries: all that is left once every retention is over."""
    warehouse = site.open()
    needed = {path for path in data_files(site) if "/_segments/state/" in path}
    for topic in warehouse.store.folders(TOPICS_FOLDER):
        log = TopicLog(warehouse.context, topic)
        needed |= {f"{log.segments.root}/{add.path}" for add in log.segments.refresh().files}
    return needed


def tombstoned(site: Site, topic: str) -> set[str]:
    """The names that commits of S have tombstoned."""
    found = [commit for commit in commits_of(site, segments_root(topic)) if commit.info.operation == "TOMBSTONE"]
    return {action.path for commit in found for action in commit.actions if isinstance(action, Remove)}

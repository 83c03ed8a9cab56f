"""What must be true of every end, and what ends are called.

Reads the logs' entries as JSON, with no code of the writers, and lets the history checker look at the same store.
What a process was told is a fact ``<word> <value>``; a value is what a record says, and only one process writes it.

* ``asked``: its commit was asked for: all of it or nothing; ``committed``: all of it, once; ``refused``: nothing of it.
* ``sending``, outside of a transaction: once or not at all; ``sent``: once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter

from tests.checker.check import check, violations
from tests.checker.gathering import Stored, gather
from tests.checker.operations import Topics
from tests.exploration.program import End
from tests.simulation.site import Site, published
from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT, commit_path, public_root, segments_root
from txntable.storage.object_store import StoredObject
from txntable.warehouse.warehouse import Warehouse

HEAL_MS = 61_000


@dataclass(frozen=True, slots=True)
class Written:
    """An entry of a log: its version, what its commit info says, and its actions."""

    version: int
    operation: str
    commit_id: str
    previous: str | None
    actions: tuple[dict, ...]

    def rows(self) -> list[dict]:
        """The partition values of the rows that it adds."""
        return [action["add"]["partitionValues"] for action in self.actions if "add" in action]

    def states(self) -> dict[str, str]:
        """Of the transaction log: the state of each transactional id that it writes."""
        return {json.loads(row["_key"])[0]: row["_state"] for row in self.rows() if row["_kind"] == "id"}


def entries(objects: Mapping[str, StoredObject], root: str) -> list[Written]:
    """The entries of a log, the oldest first."""
    return list(_entries(objects, root))


def _entries(objects: Mapping[str, StoredObject], root: str) -> Iterator[Written]:
    versions = sorted(path for path in objects if path.startswith(f"{root}/_delta_log/") and path.endswith(".json"))
    for path in versions:
        lines = [json.loads(line) for line in objects[path].data.splitlines()]
        version = int(path.rsplit("/", 1)[1].removesuffix(".json"))
        assert commit_path(root, version) == path
        info = lines[0]["commitInfo"]
        yield Written(version, info["operation"], info["commitId"], info["previous"], tuple(lines[1:]))


class Look:
    """An end, before and after everything was healed."""

    def __init__(self, end: End, topics: Mapping[str, int]) -> None:
        self.end = end
        self.topics = topics
        self.before = end.objects.snapshot()
        self.log = entries(self.before, TRANSACTION_LOG_ROOT)
        self.offset_log = entries(self.before, OFFSET_LOG_ROOT)

    def segments(self, topic: str = "t") -> list[Written]:
        """The entries of a topic's partition logs."""
        return entries(self.before, segments_root(topic))

    def public(self, topic: str = "t") -> list[Written]:
        """The entries of a topic's public table."""
        return entries(self.before, public_root(topic))

    def decided(self) -> list[tuple[str, str]]:
        """Id and state of each decision, in their order."""
        states = [each for entry in self.log for each in entry.states().items()]
        return [(name, state) for name, state in states if state.startswith("PREPARE_")]

    def healed(self) -> Site:
        """The same store, with nobody in the way any more, and everything completed."""
        site = Site(started=1_000)
        site.time.advance_ms(self.end.time_ms + HEAL_MS)
        site.objects.restore(self.before)
        job = site.open().coordinator()
        assert job.run_once().failures == 0
        assert not job.run_once().did_something
        assert not site.open().transactions.log.fold.under_way
        return site


def values(warehouse: Warehouse, topics: Mapping[str, int]) -> Counter[str]:
    """How often each value is in the public tables."""
    return Counter(row["account"] for topic in topics for row in published(warehouse, topic))


def told(end: End) -> set[str]:
    """What the processes were told, of what matters."""
    return {f"told: {fact}" for fact in end.facts if not fact.startswith("asked")}


def check_promises(
    look: Look, site: Site, sizes: Mapping[str, int], before: Collection[str] = (), scratch: Collection[str] = ()
) -> None:
    """Every value is there as often as its writer was promised, and nothing else is there; the store shows no anomaly.

    Parameters
    ----------
    look : Look
        The end.
    site : Site
        The same, healed.
    sizes : mapping of str to int
        Value -> how many records of it its writer sends.
    before : collection of str
        Facts of those who wrote what the processes began with.
    scratch : collection of str
        Topics that may be deleted.
    """
    there, facts = values(site.open(), look.topics), look.end.facts | set(before)
    for value, size in sizes.items():
        allowed = {0}
        if f"committed {value}" in facts or f"sent {value}" in facts:
            allowed = {size}
        elif f"refused {value}" in facts:
            allowed = {0}
        elif f"asked {value}" in facts or f"sending {value}" in facts:
            allowed = {0, size}
        assert there.pop(value, 0) in allowed, f"{value}: {sorted(facts)}"
    assert not there, f"nobody wrote that: {there}"
    objects = site.objects.snapshot()
    for topic, partitions in look.topics.items():
        check_partitions(objects, topic, partitions)
    stored = Stored({path: found.data for path, found in objects.items()}, value_of=itemgetter("account"))
    found = violations(check((), gather(stored), Topics(scratch=frozenset(scratch))))
    assert not found, found


def check_partitions(objects: Mapping[str, StoredObject], topic: str, partitions: int) -> None:
    """Every offset is taken once; every transaction has one end; the public table is what the partition logs say."""
    written = entries(objects, segments_root(topic))
    live, ends = _folded(written)
    markers = {
        (row["_producer_id"], json.loads(row["_marker"])["ends"]): (row["_control"], json.loads(row["_marker"]))
        for row, _ in live.values()
        if row["_control"] in {"COMMIT", "ABORT"}
    }
    taken: dict[int, list[int]] = {partition: [] for partition in range(partitions)}
    visible: dict[str, int] = {}
    for path, (row, tag) in live.items():
        if row["_control"] is not None:
            continue
        taken[int(row["_partition"])] += range(int(row["_base_offset"]), int(row["_last_offset"]) + 1)
        if "decided" in tag or not tag.get("transactional"):
            visible[f"_segments/{path}"] = tag.get("decided", [0, 0])[1]
            continue
        assert (row["_producer_id"], int(row["_producer_epoch"])) in markers, f"a transaction hangs: {path}"
        control, marker = markers[row["_producer_id"], int(row["_producer_epoch"])]
        if control == "COMMIT":
            visible[f"_segments/{path}"] = marker["position"]
    for _, marker in markers.values():
        for partition, offset in marker["offsets"].items():
            taken[int(partition)].append(offset)
    compacted = any(entry.operation == "COMPACT" for entry in written)
    for partition, offsets in taken.items():
        end = ends.get(partition, 0)
        dense = sorted(offsets) == list(range(end))
        alone = len(offsets) == len(set(offsets)) and all(offset < end for offset in offsets)
        assert dense or (compacted and alone), f"offsets of {topic}-{partition}: {sorted(offsets)}, end {end}"
    shown = public_rows(objects, topic)
    assert shown == visible, f"the public table of {topic}: {shown}, and not {visible}"


def _folded(written: list[Written]) -> tuple[dict[str, tuple[dict, dict]], dict[int, int]]:
    """Partition values and tag of the live rows by path, and the next offset of each partition."""
    live: dict[str, tuple[dict, dict]] = {}
    ends: dict[int, int] = {}
    for action in (action for entry in written for action in entry.actions):
        if "add" in action:
            add = action["add"]
            live[add["path"]] = (add["partitionValues"], json.loads(add.get("tags", {}).get("txntable", "{}")))
        elif "remove" in action:
            live.pop(action["remove"]["path"], None)
        elif "txn" in action and action["txn"]["appId"].startswith("next_offset/"):
            ends[int(action["txn"]["appId"].rsplit("/", 1)[1])] = action["txn"]["version"]
    return live, ends


def public_rows(objects: Mapping[str, StoredObject], topic: str) -> dict[str, int]:
    """Path and `_commit` of each row of a public table."""
    shown: dict[str, int] = {}
    for entry in entries(objects, public_root(topic)):
        for action in entry.actions:
            if "add" in action:
                shown[action["add"]["path"]] = int(action["add"]["partitionValues"]["_commit"])
            elif "remove" in action:
                shown.pop(action["remove"]["path"], None)
    return shown

"""Looking at every object of a warehouse for what was erased (PROTOCOL.md §5.10).

Owns the look: each file is decoded whatever a log, a statistic or the erasure before says of it, each log entry and
each checkpoint is read, everything else is searched as bytes.  Writes nothing.  Must not know what was erased before,
nor how.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from txntable.compaction.erased_history import (
    KnownFiles,
    Tells,
    rows_in,
    tells_in_topic,
    tells_in_transactions,
)
from txntable.compaction.erasure_report import FoundTrace, Proof, Trace
from txntable.compaction.object_records import batches_of
from txntable.compaction.sought_records import SoughtRecords
from txntable.errors import DamagedDataError, TxnTableError, UnsupportedFormatError
from txntable.format.column_path import texts_in
from txntable.format.layout import TOPICS_FOLDER, TRANSACTION_LOG_ROOT, parse_file_name, segments_root
from txntable.log.cleanup import log_files
from txntable.storage.object_store import SCHEMES, ObjectMeta, ObjectStore

SHORTEST_BYTES = 4
"""What is shorter stands in any file by chance."""
_LOG = re.compile(r"(?P<root>.+)/_delta_log/\d{20}\.(json|checkpoint\.parquet)")
_CONSTANT = re.compile(r"(topics/[^/]+/_segments/(markers|state)|system/[a-z_]+/k)/[^/]+\.parquet")
# Objects of this format without anything that somebody sent.
_OWN = re.compile(r"_warehouse\.json|.+/_delta_log/_last_checkpoint|" + _CONSTANT.pattern)
# Numbers that a row's JSON has as text: names of members (a partition, an epoch), and ranges of partitions below these.
_OF_RANGES = frozenset({"owned", "target", "partitions"})
_NUMBERS = re.compile(r"[0-9,-]+")
_TOPIC = re.compile(rf"{TOPICS_FOLDER}/(?P<topic>[^/]+)/(?P<below>_segments/)?(?P<rest>.*)")
# Their versions have no call here; of a folder there are none.
_NOT_ASKED = ("gs", "az")
_NEVER: Tells = lambda _: False  # noqa: E731  the rule of a log that has no rows of records
_TOLD_EVERY = 100


class ErasureProof:
    """One look at everything.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    sought : SoughtRecords
        What was erased.
    schemas : Mapping[str, pyarrow.Schema]
        By name, the topics that it was erased from.
    """

    def __init__(self, store: ObjectStore, sought: SoughtRecords, schemas: Mapping[str, pa.Schema]) -> None:
        self._store, self._sought, self._schemas = store, sought, schemas
        self._texts = sorted(sought.texts)
        self._traces: list[FoundTrace] = []
        self._unseen: list[str] = []
        self._counts: Counter[str] = Counter()
        self._there: dict[str, dict[str, bool]] = {name: {} for name in schemas}
        self._known = {
            name: KnownFiles(store, name, sought, schema, self._there[name]) for name, schema in schemas.items()
        }

    def run(self, tell: Callable[[str], object]) -> Proof:
        """Look at every object below the warehouse's root, the files before the logs.

        Parameters
        ----------
        tell : callable
            Is told how far it is.
        """
        roots: set[str] = set()
        for number, meta in enumerate(self._store.list("")):
            if number % _TOLD_EVERY == 0:
                tell(f"prove: {number:,} objects, {self._counts['records']:,} records")
            log = _LOG.fullmatch(meta.path)
            if log is not None:
                roots.add(log["root"])
            elif "/_delta_log/" in meta.path and not _OWN.fullmatch(meta.path):
                self._unread(meta.path, f"an object in a log's folder that is none of this format: {meta.path}")
                self._search(meta)
            elif meta.path.endswith(".parquet") and not _CONSTANT.fullmatch(meta.path):
                self._read_file(meta)
            else:
                self._search(meta)
        for root in sorted(roots):
            tell(f"prove: the log of {root}")
            self._read_log(root)
        self._look_at_unfinished()
        self._look_at_versions()
        counts = self._counts
        traces = tuple(sorted(self._traces, key=lambda one: (one.path, one.trace.value, one.column or "")))
        return Proof(counts["objects"], counts["bytes"], counts["records"], traces, tuple(self._unseen))

    def _note(self, trace: Trace, path: str, count: int, column: str | None = None) -> None:
        if count:
            self._traces.append(FoundTrace(trace, path, count, column))

    def _unread(self, path: str, sentence: str) -> None:
        """Tell of what is there and may hold records: as long as it is there, nothing is proved."""
        self._unseen.append(sentence)
        self._note(Trace.UNREAD, path, 1)

    def _saw(self, meta: ObjectMeta) -> None:
        self._counts.update(objects=1, bytes=meta.size)

    # -- files ------------------------------------------------------------------------------

    def _read_file(self, meta: ObjectMeta) -> None:
        place = _TOPIC.fullmatch(meta.path)
        topic = None if place is None else place["topic"]
        is_sought = topic in self._schemas
        others: Counter[str] = Counter()
        sought = 0
        try:
            for batch in batches_of(self._store, meta, self._sought):
                self._counts["records"] += batch.num_rows
                here = int(pc.sum(self._sought.chosen(batch)).as_py() or 0)
                sought += here if is_sought else 0
                others.update(self._in_other_columns(batch, () if not is_sought else self._sought.where))
        except DamagedDataError as error:
            if self._store.head(meta.path) is not None:
                self._unread(meta.path, f"a file that cannot be decoded: {meta.path}: {error.facts.get('reason')}")
                self._search(meta)
            return
        self._saw(meta)
        is_own = place is not None and place["below"] is not None and parse_file_name(place["rest"]) is not None
        self._note(Trace.RECORD if is_own else Trace.OTHER_SOFTWARE, meta.path, sought)
        for column, count in others.items():
            self._note(Trace.OTHER_COLUMN, meta.path, count, column)
        if topic is not None and topic in self._there:
            self._there[topic][meta.path.removeprefix(f"{segments_root(topic)}/")] = bool(sought)

    def _in_other_columns(self, batch: pa.RecordBatch, but: Collection[str]) -> Counter[str]:
        found: Counter[str] = Counter()
        texts = pa.array(self._texts, pa.large_binary())
        for field, column in zip(batch.schema, batch.columns, strict=True):
            for name, values in texts_in(field.name, column):
                if name not in but:
                    here = pc.is_in(values.cast(pa.large_binary()), value_set=texts)
                    found[name] += int(pc.sum(here).as_py() or 0)
        return found

    def _search(self, meta: ObjectMeta) -> None:
        try:
            found = self._store.get(meta.path)
        except DamagedDataError:
            self._unread(meta.path, f"an object that is too large to be searched: {meta.path}")
            return
        if found is None:
            return
        self._saw(meta)
        long = [text for text in self._texts if len(text) >= SHORTEST_BYTES]
        trace = Trace.NAME if _OWN.fullmatch(meta.path) else Trace.BYTES
        self._note(trace, meta.path, sum(found.data.count(text) for text in long))

    # -- logs -------------------------------------------------------------------------------

    def _tells(self, root: str) -> Tells:
        if root == TRANSACTION_LOG_ROOT:
            return tells_in_transactions(self._known)
        place = _TOPIC.fullmatch(f"{root}/")
        files = None if place is None else self._known.get(place["topic"])
        return _NEVER if files is None else tells_in_topic(files)

    def _read_log(self, root: str) -> None:
        tells = self._tells(root)
        # What JSON in a row has of a name: the text in quotes, all of it.
        names = {text.decode() for text in self._texts if _is_utf8(text)}
        quoted = [f'"{name}"' for name in names]
        told = [json.dumps(text, ensure_ascii=False)[1:-1].encode() for text in quoted]
        files = log_files(self._store, root)
        try:
            for file, adds, info in rows_in(self._store, files):
                telling, named = 0, int(any(text in info for text in told))
                for add in adds:
                    telling += tells(add)
                    values = [value or "" for value in add.partition_values.values()]
                    named += any(text in value and _names(value, names) for value in values for text in quoted)
                self._saw(file.meta)
                self._note(Trace.STATISTICS, file.meta.path, telling)
                self._note(Trace.NAME, file.meta.path, named)
        except (DamagedDataError, UnsupportedFormatError) as error:
            self._unread(root, f"a log that cannot be read: {root}: {error}")

    # -- what no listing shows --------------------------------------------------------------

    def _look_at_unfinished(self) -> None:
        try:
            found = list(self._store.unfinished())
        except TxnTableError as error:
            self._unseen.append(f"uploads that were never completed were not looked for: {error}")
            return
        if found:
            size = sum(one.size for one in found)
            self._unseen.append(
                f"{len(found)} uploads that were not completed, {size:,} bytes: what they hold cannot be read; "
                "`txntable vacuum --execute` takes them when they are seven days old"
            )

    def _look_at_versions(self) -> None:
        if SCHEMES.get(self._store.spec.url.partition(":")[0]) in _NOT_ASKED:
            self._unseen.append("object versions, and deleted objects that the store keeps for a while: not asked here")
        try:
            kept = list(self._store.kept_versions())
        except TxnTableError as error:
            self._unseen.append(f"object versions that the bucket keeps were not looked for: {error}")
            return
        found = Counter(one.path for one in kept if _may_hold_records(one.path))
        for path, count in sorted(found.items()):
            self._note(Trace.VERSION, path, count)


def _may_hold_records(path: str) -> bool:
    """Return whether an object may hold records or statistics of them: by its path, since a version is not read."""
    is_log = path.startswith(f"{TRANSACTION_LOG_ROOT}/_delta_log/")
    is_of_topic = path.startswith(f"{TOPICS_FOLDER}/") and not _CONSTANT.fullmatch(path)
    return (is_log or is_of_topic) and not path.endswith("/_last_checkpoint")


def _names(value: str, names: Collection[str]) -> bool:
    """Return whether the JSON of a row has one of these texts, and not as the number of a partition or an epoch."""
    try:
        document = json.loads(value)
    except ValueError:
        return True
    return any(text in names for text in _texts_of(document))


def _texts_of(value: object, *, of_ranges: bool = False) -> Iterator[str]:
    """Yield each text that is no number of the format."""
    if isinstance(value, str):
        if not (of_ranges and _NUMBERS.fullmatch(value)):
            yield value
    elif isinstance(value, list):
        for one in value:
            yield from _texts_of(one, of_ranges=of_ranges)
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _texts_of(name, of_ranges=True)
            yield from _texts_of(one, of_ranges=of_ranges or name in _OF_RANGES)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True

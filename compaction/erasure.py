"""Erasing records from a warehouse: rewrite, let histories begin anew, delete, prove (PROTOCOL.md §5.10).

Owns the order of a run, and that what fails in one place does not stop the others.  A run may die at any moment: what
tells of the records is found again by the next one, which goes on.  Invariant: nothing of a log is deleted before every
view that could still need it is too old to be trusted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from txntable.compaction.erased_files import ErasedFiles, FoundFiles, Standing
from txntable.compaction.erased_history import (
    History,
    KnownFiles,
    Tells,
    begin_above,
    forget,
    history_of,
    tells_in_topic,
    tells_in_transactions,
    written_ms,
)
from txntable.compaction.erasure_proof import ErasureProof
from txntable.compaction.erasure_report import ErasedLog, ErasedTopic, ErasureReport, Extent, Proof
from txntable.compaction.sought_records import SoughtRecords, sought_records
from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidRequestError, TxnTableError, UnknownTopicOrPartitionError
from txntable.format.layout import TOPICS_FOLDER, topic_names
from txntable.format.topic import TopicSettings
from txntable.log.delta_log import DeltaLog
from txntable.topics.topic_log import TopicLog
from txntable.warehouse.warehouse import Warehouse

# A rewrite is lost to a compaction that was faster; each round looks again.
_MOST_ROUNDS = 5
# So many guards after a checkpoint no view from before it is trusted, whatever a clock's rate.
_GUARDS = 2
_STEP_MS = 1_000

Tell = Callable[[str], object]


def erase(
    warehouse: Warehouse,
    where: Mapping[str, object],
    *,
    topics: Sequence[str] | None = None,
    extent: Extent = Extent.LOOK,
    tell: Tell = lambda _: None,
) -> ErasureReport:
    """Erase the records of which columns have values: of several values any, of several columns all.

    Parameters
    ----------
    warehouse : Warehouse
        Open for writing; to look only, any.
    where : Mapping[str, object]
        By column, inside of structs ``user.id``: a value, or a list of values; of the column's type, or texts as on
        the command line.
    topics : sequence of str, optional
        Default: all that have the columns.
    extent : Extent
        ``LOOK``: say what would be done.  ``REWRITE``: the newest version loses the records, older ones keep them until
        their retention is over.  ``PURGE``: older versions, files and log history that tell of them go at once, and it
        is proved; it takes ten minutes at least, and nobody can travel in time to before it in these logs any more.
    tell : callable, optional
        Is told how far it is.

    Returns
    -------
    ErasureReport
        What was done, what is left, where it was looked.  The same call again does what is missing, or nothing.

    Raises
    ------
    InvalidRequestError
        Nothing is sought, a value is none of its column's, or no topic has the columns.
    SchemaMismatchError
        A topic of `topics` lacks a column, or the column has a type that no key may have.
    UnknownTopicOrPartitionError
        There never was such a topic.
    StoreUnavailableError, DamagedDataError
        The transaction log cannot be read.
    """
    if isinstance(topics, str):
        raise InvalidRequestError("topics is a list of names; put the name into one", topics=shown(topics))
    run = _Erasure(warehouse, sought_records(where), tell)
    run.choose(topics)
    if extent is not Extent.LOOK:
        warehouse.complete()
    run.look_and_rewrite(rewrites=extent is not Extent.LOOK)
    histories = run.histories()
    proof = run.purge(histories) if extent is Extent.PURGE else None
    return run.report(extent, histories, proof)


@dataclass(slots=True)
class _LogHistory:
    """One log, and what of it tells of erased records."""

    log: DeltaLog[Any]
    tells: Tells
    found: History
    began_ms: int | None = None
    deleted: int = 0


class _Erasure:
    """One run."""

    def __init__(self, warehouse: Warehouse, sought: SoughtRecords, tell: Tell) -> None:
        self._warehouse, self._sought, self._tell = warehouse, sought, tell
        self._context = warehouse.context
        self._topics: dict[str, TopicLog] = {}
        self._found: dict[str, FoundFiles] = {}
        self._reports: dict[str, ErasedTopic] = {}
        self._skipped: list[str] = []
        self._failures: list[str] = []
        self._waiting: list[str] = []

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        try:
            yield
        except (TxnTableError, OSError) as error:
            self._failures.append(f"{error.code} {error}" if isinstance(error, TxnTableError) else str(error))

    # -- which topics -----------------------------------------------------------------------

    def choose(self, named: Sequence[str] | None) -> None:
        """Find the topics that are asked."""
        folders = topic_names(self._warehouse.store.folders(TOPICS_FOLDER)) if named is None else dict.fromkeys(named)
        for name in folders:
            topic = self._warehouse.topic_log(name)
            settings = self._settings(topic)
            if settings is None and named is not None:
                raise UnknownTopicOrPartitionError("there never was such a topic; check its name", topic=name)
            if settings is None:
                continue
            if named is None and not self._sought.is_of(settings.schema):
                self._skipped.append(name)
                continue
            self._sought.check(settings)
            self._topics[name] = topic
        if not self._topics:
            raise InvalidRequestError(
                "no topic has all of these columns; check their names", columns=",".join(self._sought.where)
            )

    def _settings(self, topic: TopicLog) -> TopicSettings | None:
        with topic.segments.lock:
            topic.segments.refresh()
            return topic.segments.fold.settings

    # -- files ------------------------------------------------------------------------------

    def look_and_rewrite(self, *, rewrites: bool) -> None:
        """Look at all topics; and rewrite what is visible until nothing sought is."""
        for name, topic in self._topics.items():
            with self._going_on():
                self._one_topic(name, topic, rewrites=rewrites)

    def _one_topic(self, name: str, topic: TopicLog, *, rewrites: bool) -> None:
        files = ErasedFiles(self._warehouse, topic, self._sought)
        found = files.look(self._now_ms(), self._tell)
        counts = Counter(records=found.count(Standing.VISIBLE), segments=len(found.records[Standing.VISIBLE]))
        if rewrites:
            counts.clear()
            for _ in range(_MOST_ROUNDS):
                if not (found.records[Standing.VISIBLE] or found.records[Standing.ABORTED]):
                    break
                counts += files.rewrite(found)
                self._failures += files.failures
                files.failures.clear()
                found = files.look(self._now_ms(), self._tell)
            if left := found.count(Standing.VISIBLE) + found.count(Standing.ABORTED):
                self._failures.append(f"{left:,} records of {name} are still in its segments: erase again")
        self._failures += [f"a segment cannot be read; restore it from a backup: {one}" for one in found.unreadable]
        self._found[name] = found
        self._reports[name] = ErasedTopic(
            name,
            counts["records"],
            counts["segments"],
            found.count(Standing.UNDECIDED),
            found.count(Standing.UPLOADED),
            len(found.records[Standing.LEFT]),
        )

    def _now_ms(self) -> int:
        return self._context.clock.shown_ms()

    # -- logs -------------------------------------------------------------------------------

    def histories(self) -> list[_LogHistory]:
        """Read the history of every log that may tell of the records."""
        logs: list[tuple[DeltaLog[Any], Tells]] = []
        store = self._warehouse.store
        known = {
            name: KnownFiles(store, name, self._sought, found.settings.schema, found.there)
            for name, found in self._found.items()
        }
        for name, files in known.items():
            topic, tells = self._topics[name], tells_in_topic(files)
            logs += [(topic.segments, tells), (topic.public, tells)]
        logs.append((self._warehouse.transactions.log, tells_in_transactions(known)))
        histories = []
        for log, tells in logs:
            with self._going_on():
                self._tell(f"erase: the history of {log.root}")
                found_history = history_of(self._context.store, log.root, tells)
                histories.append(_LogHistory(log, tells, found_history))
        return histories

    def purge(self, histories: Sequence[_LogHistory]) -> Proof:
        """Let logs begin where they tell nothing, delete the files, and look at everything."""
        for history in histories:
            with self._going_on():
                history.found = begin_above(history.log, history.found, history.tells)
                if history.found.start is not None:
                    history.began_ms = written_ms(self._context.store, history.found)
        now_ms = self._wait([history.began_ms for history in histories if history.began_ms is not None])
        for history in histories:
            with self._going_on():
                if self._may_forget(history, now_ms):
                    history.deleted = forget(history.log, history.found)
        for name in self._reports:
            with self._going_on():
                self._delete_files(name, self._topics[name])
        schemas = {name: found.settings.schema for name, found in self._found.items()}
        return ErasureProof(self._warehouse.store, self._sought, schemas).run(self._tell)

    @property
    def _patience_ms(self) -> int:
        return _GUARDS * self._context.guard_ms

    def _wait(self, began_ms: Sequence[int]) -> int:
        """Wait until no view is trusted from before logs began, and return the store's time then.

        An entry whose time is far ahead of the clock is not waited for: it is as young as ever afterwards.
        """
        if not began_ms:
            return 0
        environment = self._context.environment
        now_ms, begun = self._context.clock.now_ms(), environment.instant()
        # Clocks may differ by a guard.
        most_ms = self._patience_ms + self._context.guard_ms
        rest_ms = min(max(began_ms) + self._patience_ms - now_ms, most_ms)
        while (passed_ms := environment.since_ms(begun)) < rest_ms:
            self._tell(f"erase: {(rest_ms - passed_ms) // 1000:,} s until no view of before is trusted any more")
            environment.sleep_ms(min(_STEP_MS, rest_ms - passed_ms))
        return now_ms + max(passed_ms, 0)

    def _may_forget(self, history: _LogHistory, now_ms: int) -> bool:
        found = history.found
        if found.last is None:
            return False
        if found.start is None:
            self._waiting.append(
                f"the log of {found.root} has no newer state that tells nothing of the records: "
                "end the transactions that are open, and erase again"
            )
            return False
        if history.began_ms is None or now_ms - history.began_ms < self._patience_ms:
            self._waiting.append(
                f"the log of {found.root} has a beginning without the records that is too young: erase again later"
            )
            return False
        if history.log is not self._warehouse.transactions.log:
            return True
        # An entry that is gone is older than any timeout: a transaction that began there would be aborted; and so old
        # a prepared one looks to whoever ends those that nobody comes back to.
        held = [row for row in self._open_rows() if (row[1] or 0) < found.start]
        if held:
            names = ", ".join(sorted(name for name, _ in held))
            self._waiting.append(
                f"the history of {found.root} is held by transactions that are open: {names}; end them, and erase again"
            )
        return not held

    def _open_rows(self) -> list[tuple[str, int | None]]:
        transactions = self._warehouse.transactions
        with transactions.log.lock:
            transactions.refresh()
            rows = [row for row in transactions.rows() if row.state.is_open]
            return [(row.transactional_id, row.started_position) for row in rows]

    def _delete_files(self, name: str, topic: TopicLog) -> None:
        files = ErasedFiles(self._warehouse, topic, self._sought)
        # Once more: a compaction that had begun before may have left its outputs since.
        found = files.look(self._now_ms(), self._tell)
        deleted = files.delete(found)
        undecided, uploaded = found.count(Standing.UNDECIDED), found.count(Standing.UPLOADED)
        self._reports[name] = replace(self._reports[name], undecided=undecided, uploaded=uploaded, files=deleted)

    # -- the report -------------------------------------------------------------------------

    def report(self, extent: Extent, histories: Sequence[_LogHistory], proof: Proof | None) -> ErasureReport:
        """Return what was done, and what is left."""
        for report in self._reports.values():
            if report.undecided:
                self._waiting.append(
                    f"{report.undecided:,} records of {report.topic} are not decided: `txntable status` tells what is "
                    "open; end it, and erase again"
                )
            if report.uploaded:
                self._waiting.append(
                    f"{report.uploaded:,} records of {report.topic} are in files that no log names yet: erase again "
                    "five minutes after their writer has ended; one that was killed is to be started again first, or "
                    "its transactional id fenced (`txntable transactions fence`)"
                )
        logs = tuple(
            ErasedLog(one.found.root, one.found.telling, one.deleted, one.found.start if one.deleted else None)
            for one in histories
            if one.found.last is not None
        )
        return ErasureReport(
            extent,
            self._now_ms(),
            tuple(self._reports.values()),
            tuple(self._skipped),
            logs,
            tuple(self._waiting),
            tuple(self._failures),
            proof,
        )

"""Both tables of one topic: the partition logs S, and the public table P that follows them.

Owns the order of writes for a topic: constant files before the markers that name them, S before
P.  Decisions are pure and live in ``txntable.partition``; here they are made durable.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial

from txntable.errors import DamagedDataError, StorePermissionError, UnknownTopicOrPartitionError
from txntable.format.layout import (
    TRANSACTION_LOG_ROOT,
    check_topic_name,
    commit_path,
    log_folder,
    marker_path,
    public_root,
    segments_root,
)
from txntable.format.topic import TopicSettings
from txntable.log.actions import Action, Add, OperationDetails, Txn
from txntable.log.constant_file import CONSTANT_FILE
from txntable.log.delta_log import Decide, DeltaLog
from txntable.log.fairness import Fairness
from txntable.log.log_view import LogContext, moments, prove_now
from txntable.log.looking_beside import refresh_beside
from txntable.log.outcome import CommitOutcome, Committed, Unknown, unknown_error
from txntable.log.table_state import TableState
from txntable.partition.append import AppendRequest, decide_append, live_settings, unknown_topic
from txntable.partition.batch import ProducerEpoch
from txntable.partition.completion import OwedMarker, decide_markers, still_owed
from txntable.partition.expiration import decide_expiry, idle_producers
from txntable.partition.offsets import REFLECTS, decided_through
from txntable.partition.open_transactions import HangingEpoch, decide_abort_marker
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.projection import PublicTable, lost_end, project
from txntable.partition.projection_details import projection_details
from txntable.partition.rewriting import Rewrite, RewriteRequest, decide_rewrite
from txntable.runtime.environment import Instant
from txntable.segments.topic_metadata import topic_id_of
from txntable.storage.side_by_side import side_by_side

Verify = Callable[[DeltaLog[PartitionLogs]], None]


class TopicLog:
    """The two logs of a topic, shared by all clients of one warehouse handle.

    Parameters
    ----------
    context : LogContext
        Of the warehouse.
    name : str
        The topic's name; the topic need not exist.

    Attributes
    ----------
    completing : Lock
        Who has it completes what is decided; the others wait, and find it done.

    Raises
    ------
    InvalidTopicError
        Kafka would not accept the name.
    """

    def __init__(self, context: LogContext, name: str) -> None:
        self.name = check_topic_name(name)
        self.context = context
        self.segments: DeltaLog[PartitionLogs] = DeltaLog(context, segments_root(name), PartitionLogs(name))
        self.public: DeltaLog[PublicTable] = DeltaLog(context, public_root(name), PublicTable(name))
        self.segments.stand_beside(self.public)
        self.public.stand_beside(self.segments)
        self.completing = context.environment.lock()
        self._fairness = Fairness(context.environment)
        # The entry of the partition logs that was seen to be their end, and when that was asked.
        self._end_seen: tuple[int, Instant] | None = None
        # The opening of the partition logs of which their end was seen to be there.
        self._whole: int | None = None

    def settings(self) -> TopicSettings:
        """Return the settings of the topic as it is now.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic, or it was deleted.
        """
        asked = next(moments)
        with self.segments.lock:
            self.segments.read_since(asked)
            return self.known_settings()

    def found_settings(self) -> TopicSettings:
        """Return the same for who lists what there is: a LIST more tells one that never was from a lost one.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic, or it was deleted.
        DamagedDataError
            The topic has lost its log.
        """
        try:
            return self.settings()
        except UnknownTopicOrPartitionError:
            if not self.has_log:
                self.require_unborn()
            raise

    @property
    def has_log(self) -> bool:
        """Whether S is there, as the view knows: it stays, also of a topic that was deleted (PROTOCOL.md §3.2)."""
        return self.segments.table.version is not None

    def require_unborn(self) -> None:
        """Return if nothing of a topic is there that has no partition log.

        For who is about to take it for one that never was: its offsets would be given out a second time.

        Raises
        ------
        DamagedDataError
            Only the log is gone: restore it.
        """
        found = None
        # Who may not list learns what he asked for.
        with suppress(StorePermissionError):
            ours = (f"{log_folder(self.public.root)}/", f"{self.segments.root}/")
            names = (meta.path for meta in self.context.store.list(self.public.root))
            found = next((path for path in names if path.startswith(ours)), None)
        # Looked for once more: it may have been created meanwhile.
        if found is not None and self.segments.refresh().version is None:
            raise lost_log(self.name, found=found)

    def known_settings(self) -> TopicSettings:
        """Return the settings of the topic as the view knows them; raises as :meth:`settings`."""
        return live_settings(self.segments.fold)

    def append(self, request: AppendRequest, verify: Verify) -> tuple[int, ...]:
        """Register segments and so give them their offsets.

        Parameters
        ----------
        request : AppendRequest
            At most :data:`txntable.partition.append.LARGEST_COMMIT_SEGMENTS` segments.
        verify : callable
            Asked at every attempt, on the state that is decided on; raises to refuse.

        Returns
        -------
        tuple of int
            Base offset of each segment, in the request's order.

        Raises
        ------
        CommitStateUnknownError
            The store cannot be reached: the segments may be registered.  Call again (sequences
            make that safe), or abort.
        TxnTableError
            Whatever refuses: see :func:`txntable.partition.append.decide_append`.
        """
        offsets: tuple[int, ...] = ()

        def decide(table: TableState) -> Sequence[Action]:
            nonlocal offsets
            verify(self.segments)
            decision = decide_append(self.segments.fold, table, request, self.context.clock.now_ms())
            offsets = decision.base_offsets
            return decision.actions

        self.commit_segments("APPEND", decide)
        return offsets

    def prepare_marker(self, topic_id: str, producer: ProducerEpoch) -> None:
        """Put the file of the marker that a decision with segments for this topic will have.

        Raises
        ------
        StoreUnavailableError
            Call again.
        """
        self._put_constant_file(marker_path(topic_id, producer.producer_id, producer.epoch))

    def check_append(self, request: AppendRequest) -> None:
        """Return if the topic takes segments, by the view as it is; writes nothing.

        What this refuses is refused before a decision carries the segments; what changes after it is taken.  Raises
        as :meth:`append` does.
        """
        with self.segments.lock:
            decide_append(self.segments.fold, self.segments.table, request, self.context.clock.now_ms())

    def base_offset(self, path: str) -> int | None:
        """Return the base offset of an appended segment as far as the view knows it; ``None``: it does not.

        One that was merged or removed since is known for as long as its tombstone is.
        """
        table = self.segments.table
        row = table.files.get(path) or table.tombstones.get(path)
        base = None if row is None else row.partition_values.get("_base_offset")
        return None if base is None else int(base)

    def write_markers(self, topic_id: str, decided: Sequence[OwedMarker], known_through: int) -> None:
        """Append what decisions carry for the topic, and write their markers; who calls it second writes nothing.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        if len(decided) > 1:
            # Others are at it too, and may have written these markers since this view was read.
            self.segments.refresh()

        def decide(table: TableState) -> Sequence[Action]:
            actions = decide_markers(self.segments.fold, table, topic_id, decided, known_through)
            return self._with_constant_files(table, actions, there)

        # Who decides what carries segments has put the marker's file beside them.
        there = frozenset(marker_path(topic_id, one.producer_id, one.ends) for one in decided if one.segments)
        outcome = self.commit_segments("MARKERS", decide)
        while isinstance(outcome, Committed) and self._is_owed(topic_id, decided):
            outcome = self.commit_segments("MARKERS", decide)
        if not isinstance(outcome, Committed):
            # Who wrote them projects them, too: the projection that follows here is to see that one.
            self.public.refresh()

    def _is_owed(self, topic_id: str, decided: Sequence[OwedMarker]) -> bool:
        return bool(still_owed(self.segments.fold, self.segments.table, topic_id, decided))

    def turn_to_complete(self, is_done: Callable[[], bool]) -> AbstractContextManager[bool]:
        """Wait until no other process of this machine completes the topic, for a while, or has done what is asked for.

        Parameters
        ----------
        is_done : callable
            Whether that is so, as far as the view of the public table knows.

        Returns
        -------
        context manager
            Of whether others may have completed something: see :meth:`txntable.log.fairness.Fairness.turn`.
        """

        def look() -> bool:
            if moved := self.public.look_on():
                self._fairness.saw_another()
            return moved

        ask = partial(self.context.store.turn, self.public.root)
        return self._fairness.turn(ask, look, is_done)

    def write_abort_marker(
        self, topic_id: str, hanging: HangingEpoch, decided: Sequence[OwedMarker], known_through: int
    ) -> None:
        """Write the ABORT marker of a hanging transaction, and the markers that the topic is owed.

        See :func:`txntable.partition.open_transactions.decide_abort_marker`: nothing is written when the
        transaction is not open any more, or when its position has been passed.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """

        def decide(table: TableState) -> Sequence[Action]:
            actions = decide_abort_marker(self.segments.fold, table, topic_id, hanging, (decided, known_through))
            return self._with_constant_files(table, actions)

        self.commit_segments("ABORT HANGING", decide)

    def fence(self) -> None:
        """Begin a new incarnation of both logs, where they are there (PROTOCOL.md §6.7).

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        for log in (self.segments, self.public):
            known(log.fence(), log.root)

    def _with_constant_files(
        self, table: TableState, actions: Sequence[Action], there: Collection[str] = ()
    ) -> Sequence[Action]:
        """Write the files of rows that are not live yet, but for those that are `there`, before what names them."""
        named = [one.path for one in actions if isinstance(one, Add) and one.partition_values["_control"] is not None]
        missing = [path for path in named if path not in table.files and path not in there]
        side_by_side(self.context.store, [partial(self._put_constant_file, path) for path in missing])
        return actions

    def _put_constant_file(self, path: str) -> None:
        self.context.store.put(f"{self.segments.root}/{path}", CONSTANT_FILE)

    def expire_producers(self, expiration_ms: int) -> int:
        """Let the partitions forget producers that are idle; return how many (a producer counts in each partition).

        Parameters
        ----------
        expiration_ms : int
            ``producer.id.expiration.ms``.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        now_ms = self.context.clock.now_ms()
        expired: set[tuple[int, int]] = set()

        def decide(table: TableState) -> Sequence[Action]:
            nonlocal expired
            expired = idle_producers(self.segments.fold, now_ms, expiration_ms)
            adds = decide_expiry(self.segments.fold, table, expired, now_ms)
            return self._with_constant_files(table, adds)

        with self.segments.lock:
            self.segments.ensure_fresh()
            if idle_producers(self.segments.fold, now_ms, expiration_ms):
                self.prove_whole()
        # The commit of nothing reads the tail: so this is one request where no producer is idle.
        if isinstance(known(self.segments.commit("EXPIRE PRODUCERS", decide), self.segments.root), Committed):
            self.project()
        return len(expired)

    def commit(self, operation: str, decide: Callable[[TableState, TableState], Sequence[Action]]) -> None:
        """Write to S what is decided on its state and a state of P; P follows.

        Parameters
        ----------
        operation : str
            What ``commitInfo`` says.
        decide : callable
            S's state and P's -> actions; asked at every attempt.  Nothing: nothing is written.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            Call again, with what is decided on the newer state.
        """

        def decided(table: TableState) -> Sequence[Action]:
            return self._with_constant_files(table, decide(table, self.public.ensure_fresh()))

        if isinstance(self.commit_segments(operation, decided), Committed):
            self.project()

    def rewrite(self, request: RewriteRequest) -> tuple[Rewrite, ...]:
        """Let merged segments take the place of their sources, take away what was aborted, settle rows.

        Parameters
        ----------
        request : RewriteRequest
            At most :data:`txntable.partition.append.LARGEST_COMMIT_SEGMENTS` rows in all.

        Returns
        -------
        tuple of Rewrite
            Those that hold; the others lost a race, and their outputs are named by no log.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            Call again: what was done is not done twice.
        """
        done: tuple[Rewrite, ...] = ()

        def decide(table: TableState, public: TableState) -> Sequence[Action]:
            nonlocal done
            decision = decide_rewrite(self.segments.fold, table, public, request, self.context.clock.now_ms())
            done = decision.done
            return decision.actions

        self.commit("COMPACT", decide)
        return done

    def project(self, decided: Sequence[OwedMarker] = ()) -> None:
        """Bring the public table to the state of the partition logs, as far as this view knows it.

        Parameters
        ----------
        decided : sequence of OwedMarker
            Decisions that the caller knows: the table's history names them.

        Raises
        ------
        CommitStateUnknownError, StoreUnavailableError
            Call again: a projection made twice changes nothing.
        """
        with self.segments.lock:
            segments = self.segments.ensure_fresh()
            if segments.version is None:
                return

            def decide(public: TableState) -> Sequence[Action]:
                actions = project(self.segments.fold, self.segments.table, public, self.context.clock.now_ms())
                # Any commit undoes what void entries are to other engines (PROTOCOL.md §4.6).
                return actions or [Txn(REFLECTS, public.number(REFLECTS)) for _ in public.void[:1]]

            def describe(public: TableState, actions: Sequence[Action]) -> OperationDetails:
                return projection_details(self.segments.table, public, actions, decided)

            known(self.public.commit("PROJECT", decide, describe), self.public.root)

    def catch_up(self) -> bool:
        """Read the partition logs, and project when the public table is behind; a writer may have died in between.

        Returns
        -------
        bool
            Whether it was behind, and was projected.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        """
        with self.segments.lock:
            self.segments.refresh()
            return self.publish()

    def public_shows_everything(self) -> bool:
        """Read the public table, and return whether it reflects the partition logs to their end, without reading these.

        The entry that it reflects is there, and none above it: without the first, a cleanup may have taken both.
        """
        with self.public.lock:
            asked_at = self.context.environment.instant()
            look = refresh_beside(self.public, self._end_of_segments)
            is_end = look.there[:1] == (False,) and all(look.there[1:])
            self._end_seen = (self.public.table.number(REFLECTS), asked_at) if is_end else None
        return is_end

    def _end_of_segments(self, public: TableState) -> tuple[str, ...]:
        """Return the entry above the one that the public table reflects, and that one unless it was just seen there.

        No cleanup takes in so short a time what was written since.  The entry itself may be large.
        """
        reflected = public.numbers.get(REFLECTS)
        if reflected is None:
            return ()
        above, newest = (commit_path(self.segments.root, version) for version in (reflected + 1, reflected))
        seen = self._end_seen
        is_known = (
            seen is not None
            and seen[0] == reflected
            and self.context.environment.since_ms(seen[1]) < self.context.guard_ms
        )
        return (above,) if is_known else (above, newest)

    def publish(self) -> bool:
        """Do the same for who has just read the partition logs."""
        with self.segments.lock:
            segments = self.segments.ensure_fresh()
            if segments.version is None:
                raise unknown_topic(self.name)
            public = self.public.refresh()
            if public.version is not None and public.number(REFLECTS) >= segments.version and not public.void:
                self.require_whole()
                return False
            try:
                self.project()
            except StorePermissionError:
                # Read-only: what is published already is what can be read.
                if public.version is None:
                    raise
                return False
            return True

    def commit_segments(self, operation: str, decide: Decide) -> CommitOutcome:
        """Write to S, whose end is there; P does not follow.

        Parameters
        ----------
        operation : str
            What ``commitInfo`` says.
        decide : callable
            As that of :meth:`txntable.log.delta_log.DeltaLog.commit`.

        Raises
        ------
        DamagedDataError
            See :meth:`require_whole`; nothing was written.
        CommitStateUnknownError, StoreUnavailableError
            Call again.
        """
        self.prove_whole()
        return known(self.segments.commit(operation, decide), self.segments.root)

    @property
    def is_proved_whole(self) -> bool:
        """Whether :meth:`prove_whole` has nothing to look for."""
        return self.segments.is_read and self._whole == self.segments.opening

    def read_public(self) -> None:
        """Read the public table, where that is allowed and its view cannot be trusted."""
        if not self.public.is_read:
            with suppress(StorePermissionError):
                self.public.refresh()

    def prove_whole(self) -> None:
        """Look, once for each opening of the partition logs, whether their end is there.

        For who is about to write to them; raises as :meth:`require_whole`, again and again.
        """
        with self.segments.lock:
            self.segments.ensure_fresh()
            if self.has_log and not self.is_proved_whole:
                self.read_public()
                self.require_whole()
                self._whole = self.segments.opening

    def require_whole(self) -> None:
        """Return if the partition logs do not end below the version that the public table shows of them, both read.

        For who is about to append: what he appends would take the place of what is lost.

        Raises
        ------
        DamagedDataError
            They do: their newest entries are lost.
        """
        with self.segments.lock:
            shown = self.public.table.number(REFLECTS, -1)
            if not self.has_log or self.segments.table.next_version > shown:
                return
            # What it shows may be of a warehouse that was restored since; and somebody may have appended and published.
            self.public.prove_since(next(moments))
            end = self.segments.refresh().next_version - 1
            if end < shown:
                prove_now(self.public, self.segments)
                raise lost_end(self.name, end=end, shown=shown)

    def require_decided(self, topic_id: str | None = None) -> None:
        """Return if the transaction log does not end below what S or P, as far as they were read, say that it decided.

        For who may decide, or complete: what is decided in the place of what is lost would count as done.  Who has a
        lock has that of the transaction log.

        Parameters
        ----------
        topic_id : str, optional
            Of the topic as the caller knows it; default: as it is now.

        Raises
        ------
        DamagedDataError
            It does: its newest entries are lost.
        """
        metadata = self.segments.table.metadata or self.public.table.metadata
        if topic_id is None and metadata is not None:
            topic_id = topic_id_of(metadata)
        numbers = (self.segments.table.numbers, self.public.table.numbers)
        decided = 0 if topic_id is None else max(decided_through(each, topic_id) for each in numbers)
        transactions = self.context.shared.get(TRANSACTION_LOG_ROOT)
        if transactions is None or decided < transactions.table.next_version:
            return
        # As above; and the topic may have been read after it.
        self.segments.prove_since(next(moments))
        self.public.prove_since(next(moments))
        end = transactions.refresh().next_version - 1
        if end < decided:
            prove_now(self.segments, self.public, transactions)
            raise lost_decisions("a topic has", topic=self.name, end=end, decided=decided)


def lost_log(name: str, **facts: object) -> DamagedDataError:
    """Return the error about a topic of which there is something, and no partition log."""
    return DamagedDataError(
        "the topic has lost its partition log, which stays also of one that was deleted: restore its folder from a"
        " backup, and create nothing over it. Where nothing has the log, and its public table is there, copy the"
        " committed records from that into a new topic. Where nothing of it is wanted any more, delete what is left of"
        " it, then what names it: groups' offsets by `txntable groups delete-offsets`, transactions by `txntable"
        " transactions run --once --give-up TOPIC`",
        topic=name,
        log=segments_root(name),
        **facts,
    )


def lost_decisions(who_has: str, **facts: object) -> DamagedDataError:
    """Return the error about a transaction log that ends below what another log says that it has decided."""
    return DamagedDataError(
        f"the transaction log has lost its newest entries, whose decisions {who_has}: stop every writer, run"
        " `txntable warehouse verify`, and do what it says",
        **facts,
    )


def known(outcome: CommitOutcome, log: str) -> CommitOutcome:
    """Return `outcome` unless it is unknown.

    Raises
    ------
    CommitStateUnknownError
        The store could not be reached; the same call finds out.
    """
    if isinstance(outcome, Unknown):
        raise unknown_error(outcome, log=log, version=outcome.version)
    return outcome

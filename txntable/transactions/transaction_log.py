"""The transaction log T: transactional ids and their transactions, and the requests on them (PROTOCOL.md §6).

Owns the fold that knows which transactions are open or decided and not complete, what this process knows complete
without a row that says so (§6.4), and which rows a request of ``txntable.coordinator.transaction_shard`` is decided on
and writes.  How these become durable is
:mod:`txntable.log.keyed_log`'s.  The coordinator job writes through an interface of its own
(:meth:`TransactionLog.leased`), which is shut once it lost the lease.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from txntable.coordinator.batch_memory import BatchId, BatchMemory, CommittedBatches, batch_key
from txntable.coordinator.lease import LEASE_KEY, LeaseRow, claim, claim_again, coordinator_epoch_of, require_held
from txntable.coordinator.producer_ids import allocate_producer_ids
from txntable.coordinator.row_json import encode_key
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_request import Transition
from txntable.coordinator.transaction_state import TransactionState
from txntable.errors import UnsupportedFormatError
from txntable.format.layout import TRANSACTION_LOG_ROOT, key_path
from txntable.format.partition_values import check_all_columns
from txntable.log.action_fields import check_number_names
from txntable.log.actions import Action, Add, Commit, Remove, Txn
from txntable.log.delta_log import Decide, DeltaLog
from txntable.log.keyed_log import KeyedLog
from txntable.log.keyed_table import KEY, KIND
from txntable.log.log_view import LogContext
from txntable.log.overlay import Overlay
from txntable.log.request_queue import AnswerT, RowChange
from txntable.log.table_state import TableState
from txntable.offsets.offset_log import SETTLED_THROUGH
from txntable.transactions.transaction_rows import (
    BATCH_KIND,
    ID_KIND,
    KINDS,
    LEASE_KIND,
    PRODUCER_ID,
    STATE,
    TRANSACTION_LOG_COLUMNS,
    RowUnderWay,
    batch_columns,
    batch_row_of,
    check_row,
    id_columns,
    id_row_of,
    lease_columns,
    lease_row_of,
)

NEXT_PRODUCER_ID = "next_producer_id"
_NUMBERS = re.compile(f"{NEXT_PRODUCER_ID}|{SETTLED_THROUGH}")
_COLUMNS = frozenset(TRANSACTION_LOG_COLUMNS.names)
_UNDER_WAY = [state.value for state in TransactionState if state.is_open or state.is_decided]


class TransactionLogFold:
    """Which transactions are under way; all other rows are looked up by their path.

    Every process follows what all others decide, and asks after little of it: so a row is read when it is first looked
    at, and refused then (PROTOCOL.md §3.3).
    """

    def __init__(self) -> None:
        # By their paths.
        self._under_way: MutableMapping[str, RowUnderWay] = {}
        # Those of them that are decided: whoever commits walks these alone.
        self._decided: MutableMapping[str, RowUnderWay] = {}
        # Of each decided row that is known complete, its position: that of the id's next decision is another.
        self._known_complete: MutableMapping[str, int] = {}

    def overlay(self) -> TransactionLogFold:
        """Return a fold that stands where this one does and keeps to itself what it takes, of which it reads all."""
        over = TransactionLogFold()
        over._under_way, over._decided = Overlay(self._under_way), Overlay(self._decided)
        over._known_complete = Overlay(self._known_complete)
        return over

    def restore(self, table: TableState) -> None:
        """Take everything from a state just loaded; what is known complete of a decision that it has stays known."""
        known_complete = dict(self._known_complete)
        self._under_way, self._decided, self._known_complete = {}, {}, {}
        check_number_names(table.numbers, _NUMBERS)
        rows = table.files.to_table()
        check_all_columns(rows, _COLUMNS)
        for kind in pc.unique(_column(rows, KIND)).to_pylist():
            _check_kind(kind)
        state = _column(rows, STATE)
        for path in rows.filter(pc.is_in(state, pa.array(_UNDER_WAY)))["path"].to_pylist():
            add = table.files.get(path)
            if add is not None:
                # The entry that decided may be gone: the checkpoint's time is the best upper bound.
                self._take(add, table.timestamp_ms)
        for path, position in known_complete.items():
            self._know_complete(path, position)

    def apply(self, commit: Commit, table: TableState) -> None:
        """Take one commit; `table` is the state before it."""
        for action in commit.actions:
            if isinstance(action, Add):
                self._take(action, commit.info.timestamp_ms)
            elif isinstance(action, Remove):
                self._drop(action.path)
            elif isinstance(action, Txn):
                check_number_names((action.app_id,), _NUMBERS)

    def _take(self, add: Add, timestamp_ms: int) -> None:
        kind = add.partition_values.get(KIND)
        _check_kind(kind)
        # What an overlay takes is about to be written (§4.2 rule 12).
        if kind != ID_KIND or isinstance(self._under_way, Overlay):
            check_row(add)
        if kind != ID_KIND:
            return
        self._drop(add.path)
        row = RowUnderWay.of(add, timestamp_ms)
        if row is not None:
            self._under_way[add.path] = row
            if row.is_decided:
                self._decided[add.path] = row

    def _drop(self, path: str) -> None:
        if self._under_way.pop(path, None) is not None:
            self._decided.pop(path, None)
            self._known_complete.pop(path, None)

    # -- what is under way --------------------------------------------------------------------

    @property
    def under_way(self) -> Mapping[str, TransactionMetadata]:
        """Transactional id -> its row, in the states ONGOING, PREPARED and PREPARE_*."""
        rows = [each.read() for each in self._under_way.values()]
        return {row.transactional_id: row for row in rows}

    @property
    def decided_at_ms(self) -> Mapping[str, int]:
        """Transactional id -> the in-commit time of its decision, for the rows in PREPARE_*."""
        return {each.read().transactional_id: each.since_ms for each in self._decided.values()}

    def names(self, topic: str) -> bool:
        """Return whether a transaction under way has enrolled a topic of that name; reads no others."""
        rows = (each.read() for each in self._under_way.values() if each.may_enrol(topic))
        return any(topic == found.name for row in rows for found in row.topics.values())

    def row_under_way(self, transactional_id: str) -> TransactionMetadata | None:
        """Return the row of an id, if its transaction is under way."""
        found = self._under_way.get(_path_of(transactional_id))
        return None if found is None else found.read()

    def decided(self) -> list[TransactionMetadata]:
        """Return the transactions that are decided and not complete, in decision order."""
        return _in_order(self._decided.values())

    def incomplete(self) -> list[TransactionMetadata]:
        """Return those of which something may be owed, in decision order."""
        return _in_order(self._incomplete())

    def incomplete_of(self, topic_id: str, above: int) -> list[TransactionMetadata]:
        """Return those of :meth:`incomplete` that were decided above a position and enrolled a topic; reads no others.

        Parameters
        ----------
        topic_id : str
            The topic's.
        above : int
            The topic is owed nothing of what was decided at or below.
        """
        rows = _in_order(each for each in self._incomplete() if each.position > above and each.may_enrol(topic_id))
        return [row for row in rows if topic_id in row.topics]

    def incomplete_seen(self) -> list[TransactionMetadata]:
        """Return those of :meth:`incomplete` that were read already."""
        return _in_order(each for each in self._incomplete() if each.is_read)

    def unrecorded(self) -> list[TransactionMetadata]:
        """Return those that are known complete, of which only COMPLETE is not written, in decision order."""
        return _in_order(self._under_way[path] for path in self._known_complete)

    def _incomplete(self) -> Iterator[RowUnderWay]:
        known = self._known_complete
        return (each for path, each in self._decided.items() if path not in known)

    def decision_ms(self, transactional_id: str) -> int:
        """Return the in-commit time of the decision of an id that is in PREPARE_*."""
        return self._under_way[_path_of(transactional_id)].since_ms

    def settled_by(self, paths: Iterable[str]) -> int:
        """Return the highest decision with groups among rows that entries are about to replace; 0: there is none.

        Parameters
        ----------
        paths : iterable of str
            Of the rows.  Only what is known complete is replaced.
        """
        decided = (found.read() for path in paths if (found := self._decided.get(path)) is not None)
        return max((row.position for row in decided if row.groups), default=0)

    # -- what is known complete ---------------------------------------------------------------

    def know_complete(self, transactional_id: str, position: int) -> None:
        """Take note that nothing is owed of a decision any more; of one that the id has gone beyond, nothing is noted.

        Parameters
        ----------
        transactional_id : str
            Whose.
        position : int
            The decision's.
        """
        self._know_complete(_path_of(transactional_id), position)

    def _know_complete(self, path: str, position: int) -> None:
        row = self._decided.get(path)
        if row is not None and row.read().position == position:
            self._known_complete[path] = position

    def is_known_complete(self, row: TransactionMetadata) -> bool:
        """Return whether a decided row of T is known complete."""
        return self._known_complete.get(_path_of(row.transactional_id)) == row.position

    def as_known(self, row: TransactionMetadata) -> TransactionMetadata:
        """Return a row of T as it counts here: as COMPLETE would leave it, if it is known complete."""
        return row.known_complete() if row.state.is_decided and self.is_known_complete(row) else row


def _path_of(transactional_id: str) -> str:
    return key_path(ID_KIND, encode_key(transactional_id))


def _in_order(rows: Iterable[RowUnderWay]) -> list[TransactionMetadata]:
    return sorted((each.read() for each in rows), key=lambda row: (row.position, row.producer_id))


def _check_kind(kind: str | None) -> None:
    if kind not in KINDS:
        raise UnsupportedFormatError("the transaction log has rows of a newer format; upgrade txntable", kind=kind)


def _column(rows: pa.Table, name: str) -> pa.ChunkedArray:
    return pc.map_lookup(rows["partitionValues"], query_key=pa.scalar(name), occurrence="first")


Request = Callable[[TransactionMetadata | None, int], Transition[AnswerT]]


class TransactionLog(KeyedLog[TransactionLogFold]):
    """T, and how requests become durable in it.

    Parameters
    ----------
    context : LogContext
        Of the warehouse.
    log : DeltaLog, optional
        A view of T to share; by default its own.
    lease_owner : str, optional
        Who must hold the lease at every commit; ``None``: a client, which needs none.
    """

    def __init__(
        self, context: LogContext, log: DeltaLog[TransactionLogFold] | None = None, lease_owner: str | None = None
    ) -> None:
        own = DeltaLog(context, TRANSACTION_LOG_ROOT, TransactionLogFold()) if log is None else log
        super().__init__(context, own, "transaction log")
        self._lease_owner = lease_owner

    def leased(self, owner: str) -> TransactionLog:
        """Return the same view of T with an interface for the coordinator job: shut unless `owner` holds the lease."""
        return TransactionLog(self.context, self.log, owner)

    # -- reading ----------------------------------------------------------------------------

    def row(self, transactional_id: str) -> TransactionMetadata | None:
        """Return the row of an id as the view knows it: as COMPLETE would leave it, if it is known complete."""
        with self.log.lock:
            known = self.log.fold.row_under_way(transactional_id)
            if known is not None:
                return self.log.fold.as_known(known)
            add = self.find(ID_KIND, encode_key(transactional_id))
        return None if add is None else id_row_of(add)

    def rows(self) -> Iterator[TransactionMetadata]:
        """Yield the rows of all transactional ids as :meth:`row` returns them."""
        with self.log.lock:
            adds, as_known = list(self.log.table.files), self.log.fold.as_known
        for add in adds:
            if add.partition_values[KIND] == ID_KIND:
                yield as_known(id_row_of(add))

    def row_of_producer(self, producer_id: int) -> TransactionMetadata | None:
        """Return the row of the id that has a producer id, as :meth:`row` returns it; reads no other row.

        Parameters
        ----------
        producer_id : int
            Each is one id's.
        """
        with self.log.lock:
            files, rows = self.log.table.files, self.log.table.files.to_table()
            is_meant = pc.and_(
                pc.equal(_column(rows, KIND), ID_KIND), pc.equal(_column(rows, PRODUCER_ID), str(producer_id))
            )
            found = [add for path in rows.filter(is_meant)["path"].to_pylist() if (add := files.get(path)) is not None]
            return self.log.fold.as_known(id_row_of(found[0])) if found else None

    def know_complete(self, is_complete: Callable[[TransactionMetadata], bool]) -> None:
        """Take note of the decided rows of which nothing is owed any more, among those that somebody has looked at.

        Parameters
        ----------
        is_complete : callable
            A row in PREPARE_* as T has it -> whether all that it owes was seen durable.
        """
        with self.log.lock:
            for row in self.log.fold.incomplete_seen():
                if is_complete(row):
                    self.log.fold.know_complete(row.transactional_id, row.position)

    def is_incomplete(self, seen: TransactionMetadata) -> bool:
        """Return whether a decided row stands in T as it was seen, and is not known complete."""
        with self.log.lock:
            row = self.log.fold.row_under_way(seen.transactional_id)
            stands = row is not None and row.state.is_decided and row.position == seen.position
            return stands and not self.log.fold.is_known_complete(seen)

    def is_unrecorded(self, transactional_id: str) -> bool:
        """Return whether the id's last transaction is known complete without a row that says so."""
        with self.log.lock:
            return any(row.transactional_id == transactional_id for row in self.log.fold.unrecorded())

    def memory(self, transactional_id: str, batch_id: BatchId | None) -> BatchMemory:
        """Return what the view remembers of a batch id."""
        if batch_id is None:
            return BatchMemory()
        add = self.find(BATCH_KIND, batch_key(transactional_id, batch_id))
        if add is None:
            return BatchMemory()
        row = batch_row_of(add)
        last = row.batch_id if isinstance(row.batch_id, int) else None
        return BatchMemory(last, name_known=isinstance(batch_id, str), committed_by=(row.producer_id, row.epoch))

    def committed_batches(self, transactional_id: str) -> CommittedBatches:
        """Return what the view remembers of all batches of an id; reads no other row of T."""
        prefix = encode_key(transactional_id, "").removesuffix('""]')
        with self.log.lock:
            files = self.log.ensure_fresh().files
            rows = files.to_table()
            rows = rows.filter(pc.equal(_column(rows, KIND), BATCH_KIND))
            is_meant = pc.starts_with(_column(rows, KEY), pattern=prefix)
            found = [add for path in rows.filter(is_meant)["path"].to_pylist() if (add := files.get(path)) is not None]
            last = self.memory(transactional_id, 0).last_integer
        names = [batch_row_of(add).batch_id for add in found]
        return CommittedBatches(last, frozenset(name for name in names if isinstance(name, str)))

    def lease(self) -> LeaseRow | None:
        """Return the lease as the view knows it; ``None``: nobody has claimed it yet."""
        add = self.find(LEASE_KIND, LEASE_KEY)
        return None if add is None else lease_row_of(add)

    def coordinator_epoch(self) -> int:
        """Return the epoch of the lease as the view knows it; 0: nobody has claimed it yet."""
        return coordinator_epoch_of(self.lease())

    def check_lease(self) -> None:
        """Return when this interface may be used, as far as the view knows; always, but for the coordinator job's.

        Raises
        ------
        TransactionCoordinatorFencedError
            Another job has the lease: stop.
        """
        if self._lease_owner is not None:
            require_held(self.lease(), self._lease_owner)

    # -- writing ----------------------------------------------------------------------------

    def claim_lease(self, owner: str, *, runs_once: bool = False, again: bool = False) -> LeaseRow:
        """Make `owner` the coordinator job, for one round or for good, whoever it was before.

        With `again` only from a job of one round.

        Raises
        ------
        TransactionCoordinatorFencedError
            With `again`: a job that runs all the time has it by now: stop.
        CommitStateUnknownError, StoreUnavailableError
            Call again; another claim harms nothing.
        """

        def decide(table: TableState) -> RowChange[LeaseRow]:
            lease, position = self.lease(), table.next_version
            row = claim_again(lease, owner, position) if again else claim(lease, owner, position, runs_once=runs_once)
            return RowChange(row, [lease_columns(row)])

        return self.run("CLAIM LEASE", decide)

    def commit(self, operation: str, decide: Decide, **whose: str) -> None:
        """Write to T at exactly the next slot; decided with the lease in hand where one is needed.

        Raises
        ------
        CommitStateUnknownError
            The store cannot be reached; the same call finds out what became of it.
        TransactionCoordinatorFencedError
            Another job has the lease: nothing was written.
        TxnTableError
            Whatever `decide` raises.
        """

        def decide_with_lease(table: TableState) -> Sequence[Action] | None:
            self.check_lease()
            return decide(table)

        super().commit(operation, decide_with_lease, **whose)

    def _actions(self, table: TableState, change: RowChange[AnswerT]) -> list[Action]:
        """Return what a change writes, and what it shows of the offset log: a later loss of its end is told by that."""
        actions = super()._actions(table, change)
        settled = self.log.fold.settled_by(add.path for add in actions if isinstance(add, Add))
        raises = settled > table.number(SETTLED_THROUGH)
        return [*actions, Txn(SETTLED_THROUGH, settled)] if raises else actions

    def request(self, operation: str, transactional_id: str, request: Request[AnswerT]) -> AnswerT:
        """Run one request of the state machine on the row at the head, and make its transition durable.

        Parameters
        ----------
        operation : str
            For people.
        transactional_id : str
            Whose row.
        request : callable
            (row, position) -> Transition; pure, made again when the slot is lost, and maybe by another thread.

        Returns
        -------
        object
            The transition's answer, once it is durable.

        Raises
        ------
        CommitStateUnknownError
            The store cannot be reached; the same call finds out what became of it.
        TxnTableError
            Whatever the request raises.
        """

        def decide(table: TableState) -> RowChange[AnswerT]:
            return _change(request(self.row(transactional_id), table.next_version))

        return self.share(operation, decide, transactional_id=transactional_id)

    def allocate_producer_ids(self) -> range:
        """Take a block of producer ids for producers without a transactional id.

        Raises
        ------
        CommitStateUnknownError
            Call again; a block may be lost, which harms nothing.
        """

        def decide(table: TableState) -> RowChange[range]:
            block = allocate_producer_ids(table.numbers.get(NEXT_PRODUCER_ID))
            return RowChange(block.ids, numbers=[Txn(NEXT_PRODUCER_ID, block.next_producer_id)])

        return self.run("ALLOCATE_PRODUCER_IDS", decide)


def _change(transition: Transition[AnswerT]) -> RowChange[AnswerT]:
    rows = [] if transition.row is None else [id_columns(transition.row)]
    if transition.batch_row is not None:
        rows.append(batch_columns(transition.batch_row))
    next_id = transition.next_producer_id
    return RowChange(transition.answer, rows, numbers=[] if next_id is None else [Txn(NEXT_PRODUCER_ID, next_id)])

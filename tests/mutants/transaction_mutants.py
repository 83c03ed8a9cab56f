"""Faults of deciding transactions, of their ids and of their completion (PROTOCOL.md §6)."""

from __future__ import annotations

from tests.mutants.mutant import Edit, Killer, Mutant

_SHARD = "coordinator/transaction_shard.py"
_LATE = "coordinator/late_end.py"
_STATE = "coordinator/transaction_state.py"
_ROW = "coordinator/transaction.py"
_UPKEEP = "coordinator/transaction_upkeep.py"
_CLIENT = "txntable/producer/coordinator_client.py"
_COMPLETION = "txntable/transactions/completion.py"
_EXPIRATION = "txntable/transactions/transaction_expiration.py"
_LAST_TRANSITION = "    (_S.COMPLETE_ABORT, _O.EXPIRE): _S.DEAD,\n"

TRANSACTION_MUTANTS = (
    Mutant(
        "fence-check-skipped-at-the-decision",
        "a decision is taken from a producer of any epoch",
        "6.3 decide",
        (
            Edit(
                _SHARD,
                "        return Transition(None, answer_late(row, request))\n    require_complete(row)\n"
                "    if request.token",
                "        pass\n    require_complete(row)\n    if request.token",
            ),
        ),
        Killer("bank", 23),
    ),
    Mutant(
        "fence-check-skipped-at-the-enrolment",
        "partitions are enrolled for a producer of any epoch, and its appends are verified by its producer id alone",
        "6.3 enrol, append",
        (
            Edit(
                _SHARD,
                "        raise refused(ProducerFencedError if request.groups else "
                "InvalidProducerEpochError, row, request.epoch)\n",
                "        pass\n",
            ),
            Edit("coordinator/verification.py", "    if epoch != owned.producer_epoch:\n", "    if epoch < 0:\n"),
        ),
        Killer("sleepers", 9),
    ),
    Mutant(
        "verification-skipped",
        "an append is made without looking at the transaction log",
        "6.3 append",
        (Edit("txntable/topics/topic_log.py", "            verify(self.segments)\n", ""),),
        Killer("zombies", 3),
    ),
    Mutant(
        "offsets-verification-skipped",
        "a transaction's offsets are written without looking at the transaction log",
        "6.3 send offsets",
        (
            Edit(
                _CLIENT,
                "            verify_offsets(id_row, transaction.producer_id, transaction.epoch, offsets.group)\n",
                "",
            ),
        ),
        Killer("offsets", 60),
    ),
    Mutant(
        "init-keeps-the-epoch",
        "a producer takes an id without raising its epoch",
        "6.3 init",
        (Edit(_ROW, "        epoch = self.producer_epoch + 1\n", "        epoch = self.producer_epoch\n"),),
        Killer("bank", 0),
    ),
    Mutant(
        "empty-over-prepare",
        "a producer takes an id whose decision is not complete, and the row forgets what is owed",
        "6.2, 6.3 init",
        (
            Edit(
                _SHARD,
                "    require_complete(row)\n    if row.state is TransactionState.PREPARED:\n",
                "    if row.state is TransactionState.PREPARED:\n",
            ),
            Edit(
                _STATE,
                _LAST_TRANSITION,
                _LAST_TRANSITION
                + "    (_S.PREPARE_COMMIT, _O.INIT): _S.EMPTY,\n    (_S.PREPARE_ABORT, _O.INIT): _S.EMPTY,\n",
            ),
            Edit(
                _ROW,
                "producer_epoch=epoch, timeout_ms=timeout_ms)",
                "producer_epoch=epoch, timeout_ms=timeout_ms, topics={}, groups=(), started_position=None)",
            ),
        ),
        Killer("bank", 6),
    ),
    Mutant(
        "retry-answered-whatever-was-decided",
        "who asks again for a commit is told that it happened, also when the transaction was aborted",
        "6.2",
        (
            Edit(
                _LATE,
                "    if decision.outcome is request.outcome and (told_anyway or not superseded):\n",
                "    if told_anyway or not superseded:\n",
            ),
        ),
        Killer("answers", 1),
    ),
    Mutant(
        "open-transaction-expires",
        "an id expires in the middle of a transaction",
        "6.6",
        (
            Edit(
                _STATE,
                _LAST_TRANSITION,
                _LAST_TRANSITION + "    (_S.ONGOING, _O.EXPIRE): _S.DEAD,\n    (_S.PREPARED, _O.EXPIRE): _S.DEAD,\n",
            ),
            # Else the row itself refuses to be dead and open: the job would fail, and nothing expire.
            Edit(
                _ROW,
                "        return self._moved(Operation.EXPIRE, position)\n",
                '        gone = {"topics": {}, "groups": (), "started_position": None, "token": None, '
                '"batch_id": None}\n'
                "        return self._moved(Operation.EXPIRE, position, **gone)\n",
            ),
        ),
        Killer("exchange", 11),
    ),
    Mutant(
        "prepared-times-out",
        "a prepared transaction is aborted when its timeout has passed",
        "6.3 two-phase commit",
        (
            Edit(_STATE, _LAST_TRANSITION, _LAST_TRANSITION + "    (_S.PREPARED, _O.TIME_OUT): _S.PREPARE_ABORT,\n"),
            Edit(
                _COMPLETION,
                "if seen.state is not TransactionState.ONGOING or seen.started_position is None:",
                "if not seen.state.is_open or seen.started_position is None:",
            ),
        ),
        Killer("exchange", 0),
    ),
    Mutant(
        "timeout-not-waited-for",
        "an ongoing transaction is aborted by whoever looks at it",
        "6.6 time-out",
        (Edit(_UPKEEP, "not has_passed(elapsed_ms, row.timeout_ms)", "elapsed_ms < 0"),),
        Killer("office", 24),
    ),
    Mutant(
        "timeout-of-the-next-transaction",
        "the time of one transaction times out the next one of the id",
        "6.6 time-out",
        (
            Edit(
                _COMPLETION,
                "if row is None or row.started_position != seen.started_position:",
                "if row is None:",
            ),
        ),
        Killer("late-reapers", 0),
    ),
    Mutant(
        "complete-before-the-projection",
        "the row says COMPLETE once the markers are written, before the public tables show them",
        "6.4",
        (
            Edit(
                _COMPLETION,
                "            topic.write_markers(topic_id, owed, known_through)\n            topic.project(owed)\n",
                "            topic.write_markers(topic_id, owed, known_through)\n",
            ),
        ),
        Killer("onlookers"),
    ),
    Mutant(
        "complete-with-other-topics",
        "the row of a transaction that enrolled more topics than were brought up says COMPLETE too",
        "6.4",
        (
            Edit(
                _COMPLETION,
                "                and other.topics.keys() <= row.topics.keys()\n",
                "",
            ),
        ),
        Killer("every-order-different-topics", 0, runs=1),
    ),
    Mutant(
        "complete-without-its-offsets",
        "the row of a transaction with groups says COMPLETE though only records were brought up",
        "6.4",
        (Edit(_COMPLETION, "                and bool(other.groups) <= bool(row.groups)\n", ""),),
        Killer("offsets", 212, 900),
    ),
    Mutant(
        "known-before-it-is-published",
        "who meets a decision knows it complete before its topics' public tables say so",
        "6.4",
        (Edit(_COMPLETION, "shown.get(topic_id, 0) >= row.position for", "shown.get(topic_id, 0) >= 0 for"),),
        Killer("bank", 1),
    ),
    Mutant(
        "known-before-its-offsets-are-settled",
        "who meets a decision with groups knows it complete by its topics alone",
        "6.4",
        (Edit(_COMPLETION, "                and (settled >= row.position or not row.groups)\n", ""),),
        Killer("offsets", 1),
    ),
    Mutant(
        "complete-of-what-was-seen",
        "COMPLETE is decided on the row that was seen, and not on the one below its slot",
        "6.4",
        (
            Edit(
                _COMPLETION,
                "        def request(table: TableState) -> RowChange[int]:\n            now",
                "        seen = due()\n\n        def request(table: TableState) -> RowChange[int]:\n            now",
            ),
            Edit(_COMPLETION, "for row in due()[:LARGEST_COMMIT_ROWS]", "for row in seen[:LARGEST_COMMIT_ROWS]"),
        ),
        Killer("bank", 180),
    ),
    Mutant(
        "markers-by-two-readings",
        "the decisions are of one reading of the transaction log, and how far they are all of a later one",
        "6.4",
        (
            Edit(
                _COMPLETION,
                "        if known_through is None:\n",
                "        known_through = log.refresh().version\n        if known_through is None:\n",
            ),
        ),
        Killer("answers", 24),
    ),
    Mutant(
        "marker-ends-a-later-epoch",
        "a marker ends the epoch to which the decision has raised the id",
        "5.3",
        (Edit(_COMPLETION, "        ends=decision.epoch,\n", "        ends=row.producer_epoch,\n"),),
        Killer("bank", 0),
    ),
    Mutant(
        "outside-token-not-compared",
        "what is prepared is committed whatever token the external database has",
        "6.3 two-phase commit",
        (
            Edit(
                "coordinator/prepared_token.py",
                "    if token == row.token:\n        return Outcome.COMMIT\n",
                "    return Outcome.COMMIT\n",
            ),
        ),
        Killer("exchange", 0),
    ),
    Mutant(
        "prepared-fenced-by-an-init",
        "a producer that knows nothing of two-phase commit aborts what is prepared",
        "6.3 two-phase commit",
        (
            Edit(
                _SHARD,
                '        raise InvalidTxnStateError(\n            "a transaction is prepared: init with keep_prepared',
                "        return abort_open(row, Operation.FENCE, request.position)\n"
                '        raise InvalidTxnStateError(\n            "a transaction is prepared: init with keep_prepared',
            ),
        ),
        Killer("exchange", 5),
    ),
    Mutant(
        "batch-not-checked",
        "the batch id is looked at neither when the transaction begins nor by the commit that decides",
        "6.1, 6.3 decide",
        (
            Edit(
                "txntable/producer/producer.py",
                "        check_batch(memory.last_integer, memory.name_known, batch_id)\n",
                "",
            ),
            Edit(
                _SHARD,
                "    check_batch(request.memory.last_integer, request.memory.name_known, batch_id)\n",
                "",
            ),
        ),
        Killer("bank", 3),
    ),
    Mutant(
        "batch-memory-expires-with-the-id",
        "a batch name is forgotten when its transactional id is",
        "6.6",
        (
            Edit(
                _EXPIRATION,
                "BATCH_KIND, now_ms - settings.batch_retention_ms)",
                "BATCH_KIND, now_ms - settings.transactional_id_expiration_ms)",
            ),
            Edit(
                _EXPIRATION,
                "spec.now_ms, spec.settings.batch_retention_ms)",
                "spec.now_ms, spec.settings.transactional_id_expiration_ms)",
            ),
        ),
        Killer("office", 1),
    ),
    Mutant(
        "last-integer-forgotten",
        "the last committed integer of an id is forgotten like a name",
        "6.6",
        (
            Edit(
                "coordinator/batch_memory.py",
                "    if isinstance(row.batch_id, int) or row.decided_at_ms is None:\n",
                "    if row.decided_at_ms is None:\n",
            ),
        ),
        Killer("office", 17),
    ),
    Mutant(
        "producer-ids-by-the-clock",
        "a producer id is the second in which it is taken",
        "5.1, 6.2",
        (
            Edit(
                _CLIENT,
                "next_id = self._transactions.log.table.number(NEXT_PRODUCER_ID)",
                "next_id = self._transactions.context.clock.now_ms() // 1000 % 10**6",
            ),
        ),
        Killer("bank", 1),
    ),
    Mutant(
        "producer-ids-from-the-rows",
        "the next producer id is one above those of the rows that there are",
        "5.1",
        (
            Edit(
                _CLIENT,
                "next_id = self._transactions.log.table.number(NEXT_PRODUCER_ID)",
                "next_id = max([each.producer_id for each in self._transactions.rows()], default=-1) + 1",
            ),
        ),
        Killer("office", 10),
    ),
    Mutant(
        "lease-survives-a-claim",
        "a job goes on after another has claimed the lease",
        "6.6 lease",
        (Edit("coordinator/lease.py", "    if row is None or row.owner != owner:\n", "    if row is None:\n"),),
        Killer("onlookers", 3),
    ),
    Mutant(
        "claim-keeps-the-coordinator-epoch",
        "a claim of the lease does not raise its epoch",
        "6.6 lease",
        (Edit("coordinator/lease.py", "coordinator_epoch_of(row) + 1", "max(1, coordinator_epoch_of(row))"),),
        Killer("office", 0),
    ),
    Mutant(
        "position-torn-by-a-completer",
        "a commit of S takes a part of the decisions of one position, and says that it has them all",
        "6.4",
        (
            Edit(
                "txntable/partition/completion.py",
                "groupby(owed, key=lambda one: one.position)",
                "groupby(owed, key=lambda one: (one.position, one.producer_id))",
            ),
        ),
        Killer("threads"),
    ),
    Mutant(
        "complete-above-what-was-done",
        "a decision of which a thread has learned meanwhile is taken for complete by who completed an earlier one",
        "6.4",
        (
            Edit(
                _COMPLETION,
                "                other.position <= through\n                and other",
                "                other",
            ),
        ),
        Killer("threads", 3),
    ),
    Mutant(
        "readers-end-nothing",
        "a transaction beyond its timeout holds consumers back until the job comes by",
        "6.6 time-out",
        (Edit(_COMPLETION, "        if not open_here:\n            return\n", "        return\n"),),
        Killer("bank", 7009),
    ),
)

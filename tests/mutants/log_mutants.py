"""Faults of reading, writing, checkpoints and cleanup of a log (PROTOCOL.md §4)."""

from __future__ import annotations

from tests.mutants.mutant import Edit, Killer, Mutant

_LOG = "txntable/log/delta_log.py"
_QUEUE = "txntable/log/request_queue.py"
_VIEW = "txntable/log/log_view.py"
_TABLE = "txntable/log/table_state.py"
_CLEANUP = "txntable/log/cleanup.py"
_FOLD = "txntable/log/fold.py"

LOG_MUTANTS = (
    Mutant(
        "ambiguous-put-at-the-next-slot",
        "a put without an answer is tried again one slot higher",
        "4.2 rule 1",
        (
            Edit(
                _LOG,
                "            # Neither applied nor refused, as far as can be told: the same bytes, "
                "the same slot (log rule 1).\n",
                "            commit = Commit(commit.version + 1, commit.info, commit.actions, commit.repairs)\n",
            ),
        ),
        Killer("sleepers", 6),
    ),
    Mutant(
        "conflict-409-is-ones-own",
        "an answer that the slot is taken, with nothing there, is taken for one's own commit of an earlier try",
        "4.2 rule 1",
        (
            Edit(
                _LOG,
                "one of ours may be under way.\n            self._in_doubt = commit.version\n            return None\n",
                "one of ours may be under way.\n            self._apply(commit)\n"
                "            return Committed(commit.version)\n",
            ),
        ),
        Killer("bank", 1),
    ),
    Mutant(
        "conflict-409-is-taken",
        "an answer that the slot is taken, with nothing there, is taken for another's, and it is decided anew "
        "where one's own put of an earlier try may still land",
        "4.2 rule 1",
        (
            Edit(
                _LOG,
                "            entry, free_since = (None, None) if created else self._read_taken(commit.version)\n",
                "            entry, free_since = (None, None) if created else self._read_taken(commit.version)\n"
                "            if not created and entry is None:\n                return Conflicted(commit.version)\n",
            ),
        ),
        Killer("late-landings", 0),
    ),
    Mutant(
        "taken-slot-is-ones-own",
        "whoever finds the slot taken takes the entry there for its own",
        "4.2 rule 1",
        (Edit(_LOG, "            if not is_mine:\n", "            if winner.version != commit.version:\n"),),
        Killer("sleepers"),
    ),
    Mutant(
        "unknown-outcome-told-as-failure",
        "an error while a put may still land reaches the caller as a definite no",
        "4.2 rule 1",
        (
            Edit(
                _LOG,
                "                if self._in_doubt is None:\n                    raise\n"
                '                counters.add("log-metrics/unknown-total")\n',
                '                raise\n                counters.add("log-metrics/unknown-total")\n',
            ),
            Edit(
                _LOG,
                "        return Unknown(version, self._failure, attempts.tried_for_ms)\n",
                '        raise StoreUnavailableError("no answer")\n',
            ),
        ),
        Killer("answers", 14),
    ),
    Mutant(
        "late-answer-believed",
        "the age of the view is looked at before the put, and not when its answer is in",
        "4.2 rule 3",
        (
            Edit(
                _LOG,
                "        if self._is_stale():\n            self._in_doubt",
                "        if commit.version < 0:\n            self._in_doubt",
            ),
        ),
        Killer("freed-slots", 3),
    ),
    Mutant(
        "stale-view-probed",
        "a view of any age is brought up by asking for the next entry",
        "4.2 rule 3",
        (
            Edit(
                _VIEW,
                "if self._is_stale() or not (yield from self._following_tail()):",
                "if self._shown_at is None or not (yield from self._following_tail()):",
            ),
            Edit(
                _VIEW,
                "        if self._is_stale():\n            return None\n"
                "        self._require_own(unproved, beginning)\n",
                "        self._require_own(unproved, beginning)\n",
            ),
            Edit(
                _VIEW,
                "            return None if self._is_stale() else window\n",
                "            return window\n",
            ),
        ),
        Killer("sleepers", 3),
    ),
    Mutant(
        "lost-commit-found-in-its-slot",
        "whose put was answered too late believes the bytes in its slot, which may have been created again",
        "4.2 rule 3",
        (
            Edit(
                _LOG,
                "        self._reopen()\n        head = self.table.version\n",
                "        self._reopen()\n        head = self.table.version\n"
                "        entry = self._store.get(commit_path(self.root, commit.version))\n"
                "        if entry and self._decode(commit.version, entry).info.commit_id == commit.info.commit_id:\n"
                "            return Committed(commit.version)\n",
            ),
        ),
        Killer("sleepers", 150),
    ),
    Mutant(
        "decided-on-a-stale-state",
        "who has lost a slot puts what it had decided at the next one, without deciding again",
        "4.2 rule 1",
        (
            Edit(
                _LOG,
                "        def attempt() -> Attempt | Unchanged:\n            self.ensure_fresh()\n"
                "            self.prove_related()\n            actions = self._decide(decide)\n",
                "        decided: list[Sequence[Action]] = []\n\n        def attempt() -> Attempt | Unchanged:\n"
                "            self.ensure_fresh()\n            self.prove_related()\n"
                "            decided[:] = decided or [self._decide(decide) or []]\n            actions = decided[0]\n",
            ),
        ),
        Killer("bank", 1),
    ),
    Mutant(
        "any-reading-verifies",
        "an append is verified by a reading of the transaction log of any age",
        "6.3",
        (Edit(_VIEW, "        return self._asked > other._answered\n", "        return self._asked >= 0\n"),),
        Killer("every-order-forgotten-fence", 0, runs=1),
    ),
    Mutant(
        "tail-believed-without-its-beginning",
        "who opens a log does not look whether what it began with is still there once the tail is read",
        "4.3",
        (
            Edit(
                _VIEW, "        return followed and (yield from _proving(loaded.start))\n", "        return followed\n"
            ),
        ),
        Killer("sleepers", 7),
    ),
    Mutant(
        "checkpoint-forgets-what-is-tombstoned",
        "a checkpoint leaves all tombstones out",
        "4.4",
        (
            Edit(
                "txntable/log/table_state.py",
                "        return self.timestamp_ms - self.deleted_files_retention_ms - guard_ms\n",
                "        return self.timestamp_ms + 0 * (self.deleted_files_retention_ms + guard_ms) + 1\n",
            ),
        ),
        Killer("vacuum", 23),
    ),
    Mutant(
        "commit-times-by-the-clock-alone",
        "an entry's time is not made later than that of the version below",
        "4.1",
        (
            Edit(
                _LOG,
                "max(self.context.clock.now_ms(), table.timestamp_ms + 1)",
                "self.context.clock.now_ms()",
            ),
        ),
        Killer("sleepers"),
    ),
    Mutant(
        "cleanup-takes-the-checkpoints-entry",
        "cleanup deletes the entry of the checkpoint that reading starts from",
        "4.5",
        (
            Edit(
                _CLEANUP,
                "    going = [f for f in files if f.version < start]\n",
                "    going = [f for f in files if f.version < start or (f.version == start and not f.is_checkpoint)]\n",
            ),
        ),
        Killer("sleepers"),
    ),
    Mutant(
        "cleanup-newest-first",
        "cleanup deletes the newest of what may go first",
        "4.5",
        (
            Edit(
                _CLEANUP,
                "    going.sort(key=lambda f: (f.version, not f.is_checkpoint))\n",
                "    going.sort(key=lambda f: (-f.version, not f.is_checkpoint))\n",
            ),
        ),
        Killer("sleepers", 7),
    ),
    Mutant(
        "cleanup-of-any-age",
        "cleanup deletes what stands below the newest checkpoint, however young",
        "4.5",
        (
            Edit(
                _CLEANUP, "    horizon_ms = now_ms - retention_ms\n", "    horizon_ms = now_ms + 0 * retention_ms + 1\n"
            ),
        ),
        Killer("office", 977, 2_000),
    ),
    Mutant(
        "put-before-it-is-folded",
        "an entry is put that its writer has decoded, and not folded first",
        "4.2 rule 12",
        (Edit(_FOLD, "        take(found, view[0].overlay(), view[1].overlay())\n", ""),),
        Killer("unreadable", 0),
    ),
    Mutant(
        "put-before-it-is-read",
        "an entry is put that its writer has neither decoded nor folded first",
        "4.2 rule 12",
        (
            Edit(
                _FOLD,
                "        found = decode_commit(commit.version, data, path)\n"
                "        take(found, view[0].overlay(), view[1].overlay())\n",
                "        from dataclasses import replace\n\n        from txntable.log.actions import entry_digest\n\n"
                "        found = replace(commit, info=replace(commit.info, digest=entry_digest(data)))\n",
            ),
        ),
        Killer("unreadable", 0),
    ),
    Mutant(
        "predecessor-not-asked",
        "a commit that was created is told of, whatever became of the entry that it stands on",
        "4.2 rule 13",
        (
            Edit(
                _LOG,
                "        if head is not None:\n            self._require_own(head, below)\n",
                "        if head is not None and below is None and created is None:\n"
                "            self._require_own(head, below)\n",
            ),
        ),
        Killer("vanishing", 1),
    ),
    Mutant(
        "predecessors-answer-ignored",
        "the entry below is asked for, and any answer will do",
        "4.2 rule 13",
        (
            Edit(
                _VIEW,
                "        if not head.is_begun_by(beginning):\n",
                "        if head.is_begun_by(beginning) and head.slot_id is None:\n",
            ),
        ),
        Killer("vanishing", 0),
    ),
    Mutant(
        "planted-entry-built-on",
        "who finds new entries does not ask whether what they stand on is there",
        "4.2 rule 13",
        (Edit(_VIEW, "            due = True\n", "            due = False\n"),),
        Killer("vanishing", 238),
    ),
    Mutant(
        "decided-on-a-log-that-is-gone",
        "what is known of one log decides what is written to another that was opened since, though the first is gone",
        "4.2 rule 13",
        (Edit(_LOG, "            self.prove_related()\n", ""),),
        Killer("vanishing", 366),
    ),
    Mutant(
        "foreign-entry-folded",
        "an entry of another incarnation counts",
        "4.6",
        (
            Edit(
                _TABLE,
                "        return info.previous == self.commit_id and is_chained and ",
                "        return info.log != self.log or info.previous == self.commit_id and is_chained and ",
            ),
            Edit(
                _TABLE,
                "        if commit.version != self.next_version or info.previous != self.commit_id:\n",
                "        if commit.version != self.next_version or not self.follows(info):\n",
            ),
        ),
        Killer("vanishing", 14),
    ),
    Mutant(
        "void-entry-not-undone",
        "the commit above a void entry does not undo it for readers that fold every entry",
        "4.6",
        (
            Edit(
                _LOG,
                "        return Commit(table.next_version, info, actions, repairs_of(table, actions, timestamp_ms))\n",
                "        return Commit(table.next_version, info, actions)\n",
            ),
        ),
        Killer("vanishing", 0),
    ),
    Mutant(
        "answer-of-a-lost-slot-told",
        "requests that share an entry are told what was decided first, whatever was decided for the slot that was won",
        "4.2 rule 14",
        (
            Edit(_QUEUE, "        request.forget()\n    for", "        pass\n    for"),
            Edit(
                _QUEUE,
                "            self.change = self.decide(table)\n",
                "            self.change, first = self.decide(table), self.change\n"
                "            said = self.change if first is None else first\n"
                "            self.change = RowChange(\n"
                "                said.answer, self.change.rows, self.change.removed, self.change.numbers\n"
                "            )\n",
            ),
        ),
        Killer("threads"),
    ),
    Mutant(
        "two-new-ids-share-a-producer-id",
        "two ids that are new take the same producer id in one entry",
        "4.2 rule 14",
        (Edit(_QUEUE, " or names & numbers):", "):"),),
        Killer("threads"),
    ),
    Mutant(
        "request-without-room-is-answered",
        "a request that had no room in the entry is told that it is done",
        "4.2 rule 14",
        (
            Edit(
                _QUEUE,
                "                each.is_answered = each.is_decided\n",
                "                each.is_answered = True\n",
            ),
            Edit(
                _QUEUE,
                "            request.forget()\n            break\n",
                "            break\n",
            ),
        ),
        Killer("threads"),
    ),
)

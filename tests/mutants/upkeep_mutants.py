"""Faults of compaction, retention and vacuum (PROTOCOL.md §5.7, §5.8, §5.9)."""

from __future__ import annotations

from tests.mutants.mutant import Edit, Killer, Mutant

_REWRITING = "txntable/partition/rewriting.py"
_ELIGIBLE = "compaction/eligible.py"
_VACUUM = "compaction/vacuum.py"
_PLAN = "compaction/vacuum_plan.py"
_LOG_START = "txntable/partition/log_start.py"

UPKEEP_MUTANTS = (
    Mutant(
        "undecided-taken-away",
        "a compaction takes segments away whose transaction is not decided",
        "5.8",
        (
            Edit(
                "txntable/partition/projection.py",
                "    return marker is not None and marker.control is Control.ABORT\n",
                "    return batch.transactional and (marker is None or marker.control is Control.ABORT)\n",
            ),
        ),
        Killer("compaction", 11),
    ),
    Mutant(
        "undecided-merged",
        "a compaction merges segments that are not committed and not published",
        "5.8",
        (
            Edit(
                _ELIGIBLE,
                "            is_old = _is_old(logs, batch, horizon_ms)\n",
                "            is_old = published = True\n",
            ),
            Edit(
                _ELIGIBLE,
                "end = unstable.get(partition, next_offset(table.numbers, settings.topic_id, partition))",
                "end = next_offset(table.numbers, settings.topic_id, partition)",
            ),
            Edit(
                _REWRITING,
                "row is None or SEGMENTS_PREFIX + path not in self._public.files:\n                return None\n",
                "row is None:\n                return None\n",
            ),
            Edit(
                _REWRITING,
                "            if commit_position(self._logs, sources[-1]) is None:\n                return None\n",
                "",
            ),
            Edit(
                _REWRITING,
                "        position = commit_position(logs, batch)\n        assert position is not None  # the caller",
                "        position = commit_position(logs, batch) or 0\n        assert position is "
                "not None  # the caller",
            ),
        ),
        Killer("undecided", 0),
    ),
    Mutant(
        "merge-across-a-pinned-position",
        "a compaction merges what was decided less long ago than snapshots are kept",
        "5.8",
        (
            Edit(
                "compaction/planner.py",
                "eligible_segments(logs, table, public, now_ms - rules.snapshot_retention_ms)",
                "eligible_segments(logs, table, public, now_ms)",
            ),
        ),
        Killer("pinned", 7),
    ),
    Mutant(
        "merged-through-not-raised",
        "a merge of several decisions does not say so",
        "5.8",
        (Edit(_REWRITING, "            if decided[0] < decided[1]:\n", "            if decided[0] > decided[1]:\n"),),
        Killer("pinned", 0),
    ),
    Mutant(
        "merge-of-what-is-gone",
        "merged segments are registered though another rewrite has replaced their sources",
        "5.8",
        (
            Edit(
                _REWRITING,
                "                return None\n            sources.append(batch_of(row))\n",
                "                continue\n            sources.append(batch_of(row))\n",
            ),
        ),
        Killer("merges", 72),
    ),
    Mutant(
        "public-table-written-by-the-compactor",
        "a compaction takes the sources out of the public table itself",
        "7",
        (
            Edit(
                "txntable/topics/topic_log.py",
                "            return self._with_constant_files(table, decide(table, self.public.ensure_fresh()))\n",
                "            actions = decide(table, self.public.ensure_fresh())\n"
                '            gone = {f"_segments/{one.path}": one for one in actions if '
                'type(one).__name__ == "Remove"}\n'
                "            self.public.commit(\n"
                "                operation,\n"
                "                lambda shown: [\n"
                "                    type(one)(path, one.deletion_ms, False) for path, one in "
                "gone.items() if path in shown.files\n"
                "                ],\n"
                "            )\n"
                "            return self._with_constant_files(table, actions)\n",
            ),
        ),
        Killer("compaction", 4),
    ),
    Mutant(
        "cleaned-beyond-the-stable-offset",
        "a compaction by key looks at records above the first open transaction, and counts them as looked at",
        "5.8 by key",
        (
            Edit(
                _ELIGIBLE,
                "end = unstable.get(partition, next_offset(table.numbers, settings.topic_id, partition))",
                "end = next_offset(table.numbers, settings.topic_id, partition)",
            ),
            Edit(_ELIGIBLE, "                stretch.through = min(stretch.through, batch.base_offset)\n", ""),
        ),
        Killer("latest", 0),
    ),
    Mutant(
        "tombstone-goes-at-once",
        "a tombstone goes with the next compaction, without waiting",
        "5.8 tombstone",
        (
            Edit(
                "compaction/cleaning.py",
                '    horizon_ms = now_ms - config_number("delete.retention.ms", config)\n',
                "    horizon_ms = now_ms\n",
            ),
        ),
        Killer("tombstones", 2),
    ),
    Mutant(
        "retention-moves-the-log-start-back",
        "retention sets the log start to the next segment, below records that were deleted",
        "5.9",
        (
            Edit(
                _LOG_START,
                "        if offset > log_start(table.numbers, settings.topic_id, partition)\n",
                "        if offset != log_start(table.numbers, settings.topic_id, partition)\n",
            ),
        ),
        Killer("starts", 0),
    ),
    Mutant(
        "retention-of-the-unpublished",
        "retention takes committed segments that the public table has not shown yet",
        "5.9",
        (
            Edit(
                _LOG_START,
                "        return self._position(segment) is None or self.is_visible(segment)\n",
                "        return segment.size >= 0\n",
            ),
        ),
        Killer("retention", 0),
    ),
    Mutant(
        "deletion-over-the-high-watermark",
        "records are deleted before an offset that the partition does not have",
        "5.9",
        (
            Edit(
                "txntable/topics/retention.py",
                "    if offset is not None and not 0 <= offset <= highest:\n",
                "    if offset is not None and offset < 0:\n",
            ),
        ),
        Killer("onlookers", 3),
    ),
    Mutant(
        "vacuum-without-tombstoning",
        "vacuum deletes names that nothing keeps from becoming live",
        "5.7",
        (Edit(_VACUUM, "                self._tombstone(topic, part)\n", ""),),
        Killer("uploads", 0),
    ),
    Mutant(
        "vacuum-does-not-look-again",
        "vacuum deletes what it has judged before it tombstoned the names",
        "5.7",
        (Edit(_VACUUM, "                part = self._still_going(topic, part, tally)\n", ""),),
        Killer("uploads", 0),
    ),
    Mutant(
        "vacuum-of-a-current-epoch",
        "vacuum deletes uploads of an epoch that may still append",
        "5.7",
        (
            Edit(
                _PLAN,
                "(current is not None and epoch >= current):\n",
                "(current is not None and epoch > current):\n",
            ),
        ),
        Killer("onlookers", 59),
    ),
    Mutant(
        "vacuum-takes-the-past",
        "vacuum deletes what was removed from the public table, however lately",
        "5.7",
        (
            Edit(
                _PLAN,
                "published.deletion_ms >= states.horizons.public:",
                "published.deletion_ms < 0:",
            ),
            Edit(
                _PLAN,
                "appended.deletion_ms >= states.horizons.segments:",
                "appended.deletion_ms < 0:",
            ),
        ),
        Killer("vacuum", 2),
    ),
    Mutant(
        "vacuum-takes-a-needed-marker",
        "vacuum goes by the epoch of an id's row, and deletes the file of a marker that somebody is about to write",
        "5.7",
        (
            Edit(
                _PLAN,
                "    return Reason.TRANSACTION if is_open else Reason.UNNAMED\n",
                "    return Reason.UNNAMED if is_open else Reason.UNNAMED\n",
            ),
            Edit(_VACUUM, "        return row.decision.epoch\n", "        return row.producer_epoch\n"),
        ),
        Killer("markers", 44),
    ),
)

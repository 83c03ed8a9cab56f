"""Faults of appends, markers, stable offsets and projections (PROTOCOL.md §5, §7), and of who reads them (§10)."""

from __future__ import annotations

from tests.mutants.mutant import Edit, Killer, Mutant

_MARKERS = "txntable/partition/completion.py"
_APPEND = "txntable/partition/append.py"
_PRODUCER = "txntable/partition/producer_state.py"
_PROJECTION = "txntable/partition/projection.py"
_REMOVAL = "txntable/partition/removal.py"
_VIEW = "txntable/partition/topic_view.py"
_COLUMNS = "txntable/segments/segment_columns.py"
_SNAPSHOT = "txntable/snapshot/snapshot.py"
_READER = "txntable/snapshot/topic_reader.py"
_FILES = "txntable/segments/segment_reader.py"

PARTITION_MUTANTS = (
    Mutant(
        "no-marker-without-data",
        "a marker is written only where the transaction has data, not to every enrolled partition",
        "5.3",
        (
            Edit(
                _MARKERS,
                "for partition in sorted(one.partitions)}",
                "for partition in sorted(p for p in one.partitions if (str(p), str(one.producer_id), str(one.ends)) in "
                "{(str(s.partition), str(one.producer_id), str(one.ends)) for s in one.segments} | "
                "{tuple(f.partition_values[n] for n in ('_partition', '_producer_id', '_producer_epoch')) "
                "for f in self._table.files})}",
            ),
        ),
        Killer("bank", 1),
    ),
    Mutant(
        "one-marker-for-many-decisions",
        "of several decisions that a topic is owed only the first is written, and it counts as through with all",
        "6.4",
        (
            Edit(
                _MARKERS,
                "    owed = still_owed(logs, table, topic_id, decided)\n",
                "    owed = still_owed(logs, table, topic_id, decided)[:1]\n",
            ),
        ),
        Killer("bank", 3),
    ),
    Mutant(
        "marker-written-again",
        "a marker is written though the topic is through with its decision",
        "6.4",
        (
            Edit(
                _MARKERS,
                "    owed = still_owed(logs, table, topic_id, decided)\n",
                "    owed = sorted(decided, key=lambda one: one.position)\n",
            ),
        ),
        Killer("bank", 1),
    ),
    Mutant(
        "decided-through-runs-ahead",
        "a topic says that it is through with one decision more than was known",
        "5.1, 6.4",
        (Edit(_MARKERS, "self._topic_id), known_through)]\n", "self._topic_id), known_through + 1)]\n"),),
        Killer("answers", 0),
    ),
    Mutant(
        "carried-segments-appended-again",
        "whether a decision is owed goes by its marker's row, and not by `decided_through`",
        "6.4",
        (
            Edit(
                _MARKERS,
                "(one for one in decided if one.position > through)",
                "(one for one in decided if (one.producer_id, one.ends) not in logs.markers)",
            ),
        ),
        Killer("compaction", 348, 900),
    ),
    Mutant(
        "carried-segments-left-out",
        "a completer writes the markers of decisions, and appends nothing that they carry",
        "6.4",
        (Edit(_MARKERS, "        for segment in one.segments:\n", "        for segment in one.segments[:0]:\n"),),
        Killer("bank", 3),
    ),
    Mutant(
        "carried-segments-share-offsets",
        "a segment that a decision carries takes one offset less than it has records",
        "6.4",
        (
            Edit(
                _MARKERS,
                "self._take_offsets(segment.partition, segment.records)",
                "self._take_offsets(segment.partition, segment.records - 1)",
            ),
        ),
        Killer("bank", 1),
    ),
    Mutant(
        "next-offset-from-live-rows",
        "the next offset is one above what the live rows take",
        "5.1",
        (
            Edit(
                _APPEND,
                "        return self._next.get(partition, next_offset(self._table.numbers, "
                "self._request.topic_id, partition))\n",
                "        taken = [\n"
                "            int(a.partition_values['_last_offset'] or '')\n"
                "            for a in self._table.files\n"
                "            if a.partition_values['_partition'] == str(partition) and "
                "a.partition_values['_last_offset']\n"
                "        ]\n"
                "        taken += [m.offsets[partition] for m in self._logs.markers.values() if "
                "partition in m.offsets]\n"
                "        return self._next.get(partition, max(taken, default=-1) + 1)\n",
            ),
        ),
        Killer("compaction", 7),
    ),
    Mutant(
        "repeated-append-taken-again",
        "segments that are registered already are registered once more",
        "5.4",
        (
            Edit(
                _APPEND,
                "        if add is not None and (producer is None",
                "        if False and add is not None and (producer is None",
            ),
            Edit(_PRODUCER, "                return known\n", "                return None\n"),
        ),
        Killer("cut-off", 10),
    ),
    Mutant(
        "other-content-taken-for-a-duplicate",
        "a batch with the sequence numbers of another is answered with that one's offsets, whatever is in it",
        "5.4",
        (Edit(_PRODUCER, "                if known.name == batch.name:\n", "                if known.name:\n"),),
        Killer("doubles", 4),
    ),
    Mutant(
        "digest-not-checked",
        "a reader takes a file of the right size for the one that the log names",
        "5.2, 10",
        (Edit(_FILES, "    check_digest(segment.digest, digest_of(data))\n", ""),),
        Killer("replacing", 0),
    ),
    Mutant(
        "zombies-append-taken",
        "neither the transaction log nor the partition refuses an append of an older epoch",
        "5.4, 6.3 append",
        (
            Edit("coordinator/verification.py", "    if epoch != owned.producer_epoch:\n", "    if epoch < 0:\n"),
            Edit(_PRODUCER, "    if batch.epoch < entry.epoch:\n", "    if batch.epoch < 0:\n"),
        ),
        Killer("zombies", 2),
    ),
    Mutant(
        "tombstoned-name-registered",
        "an append may name a file that vacuum has tombstoned",
        "5.7",
        (
            Edit(
                "txntable/partition/tombstoning.py",
                "    return segment.path not in table.tombstones and now_ms",
                "    return now_ms",
            ),
        ),
        Killer("uploads", 0),
    ),
    Mutant(
        "mapping-not-checked",
        "records stay in the partitions that their keys had before the topic got more of them",
        "5.2",
        (Edit(_APPEND, "        _check_mapping(self._settings, segment)\n", ""),),
        Killer("onlookers", 49),
    ),
    Mutant(
        "stable-offset-at-the-high-watermark",
        "an open transaction does not hold the last stable offset back",
        "5.6",
        (
            Edit(
                "txntable/partition/stable_offset.py",
                "    stable = high_watermark(table, topic_id, partition) if unstable is None else unstable\n",
                "    stable = high_watermark(table, topic_id, partition)\n",
            ),
        ),
        Killer("bank", 47),
    ),
    Mutant(
        "stable-offset-of-the-latest",
        "the latest open transaction holds the last stable offset back instead of the earliest",
        "5.6",
        (
            Edit(
                "txntable/partition/unstable_offsets.py",
                "return None if starts is None else starts[0][0]",
                "return None if starts is None else starts[-1][0]",
            ),
        ),
        Killer("followers", 3),
    ),
    Mutant(
        "aborted-projected",
        "the public table shows what was aborted",
        "5.6, 7",
        (
            Edit(
                _PROJECTION,
                "    return None if marker is None or marker.control is not Control.COMMIT else marker.position\n",
                "    return None if marker is None else marker.position\n",
            ),
        ),
        Killer("bank", 1),
    ),
    Mutant(
        "undecided-projected",
        "the public table shows what the topic has no marker of: it is made from what the transaction log may say",
        "7",
        (
            Edit(
                _PROJECTION,
                "    return None if marker is None or marker.control is not Control.COMMIT else marker.position\n",
                "    return 0 if marker is None else None if marker.control is not Control.COMMIT "
                "else marker.position\n",
            ),
        ),
        Killer("bank", 6),
    ),
    Mutant(
        "projection-past-the-unprojected",
        "a projection shows what the last entry has changed, and says that it reflects all of them",
        "7",
        (Edit(_PROJECTION, "logs.touched_since(reflected)", "logs.touched_since(version - 1)"),),
        Killer("bank", 11),
    ),
    Mutant(
        "projection-out-of-order",
        "an older state is projected over a newer one",
        "7",
        (Edit(_PROJECTION, "reflected >= version:", "reflected == version:"),),
        Killer("bank", 11),
    ),
    Mutant(
        "merged-rows-as-new-data",
        "the public table says of merged segments that their records are new",
        "7",
        (Edit(_PROJECTION, "is_new = batch.decided is None", "is_new = True"),),
        Killer("onlookers", 17),
    ),
    Mutant(
        "producer-state-forgotten",
        "who removes rows does not carry over what the partition knows of their producers",
        "5.5",
        (
            Edit(
                _REMOVAL,
                "        *(state_add(entry, now_ms) for entry in state_entries(logs, table, touched, "
                "removal.cleaned)),\n",
                "",
            ),
        ),
        Killer("compaction", 4),
    ),
    Mutant(
        "marker-removed-while-a-row-waits",
        "a marker goes while a row of its transaction has no other decision",
        "5.8 markers",
        (
            Edit(
                _REMOVAL,
                "    needed = set(waiting_rows(table.files.untouched_base(), leaving))\n"
                "    needed.update(waiting_rows(table.files.tail_table(), leaving))\n",
                "    needed = set(waiting_rows(table.files.untouched_base(), leaving))\n",
            ),
        ),
        Killer("compaction", 2),
    ),
    Mutant(
        "reader-passes-the-stable-offset",
        "who reads what is committed reads to the high watermark",
        "10",
        (Edit(_VIEW, "stable if position is None else highest, stable, highest)", "highest, stable, highest)"),),
        Killer("followers", 0),
    ),
    Mutant(
        "snapshot-below-its-position",
        "a snapshot lacks what was decided at its position",
        "10",
        (Edit(_COLUMNS, "np.flatnonzero(self.commit <= position)", "np.flatnonzero(self.commit < position)"),),
        Killer("bank", 7),
    ),
    Mutant(
        "published-position-at-the-head",
        "who may not complete reads up to the head, past what is decided and not published",
        "10",
        (
            Edit(
                _SNAPSHOT,
                "    return min([head, *(position - 1 for position in waiting)])\n",
                "    return max([head, *(position - 1 for position in waiting)])\n",
            ),
        ),
        Killer("strangers", 1),
    ),
    Mutant(
        "pruned-by-the-number-of-records",
        "a segment is passed over by its number of records instead of its last offset",
        "10",
        (
            Edit(
                _COLUMNS,
                "        from_row = first + int(np.searchsorted(self.last_offset[first:stop], start))\n",
                "        records = self.files['records'].take(pa.array(self.row[first:stop])).fill_null(1).to_numpy()\n"
                "        from_row = first + int(np.searchsorted(self.base_offset[first:stop] + records - 1, start))\n",
            ),
        ),
        Killer("resumed", 0),
    ),
    Mutant(
        "merged-past-not-refused",
        "for a version that is cleaned up the oldest that is left is read, though later ones were merged into it",
        "10 the past",
        (
            # The first version that shows a decision is older than every merge across it: as long as it is there.
            Edit(_READER, "        if view.merged_through > position:\n", "        if view.merged_through < 0:\n"),
            Edit(
                "txntable/log/time_travel.py",
                "    if lowest and not seen_below and store.head(",
                "    if lowest < 0 and store.head(",
            ),
        ),
        Killer("bygone", 10),
    ),
    Mutant(
        "vacuumed-past-not-refused",
        "a version is read of which vacuum may have taken files, and a file that is gone then is told of as damage",
        "10 the past",
        (
            Edit(
                _READER,
                "        if any(removed is None or removed.deletion_ms < horizon_ms for removed in gone):\n",
                "        if any(removed is not None and horizon_ms < 0 for removed in gone):\n",
            ),
            Edit(
                _READER,
                '            return OffsetOutOfRangeError(\n                "a file of that time is',
                '            return None and OffsetOutOfRangeError(\n                "a file of that time is',
            ),
        ),
        Killer("bygone", 1),
    ),
)

"""What can be wrong with a warehouse on storage, and how each kind of damage is repaired.

Owns the kinds of damage, their names and the remedies, for people.  How they are found is the neighbours' matter.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from txntable.format.layout import OFFSET_LOG_ROOT, TOPICS_FOLDER, TRANSACTION_LOG_ROOT

Progress = Callable[[str], None]
"""Takes what is being done, in words for people; who shows it decides how often."""


class DamageKind(Enum):
    """A kind of damage; its value is its name for people and programs."""

    IDENTITY = "identity of another warehouse"
    LOG_MISSING = "log missing"
    LOG_COVERED = "log of an earlier topic missing"
    LOG_BEGINNING = "beginning of a log missing"
    ENTRY_MISSING = "entry missing"
    ENTRY_UNREADABLE = "entry unreadable"
    LOG_END = "end of a log missing"
    CHAIN = "chain broken"
    CHECKPOINT = "checkpoint differs"
    FOREIGN_CHECKPOINT = "checkpoint of other software"
    CHECKPOINT_MISSING = "checkpoint missing"
    FOREIGN_LOG_FILE = "log file of other software"
    GUARD = "table not guarded"
    ROW = "row contradicts itself"
    NUMBER = "number went back"
    TRANSITION = "illegal transition"
    OFFSETS = "offsets do not follow"
    SEQUENCE = "sequence does not follow"
    MARKER = "marker without decision"
    MARKER_MISSING = "decision without marker"
    CARRIED = "carried segment not appended"
    INCOMPLETE = "complete, and work is owed"
    HANGING = "hanging transaction"
    PUBLICATION = "end of a public table missing"
    FOREIGN_END = "entry of another log at the end of a public table"
    PROJECTION = "public table differs"
    PROJECTION_OR_LOG = "public table or its source differs"
    COMMITTED_OFFSET = "offset without decision"
    PENDING_OFFSET = "offset never settled"
    SEGMENT_MISSING = "segment missing"
    SEGMENT_REPLACED = "segment replaced"
    SEGMENT_CONTENT = "segment unreadable"
    OLDER_SEGMENT = "segment of older versions lost or replaced"
    SEGMENT_ROW = "row differs from its segment"
    BOUND = "bound excludes records"
    CONSTANT_FILE = "constant file differs"
    UNKNOWN_DIGEST = "digest unknown"
    NOT_ALLOWED = "not allowed to read"


_RESTORE_LOG = (
    "stop every writer, and restore what is at this path, and nothing else, from an older version of it or the newest"
    " backup that has it; then verify again. Where that finds nothing, writers go on, and nothing more is to be done."
    " Only where nothing has it, restore the whole warehouse from the newest backup that verifies, and then run"
    " `txntable warehouse fence-all --execute` before anybody writes"
)
_MAKE_AGAIN = (
    "delete that log whole while nobody reads or writes: whoever uses the topic next, or `txntable transactions run"
    " --once`, makes it again, without its history, and streams over it begin anew"
)
_RESTORE_PUBLIC = (
    "restore this object from a backup. Without one no record is lost where nothing is said of the topic's `_segments`:"
    " then "
) + _MAKE_AGAIN
_RESTORE_SEGMENT_LOG = (
    "stop every writer, and restore this log, and nothing else, from an older version of it or the newest backup that"
    " has it; then verify again, and do what that says. Delete nothing of the topic's public table: where that is"
    " there, it still names the committed records. Only where nothing has the log: copy them from there into a new"
    " topic with any Delta reader, and let producers and readers go on there. `txntable transactions run --once"
    " --give-up TOPIC` completes transactions without the lost one. Where the loss is accepted, nothing more is to be"
    " done: this stays until the ids that decided have had another transaction, and the transaction log's entries of"
    " then are cleaned up, after `vacuum_retention_ms`"
)
_IN_PUBLIC_LOG = re.compile(rf"{TOPICS_FOLDER}/[^/]+/_delta_log/")
_SEGMENT_LOG = re.compile(rf"{TOPICS_FOLDER}/[^/]+/_segments")
_OF_AN_ENTRY = (
    *(DamageKind.LOG_BEGINNING, DamageKind.ENTRY_MISSING, DamageKind.ENTRY_UNREADABLE, DamageKind.CHAIN),
    *(DamageKind.GUARD, DamageKind.ROW, DamageKind.NUMBER),
)
_RESTORE_ALL = (
    "compare what is at this path with the newest backup that has it. Where it differs and was not written since the"
    " backup, restore it alone, and verify again. A log entry that was written since must not be replaced: what stood"
    " in its place is lost, and is to be written again, as far as the public table does not show it. Where it is the"
    " same, stop every writer, copy from the public tables what was committed since the newest backup that verifies,"
    " and restore the whole warehouse from that; then run `txntable warehouse fence-all --execute`"
)
_BELOW_CHECKPOINT = (
    "nobody needs to stop: readers and writers begin at the checkpoint of version {version}, which was read, and lose"
    " nothing. Restore this object from the newest backup that has it, for reads and streams of older versions and for"
    " `verify`; without a backup leave it: cleanup takes it away in its time"
)
_RESTORE_FILE = (
    "restore this file from a backup: the problem names the bytes and the digest of the right one, which `sha256sum`"
    " prints. Without a backup, stop `txntable vacuum`: where compaction made the file, a snapshot of a time before may"
    " still have its records, which infra/RUNBOOK.md brings back (A lost bucket, a lost object: a segment). Else they"
    " are lost, and readers stop there. They may seek beyond them; `txntable topics delete-records` moves the log start"
    " there for all, and deletes every record below, which can be read: copy those first"
)
_RESTORE_END = (
    "stop every writer now: what they write takes the place of what is lost. Restore the newest entries of this log,"
    " and nothing else, from a backup, and verify again. "
)
_NO_MORE = "where others have written in their place since, do not put the lost ones back: readers would stop there"
_RESTORE_END_OF_OFFSETS = (
    f"{_RESTORE_END}But {_NO_MORE}. Then, or without a backup, groups stand where they stood before, and would"
    " process again what their transactions have committed: let `txntable warehouse fence-all --execute` take the log"
    " as it is (note these groups before: nothing names them any more), and set their offsets with `txntable groups"
    " reset-offsets` before consumers go on. Which these were stands nowhere else: see in the"
    " topics that the transactions wrote to how far their sources were processed"
)
_OF_ONE_LOG: Mapping[tuple[DamageKind, str], str] = {
    (DamageKind.LOG_END, TRANSACTION_LOG_ROOT): f"{_RESTORE_END}But {_NO_MORE}. Then, or without a backup: copy the"
    " records that were committed since the newest backup from the public tables, restore the whole warehouse from the"
    " newest backup that verifies, and run `txntable warehouse fence-all --execute` before anybody writes",
    (DamageKind.LOG_END, OFFSET_LOG_ROOT): _RESTORE_END_OF_OFFSETS,
    (DamageKind.INCOMPLETE, OFFSET_LOG_ROOT): _RESTORE_END_OF_OFFSETS,
}
REMEDIES: Mapping[DamageKind, str] = {
    DamageKind.IDENTITY: "restore this object alone, from any backup or an older version of it: it never changes. Where"
    " all of them say the same as this one, the two logs are another warehouse's: restore those",
    DamageKind.LOG_MISSING: _RESTORE_LOG,
    DamageKind.LOG_COVERED: "where a backup has the earlier topic, and it is wanted: stop every writer, copy the"
    " records that the topic has now into another one, and restore the earlier one in its place. Where the loss is"
    " accepted, nothing is to be done: this stays until the id that decided has had another transaction, and the"
    " transaction log's entries of then are cleaned up, after `vacuum_retention_ms`",
    DamageKind.LOG_BEGINNING: _RESTORE_LOG,
    DamageKind.ENTRY_MISSING: _RESTORE_LOG,
    DamageKind.ENTRY_UNREADABLE: _RESTORE_LOG,
    DamageKind.LOG_END: "stop every writer now: what they append takes the place of what is lost. Restore the newest"
    " entries of this log from a backup. Do not delete the public table: only it still names these records; without a"
    " backup, copy them from there into a new topic with any Delta reader",
    DamageKind.CHAIN: "the entry below, or this one, was changed or replaced: "
    + _RESTORE_LOG
    + ". Where an entry was lost, and another one written in its place since, the older one is right: keep a copy of"
    " the other one, what it tells of is lost with it and is to be written again",
    DamageKind.CHECKPOINT: "delete this checkpoint, and `_last_checkpoint` beside it if it names this version: as"
    " long as the entries below are there, readers start further down, and the next commit or `txntable transactions"
    " run --once` writes another",
    DamageKind.FOREIGN_CHECKPOINT: "delete this checkpoint, and `_last_checkpoint` beside it if it names this version,"
    " and see that what made it may no longer write here: our readers pass it over, and other engines begin with it;"
    " the entries have everything that it can have",
    DamageKind.FOREIGN_LOG_FILE: "delete this file, and see that what made it may no longer write here: our readers"
    " pass it over, and other engines read it in place of entries, or compare with it what they read; the entries have"
    " everything that it can have",
    DamageKind.CHECKPOINT_MISSING: "delete this `_last_checkpoint`: our readers do without the checkpoint, but other"
    " engines refuse a table whose `_last_checkpoint` leads nowhere; the next checkpoint writes another",
    DamageKind.GUARD: _RESTORE_ALL,
    DamageKind.ROW: _RESTORE_ALL,
    DamageKind.NUMBER: _RESTORE_ALL,
    DamageKind.TRANSITION: _RESTORE_ALL,
    DamageKind.OFFSETS: _RESTORE_ALL,
    DamageKind.SEQUENCE: "records of this producer may be there twice, or be missing: compare them with their source; "
    + _RESTORE_ALL,
    DamageKind.MARKER: "where the transaction log has lost entries, and others have gone on in their place, this"
    " stays of them as long as entries of then are kept: leave it so, the records are right, and look there before a"
    " batch is done again. Else " + _RESTORE_ALL,
    DamageKind.MARKER_MISSING: "the partition log has lost the entries that had what was decided, or the topic is an"
    " older copy. Where nobody has written to it since, restore its newest entries from a backup. Else replace nothing:"
    " what was decided at this position is to be written again, as far as the public table does not show it",
    DamageKind.CARRIED: _RESTORE_ALL,
    DamageKind.INCOMPLETE: _RESTORE_ALL,
    DamageKind.HANGING: "where another row names this topic, or the transaction log, repair that first. Else see it"
    " with `txntable transactions find-hanging --max-transaction-timeout 0`, and end it with the command that `txntable"
    " status` shows",
    DamageKind.PUBLICATION: "no record is lost. Restore the newest entries of this log from a backup; or run `txntable"
    " transactions run --once`, which publishes again, and let streams over the table begin anew",
    DamageKind.FOREIGN_END: "no record is lost, and our readers pass it over; but other engines show what it says,"
    " or fail, until something is committed above it: run `txntable transactions run --once`, which does that, and see"
    " that what put it there may no longer write here",
    DamageKind.PROJECTION: "restore the log of the public table; or " + _MAKE_AGAIN,
    DamageKind.PROJECTION_OR_LOG: "delete nothing of the public table: it may be the one that is right, and the last"
    " that names committed records. Repair what is said of the topic's `_segments` first, and verify again. Where"
    " nothing is said of it, or nothing has what it lost, compare the records: copy those that only the public table"
    " shows to a new topic, with any Delta reader. Not before that may the public table's `_delta_log` be deleted, to"
    " be made again",
    DamageKind.COMMITTED_OFFSET: "set the group's offsets with `txntable groups reset-offsets`",
    DamageKind.PENDING_OFFSET: "delete the group's offsets of the topic with `txntable groups delete-offsets`, which"
    " takes away what is pending, and set them with `txntable groups reset-offsets`",
    DamageKind.SEGMENT_MISSING: _RESTORE_FILE,
    DamageKind.SEGMENT_REPLACED: _RESTORE_FILE,
    DamageKind.SEGMENT_CONTENT: "the file is as it was written, and cannot be read: send its records again, and move"
    " the log start beyond it with `txntable topics delete-records`",
    DamageKind.OLDER_SEGMENT: "nobody needs to stop: the newest version does without this file. Restore it from a"
    " backup, for reads and streams of the versions before it was taken away, and to bring back what was deleted by"
    " mistake, of which nothing else may be left: the problem names the bytes and the digest of the right one, which"
    " `sha256sum` prints. Without a backup these reads stop there, and where nobody needs them nothing more is to be"
    " done: this stays until `vacuum_retention_ms` is over. Nothing is to be done either where `txntable erase --purge`"
    " has deleted the file, and could not shorten the log yet",
    DamageKind.SEGMENT_ROW: "records are complete, but searches by time or count may be wrong until `txntable compact`"
    " has merged the segment",
    DamageKind.BOUND: "queries with a filter may miss records until `txntable compact` has merged the segment: read"
    " without a filter on this column until then",
    DamageKind.CONSTANT_FILE: "put the constant file of PROTOCOL.md §3.3 there again: its 179 bytes never differ",
    DamageKind.UNKNOWN_DIGEST: "verify with the version of txntable that wrote the segment",
    DamageKind.NOT_ALLOWED: "nothing is known of this topic: give who verifies the right that the problem names, and"
    " verify again",
}


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is not as PROTOCOL.md has it.

    Attributes
    ----------
    kind : DamageKind
        Which kind.
    path : str
        Of the object that is damaged, or whose row is; relative to the warehouse's root.
    problem : str
        What is wrong with it.
    read_on_from : int or None
        Of an entry: the version of the checkpoint above it from which the log was read on; ``None``: it was not.
    follows : str or None
        The path of another damage that this one may come from; ``None``: of none.
    """

    kind: DamageKind
    path: str
    problem: str
    read_on_from: int | None = None
    follows: str | None = None

    @property
    def remedy(self) -> str:
        """What to do about it."""
        if self.follows is not None:
            return f"nothing yet: it may come of what is said of `{self.follows}`; repair that first, and verify again"
        if self.read_on_from is not None:
            return _BELOW_CHECKPOINT.format(version=self.read_on_from)
        if (remedy := _OF_ONE_LOG.get((self.kind, self.path))) is not None:
            return remedy
        if self.kind is DamageKind.LOG_MISSING and _SEGMENT_LOG.fullmatch(self.path):
            return _RESTORE_SEGMENT_LOG
        is_made_again = self.kind in _OF_AN_ENTRY and _IN_PUBLIC_LOG.match(self.path)
        return _RESTORE_PUBLIC if is_made_again else REMEDIES[self.kind]


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verification has read, and found.

    Attributes
    ----------
    logs, entries, checkpoints : int
        How many were read.
    segments, bytes : int
        How many segments, and how large they are together.
    damages : tuple of Damage
        Empty: everything that can be checked from outside holds.
    """

    logs: int
    entries: int
    checkpoints: int
    segments: int
    bytes: int
    damages: tuple[Damage, ...]

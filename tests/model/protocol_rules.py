"""Which rules of PROTOCOL.md the models have, by their numbers, and as what; and which they leave to other tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Covered:
    """A rule of PROTOCOL.md in the models.

    Attributes
    ----------
    section : str
        With the number of the rule, where it has one.
    says : str
        The rule, shortly.
    actions, invariants : tuple of str
        What stands for it: actions, and rules of actions; and what is true because of it.
    """

    section: str
    says: str
    actions: tuple[str, ...]
    invariants: tuple[str, ...] = ()


COVERED = (
    Covered(
        "4.1",
        "a reader refuses an entry that does not name the one below",
        ("an entry names the one below",),
        ("a view is of the one log",),
    ),
    Covered(
        "4.2 rule 1",
        "exactly the next slot; after an error or `exists` the slot is read; the same bytes at the same slot",
        (
            "PUT",
            "PUT, AND LOSE THE ANSWER",
            "PUT THAT LANDS LATE",
            "WAIT NO LONGER",
            "ANSWER UNKNOWN",
            "READ THE SLOT",
            "FOLLOW THE WINNER",
            "LAND LATE",
        ),
        ("a commit is in the log once", "a commit that was given up is not in the log", "offsets are dense"),
    ),
    Covered(
        "4.2 rule 2",
        "each attempt checks rule 3 again; a put that the network delivers twice does no harm",
        ("PUT THE SAME AGAIN", "a stale view is not written through", "DELIVER AGAIN"),
    ),
    Covered(
        "4.2 rule 3",
        "a view older than the guard is neither probed nor written through, and no answer to it is believed",
        ("REOPEN", "REOPEN AND LOOK", "REOPEN AND FIND THE SLOT FREE", "REOPEN, AND DO NOT KNOW", "LET A GUARD PASS"),
        ("what is believed is in the log", "a view has what was there when it was asked for"),
    ),
    Covered("4.2 rule 4", "the tail is found by asking", ("ASK FOR THE NEXT SLOT", "TAKE IT FOR THE TAIL")),
    Covered(
        "4.2 rule 14",
        "requests of several ids share an entry, each decided as if it were alone; those of one id do not",
        ("INIT TOGETHER", "COMMIT TOGETHER", "two requests of one id share no entry"),
        ("an epoch is given once, and never falls", "all or none of a transaction is visible"),
    ),
    Covered(
        "4.3",
        "what a reader from version 0 started from must still be there after the tail was read",
        ("what it was started from is still there", "what it was started from was not created again"),
        ("a view has what was there when it was asked for",),
    ),
    Covered("4.4", "tombstones are kept for a time", ("FORGET THE TOMBSTONE",), ("a name is registered once",)),
    Covered(
        "4.5",
        "cleanup, oldest first",
        ("CLEAN UP", "CLEAN UP WHAT WAS CREATED AGAIN", "entries are kept for many guards"),
    ),
    Covered(
        "5.1", "named numbers are never derived from live files", ("APPEND", "WRITE MARKERS"), ("offsets are dense",)
    ),
    Covered(
        "5.3",
        "a marker goes to every enrolled partition, with or without data; ends one epoch, raises the producer's",
        ("WRITE MARKERS", "FIND IT MARKED"),
        ("no data of an epoch above its marker", "a transaction ends once in a topic"),
    ),
    Covered(
        "5.4",
        "an append of an older epoch is refused; what is there already is answered",
        ("an older epoch is refused", "a live name is answered and not added again"),
        ("no data of an epoch above its marker", "a name is registered once"),
    ),
    Covered(
        "5.4",
        "sequences of an epoch are 0, 1, and so on, whether an append or a decision brings them",
        ("APPEND", "WRITE MARKERS", "LAND AN APPEND LATE", "a late put: exactly its slot"),
        ("sequences have no gap",),
    ),
    Covered("5.5", "producers expire", ("EXPIRE PRODUCERS",), ("no data of an epoch above its marker",)),
    Covered(
        "5.6",
        "last stable offset, visibility",
        ("PROJECT", "READ TO THE LAST STABLE OFFSET"),
        (
            "the last stable offset never falls",
            "the last stable offset never passes open data",
            "only committed data are visible",
            "everything is stable",
        ),
    ),
    Covered(
        "5.7",
        "tombstoned names, vacuum",
        ("CHOOSE FOR VACUUM", "TOMBSTONE", "JUDGE", "DELETE", "a name with a tombstone is refused"),
        ("a live name has its file", "a public name has its file", "a live name is not tombstoned"),
    ),
    Covered(
        "5.7",
        "vacuum reads T, then S; it spares what may still be appended, and what a decision may carry, by its epoch",
        (
            "READ T FOR VACUUM",
            "TOMBSTONE AN UPLOAD",
            "DELETE AN UPLOAD",
            "an upload of an epoch that may still append is spared",
            "an upload that a decision may carry is spared",
        ),
        ("what is carried or live has its file", "an upload that nothing can name is deleted"),
    ),
    Covered(
        "6.2",
        "the states; a (producer id, epoch) names one transaction",
        ("INIT", "DECIDE COMMIT", "DECIDE ABORT", "LEARN THAT IT IS FENCED"),
        (
            "a transaction has one decision",
            "an epoch is given once, and never falls",
            "a zombie decides nothing",
        ),
    ),
    Covered(
        "6.3", "init: a decided one is completed first, an open one aborted", ("INIT",), ("data that nothing will end",)
    ),
    Covered("6.3", "enrol: before the first append to each partition", ("ENROL",), ("data that nothing will end",)),
    Covered(
        "6.3",
        "append: T is read after the state of S that is decided on: ONGOING, this epoch, enrolled",
        ("READ THE LOG", "READ T", "APPEND", "FIND THAT IT IS NOT ENROLLED", "LOSE THE SLOT OF THE LOG"),
        ("no data of an epoch above its marker", "data that nothing will end"),
    ),
    Covered("6.3", "send offsets: as an append, to O", ("APPEND",), ("offsets are committed iff the outputs are",)),
    Covered("6.3", "decide: this put is the transaction", ("DECIDE COMMIT",), ("a transaction has one decision",)),
    Covered(
        "6.3",
        "a commit may carry segments that no log names, also where nothing was enrolled; an abort carries none",
        (
            "UPLOAD",
            "DECIDE COMMIT",
            "DECIDE ABORT",
            "GIVE UP AN APPEND",
            "only an open transaction is decided",
            "after an append in doubt only an abort follows",
        ),
        ("a carried segment is appended once, with its marker", "what is only carried holds back nothing"),
    ),
    Covered(
        "6.3",
        "a decision of unknown outcome is asked for again, or followed by an abort in T, though nothing was enrolled",
        (
            "GIVE UP A COMMIT",
            "LAND A COMMIT LATE",
            "ABORT IN THE CLIENT",
            "a late commit: exactly its slot",
            "a commit in doubt is followed by an abort in T",
        ),
        ("what was told to be aborted is not committed",),
    ),
    Covered(
        "6.3",
        "complete: by anyone",
        ("LOOK AT T", "COMPLETE", "FIND IT COMPLETE"),
        ("everything decided is complete", "all or none of a transaction is visible"),
    ),
    Covered(
        "6.4",
        "what decisions carry, and owed markers, in one commit, through h; projection; settling also where none is"
        " pending; then COMPLETE",
        ("WRITE MARKERS", "only above decided_through", "settled also where none is pending", "GO ON TO COMPLETE"),
        (
            "a carried segment is appended once, with its marker",
            "all or none of a transaction is visible",
            "a transaction ends once in a topic",
            "data that nothing will end",
        ),
    ),
    Covered(
        "6.4",
        "a decision at D is known complete to who has seen P of each enrolled topic at D or beyond, so that S has what"
        " it owes and P shows it, and, with groups, O; it never becomes false",
        (
            "SEE THAT IT IS COMPLETE",
            "replaced only when S has what it owes",
            "replaced only when P shows it",
            "replaced only when the offsets are settled",
        ),
        (
            "who is complete, or went on, is owed nothing",
            "all or none of a transaction is visible",
            "data that nothing will end",
            "offsets are committed iff the outputs are",
        ),
    ),
    Covered(
        "6.4",
        "what is known is of exactly the decision at D: the id's next entry is decided on that row as COMPLETE would"
        " leave it; to everybody else it is decided, and not complete",
        (
            "INIT",
            "ENROL",
            "DECIDE COMMIT",
            "DECIDE ABORT",
            "a decided transaction is completed first",
            "what is known is of this very decision",
        ),
        ("who is complete, or went on, is owed nothing", "a carried segment is appended once, with its marker"),
    ),
    Covered(
        "6.4",
        "COMPLETE may be left to the id's next entry; a late one is decided on the row at the slot, and writes nothing"
        " where that is not at D any more",
        ("COMPLETE", "WRITE NO COMPLETE", "FIND IT COMPLETE", "completion: exactly the next slot"),
        (
            "who is complete, or went on, is owed nothing",
            "an epoch is given once, and never falls",
            "data that nothing will end",
        ),
    ),
    Covered(
        "6.5", "writers that keep §6.3 leave no hanging transaction", ("TIME OUT",), ("data that nothing will end",)
    ),
    Covered("6.6", "only ONGOING times out", ("TIME OUT", "only ONGOING times out"), ("everything is stable",)),
    Covered(
        "7",
        "P at a commit that reflects s holds exactly what is visible in s; reflects only rises",
        ("PROJECT", "FIND IT PUBLISHED", "reflects only rises"),
        ("P is exactly what S shows", "what was published stays"),
    ),
    Covered(
        "8.1",
        "settling; the latest request counts",
        ("SETTLE", "FIND IT SETTLED"),
        ("offsets are committed iff the outputs are", "the latest request counts"),
    ),
    Covered(
        "10",
        "the published position; who sees a decided row looks at P; a reader does not pass the last stable offset",
        (
            "TAKE THE PUBLISHED POSITION",
            "TAKE THE NEWEST POSITION",
            "OPEN A PUBLIC TABLE",
            "a snapshot opens no table that is behind its position",
            "a reader does not pass the last stable offset",
        ),
        ("a snapshot has all of each transaction", "all or none of a transaction is visible"),
    ),
    Covered("11", "a process may stop anywhere", ("CRASH",), ("everything is stable",)),
)

NOT_MODELLED = {
    "4.3": "reading from a checkpoint, whose entry is the start then: tests/unit/log; the models reopen at once",
    "4.2 rule 5": "the guard against other software: tests of independent Delta writers",
    "4.2 rule 6": "the probe: tests of the storage interface",
    "4.2 rule 7": "checkpoints: tests/unit/log; a model's view is opened whole",
    "4.2 rule 8": "damage: tests of hostile logs and files",
    "4.2 rule 9": "fairness: tests/unit/log/test_fairness.py",
    "4.2 rule 10": "durability: tests of simulated disks",
    "4.2 rule 11": "time: ages are ticks here, that all processes see alike",
    "4.2 rule 12": "what a reader refuses: entries mean something here; tests/unit/log/test_proved_entry.py",
    "4.2 rule 13": "a store that is replaced: the world *vanishing*",
    "5.4": "answers to appends that were taken: tests/unit/coordinator, tests/simulation",
    "5.7": "how old an upload is that a decision carries: tests/unit/coordinator; no age keeps one in the models",
    "5.8": "compaction: tests/simulation",
    "6.1": "the size and the form of a manifest: tests/unit/coordinator, tests/conformance",
    "6.4": "what counts as done of a topic that was deleted or made again: tests/simulation",
    "6.6": "the EXPIRE of ids: tests/unit/coordinator/test_transaction_upkeep.py",
    "6.3": "two-phase commit, batch ids, what S refuses before a decision: tests/unit/coordinator, tests/simulation",
    "8.1": "ranges that were read, removal, expiry of offsets: tests/unit/coordinator",
}

"""The anomalies that the checker finds: their numbers, where they come from, and the rule of each.

Sources: J Jepsen's checker of Kafka, R Redpanda's chaos suite, K Kafka's own system tests, S the suites of SlateDB and
S2, T Kafka's TLA+ model, N new here.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.checker import logs, offsets, polls, reads, transactions, writes
from tests.checker.history_index import Rule


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One kind of anomaly.

    Attributes
    ----------
    number : int
        In all reports.
    name : str
        Short.
    sources : str
        Letters, as the module says.
    definition : str
        One sentence in the words of the protocol.
    rule : Rule
        Finds it.
    violation : bool
        False: reported, and no fault.
    """

    number: int
    name: str
    sources: str
    definition: str
    rule: Rule
    violation: bool = True


ANOMALIES: tuple[Anomaly, ...] = (
    Anomaly(
        1,
        "inconsistent offsets",
        "J",
        "Two values were acknowledged or read at one offset of a partition.",
        writes.inconsistent_offsets,
    ),
    Anomaly(2, "duplicate", "J", "One value was acknowledged or read at two offsets.", writes.duplicates),
    Anomaly(
        3,
        "lost write",
        "J",
        "A read's bounds pass a record that is committed, and no reader ever saw it.",
        writes.lost_writes,
    ),
    Anomaly(
        4,
        "unseen write",
        "J",
        "The last look ends below a committed record, or lacks one of which nobody knows the offset.",
        writes.unseen,
    ),
    Anomaly(
        5,
        "aborted read (G1a)",
        "J, R",
        "A reader of committed records saw one whose transaction was aborted or never decided, or that nobody wrote.",
        reads.aborted_reads,
    ),
    Anomaly(
        6,
        "early read",
        "J, N",
        "A record was read as committed by its own transaction, or before anybody had asked for the commit.",
        reads.early_reads,
    ),
    Anomaly(
        7,
        "partial visibility (G1b)",
        "N",
        "A read shows some records of a transaction and not others inside its bounds; a snapshot, anything but exactly "
        "what is decided at or below its position.",
        reads.partial_visibility,
    ),
    Anomaly(
        8,
        "circular reads (G1c)",
        "J",
        "Committed transactions have each read what the next one wrote, in a circle.",
        transactions.read_cycles,
    ),
    Anomaly(
        9,
        "circular writes (G0)",
        "J",
        "Committed transactions stand in different orders in different partitions: appended before decided.",
        transactions.write_cycles,
        violation=False,
    ),
    Anomaly(
        10,
        "skipping poll",
        "J",
        "Between two records that a consumer got one after the other there is a visible one that it did not get.",
        polls.skipping_polls,
    ),
    Anomaly(
        11,
        "nonmonotonic poll",
        "J",
        "A consumer whose position nobody moved got an offset again, or a lower one.",
        polls.nonmonotonic_polls,
    ),
    Anomaly(
        12,
        "nonmonotonic send",
        "J",
        "A producer's later record stands below an earlier one of the same partition.",
        writes.nonmonotonic_sends,
    ),
    Anomaly(
        13,
        "torn transaction",
        "J",
        "Some records of a transaction are visible and others never; or any of one that failed.",
        transactions.torn_transactions,
    ),
    Anomaly(
        14,
        "crossed transactions",
        "N",
        "A record is stored under another transaction's epoch, or ended by another one's decision (KAFKA-17754).",
        transactions.crossed_transactions,
    ),
    Anomaly(
        15,
        "wrong decision",
        "N",
        "The client was told committed and it is aborted or absent, or told aborted and it is visible.",
        transactions.wrong_decisions,
    ),
    Anomaly(
        16,
        "torn offsets",
        "N",
        "A snapshot has a transaction's group offsets without its records, or its records without the offsets.",
        offsets.torn_offsets,
    ),
    Anomaly(
        17,
        "inexact copy",
        "K",
        "Of what a group has committed as read, a copy has a record twice, not at all or out of order; or it has one "
        "above that.",
        offsets.wrong_copies,
    ),
    Anomaly(
        18,
        "zombie",
        "N",
        "A call of an older epoch was acknowledged that began after a newer one had been given out; or its record or "
        "decision stands above the newer epoch's.",
        transactions.zombies,
    ),
    Anomaly(
        19,
        "reused epoch",
        "T",
        "A producer id and epoch was given out twice, used by two transactions, or went down.",
        transactions.reused_epochs,
    ),
    Anomaly(
        20,
        "sequence gap or repetition",
        "N",
        "A producer's sequences in a partition do not follow one another, or a batch sent again got another offset.",
        writes.wrong_sequences,
    ),
    Anomaly(
        21,
        "unsafe bounds",
        "N",
        "A last stable offset is above an open transaction or the high watermark, or falls; or a record is shown "
        "outside of the bounds.",
        reads.unsafe_bounds,
    ),
    Anomaly(
        22,
        "hanging transaction",
        "N",
        "After everything was healed and fenced, a transaction is open or a last stable offset is below the high "
        "watermark.",
        logs.hanging_transactions,
    ),
    Anomaly(
        23,
        "decision conflict",
        "N",
        "A transaction has two decisions, markers that do not agree, none where it enrolled, or one where it did not.",
        transactions.decision_conflicts,
    ),
    Anomaly(
        24,
        "un-commit",
        "N",
        "A record was visible to a read, and is not to a later one whose bounds reach it.",
        reads.uncommitted_again,
    ),
    Anomaly(
        25,
        "version divergence",
        "S",
        "Two clients know different content of one version, or a version is missing between others.",
        logs.divergent_versions,
    ),
    Anomaly(
        26,
        "lost or resurrected commit",
        "S",
        "An acknowledged commit is not an ancestor of the head, or a commit took a slot freed too early.",
        logs.lost_commits,
    ),
    Anomaly(
        27,
        "double commit",
        "N",
        "One commit stands at two versions, or one segment is registered by two.",
        logs.double_commits,
    ),
    Anomaly(
        28,
        "false answer",
        "N",
        "What was refused for good is in the log, or what was acknowledged is not.",
        writes.false_answers,
    ),
    Anomaly(
        29,
        "dangling reference or leak",
        "N",
        "A live version names an object that is missing or of another size; or one that nobody names stays too long.",
        logs.dangling_files,
    ),
    Anomaly(
        30,
        "stale read",
        "N",
        "A read began after a commit was acknowledged, does not show it, and no open transaction holds it back.",
        reads.stale_reads,
    ),
    Anomaly(31, "wrong sum", "R, S", "The sum of all accounts changes in a snapshot.", reads.wrong_sums),
    Anomaly(
        32,
        "wrong rewind",
        "J",
        "After an abort a consumer goes on below what its group has committed, or passes over what is above it.",
        polls.wrong_rewinds,
    ),
    Anomaly(
        33,
        "group offset regress",
        "N",
        "A group's committed offset falls without a reset, or a member commits a partition that it has lost.",
        offsets.regressing_offsets,
    ),
    Anomaly(
        34,
        "changed by upkeep",
        "R",
        "Reads before and after maintenance differ where both reach.",
        reads.changed_by_upkeep,
    ),
)

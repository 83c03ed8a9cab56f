"""``txntable erase``: what would be erased, and with ``--execute`` erasing it; with ``--purge`` everywhere, with proof.

Parses, runs one function, prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple
from typing import Annotated

import typer

from txntable.admin.blocking_words import counted
from txntable.cli.connection import Connection, Execute, on_warehouse
from txntable.cli.output import Rows, camel_headers, tell
from txntable.cli.progress import progressing
from txntable.compaction.erasure import erase as run_erasure
from txntable.compaction.erasure_report import ErasureReport, Extent, Proof, Trace

TOPIC_HEADERS = camel_headers("topic records segments undecided uploaded files executed")
LOG_HEADERS = camel_headers("log telling deleted begins_at")
TRACE_HEADERS = camel_headers("trace left path count column")
_REMEDIES = {
    Trace.RECORD: "erase again after what is said here",
    Trace.STATISTICS: "erase again after what is said here",
    Trace.BYTES: "delete what is none of this format's; erasing again does not",
    Trace.VERSION: "delete them in the bucket, or let a lifecycle rule; erasing again does not",
    Trace.UNREAD: "delete what cannot be looked into, or restore it from a backup and erase again",
    Trace.OTHER_SOFTWARE: (
        "no log names them; delete them, or, where a refused write of Delta software left them, let `txntable vacuum "
        "--execute` take them seven days after they were written; erasing again does not"
    ),
}
"""What to do about what is left."""
LOOKED_HEADERS = camel_headers("objects bytes records as_of_ms proved") | {"as_of_ms": "AsOf"}


def erase(
    connection: Connection,
    where: Annotated[
        list[str],
        typer.Option(
            "--where",
            metavar="COLUMN=VALUE",
            help="Which records; a column inside of structs is user.id. Repeat it: of one column any of the values, of "
            "several columns all.",
        ),
    ],
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", metavar="TOPIC", help="Only this topic; may be repeated. Default: all with the columns."
        ),
    ] = None,
    execute: Execute = False,
    purge: Annotated[
        bool,
        typer.Option(
            "--purge",
            help="Older versions, files and log history that tell of them too, at once: nobody travels in time to "
            "before it any more, and slow readers fail. Takes ten minutes at least, and proves it.",
        ),
    ] = False,
) -> None:
    """Erase records by the values of columns: from the newest version, or with --purge from everything that is stored.

    A dry run until --execute. Exit code 1: something is left, with what to do; of --purge also what was found.

    Topics: Records and Segments of the newest version; Undecided records of open transactions and those Uploaded in
    files that no log names yet, which are left alone; Files of the past. Log history: entries and checkpoints Telling
    of the values, how many a purge has Deleted, and the version that the log BeginsAt since.
    """
    extent = Extent.LOOK if not execute else Extent.PURGE if purge else Extent.REWRITE
    with progressing("erase") as told:
        report = run_erasure(connection.open(), _conditions(where), topics=topic, extent=extent, tell=told)
    connection.output.report(sections_of(report))
    tell(told_of(report, purge=purge))
    failed = bool(report.failures) or (extent is not Extent.LOOK and bool(report.waiting))
    if failed or (extent is Extent.PURGE and not report.is_proved):
        tell("error: not everything was erased, or not everything could be looked at; what is printed says what to do")
        raise typer.Exit(1)


def _conditions(said: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in said:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            # The value stays unsaid: it is what somebody wants to be forgotten.
            raise typer.BadParameter("give COLUMN=VALUE", param_hint="--where")
        found.setdefault(name, []).append(value)
    return found


def told_of(report: ErasureReport, *, purge: bool) -> str:
    """Return what an erasure comes to, in one line."""
    records = counted(sum(one.records for one in report.topics), "record")
    if report.extent is Extent.PURGE:
        rest = "and proved it" if report.is_proved else "and something is left: erase again after what is said here"
        return f"erased {records}, {rest}"
    begin = "a dry run: " if report.extent is Extent.LOOK else ""
    if not (report.logs or any(sum(astuple(one)[1:]) for one in report.topics)):
        return f"{begin}nothing that is stored here has these values, which are compared exactly: is one mistyped?"
    past = sum(one.files for one in report.topics), sum(one.telling for one in report.logs)
    tell_of_them = f"{counted(past[0], 'file')} and {counted(past[1], 'log object')} of the past tell of them"
    if report.extent is Extent.LOOK:
        if purge:
            return f"{begin}{records}; {tell_of_them}: say --execute --purge to erase all of it"
        if not any(one.records for one in report.topics):
            return f"{begin}{records}; {tell_of_them}: say --execute --purge to erase these"
        return (
            f"{begin}{records}; {tell_of_them}: say --execute to erase the records, and --purge what tells of them, too"
        )
    return f"erased {records} from the newest version; {tell_of_them}: say --purge to erase these at once"


def proof_in_words(proof: Proof) -> list[str]:
    """Return what was looked through after a purge, what was found, and what to do about it, a sentence a line."""
    looked = (
        f"Looked through {counted(proof.objects, 'object')} ({counted(proof.bytes, 'byte')}), all that is stored:"
        f" segments were decoded ({counted(proof.records, 'record')}), log entries and checkpoints read, and"
        " everything else searched for the values."
    )
    left, others = len(proof.left), len(proof.traces) - len(proof.left)
    if left:
        places = Counter(one.trace for one in proof.left)
        remedies = [
            f"{trace.value}, {counted(places[trace], 'place')}: {remedy}."
            for trace, remedy in _REMEDIES.items()
            if places[trace]
        ]
        return [looked, f"Something is left in {counted(left, 'place')}: see Found.", *remedies]
    beside = f" The value stands in {counted(others, 'other place')}, for you to judge: see Found." if others else ""
    return [looked, f"Nothing of what was erased was found.{beside}"]


def sections_of(report: ErasureReport) -> dict[str, Rows | Sequence[str]]:
    """Return an erasure's report as tables."""
    executed = report.extent is not Extent.LOOK
    topics = [(*astuple(one), executed) for one in report.topics]
    sections: dict[str, Rows | Sequence[str]] = {
        "topics": Rows(TOPIC_HEADERS, topics, "Topics", {"records", "segments", "undecided", "uploaded", "files"}),
        "logs": Rows(LOG_HEADERS, [astuple(one) for one in report.logs], "Log history", {"telling", "deleted"}),
    }
    proof = report.proof
    if proof is not None:
        traces = [(one.trace.value, one.trace.is_left, one.path, one.count, one.column) for one in proof.traces]
        looked = [(proof.objects, proof.bytes, proof.records, report.as_of_ms, report.is_proved)]
        sections["proof"] = Rows(LOOKED_HEADERS, looked, "Proof", {"objects", "bytes", "records"}, {"as_of_ms"})
        sections["found"] = Rows(TRACE_HEADERS, traces, "Found", {"count"}, empty="nothing was found")
        sections["proof_in_words"] = proof_in_words(proof)
    sections["skipped"] = [f"{name} lacks a column, and was not erased from" for name in report.skipped]
    sections["unseen"] = list(proof.unseen) if proof is not None else []
    sections["waiting"] = list(report.waiting)
    sections["failures"] = list(report.failures)
    return sections


command = on_warehouse(erase)

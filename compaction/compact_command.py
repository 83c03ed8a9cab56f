"""``txntable compact``: what a run or a dry run says, and how it goes on until it is stopped.

Owns what is printed: the answer on standard output, failures on standard error, a bar where a person is looking.  What
failed in a topic makes exit code 1, after the other topics.  Must not know of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from txntable.admin.blocking_words import counted
from txntable.cli.connection import tell_error
from txntable.cli.output import Output, Rows, error_console, note, tell
from txntable.cli.progress import progressing
from txntable.compaction.compactor import Progress as TellProgress
from txntable.compaction.spec import TopicReport
from txntable.errors import RetriableError, StorePermissionError
from txntable.runtime.environment import Environment

HEADERS = {
    "topic": "Topic",
    "expired_segments": "Expired",
    "aborted_segments": "Aborted",
    "settled_segments": "Settled",
    "merged_segments": "Merged",
    "written_segments": "Written",
    "read_bytes": "ReadBytes",
    "written_bytes": "WrittenBytes",
    "dropped_records": "Dropped",
    "young_segments": "Young",
    "lost": "Lost",
    "failures": "Failures",
}
# How long a stop may take to be noticed.
_STEP_MS = 200


def answer(output: Output, reports: Sequence[TopicReport], *, executed: bool) -> None:
    """Print what a run did, or would do.

    Parameters
    ----------
    output : Output
        Prints it.
    reports : sequence of TopicReport
        Of the run.
    executed : bool
        Whether it was none that was dry.

    Raises
    ------
    typer.Exit
        Something failed: exit code 1.
    """
    if not executed:
        tell("a dry run: nothing is written")
    rows = [[_cells(report)[name] for name in HEADERS] for report in reports]
    output.rows(Rows(HEADERS, rows, counts=set(HEADERS) - {"topic"}, empty="there are no topics"))
    young = sum(report.young_segments for report in reports)
    if young:
        note(f"younger than the warehouse's snapshot_retention_ms, for a later run: {counted(young, 'segment')}")
    if tell_failures(reports):
        raise typer.Exit(1)


def tell_failures(reports: Sequence[TopicReport]) -> int:
    """Print what failed on standard error, a line each; return how much it is."""
    failures = [(report.topic, failure) for report in reports for failure in report.failures]
    for topic, failure in failures:
        tell(f"error: {' '.join(failure.split())} topic={topic}")
    return len(failures)


def repeat(
    run: Callable[[], Sequence[TopicReport]], interval_ms: int, stop: Callable[[], bool], environment: Environment
) -> None:
    """Compact again and again until told to stop; a line on standard error for each topic where something was done.

    Parameters
    ----------
    run : callable
        Compacts once.
    interval_ms : int
        From the beginning of a run to the beginning of the next, at least.
    stop : callable
        Asked several times a second between runs.
    environment : Environment
        For the time.

    Raises
    ------
    typer.Exit
        The store refuses every topic: whoever starts services starts this one again, or tells. Exit code 1.
    """
    while not stop():
        started_at = environment.instant()
        try:
            reports = run()
        except RetriableError as error:
            tell_error(error)
        else:
            _tell_work(reports)
            if reports and all(map(_is_refused, reports)):
                raise typer.Exit(1)
        while not stop() and environment.since_ms(started_at) < interval_ms:
            environment.sleep_ms(min(_STEP_MS, interval_ms))


def _is_refused(report: TopicReport) -> bool:
    return any(failure.startswith(f"{StorePermissionError.code} ") for failure in report.failures)


def _tell_work(reports: Sequence[TopicReport]) -> None:
    for report in reports:
        facts = " ".join(f"{name}={value}" for name, value in _cells(report).items() if value)
        if facts != f"topic={report.topic}":
            tell(facts)
    tell_failures(reports)


def _cells(report: TopicReport) -> dict[str, object]:
    return {**asdict(report), "failures": len(report.failures)}


@contextmanager
def shown_progress() -> Iterator[TellProgress]:
    """Show how far a topic is: a bar on a terminal, elsewhere a line now and then."""
    console = error_console()
    if not console.is_terminal:
        with progressing("compact") as progress:
            yield lambda topic, done, total: progress(f"compact {topic}: {done:,} of {total:,} bytes")
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("compact", total=None)

        def show(topic: str, done: int, total: int) -> None:
            bar.update(task, description=topic, completed=done, total=total)

        yield show

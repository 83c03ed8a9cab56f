"""What it costs beside its peers, as ``docs/concepts/performance.md`` shows it: tables and pictures of kept results.

``python -m benchmarks.page`` writes them anew; a test holds the document against the results.  Owns which figures are
shown, in which words, and what their goals are.  A goal is met where the interval of the median reaches it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks.bars import Bar, draw
from benchmarks.kept_results import kept
from benchmarks.measurement import Figure
from benchmarks.peers import WORKLOADS
from tools.documentation.tables import table, with_tables

DOCUMENT = Path(__file__).parent.parent / "docs" / "concepts" / "performance.md"
PICTURES = DOCUMENT.parent.parent / "assets"
MINUS = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of the page.

    Attributes
    ----------
    result : str
        The file in ``benchmarks/results``, without its ending.
    figure : str
        Its name there.
    words : str
        What it says, ours ÷ the peer's.
    goal : float, optional
        The ratio to reach.
    more : bool
        Whether more is better: rates; otherwise less is.
    """

    result: str
    figure: str
    words: str
    goal: float | None = None
    more: bool = False

    def read(self) -> Figure:
        """Return the figure."""
        return kept(self.result).figures[self.figure]

    def is_met(self, figure: Figure) -> bool | None:
        """Return whether the interval reaches the goal, if there is one."""
        if self.goal is None:
            return None
        low, high = figure.interval or (figure.value, figure.value)
        return high >= self.goal if self.more else low <= self.goal

    def is_beside(self, figure: Figure) -> bool:
        """Return whether only the interval reaches the goal, and not the median."""
        return self.is_met(figure) is True and not self.is_met(replace(figure, interval=None))


_VERDICTS = {None: "", True: "met", False: "missed"}


def _kinds(result: str, figure: str, words: str, wall: float | None, cpu: float | None = None) -> Iterator[Line]:
    yield Line(result, f"{figure}, wall", f"{words}, time", wall)
    yield Line(result, f"{figure}, cpu", f"{words}, CPU", cpu)


def _writes(result: str) -> Iterator[Line]:
    kinds = partial(_kinds, result)
    yield from kinds("unkeyed transactional write ÷ df.write.parquet", "unkeyed ÷ Parquet", 1.08, 1.05)
    yield from kinds("unkeyed transactional write ÷ Delta append", "unkeyed ÷ Delta", 0.85)
    yield from kinds("unkeyed transactional write ÷ Iceberg append", "unkeyed ÷ Iceberg", 1.03)
    shuffled = "keyed transactional write ÷ df.repartition(8, key).write.parquet"
    yield from kinds(shuffled, "keyed ÷ Parquet, shuffled", 1.0)
    yield from kinds("the same with distribution_mode=hash", "keyed, hash ÷ Parquet, shuffled", 1.1)
    yield from kinds("Delta append ÷ df.write.parquet", "Delta ÷ Parquet", None)
    yield from kinds("Iceberg append ÷ df.write.parquet", "Iceberg ÷ Parquet", None)


_MICRO_BATCH = "÷ Parquet file sink, {} per micro-batch"


def _streams(version: str) -> Iterator[Line]:
    for figure, words, goal in (
        ('format("txntable")', 'format("txntable")', 1.0),
        ("foreachBatch, one topic", "foreachBatch", 1.2),
        ("Delta's sink", "Delta's sink", None),
    ):
        for kind, said in (("wall", "time"), ("cpu", "CPU")):
            name = f"{figure} {_MICRO_BATCH.format(kind)}"
            yield Line(f"streaming-spark{version}", name, f"{words} ÷ Parquet's, {said}, Spark {version}", goal)


def _light_reads() -> Iterator[Line]:
    cases = (
        ("everything", "everything"),
        ("one column", "one column"),
        ("three columns", "three columns"),
        ("three columns, a thirtieth of the rows by a filter", "a filter"),
        ("one range of keys", "a range of keys"),
    )
    for peer, goal in (("pyarrow.dataset", 1.1), ("deltalake", 1.1)):
        for case, words in cases:
            yield Line("light_reads", f"read_arrow ÷ {peer}, {case}, wall", f"{words} ÷ {peer}, time", goal)


def _spark_reads() -> Iterator[Line]:
    for part in ("0 % aborted data", "50 % aborted data", "10,000 aborted transactions"):
        yield Line("scan-spark4.2", f"snapshot scan ÷ plain Parquet scan, {part}", f"an aggregate, {part}")
    for case, words in (("everything", "three columns"), ("a thirtieth of the rows", "three columns, few rows")):
        figure = f"snapshot scan ÷ plain Parquet, {case}, wall"
        yield Line("format_reads-spark4.2", figure, words, 1.1)
        figure = f'format("txntable") ÷ plain Parquet, {case}, wall'
        yield Line("format_reads-spark4.2", figure, f'format("txntable"), {words}', 1.1)
        figure = f'format("txntable") ÷ a source that does nothing, {case}, wall'
        yield Line("format_reads-spark4.2", figure, f'format("txntable") ÷ a source that does nothing, {words}')


def _compaction() -> Iterator[Line]:
    for peer, words, goal in (
        ("Delta's OPTIMIZE", "Delta's OPTIMIZE", 1.0),
        ("Spark's read and write", "a job that only rewrites", None),
    ):
        for place, said in (("on Spark", "on Spark"), ("in this process", "without Spark")):
            result = "compaction-spark4.2"
            yield from _kinds(result, f"compaction {place} ÷ {peer}", f"{said} ÷ {words}", goal)


def _vacuum() -> Iterator[Line]:
    for peer, goal in (("Delta's VACUUM", 1.0), ("deltalake's vacuum", None)):
        yield from _kinds("vacuum-spark4.2", f"vacuum ÷ {peer}", f"vacuum ÷ {peer}", goal)


def _time_travel() -> Iterator[Line]:
    for figure, words in (
        ("read_arrow of the past ÷ deltalake's", "read_arrow ÷ deltalake"),
        ("read by Spark of the past ÷ Delta's, warm", "by Spark ÷ Delta's own"),
        ("read by Spark of the past ÷ Iceberg's, warm", "by Spark ÷ Iceberg"),
    ):
        yield Line("time_travel-spark4.1", f"{figure}, wall", f"{words}, time", 1.0)
    figure = "read_arrow of the past, half of the rows ÷ of the present, wall"
    yield Line("time_travel-spark4.1", figure, "read_arrow, half of the rows ÷ all of the present, time")


def _record_rates() -> Iterator[Line]:
    for seconds in ("0.1", "1", "30"):
        for peer, words, goal in (
            ("txntable without transactions", "produced ÷ without transactions", 0.97),
            ("Kafka", "produced ÷ Kafka", 0.8),
        ):
            figure = f"txntable ÷ {peer}, produced, a commit each {seconds} s"
            yield Line("record_rates", figure, f"{words}, a commit each {seconds} s", goal, more=True)
    yield Line("record_rates", "poll_batches ÷ pyarrow, consumed", "poll_batches ÷ pyarrow", 0.9, more=True)
    yield Line("record_rates", "poll ÷ Kafka, consumed", "poll ÷ Kafka's consume(500)", 1.0, more=True)


def _transactions() -> Iterator[Line]:
    goals = {("deltalake", "1 record in 1 partition"): 8.0, ("Kafka", "1 record in 1 partition"): 1.0}
    for peer, ours in (
        ("deltalake append", "txntable"),
        ("PyIceberg append", "txntable"),
        ("DuckLake insert", "txntable"),
        ("Kafka", "txntable"),
        ("PostgreSQL, two-phase", "txntable, synced"),
    ):
        for workload in WORKLOADS:
            goal = goals.get((peer.split()[0], workload.name))
            figure = f"{ours} ÷ {peer}, {workload.name}"
            yield Line("peers", figure, f"{workload.name} ÷ {peer.split()[0].rstrip(',')}", goal, more=True)


def _many_partitions() -> Iterator[Line]:
    for steps, words, goal in (
        ("create, write and poll", "create, write, read by poll", 1.4),
        ("write", "write", None),
        ("poll", "read by poll", None),
    ):
        figure = f"10,000 partitions, page-cache: {steps} ÷ bare Parquet"
        yield Line("wide_topic", figure, f"{words} ÷ bare Parquet, CPU", goal)


SECTIONS: dict[str, Sequence[Line]] = {
    "writes": tuple(_writes("write-spark4.1")),
    "larger writes": tuple(_writes("write-spark4.1-scale5")),
    "small frames": tuple(
        _kinds(
            "many_topics-spark4.2",
            "20 DataFrames of 10000 rows, write_all ÷ df.write.parquet of each",
            "20 DataFrames, write_all ÷ Parquet",
            1.0,
        )
    ),
    "streams": (*_streams("4.1"), *_streams("4.2")),
    "pipelines": (
        Line(
            "pipeline-spark4.2",
            "pipeline ÷ the same job without transactions, scale 1",
            "pipeline ÷ the job without transactions",
            1.08,
        ),
        Line(
            "pipeline-spark4.2",
            "pipeline ÷ the same job without transactions, scale 1, with an offset and a time for each row",
            "pipeline ÷ that job with an offset and a time for each row",
        ),
    ),
    "reads": tuple(_light_reads()),
    "scans": tuple(_spark_reads()),
    "planning": (
        Line("planning-spark4.2", "read of one segment by Spark ÷ Delta's own, first look", "first look ÷ Delta", 1.05),
        Line("planning-spark4.2", "read of one segment by Spark ÷ Delta's own, again", "again ÷ Delta", 1.0),
    ),
    "compaction": tuple(_compaction()),
    "vacuum": tuple(_vacuum()),
    "time travel": tuple(_time_travel()),
    "records": tuple(_record_rates()),
    "many partitions": tuple(_many_partitions()),
    "transactions": tuple(_transactions()),
    "growth": tuple(
        Line("growth", f"{what} ÷ deltalake, list of files, {segments:,} segments", f"{what}, {segments:,} segments")
        for what in ("plan of one partition", "last stable offset")
        for segments in (1_000, 10_000, 100_000, 1_000_000)
    ),
}
"""What each table, and the picture of the same name, shows."""


def tables() -> dict[str, str]:
    """Return the page's tables by name."""
    return {name: _table(lines) for name, lines in SECTIONS.items()}


def pictures() -> dict[Path, str]:
    """Return the page's pictures by their files."""
    return {PICTURES / f"costs-{name.replace(' ', '-')}.svg": _picture(name, each) for name, each in SECTIONS.items()}


def _table(lines: Sequence[Line]) -> str:
    head = ("ours ÷ the peer's", "ratio", "interval", "goal", "", "medians")
    return table(head, map(_row, lines)) + "\n" + "".join(_where(name) for name in dict.fromkeys(_results(lines)))


def _row(line: Line) -> tuple[str, ...]:
    figure = line.read()
    met = line.is_met(figure)
    return (
        line.words,
        f"**{figure.value:.2f}**",
        f"{figure.interval[0]:.2f}{MINUS}{figure.interval[1]:.2f}" if figure.interval else "",
        f"{'≥' if line.more else '≤'} {line.goal:g}" if line.goal is not None else "",
        _VERDICTS[met] if met is None or not line.is_beside(figure) else "in the interval",
        figure.notes.split(";")[0].removeprefix("median "),
    )


def _results(lines: Sequence[Line]) -> Iterator[str]:
    return (line.result for line in lines)


def _where(name: str) -> str:
    result = kept(name)
    rounds = {figure.rounds for figure in result.figures.values() if figure.rounds}
    versions = ", ".join(f"{library} {version}" for library, version in result.versions.items())
    return (
        f"`{name.split('-')[0]}`, {result.day}: {result.cores} cores, load before {result.load:g}, "
        f"{_said(rounds)} rounds, {versions}.\n"
    )


def _said(rounds: set[int]) -> str:
    return " or ".join(str(each) for each in sorted(rounds))


def _picture(name: str, lines: Sequence[Line]) -> str:
    bars = []
    for line in lines:
        figure = line.read()
        bars.append(Bar(line.words, figure.value, figure.interval, line.goal, line.is_met(figure)))
    return draw(f"What {name} cost beside peers: ratios, ours ÷ theirs", bars)


def main() -> None:
    """Write the page's tables and pictures."""
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text(encoding="utf-8"), tables()), encoding="utf-8")
    for path, picture in pictures().items():
        path.write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()

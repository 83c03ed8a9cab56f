"""``txntable groups reset-offsets``: moving a group without members, with the options of Kafka's tool.

Owns how a target is said, and the CSV that `--export` prints and `--from-file` reads: topic,partition,offset.  A dry
run until ``--execute``.
"""

from __future__ import annotations

import csv
import datetime as dt
import re
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer

from txntable.admin.admin import Admin
from txntable.admin.offset_reset import NewPosition, OffsetReset, ResetTarget, planned_reset, positions
from txntable.cli.both_ways import both_ways
from txntable.cli.connection import Connection, Execute
from txntable.cli.output import Rows, dashed_headers, note_dry_run, tell, write_out
from txntable.errors import GroupIdNotFoundError, InvalidRequestError, NonEmptyGroupError
from txntable.format.records import TopicPartition

RESET_HEADERS = dashed_headers("group topic partition new_offset executed")
_DURATION = re.compile(r"P(?!$)(?:(\d+)D)?(?:T(?!$)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_MS = dt.timedelta(milliseconds=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_CSV_COLUMNS = 3
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "'")


Group = Annotated[str, typer.Option("--group", metavar="GROUP", help="The group's name; it need not exist.")]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="TOPIC[:0,1]", help="All its partitions, or these; repeat it for several."),
]
AllTopics = Annotated[bool, typer.Option("--all-topics", help="All that the group has offsets of.")]
ToEarliest = Annotated[bool, typer.Option("--to-earliest", help="To the log start.")]
ToLatest = Annotated[bool, typer.Option("--to-latest", help="To the last stable offset.")]
ToCurrent = Annotated[bool, typer.Option("--to-current", help="To what is committed; else to the end.")]
ToOffset = Annotated[int | None, typer.Option("--to-offset", metavar="OFFSET", min=0, help="To this offset.")]
ShiftBy = Annotated[
    int | None, typer.Option("--shift-by", metavar="NUMBER", help="On from what is committed; negative: back.")
]
ToDatetime = Annotated[
    str | None,
    typer.Option("--to-datetime", metavar="TIME", help="To the first record then or later; no zone: UTC."),
]
ByDuration = Annotated[
    str | None, typer.Option("--by-duration", metavar="PnDTnHnMnS", help="To so long ago, by the store's time.")
]
FromFile = Annotated[
    Path | None, typer.Option("--from-file", metavar="FILE", help="To the offsets of a CSV: topic,partition,offset.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done; the default.")]
Export = Annotated[bool, typer.Option("--export", help="Print a CSV that --from-file reads.")]


@both_ways("group", "--group")
def reset_offsets(  # noqa: PLR0913  the interface of a command
    connection: Connection,
    group: Group,
    topic: Topics = None,
    all_topics: AllTopics = False,
    to_earliest: ToEarliest = False,
    to_latest: ToLatest = False,
    to_current: ToCurrent = False,
    to_offset: ToOffset = None,
    shift_by: ShiftBy = None,
    to_datetime: ToDatetime = None,
    by_duration: ByDuration = None,
    from_file: FromFile = None,
    dry_run: DryRun = False,
    execute: Execute = False,
    export: Export = False,
) -> None:
    """Reset the offsets of a group that has no members: a dry run until --execute."""
    if dry_run and execute:
        raise typer.BadParameter("give one of --dry-run and --execute")
    option, value = _chosen(
        {
            "--to-earliest": to_earliest or None,
            "--to-latest": to_latest or None,
            "--to-current": to_current or None,
            "--to-offset": to_offset,
            "--shift-by": shift_by,
            "--to-datetime": None if to_datetime is None else _time_ms(to_datetime),
            "--by-duration": None if by_duration is None else _duration_ms(by_duration),
            "--from-file": from_file,
        }
    )
    warehouse = connection.open()
    admin = warehouse.admin()
    _require_inactive(admin, group, may_be_new=not all_topics)
    if isinstance(value, Path):
        planned = positions(admin, _read(value))
    else:
        reset = _reset(option, value, warehouse.context.clock.now_ms())
        planned = planned_reset(admin, group, _partitions(admin, group, topic, all_topics), reset)
    _finish(connection, (admin, group), planned, execute=execute, export=export)


def _finish(
    connection: Connection,
    of_group: tuple[Admin, str],
    planned: Mapping[TopicPartition, NewPosition],
    *,
    execute: bool,
    export: bool,
) -> None:
    """Do what was planned, if it is to be done, and print it."""
    admin, group = of_group
    _warn(planned)
    if execute:
        _execute(admin, group, planned)
    note_dry_run(execute=execute)
    if export:
        lines = StringIO()
        csv.writer(lines, lineterminator="\n").writerows(
            (_guarded(each.topic), each.partition, new.offset) for each, new in planned.items()
        )
        write_out(lines.getvalue())
        return
    rows = [(group, *each, new.offset, execute) for each, new in planned.items()]
    connection.output.rows(Rows(RESET_HEADERS, rows, empty="the group has no offsets: say which topics by --topic"))


def _chosen(options: dict[str, object]) -> tuple[str, object]:
    """Return the one target that was said."""
    said = [(option, value) for option, value in options.items() if value is not None]
    if len(said) != 1:
        raise typer.BadParameter("say one of " + ", ".join(options), param_hint="the target")
    return said[0]


def partitions_named(admin: Admin, texts: Sequence[str]) -> list[TopicPartition]:
    """Return the partitions that ``TOPIC[:0,1]`` names.

    Raises
    ------
    UnknownTopicOrPartitionError
        There is no such topic.
    typer.BadParameter
        What follows the colon are no numbers: exit code 2.
    """
    named: dict[TopicPartition, None] = {}
    for text in texts:
        name, _, numbers = text.partition(":")
        if numbers and not re.fullmatch(r"\d+(,\d+)*", numbers):
            raise typer.BadParameter("give TOPIC or TOPIC:0,1", param_hint="--topic")
        (described,) = admin.describe_topics([name])
        chosen = [int(number) for number in numbers.split(",")] if numbers else range(described.settings.partitions)
        named |= dict.fromkeys(TopicPartition(name, number) for number in chosen)
    return list(named)


def _partitions(admin: Admin, group: str, topics: Sequence[str] | None, all_topics: bool) -> list[TopicPartition]:
    if bool(topics) == all_topics:
        raise typer.BadParameter("say which topics, or --all-topics", param_hint="--topic")
    if topics:
        return partitions_named(admin, topics)
    names = sorted({each.topic for each in admin.list_consumer_group_offsets(group)})
    return partitions_named(admin, names)


def _reset(option: str, value: object, now_ms: int) -> OffsetReset:
    number = value if isinstance(value, int) else 0
    if option == "--by-duration":
        return OffsetReset(ResetTarget.TIME, max(0, now_ms - number))
    return OffsetReset(ResetTarget(option.removeprefix("--")), number)


def _time_ms(text: str) -> int:
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(
            "give a time in ISO 8601, as 2026-11-20T12:00:00.000Z", param_hint="--to-datetime"
        ) from error
    return ((found if found.tzinfo else found.replace(tzinfo=dt.UTC)) - _EPOCH) // _MS


def _duration_ms(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise typer.BadParameter("give a duration in ISO 8601, as P1DT2H30M", param_hint="--by-duration")
    days, hours, minutes, seconds = (float(number or 0) for number in found.groups())
    return dt.timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds) // _MS


def _read(path: Path) -> dict[TopicPartition, int]:
    """Return the offsets of a CSV."""
    try:
        with path.open(newline="") as file:
            rows = [row for row in csv.reader(file) if row]
        if any(len(row) != _CSV_COLUMNS for row in rows):
            raise ValueError("columns")
        return {TopicPartition(_unguarded(topic), int(partition)): int(offset) for topic, partition, offset in rows}
    except (OSError, ValueError) as error:
        raise InvalidRequestError("the file is no CSV of topic,partition,offset", path=str(path)) from error


def _guarded(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula (OWASP's rule), and that is read back as it was."""
    return f"'{cell}" if cell.startswith(_FORMULAS) else cell


def _unguarded(cell: str) -> str:
    return cell.removeprefix("'")


def _require_inactive(admin: Admin, group: str, *, may_be_new: bool) -> None:
    try:
        (found,) = admin.describe_consumer_groups([group]).values()
    except GroupIdNotFoundError as error:
        if not may_be_new:
            raise
        # Kafka's tool makes it, too; whoever mistyped the name is to see that the group he meant stays where it is.
        notes = " ".join(getattr(error, "__notes__", ()))
        tell(f"warning: there is no such group yet; what is reset makes it group={group} {notes}".rstrip())
        return
    if found.members:
        raise NonEmptyGroupError(
            "offsets are reset while the group has no members; stop them, or wait for their session timeout where they "
            "have ended",
            group=group,
            state=found.state.value,
            members=len(found.members),
            session_timeout_ms=max(each.session_timeout_ms for each in found.members),
        )


def _warn(planned: Mapping[TopicPartition, NewPosition]) -> None:
    for each, new in planned.items():
        if new.offset != new.wanted:
            tell(
                f"warning: the new offset of {each.topic}-{each.partition} is out of range; "
                f"wanted={new.wanted} new_offset={new.offset}"
            )


def _execute(admin: Admin, group: str, planned: Mapping[TopicPartition, NewPosition]) -> None:
    outcomes = admin.alter_consumer_group_offsets(group, {each: new.offset for each, new in planned.items()})
    for error in outcomes.values():
        if error is not None:
            raise error

"""``txntable groups``: what Kafka's ``kafka-consumer-groups`` tells of groups, with its columns, and deleting them.

Lag is counted against the last stable offset: that is where reading ends.  Resets are in ``txntable.cli.group_reset``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Annotated

import typer

from txntable.admin.admin import Admin
from txntable.admin.group_description import GroupDescription, MemberDescription
from txntable.admin.offset_reset import end_offsets
from txntable.admin.readable_part import ReadablePart
from txntable.admin.unreadable import topic_place
from txntable.cli.both_ways import both_ways
from txntable.cli.connection import Connection, Execute, on_warehouse, tell_error
from txntable.cli.group_reset import partitions_named, reset_offsets
from txntable.cli.output import Rows, dashed_headers, note, note_dry_run
from txntable.cli.unreadable import fail_if_unreadable
from txntable.coordinator.group_state import GroupState
from txntable.errors import (
    DamagedDataError,
    GroupSubscribedToTopicError,
    NonEmptyGroupError,
    TxnTableError,
    UnknownTopicOrPartitionError,
)
from txntable.format.records import TopicPartition
from txntable.offsets.group_commit import OffsetAndMetadata
from txntable.warehouse.warehouse import Warehouse

application = typer.Typer(
    add_completion=False, no_args_is_help=True, help="List, describe, reset and delete consumer groups."
)

LIST_HEADERS = dashed_headers("group state")
OFFSET_HEADERS = dashed_headers("group topic partition current_offset log_end_offset lag consumer_id host client_id")
METADATA_HEADER = {"metadata": "METADATA"}
MEMBER_HEADERS = dashed_headers("group consumer_id group_instance_id host client_id partitions heartbeat_age_ms") | {
    "partitions": "#PARTITIONS"
}
ASSIGNMENT_HEADERS = dashed_headers("session_timeout_ms current_epoch current_assignment target_assignment")
STATE_HEADERS = dashed_headers("group assignment_strategy state group_epoch members") | {"members": "#MEMBERS"}
DELETE_HEADERS = dashed_headers("group state offsets executed error")
DELETE_OFFSETS_HEADERS = dashed_headers("group topic partition current_offset executed error")
_STATES = ", ".join(state.value for state in GroupState if state is not GroupState.DEAD)


class Shown(StrEnum):
    """What is described of a group."""

    OFFSETS = "offsets"
    MEMBERS = "members"
    STATE = "state"


Group = Annotated[str, typer.Option("--group", metavar="GROUP", help="The group's name.")]
Groups = Annotated[
    list[str] | None, typer.Option("--group", metavar="GROUP", help="A group's name; repeat it for several.")
]


def list_groups(
    connection: Connection,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help=f"Only in this state; several: A,B, or repeat it: {_STATES}."),
    ] = None,
) -> None:
    """List groups, also those that only have offsets."""
    states = [name.strip() for text in state or () for name in text.split(",")]
    found = connection.open().admin().list_consumer_groups(states)
    connection.output.rows(
        Rows(
            LIST_HEADERS,
            [(one.group_id, one.state.value) for one in found],
            empty="no group is in this state" if state else "there is no group",
        )
    )


@both_ways("group", "--group")
def describe(  # noqa: PLR0913  the interface of a command
    connection: Connection,
    group: Groups = None,
    all_groups: Annotated[bool, typer.Option("--all-groups", help="All that there are.")] = False,
    offsets: Annotated[bool, typer.Option("--offsets", help="Offsets and lag; the default.")] = False,
    members: Annotated[bool, typer.Option("--members", help="The members.")] = False,
    state: Annotated[bool, typer.Option("--state", help="The state.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="More columns.")] = False,
) -> None:
    """Describe groups: their offsets and lag, or their members, or their state.

    Exit code 1 when a topic of theirs cannot be read: it is named on standard error, and the others are shown.
    """
    if bool(group) == all_groups:
        raise typer.BadParameter("say which groups, or --all-groups", param_hint="--group")
    chosen = [what for what, wanted in zip(Shown, (offsets, members, state), strict=True) if wanted]
    if len(chosen) > 1:
        raise typer.BadParameter("one of --offsets, --members and --state", param_hint=f"--{chosen[1]}")
    warehouse = connection.open()
    admin, part = warehouse.admin(), ReadablePart(warehouse.completer, warehouse.topic_log, ())
    names = [one.group_id for one in admin.list_consumer_groups()] if all_groups else group or []
    found = list(admin.describe_consumer_groups(names).values())
    for one in found:
        _note_members(one)
    empty = f"no offsets, and no members: {', '.join(one.group_id for one in found)}" if found else "there is no group"
    match chosen:
        case [Shown.MEMBERS]:
            empty = "there are no members" if found else empty
            headers = {**MEMBER_HEADERS, **(ASSIGNMENT_HEADERS if verbose else {})}
            rows = [_member(one, member) for one in found for member in one.members]
        case [Shown.STATE]:
            headers, rows = STATE_HEADERS, [_state(one) for one in found]
        case _:
            headers = {**OFFSET_HEADERS, **(METADATA_HEADER if verbose else {})}
            rows = [row for one in found for row in _offsets(warehouse, one, part)]
            empty = "none of its topics can be read" if part.unreadable else empty
    shown = [row[: len(headers)] for row in rows]
    elsewhere = {} if chosen else {"consumer_id": "--members"}
    connection.output.rows(Rows(headers, shown, counts=("lag",), empty=empty, elsewhere=elsewhere))
    fail_if_unreadable(part.unreadable)


def _note_members(group: GroupDescription) -> None:
    if not group.members:
        note(f"group {group.group_id} has no active members")
    if silent := len(group.silent_members):
        who = "1 member that is" if silent == 1 else f"{silent} members that are"
        note(
            f"group {group.group_id} has {who} silent for longer than the session timeout; the next member,"
            " `txntable transactions run --once` or a change of the group expels what is silent"
        )


def _offsets(warehouse: Warehouse, group: GroupDescription, part: ReadablePart) -> Iterator[tuple[object, ...]]:
    admin, committed = warehouse.admin(), _committed(warehouse, group.group_id, part)
    owners = {partition: member for member in group.members for partition in member.assignment}
    ends: dict[TopicPartition, int] = {}
    for topic in {each.topic for each in (*committed, *owners)}:
        # What a member owns of a topic that was deleted is its until the group takes note.
        with suppress(UnknownTopicOrPartitionError), part.passing_over(topic_place(topic)):
            # Those without an offset, too: nobody has read them, and where who comes begins is for him to say.
            ends |= end_offsets(admin, partitions_named(admin, [topic]))
    for each in sorted(ends):
        yield (
            group.group_id,
            *each,
            *_progress(committed, ends, each),
            *_owner(owners.get(each)),
            _text(committed, each),
        )
    for member in group.members:
        if not member.assignment:
            yield (group.group_id, None, None, None, None, None, *_owner(member), None)


def _committed(warehouse: Warehouse, group: str, part: ReadablePart) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """Return the committed offsets of a group in the topics that can be read."""
    admin = warehouse.admin()
    named = [TopicPartition(*each) for each in warehouse.completer.offsets.offsets(group)]
    # A topic that cannot be read does not say of which topic of its name an offset is.
    part.look_for({each.topic for each in named})
    lost = {one.where for one in part.unreadable}
    if not lost:
        return admin.list_consumer_group_offsets(group)
    return admin.list_consumer_group_offsets(group, [each for each in named if topic_place(each.topic) not in lost])


def _progress(
    committed: Mapping[TopicPartition, OffsetAndMetadata | None],
    ends: Mapping[TopicPartition, int],
    each: TopicPartition,
) -> tuple[int | None, int, int | None]:
    """Return where the group stands, where reading ends, and how far that is."""
    found = committed.get(each)
    if found is None:
        return None, ends[each], None
    return found.offset, ends[each], ends[each] - found.offset


def _owner(member: MemberDescription | None) -> tuple[str | None, str | None, str | None]:
    return (None, None, None) if member is None else (member.member_id, member.host, member.client_id)


def _text(committed: Mapping[TopicPartition, OffsetAndMetadata | None], each: TopicPartition) -> str | None:
    found = committed.get(each)
    return None if found is None else found.metadata


def _member(group: GroupDescription, member: MemberDescription) -> tuple[object, ...]:
    return (
        group.group_id,
        member.member_id,
        member.group_instance_id,
        member.host,
        member.client_id,
        len(member.assignment),
        member.heartbeat_age_ms,
        member.session_timeout_ms,
        member.member_epoch,
        [f"{topic}-{partition}" for topic, partition in member.assignment],
        [f"{topic}-{partition}" for topic, partition in member.target_assignment],
    )


def _state(group: GroupDescription) -> tuple[object, ...]:
    return group.group_id, group.partition_assignor, group.state.value, group.generation, len(group.members)


@both_ways("group", "--group")
def delete(
    connection: Connection,
    group: Groups = None,
    execute: Execute = False,
) -> None:
    """Delete groups with all their offsets: a dry run until --execute."""
    if not group:
        raise typer.BadParameter("say which groups", param_hint="--group")
    admin = connection.open().admin()
    found = admin.describe_consumer_groups(group)
    counts = {name: len(admin.list_consumer_group_offsets(name)) for name in found}
    outcomes = admin.delete_consumer_groups(group) if execute else {name: _not_empty(found[name]) for name in found}
    note_dry_run(execute=execute)
    rows = [
        (name, found[name].state.value, counts[name], execute and error is None, code(error))
        for name, error in outcomes.items()
    ]
    _answer(connection, Rows(DELETE_HEADERS, rows, counts=("offsets",)), list(outcomes.values()))


def _not_empty(group: GroupDescription) -> TxnTableError | None:
    if not group.members:
        return None
    return NonEmptyGroupError(
        "the group has members; let them leave first, or wait for their session timeout where they have ended",
        group=group.group_id,
        members=len(group.members),
    )


@both_ways("group", "--group")
def delete_offsets(
    connection: Connection,
    group: Group,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="TOPIC[:0,1]", help="All its partitions, or these; repeat it for several."),
    ] = None,
    execute: Execute = False,
) -> None:
    """Delete a group's offsets of topics that no member subscribes to: a dry run until --execute.

    Also those of a topic that has lost its folder.
    """
    if not topic:
        raise typer.BadParameter("say which topics", param_hint="--topic")
    warehouse = connection.open()
    admin = warehouse.admin()
    (found,) = admin.describe_consumer_groups([group]).values()
    rows_of_group = warehouse.completer.offsets.offsets(group)
    own = {TopicPartition(*each): row.committed for each, row in rows_of_group.items()}
    partitions = [each for text in topic for each in _partitions_or_own(admin, text, own)]
    if execute:
        outcomes = admin.delete_consumer_group_offsets(group, partitions)
    else:
        outcomes = {each: _subscribed(found, each) for each in partitions}
    note_dry_run(execute=execute)
    rows = [
        (group, *each, None if offset is None else offset.offset, execute and error is None, code(error))
        for each, error in outcomes.items()
        for offset in [own.get(each)]
    ]
    _answer(connection, Rows(DELETE_OFFSETS_HEADERS, rows), list(outcomes.values()))


def _partitions_or_own(admin: Admin, text: str, own: Collection[TopicPartition]) -> list[TopicPartition]:
    """Return the partitions that ``TOPIC[:0,1]`` names; of a topic that is gone those that have an offset."""
    try:
        return partitions_named(admin, [text])
    except (UnknownTopicOrPartitionError, DamagedDataError):
        if found := [each for each in own if each.topic == text]:
            return found
        raise


def _subscribed(group: GroupDescription, partition: TopicPartition) -> TxnTableError | None:
    if not any(partition.topic in member.topics for member in group.members):
        return None
    return GroupSubscribedToTopicError(
        "a member of the group subscribes to the topic; let it leave first, or wait for its session timeout where it "
        "has ended",
        topic=partition.topic,
        partition=partition.partition,
    )


def _answer(connection: Connection, rows: Rows, outcomes: list[TxnTableError | None]) -> None:
    """Print what became of each; exit code 1 when something was refused, and why."""
    connection.output.rows(rows)
    refused = {error.code: error for error in outcomes if error is not None}
    for error in refused.values():
        tell_error(error)
    if refused:
        raise typer.Exit(1)


def code(error: TxnTableError | None) -> str | None:
    """Return Kafka's name of an error."""
    return None if error is None else error.code


application.command("list")(on_warehouse(list_groups))
application.command("describe")(on_warehouse(describe))
application.command("reset-offsets")(on_warehouse(reset_offsets))
application.command("delete")(on_warehouse(delete))
application.command("delete-offsets")(on_warehouse(delete_offsets))

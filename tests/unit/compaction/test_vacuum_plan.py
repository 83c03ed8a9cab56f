"""What vacuum may delete: the truth table of its policy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from txntable.compaction.vacuum_plan import Horizons, Reason, TopicStates, judge_file, judge_heartbeat
from txntable.format.layout import marker_path, segment_path, state_path
from txntable.log.actions import Add, Remove
from txntable.log.table_state import TableState

TOPIC_ID, UNIQUE = "a" * 32, "b" * 32
OLD_MS, YOUNG_MS = 1_000, 9_000
HORIZONS = Horizons(unnamed=5_000, segments=6_000, public=3_000)
ROWS = {"_partition": "0"}
# A producer id whose epoch in T is 4; one that T does not know (any more); the first one that it has not given out yet.
KNOWN, UNKNOWN, NEXT = 7, 9, 10
EPOCHS = {KNOWN: 4}


def segment(producer: tuple[int, int] | None) -> str:
    return segment_path(TOPIC_ID, 0, producer, UNIQUE)


def states() -> TopicStates:
    return TopicStates(TableState(), TableState(), set(), EPOCHS, NEXT, HORIZONS)


def judged(path: str, modified_ms: int = OLD_MS, known: TopicStates | None = None) -> Reason:
    return judge_file(known or states(), f"_segments/{path}", modified_ms)


def live(path: str) -> Add:
    return Add(path, ROWS, 1, 0)


# -- what no log names ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "modified_ms", "reason"),
    [
        (segment(None), OLD_MS, Reason.UNNAMED),
        (segment(None), HORIZONS.unnamed, Reason.YOUNG),
        (segment(None), HORIZONS.unnamed - 1, Reason.UNNAMED),
        (segment((UNKNOWN, 99)), OLD_MS, Reason.UNNAMED),
        (segment((UNKNOWN, 99)), YOUNG_MS, Reason.YOUNG),
        (segment((NEXT, 0)), OLD_MS, Reason.CURRENT_EPOCH),
        (segment((NEXT + 1, 0)), OLD_MS, Reason.CURRENT_EPOCH),
        (marker_path(TOPIC_ID, NEXT, 0), OLD_MS, Reason.CURRENT_EPOCH),
        (segment((KNOWN, 3)), OLD_MS, Reason.UNNAMED),
        (segment((KNOWN, 3)), YOUNG_MS, Reason.YOUNG),
        (segment((KNOWN, 4)), OLD_MS, Reason.CURRENT_EPOCH),
        (segment((KNOWN, 5)), OLD_MS, Reason.CURRENT_EPOCH),
        (marker_path(TOPIC_ID, KNOWN, 3), OLD_MS, Reason.UNNAMED),
        (marker_path(TOPIC_ID, KNOWN, 3), YOUNG_MS, Reason.YOUNG),
        (marker_path(TOPIC_ID, KNOWN, 4), OLD_MS, Reason.CURRENT_EPOCH),
        (marker_path(TOPIC_ID, UNKNOWN, 3), OLD_MS, Reason.UNNAMED),
        (state_path(0), OLD_MS, Reason.LOG),
        ("_delta_log/00000000000000000000.json", OLD_MS, Reason.LOG),
    ],
)
def test_file_that_no_log_names_goes_when_it_is_old_and_nobody_may_name_it_any_more(
    path: str, modified_ms: int, reason: Reason
) -> None:
    assert judged(path, modified_ms) is reason


def test_marker_of_a_transaction_that_is_open_here_stays_although_the_transaction_log_knows_nothing_of_it() -> None:
    hanging = replace(states(), open={(UNKNOWN, 3)})

    assert judged(marker_path(TOPIC_ID, UNKNOWN, 3), known=hanging) is Reason.TRANSACTION
    assert judged(marker_path(TOPIC_ID, UNKNOWN, 4), known=hanging) is Reason.UNNAMED


# -- what a log names, or has named -----------------------------------------------------------

REMOVED = ROWS
TOMBSTONED: dict[str, str] = {}


def known_as(
    path: str,
    *,
    segments: Add | tuple[int, dict] | None = None,
    public: Add | int | None = None,
) -> TopicStates:
    """S and P in which a path is live, or was removed at a time, or is not known."""
    found = states()
    if isinstance(segments, Add):
        found.segments.files.put(segments)
    elif segments is not None:
        found.segments.tombstones[path] = Remove(path, segments[0], False, segments[1])
    if isinstance(public, Add):
        found.public.files.put(public)
    elif public is not None:
        found.public.tombstones[f"_segments/{path}"] = Remove(f"_segments/{path}", public, False, ROWS)
    return found


PATH = segment((KNOWN, 3))
LIVE, PUBLISHED = live(PATH), live(f"_segments/{PATH}")


@pytest.mark.parametrize(
    ("segments", "public", "reason"),
    [
        (LIVE, None, Reason.LIVE),
        (LIVE, PUBLISHED, Reason.LIVE),
        (None, PUBLISHED, Reason.LIVE),
        ((OLD_MS, REMOVED), PUBLISHED, Reason.LIVE),
        ((OLD_MS, TOMBSTONED), PUBLISHED, Reason.LIVE),
        # removed from P: P's retention counts
        (None, HORIZONS.public, Reason.RETAINED),
        (None, HORIZONS.public - 1, Reason.REMOVED),
        ((OLD_MS, REMOVED), HORIZONS.public, Reason.RETAINED),
        ((OLD_MS, TOMBSTONED), HORIZONS.public, Reason.RETAINED),
        ((OLD_MS, REMOVED), HORIZONS.public - 1, Reason.REMOVED),
        # removed from S: S's own
        ((HORIZONS.segments, REMOVED), None, Reason.RETAINED),
        ((HORIZONS.segments, REMOVED), OLD_MS, Reason.RETAINED),
        ((HORIZONS.segments - 1, REMOVED), None, Reason.REMOVED),
        # never live: nobody can be reading it
        ((YOUNG_MS, TOMBSTONED), None, Reason.TOMBSTONED),
        ((OLD_MS, TOMBSTONED), None, Reason.TOMBSTONED),
        ((YOUNG_MS, TOMBSTONED), OLD_MS, Reason.TOMBSTONED),
    ],
)
@pytest.mark.parametrize("modified_ms", [OLD_MS, YOUNG_MS])
def test_file_that_a_log_has_named_goes_once_both_tables_retentions_are_over(
    segments, public, reason, modified_ms
) -> None:
    assert judged(PATH, modified_ms, known_as(PATH, segments=segments, public=public)) is reason


@pytest.mark.parametrize("deletion_ms", [HORIZONS.segments, HORIZONS.segments - 1])
def test_marker_that_was_removed_stays_for_the_retention_of_the_partition_logs(deletion_ms: int) -> None:
    path = marker_path(TOPIC_ID, KNOWN, 3)
    expected = Reason.RETAINED if deletion_ms >= HORIZONS.segments else Reason.REMOVED

    assert judged(path, known=known_as(path, segments=(deletion_ms, REMOVED))) is expected


# -- what is none of ours ---------------------------------------------------------------------

PART = "part-00000-3f0c1d2e-aaaa-bbbb-cccc-0123456789ab.c000.snappy.parquet"
CHANGES = "cdc-00001-3f0c1d2e-aaaa-bbbb-cccc-0123456789ab.c000.snappy.parquet"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (PART, Reason.REFUSED_WRITE),
        (f".{PART}.crc", Reason.REFUSED_WRITE),
        (f"_partition=0/_base_offset=5/{PART}", Reason.REFUSED_WRITE),
        (f"_change_data/{CHANGES}", Reason.REFUSED_WRITE),
        (f"_change_data/_partition=0/_commit=3/.{CHANGES}.crc", Reason.REFUSED_WRITE),
        (f"_segments/{PART}", Reason.REFUSED_WRITE),
        (f"_segments/_partition=0/_marker=__HIVE_DEFAULT_PARTITION__/{PART}", Reason.REFUSED_WRITE),
        ("deletion_vector_3f0c1d2e-aaaa-bbbb-cccc-0123456789ab.bin", Reason.REFUSED_WRITE),
        (f"backup/{PART}", Reason.UNKNOWN),
        (f"_segments/p00000/{PART}", Reason.UNKNOWN),
        ("notes.txt", Reason.UNKNOWN),
        ("_segments/notes.txt", Reason.UNKNOWN),
        (f"p00000/{TOPIC_ID}-x-x-{UNIQUE}.parquet", Reason.UNKNOWN),
        (f"_segments/p00000/{TOPIC_ID}-x-1-{UNIQUE}.parquet", Reason.UNKNOWN),
        ("_delta_log/.s3-optimization-0", Reason.LOG),
    ],
)
def test_object_of_no_name_of_ours_goes_only_when_a_refused_write_leaves_such(path: str, reason: Reason) -> None:
    assert judge_file(states(), path, OLD_MS) is reason


def test_what_a_refused_write_has_just_left_stays_since_it_may_be_under_way() -> None:
    assert judge_file(states(), PART, HORIZONS.unnamed) is Reason.YOUNG


@pytest.mark.parametrize(
    ("path", "modified_ms", "reason"),
    [
        ("system/heartbeats/a/b", OLD_MS, Reason.LIVE),
        ("system/heartbeats/a/c", HORIZONS.unnamed, Reason.YOUNG),
        ("system/heartbeats/a/c", HORIZONS.unnamed - 1, Reason.HEARTBEAT),
    ],
)
def test_heartbeat_goes_when_it_is_old_and_of_no_member(path: str, modified_ms: int, reason: Reason) -> None:
    assert judge_heartbeat({"system/heartbeats/a/b"}, path, modified_ms, HORIZONS.unnamed) is reason


def test_every_reason_is_either_one_to_go_or_one_to_stay() -> None:
    assert {reason for reason in Reason if not reason.goes} == {
        Reason.LOG,
        Reason.LIVE,
        Reason.RETAINED,
        Reason.YOUNG,
        Reason.CURRENT_EPOCH,
        Reason.TRANSACTION,
        Reason.UNKNOWN,
    }

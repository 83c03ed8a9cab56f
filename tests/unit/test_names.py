"""Names of topics, groups, ids, columns: refused, or stored below their folder, apart from all others, and found."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from txntable.coordinator.row_json import check_name, encode_key
from txntable.errors import DamagedDataError, InvalidRequestError, InvalidTopicError, SchemaMismatchError
from txntable.format.layout import (
    check_topic_name,
    checkpoint_path,
    commit_path,
    heartbeat_path,
    key_path,
    last_checkpoint_path,
    log_folder,
    marker_path,
    parse_file_name,
    public_root,
    segment_path,
    segments_root,
    state_path,
    topic_names,
)
from txntable.format.object_path import check_path
from txntable.format.schema import check_topic_schema, from_delta_schema, to_delta_schema
from txntable.log.action_fields import LARGEST_PATH, check_file_path, check_file_paths
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store
from txntable.warehouse.warehouse import Warehouse

ODD = [
    *("", ".", "..", "...", "a/b", "../a", "/a", "a/", "a\\b", "%2e%2e", "%2F", "a%2Fb", "s3://x", "file:x", "a:b"),
    *("a ", " a", "a.", "a\n", "a\r", "a\t", "a\0", "a\x1b", "é", unicodedata.normalize("NFD", "é"), "Ａ", "а", "🙂"),
    *("\u202ea", "a\u200b", "\ufeffa", "CON", "nul.txt", "a" * 249, "a" * 250, "a" * 5_000, "_partition=0", "a=b"),
    *(".unfinished-1-2", "_delta_log", "_segments", "__HIVE_DEFAULT_PARTITION__", "null", "-", "--help", "*", "?", "~"),
    *("A", "a", "a.b", "a_b", "'", '"', "`", "$(x)", "{x}", "[x]", "#", "&", "@", "+", "|", "<x>"),
]
_KAFKAS = st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True)
texts = st.one_of(st.sampled_from(ODD), st.text(max_size=40), _KAFKAS)
_STEERING = set("\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_SAFE = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")


def refused_topic(name: str) -> bool:
    try:
        return not check_topic_name(name)
    except InvalidTopicError:
        return True


def paths_of_topic(name: str) -> list[str]:
    segments, public = segments_root(name), public_root(name)
    inside = [segment_path("0" * 32, 3, (1, 2), "f" * 32), marker_path("0" * 32, 1, 2), state_path(99_999)]
    logs = [of(root) for root in (segments, public) for of in (log_folder, last_checkpoint_path)]
    numbered = [of(root, 2**63) for root in (segments, public) for of in (commit_path, checkpoint_path)]
    return [*logs, *numbered, *(f"{segments}/{path}" for path in inside)]


@given(texts)
def test_topic_with_any_name_is_refused_or_lies_below_a_folder_of_its_name(name: str) -> None:
    if refused_topic(name):
        assert topic_names([name]) in ([], [name])
        return
    for path in paths_of_topic(name):
        assert check_path(path).startswith(f"topics/{name}/")
        assert _SAFE.fullmatch(path)
        # S3 has 1,024 bytes for a key: what is left is the warehouse's prefix.
        assert len(path) < 512
    assert topic_names([segments_root(name).split("/")[1]]) == [name]


accepted = st.one_of(st.sampled_from([name for name in ODD if not refused_topic(name)]), _KAFKAS).filter(
    lambda name: not refused_topic(name)
)


@given(accepted, accepted)
def test_two_topics_share_no_path(one: str, other: str) -> None:
    assume(one != other)

    assert not set(paths_of_topic(one)) & set(paths_of_topic(other))
    assert not public_root(one).startswith(f"{public_root(other)}/")


@pytest.mark.parametrize("name", ODD)
def test_odd_name_of_a_topic_is_refused_by_every_call_unless_kafka_takes_it(name: str, tmp_path: Path) -> None:
    taken = re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name) and name not in (".", "..", ".unfinished-1-2")
    warehouse = Warehouse.create(str(tmp_path / "warehouse"), durability="page-cache")
    calls: list[Callable[[], object]] = [
        lambda: warehouse.admin().create_topic(name),
        lambda: warehouse.read_arrow(name),
        lambda: warehouse.producer().send(name, value=b"x", partition=0),
        lambda: warehouse.admin().delete_topic(name),
    ]
    before = sorted(tmp_path.iterdir())

    if taken:
        for call in calls:
            call()
    else:
        for call in calls:
            with pytest.raises(InvalidTopicError):
                call()
        assert not (tmp_path / "warehouse" / "topics").exists()
    assert sorted(tmp_path.iterdir()) == before


def checked(name: str) -> str | None:
    try:
        return check_name(name, "a group")
    except InvalidRequestError:
        return None


rows = st.lists(texts, min_size=1, max_size=3)


@given(rows, rows)
def test_rows_with_any_names_have_paths_that_say_nothing_and_differ(one: list[str], other: list[str]) -> None:
    assume(all(checked(name) for name in (*one, *other)))
    kinds = ("id", "batch", "offset", "group")
    paths = {key_path(kind, encode_key(*names)) for kind in kinds for names in (one, other)}

    assert len(paths) == len(kinds) * len({tuple(one), tuple(other)})
    assert all(re.fullmatch(r"k/[0-9a-f]{32}\.parquet", check_file_path(path)) for path in paths)
    assert json.loads(encode_key(*one)) == one


@given(texts, texts, texts, texts)
def test_heartbeats_of_any_members_have_paths_that_say_nothing_and_differ(
    group: str, member: str, other_group: str, other_member: str
) -> None:
    assume(all(checked(name) for name in (group, member, other_group, other_member)))
    paths = {heartbeat_path(group, member), heartbeat_path(other_group, other_member)}

    assert len(paths) == len({(group, member), (other_group, other_member)})
    assert all(re.fullmatch(r"system/heartbeats/[0-9a-f]{32}/[0-9a-f]{32}", path) for path in paths)


@given(texts)
def test_column_with_any_name_is_refused_or_reads_back_as_it_was(name: str) -> None:
    schema = pa.schema([pa.field(name, pa.int64()), pa.field("other", pa.struct([pa.field(name, pa.string())]))])
    try:
        accepted = check_topic_schema(schema)
    except SchemaMismatchError:
        is_odd = set(name) & set(" ,;{}()\n\t=") or any(unicodedata.category(each) == "Cc" for each in name)
        assert name.lower() == "other" or not name or name[0] == "_" or is_odd or set(name) & _STEERING
        return

    assert from_delta_schema(to_delta_schema(accepted)) == accepted


@given(st.one_of(texts, st.lists(texts, max_size=4).map("/".join)))
def test_file_that_a_log_may_name_is_one_that_every_store_takes(path: str) -> None:
    try:
        check_file_path(path)
    except DamagedDataError:
        return

    assert check_path(path) == path
    assert len(path) <= LARGEST_PATH
    assert not {"", ".", ".."} & set(path.split("/"))


LONG = "a" * 255
"""The longest name in a path."""


@pytest.mark.parametrize(
    "path",
    [
        *("", "a/b", "a//b", "/a", "a/../b", "..", "ä", "a b", "a\n", "a/" * 256),
        *(LONG, f"{LONG}a", f"b/{LONG}", f"b/{LONG}a", f"{LONG}/{LONG}", f"{LONG}/{LONG}/a"),
    ],
)
def test_checkpoint_may_name_the_files_that_an_entry_may_name(path: str) -> None:
    def refusal(check: Callable[[], object]) -> bool:
        try:
            check()
        except DamagedDataError:
            return True
        return False

    in_an_entry = refusal(lambda: check_file_path(path))

    assert refusal(lambda: check_file_paths(pa.chunked_array([["p/1.parquet", path]]))) == in_an_entry


def test_file_names_are_those_that_are_parsed_again() -> None:
    for path in (segment_path("0" * 32, 3, (1, 2), "f" * 32), marker_path("0" * 32, 1, 2), state_path(99_999)):
        assert parse_file_name(check_file_path(path)) is not None
        assert parse_file_name(f"../{path}") is None


@pytest.mark.parametrize("store", ["folder", "memory"])
def test_store_keeps_names_apart_that_kafka_keeps_apart(store: str, tmp_path: Path) -> None:
    names = sorted(["a", "A", "a.", "a.b", "a_b", "a-b", "...", "-", "_delta_log", "a..b", "x" * 249])
    opened = open_store(StoreSpec(str(tmp_path) if store == "folder" else "memory://names"))

    for name in names:
        opened.put(commit_path(public_root(name), 0), name.encode())

    assert list(opened.folders("topics")) == names
    assert topic_names(opened.folders("topics")) == names
    assert [meta.path for meta in opened.list("topics")] == sorted(commit_path(public_root(name), 0) for name in names)
    found = opened.get_many([commit_path(public_root(name), 0) for name in names])
    assert [one and one.data for one in found] == [name.encode() for name in names]

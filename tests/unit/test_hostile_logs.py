"""Logs that a foreign hand wrote to: refused by an error that names the object, and nothing else is opened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.golden_logs import FOLDERS, changed, entries, golden_objects
from tests.unit.hostile import REFUSED, answer_to, read_everything, stays_inside, warehouse_of

S, P = "topics/orders/_segments", "topics/orders"
T, O = "system/transaction_log", "system/offset_log"  # noqa: E741  the protocol's letter
OUTSIDE = [
    "../../../../etc/passwd",
    "../orders/x.parquet",
    "p00000/../../../_warehouse.json",
    "./x.parquet",
    "p00000/..",
    "..",
    ".",
    "",
    "/etc/passwd",
    "//other/x",
    "s3://other/x.parquet",
    "file:///etc/passwd",
    "abfss://c@a.dfs.core.windows.net/x",
    "%2e%2e/%2e%2e/x.parquet",
    "p00000%2F..%2Fx",
    "p00000\\..\\x",
    "p00000//x",
    "p00000/x\n",
    "p00000/x ",
    "p00000/\u0000",
    "p00000/é.parquet",
    "_partition=0/x.parquet",
    "a/" * 300 + "x",
    "x" * 300,
]
# As raw JSON: some of it json.dumps would not write.
VALUES = [
    *("null", "true", "-1", "0", "1.5", "1e400", "NaN", "-Infinity", str(2**63), str(10**30), "9" * 5_000),
    *('""', '"x"', '"007"', '"-1"', '"99999999999999999999"', '"1_0"', r'"\ud800"', r'"a\u0000b"', '"../../x"'),
    *("[]", "{}", "[[[]]]", '{"v":1}', '[{"v":1}]', '{"a":1,"a":2}', "[" * 20_000 + "]" * 20_000, '"0-99999999999"'),
    json.dumps("[" * 20_000),
]


def nodes(document: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of a document, also those inside of JSON that stands in a text (marked by an ellipsis)."""
    if place:
        yield place
    if isinstance(document, dict | list):
        for name, value in document.items() if isinstance(document, dict) else enumerate(document):
            yield from nodes(value, (*place, name))
    elif isinstance(document, str) and document[:1] in ("{", "["):
        yield from nodes(json.loads(document), (*place, ...))


def with_value(document: Any, place: tuple[Any, ...], raw: str | None) -> str:
    """Return a document's JSON with raw text at a place; ``None`` takes the place away."""
    if not place:
        return raw or "null"
    first, *rest = place
    if first is ...:
        return json.dumps(with_value(json.loads(document), tuple(rest), raw))
    if isinstance(document, list):
        parts = [
            with_value(value, tuple(rest), raw) if index == first else json.dumps(value)
            for index, value in enumerate(document)
            if raw is not None or rest or index != first
        ]
        return f"[{','.join(parts)}]"
    parts = [
        f"{json.dumps(name)}:{with_value(value, tuple(rest), raw) if name == first else json.dumps(value)}"
        for name, value in document.items()
        if raw is not None or rest or name != first
    ]
    return f"{{{','.join(parts)}}}"


def edited(data: bytes, edit: Any) -> bytes:
    """Return an entry of which each action passed through `edit`."""
    first, *actions = data.decode().splitlines()
    return "".join(f"{line}\n" for line in [first, *(json.dumps(edit(json.loads(a))) for a in actions)]).encode()


@pytest.mark.parametrize("kind", ["add", "remove"])
@pytest.mark.parametrize("log", [S, P, T, O])
@pytest.mark.parametrize("outside", OUTSIDE)
def test_log_that_names_a_file_outside_of_its_table_is_refused_before_anything_is_opened(
    log: str, outside: str, kind: str
) -> None:
    objects = golden_objects("format-1")
    path = next(path for path in entries("format-1", log) if b'"add"' in objects[path])

    def lead_outside(action: dict[str, Any]) -> dict[str, Any]:
        if "add" in action and kind == "remove":
            return {"remove": {"path": outside, "deletionTimestamp": 1, "dataChange": True}}
        return {"add": action["add"] | {"path": outside}} if "add" in action else action

    site, store = warehouse_of(changed(objects, path, edited(objects[path], lead_outside)))
    refusal = answer_to(lambda: read_everything(site, store))

    assert refusal is not None
    assert path in str(refusal)
    assert len(str(refusal)) < 10_000
    assert all("passwd" not in asked and "other" not in asked for asked in store.asked)
    assert stays_inside(store)


@st.composite
def one_changed_value(draw: st.DrawFn) -> tuple[str, str, bytes]:
    """Draw a golden warehouse, one of its entries, and the entry with one value that is another, or gone."""
    folder = draw(st.sampled_from(FOLDERS))
    objects = golden_objects(folder)
    path = draw(st.sampled_from(sorted(path for path in objects if path != "_warehouse.json")))
    lines = objects[path].decode().splitlines()
    number = draw(st.integers(0, len(lines) - 1))
    document = json.loads(lines[number])
    place = draw(st.sampled_from(list(nodes(document))))
    lines[number] = with_value(document, place, draw(st.sampled_from([*VALUES, None])))
    return folder, path, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


@given(one_changed_value())
def test_entry_with_any_one_value_changed_is_read_or_refused_and_leads_nowhere(entry: tuple[str, str, bytes]) -> None:
    folder, path, data = entry
    site, store = warehouse_of(changed(golden_objects(folder), path, data))

    refusal = answer_to(lambda: read_everything(site, store))

    assert refusal is None or len(str(refusal)) < 10_000
    assert stays_inside(store)


@given(
    st.sampled_from(FOLDERS),
    st.integers(0, 10**6),
    st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=6)), min_size=1, max_size=4),
)
def test_entry_with_any_bytes_changed_is_read_or_refused(
    folder: str, which: int, changes: list[tuple[int, bytes]]
) -> None:
    objects = golden_objects(folder)
    path = sorted(objects)[which % len(objects)]
    data = bytearray(objects[path])
    for place, new in changes:
        data[place % len(data) : place % len(data) + len(new)] = new
    site, store = warehouse_of(changed(objects, path, bytes(data)))

    answer_to(lambda: read_everything(site, store))

    assert stays_inside(store)


@pytest.mark.parametrize(
    "line",
    [
        "[" * 2_000_000,
        '{"add":' * 200_000,
        '{"add":{"path":"' + "x" * (64 << 20) + '"}}',
        '{"txn":{"appId":"a","version":1},"add":{}}',
        '{"txn":{"appId":"a","version":1,"version":2}}',
        '{"txn":{"appId":"a","version":NaN}}',
        '{"txn":{"appId":"a","version":' + "9" * 1_000_000 + "}}",
        '{"txn":{"appId":"a","version":1,"pickle":"x"}}',
        '{"cdc":{}}',
        '{"add":{"deletionVector":{"storageType":"p","pathOrInlineDv":"s3://other/dv"}}}',
        "1",
        "null",
        "\udcff",
    ],
    ids=lambda line: line[:24],
)
def test_line_that_no_writer_of_ours_makes_is_refused(line: str) -> None:
    objects = golden_objects("format-1")
    path = entries("format-1", T)[-1]
    data = objects[path] + line.encode("utf-8", "surrogateescape") + b"\n"
    site, store = warehouse_of(objects | {path: data})

    with pytest.raises(REFUSED) as refusal:
        read_everything(site, store)

    assert path in str(refusal.value)
    assert len(str(refusal.value)) < 10_000


@pytest.mark.parametrize(
    "hint", [b"", b"[]", b"\xff", b"[" * 20_000, *(b'{"version":%s}' % v.encode() for v in VALUES)]
)
def test_hint_that_is_hostile_is_only_a_hint(hint: bytes) -> None:
    site, store = warehouse_of(
        golden_objects("format-1") | {f"{log}/_delta_log/_last_checkpoint": hint for log in (S, P, T, O)}
    )

    read_everything(site, store)

    assert stays_inside(store)


@pytest.mark.parametrize("change", VALUES)
@pytest.mark.parametrize("name", ["format", "warehouse_id", "created_at", "capabilities"])
def test_identity_of_a_warehouse_with_a_hostile_value_is_refused(name: str, change: str) -> None:
    objects = golden_objects("format-1")
    fields = json.loads(objects["_warehouse.json"])
    data = with_value(fields, (name,), change).encode()
    site, store = warehouse_of(objects | {"_warehouse.json": data})
    harmless = {"created_at": ("0", "-1"), "capabilities": ("{}", '{"v":1}')}

    refusal = answer_to(lambda: read_everything(site, store))

    assert (refusal is None) is (change in harmless.get(name, ()))
    assert len(str(refusal)) < 10_000

"""Records are erased by what stands inside of a struct, and the proof looks into every depth."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa
import pytest

from tests.doubles.fault_plan import Operation
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import Site
from tests.simulation.test_erasure_crashes import objects_with, wait_with_all
from txntable.compaction.erasure import erase
from txntable.compaction.erasure_report import ErasureReport, Extent, Trace
from txntable.errors import SchemaMismatchError
from txntable.format.column_path import path_of
from txntable.warehouse.warehouse import Warehouse

SOUGHT = "ann-of-the-test"
PERSON = pa.struct([pa.field("id", pa.string()), pa.field("born", pa.date32()), pa.field("note", pa.string())])
SCHEMA = pa.schema(
    [
        pa.field("number", pa.int64(), nullable=False),
        pa.field("user", pa.struct([pa.field("person", PERSON), pa.field("score", pa.float64())])),
        pa.field("ratio", pa.float64()),
        pa.field("small", pa.float32()),
        pa.field("tags", pa.list_(pa.field("element", pa.string()))),
        pa.field("counts", pa.map_(pa.string(), pa.string())),
    ]
)


def row(number: int, who: str | None, **others: Any) -> dict[str, Any]:
    person = None if who is None else {"id": who, "born": dt.date(1990, 1, number), "note": "n"}
    return {"number": number, "user": {"person": person, "score": 0.5}, **others}


def site_with(*batches: list[dict[str, Any]]) -> tuple[Site, Warehouse]:
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("visits", schema=SCHEMA)
    with warehouse.producer() as producer:
        for rows in batches:
            for one in rows:
                producer.send("visits", row=one)
            producer.flush()
    return site, warehouse


def purge(site: Site, where: dict[str, Any]) -> ErasureReport:
    return erase(wait_with_all(site, site.open()), where, extent=Extent.PURGE)


def numbers(site: Site) -> list[int]:
    return site.open().read_arrow("visits").read_all()["number"].to_pylist()


@pytest.mark.parametrize("where", [{"user.person.id": SOUGHT}, {"user.person.born": "1990-01-02"}])
def test_records_go_by_a_column_inside_of_structs(where: dict[str, str]) -> None:
    site, _ = site_with([row(1, "bob"), row(2, SOUGHT), {"number": 3, "user": None}, row(4, None)], [row(5, "cid")])

    report = purge(site, where)

    assert report.is_proved, report
    assert report.topics[0].records == 1
    assert numbers(site) == [1, 3, 4, 5]
    assert objects_with(site, SOUGHT) == []


def test_segment_whose_bounds_inside_of_structs_exclude_the_value_is_not_read() -> None:
    site, _ = site_with([row(1, SOUGHT)], [row(2, "zoe")])
    looking = site.open()
    assert isinstance(looking.store, SteppingStore)

    found = erase(looking, {"user.person.id": SOUGHT})

    assert found.topics[0].segments == 1
    gets = {step.path for step in looking.store.steps if step.operation is Operation.GET}
    assert len({path for path in gets if "/_segments/p" in path}) == 1


def test_what_stays_beside_an_erased_record_stays_as_it_is_in_every_type() -> None:
    kept = row(
        1, "bob", ratio=math.nan, small=-0.0, tags=["a", None, ""], counts=[("k", None), ("l", "v")]
    )  # fmt: skip
    empty = row(3, None, ratio=-math.inf, small=math.nan, tags=[], counts=None)
    site, _ = site_with([kept, row(2, SOUGHT, ratio=1.5), empty])
    before = site.open().read_arrow("visits").read_all().filter(pa.array([True, False, True]))

    assert purge(site, {"user.person.id": SOUGHT}).is_proved

    assert repr(site.open().read_arrow("visits").read_all().to_pylist()) == repr(before.to_pylist())
    assert site.open().verify().damages == ()


def test_value_inside_of_structs_lists_maps_and_headers_is_told_wherever_it_is_another_column() -> None:
    site, warehouse = site_with(
        [
            row(1, "bob", tags=["x", SOUGHT]),
            row(2, "bob", counts=[(SOUGHT, "y")]),
            row(3, "bob", counts=[("y", SOUGHT)]),
            {"number": 4, "user": {"person": {"id": "bob", "note": SOUGHT}}},
            row(5, SOUGHT),
        ]
    )
    warehouse.admin().create_topic("kafka")
    with warehouse.producer() as producer:
        producer.send("kafka", key=b"k", value=b"v", headers=[("who", SOUGHT.encode())])

    report = purge(site, {"user.person.id": SOUGHT})

    assert report.is_proved
    assert report.proof is not None
    found = {(one.trace, one.column) for one in report.proof.traces}
    assert found == {
        (Trace.OTHER_COLUMN, name)
        for name in ("tags", "counts.key", "counts.value", "user.person.note", "headers.value")
    }
    assert numbers(site) == [1, 2, 3, 4]


@pytest.mark.parametrize("column", ["ratio", "small", "user.score", "user", "user.person", "tags", "counts"])
def test_column_whose_type_no_key_may_have_is_refused_at_any_depth(column: str) -> None:
    site, _ = site_with([row(1, "bob", ratio=1.5)])

    with pytest.raises(SchemaMismatchError, match="types a key may have") as refused:
        erase(site.open(), {column: "1.5"})

    assert refused.value.facts["column"] == column


@pytest.mark.parametrize("column", ["user.persn.id", "tags.element", "counts.key", "user.", ".user", "number.x"])
def test_column_that_is_none_is_refused_with_those_that_are(column: str) -> None:
    site, _ = site_with([row(1, "bob")])

    with pytest.raises(SchemaMismatchError, match="no such column") as refused:
        erase(site.open(), {column: "x"}, topics=["visits"])

    assert "user.person.id" in str(refused.value.facts["known"])


def test_name_that_has_dots_itself_is_taken_for_what_it_is_first() -> None:
    inner = pa.struct([pa.field("b", pa.string()), pa.field("c.d", pa.string())])

    assert path_of(pa.schema([pa.field("a", inner), pa.field("a.b", pa.string())]), "a.b") == ("a.b",)
    assert path_of(pa.schema([pa.field("a", inner)]), "a.c.d") == ("a", "c.d")

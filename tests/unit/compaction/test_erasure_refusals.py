"""An erasure in a warehouse that others change, restore and write into: it takes nothing else, and claims no more."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.simulation.site import TWO_COLUMNS, Site
from tests.simulation.test_erasure_crashes import SOUGHT, erase_in, objects_with
from tests.unit.log.world import of_other_software
from tests.unit.reading import TOPIC, accounts_in, commit, leave_open, plain, site_with_topic, transactional
from txntable.compaction.compactor import compact
from txntable.compaction.erased_history import rows_in
from txntable.compaction.erasure import erase
from txntable.compaction.erasure_report import Extent, Trace
from txntable.format.layout import checkpoint_path, last_checkpoint_path
from txntable.log.cleanup import log_files
from txntable.topics.topic_log import TopicLog
from txntable.warehouse.warehouse import Warehouse

LOG = f"topics/{TOPIC}/_delta_log"


def test_log_that_was_created_again_while_an_erasure_waited_keeps_its_entries() -> None:
    site, warehouse = site_with_topic()
    etl = transactional(warehouse)
    for _ in range(10):
        commit(etl, SOUGHT, "bob")
    eraser = site.open()
    made: list[Warehouse] = []

    def wipe(what: str) -> None:
        if "until no view" not in what or made:
            return
        site.objects.restore({})
        made.append(site.create())
        made[0].admin().create_topic(TOPIC, partitions=2, schema=TWO_COLUMNS)
        commit(transactional(made[0]), "new")
        site.advance_ms(11 * 60_000)

    report = erase(eraser, {"account": SOUGHT}, extent=Extent.PURGE, tell=wipe)

    assert made
    assert not report.is_proved
    assert accounts_in(site.open().read_arrow(TOPIC)) == ["new"]
    assert site.open().verify().damages == ()


def test_prepared_transaction_keeps_the_entry_that_tells_its_age() -> None:
    site, warehouse = site_with_topic()
    commit(transactional(warehouse), SOUGHT)
    producer = leave_open(warehouse, "bob", transactional_id="prepared")
    producer.prepare_transaction()

    report = erase_in(site, site.open())

    assert any("prepared" in sentence for sentence in report.waiting)
    assert site.open().admin().describe_transactions(["prepared"])["prepared"].start_time_ms is not None
    producer.commit_transaction()
    assert erase_in(site, site.open()).is_proved
    assert accounts_in(site.open().read_arrow(TOPIC)) == ["bob"]


def test_checkpoint_of_other_software_that_cannot_be_read_is_named_with_what_to_do() -> None:
    """Bug: it was said to need a newer version."""
    site, warehouse = site_with_topic()
    for name in (SOUGHT, "bob") * 2:
        commit(transactional(warehouse), name)
    site.advance_ms(7_200_000)
    compact(warehouse)
    public = site.open().topic_log(TOPIC).public
    public.refresh()
    path = checkpoint_path(public.root, public.write_checkpoint())
    ours = site.objects.get(path)
    assert ours is not None
    site.objects.put(path, of_other_software(ours.data))

    (failure,) = erase_in(site, site.open()).failures

    assert "other software wrote this checkpoint" in failure
    assert failure.endswith(f"path={path}")
    site.objects.delete(path)
    site.objects.delete(last_checkpoint_path(public.root))
    assert erase_in(site, site.open()).is_proved


def foreign_checkpoint() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"add": pa.array([{"stats": SOUGHT}])}), sink, compression="zstd")
    return sink.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (f"{0:020d}.{1:020d}.compacted.json", json.dumps({"add": {"stats": "ann-of"}}).encode()),
        (f"{9:020d}.checkpoint.{1:010d}.{1:010d}.parquet", foreign_checkpoint()),
        (f"{9:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet", foreign_checkpoint()),
        ("_sidecars/x.parquet", foreign_checkpoint()),
        (f"{9:020d}.crc", b"{}"),
    ],
)
def test_object_of_other_software_in_the_folder_of_a_log_is_no_proof(name: str, data: bytes) -> None:
    site, warehouse = site_with_topic()
    plain(warehouse, SOUGHT)
    site.objects.put(f"{LOG}/{name}", data)

    report = erase_in(site, site.open())

    assert not report.is_proved
    assert report.proof is not None
    assert (Trace.UNREAD, f"{LOG}/{name}") in {(one.trace, one.path) for one in report.proof.left}


@pytest.mark.parametrize("path", [f"foreign/_delta_log/{0:020d}.json", "foreign/part-0.parquet"])
def test_what_cannot_be_read_is_no_proof(path: str) -> None:
    site, warehouse = site_with_topic()
    plain(warehouse, SOUGHT)
    site.objects.put(path, b"no format that is known")

    report = erase_in(site, site.open())

    assert not report.is_proved
    assert report.proof is not None
    assert {one.trace for one in report.proof.left} == {Trace.UNREAD}


def test_value_that_stands_in_an_object_of_the_format_by_chance_is_told_and_not_left() -> None:
    site, warehouse = site_with_topic()
    plain(warehouse, "racers", "bob")

    report = erase_in(site, site.open(), "racers")

    assert report.is_proved
    assert report.proof is not None
    assert [(one.trace, one.path) for one in report.proof.traces] == [(Trace.NAME, "_warehouse.json")]


def test_rows_that_a_repair_says_again_are_rows_of_the_entry() -> None:
    site, warehouse = site_with_topic()
    plain(warehouse, SOUGHT)
    path = max(path for path in site.objects.snapshot() if path.startswith(f"{LOG}/0"))
    lines = site.objects.snapshot()[path].data.decode().splitlines()
    info = json.loads(lines[0])
    info["commitInfo"]["repairs"] = len(lines) - 1
    site.objects.put(path, "\n".join([json.dumps(info), *lines[1:], ""]).encode())

    store = site.open().store
    rows = [add for _, adds, _ in rows_in(store, log_files(store, f"topics/{TOPIC}")) for add in adds]

    assert [SOUGHT in (add.stats or "") for add in rows] == [True]


def test_rewrite_that_others_were_faster_than_each_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    site, warehouse = site_with_topic()
    plain(warehouse, SOUGHT)
    monkeypatch.setattr(TopicLog, "rewrite", lambda *_: ())

    report = erase(site.open(), {"account": SOUGHT}, extent=Extent.REWRITE)

    assert any("erase again" in sentence for sentence in report.failures)
    assert objects_with(site, SOUGHT)


def keyed(site: Site) -> Warehouse:
    warehouse = site.create()
    config = {"cleanup.policy": "compact"}
    warehouse.admin().create_topic(TOPIC, partitions=1, schema=TWO_COLUMNS, key=["account"], config=config)
    return warehouse


def test_newest_record_of_a_key_that_goes_by_another_column_leaves_the_older_one() -> None:
    site = Site()
    with keyed(site).producer() as producer:
        for amount in (1, 2):
            producer.send(TOPIC, row={"account": "bob", "amount": amount})

    erase(site.open(), {"amount": 2}, extent=Extent.REWRITE)

    assert [row["amount"] for row in site.open().read_arrow(TOPIC).read_all().to_pylist()] == [1]

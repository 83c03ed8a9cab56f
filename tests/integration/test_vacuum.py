"""``deltalake`` reads the same versions of the public table after a vacuum, and logs with tombstoned names."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.simulation.rubbish import data_files, merge, tombstoned, upload_and_die
from tests.simulation.site import Site
from tests.simulation.test_crashes import DAY_MS, abort, append_plain, prepared, transfer
from txntable.compaction.vacuum import vacuum
from txntable.format.layout import public_root, segments_root


@pytest.fixture(scope="module")
def site() -> Site:
    """Versions within the retention of 30 days and before it; merged, aborted and orphaned files of both."""
    made = prepared()
    for days in (40, 20, 8, 1):
        made.advance_ms(days * DAY_MS // 2)
        transfer(made.open()) if days == 40 else append_plain(made.open())
        abort(made.open())
        upload_and_die(made, "debit")
        append_plain(made.open())
        made.advance_ms(days * DAY_MS // 2)
        merge(made.open(), "debit")
    return made


def dumped(site: Site, folder: Path) -> Path:
    for path, found in site.objects.snapshot().items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(found.data)
    return folder


def rows_of(folder: Path, root: str, version: int | None = None) -> list[tuple]:
    table = DeltaTable(str(folder / root), version=version)
    query = "SELECT _partition, _base_offset + _offset_delta AS o, account, amount FROM t ORDER BY 1, 2"
    found = QueryBuilder().register("t", table).execute(query).read_all()
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def test_reader_sees_every_retained_version_as_before_the_vacuum(site: Site, tmp_path: Path) -> None:
    root = public_root("debit")
    after = site.copy()
    report = vacuum(after.open(), execute=True)
    before, later = dumped(site, tmp_path / "before"), dumped(after, tmp_path / "after")
    newest = DeltaTable(str(before / root)).version()
    horizon_ms = site.objects.clock() - 30 * DAY_MS
    times = {entry["version"]: entry["timestamp"] for entry in DeltaTable(str(before / root)).history()}
    retained = [v for v in range(newest + 1) if v == newest or times[v + 1] >= horizon_ms]

    assert report.objects > 5
    assert len(data_files(after)) < len(data_files(site))
    assert 5 < len(retained) < newest
    for version in retained:
        assert rows_of(later, root, version) == rows_of(before, root, version) != []


def test_reader_opens_partition_logs_in_which_names_were_tombstoned(site: Site, tmp_path: Path) -> None:
    after = site.copy()
    vacuum(after.open(), execute=True)
    live = site.open().topic_log("debit").segments.refresh().files.paths()
    assert tombstoned(after, "debit")
    folder = dumped(after, tmp_path)

    found = DeltaTable(str(folder / segments_root("debit")))
    files = {path.rsplit("/_segments/", 1)[1] for path in found.file_uris()}
    after.open().topic_log("debit").segments.write_checkpoint()
    checkpointed = DeltaTable(str(dumped(after, tmp_path / "checkpointed") / segments_root("debit")))

    assert files == live
    assert {path.rsplit("/_segments/", 1)[1] for path in checkpointed.file_uris()} == live

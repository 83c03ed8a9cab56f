"""An erasure on a real S3 API: what a versioned bucket keeps is told, and is no proof."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.simulation.site import TWO_COLUMNS
from txntable.compaction.erasure import erase
from txntable.compaction.erasure_report import ErasureReport, Extent, Trace
from txntable.storage.aws_session import s3_client
from txntable.storage.object_store import StoreSpec
from txntable.testing.moto_server import LockedMotoServer
from txntable.warehouse.warehouse import Warehouse

SOUGHT = "ann-of-the-test"


@pytest.fixture(scope="module")
def server() -> Iterator[LockedMotoServer]:
    with LockedMotoServer("erased") as running:
        yield running


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody but this process has a view of the warehouse: there is nobody to wait for."""
    monkeypatch.setattr("txntable.compaction.erasure._GUARDS", 0)


def purged(server: LockedMotoServer, name: str) -> ErasureReport:
    warehouse = Warehouse.create(f"s3://erased/{name}", storage_options=server.storage_options)
    warehouse.admin().create_topic("t", schema=TWO_COLUMNS)
    with warehouse.producer() as producer:
        for account in (SOUGHT, "bob"):
            producer.send("t", row={"account": account, "amount": 1})
    report = erase(warehouse, {"account": SOUGHT}, extent=Extent.PURGE)
    assert warehouse.read_arrow("t").read_all()["account"].to_pylist() == ["bob"]
    return report


def test_purge_of_a_bucket_without_versions_is_proved(server: LockedMotoServer) -> None:
    report = purged(server, "plain")

    assert report.is_proved, report
    assert report.proof is not None
    assert report.proof.unseen == ()


def test_versions_that_a_bucket_keeps_are_told_until_they_are_deleted(server: LockedMotoServer) -> None:
    client = s3_client(StoreSpec("s3://erased", server.storage_options))
    client.put_bucket_versioning(Bucket="erased", VersioningConfiguration={"Status": "Enabled"})

    report = purged(server, "versioned")

    assert not report.is_proved
    assert report.proof is not None
    assert {one.trace for one in report.proof.left} == {Trace.VERSION}
    assert any("/_segments/p" in one.path for one in report.proof.left)
    kept = client.list_object_versions(Bucket="erased", Prefix="versioned/")
    for one in kept["Versions"]:
        if not one["IsLatest"]:
            client.delete_object(Bucket="erased", Key=one["Key"], VersionId=one["VersionId"])
    again = Warehouse.open("s3://erased/versioned", storage_options=server.storage_options)
    assert erase(again, {"account": SOUGHT}, extent=Extent.PURGE).is_proved

"""Uploads in parts that a killed writer leaves on S3: a vacuum finds the old ones, and gives them up."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tests.doubles.faulty_proxy import HttpFault, HttpRule, RequestKind
from tests.integration.faulty_site import FaultySite, served
from tests.simulation.site import Site
from tests.simulation.test_crashes import DAY_MS, prepared
from txntable.compaction.vacuum import vacuum
from txntable.compaction.vacuum_command import command
from txntable.compaction.vacuum_plan import Reason
from txntable.compaction.vacuum_report import VacuumReport
from txntable.errors import InvalidRequestError, StorePermissionError, StoreUnavailableError
from txntable.storage.aws_session import s3_client
from txntable.storage.object_store import StoreSpec
from txntable.storage.remote import RemoteStore
from txntable.warehouse.warehouse import Warehouse

pytestmark = pytest.mark.s3

SEGMENT = "topics/debit/_segments/p00000/left.parquet"
PART_BYTES = 1000


@pytest.fixture(scope="module")
def running() -> Iterator[FaultySite]:
    with served("uploads") as site:
        yield site


@pytest.fixture(scope="module")
def client(running: FaultySite) -> Any:
    return s3_client(running.store.spec)


@pytest.fixture(scope="module")
def empty() -> Site:
    return prepared()


@pytest.fixture
def warehouse(running: FaultySite, empty: Site, client: Any) -> Iterator[Warehouse]:
    """A warehouse in which one upload was left eight days ago, and one is under way."""
    site = empty.copy()
    running.load(site)
    opened = running.open()
    leave_upload(client, SEGMENT)
    site.advance_ms(8 * DAY_MS)
    leave_upload(client, f"{SEGMENT}-young")
    yield opened
    running.server.heal()


def leave_upload(client: Any, path: str) -> None:
    """What a process leaves that was killed after its first part."""
    upload = client.create_multipart_upload(Bucket="uploads", Key=path)["UploadId"]
    client.upload_part(Bucket="uploads", Key=path, UploadId=upload, PartNumber=1, Body=b"x" * PART_BYTES)


def lines(report: VacuumReport) -> dict[Reason, tuple[int, int]]:
    return {line.reason: (line.objects, line.bytes) for line in report.lines if line.topic is None}


def left(store: RemoteStore) -> list[str]:
    return [meta.path.partition("?")[0] for meta in store.unfinished()]


def test_dry_run_tells_the_old_upload_with_its_bytes_and_leaves_it(warehouse: Warehouse, running: FaultySite) -> None:
    report = vacuum(warehouse)

    assert lines(report) == {Reason.UNFINISHED: (1, PART_BYTES), Reason.YOUNG: (1, PART_BYTES)}
    assert left(running.store) == [SEGMENT, f"{SEGMENT}-young"]


def test_vacuum_aborts_the_old_upload_and_leaves_the_one_under_way(warehouse: Warehouse, running: FaultySite) -> None:
    report = vacuum(warehouse, execute=True)

    assert lines(report)[Reason.UNFINISHED] == (1, PART_BYTES)
    assert left(running.store) == [f"{SEGMENT}-young"]
    assert Reason.UNFINISHED not in lines(vacuum(warehouse, execute=True))


def test_upload_of_another_prefix_is_not_seen(warehouse: Warehouse, running: FaultySite) -> None:
    spec = running.store.spec
    for prefix, expected in (("topics/debit", 2), ("topics/deb", 0)):
        assert len(list(RemoteStore(StoreSpec(f"{spec.url}/{prefix}", spec.options)).unfinished())) == expected


def test_vacuum_reports_and_does_the_rest_when_the_uploads_may_not_be_listed(
    warehouse: Warehouse, running: FaultySite
) -> None:
    running.server.follow(HttpRule(HttpFault.DENIED, RequestKind.LIST_UPLOADS, times=10))
    application = typer.Typer()
    application.command()(command)
    given = [f"--storage-option={name}={value}" for name, value in running.store.spec.options.items()]

    report = vacuum(warehouse, execute=True)
    result = CliRunner().invoke(application, ["--warehouse", warehouse.url, "--output", "json", *given])

    assert report.failures == ()
    assert len(report.notices) == 1
    assert "action=s3:ListBucketMultipartUploads" in report.notices[0]
    assert result.exit_code == 0
    assert json.loads(result.stdout) is not None
    assert "warning: uploads that were never completed were not looked for" in result.stderr


def test_vacuum_fails_and_the_next_one_finishes_when_an_abort_is_refused(
    warehouse: Warehouse, running: FaultySite
) -> None:
    running.server.follow(HttpRule(HttpFault.DENIED, RequestKind.ABORT_MULTIPART))

    (failure,) = vacuum(warehouse, execute=True).failures
    after = vacuum(warehouse, execute=True)

    assert "action=s3:AbortMultipartUpload" in failure
    assert after.failures == ()
    assert left(running.store) == [f"{SEGMENT}-young"]


def test_upload_that_is_gone_when_it_is_aborted_is_no_error(warehouse: Warehouse, running: FaultySite) -> None:
    paths = [meta.path for meta in running.store.unfinished()]
    running.store.discard(paths)

    running.store.discard(paths)

    assert left(running.store) == []


def test_size_is_0_when_the_parts_may_not_be_listed(warehouse: Warehouse, running: FaultySite) -> None:
    running.server.follow(HttpRule(HttpFault.DENIED, RequestKind.LIST_PARTS, times=2))

    assert [meta.size for meta in running.store.unfinished()] == [0, 0]


@pytest.mark.parametrize("fault", [HttpFault.SLOW_DOWN, HttpFault.RESET_BEFORE])
def test_unfinished_raises_a_clear_error_when_the_store_does_not_answer(
    warehouse: Warehouse, running: FaultySite, fault: HttpFault
) -> None:
    running.server.follow(HttpRule(fault, RequestKind.LIST_UPLOADS))
    assert len(left(running.store)) == 2, "one failure is waited for"
    running.server.follow(HttpRule(HttpFault.ABSENT, RequestKind.LIST_UPLOADS, times=100))

    with pytest.raises(StoreUnavailableError, match="try again"):
        list(running.store.unfinished())


def test_discard_refuses_an_object(running: FaultySite) -> None:
    with pytest.raises(InvalidRequestError, match="delete objects"):
        running.store.discard(["topics/debit/_delta_log/00000000000000000000.json"])


def test_unfinished_says_which_permission_is_missing(warehouse: Warehouse, running: FaultySite) -> None:
    running.server.follow(HttpRule(HttpFault.DENIED, RequestKind.LIST_UPLOADS, times=10))

    with pytest.raises(StorePermissionError, match="s3:ListBucketMultipartUploads"):
        list(running.store.unfinished())


def test_writer_that_was_killed_leaves_an_upload_that_is_found(running: FaultySite, empty: Site) -> None:
    running.load(empty.copy())
    code = (
        "import os, pickle, sys; from txntable.storage.open import open_store\n"
        "store = open_store(pickle.load(sys.stdin.buffer))\n"
        "file = store.writer('streamed')\n"
        "file.write(b'x' * 9_000_000)\n"
        "while not any(meta.size for meta in store.unfinished()): file.write(b'x' * 9_000_000)\n"
        "os._exit(7)"
    )

    died = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(running.store.spec), check=False)

    assert died.returncode == 7
    assert left(running.store) == ["streamed"]
    assert running.store.get("streamed") is None

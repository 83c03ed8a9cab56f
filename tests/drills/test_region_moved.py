"""A warehouse is moved to a bucket in another region, and its processes with it.

Lost: nothing.  Not lost: every acknowledged transaction, groups' offsets, transactional ids.  What a process is told
that goes on in the old bucket is nowhere: hence the pause that does not end there.
"""

from __future__ import annotations

import pytest

from tests.drills.stage import Stage

pytestmark = [pytest.mark.s3, pytest.mark.nightly]  # a dozen processes, whose commands those of a restore are
TITLE, THERE = "Moving to another bucket or region", "s3://my-lake-eu/warehouse"


def test_processes_go_on_in_another_region_where_they_were(stage: Stage) -> None:
    stage.create()
    writer = stage.writer("etl")
    writer.transact()
    stage.shell.follow(TITLE)
    for _ in range(2):
        writer.transact()

    told = stage.shell.follow(TITLE, 1)

    assert told["txntable transactions list --state ONGOING --state PREPARED"].count("etl") == 0
    assert stage.client.get_bucket_location(Bucket="my-lake-eu")["LocationConstraint"] == "eu-west-1"
    assert stage.seen(THERE) == stage.seen() == writer.told
    assert stage.offsets("etl", THERE) == len(writer.told)
    moved = stage.writer("etl", THERE, AWS_REGION="eu-west-1")
    moved.transact()
    assert stage.seen(THERE) == [*writer.told, *moved.told]
    assert stage.seen() == writer.told
    stage.shell.run(f"txntable warehouse verify --warehouse {THERE}")

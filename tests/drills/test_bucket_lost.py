"""Everything in the bucket is deleted by mistake, and brought back from the versions that the bucket keeps.

Lost: nothing.  Not lost: every acknowledged transaction, up to the deletion.  A producer that went on meanwhile is told
nothing committed, and goes on afterwards.
"""

from __future__ import annotations

import datetime as dt

import pytest

from tests.drills.stage import Stage

# A process for each object that is undeleted.
pytestmark = [pytest.mark.s3, pytest.mark.nightly]
_SHOWN = "2026-11-22T00:00:00+00:00"


def test_everything_is_back_when_the_deletions_of_a_versioned_bucket_are_undone(stage: Stage) -> None:
    stage.create()
    writer = stage.writer("etl")
    for _ in range(4):
        writer.transact()
    since = dt.datetime.now(dt.UTC).replace(microsecond=0)  # noqa: TID251  the time of the accident, as S3 has it
    told = list(writer.told)
    stage.lose()
    assert len(writer.try_to(1)) == 1
    stage.shell.meant[_SHOWN] = since.isoformat()

    stage.shell.follow("A lost bucket, a lost object")

    assert stage.seen() == told
    stage.shell.run("txntable warehouse verify")
    again = stage.writer("etl")
    again.transact()
    assert stage.seen() == [*told, *again.told]

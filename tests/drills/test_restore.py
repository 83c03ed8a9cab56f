"""A bucket is lost, and its backup restored elsewhere.

Lost: what was committed after the backup's pause, and nothing else; it is told nowhere that these records are gone but
in the group's offsets, which went back with them.  Not lost: every transaction that was acknowledged before the pause,
whole, with its offsets.  A producer of before that reaches the restored warehouse is told nothing committed.
"""

from __future__ import annotations

import pytest

from tests.drills.stage import NEW, Stage, Writer

pytestmark = pytest.mark.s3


def backed_up(stage: Stage) -> Writer:
    stage.create()
    early = stage.writer("early")
    for _ in range(3):
        early.transact()
    stage.shell.follow("Back up")
    stage.shell.follow("Back up", 1)
    return early


@pytest.mark.nightly  # twenty processes; the other one runs a restore in every build
def test_everything_acknowledged_before_the_backup_is_there_after_the_bucket_is_lost(stage: Stage) -> None:
    early = backed_up(stage)
    kept = list(early.told)
    late = stage.writer("late")
    late.transact()
    early.transact()
    stage.lose()
    (stage.shell.folder / "dist").mkdir()

    stage.shell.follow("Restore")

    assert stage.seen(NEW) == kept
    assert stage.offsets("early", NEW) == 3
    after = stage.writer("early", NEW)
    after.transact()
    assert stage.seen(NEW) == [*kept, *after.told]


def test_producer_of_before_is_told_nothing_committed_in_the_restored_bucket(stage: Stage) -> None:
    backed_up(stage)
    zombie = stage.writer("late")
    zombie.transact()
    stage.lose()
    (stage.shell.folder / "dist").mkdir()
    # Its name leads to the restored one: the old location, emptied and filled again.
    stage.shell.run("aws s3 sync s3://my-lake-backup/2026-11-22 s3://my-lake/warehouse")
    stage.shell.run("txntable warehouse fence-all --execute")

    refused = zombie.try_to()

    assert len(refused) == 3
    assert zombie.told == ["late 1"]
    assert stage.seen() == ["early 1", "early 2", "early 3"]
    stage.shell.run("txntable warehouse verify")

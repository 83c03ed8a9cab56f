"""One driver: runs batches, each as a transaction, and dies by SIGKILL at a step of the last one.

What an earlier driver was killed over is recovered by running the same batches again.  Everything that the driver has
started dies with it, as in a container.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from enum import Enum
from pathlib import Path
from typing import Any

from tests.spark.failing_cluster import TOPIC, frame, session
from tests.spark.faulty_store import Fault, arm
from txntable.errors import BatchAlreadyCommittedError
from txntable.format.layout import TRANSACTION_LOG_ROOT, log_folder, segments_root
from txntable.producer.transaction import Transaction
from txntable.runtime.environment import SystemEnvironment
from txntable.storage.local_folder import LocalFolder
from txntable.storage.object_store import PutOutcome, StoreSpec
from txntable.warehouse.warehouse import Warehouse, open_on


class Death(Enum):
    """Where a driver dies."""

    BEFORE_THE_JOB = "before the job"
    IN_A_TASK = "while a task uploads"
    BEFORE_DECISION = "after the job, before the decision"
    AFTER_DECISION = "after the decision"
    AFTER_APPEND = "after the decided segments are appended"
    AFTER_COMPLETION = "after the completion"


# The commit, by its log and its number in the transaction, after which a driver dies.
_COMMITS = {
    Death.AFTER_DECISION: (TRANSACTION_LOG_ROOT, 1),
    Death.AFTER_APPEND: (segments_root(TOPIC), 1),
}


class DyingFolder(LocalFolder):
    """A driver's store, which takes the driver with it after one commit."""

    def __init__(self, spec: StoreSpec) -> None:
        super().__init__(spec)
        self.death: Death | None = None
        self._commits = Counter[str]()

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """Commit; perhaps die."""
        outcome = super().put_if_absent(path, data)
        if self.death in _COMMITS:
            root, number = _COMMITS[self.death]
            self._commits[root] += path.startswith(f"{log_folder(root)}/")
            if self._commits[root] == number:
                die()
        return outcome


def die() -> None:
    """Kill this process, the JVM, and what else it has started."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


def job_count(url: str, label: str) -> int:
    """How many drivers have begun the job of a batch."""
    place = Path(f"{url}-jobs")
    return place.read_text().splitlines().count(label) if place.exists() else 0


def run(spark: Any, warehouse: Warehouse, label: str, death: Death | None) -> None:
    """Run a batch, if it has not committed yet."""
    store = warehouse.store
    assert isinstance(store, DyingFolder)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    try:
        producer.begin_transaction(batch_id=label)
    except BatchAlreadyCommittedError:
        return
    store.death = death
    if death is Death.BEFORE_THE_JOB:
        die()
    if death is Death.IN_A_TASK:
        arm(warehouse.url, Fault.KILLS_DRIVER)
    with Path(f"{warehouse.url}-jobs").open("a") as jobs:
        jobs.write(f"{label}\n")
    Transaction(producer).write(TOPIC, frame(spark, label))
    if death is Death.BEFORE_DECISION:
        die()
    producer.commit_transaction()
    if death is Death.AFTER_COMPLETION:
        die()


def main(url: str, *deaths: str) -> None:
    """Run the batches of all deaths, and meet the last; the death ``NONE`` is none."""
    warehouse = open_on(DyingFolder(StoreSpec(url, durability="page-cache")), SystemEnvironment())
    spark = session("local[1]", {})
    for label in deaths:
        run(spark, warehouse, label, Death.__members__.get(label) if label == deaths[-1] else None)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Random interleavings of writers with compaction, vacuum, checkpoints and jumps of time.

Every run is made from a seed, which a failure names: ``TXNTABLE_SEED=<seed>`` runs it alone,
``TXNTABLE_SEEDS=<first>-<last>`` many.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from compaction.vacuum import vacuum
from tests.simulation.bank import DAY_MS, MONEY, SCRATCH, Actor, Ledger, Teller, check_whole, only_scratch, tags_of
from tests.simulation.rubbish import check_whole as check_files
from tests.simulation.rubbish import data_files, merge, needed_files
from tests.simulation.site import published
from tests.simulation.test_interleavings import base, seeds
from tests.simulation.turns import ManySite, Process, Turns, Weather

WEATHERS = (
    Weather(),
    Weather(fault=0.05, land=0.02),
    Weather(kill=0.003, jump=0.005),
    Weather(fault=0.1, kill=0.002, jump=0.01),
)
# From a policy by which hardly anything is old enough, to one by which everything is.
AGES_MS = (-DAY_MS, 0, 60_000, DAY_MS)
MOST_RUNS = 200 if "TXNTABLE_SEEDS" in os.environ else 32


class Janitor(Actor):
    """Merges, vacuums and cleans up in the middle of whatever goes on."""

    def actions(self) -> list[Callable[[], object]]:
        often = (self.vacuum, self.merge)
        return [*often * 4, self.checkpoint, self.clean, self.complete, self.sleep]

    def vacuum(self) -> None:
        vacuum(self.warehouse, execute=True)
        check_files(self.site)

    def merge(self) -> None:
        for topic in (*MONEY, SCRATCH):
            merge(self.warehouse, topic)

    def complete(self) -> None:
        self.warehouse.complete()


def check_end(site: ManySite, ledger: Ledger) -> None:
    """Nothing that was promised is lost, torn or doubled; every file is there; and what nobody needs can go."""
    site.advance_ms(61_000)
    site.open().complete()
    check_files(site)
    fresh = site.open()
    seen = {topic: published(fresh, topic) for topic in fresh.admin().list_topics()}
    check_whole(ledger, {topic: seen[topic] for topic in MONEY})
    assert ledger.committed() - only_scratch(ledger) <= tags_of({topic: seen[topic] for topic in MONEY})

    site.advance_ms(3 * DAY_MS)
    assert site.open().coordinator().run_once().failures == 0
    site.advance_ms(30 * DAY_MS)
    vacuum(site.open(), execute=True)
    assert data_files(site) == needed_files(site)
    after = site.open()
    assert {topic: published(after, topic) for topic in seen} == seen


def simulate(seed: int, monkeypatch: pytest.MonkeyPatch) -> Turns:
    monkeypatch.setattr("compaction.vacuum.SMALLEST_AGE_MS", AGES_MS[seed % len(AGES_MS)])
    ledger = Ledger()
    turns = Turns(ManySite.like(base()), seed, WEATHERS[seed // len(AGES_MS) % len(WEATHERS)])

    def write(process: Process) -> None:
        Teller(process, ledger).run()

    def tidy(process: Process) -> None:
        Janitor(process, ledger).run()

    for number in range(turns.random.randint(2, 3)):
        turns.start(f"writer {number}", write)
    for number in range(turns.random.randint(2, 3)):
        turns.start(f"janitor {number}", tidy)
    try:
        turns.run()
        check_end(turns.site, ledger)
    except BaseException as error:
        error.add_note(f"TXNTABLE_SEED={seed}")
        raise
    return turns


@pytest.mark.parametrize("part", range(4))
def test_nothing_is_lost_and_no_file_dangles_in_every_interleaving(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in seeds()[:MOST_RUNS][part::4]:
        simulate(seed, monkeypatch)

"""What the worlds come to: ``test_campaign`` sees that their checks hold, this that there is something to check."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.ending import judge
from tests.simulation.every_world import EVERY, about
from tests.simulation.playing import play
from tests.simulation.turns import Turns
from tests.simulation.worlds import WORLDS

SEEDS = range(4)
# What processes of a world have to race for, by the names of the report.
REACHED = {
    "bank": {"entry T COMMIT", "entry T ABORT", "entry S MARKERS", "records Read", "call Look OK"},
    "threads": {"entry T COMMIT", "entry S MARKERS", "call End OK"},
    "founding": {"entry S DELETE TOPIC", "entry T COMMIT"},
    "office": {"entry T CLAIM LEASE", "entry S EXPIRE PRODUCERS", "entry T COMMIT"},
    "exchange": {"entry T PREPARE", "entry T COMMIT", "entry T ABORT"},
    "compaction": {"entry S COMPACT", "call Maintain OK", "records Read"},
    "vacuum": {"entry S COMPACT", "call Maintain OK"},
    "keyed": {"entry S COMPACT", "records Poll", "records Read"},
    "erasing": {"entry S DELETE RECORDS", "entry S COMPACT", "records Poll"},
    "groups": {"entry O JOIN", "entry O SEND OFFSETS", "entry O COMMIT OFFSETS", "records Poll", "call Rewind OK"},
    "migrants": {"entry O SEND OFFSETS", "entry O SETTLE", "records Poll", "call CommitOffsets FAIL"},
    "loners": {"entry O SEND OFFSETS", "entry O SETTLE", "records Poll"},
    "pipeline": {"entry O SEND OFFSETS", "entry O SETTLE", "records Poll"},
}


@pytest.mark.parametrize("name", WORLDS)
def test_world_comes_to_what_it_is_about(name: str) -> None:
    found = Counter[str]()
    for seed in SEEDS:
        found += play(WORLDS[name], seed).counts.reached

    assert REACHED[name] <= found.keys()


def test_history_is_refused_when_a_file_is_gone_that_a_log_names() -> None:
    world, turns = WORLDS["bank"], Turns(None, 0)
    journal = world.played(turns)
    first = next(path for path in turns.site.objects.snapshot() if path.startswith("topics/debit/_segments/p0"))

    turns.site.objects.delete(first)

    with pytest.raises(AssertionError, match="29 dangling"):
        judge(turns.site, journal, world.judged)


@pytest.mark.parametrize("name", EVERY)
def test_world_says_what_happens_in_it(name: str) -> None:
    assert about(name)

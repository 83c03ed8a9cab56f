"""What a simulation's janitors do: compaction, retention, vacuum, checkpoints and cleanup, amid the rest."""

from __future__ import annotations

from tests.checker.operations import Maintain
from tests.simulation.actor import Action, Actor
from tests.simulation.rubbish import check_whole as check_files
from txntable.compaction.compactor import CompactionOptions, compact
from txntable.compaction.vacuum import vacuum


class Compactor(Actor):
    """Compacts again and again, in commits of any size and with little memory."""

    def actions(self) -> list[Action]:
        """Compact, mostly."""
        return [*[self.compact] * 5, self.checkpoint, self.clean, self.sleep, self.pause, self.complete]

    def compact(self) -> None:
        """One run over some topics."""
        options = CompactionOptions(
            memory_bytes=self.random.choice([1 << 28, 1, 4000]), commit_bytes=self.random.choice([1 << 30, 1, 3000])
        )
        topics = None if self.random.random() < 0.5 else [self.random.choice(self.topics)]
        with self.witness.calling(Maintain("compact")):
            compact(self.warehouse, topics, options=options)


class Sweeper(Compactor):
    """Vacuums beside it: no file that is needed goes."""

    def actions(self) -> list[Action]:
        """Vacuum, mostly."""
        return [*[self.vacuum] * 4, self.compact, self.checkpoint, self.clean, self.sleep, self.pause]

    def vacuum(self) -> None:
        """One run, and a look at every file that a log names."""
        with self.witness.calling(Maintain("vacuum")):
            vacuum(self.warehouse, execute=True)
        check_files(self.site)

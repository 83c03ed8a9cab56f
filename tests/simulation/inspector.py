"""Who reads sources, copies and the offsets of groups at one position, while others copy."""

from __future__ import annotations

from tests.checker.operations import Level, Read
from tests.doubles.read_only_store import ReadOnlyStore
from tests.simulation.actor import Action, Actor
from tests.simulation.copying import COPIERS, READERS
from tests.simulation.pipelines import PIPE
from tests.simulation.recorded import look, read
from txntable.errors import OffsetOutOfRangeError
from txntable.warehouse.warehouse import open_on

GROUPS = frozenset({COPIERS, READERS, PIPE})


class Inspector(Actor):
    """In each snapshot a copy has what its group has passed, and nothing else: now, and in the past."""

    most_actions = 7

    def actions(self) -> list[Action]:
        """Look, mostly."""
        return [self.look, self.look, self.look_back, self.look_on, self.scan, self.pause, self.pause]

    def look(self) -> None:
        """Take a snapshot of everything."""
        read(self.witness, self.warehouse, Read(Level.SNAPSHOT, groups=GROUPS), self.topics)
        look(self.witness, self.warehouse.offsets.log)

    def look_on(self) -> None:
        """The same as one who may not write."""
        warehouse = open_on(ReadOnlyStore(self.process.store()), self.site.environment())
        read(self.witness, warehouse, Read(Level.SNAPSHOT, groups=GROUPS, as_of=True), self.topics)
        look(self.witness, warehouse.topic_log(self.random.choice(self.topics)).public)

    def look_back(self) -> None:
        """Take a snapshot of the past; what maintenance took is refused, never shown in part."""
        head = self.warehouse.transactions.refresh()
        position = max(0, head - self.random.choice([0, 1, 2, 5]))
        try:
            read(self.witness, self.warehouse, Read(Level.SNAPSHOT, groups=GROUPS, as_of=True), self.topics, position)
        except OffsetOutOfRangeError:
            return

    def scan(self) -> None:
        """Read topic after topic, below their last stable offsets."""
        read(self.witness, self.warehouse, Read(Level.COMMITTED), self.topics)

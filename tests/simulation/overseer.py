"""What an admin of groups does in the middle of their work: members leave, offsets go back, groups go."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress

from tests.checker.operations import CommitOffsets, FetchOffsets, Maintain, Place
from tests.simulation.actor import Action, Actor
from tests.simulation.copying import COPIERS, IN, READERS
from tests.simulation.journal import Asked
from txntable.errors import NonEmptyGroupError, TransactionCoordinatorFencedError
from txntable.format.records import TopicPartition


class Overseer(Actor):
    """Only of the group that reads at least once are offsets changed: a copy would not be exact any more."""

    def actions(self) -> list[Action]:
        """Let members leave, and move offsets."""
        return [self.expel, self.coordinate, self.set_back, self.forget, self.delete, self.pause, self.pause]

    def coordinate(self) -> None:
        """One round of the job: it expels who is silent."""
        with suppress(TransactionCoordinatorFencedError), self.witness.calling(Maintain("coordinate")):
            self.warehouse.coordinator().run_once()

    def expel(self) -> None:
        """Let all members of a group leave; they find out."""
        self.warehouse.admin().remove_members_from_consumer_group(self.random.choice([COPIERS, READERS]))

    def set_back(self) -> None:
        """Let the readers begin again."""
        admin = self.warehouse.admin()
        with self.witness.calling(FetchOffsets(READERS)) as asked:
            found = admin.list_consumer_group_offsets(READERS)
            offsets = {(place.topic, place.partition): one.offset for place, one in found.items() if one is not None}
            asked.saw(offsets=offsets)
        back = {place: offset // 2 for place, offset in offsets.items()}
        if back:
            with self.witness.calling(CommitOffsets(READERS, back, reset=True)):
                admin.alter_consumer_group_offsets(READERS, {TopicPartition(*p): at for p, at in back.items()})

    def forget(self) -> None:
        """Delete offsets of the readers."""
        places = [(IN, partition) for partition in range(self.warehouse.topic_log(IN).settings().partitions)]
        with self._removing(places):
            self.warehouse.admin().delete_consumer_group_offsets(READERS, [TopicPartition(*p) for p in places])

    def delete(self) -> None:
        """Delete the readers' group, when it is empty."""
        places = [(IN, partition) for partition in range(4)]
        with self._removing(places):
            refused = self.warehouse.admin().delete_consumer_groups([READERS])[READERS]
            if refused is not None and not isinstance(refused, NonEmptyGroupError):
                raise refused

    def _removing(self, places: list[Place]) -> AbstractContextManager[Asked]:
        """Offsets that are removed are as if they were set to 0."""
        return self.witness.calling(CommitOffsets(READERS, dict.fromkeys(places, 0), reset=True))

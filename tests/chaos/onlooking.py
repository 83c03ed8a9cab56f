"""Another engine's reader beside everything: deltalake, which knows nothing of this project."""

from __future__ import annotations

from collections import Counter

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from tests.chaos.life import Life
from tests.chaos.premises import ACCOUNTS, EVENTS
from tests.chaos.program import Program
from tests.checker.operations import Level, Read, Seen
from txntable.format.layout import public_root

_OFFSET = ("_partition", "_base_offset", "_offset_delta")


class Onlooking(Program):
    """Reads public tables again and again: no offset twice; where accounts are kept, nothing that was seen is gone."""

    def __init__(self, life: Life) -> None:
        super().__init__(life)
        self.seen: dict[str, set[Seen]] = {topic: set() for topic in life.scenario.checked.accounts}

    def turn(self) -> None:
        topic = self.chance.choice([*ACCOUNTS, EVENTS])
        with self.life.recorder.calling(Read(Level.COMMITTED)) as call:
            try:
                found = self.records(topic)
            except (OSError, DeltaError):
                if not self.life.site.options:
                    raise
                # Its own requests met a fault of the server, and are not made again; or vacuum, whose days are seconds.
                found = []
            call.saw(records=tuple(found))
        places = Counter((record.place, record.offset) for record in found)
        assert max(places.values(), default=1) == 1, f"an offset is there twice: {places.most_common(1)}"
        if found and topic in self.seen:
            assert self.seen[topic] <= set(found), f"{topic} has lost {self.seen[topic] - set(found)}"
            self.seen[topic] = set(found)
        self.life.rest(500)

    def records(self, topic: str) -> list[Seen]:
        """Return what the public table shows."""
        table = DeltaTable(f"{self.life.site.url}/{public_root(topic)}", storage_options=self.storage_options())
        rows = table.to_pyarrow_table(columns=["value", *_OFFSET]).to_pylist()
        return [
            Seen((topic, row["_partition"]), row["_base_offset"] + row["_offset_delta"], row["value"].decode())
            for row in rows
        ]

    def storage_options(self) -> dict[str, str] | None:
        """Return the store's options as deltalake has them."""
        options = {f"aws_{name}" if name == "region" else name: value for name, value in self.life.site.options.items()}
        return options or None

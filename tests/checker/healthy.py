"""Histories of a warehouse without a fault: generated from a seed, for trying the checker and for measuring it.

A log in memory that keeps every promise: producers with and without transactions, aborts, unknown outcomes, kills,
fences, a copying job, consumers, snapshots, deletion of old records.  Calls overlap: each takes effect somewhere
between its invocation and its return.  It shares no code with the warehouse, nor with the rules.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.checker.evidence import Batch, Decision, Epoch, Evidence, Marker
from tests.checker.operations import (
    Bounds,
    Call,
    CommitOffsets,
    End,
    FetchOffsets,
    Init,
    Level,
    Maintain,
    Operation,
    Outcome,
    Place,
    Poll,
    Read,
    Rewind,
    Seen,
    Send,
    Topics,
    Write,
)

SOURCE, COPY, BANK = "source", "copy", "bank"
GROUP = "copier"
PARTITIONS = 2
PLACES = tuple((topic, partition) for topic in (SOURCE, COPY, BANK) for partition in range(PARTITIONS))
TOPICS = Topics(accounts=frozenset({BANK}), copies={COPY: (SOURCE, GROUP)})


@dataclass(slots=True)
class Row:
    """A record in the log: visible from `commit` on (0: at once; ``None``: open or aborted)."""

    offset: int
    value: str
    commit: int | None


@dataclass(slots=True)
class Partition:
    """A log of records and markers."""

    rows: list[Row] = field(default_factory=list)
    start: int = 0
    high: int = 0
    open: dict[str, int] = field(default_factory=dict)

    @property
    def bounds(self) -> Bounds:
        stable = max(self.start, min(self.open.values(), default=self.high))
        return Bounds(self.start, stable, self.high)


@dataclass(slots=True)
class Running:
    """A transaction under way."""

    name: str
    rows: list[tuple[Place, Row]] = field(default_factory=list)
    offsets: dict[Place, int] = field(default_factory=dict)


@dataclass(slots=True)
class Client:
    """A transactional producer."""

    name: str
    owner: tuple[int, int] = (0, 0)
    running: Running | None = None
    busy_until: int = 0


class Healthy:
    """Makes a history.

    Parameters
    ----------
    seed : int
        Decides everything.
    kept : int, optional
        How many offsets of a partition are kept, about; ``None``: all.  Reads stay short in long histories.
    """

    def __init__(self, seed: int, kept: int | None = None) -> None:
        self.history: list[Operation] = []
        self._chance = random.Random(seed)
        self._kept = kept
        self._now = 10
        self._position = 0
        self._names = 0
        self._log = {place: Partition() for place in PLACES}
        self._clients = [Client(f"id{number}", (number, -1)) for number in range(4)]
        self._copier = Client(GROUP, (9, -1))
        self._committed: dict[Place, int] = {}
        self._offsets_at: list[tuple[int, dict[Place, int]]] = [(0, {})]
        self._positions: dict[str, dict[Place, int]] = {name: {} for name in ("c0", "c1", GROUP)}
        self._assignments: dict[str, int] = defaultdict(int)
        self._decisions: list[Decision] = []
        self._markers: list[Marker] = []
        self._batches: list[Batch] = []
        self._epochs: list[Epoch] = []
        self._sequences: dict[tuple[Place, tuple[int, int]], int] = defaultdict(int)

    def run(self, operations: int) -> Healthy:
        """Make so many operations, about, and the last looks after everything was fenced."""
        steps: list[tuple[Callable[[], None], int]] = [
            (self._transact, 8),
            (self._send_plainly, 2),
            (self._copy, 3),
            (self._poll, 4),
            (self._fetch, 1),
            (self._read, 0 if self._kept is None and operations > 5_000 else 1),
            (self._delete, 0 if self._kept is None else 1),
        ]
        actions, weights = zip(*steps, strict=True)
        while len(self.history) < operations:
            self._now += 3
            self._chance.choices(actions, weights)[0]()
        for client in (*self._clients, self._copier):
            self._now += 20
            self._init(client)
        for level in (Level.COMMITTED, Level.SNAPSHOT):
            self._now += 20
            self._look(level, self._position, final=True)
        return self

    @property
    def evidence(self) -> Evidence:
        """What the store shows."""
        return Evidence(
            epochs=tuple(self._epochs),
            decisions=tuple(self._decisions),
            batches=tuple(self._batches),
            markers=tuple(self._markers),
            bounds={place: log.bounds for place, log in self._log.items()},
            whole=True,
        )

    # -- calls

    def _call(self, process: str, call: Call, outcome: Outcome = Outcome.OK, *, killed: bool = False) -> None:
        begun, ended = self._now - self._chance.randrange(3), self._now + self._chance.randrange(9)
        returned = None if killed else ended
        self.history.append(Operation(process, begun, returned, Outcome.INFO if killed else outcome, call))

    def _turn(self, client: Client) -> bool:
        """Whether a client is free; then it is busy for longer than its call can take."""
        if client.busy_until > self._now:
            return False
        client.busy_until = self._now + 12
        return True

    def _name(self) -> str:
        self._names += 1
        return f"n{self._names}"

    def _likely(self, share: float) -> bool:
        return self._chance.random() < share

    # -- producers

    def _append(self, place: Place, value: str, owner: tuple[int, int] | None, running: Running | None) -> int:
        log = self._log[place]
        row = Row(log.high, value, None if running else 0)
        log.rows.append(row)
        log.high += 1
        if running is not None:
            running.rows.append((place, row))
            log.open.setdefault(running.name, row.offset)
        if owner is not None:
            sequence = self._sequences[place, owner]
            self._sequences[place, owner] += 1
            path = f"{place[0]}{place[1]}-{row.offset}"
            self._batches.append(Batch(place, place[0], path, row.offset, row.offset, 1, True, *owner, sequence))
        return row.offset

    def _send(self, client: Client, writes: list[Write]) -> None:
        running = client.running
        assert running is not None
        told = tuple(
            Write(
                each.place,
                each.value,
                self._append(each.place, each.value, client.owner, running),
                each.source,
                each.amount,
            )
            for each in writes
        )
        self._call(client.name, Send(client.name, running.name, told, *client.owner))

    def _send_plainly(self) -> None:
        place, value = (SOURCE, self._chance.randrange(PARTITIONS)), self._name()
        if self._likely(0.1):
            # Nobody tells whether it was appended.
            if self._likely(0.5):
                self._append(place, value, None, None)
            write = Write(place, value)
            self._call(f"plain{value}", Send(f"plain{value}", None, (write,)), Outcome.INFO, killed=self._likely(0.5))
            return
        offset = self._append(place, value, None, None)
        self._call(f"plain{value}", Send(f"plain{value}", None, (Write(place, value, offset),)))

    def _transact(self) -> None:
        client = self._chance.choice(self._clients)
        if not self._turn(client):
            return
        if client.owner[1] < 0 or self._likely(0.02):
            # A new process takes over; the one before may have been killed in the middle.
            self._init(client)
        elif client.running is None:
            client.running = Running(self._name())
            self._send(client, self._writes())
        elif self._likely(0.4):
            self._send(client, self._writes())
        else:
            self._end(client, commit=self._likely(0.8))

    def _writes(self) -> list[Write]:
        if self._likely(0.5):
            return [Write((SOURCE, self._chance.randrange(PARTITIONS)), self._name()) for _ in range(2)]
        amount = self._chance.randrange(1, 100)
        return [Write((BANK, 0), self._name(), amount=amount), Write((BANK, 1), self._name(), amount=-amount)]

    def _init(self, client: Client) -> None:
        if client.running is not None:
            self._decide(client, committed=False)
        client.owner = client.owner[0], client.owner[1] + 1
        self._position += 1
        self._epochs.append(Epoch(client.name, *client.owner, self._position))
        self._call(f"{client.name}-{client.owner[1]}", Init(client.name, *client.owner))

    def _decide(self, client: Client, *, committed: bool) -> int:
        running, self._position = client.running, self._position + 1
        assert running is not None
        for place in {place for place, _ in running.rows}:
            log = self._log[place]
            del log.open[running.name]
            marker = Marker(place, place[0], *client.owner, committed, self._position, log.high, log.high)
            self._markers.append(marker)
            log.high += 1
        enrolled = frozenset((place[0], place) for place, _ in running.rows)
        self._decisions.append(Decision(client.name, *client.owner, committed, self._position, enrolled))
        if committed:
            for _, row in running.rows:
                row.commit = self._position
            self._committed |= running.offsets
            self._offsets_at.append((self._position, dict(self._committed)))
        client.running, client.owner = None, (client.owner[0], client.owner[1] + 1)
        return self._position

    def _end(self, client: Client, *, commit: bool) -> None:
        running, owner = client.running, client.owner
        assert running is not None
        if commit and self._likely(0.1):
            # Nobody tells whether it was done; whoever comes next finds it open, or ended.
            if self._likely(0.5):
                self._decide(client, committed=True)
            end = End(running.name, True, None, client.name, *owner)
            self._call(client.name, end, Outcome.INFO, killed=self._likely(0.5))
            self._now += 20
            self._init(client)
            return
        position = self._decide(client, committed=commit)
        self._call(client.name, End(running.name, commit, position, client.name, *owner))

    # -- readers

    def _shown(self, place: Place, start: int, end: int, position: int | None) -> list[Seen]:
        rows = (row for row in self._log[place].rows if start <= row.offset < end and row.commit is not None)
        return [Seen(place, row.offset, row.value) for row in rows if position is None or (row.commit or 0) <= position]

    def _read(self) -> None:
        if self._kept is not None and not self._likely(0.05):
            return
        level = self._chance.choice((Level.COMMITTED, Level.SNAPSHOT))
        past = level is Level.SNAPSHOT and self._likely(0.3)
        self._look(level, self._position - (self._chance.randrange(5) if past else 0), as_of=past)

    def _look(self, level: Level, position: int, *, as_of: bool = False, final: bool = False) -> None:
        bounds = {place: log.bounds for place, log in self._log.items()}
        snapshot = level is Level.SNAPSHOT
        records: list[Seen] = []
        for place, each in bounds.items():
            end = each.high if snapshot else each.stable
            records += self._shown(place, each.start, end, position if snapshot else None)
        committed = next(offsets for at, offsets in reversed(self._offsets_at) if at <= max(position, 0))
        call = Read(level, tuple(records), bounds, final=final, as_of=as_of)
        if snapshot:
            offsets = {(GROUP, place): offset for place, offset in committed.items()}
            call = Read(level, tuple(records), bounds, position, offsets, frozenset({GROUP}), final, as_of)
        self._call("reader", call)

    def _poll(self) -> None:
        consumer = self._chance.choice(("c0", "c1"))
        if self._likely(0.05):
            self._assignments[consumer] += 1
            self._positions[consumer] = {}
        self._fetch_records(consumer, None)

    def _fetch_records(self, consumer: str, txn: str | None) -> list[Seen]:
        records: list[Seen] = []
        positions, bounds = self._positions[consumer], {}
        for place in ((SOURCE, 0), (SOURCE, 1)):
            bounds[place] = told = self._log[place].bounds
            # Far behind what is kept a consumer is moved, and knows it.
            if positions.get(place, 0) < told.start:
                self._assignments[consumer] += 1
                positions[place] = told.start
            some = self._shown(place, positions.get(place, 0), told.stable, None)[:5]
            positions[place] = some[-1].offset + 1 if some else max(positions.get(place, 0), told.stable)
            records += some
        self._call(consumer, Poll(consumer, self._assignments[consumer], tuple(records), bounds, txn))
        return records

    def _copy(self) -> None:
        client = self._copier
        if client.owner[1] < 0:
            self._now += 20
            self._init(client)
            return
        self._now += 20
        client.running = running = Running(self._name())
        records = self._fetch_records(GROUP, running.name)
        if not records:
            client.running = None
            return
        self._now += 20
        writes = [Write((COPY, seen.place[1]), self._name(), source=(seen.place, seen.offset)) for seen in records]
        self._send(client, writes)
        self._now += 20
        running.offsets = dict(self._positions[GROUP])
        self._call(GROUP, CommitOffsets(GROUP, running.offsets, running.name))
        self._now += 20
        self._end(client, commit=self._likely(0.8))
        if self._committed != self._positions[GROUP]:
            self._now += 20
            self._positions[GROUP] = dict(self._committed)
            self._assignments[GROUP] += 1
            self._call(GROUP, Rewind(GROUP, GROUP))

    def _fetch(self) -> None:
        self._call("admin", FetchOffsets(GROUP, dict(self._committed), frozenset(self._committed)))

    def _delete(self) -> None:
        self._call("upkeep", Maintain("delete_records"))
        for log in self._log.values():
            lowest = min(log.open.values(), default=log.high)
            log.start = max(log.start, min(lowest, log.high - (self._kept or 0)))
            log.rows = [row for row in log.rows if row.offset >= log.start]

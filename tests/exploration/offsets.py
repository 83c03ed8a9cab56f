"""Programs of consumer groups: offsets in a transaction against another committer, and against a rebalance."""

from __future__ import annotations

import json

from tests.exploration.ends import Look, check_promises, told
from tests.exploration.process_tree import Actor, Code
from tests.exploration.program import Bound, End, Program
from tests.exploration.transactions import TOPICS, base, committing, write
from tests.simulation.site import Site
from tests.unit.admin.group_members import joined
from txntable.coordinator.group_request import GroupMetadata
from txntable.errors import FatalError, RetriableError, TxnTableError
from txntable.format.records import TopicPartition
from txntable.groups.group_client import GroupClient
from txntable.offsets.group_commit import GroupCommit, new_offsets
from txntable.producer.producer import Producer
from txntable.warehouse.warehouse import Warehouse

GROUP, PLACE = "g", TopicPartition("t", 0)


def begun(warehouse: Warehouse, value: str) -> Producer:
    """A producer with a transaction that is about to send offsets."""
    producer = warehouse.producer(value)
    producer.init_transactions()
    producer.begin_transaction()
    return producer


def copying(value: str, offset: int, *, member: bool = False, records: bool = False) -> Code:
    """Commit an offset of the group in a transaction, perhaps with records; as a member, or by the group's name."""

    def run(actor: Actor) -> None:
        warehouse = actor.open()
        owner: GroupMetadata | str = GROUP
        if member:
            mine = joined(warehouse, "m", GROUP, topic="t")
            owner = GroupMetadata(GROUP, "m", mine.generation, None, dict(mine.partitions))
        producer = begun(warehouse, value)
        if records:
            write(producer, value)
        actor.ready()
        copy(actor, producer, (value, offset), owner)

    return run


def copy(actor: Actor, producer: Producer, what: tuple[str, int], owner: GroupMetadata | str) -> None:
    value, offset = what
    try:
        producer.send_offsets_to_transaction({PLACE: offset}, owner)
        committing(actor, value, producer.commit_transaction)
    except FatalError as error:
        actor.tell(error.code)
    except TxnTableError as error:
        actor.tell(error.code)
        try:
            producer.abort_transaction()
            actor.tell(f"refused {value}")
        except TxnTableError as second:
            actor.tell(second.code)


def committing_plainly(value: str, offset: int) -> Code:
    """Commit an offset of the group without a transaction, by the group's name."""

    def run(actor: Actor) -> None:
        warehouse = actor.open()
        settings = warehouse.topic_log("t").settings()
        client = GroupClient(warehouse.offsets, warehouse.completer)
        actor.ready()
        commit = GroupCommit(GROUP, new_offsets({PLACE: offset}, {"t": settings}))
        actor.tell(f"sending {value}")
        try:
            client.commit(commit)
        except RetriableError as error:
            actor.tell(error.code)
        else:
            actor.tell(f"sent {value}")

    return run


def rebalancing(actor: Actor) -> None:
    """The member is removed; another one joins, and so owns the partition."""
    warehouse = actor.open()
    admin = warehouse.admin()
    actor.ready()
    try:
        admin.remove_members_from_consumer_group(GROUP, ["m"])
        actor.tell("removed")
        joined(warehouse, "n", GROUP, topic="t")
        actor.tell("joined")
    except RetriableError as error:
        actor.tell(error.code)


def final_offset(site: Site) -> int | None:
    """What the group has committed."""
    found = site.open().admin().list_consumer_group_offsets(GROUP, [PLACE])[PLACE]
    return None if found is None else found.offset


def requests(look: Look) -> list[int]:
    """The offsets that were asked for, in the order of the requests: pending ones and plain ones."""
    asked: list[int] = []
    for entry in look.offset_log:
        for row in entry.rows():
            if row["_kind"] != "offset" or entry.operation not in {"SEND OFFSETS", "COMMIT OFFSETS"}:
                continue
            stored = json.loads(row["_row"])
            made = [*stored.get("pending", []), *([stored["committed"]] if "committed" in stored else [])]
            asked += [one["offset"] for one in made if one["request"] == entry.version]
    return asked


def settled(end: End) -> set[str]:
    """Two committers of one offset: the latest request that was committed counts."""
    look = Look(end, TOPICS)
    site = look.healed()
    check_promises(look, site, {})
    sent = {"x": 5, "y": 7}

    def those(*words: str) -> set[int]:
        return {offset for value, offset in sent.items() if end.facts & {f"{word} {value}" for word in words}}

    done = those("committed", "sent")
    open_still = those("asked", "sending") - those("refused") - done
    found, order = final_offset(site), requests(look)
    last = next((offset for offset in reversed(order) if offset in done), None)
    assert found == last or found in open_still, f"{found} of {order}, done {done}"
    names = told(end) | {f"requests {order}"}
    if any(entry.operation == "SETTLE" and len(entry.rows()) > 0 for entry in look.offset_log):
        names.add("settled")
    return names


TWO_COMMITTERS = Program(
    "offsets of a transaction against a plain commit",
    base,
    {"x": copying("x", 5), "y": committing_plainly("y", 7)},
    settled,
    frozenset({"requests [5, 7]", "requests [7, 5]", "told: committed x", "told: sent y", "settled"}),
    (Bound(), Bound(kills=1, faults=1)),
)
TWO_TRANSACTIONS = Program(
    "offsets of two transactions",
    base,
    {"x": copying("x", 5), "y": copying("y", 7)},
    settled,
    frozenset({"requests [5, 7]", "requests [7, 5]", "told: committed x", "told: committed y", "settled"}),
    (None, Bound()),
)


def rebalanced(end: End) -> set[str]:
    """Offsets with records, of a member that is removed: both or neither; and nothing once it was removed."""
    look = Look(end, TOPICS)
    site = look.healed()
    check_promises(look, site, {"x": 2})
    found = final_offset(site)
    rows = {entry.version: entry.operation for entry in look.offset_log}
    sent = [version for version, operation in rows.items() if operation == "SEND OFFSETS"]
    left = [version for version, operation in rows.items() if operation == "LEAVE"]
    shown = bool(public_of(look, site))
    assert (found == 5) == shown, f"offset {found}, records {shown}"
    if sent and left:
        assert sent[0] < left[0], "a member that had left has committed"
    names = told(end)
    if sent and left:
        names.add("sent, then removed")
    if left and not sent:
        names.add("removed before it sent")
    return names


def public_of(look: Look, site: Site) -> list[dict]:
    """The rows of the public table."""
    healed = Look(End(site.objects, look.end.time_ms, look.end.told), look.topics)
    return [row for entry in healed.public() for row in entry.rows()]


REBALANCE = Program(
    "offsets of a transaction against a rebalance",
    base,
    {"x": copying("x", 5, member=True, records=True), "group": rebalancing},
    rebalanced,
    frozenset({"sent, then removed", "removed before it sent", "told: committed x", "told: refused x"}),
    (Bound(), Bound(kills=1, faults=1)),
)

PROGRAMS = (TWO_COMMITTERS, TWO_TRANSACTIONS, REBALANCE)

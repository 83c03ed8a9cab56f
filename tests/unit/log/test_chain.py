"""Each entry holds the digest of the one below: what changed in between is refused by everybody (PROTOCOL.md §4.1)."""

from __future__ import annotations

import hashlib
import json

import pytest

from tests.doubles.fault_plan import Fault, Operation, Step, on
from tests.unit.log.world import Process, World, slot
from txntable.errors import DamagedDataError
from txntable.log.outcome import Committed
from txntable.log.time_travel import load_version


def world_with_counts(counts: int) -> tuple[World, Process]:
    world = World()
    process = world.process()
    process.create()
    for _ in range(counts):
        process.count()
    return world, process


def chain_of(world: World, version: int) -> str | None:
    chain: str | None = json.loads(world.objects.snapshot()[slot(version)].data.splitlines()[0])["commitInfo"]["chain"]
    return chain


def digest_of(world: World, version: int) -> str:
    return hashlib.sha256(world.objects.snapshot()[slot(version)].data).hexdigest()


def change(world: World, version: int, old: bytes = b'"COUNT"', new: bytes = b'"COUNU"') -> None:
    """Change an entry so that it can still be read and says the same numbers."""
    data = world.objects.snapshot()[slot(version)].data
    assert old in data
    world.objects.put(slot(version), data.replace(old, new))


def without_chain(world: World, version: int) -> None:
    data = world.objects.snapshot()[slot(version)].data
    world.objects.put(slot(version), data.replace(f',"chain":{json.dumps(chain_of(world, version))}'.encode(), b""))


def test_each_entry_names_the_digest_of_the_one_below() -> None:
    world, process = world_with_counts(3)

    assert chain_of(world, 0) is None
    assert [chain_of(world, version) for version in (1, 2, 3)] == [digest_of(world, below) for below in (0, 1, 2)]
    assert process.log.table.chain == digest_of(world, 3)


def test_all_readers_have_the_same_chain_at_a_version_however_they_came_to_it() -> None:
    world, writer = world_with_counts(2)
    follower = world.process()
    follower.log.refresh()
    writer.log.write_checkpoint()
    writer.count()

    follower.log.refresh()
    cold = world.process().log.refresh()

    assert writer.log.table.chain == follower.log.table.chain == cold.chain == digest_of(world, 3)


def test_log_is_refused_when_a_byte_of_a_middle_entry_was_changed_and_it_is_opened() -> None:
    world, _ = world_with_counts(3)
    change(world, 2)

    with pytest.raises(DamagedDataError, match="the entry below") as refused:
        world.process().log.refresh()

    assert refused.value.facts["path"] == slot(3)


def test_log_is_refused_when_the_entry_of_its_checkpoint_was_changed() -> None:
    world, writer = world_with_counts(3)
    writer.log.write_checkpoint()
    writer.count()
    change(world, 3)

    with pytest.raises(DamagedDataError, match=slot(4)):
        world.process().log.refresh()


def test_version_in_the_past_is_refused_when_an_entry_below_it_was_changed() -> None:
    world, process = world_with_counts(3)
    change(world, 1)

    with pytest.raises(DamagedDataError, match=slot(2)):
        load_version(process.store, "table", 3)


def test_readers_that_saw_two_contents_of_one_version_part_at_the_next_entry() -> None:
    world, _ = world_with_counts(2)
    follower = world.process()
    follower.log.refresh()
    change(world, 2)
    fooled = world.process()

    assert fooled.count() == Committed(3)
    with pytest.raises(DamagedDataError, match=slot(3)):
        follower.log.refresh()
    assert follower.log.table.version == 2
    assert world.process().log.refresh().version == 3, "who saw the new content only goes on"


def test_commit_is_refused_when_its_view_was_of_other_bytes() -> None:
    world, _ = world_with_counts(2)
    deceived = world.process()
    deceived.log.refresh()
    change(world, 2)
    world.process().count()

    with pytest.raises(DamagedDataError, match=slot(3)):
        deceived.count()


def test_own_commit_is_damage_when_it_is_found_with_other_bytes() -> None:
    world, _ = world_with_counts(0)
    process = world.process(on(Operation.PUT_IF_ABSENT, slot(1), Fault.LOST_ANSWER))

    def change_what_landed(step: Step) -> None:
        if step.operation is Operation.GET and slot(1) in world.paths():
            change(world, 1)

    process.store.on_step = change_what_landed

    with pytest.raises(DamagedDataError, match="other bytes"):
        process.count()


def test_late_landing_of_ones_own_commit_is_continued_by_all() -> None:
    world, _ = world_with_counts(0)
    process = world.process(on(Operation.PUT_IF_ABSENT, slot(1), Fault.LATE_LANDING, lands_at=6))

    assert process.count() == Committed(1)

    process.store.land()
    assert world.process().count() == Committed(2)
    assert process.log.refresh().chain == digest_of(world, 2)
    assert chain_of(world, 2) == digest_of(world, 1)


@pytest.mark.parametrize("versions", [(0,), (2,), (0, 1, 2)])
def test_entry_without_a_chain_is_refused(versions: tuple[int, ...]) -> None:
    world, _ = world_with_counts(2)
    for version in versions:
        without_chain(world, version)

    with pytest.raises(DamagedDataError, match=slot(versions[0])):
        world.process().log.refresh()


def test_entry_without_an_incarnation_is_refused() -> None:
    world, _ = world_with_counts(2)
    change(world, 2, b'"log":', b'"operationParameters":{},"txnId":')

    with pytest.raises(DamagedDataError, match=slot(2)):
        world.process().log.refresh()


def test_first_entry_is_refused_when_it_names_one_below() -> None:
    world, _ = world_with_counts(0)
    change(world, 0, b'"chain":null', b'"chain":"' + b"0" * 64 + b'"')

    with pytest.raises(DamagedDataError, match=slot(0)):
        world.process().log.refresh()

"""A writer or reader learns that its log was wiped, restored or created again (PROTOCOL.md §4.2 rule 13)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.doubles.fault_plan import Fault, Operation, Step, on
from tests.doubles.memory_store import MemoryStore
from tests.unit.log.pasts import Objects, log_of, plant, recovering, restored, wiped
from tests.unit.log.world import (
    DAY_MS,
    GUARD_MS,
    ROOT,
    Nothing,
    Process,
    World,
    creation,
    file,
    others_go_on_and_clean_up,
    slot,
)
from txntable.errors import StorePermissionError, StoreUnavailableError, WarehouseReplacedError
from txntable.log.delta_log import DeltaLog
from txntable.log.outcome import CommitOutcome, Committed, Unknown

PUT = Operation.PUT_IF_ABSENT


HAPPENINGS: dict[str, Callable[[World, list[Objects]], object]] = {
    "it is gone": lambda world, past: restored(world, {}),
    "it was created again": lambda world, past: wiped(world),
    "it was created again and grew longer": lambda world, past: wiped(world, 9),
    "it was created again and is as long": lambda world, past: wiped(world, 5),
    "it was created again and grew by one less": lambda world, past: wiped(world, 4),
    "it was restored": lambda world, past: restored(world, past[3]),
    "it was restored and went on": lambda world, past: restored(world, past[3], 4),
}


@pytest.mark.parametrize("what", HAPPENINGS.values(), ids=HAPPENINGS)
@pytest.mark.parametrize("fault", [None, Fault.LOST_ANSWER, Fault.EXISTS_LOST, Fault.FAIL_BEFORE], ids=str)
def test_nothing_is_told_committed_once_the_log_is_another(
    what: Callable[[World, list[Objects]], object], fault: Fault | None
) -> None:
    world, writer, past = log_of(5)
    what(world, past)
    if fault is not None:
        writer.store.plan = (on(PUT, slot(6), fault),)

    with pytest.raises(WarehouseReplacedError):
        writer.count()


@pytest.mark.parametrize("call", ["commit", "refresh", "ensure_fresh", "write_checkpoint"])
def test_view_that_has_lost_its_log_asks_for_nothing_any_more(call: str) -> None:
    world, writer, _ = log_of(5)
    wiped(world)
    with pytest.raises(WarehouseReplacedError):
        writer.count()
    before = len(writer.store.steps)

    for _ in range(3):
        with pytest.raises(WarehouseReplacedError, match="open it anew"):
            writer.count() if call == "commit" else getattr(writer.log, call)()

    assert len(writer.store.steps) == before


@pytest.mark.parametrize("what", [HAPPENINGS["it was created again"], HAPPENINGS["it was restored"]])
def test_lost_log_is_no_answer_to_a_reader_after_a_guard_also_where_no_entry_comes(
    what: Callable[[World, list[Objects]], object],
) -> None:
    world, writer, past = log_of(5)
    what(world, past)
    for _ in range(3):
        assert writer.log.refresh().version == 5, "the slot above is free, as at any tail"
        world.advance_ms(GUARD_MS // 3 + 1)

    with pytest.raises(WarehouseReplacedError):
        writer.log.refresh()


@pytest.mark.parametrize("length", [4, 5, 6, 9])
def test_stale_view_does_not_take_another_log_for_its_own(length: int) -> None:
    world, writer, _ = log_of(5)
    wiped(world, length)
    world.advance_ms(GUARD_MS)

    with pytest.raises(WarehouseReplacedError):
        writer.log.refresh()


@pytest.mark.parametrize("length", [3, 5, 9])
def test_stale_view_does_not_take_a_restored_log_for_its_own(length: int) -> None:
    world, writer, past = log_of(5)
    world.objects.restore(past[3])
    for _ in range(length - 3):
        world.process().count()
    world.advance_ms(GUARD_MS)

    with pytest.raises(WarehouseReplacedError):
        writer.log.refresh()


def test_view_whose_log_is_wiped_while_it_follows_is_told_so_and_not_of_damage() -> None:
    """What it stands on by then is its own: another process of the past has left it there, and a third one more."""
    world, first, _ = log_of(2)
    reader = world.process()
    reader.log.refresh()
    for _ in range(4):
        first.count()
    second = world.process()
    second.count()

    def wipe(step: Step) -> None:
        if step.path == slot(7) and slot(6) in world.paths():
            wiped(world)
            plant(world, first)
            plant(world, second)

    reader.store.on_step = wipe
    with pytest.raises(WarehouseReplacedError):
        reader.log.refresh()

    assert {slot(7), slot(8)} <= set(world.paths())


@pytest.mark.parametrize("behind", [4, 6, 12])
def test_follower_that_is_far_behind_does_not_take_what_was_planted_after_a_wipe_for_its_head(behind: int) -> None:
    """It follows in several windows: what each of them brought is believed when an entry of before is still there."""
    world, first, _ = log_of(2)
    reader = world.process()
    reader.log.refresh()
    for _ in range(behind):
        first.count()

    def wipe(step: Step) -> None:
        if step.path == slot(2 + behind + 1) and slot(2 + behind) in world.paths():
            wiped(world)
            plant(world, first)

    reader.store.on_step = wipe
    with pytest.raises(WarehouseReplacedError):
        reader.log.refresh()


def test_process_of_the_past_does_not_build_on_what_another_of_the_past_has_planted() -> None:
    """The entry below its own is there then, and is the one that it knows: only what stands below that tells."""
    world, first, _ = log_of(5)
    second = world.process()
    second.log.refresh()
    world.objects.restore({})
    with pytest.raises(WarehouseReplacedError):
        first.count()
    assert slot(6) in world.paths()

    with pytest.raises(WarehouseReplacedError):
        second.count()
    assert slot(7) not in world.paths()


def test_commit_is_unknown_when_the_entry_below_can_not_be_asked_for() -> None:
    class Refusing(MemoryStore):
        def get_range(self, path: str, start: int, length: int) -> bytes | None:
            raise StorePermissionError("no", path=path)

    world, writer, _ = log_of(2)
    log = writer.open_log(Refusing(world.objects))
    log.refresh()

    assert isinstance(log.commit("COUNT", lambda table: [file("f")]), Unknown)


def test_commit_costs_one_look_beside_its_put_and_idle_polls_none() -> None:
    _, writer, _ = log_of(3)
    writer.store.steps.clear()
    before = writer.store.requests["GET"]

    writer.count()
    assert [step.operation for step in writer.store.steps] == [PUT]
    assert writer.store.requests["GET"] == before + 1

    before = writer.store.requests["GET"]
    writer.log.refresh()
    assert writer.store.requests["GET"] == before + 1


SEGMENTS = f"{ROOT}/_segments"


def creates_segments(writer: Process) -> CommitOutcome:
    """Commit to a log that this process opens only now, and that is decided on what it knows of the first one."""
    segments = DeltaLog(writer.context, SEGMENTS, Nothing())
    segments.stand_beside(writer.log)
    return segments.commit("CREATE", lambda table: creation())


def test_log_is_not_written_by_who_knows_another_one_that_is_gone() -> None:
    world, writer, _ = log_of(5)
    wiped(world)

    with pytest.raises(WarehouseReplacedError):
        creates_segments(writer)

    assert not [path for path in world.paths() if path.startswith(SEGMENTS)]


def test_log_is_written_by_who_knows_another_one_of_which_what_it_knew_is_cleaned_up() -> None:
    world, writer, _ = log_of(5)
    others_go_on_and_clean_up(world, world.process())
    writer.environment.advance_ms(4 * DAY_MS)

    assert creates_segments(writer) == Committed(0)
    assert writer.log.table.number("counter") == 206


@pytest.mark.parametrize("call", ["refresh", "commit to another log"])
def test_late_put_into_the_slot_of_what_a_stale_view_knew_is_no_replacement(call: str) -> None:
    world, writer, past = log_of(5)
    late = past[5][slot(5)].data.replace(b'"commitId":"', b'"commitId":"late')
    others_go_on_and_clean_up(world, world.process())
    world.objects.put(slot(5), late)
    writer.environment.advance_ms(4 * DAY_MS)

    if call == "refresh":
        writer.log.refresh()
    else:
        assert creates_segments(writer) == Committed(0)

    assert writer.log.table.number("counter") == 206


def test_log_is_asked_for_again_when_a_thread_reads_another_one_that_may_be_cleaned_up() -> None:
    world, writer, _ = log_of(5)
    others_go_on_and_clean_up(world, world.process())
    writer.environment.advance_ms(4 * DAY_MS)
    with ThreadPoolExecutor(1) as other_thread, writer.log.lock:
        call = other_thread.submit(creates_segments, writer)
        with pytest.raises(StoreUnavailableError, match="call again"):
            # Broken code would wait for this lock: it is to fail, not to hang.
            call.result(timeout=60)


def test_view_that_is_opened_anew_in_a_cleanup_is_told_of_no_replacement() -> None:
    world, reader, _ = log_of(8)
    other = world.process()
    reader.environment.advance_ms(4 * DAY_MS)

    def clean_up_meanwhile(step: Step) -> None:
        if step.path == slot(4):
            reader.store.on_step = None
            other.log.refresh()
            other.log.write_checkpoint()
            for version in range(6):
                other.store.delete([slot(version)])

    reader.store.on_step = clean_up_meanwhile

    assert reader.log.refresh().number("counter") == 8


def test_log_that_is_restored_while_it_is_opened_is_read_again() -> None:
    world, writer, past = log_of(12)
    reader = world.process()

    def restore_meanwhile(step: Step) -> None:
        if step.path == slot(9):
            reader.store.on_step = None
            restored(world, past[3])
            # A process of before has put its one entry, right above what it knew.
            with pytest.raises(WarehouseReplacedError):
                writer.count()

    reader.store.on_step = restore_meanwhile

    assert reader.log.refresh().version == 3


def test_log_that_is_restored_and_fenced_while_it_is_opened_is_read_again() -> None:
    """What was read of the old log and what of the new one make no view: the new one's entry is void to the old one."""
    world, _, past = log_of(11)
    reader = world.process()

    def restore_meanwhile(step: Step) -> None:
        if step.path == slot(12):
            reader.store.on_step = None
            restored(world, past[3])
            recovering(world.process()).fence()
            for _ in range(8):
                world.process().count()

    reader.store.on_step = restore_meanwhile
    reader.log.refresh()

    assert reader.log.table.log == world.process().log.refresh().log
    reader.count()
    assert world.process().log.refresh().number("counter") == 12

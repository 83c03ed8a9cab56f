"""Each kind of damage is made, and is found, named with its object, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.doubles.fault_plan import Fault, Operation, on
from tests.simulation.site import Site
from tests.unit.admin.administering import decide_only, lose_id, opened, replace_row, row_of
from tests.unit.producer.producing import row, started, store_of
from tests.unit.verification.stored import U, damages, fill, kinds, only, other_number, write
from txntable.coordinator.transaction_state import TransactionState
from txntable.format.layout import (
    OFFSET_LOG_ROOT,
    TRANSACTION_LOG_ROOT,
    checkpoint_path,
    commit_path,
    marker_path,
)
from txntable.log.actions import Action, Txn
from txntable.log.checkpoint import encode_checkpoint
from txntable.log.constant_file import CONSTANT_FILE
from txntable.log.keyed_table import find_row, keyed_add
from txntable.log.table_state import TableState
from txntable.partition.markers import Control, Marker, marker_add
from txntable.partition.offsets import DECIDED_THROUGH, NEXT_OFFSET, next_offset, per_partition, per_topic
from txntable.producer.producer import Producer
from txntable.topics.topic_log import TopicLog
from txntable.transactions.transaction_rows import ID_KIND, id_columns
from txntable.verification.damage import Damage, DamageKind
from txntable.warehouse.warehouse import Warehouse

NOT_JUDGED = "no entry above it was judged"

# -- any log ----------------------------------------------------------------------------------


def delete_all(site: Site, folder: str) -> None:
    for meta in site.objects.below(folder):
        site.objects.delete(meta.path)


def test_log_that_is_gone_is_found(site: Site, warehouse: Warehouse) -> None:
    delete_all(site, f"{OFFSET_LOG_ROOT}/_delta_log")

    assert only(site) == (DamageKind.LOG_MISSING, OFFSET_LOG_ROOT)


def test_segment_log_that_is_gone_is_found(site: Site, warehouse: Warehouse) -> None:
    delete_all(site, f"{U}/_delta_log")

    assert only(site) == (DamageKind.LOG_MISSING, U)


def test_log_without_its_beginning_is_found(site: Site, warehouse: Warehouse) -> None:
    site.objects.delete(commit_path(U, 0))

    assert (DamageKind.LOG_BEGINNING, commit_path(U, 1)) in {(one.kind, one.path) for one in damages(site)}


@pytest.mark.parametrize("root", [TRANSACTION_LOG_ROOT, OFFSET_LOG_ROOT, U, "topics/u"])
def test_entry_that_is_gone_is_found(site: Site, warehouse: Warehouse, root: str) -> None:
    site.objects.delete(commit_path(root, 2))

    assert (DamageKind.ENTRY_MISSING, commit_path(root, 2)) in {(one.kind, one.path) for one in damages(site)}


@pytest.mark.parametrize("root", [TRANSACTION_LOG_ROOT, OFFSET_LOG_ROOT, U, "topics/u"])
def test_entry_that_cannot_be_read_is_found(site: Site, warehouse: Warehouse, root: str) -> None:
    cut(site, commit_path(root, 1))

    assert (DamageKind.ENTRY_UNREADABLE, commit_path(root, 1)) in {(one.kind, one.path) for one in damages(site)}


def cut(site: Site, path: str) -> None:
    found = site.objects.get(path)
    assert found is not None
    site.objects.put(path, found.data[:-2])


@pytest.mark.parametrize("spoil", [cut, lambda site, path: site.objects.delete(path)], ids=["cut", "gone"])
@pytest.mark.parametrize("root", [TRANSACTION_LOG_ROOT, OFFSET_LOG_ROOT, U, "topics/u"])
def test_damage_above_a_damaged_entry_is_found_from_the_next_checkpoint_on(
    site: Site, warehouse: Warehouse, root: str, spoil: Callable[[Site, str], None]
) -> None:
    topic = warehouse.topic_log("u")
    logs: dict[str, Any] = {TRANSACTION_LOG_ROOT: warehouse.transactions.log, OFFSET_LOG_ROOT: warehouse.offsets.log}
    log = {**logs, U: topic.segments, "topics/u": topic.public}[root]
    log.refresh()
    version = log.write_checkpoint()
    fill(site)
    for damaged in (1, version + 2):
        spoil(site, commit_path(root, damaged))

    below, above = sorted(damages(site), key=lambda one: one.path)

    assert [below.path, above.path] == [commit_path(root, 1), commit_path(root, version + 2)]
    assert [NOT_JUDGED in one.problem for one in (below, above)] == [False, True]
    assert [f"begin at the checkpoint of version {version}" in one.remedy for one in (below, above)] == [True, False]


def test_entry_below_one_that_cannot_be_read_is_told_as_gone(site: Site, warehouse: Warehouse) -> None:
    site.objects.delete(commit_path(U, 1))
    site.objects.put(commit_path(U, 2), b"{")

    assert (DamageKind.ENTRY_MISSING, commit_path(U, 1)) in {(one.kind, one.path) for one in damages(site)}


@pytest.mark.parametrize("root", [TRANSACTION_LOG_ROOT, OFFSET_LOG_ROOT, U, "topics/u"])
def test_entry_that_was_changed_is_found_by_the_one_above(site: Site, warehouse: Warehouse, root: str) -> None:
    found = site.objects.get(commit_path(root, 1))
    assert found is not None
    site.objects.put(commit_path(root, 1), found.data.replace(b'"engineInfo":"', b'"engineInfo":"x', 1))

    assert (DamageKind.CHAIN, commit_path(root, 2)) in {(one.kind, one.path) for one in damages(site)}


def _row_less(state: TableState) -> TableState:
    state.files.remove(next(iter(state.files)).path)
    return state


def _other_chain(state: TableState) -> TableState:
    return replace(state, chain="0" * 64)


@pytest.mark.parametrize("change", [other_number, _row_less, _other_chain])
def test_checkpoint_that_the_entries_do_not_fold_to_is_found(
    site: Site, warehouse: Warehouse, change: Callable[[TableState], TableState]
) -> None:
    version = warehouse.transactions.log.write_checkpoint()
    path = checkpoint_path(TRANSACTION_LOG_ROOT, version)
    site.objects.put(path, encode_checkpoint(change(site.open().transactions.log.table)))

    assert only(site) == (DamageKind.CHECKPOINT, path)


def test_checkpoint_that_cannot_be_read_is_found(site: Site, warehouse: Warehouse) -> None:
    version = warehouse.transactions.log.write_checkpoint()
    path = checkpoint_path(TRANSACTION_LOG_ROOT, version)
    site.objects.put(path, b"PAR1")

    assert only(site) == (DamageKind.CHECKPOINT, path)


def test_table_of_another_warehouse_is_found(site: Site, warehouse: Warehouse) -> None:
    log = warehouse.offsets.log

    def decide(table: TableState) -> Sequence[Action]:
        assert table.metadata is not None
        return [replace(table.metadata, table_id="0" * 32)]

    log.commit("TEST", decide)

    assert only(site) == (DamageKind.GUARD, commit_path(OFFSET_LOG_ROOT, log.refresh().next_version - 1))


def test_number_that_falls_is_found(site: Site, warehouse: Warehouse) -> None:
    warehouse.offsets.refresh()
    warehouse.offsets.log.commit("TEST", lambda table: [Txn(DECIDED_THROUGH, table.number(DECIDED_THROUGH) - 1)])

    assert DamageKind.NUMBER in kinds(site)


# -- T ----------------------------------------------------------------------------------------


def test_row_that_another_version_wrote_is_found(site: Site, warehouse: Warehouse) -> None:
    replace_row(warehouse, replace(row_of(warehouse), timeout_ms=1))

    assert only(site)[0] is DamageKind.ROW


def test_producer_id_that_two_have_is_found(site: Site, warehouse: Warehouse) -> None:
    started(warehouse, "other")
    seen = row_of(warehouse, "other")
    replace_row(warehouse, replace(seen, producer_id=row_of(warehouse).producer_id, position=seen.position + 1))

    assert DamageKind.ROW in kinds(site)


def test_illegal_transition_is_found(site: Site, warehouse: Warehouse) -> None:
    seen = row_of(warehouse)
    leapt = replace(seen, state=TransactionState.EMPTY, producer_epoch=seen.producer_epoch + 5)
    replace_row(warehouse, replace(leapt, position=seen.position + 1))

    assert only(site)[0] is DamageKind.TRANSITION


def test_open_transaction_that_nothing_ends_is_found(site: Site, warehouse: Warehouse) -> None:
    opened(warehouse, "open")
    lose_id(warehouse, "open")

    assert kinds(site) == {DamageKind.TRANSITION, DamageKind.HANGING}


def test_row_of_another_size_is_found(site: Site, warehouse: Warehouse) -> None:
    key = row_of(warehouse).key

    def decide(table: TableState) -> Sequence[Action]:
        add = find_row(table, ID_KIND, key)
        assert add is not None
        seen = row_of(warehouse)
        return [replace(keyed_add(id_columns(replace(seen, timeout_ms=2, position=table.next_version)), 0), size=178)]

    warehouse.transactions.commit("TEST", decide)

    assert kinds(site) >= {DamageKind.ROW}


# -- T and the topics -------------------------------------------------------------------------


def marker(u: TopicLog, position: int, *, ends: int = 7) -> Callable[[TableState], Sequence[Action]]:
    topic_id = u.settings().topic_id

    def decide(table: TableState) -> Sequence[Action]:
        offset = next_offset(table.numbers, topic_id, 0)
        path = marker_path(topic_id, 0, ends)
        one = Marker(path, 0, ends, Control.COMMIT, position, 0, 0, {0: offset})
        return [marker_add(topic_id, one, 0), Txn(per_partition(NEXT_OFFSET, topic_id, 0), offset + 1)]

    return decide


def test_marker_that_nobody_decided_is_found(site: Site, warehouse: Warehouse, u: TopicLog) -> None:
    path = marker_path(u.settings().topic_id, 0, 7)
    warehouse.store.put(f"{U}/{path}", CONSTANT_FILE)
    write(u, marker(u, 1))

    assert only(site) == (DamageKind.MARKER, f"{U}/{path}")


def test_marker_of_a_decision_that_the_transaction_log_has_lost_is_found(
    site: Site, warehouse: Warehouse, u: TopicLog
) -> None:
    path = marker_path(u.settings().topic_id, 0, 7)
    warehouse.store.put(f"{U}/{path}", CONSTANT_FILE)
    write(u, marker(u, 10**6))

    assert only(site) == (DamageKind.LOG_END, TRANSACTION_LOG_ROOT)


def test_decision_that_will_never_get_its_marker_is_found(site: Site, warehouse: Warehouse, u: TopicLog) -> None:
    decide_only(warehouse, opened(warehouse, "lost"))
    name = per_topic(DECIDED_THROUGH, u.settings().topic_id)
    write(u, lambda table: [Txn(name, 10**6)])

    assert DamageKind.MARKER_MISSING in kinds(site)


def decide_carried(warehouse: Warehouse, producer: Producer) -> None:
    """Commit what the decision itself carries, and leave the completion to others."""
    store_of(warehouse).plan = (on(Operation.PUT_IF_ABSENT, f"{U}/_delta_log", Fault.FAIL_BEFORE, occurrence=None),)
    producer.commit_transaction()
    store_of(warehouse).plan = ()


def test_decision_whose_segments_were_not_appended_is_found(site: Site, warehouse: Warehouse, u: TopicLog) -> None:
    producer = started(warehouse, "lost")
    producer.begin_transaction()
    producer.send("u", row=row("carried"))
    decide_carried(warehouse, producer)
    decided = row_of(warehouse, "lost")
    assert decided.decision is not None
    topic_id, ends = u.settings().topic_id, decided.decision.epoch

    def decide(table: TableState) -> Sequence[Action]:
        offset = next_offset(table.numbers, topic_id, 0)
        path, position = marker_path(topic_id, decided.producer_id, ends), decided.position
        one = Marker(path, decided.producer_id, ends, Control.COMMIT, position, 0, 0, {0: offset})
        return [
            marker_add(topic_id, one, 0),
            Txn(per_partition(NEXT_OFFSET, topic_id, 0), offset + 1),
            Txn(per_topic(DECIDED_THROUGH, topic_id), position),
        ]

    warehouse.store.put(f"{U}/{marker_path(topic_id, decided.producer_id, ends)}", CONSTANT_FILE)
    write(u, decide)

    assert only(site)[0] is DamageKind.CARRIED


def test_work_that_is_owed_of_what_is_said_to_be_complete_is_found(site: Site, warehouse: Warehouse) -> None:
    producer = started(warehouse, "lost")
    producer.begin_transaction()
    producer.send("u", row=row("carried"))
    decide_carried(warehouse, producer)
    seen = row_of(warehouse, "lost")
    replace_row(warehouse, replace(seen.known_complete(), position=seen.position + 1))

    assert {(one.kind, one.path) for one in damages(site)} >= {
        (DamageKind.INCOMPLETE, U),
        (DamageKind.INCOMPLETE, "topics/u"),
    }


def test_end_of_a_public_table_that_is_gone_is_found_once_and_published_again(site: Site, warehouse: Warehouse) -> None:
    entries = [meta.path for meta in site.objects.below("topics/u/_delta_log") if meta.path.endswith(".json")]
    for path in sorted(entries)[-3:]:
        site.objects.delete(path)

    (found,) = damages(site)
    site.open().coordinator().run_once()

    assert (found.kind, found.path) == (DamageKind.PUBLICATION, "topics/u")
    assert "restore the whole warehouse" not in found.remedy
    assert damages(site) == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda site: site.objects.delete(commit_path("topics/u", 0)),
        lambda site: site.objects.delete(commit_path("topics/u", 2)),
        lambda site: site.objects.put(commit_path("topics/u", 2), b"{"),
    ],
    ids=["beginning", "missing", "unreadable"],
)
def test_log_of_a_public_table_is_made_again_as_the_remedy_of_a_damaged_entry_says(
    site: Site, warehouse: Warehouse, spoil: Callable[[Site], None]
) -> None:
    spoil(site)
    told = damages(site)
    delete_all(site, "topics/u/_delta_log")
    gone = damages(site)
    site.open().coordinator().run_once()

    assert all("delete that log whole" in one.remedy for one in told if one.path.startswith("topics/u/_delta_log/"))
    assert {one.kind for one in gone} == {DamageKind.PUBLICATION}
    assert damages(site) == []


@pytest.mark.parametrize("kind", [DamageKind.ROW, DamageKind.NUMBER, DamageKind.GUARD, DamageKind.CHAIN])
def test_remedy_of_an_entry_is_milder_in_a_public_table_than_in_a_log_that_it_is_made_from(kind: DamageKind) -> None:
    public, segments = (Damage(kind, commit_path(root, 2), "") for root in ("topics/_segments", U))

    assert "delete that log whole" in public.remedy
    assert "delete that log whole" not in segments.remedy


@pytest.mark.parametrize("root", [TRANSACTION_LOG_ROOT, OFFSET_LOG_ROOT, U])
def test_no_log_that_nothing_is_made_from_is_to_be_deleted_by_a_remedy(
    site: Site, warehouse: Warehouse, root: str
) -> None:
    site.objects.delete(commit_path(root, 2))

    assert not any("delete that log whole" in one.remedy for one in damages(site))


def test_transaction_state_of_the_fixture_is_complete(warehouse: Warehouse) -> None:
    assert row_of(warehouse).state is TransactionState.COMPLETE_COMMIT

"""Changing a warehouse's settings: what is refused, who goes by them, and that nothing else changes."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tests.doubles.fault_plan import WRITES
from tests.doubles.stepping_store import SteppingStore
from tests.simulation.site import Site
from tests.unit.producer.producing import accounts, started
from tests.unit.upkeep.coordinating import DAY_MS, committed, opened, run_once
from txntable.admin.warehouse_admin import MEANINGS, meanings
from txntable.errors import InvalidConfigError, InvalidRequestError, InvalidTransactionTimeoutError
from txntable.format.warehouse_settings import WarehouseSettings, altered_settings, settings_from

HOUR_MS = 3_600_000


def alter(site: Site, **changes: int | None) -> WarehouseSettings:
    return site.open().admin().alter_warehouse(changes)


def test_settings_are_changed_for_the_warehouse_its_logs_and_all_topics(site: Site) -> None:
    committed(site)

    alter(site, vacuum_retention_ms=2 * DAY_MS, snapshot_retention_ms=60_000)

    warehouse = site.open()
    assert warehouse.settings() == WarehouseSettings(vacuum_retention_ms=2 * DAY_MS, snapshot_retention_ms=60_000)
    metadata = warehouse.offsets.log.refresh().metadata
    assert metadata is not None
    assert settings_from(metadata.configuration) == warehouse.settings()
    for log in (warehouse.transactions.log, warehouse.offsets.log, warehouse.topic_log("t").public):
        assert log.refresh().deleted_files_retention_ms == 2 * DAY_MS
    assert warehouse.topic_log("t").segments.refresh().deleted_files_retention_ms == 3 * DAY_MS
    assert accounts(site, "t") == ["etl"]
    assert warehouse.transactions.row("etl") is not None


def test_what_is_not_named_stays_and_none_is_the_default(site: Site) -> None:
    alter(site, vacuum_retention_ms=2 * DAY_MS, offsets_retention_ms=5)

    assert alter(site, offsets_retention_ms=None) == WarehouseSettings(vacuum_retention_ms=2 * DAY_MS)


def test_same_change_again_and_a_dry_run_write_nothing(site: Site) -> None:
    alter(site, offsets_retention_ms=5)
    warehouse = site.open()
    admin = warehouse.admin()

    assert admin.alter_warehouse({"offsets_retention_ms": 5}).offsets_retention_ms == 5
    assert admin.alter_warehouse({"offsets_retention_ms": 6}, validate_only=True).offsets_retention_ms == 6

    assert isinstance(warehouse.store, SteppingStore)
    written = [step.path for step in warehouse.store.steps if step.operation in WRITES]
    assert set(written) <= {"system/clock"}
    assert site.open().settings().offsets_retention_ms == 5


@pytest.mark.parametrize(
    "changes",
    [
        {"colour": 3},
        {"vacuum_retention_ms": DAY_MS - 1},
        {"vacuum_retention_ms": "3"},
        {"vacuum_retention_ms": True},
        {"snapshot_retention_ms": 2**63},
        {"transaction_max_timeout_ms": 8 * DAY_MS},
        # The topic's own settings contradict it.
        {"transaction_max_timeout_ms": 2 * HOUR_MS},
    ],
)
def test_settings_that_a_creation_or_a_topic_would_refuse_are_refused_and_nothing_changes(
    site: Site, changes: dict
) -> None:
    config = {"cleanup.policy": "delete", "retention.ms": str(HOUR_MS)}
    site.open().admin().create_topic("short", config=config)

    with pytest.raises(InvalidConfigError):
        site.open().admin().alter_warehouse(changes)
    with pytest.raises(InvalidRequestError):
        site.open().admin().alter_warehouse([("vacuum_retention_ms", 1)])  # type: ignore[arg-type]

    assert site.open().settings() == WarehouseSettings()


def test_open_transaction_keeps_its_timeout_and_its_id_gets_the_new_greatest_at_its_next_init(site: Site) -> None:
    producer = opened(site.open())
    alter(site, transaction_max_timeout_ms=10_000)
    site.advance_ms(30_000)
    assert run_once(site).aborted == 0
    producer.commit_transaction()

    with pytest.raises(InvalidTransactionTimeoutError):
        started(site.open(), transaction_timeout_ms=60_000)
    site.open().admin().fence_producers(["etl"])

    row = site.open().admin().describe_transactions(["etl"])["etl"]
    assert (row.timeout_ms, accounts(site, "t")) == (10_000, ["etl"])


def test_job_that_runs_on_goes_by_the_new_settings_in_its_next_round(site: Site) -> None:
    committed(site)
    coordinator = site.open().coordinator()
    site.advance_ms(2 * DAY_MS)
    assert coordinator.run_once().expired_transactional_ids == 0

    alter(site, transactional_id_expiration_ms=DAY_MS)

    assert coordinator.run_once().expired_transactional_ids == 1


def test_every_setting_says_what_its_change_means() -> None:
    settings = WarehouseSettings()

    assert MEANINGS.keys() == {each.name for each in fields(settings)}
    assert meanings(settings, settings) == []
    assert [line.split(":")[0] for line in meanings(settings, WarehouseSettings(offsets_retention_ms=3))] == [
        "offsets_retention_ms"
    ]


def test_mistyped_setting_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(InvalidConfigError, match=r"did you mean offsets_retention_ms\?"):
        altered_settings(WarehouseSettings(), {"offset.retention.ms": 5})

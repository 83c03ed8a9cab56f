"""What is decoded once in a run is what the real code decodes, and no reader changes it for another."""

from __future__ import annotations

from tests.simulation.decoding import decoded_once
from tests.simulation.site import TWO_COLUMNS, Site
from txntable.warehouse.warehouse import Warehouse

TOPIC = "accounts"


def site_with_a_checkpoint() -> Site:
    """A topic with a record, and a checkpoint of its partition log."""
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic(TOPIC, partitions=1, schema=TWO_COLUMNS)
    append(warehouse, "ann")
    log = warehouse.topic_log(TOPIC).segments
    log.refresh()
    log.write_checkpoint()
    return site


def append(warehouse: Warehouse, account: str) -> None:
    with warehouse.producer() as plain:
        plain.send(TOPIC, row={"account": account, "amount": 1})


def accounts(warehouse: Warehouse) -> list[str]:
    return [row["account"] for row in warehouse.read_arrow(TOPIC).read_all().to_pylist()]


def test_readers_that_share_what_is_decoded_read_what_others_read() -> None:
    site = site_with_a_checkpoint()

    with decoded_once():
        first, second = accounts(site.open()), accounts(site.open())

    assert first == second == accounts(site.open()) == ["ann"]


def test_what_one_client_folds_on_a_checkpoint_is_not_in_anothers_view() -> None:
    site = site_with_a_checkpoint()

    with decoded_once():
        ahead, behind = site.open(), site.open()
        before = behind.topic_log(TOPIC).segments.refresh().version
        append(ahead, "bob")
        seen = len(ahead.topic_log(TOPIC).segments.refresh().files)
        late = behind.topic_log(TOPIC).segments.table

    assert late.version == before
    assert len(late.files) == seen - 1
    assert accounts(behind) == ["ann", "bob"]

"""Names of topics that SQL would take for one: refused at the creation, and where views are made."""

from __future__ import annotations

import pytest

from tests.simulation.site import Site
from txntable.admin import topic_admin
from txntable.errors import InvalidRequestError, InvalidTopicError
from txntable.format.layout import check_new_topic_name
from txntable.spark.scan.views import check_view_names
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture
def warehouse() -> Warehouse:
    site = Site()
    warehouse = site.create()
    warehouse.admin().create_topic("Orders")
    return warehouse


@pytest.mark.parametrize("name", ["orders", "ORDERS", "oRders"])
def test_topic_that_differs_from_another_by_case_only_is_refused_and_leaves_nothing(
    warehouse: Warehouse, name: str
) -> None:
    with pytest.raises(InvalidTopicError, match="existing=Orders"):
        warehouse.admin().create_topic(name)

    assert warehouse.admin().list_topics() == ["Orders"]


def test_topic_that_exists_is_found_whatever_else_there_is(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_twin(warehouse, monkeypatch)

    assert warehouse.admin().create_topic("Orders", exist_ok=True).name == "Orders"


def test_name_is_free_again_when_its_twin_was_deleted(warehouse: Warehouse) -> None:
    warehouse.admin().delete_topic("Orders")

    warehouse.admin().create_topic("orders")

    with pytest.raises(InvalidTopicError):
        warehouse.admin().create_topic("Orders")


@pytest.mark.parametrize("name", ["txntable_snapshot", "TXNTABLE_Snapshot", "then_txntable_snapshot"])
def test_name_of_the_positions_view_is_refused(name: str) -> None:
    with pytest.raises(InvalidTopicError, match="reserved"):
        check_new_topic_name(name)


def make_twin(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another client, which looked before ``Orders`` was there, makes ``orders``."""
    with monkeypatch.context() as at_once:
        at_once.setattr(topic_admin, "twins", lambda *_: [])
        warehouse.admin().create_topic("orders")


@pytest.mark.parametrize("topics", [None, ["orders"], ["Orders"], ["orders", "Orders"]])
def test_views_of_twins_that_were_made_at_once_are_refused(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, topics: list[str] | None
) -> None:
    make_twin(warehouse, monkeypatch)

    with pytest.raises(InvalidRequestError, match="differ by case only"):
        warehouse.create_views(None, topics)  # type: ignore[arg-type]


def test_topic_that_is_called_as_the_positions_view_gets_none() -> None:
    with pytest.raises(InvalidRequestError, match="position's view"):
        check_view_names(["orders", "TxnTable_Snapshot"], ["orders", "TxnTable_Snapshot"])


def test_names_that_differ_otherwise_are_no_twins() -> None:
    names = ["a.b", "a_b", "a-b", "ab", "txntable_snapshots"]

    check_view_names(names, names)
    assert [check_new_topic_name(name) for name in names] == names

"""The page as it is now: made at most once in a while, and a failure told in its words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.doubles.manual_environment import ManualEnvironment
from tests.page import stage
from txntable.errors import StoreUnavailableError
from txntable.report.live_page import LivePage
from txntable.report.warehouse_report import WarehouseReport


@pytest.fixture(scope="module")
def report() -> WarehouseReport:
    return stage.empty()


def counting(report: WarehouseReport, looks: list[int]) -> Callable[[], WarehouseReport]:
    def look() -> WarehouseReport:
        looks.append(1)
        return report

    return look


def test_page_is_made_again_only_when_it_is_older_than_the_interval(report: WarehouseReport) -> None:
    machine, looks = ManualEnvironment(), list[int]()
    page = LivePage(counting(report, looks), machine, interval_s=5)

    first = page.answer()
    machine.advance_ms(4_999)
    assert page.answer() == first
    assert len(looks) == 1
    machine.advance_ms(1)
    page.answer()

    assert len(looks) == 2
    assert first[0] == 200
    assert first[1].startswith(b"<!doctype html>")


def test_failure_is_told_and_the_next_asker_looks_again(report: WarehouseReport) -> None:
    answers = [StoreUnavailableError("the store does not answer; try again", path="x"), None]

    def look() -> WarehouseReport:
        error = answers.pop(0)
        if error is not None:
            raise error
        return report

    page = LivePage(look, ManualEnvironment(), interval_s=5)

    status, said = page.answer()
    assert status == 503
    assert b"the store does not answer" in said
    assert page.answer()[0] == 200

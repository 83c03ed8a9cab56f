"""A function on executors: results in order, errors of ours as they are, and nothing goes on that nobody waits for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from txntable.errors import DamagedDataError, RetriableError, StoreUnavailableError
from txntable.runtime.environment import SystemEnvironment
from txntable.spark.writing.distributed_tasks import distribute

# Longer than the whole test may take.
LONG_MS = 120_000


def test_results_come_in_the_order_of_the_tasks(spark: Any) -> None:
    assert list(distribute(spark, lambda number: {"twice": 2 * number}, range(9))) == [
        {"twice": 2 * number} for number in range(9)
    ]


def test_no_tasks_have_no_results(spark: Any) -> None:
    assert list(distribute(spark, str, [])) == []


def test_error_of_a_task_reaches_the_caller_with_its_facts_and_results_before_it_stay(spark: Any) -> None:
    def work(number: int) -> int:
        if number == 2:
            raise DamagedDataError("a segment cannot be read", path="p0", partition=number)
        return number

    results = distribute(spark, work, range(4))

    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(DamagedDataError, match="a segment cannot be read path=p0 partition=2"):
        next(results)


@pytest.mark.parametrize(("failures", "tries"), [(2, 3), (3, 3)])
def test_task_is_tried_again_when_its_error_says_so(spark: Any, tmp_path: Path, failures: int, tries: int) -> None:
    def work(number: int) -> int:
        tried = len(list(tmp_path.iterdir()))
        (tmp_path / str(tried)).touch()
        if tried < failures:
            raise StoreUnavailableError("the store does not answer; try again")
        return number

    results = distribute(spark, work, [7])

    if failures < tries:
        assert list(results) == [7]
    else:
        with pytest.raises(StoreUnavailableError):
            list(results)
    assert len(list(tmp_path.iterdir())) == tries


def test_what_a_task_dies_of_is_told_in_a_line(spark: Any) -> None:
    with pytest.raises(RetriableError, match=r"^spark gave a task up; .* cause=ZeroDivisionError: [^\n]*$"):
        list(distribute(spark, lambda number: 1 // number, [1, 0]))


def test_tasks_are_cancelled_when_the_caller_has_enough(spark: Any) -> None:
    began = SystemEnvironment().instant()

    def work(milliseconds: int) -> int:
        SystemEnvironment().sleep_ms(milliseconds)
        return milliseconds

    results = distribute(spark, work, [0, LONG_MS, LONG_MS, LONG_MS], at_once=2)
    first = next(results)
    results.close()

    assert first == 0
    assert SystemEnvironment().since_ms(began) < LONG_MS

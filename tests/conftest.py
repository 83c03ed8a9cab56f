"""What every test gets: a process that knows no cloud account and has no background, marks by folder, settled runs."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from txntable.runtime.environment import SystemEnvironment
from txntable.storage import probe

# Examples are the same in each run, so that a red build is red again on the next machine; deadlines would be timing.
settings.register_profile(
    "settled", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
# For looking further than a build does: HYPOTHESIS_PROFILE=explore.
settings.register_profile("explore", settings.get_profile("settled"), derandomize=False, max_examples=5_000)

RACERS, ROUNDS = probe.RACERS, probe.ROUNDS
SPARK_TESTS, ENGINE_TESTS = (Path(__file__).parent / name for name in ("spark", "engines"))


def pytest_configure() -> None:
    """Take the machine's accounts and settings from this process: no test can reach a real store by accident."""
    for name in list(os.environ):
        # The seeds of the simulations are no settings.
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_", "TXNTABLE_")) and not name.startswith("TXNTABLE_SEED"):
            del os.environ[name]
    # Who starts the tests in the background of a shell has them ignore Ctrl-C, and their children: some wait for it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    os.environ["DO_NOT_TRACK"] = "true"  # Daft would tell its makers of each import
    os.environ["AWS_CONFIG_FILE"] = os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "settled"))


@pytest.fixture(scope="session", autouse=True)
def nothing_in_the_background() -> Iterator[None]:
    """However slow the machine is: COMPLETE is written by the next entry or by close, and never beside a test.

    Processes that tests start have their threads, and write it as they end.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemEnvironment, "has_background", False)
        yield


@pytest.fixture(scope="session", autouse=True)
def probes_of_one_small_race() -> Iterator[None]:
    """Thousands of tests create a warehouse, on stores whose promises have tests of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "RACERS", 2)
        patch.setattr(probe, "ROUNDS", 1)
        yield


@pytest.fixture(scope="module")
def probes_as_they_are(probes_of_one_small_race: None) -> Iterator[None]:
    """For what looks at the probe itself, or counts its requests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "RACERS", RACERS)
        patch.setattr(probe, "ROUNDS", ROUNDS)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what stands below tests/spark: `make test` runs it in one process, with one JVM; and below tests/engines."""
    for item in items:
        if item.path.is_relative_to(SPARK_TESTS):
            item.add_marker(pytest.mark.spark)
        if item.path.is_relative_to(ENGINE_TESTS):
            item.add_marker(pytest.mark.engines)


def pytest_collection_finish() -> None:
    """Let Python's search for garbage leave out what stays until the end: modules and thousands of tests.

    It costs as much as there is to look through, in a process that a test forks above all: each page is copied there.
    """
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let everything be found when the process ends: libraries report what is left then."""
    gc.unfreeze()

"""The CPU time of benchmarks: every process counts once, also one that has ended and that nobody waited for."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest

from benchmarks.cpu_account import CpuAccount, ProcessTimes
from benchmarks.measurement import cpu_seconds

ROOT, WORKER, BELOW, STRANGER = 10, 11, 12, 99
# A worker that ends, and that the kernel adds to nobody's time: its parent ignores its end.
PROGRAM = """
import os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    while time.process_time() < 1: pass
    print("worked", flush=True)
    sys.stdin.readline()
    os._exit(0)
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print("ended", flush=True)
sys.stdin.readline()
"""


def times(parent: int, own: int, ended_children: int = 0, started: int = 1) -> ProcessTimes:
    return ProcessTimes(parent, started, own, ended_children)


STRANGERS = {STRANGER: times(1, 1_000, 1_000)}


@pytest.mark.parametrize(
    ("looks", "ticks"),
    [
        ([{ROOT: times(1, 5)}], 5),
        ([{ROOT: times(1, 5), WORKER: times(ROOT, 7), BELOW: times(WORKER, 2)}], 14),
        ([{ROOT: times(1, 5), WORKER: times(ROOT, 7)}, {ROOT: times(1, 6)}], 13),
        ([{ROOT: times(1, 5), WORKER: times(ROOT, 7)}, {ROOT: times(1, 6, 9)}], 15),
        ([{ROOT: times(1, 5)}, {ROOT: times(1, 6, 9)}], 15),
        ([{ROOT: times(1, 5, 3)}, {ROOT: times(1, 6, 9)}], 15),
        (
            [
                {ROOT: times(1, 5), WORKER: times(ROOT, 7), BELOW: times(WORKER, 2)},
                {ROOT: times(1, 5), BELOW: times(1, 4)},
            ],
            16,
        ),
        ([{ROOT: times(1, 5), WORKER: times(ROOT, 7, 4)}, {ROOT: times(1, 5, 12)}], 17),
        ([{ROOT: times(1, 5), WORKER: times(ROOT, 7)}, {ROOT: times(1, 5), WORKER: times(1, 9, started=2)}], 12),
        ([{ROOT: times(1, 5), WORKER: times(ROOT, 7)}, {ROOT: times(1, 5), WORKER: times(ROOT, 2, started=2)}], 14),
    ],
    ids=[
        "alone",
        "all that it started",
        "a worker ended and nobody waited",
        "a worker ended, and used more before it did",
        "a worker was never seen",
        "workers of before the first look",
        "a parent ended before its child",
        "what a worker said of its children is not counted again",
        "the id is a stranger's now",
        "the id is another worker's now",
    ],
)
def test_each_process_counts_once(looks: list[dict[int, ProcessTimes]], ticks: int) -> None:
    account = CpuAccount(ROOT)

    for look in looks:
        account.take({**look, **STRANGERS})

    assert account.ticks == ticks


def test_what_this_process_itself_uses_shows_below_a_tick_of_the_kernel() -> None:
    looks = [cpu_seconds() for _ in range(20)]

    assert all(sooner < later for sooner, later in pairwise(looks))


def test_worker_that_has_ended_is_counted_where_its_parent_did_not_wait() -> None:
    before = cpu_seconds()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdin is not None
        assert program.stdout.readline() == "worked\n"
        cpu_seconds()
        program.stdin.write("\n")
        program.stdin.flush()
        assert program.stdout.readline() == "ended\n"

        used = cpu_seconds() - before
        program.stdin.close()

    assert used >= 0.9

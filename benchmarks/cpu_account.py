"""The CPU time of a process and of all that it ever started, each process by itself.

Owns what the kernel does not add up: a process that nobody waits for (its parent ignores SIGCHLD, or has ended first)
is in no total of its parent's.  So each one is followed by what it was last seen to have used; what a parent says of
its ended children counts where it is more than what was seen of them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PERIOD_S = 0.1


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """What the kernel says of one process.

    Attributes
    ----------
    parent : int
        Its parent's process id.
    started : int
        When it began: another process of the same id began at another time.
    own : int
        Ticks that it has used.
    ended_children : int
        Ticks of those of its children that it has waited for, with those below them.
    """

    parent: int
    started: int
    own: int
    ended_children: int


class CpuAccount:
    """Ticks of a process and of all below it.

    Parameters
    ----------
    root : int
        The process id.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._seen: dict[int, ProcessTimes] = {}
        self._ended = 0

    def take(self, found: Mapping[int, ProcessTimes]) -> None:
        """Take what all processes of the machine have used by now."""
        family = self._family(found)
        gone: dict[int, int] = {}
        for pid, last in self._seen.items():
            if not _is_same(family.get(pid), last):
                self._ended += last.own
                gone[last.parent] = gone.get(last.parent, 0) + last.own + last.ended_children
        for pid, times in family.items():
            before = self._seen.get(pid)
            known = before.ended_children if before is not None and _is_same(times, before) else 0
            more = times.ended_children - known
            # What was seen of the ended ones is counted already.
            self._ended += max(0, more - gone.get(pid, 0))
        self._seen = family

    def _family(self, found: Mapping[int, ProcessTimes]) -> dict[int, ProcessTimes]:
        """Return the processes that count: those below the root, and those that once were."""
        followed = {pid for pid, last in self._seen.items() if _is_same(found.get(pid), last)} | {self._root}
        grown = True
        while grown:
            below = {pid for pid, times in found.items() if times.parent in followed} - followed
            followed, grown = followed | below, bool(below)
        return {pid: found[pid] for pid in followed if pid in found}

    @property
    def ticks(self) -> int:
        """All of it, as far as it was taken."""
        return self._ended + sum(times.own for times in self._seen.values())

    @property
    def ticks_below(self) -> int:
        """All of it without the root's own."""
        return self.ticks - (self._seen[self._root].own if self._root in self._seen else 0)


class SampledCpu:
    """The account of this process, which a thread keeps; what that itself costs is left out."""

    def __init__(self) -> None:
        self._account = CpuAccount(os.getpid())
        self._lock = threading.Lock()
        self._overhead_s = 0.0
        self.seconds()
        threading.Thread(target=self._sample, name="cpu-account", daemon=True).start()

    def seconds(self) -> float:
        """Return the CPU seconds until now."""
        with self._lock:
            begun = time.thread_time()
            self._account.take(processes())
            self._overhead_s += time.thread_time() - begun
            # Of itself a process knows more than ticks of ten milliseconds, in which a short call does not show.
            return time.process_time() + self._account.ticks_below / os.sysconf("SC_CLK_TCK") - self._overhead_s

    def _sample(self) -> None:
        while True:
            time.sleep(_PERIOD_S)
            self.seconds()


def _is_same(found: ProcessTimes | None, last: ProcessTimes) -> bool:
    return found is not None and found.started == last.started


def processes() -> dict[int, ProcessTimes]:
    """Return what all processes of the machine have used, by process id."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name of the program is in parentheses, and may hold anything.
            pid, fields = int(entry.parent.name), entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        numbers = [int(field) for field in fields[1:20]]
        # Of proc_pid_stat(5): ppid is field 4; utime, stime, cutime and cstime begin at 14; starttime is 22.
        found[pid] = ProcessTimes(numbers[0], numbers[18], sum(numbers[10:12]), sum(numbers[12:14]))
    return found

"""A process of a chaos run.

Takes the turns of its program until it is told to stop (SIGTERM); most are killed before.  What no user would expect,
such as damaged data, ends it with an error, which ends the run.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.chaos.clocks import wrong_clocks
from tests.chaos.life import Life
from tests.chaos.limits import shortened
from tests.chaos.premises import CREW, CREW_IDS, Site, forget_accounts, site_at
from tests.chaos.program import Program
from tests.chaos.programs import MAKERS
from tests.chaos.scenarios import scenario_of
from tests.checker.history_file import HistoryFile
from tests.checker.recorder import Recorder
from txntable.errors import DamagedDataError, RetriableError, TxnTableError
from txntable.runtime.environment import SystemEnvironment
from txntable.warehouse.warehouse import Warehouse

_BETWEEN_TURNS_MS = 30
_PR_SET_PDEATHSIG = 1


@contextmanager
def living(site: Site, name: str) -> Iterator[Life]:
    """Begin the history of a process, and open the warehouse, however often that takes."""
    with HistoryFile(history_path(site, name)) as history:
        # One clock for all processes of the machine; an Environment's instants are too coarse for a history.
        recorder = Recorder(name, time.monotonic_ns, history)  # noqa: TID251
        yield Life(name, stubbornly_opened(site), recorder, site)


def history_path(site: Site, name: str) -> Path:
    """Return where the history of a process is."""
    return Path(site.folder) / f"{name}.jsonl"


def last_words_path(site: Site, name: str) -> Path:
    """Return where a process says what it dies of."""
    return Path(site.folder) / f"{name}.err"


def stubbornly_opened(site: Site) -> Warehouse:
    """Open the warehouse on a store that may fail."""
    while True:
        try:
            return site.open()
        except RetriableError:
            SystemEnvironment().sleep_ms(50)


def live(life: Life, role: str, who: str) -> None:
    """Take turns until told to stop; of a crew each in a thread of its own."""
    if role != CREW:
        live_alone(life, role, who, life)
        return
    with ThreadPoolExecutor(len(CREW_IDS)) as threads:
        hands = [threads.submit(live_alone, life.of_thread(each), "teller", each, life) for each in CREW_IDS]
        for hand in as_completed(hands):
            hand.result()


def live_alone(life: Life, role: str, who: str, process: Life) -> None:
    """Take turns until the process is told to stop."""
    program: Program | None = None
    while not process.stopping:
        try:
            if program is None:
                program = MAKERS[role](life, who)
            program.turn()
        except DamagedDataError:
            process.stopping = True
            raise
        except TxnTableError as error:
            recover(program, error)
        life.rest(_BETWEEN_TURNS_MS)


def recover(program: Program | None, error: TxnTableError) -> None:
    """Let the program recover; what fails then is the next turn's."""
    try:
        if program is not None:
            program.recover(error)
    except DamagedDataError:
        raise
    except TxnTableError:
        return


def die_with_the_run() -> None:
    """Let the system kill this process, also a paused one, when what started it is gone: the run itself was killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def work(path: str, role: str, who: str, name: str) -> None:
    """Be a process of the run that is described at `path`."""
    die_with_the_run()
    forget_accounts()
    site = site_at(path)
    with last_words_path(site, name).open("wb") as words:
        os.dup2(words.fileno(), 2)
    scenario = scenario_of(site)
    with ExitStack() as stack:
        stack.enter_context(shortened(scenario.limits))
        if scenario.clocks:
            stack.enter_context(wrong_clocks(site, name, scenario.limits.day_ms // 4))
        life = stack.enter_context(living(site, name))
        signal.signal(signal.SIGTERM, lambda *_: setattr(life, "stopping", True))
        live(life, role, who)

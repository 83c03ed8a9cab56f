"""A nightly pipeline whose process dies by SIGKILL: at the places that a file names, one for each run that gets there.

A copy of it stands beside the pipeline's settings, and the command finds it there.  Beside it, too: ``deaths``, a line
for each run; ``scheduler.pid``, the process group of who started the command; ``died``, what has come of it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from txntable.producer.producer import Producer

HERE = Path(__file__).parent
IN_THE_FUNCTION = "in the function"
BEFORE_THE_DECISION = "before the decision, with its scheduler"
AFTER_THE_DECISION = "after the decision"


def delays(flights: DataFrame) -> DataFrame:
    """Return the mean delay of each carrier; perhaps die, now or when the transaction is committed."""
    if _next_death() == IN_THE_FUNCTION:
        _die(IN_THE_FUNCTION)
    arm()
    return flights.groupBy("carrier").agg(F.avg("delay").alias("delay"))


def arm() -> None:
    """Have this process die when it commits, if a death is left."""
    death = _next_death()
    if death is not None:
        Producer.commit_transaction = _dying(Producer.commit_transaction, death)  # type: ignore[method-assign]


def _next_death() -> str | None:
    deaths, died = ((HERE / name).read_text().splitlines() for name in ("deaths", "died"))
    return deaths[len(died)] if len(died) < len(deaths) else None


def _dying(commit: Callable[..., None], death: str) -> Callable[..., None]:
    def commit_and_die(*given: Any, **named: Any) -> None:
        if death == AFTER_THE_DECISION:
            commit(*given, **named)
        _die(death)

    return commit_and_die


def _die(death: str) -> None:
    with (HERE / "died").open("a") as died:
        died.write(f"{death}\n")
    if death == BEFORE_THE_DECISION:
        # As when the machine goes: who would run it again is gone as well, and the shell between them.
        os.killpg(int((HERE / "scheduler.pid").read_text()), signal.SIGKILL)
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)

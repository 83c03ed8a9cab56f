"""One run of a world: what it was made from, what happened in it, and how it failed."""

from __future__ import annotations

import gc
import logging
import re
import traceback
from dataclasses import dataclass, field

from tests.simulation.decoding import decoded_once
from tests.simulation.tape import Recording, Tape
from tests.simulation.turns import Counts, Turns, World

_CHANGING = re.compile(r"[0-9a-f]{8,}|\d+")
_FACTS = re.compile(r"[\[({=].*")
_SHAPE_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Failure:
    """How a run failed.

    Attributes
    ----------
    kind : str
        The same of failures that are likely to have one cause: where, what, and the shape of what it said.
    text : str
        The whole traceback.
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Played:
    """A run that has been made.

    Attributes
    ----------
    recording : Recording
        All chances that it has used: makes the same run again.
    names : tuple of str
        The processes that took part.
    steps : int
        How many turns it had.
    fair : bool
        Whether nothing was to go wrong.
    counts : Counts
        What went wrong.
    trace : list of str
        Line by line.
    failure : Failure, optional
        ``None``: every check held.
    """

    recording: Recording
    names: tuple[str, ...]
    steps: int
    fair: bool
    counts: Counts
    trace: list[str] = field(repr=False)
    failure: Failure | None = None


def play(world: World, source: int | Recording) -> Played:
    """Make one run.

    Parameters
    ----------
    world : World
        What is simulated.
    source : int or Recording
        The seed, or what is played again.
    """
    turns = Turns(None, Tape(source))
    failure: Failure | None = None
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # what is left to the next round is no news where everything fails
    gc.disable()  # looking for cycles again and again in what the whole run needs takes a tenth of its time
    try:
        with decoded_once():
            world.play(turns)
    except Exception as error:  # noqa: BLE001  whatever it is: it is what the run has to tell
        failure = Failure(kind_of(error), "".join(traceback.format_exception(error)))
    finally:
        gc.enable()
        logging.disable(disabled)
    names = tuple(process.name for process in turns.processes)
    fair = turns.weather.is_fair
    return Played(turns.tape.recorded(), names, turns.number, fair, turns.counts, turns.trace, failure)


def kind_of(error: BaseException) -> str:
    """Return what failures of one cause have in common."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else "nowhere"
    said = str(error).partition("\n")[0]
    shape = _FACTS.sub("", _CHANGING.sub("#", said))[:_SHAPE_CHARACTERS]
    return f"{type(error).__name__} at {where}: {shape}"

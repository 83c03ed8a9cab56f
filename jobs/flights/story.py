"""What the demo has done so far: progress for whoever watches, events and checks for the report.

Owns the order in which they are told.  Must not know of warehouses or Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from txntable.cli.progress import progressing


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Attributes
    ----------
    who : str
        The transactional id, or who else acted.
    batch : str
        Which batches; empty: none.
    what : str
        In a person's words.
    outcome : str
        A state, or an error's code.
    """

    who: str
    batch: str
    what: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Check:
    """Something that must be so.

    Attributes
    ----------
    about : str
        What is compared.
    expected, found : object
        Both sides.
    """

    about: str
    expected: object
    found: object

    @property
    def holds(self) -> bool:
        """Whether both sides are the same."""
        return self.expected == self.found


def _say_nothing(done: str) -> None:
    """Take what is done, where nothing is shown yet."""


class Story:
    """Collects events and checks, and shows progress.

    Parameters
    ----------
    console : rich.console.Console
        Standard error: bars where it is a terminal, elsewhere a line now and then.
    """

    def __init__(self, console: Console) -> None:
        self.events: list[Event] = []
        self.checks: list[Check] = []
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[step]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task: TaskID | None = None
        self._is_terminal = console.is_terminal
        self._tell_progress: Callable[[str], None] = _say_nothing
        self._chapter = ""

    @contextmanager
    def shown(self) -> Iterator[Story]:
        """Show progress while the block runs."""
        if self._is_terminal:
            with self._progress:
                yield self
            return
        with progressing("demo") as self._tell_progress:
            yield self

    @contextmanager
    def chapter(self, title: str, steps: int) -> Iterator[None]:
        """Show a bar of `steps` steps while the block runs."""
        self._chapter = title
        self._tell_progress(title)
        self._task = self._progress.add_task(title, total=steps, step="")
        yield
        self._progress.update(self._task, completed=steps, step="")
        self._task = None

    def step(self, text: str) -> None:
        """Say what is being done."""
        self._tell_progress(f"{self._chapter}: {text}")
        if self._task is not None:
            self._progress.update(self._task, step=text)

    def advance(self) -> None:
        """Count a step of the chapter as done."""
        if self._task is not None:
            self._progress.advance(self._task)

    def tell(self, event: Event) -> None:
        """Keep an event."""
        self.events.append(event)

    def check(self, about: str, expected: object, found: object) -> None:
        """Keep a check."""
        self.checks.append(Check(about, expected, found))

    @property
    def ends_well(self) -> bool:
        """Whether every check holds."""
        return all(check.holds for check in self.checks)

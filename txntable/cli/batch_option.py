"""What an option ``--batch-id`` takes: a name, for all that is typed is text.

Owns how the refusal is told, as wrong usage.  Must not know what a command does under the name.
"""

from __future__ import annotations

import typer

from txntable.coordinator.batch_memory import DIGITS_ALONE, is_digits_alone


def batch_name(given: str | None) -> str | None:
    """Return what was given for ``--batch-id``, before anything is opened.

    Parameters
    ----------
    given : str or None
        The text; ``None``: the option was left out.

    Raises
    ------
    typer.BadParameter
        It is digits alone: exit code 2, since the same again is refused again.
    """
    if is_digits_alone(given):
        raise typer.BadParameter(DIGITS_ALONE)
    return given

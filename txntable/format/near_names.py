"""What a mistyped name was meant to be: one rule and one manner for names and settings of every kind.

Owns how near a name must be to be asked for, and the words.  Pure: who asks has the names there are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import TypeVar

ErrorT = TypeVar("ErrorT", bound=Exception)
MOST_LISTED = 4
"""So many names are all told where none of them is near."""


def near(given: str, known: Collection[str]) -> list[str]:
    """Return the names that are spelt like one that is not known, nearest first."""
    close = get_close_matches(given, known, n=3)
    return close + [name for name in known if name.casefold() == given.casefold() and name not in close]


def asked(names: Sequence[str]) -> str:
    """Return the question whether one of these was meant: the one manner of a suggestion."""
    return f"did you mean {' or '.join(names)}?"


def told(names: Sequence[str]) -> str:
    """Return what is said where none is near: which there are."""
    return f"there {'is' if len(names) == 1 else 'are'} {', '.join(names)}"


def about_nearest(given: str, known: Collection[str]) -> str | None:
    """Return the question whether the nearest was meant, of settings and options: there are too many to ask for all."""
    close = near(given, known)[:1]
    return asked(close) if close else None


def _everything(_: str) -> bool:
    return True


def question(given: str, known: Collection[str], exists: Callable[[str], bool] = _everything) -> str | None:
    """Return what to ask, or to tell, who gave a name that is not known; ``None``: nothing.

    Parameters
    ----------
    given : str
        What was typed.
    known : collection of str
        All names there are.
    exists : callable
        Of such a name: whether there is still what it names.  It is asked of the few that would be said.

    Returns
    -------
    str or None
        About those that are near, else about all where they are few; none where the name is known.
    """
    if given in known:
        return None
    if close := [name for name in near(given, known) if exists(name)]:
        return asked(close)
    few = [name for name in sorted(known) if exists(name)] if len(known) <= MOST_LISTED else []
    return told(few) if few else None


def column_hint(unknown: Iterable[str], known: Collection[str]) -> str:
    """Return what is added to a message about columns that are not there; empty: none of them is near to one."""
    wrong = {name: near(name, known) for name in unknown if isinstance(name, str) and name not in known}
    said = [asked(meant) for meant in wrong.values() if meant]
    if not said:
        return ""
    folded = {name.casefold() for name in known}
    by_case = " (names are matched by case)" if any(name.casefold() in folded for name in wrong) else ""
    return f"; {' '.join(said)}{by_case}"


def asking(error: ErrorT, given: str, known: Collection[str]) -> ErrorT:
    """Return the error about a name that is not known, with a note that asks for the one that was meant."""
    said = question(given, known)
    if said is not None:
        error.add_note(f"({said})")
    return error

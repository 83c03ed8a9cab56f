"""What a mistyped name was meant to be: one rule for topics, groups, transactional ids and columns.

Owns how near a name must be to be asked for.  Pure: who asks has the names there are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import TypeVar

ErrorT = TypeVar("ErrorT", bound=Exception)
MOST_LISTED = 4
"""So many names are all said where none of them is near."""


def question(given: str, known: Collection[str]) -> str | None:
    """Return what to ask or to say to who gave a name that is not known.

    Parameters
    ----------
    given : str
        What was typed.
    known : collection of str
        All names there are.

    Returns
    -------
    str or None
        A question where names are near, all names where they are few, else ``None``; also where the name is known.
    """
    if given in known or not known:
        return None
    close = get_close_matches(given, known, n=3)
    close += [name for name in known if name.casefold() == given.casefold() and name not in close]
    if close:
        return f"did you mean {' or '.join(close)}?"
    return None if len(known) > MOST_LISTED else f"there is {', '.join(sorted(known))}"


def column_hint(unknown: Iterable[str], known: Collection[str]) -> str:
    """Return what is added to a message about columns that are not there; empty: none of them is near to one."""
    asked = {name: question(name, known) for name in unknown if isinstance(name, str)}
    near = [said for said in asked.values() if said is not None and said.endswith("?")]
    if not near:
        return ""
    folded = {name.casefold() for name in known}
    by_case = " (names are matched by case)" if any(name.casefold() in folded for name in asked) else ""
    return f"; {' '.join(near)}{by_case}"


def asking(error: ErrorT, given: str, known: Collection[str]) -> ErrorT:
    """Return the error about a name that is not known, with a note that asks for the one that was meant."""
    said = question(given, known)
    if said is not None:
        error.add_note(f"({said})")
    return error

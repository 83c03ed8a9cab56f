"""Options whose values are those of an enum: users write the value, or the enum's member itself.

Owns the error that lists what may be chosen.  Must not know what a choice means.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidRequestError

E = TypeVar("E", bound=Enum)


def member_of(choices: type[E], given: str | E, option: str) -> E:
    """Return the member of an enum that an option names.

    Parameters
    ----------
    choices : type
        The enum; its values are what users write.
    given : str or Enum
        What they gave.
    option : str
        The option's name, words joined by underscores; for the message.

    Raises
    ------
    InvalidRequestError
        There is none: the message names all.
    """
    if isinstance(given, choices):
        return given
    known = {each.value: each for each in choices}
    if given not in known:
        raise InvalidRequestError(
            f"there is no such {option.replace('_', ' ')}; take one of those known",
            **{option: shown(given), "known": ",".join(known)},
        )
    return known[given]

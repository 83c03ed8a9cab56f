"""Kafka's configuration dictionaries: names with dots or underscores, values as text, settings that are not here.

Owns that nothing in one is passed over, and that all that is wrong is said at once: a setting is taken under our name,
does nothing that is not done anyway, or is refused by its own name with what to do instead.  What a value means and its
bounds are the client's config's.  Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidCallError, InvalidConfigError
from txntable.format.kafka_setting_names import ALIASES, ELSEWHERE, HARMLESS, OF_ONE_KIND
from txntable.format.near_names import about_nearest

T = TypeVar("T")
WrongSetting: TypeAlias = "tuple[str, InvalidCallError]"

_BOOLEANS = {"true": True, "false": False}


def configured(given: Mapping[str, object], known: Mapping[str, type], make: Callable[[dict[str, object]], T]) -> T:
    """Return what is made of the settings of one of Kafka's configuration dictionaries.

    Parameters
    ----------
    given : Mapping of str to object
        Names with dots (``"transactional.id"``) or underscores; numbers and booleans may be text, as in a properties
        file.
    known : Mapping of str to type
        The client's settings, and what the text of one is read as: ``int``, ``bool``, ``tuple`` (parted by commas), or
        ``object``: as it is.
    make : callable
        The settings under our names -> the client's config; it refuses values.

    Raises
    ------
    InvalidConfigError
        Names are unknown or have no counterpart, or values are not possible: all of them are in the message.
    InvalidCallError
        One value is not possible, for which Kafka has an error of its own.
    """
    if not isinstance(given, Mapping):
        raise InvalidConfigError("settings are given as a dict, or by name", found=shown(given))
    found, wrong = _found(given, known)
    try:
        made = make(found)
    except InvalidCallError as error:
        raise together([*wrong, *(_wrong_values(found, make) or [(_setting(error), error)])]) from error
    if wrong:
        raise together(wrong)
    return made


def _found(given: Mapping[str, object], known: Mapping[str, type]) -> tuple[dict[str, object], list[WrongSetting]]:
    """Return the settings under our names, and what is wrong with names."""
    found: dict[str, object] = {}
    wrong: list[InvalidConfigError] = []
    for name, value in given.items():
        own = name.replace(".", "_") if isinstance(name, str) else ""
        own = ALIASES[own] if ALIASES.get(own) in known else own
        harmless = HARMLESS.get(own)
        if own in found:
            wrong.append(given_twice([own]))
        elif own in known:
            found[own] = _read(value, known[own])
        elif harmless is None:
            wrong.append(_refused(name, own, known))
        elif not harmless.takes(value):
            remedy = harmless.instead or f"leave it out, or give {harmless.taken}: {harmless.why}"
            wrong.append(
                InvalidConfigError(f"a setting has a value that means nothing here; {remedy}", setting=shown(name))
            )
    return found, [(_setting(error), error) for error in wrong]


def _wrong_values(found: Mapping[str, object], make: Callable[[dict[str, object]], T]) -> list[WrongSetting]:
    """Return the errors of settings whose values are wrong whatever the others are."""
    wrong: dict[str, WrongSetting] = {}
    for name, value in found.items():
        try:
            make({name: value})
        except InvalidConfigError as error:
            if error.facts.get("setting") == name and "value" in error.facts:
                wrong[str(error)] = (name, error)
        except InvalidCallError as error:
            # The errors with names of their own in Kafka are of one value; one that was given by name comes every time.
            wrong.setdefault(str(error), (name, error))
    return list(wrong.values())


def _setting(error: InvalidCallError) -> str:
    return str(error.facts.get("setting"))


def together(wrong: Sequence[WrongSetting]) -> InvalidCallError:
    """Return one error that says all that is wrong with one dictionary of settings.

    Parameters
    ----------
    wrong : sequence of (str, InvalidCallError)
        Each setting, and what is wrong with it; one of them is returned as it is.
    """
    if len(wrong) == 1:
        return wrong[0][1]
    return InvalidConfigError(
        f"{len(wrong)} settings are wrong: "
        + "; ".join(f"({number}) {error}" for number, (_, error) in enumerate(wrong, 1))
        + "; in all",
        setting=",".join(name for name, _ in wrong),
    )


def check_known(names: Iterable[object], known: Mapping[str, type]) -> None:
    """Refuse names that are no settings of a client, with what to do instead.

    Raises
    ------
    InvalidConfigError
        One of them is none, or several are: all are in the message.
    """
    wrong = [
        _refused(name, name.replace(".", "_") if isinstance(name, str) else "", known)
        for name in names
        if name not in known
    ]
    if wrong:
        raise together([(_setting(error), error) for error in wrong])


def given_twice(names: Iterable[str]) -> InvalidConfigError:
    """Return the error of settings that are given more than once."""
    return InvalidConfigError("a setting is given twice; give it once", setting=",".join(sorted(names)))


def _refused(name: object, own: str, known: Mapping[str, type]) -> InvalidConfigError:
    remedy = ELSEWHERE.get(own) or next((said for start, said in OF_ONE_KIND.items() if own.startswith(start)), None)
    if own in HARMLESS:
        remedy = f"leave it out: {HARMLESS[own].why}"
    if remedy is not None:
        return InvalidConfigError(f"this client has no such setting; {remedy}", setting=shown(name))
    names = sorted(each.replace("_", ".") for each in known)
    meant = about_nearest(own.replace("_", "."), names)
    return InvalidConfigError(
        f"this client has no such setting; {meant or 'leave it out, or use one of the known ones'}",
        setting=shown(name),
        known=None if meant else ",".join(names),
    )


def _read(value: object, kind: type) -> object:
    """Return a value that may be text; what it cannot be read as is refused by the client's config."""
    if not isinstance(value, str):
        return value
    if kind is tuple:
        return tuple(part.strip() for part in value.split(","))
    if kind is bool:
        return _BOOLEANS.get(value.casefold(), value)
    digits = value.removeprefix("-")
    # The longest number that any setting takes has 19 digits.
    return int(value) if kind is int and digits.isascii() and digits.isdecimal() and len(digits) < 20 else value

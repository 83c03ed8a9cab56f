"""Names that other libraries have, answered where a class has them not: with what is called here instead.

Owns how such a name is told: by the error that Python raises anyhow, with the remedy behind it.  What there is to say
of which name is its callers'.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from opcode import opmap
from types import FrameType
from typing import Any, NoReturn, TypeVar

ClassT = TypeVar("ClassT", bound=type)
BY_PLACE = "*"
"""In the place of an argument: too many are given by their places."""
MISSING = "?"
"""In the place of an argument: some that have no default are not given."""
_UNEXPECTED = re.compile(r"(?:\w+\.)?(\w+)\(\) got an unexpected keyword argument '(\w+)'")
_TOO_MANY = re.compile(r"(?:\w+\.)?(\w+)\(\) takes .* positional arguments? but \d+ (?:was|were) given")
_NOT_GIVEN = re.compile(r"(?:\w+\.)?(\w+)\(\) missing \d+ required ")
_IMPORT_FROM = opmap["IMPORT_FROM"]
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def answering(
    names: Mapping[str, str], arguments: Mapping[str, Mapping[str, str]] | None = None
) -> Callable[[ClassT], ClassT]:
    """Let a class answer names that it has not.

    Parameters
    ----------
    names : mapping of str to str
        Attribute -> what to do.  Java's spelling of an attribute or of a name here is answered, too.
    arguments : mapping, optional
        Method -> argument that it does not take -> what to do; :data:`BY_PLACE` for too many without a name,
        :data:`MISSING` for too few.  Java's spelling of an argument that it takes is answered, too.
    """

    def missing(self: object, name: str) -> NoReturn:
        raise AttributeError(_told(type(self), name, names), name=name, obj=self)

    def decorate(known: ClassT) -> ClassT:
        setattr(known, "__getattr__", missing)  # noqa: B010  hidden from type checkers, to which any name would be there
        for name, said in (arguments or {}).items():
            call = inspect.getattr_static(known, name)
            if isinstance(call, classmethod):
                setattr(known, name, classmethod(_answering_arguments(call.__func__, said)))
            else:
                setattr(known, name, _answering_arguments(call, said))
        return known

    return decorate


def told_of_module(module: str, name: str, names: Mapping[str, str]) -> AttributeError | ImportError:
    """Return the error about a name that a module has not, for the module's ``__getattr__`` to raise.

    An import statement drops what an ``AttributeError`` says: it is told by its own error.
    """
    said = names.get(name)
    if said is None:
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    if _is_import(sys._getframe(2)):  # noqa: SLF001  the only way to see who asks
        return ImportError(f"cannot import name {name!r} from {module!r}: {said}", name=module)
    return AttributeError(f"module {module!r} has no attribute {name!r}: {said}")


def _is_import(asker: FrameType) -> bool:
    # Of a package Python's own import system asks first.
    return asker.f_code.co_name == "_handle_fromlist" or asker.f_code.co_code[asker.f_lasti] == _IMPORT_FROM


def _told(known: type, name: str, names: Mapping[str, str]) -> str:
    here = _HUMP.sub("_", name).lower()
    missing = f"{known.__name__!r} object has no attribute {name!r}"
    if name != here and not name.startswith("_") and here in dir(known):
        return f"{missing}: call {here}"
    said = names.get(here)
    return missing if said is None else f"{missing}: {said}"


def _answering_arguments(call: Callable[..., Any], said: Mapping[str, str]) -> Callable[..., Any]:
    @functools.wraps(call)
    def run(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return call(self, *args, **kwargs)
        except TypeError as error:
            remedy = _remedy(call, str(error), said)
            if remedy is None:
                raise
            raise TypeError(f"{error}: {remedy}") from None

    return run


def _remedy(call: Callable[..., Any], message: str, said: Mapping[str, str]) -> str | None:
    """Return what to do about arguments that the call itself does not take; ``None``: it is about something else."""
    unexpected = _UNEXPECTED.match(message)
    if unexpected is not None and unexpected[1] == call.__name__:
        here = _HUMP.sub("_", unexpected[2]).lower()
        return f"it is {here} here" if here in inspect.signature(call).parameters else said.get(here)
    for sign, place in ((_TOO_MANY, BY_PLACE), (_NOT_GIVEN, MISSING)):
        found = sign.match(message)
        if found is not None and found[1] == call.__name__:
            return said.get(place)
    return None

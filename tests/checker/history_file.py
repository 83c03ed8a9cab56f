"""The operation log of a real process, in a file that survives it: a line of JSON at each invocation and each return.

A line is written by one call to the operating system, so a kill loses nothing that came before and leaves at most one
torn line, the last of its file.  Everything else that is not as it was written is refused: a checker that reads half a
history would pass it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from tests.checker.operations import Call, Operation

CALLS: dict[str, type] = {kind.__name__: kind for kind in get_args(Call)}


class HistoryFile:
    """A sink of a :class:`~tests.checker.recorder.Recorder` that appends to a file.

    Parameters
    ----------
    path : Path
        The file; several processes may have the same one, and several recorders of different names one sink.
    """

    def __init__(self, path: Path) -> None:
        # Without a buffer: a line is in the system's hands before the call that it tells of goes on.
        self._file = path.open("ab", buffering=0)

    def __call__(self, number: int, operation: Operation) -> None:
        line = {"number": number, "call": type(operation.call).__name__, "operation": _encoded(operation)}
        self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def __enter__(self) -> HistoryFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read_histories(paths: Iterable[Path]) -> list[Operation]:
    """Read the operations of all files, sorted by invocation.

    Parameters
    ----------
    paths : iterable of Path
        Files written by :class:`HistoryFile`.

    Returns
    -------
    list of Operation
        Each as it returned, or as it was invoked when it never did.

    Raises
    ------
    ValueError
        A line that is not the last of its file is damaged, or an operation returns twice or without an invocation:
        the history is not what was written, and nothing can be judged by it.
    """
    found: dict[tuple[str, int], Operation] = {}
    for path in paths:
        for number, operation in _lines(path):
            key = operation.process, number
            before = found.get(key)
            if (before is None) != (operation.returned is None):
                raise ValueError(f"an operation is invoked once and returns once: process={key[0]} number={key[1]}")
            if before is not None and (before.returned is not None or before.invoked != operation.invoked):
                raise ValueError(f"not the operation that was invoked: process={key[0]} number={key[1]}")
            found[key] = operation
    return sorted(found.values(), key=lambda each: each.invoked)


def _lines(path: Path) -> Iterator[tuple[int, Operation]]:
    # What follows the last line's end is torn, whatever it looks like.
    for at, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            document = json.loads(line)
            call = CALLS[document["call"]]
            number = _decoded(int, document.pop("number"))
            yield number, _decoded(Operation, document["operation"], call)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"a damaged line of a history: file={path.name} line={at}") from error


def _encoded(value: Any) -> Any:
    """Return it as JSON: an object of what is not as its default, mappings as pairs, sets sorted."""
    match value:
        case Enum():
            return value.name
        case Mapping():
            return [[_encoded(key), _encoded(item)] for key, item in value.items()]
        case frozenset():
            return sorted(_encoded(item) for item in value)
        case tuple():
            return [_encoded(item) for item in value]
    if not is_dataclass(value):
        return value
    kind: Any = type(value)
    return {name: _encoded(item) for name in _types(kind) if (item := getattr(value, name)) is not None}


@cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _required(kind: Any) -> frozenset[str]:
    """Fields without a default, which must be there; an absence that was written as none may be left out."""
    bare = {each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING}
    return frozenset(name for name in bare if NoneType not in get_args(_types(kind)[name]))


def _decoded(kind: Any, value: Any, call: type | None = None) -> Any:
    if kind in (int, str, bool):
        if type(value) is not kind:
            raise TypeError(f"expected {kind.__name__}")
        return value
    if get_origin(kind) in (Union, UnionType):
        return _decoded_union(kind, value, call)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind[value]
    if is_dataclass(kind):
        return _decoded_object(kind, value, call)
    return _decoded_collection(kind, value)


def _decoded_union(kind: Any, value: Any, call: type | None) -> Any:
    if kind == Call:
        return _decoded(call, value)
    (inner,) = (each for each in get_args(kind) if each is not NoneType)
    return None if value is None else _decoded(inner, value)


def _decoded_object(kind: Any, value: Any, call: type | None) -> Any:
    types = _types(kind)
    if unknown := value.keys() - types.keys():
        raise ValueError(f"unknown fields: {unknown}")
    if missing := _required(kind) - value.keys():
        raise ValueError(f"missing fields: {missing}")
    given = {name: _decoded(types[name], item, call) for name, item in value.items()}
    for each in fields(kind):
        # What was None is left out, also where the class has no default for it.
        if each.default is MISSING and each.default_factory is MISSING:
            given.setdefault(each.name, None)
    return kind(**given)


def _decoded_collection(kind: Any, value: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if not isinstance(value, list):
        raise TypeError("expected an array")
    if origin is frozenset:
        return frozenset(_decoded(arguments[0], item) for item in value)
    if origin is Mapping:
        return {_decoded(arguments[0], key): _decoded(arguments[1], item) for key, item in value}
    if arguments[-1] is Ellipsis:
        return tuple(_decoded(arguments[0], item) for item in value)
    return tuple(_decoded(each, item) for each, item in zip(arguments, value, strict=True))

"""Properties of Kafka's console tools, ``--property parse.key=true``, as the options that they are here.

Owns which property is which option, and what to do about those that are none.  Pure but for usage errors.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from txntable.cli.connection import named_values
from txntable.format.near_names import about_nearest

Properties = Sequence[str] | None
_FLAGS = {"true": True, "false": False}
_BYTES = "leave it out: records have bytes, or columns"

PRODUCER: Mapping[str, str] = {
    "parse.key": "parse_key",
    "key.separator": "key_separator",
    "parse.headers": "parse_headers",
    "headers.delimiter": "headers_delimiter",
    "headers.separator": "headers_separator",
    "headers.key.separator": "headers_key_separator",
    "null.marker": "null_marker",
}
"""Of ``kafka-console-producer``, and the parameter of `produce` that each is."""

CONSUMER: Mapping[str, str] = {
    "print.timestamp": "print_timestamp",
    "print.partition": "print_partition",
    "print.offset": "print_offset",
    "print.headers": "print_headers",
    "print.key": "print_key",
    "key.separator": "key_separator",
    "headers.separator": "headers_separator",
    "null.literal": "null_literal",
}
"""Of ``kafka-console-consumer``, and the parameter of `consume` that each is."""

_ELSEWHERE: Mapping[str, str] = {
    "ignore.error": "leave it out: a line that cannot be read ends the command, and nothing of it is committed",
    "print.value": "leave it out: values are printed always",
    "print.epoch": "leave it out: records have no leader epoch",
    "line.separator": "leave it out: a line is a record; --format json has any bytes",
    "key.deserializer": _BYTES,
    "value.deserializer": _BYTES,
    "headers.deserializer": _BYTES,
}


def options_of(pairs: Properties, known: Mapping[str, str]) -> dict[str, bool | str]:
    """Return the parameters that properties mean.

    Parameters
    ----------
    pairs : sequence of str, optional
        ``NAME=VALUE`` each.
    known : Mapping of str to str
        :data:`PRODUCER` or :data:`CONSUMER`.

    Raises
    ------
    typer.BadParameter
        There is no such property, or it is neither true nor false where it must be: exit code 2.
    """
    found: dict[str, bool | str] = {}
    for name, value in named_values(pairs or (), "--property").items():
        if name not in known:
            remedy = _ELSEWHERE.get(name) or about_nearest(name, known) or f"there are {', '.join(known)}"
            raise typer.BadParameter(f"{name} is none here; {remedy}", param_hint="--property")
        is_flag = name.startswith(("parse.", "print."))
        if is_flag and value.casefold() not in _FLAGS:
            raise typer.BadParameter(f"{name} is true or false", param_hint="--property")
        found[known[name]] = _FLAGS[value.casefold()] if is_flag else value
    return found


def with_properties(known: Mapping[str, str], *options: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator of a command that then takes properties; they are stronger than its options.

    Parameters
    ----------
    known : Mapping of str to str
        :data:`PRODUCER` or :data:`CONSUMER`.
    *options : str
        How they are given.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)

        @functools.wraps(command)
        def run(connection: Any, **arguments: Any) -> None:
            pairs = arguments.pop("properties")
            command(connection, **{**arguments, **options_of(pairs, known)})

        info = typer.Option(*options, metavar="NAME=VALUE", help="Of Kafka's console tool; repeat it.")
        new = inspect.Parameter(
            "properties",
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[list[str] | None, info],
        )
        first, *others = signature.parameters.values()
        kept = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in others]
        run.__signature__ = signature.replace(parameters=[first, *kept, new])  # type: ignore[attr-defined]
        return run

    return decorate

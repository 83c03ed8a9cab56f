"""A name that a command takes by its place or by an option: ``topics describe orders``, ``--topic orders``.

Owns that both mean the same, as Kafka's tools have the option and all others the place.  Must not know of any command.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any, get_args

import typer
from typer.models import OptionInfo


def both_ways(name: str, option: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator of a command that then takes one of its parameters by its place and by an option.

    Parameters
    ----------
    name : str
        The parameter's: of type ``str``, or a list of these, that Typer takes in one of the two ways.
    option : str
        What Kafka's tools call it: ``--topic``.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        own = signature.parameters[name]
        kind, told = get_args(own.annotation)[:2]
        is_list, required = list[str] in (kind, *get_args(kind)), own.default is inspect.Parameter.empty
        by_place, by_option = name, f"{name}_by_option"

        @functools.wraps(command)
        def run(connection: Any, **arguments: Any) -> None:
            given = [arguments.pop(by_place), arguments.pop(by_option)]
            chosen = _all(given) if is_list else _one(given, option)
            if chosen is None and required:
                raise typer.BadParameter("say which one", param_hint=option)
            command(connection, **arguments, **{name: chosen})

        called = option.removeprefix("--").replace("-", "_").upper()
        place = typer.Argument(help=told.help, metavar=called)
        same = typer.Option(
            option, metavar=called, help=told.help if isinstance(told, OptionInfo) else f"The same as {called}."
        )
        taken: Any = list[str] | None if is_list else str | None
        new = [
            inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[taken, info])
            for each, info in ((by_place, place), (by_option, same))
        ]
        first, *others = signature.parameters.values()
        kept = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in others if each.name != name]
        run.__signature__ = signature.replace(parameters=[first, new[0], *kept, new[1]])  # type: ignore[attr-defined]
        return run

    return decorate


def _all(given: Sequence[list[str] | None]) -> list[str] | None:
    return [each for found in given for each in found or ()] or None


def _one(given: Sequence[str | None], option: str) -> str | None:
    said = [each for each in given if each is not None]
    if len(said) > 1:
        raise typer.BadParameter("say it once: it is there by its place, too", param_hint=option)
    return said[0] if said else None

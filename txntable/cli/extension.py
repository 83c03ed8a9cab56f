"""Commands are loaded when they are called, this package's and those that others add by entry points.

Owns how a command of the group ``txntable.commands`` becomes part of the command line: the entry
point names a Typer application, or a function with Typer's parameters.  Nothing is imported
before the command is called: `txntable topics list` never pays for Spark, and `txntable --help`,
which reads in a command's source what it is for, pays for no library but Typer.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import typer
from typer.core import TyperCommand

from txntable.cli.connection import tell_error
from txntable.cli.kafka_options import instead_of
from txntable.cli.plain_help import PLAIN, PlainCommand, PlainGroup, plain
from txntable.errors import MissingDependencyError
from txntable.format.near_names import asked

GROUP = "txntable.commands"
# Typer has a copy of Click's errors, and names few of them.
_UsageError: Any = typer.BadParameter.__mro__[1]
_QUOTED = re.compile(r"'([^']+)'")
_OWN = tuple(
    EntryPoint(value.partition(":")[0], f"txntable.cli.{value}", GROUP)
    for value in (
        *("warehouse:application", "topics:application", "produce:command", "consume:command", "offsets:application"),
        *("groups:application", "snapshot:command", "transactions:application", "status:command"),
        *("watch:command", "check:command", "init:command", "report:command", "ui:command"),
    )
)
OPTIONAL_LIBRARIES = {"pyspark", "delta", "pandas"}
"""What an extra installs; any other module that is not found is a fault of the package."""

_PLACES = {"--topic": ("topic", "topics"), "--transactional-id": ("transactional_id", "transactional_ids")}
"""Option that Kafka's tools take -> how a command calls the place of such a name."""
_NOUNS = {"--topic": "topics", "--group": "groups"}
"""Option -> the noun whose commands have such a name where they call it a name."""


class Commands(Mapping[str, "DeferredCommand"]):
    """All commands by name: this package's, then the others'; nobody takes the name of one of these."""

    def __init__(self) -> None:
        others = sorted(entry_points(group=GROUP), key=lambda point: point.name)
        self._points = {point.name: point for point in (*_OWN, *others, *_OWN)}

    def __getitem__(self, name: str) -> DeferredCommand:
        return DeferredCommand(self._points[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._points)

    def __len__(self) -> int:
        return len(self._points)


class ExtensibleGroup(PlainGroup):
    """The commands of this package and of others, none of which is loaded before it is called."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        # Typer's own look-up, listing and suggestions read it; nothing adds to it.
        self.commands = cast(MutableMapping[str, Any], Commands())

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        """Return the context; options before the noun are looked at."""
        with _saying_what_is_said_here():
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: Any) -> Any:
        """Run the command, whose arguments are looked at."""
        with _saying_what_is_said_here():
            return super().invoke(ctx)


@contextmanager
def _saying_what_is_said_here() -> Iterator[None]:
    """Add to an error about arguments what is said here in place of what Kafka's tools take, or what was meant."""
    try:
        yield
    except _UsageError as error:
        plain, meant = _without_suggestion(error)
        commands = _commands_at(error.ctx)
        option = getattr(error, "option_name", None)
        said = instead_of(option, plain, commands, takes_name=_takes_name(error.ctx, option))
        if said is not None:
            # What else is spelt like it was not meant.
            error.message = f"{plain.removesuffix('.')}; {said}"
        elif meant:
            error.message = f"{plain.removesuffix('.')} ({asked(meant)})"
        elif commands and plain.startswith("No such command "):
            error.message = f"{plain.removesuffix('.')}; the command comes first: {', '.join(sorted(commands))}"
        error.possibilities = None
        raise


def _takes_name(context: Any, option: str | None) -> bool | None:
    """Return whether a command has a place for the name that an option gives to others; ``None``: there is none yet."""
    if context is None or hasattr(context.command, "commands"):
        return None
    noun = "" if context.parent is None else context.parent.info_name
    places = {each.name for each in context.command.params if each.param_type_name == "argument"}
    return not places.isdisjoint(_PLACES.get(option or "", ())) or (
        bool(places & {"name", "names"}) and noun == _NOUNS.get(option or "")
    )


def _commands_at(context: Any) -> set[str]:
    """Return the commands of the noun that the arguments name; a command that has no noun has none beside it."""
    commands = (found.command for found in (context, getattr(context, "parent", None)) if found is not None)
    nouns = (command for command in commands if not isinstance(command, ExtensibleGroup))
    return {name for noun in nouns for name in getattr(noun, "commands", ())}


def _without_suggestion(error: Any) -> tuple[str, list[str]]:
    """Return what an error about arguments says, and apart from it the names that Typer holds for the ones meant."""
    plain, _, names = error.message.partition(" Did you mean ")
    return plain, _QUOTED.findall(names) or sorted(getattr(error, "possibilities", None) or ())


class DeferredCommand(TyperCommand):
    """A command that is loaded when it is called, and told of before.

    Parameters
    ----------
    point : EntryPoint
        Of the group ``txntable.commands``.
    """

    def __init__(self, point: EntryPoint) -> None:
        super().__init__(point.name, help=told_in_source(point) or load_command(point).help)
        self._point = point

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        """Return the context of the command itself, which takes this one's place."""
        return load_command(self._point).make_context(*arguments, **named)


def told_in_source(point: EntryPoint) -> str | None:
    """Return what a command is for, without importing its module; ``None`` where that cannot be told.

    Parameters
    ----------
    point : EntryPoint
        Names a function, or what is made of one: ``command = on_warehouse(function)``, told by its docstring; or a
        Typer application, told by its ``help``.
    """
    try:
        spec = find_spec(point.module)
        tree = ast.parse(Path(str(spec and spec.origin)).read_text(encoding="utf-8"))
    except (ImportError, OSError, SyntaxError, ValueError):
        return None
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    made = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name)
    }.get(point.attr)
    if made is None:
        return _first_words(functions.get(point.attr))
    for named in made.keywords:
        if named.arg == "help" and isinstance(named.value, ast.Constant):
            return str(named.value.value)
    return _first_words(next((functions.get(each.id) for each in made.args if isinstance(each, ast.Name)), None))


def _first_words(function: ast.FunctionDef | None) -> str | None:
    said = None if function is None else ast.get_docstring(function)
    return None if said is None else said.split("\n\n")[0]


def load_command(point: EntryPoint) -> Any:
    """Return the command that an entry point names.

    Parameters
    ----------
    point : EntryPoint
        Of the group ``txntable.commands``.

    Returns
    -------
    command
        As Typer's groups hold them.  Where it cannot be loaded, a command that says why when called: help and all
        other commands work as ever.
    """
    try:
        return _made(point.name, point.load())
    except MissingDependencyError as error:
        return _unavailable(point.name, error)
    except (Exception, SystemExit) as cause:  # noqa: BLE001  it is another's code, and may raise anything
        unusable = _missing_or_broken(point, cause)
        unusable.__cause__ = cause
        return _unavailable(point.name, unusable)


def _made(name: str, loaded: Any) -> Any:
    if isinstance(loaded, typer.Typer):
        command: Any = typer.main.get_command(plain(loaded))
        command.name = name
        return command
    application = typer.Typer(add_completion=False, rich_markup_mode=PLAIN)
    application.command(name, cls=PlainCommand)(loaded)
    return typer.main.get_command(application)


def _missing_or_broken(point: EntryPoint, cause: BaseException) -> MissingDependencyError:
    if isinstance(cause, ModuleNotFoundError) and str(cause.name).split(".")[0] in OPTIONAL_LIBRARIES:
        return MissingDependencyError(
            f"`txntable {point.name}` needs a library that is not installed; pip install 'txntable[spark,demo]'",
            missing=cause.name,
        )
    return MissingDependencyError(
        f"`txntable {point.name}` cannot be loaded; mend or remove the package that brings it",
        missing=point.value,
        package=None if point.dist is None else point.dist.name,
        reason=f"{type(cause).__name__}: {cause}",
    )


def _unavailable(name: str, error: MissingDependencyError) -> Any:
    application = typer.Typer(add_completion=False, rich_markup_mode=PLAIN)

    @application.command(
        name,
        help=f"Not available here: {error.facts.get('missing')} {_why(error)}.",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    )
    def unavailable(context: typer.Context) -> None:
        tell_error(error)
        raise typer.Exit(1) from error

    return typer.main.get_command(application)


def _why(error: MissingDependencyError) -> str:
    return "cannot be loaded" if "reason" in error.facts else "is not installed"

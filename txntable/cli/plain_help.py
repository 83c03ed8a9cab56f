"""How help looks: lines without frames, as Kafka's and most tools print it.

Owns that nothing in it is cut: in 80 columns frames leave no room for an option such as `--headers-key-separator`, and
a list of commands says of each its whole first sentence.  And that what a value is stands there in the field's words
(`TOPIC`, `MS`), not in Python's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

PLAIN = None
"""Typer's mode for what is told without frames: help, and errors about arguments."""


_KIND = re.compile(r" <[^<>]*>$")
"""What Typer says behind an argument's name: of which kind it is to Python."""


class PlainCommand(TyperCommand):
    """A command whose help says of an argument what it is called, and not of which kind it is to Python."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options."""
        told: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is not None:
                is_argument = each.param_type_name == "argument"
                told[each.param_type_name].append((_KIND.sub("", record[0]) if is_argument else record[0], record[1]))
        for kind, records in told.items():
            if records:
                with formatter.section(f"{kind.capitalize()}s"):
                    formatter.write_dl(records)


class PlainGroup(TyperGroup):
    """A group of commands whose help says of each what its first sentence says."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, each with its whole first sentence."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        told = [
            (name, command.get_short_help_str(limit=len(command.help or "") + 1)) for name, command in found if command
        ]
        with formatter.section("Commands"):
            formatter.write_dl(told)


def plain(application: typer.Typer) -> typer.Typer:
    """Return an application, whoever made it, whose help is plain."""
    application.rich_markup_mode = PLAIN
    # Of its own, another package's application may have one; and so may its commands.
    if not isinstance(application.info.cls, type):
        application.info.cls = PlainGroup
    for each in application.registered_commands:
        each.cls = PlainCommand if each.cls in (None, TyperCommand) else each.cls
    return application


def run_alone(command: Callable[..., None]) -> None:
    """Run a command that is a program by itself, as ``python -m`` does, and exit."""
    application = typer.Typer(add_completion=False, rich_markup_mode=PLAIN)
    application.command(cls=PlainCommand)(command)
    application()

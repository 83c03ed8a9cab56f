"""How help looks: lines without frames, as Kafka's and most tools print it.

Owns that nothing in it is cut: in 80 columns frames leave no room for an option such as `--headers-key-separator`, and
a list of commands says of each its whole first sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup

PLAIN = None
"""Typer's mode for what is told without frames: help, and errors about arguments."""


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
    # Of its own, another package's application may have one.
    if not isinstance(application.info.cls, type):
        application.info.cls = PlainGroup
    return application


def run_alone(command: Callable[..., None]) -> None:
    """Run a command that is a program by itself, as ``python -m`` does, and exit."""
    application = typer.Typer(add_completion=False, rich_markup_mode=PLAIN)
    application.command()(command)
    application()

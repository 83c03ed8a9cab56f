"""The reference of the command line, from Typer: every command with its usage, arguments and options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from tools.documentation.tables import table
from txntable.cli.main import application

_INTRODUCTION = """# Command line

`txntable` and its commands. `--warehouse`, `--storage-option` and `--output` may stand before the noun or after the
verb; `TXNTABLE_WAREHOUSE` names the warehouse, too. Commands that change or delete what is there are
dry runs until `--execute`.

| exit code | of every command |
|---|---|
| 0 | everything was done, or there was nothing to do |
| 1 | something failed; of a job, the next run retries it |
| 2 | wrong usage |
| 3 | only `txntable check`: something is late |
| 130, 143 | Ctrl-C, SIGTERM |
"""


def page() -> str:
    """Return the page, which has every command."""
    return "\n".join([_INTRODUCTION, *(_described(path, command) for path, command in commands())])


def commands() -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, by its whole name."""
    yield from _below("txntable", typer.main.get_command(application))


def _below(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    members = getattr(command, "commands", None)
    if members is None:
        yield path, command
        return
    for name, member in members.items():
        # One that is not loaded before it is called: its context has the command itself.
        loaded = member.make_context(name, [], resilient_parsing=True).command
        yield from _below(f"{path} {name}", loaded)


def _described(path: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name != "argument" and not each.hidden]
    usage = " ".join([path, "[OPTIONS]", *(_shown(each) for each in arguments)])
    parts = [f"## {path}\n", f"{_text(command.help)}\n", f"```text\n{usage}\n```\n"]
    if arguments:
        parts.append(table(("argument", "meaning"), ((f"`{_shown(each)}`", _text(each.help)) for each in arguments)))
    if options:
        parts.append(table(("option", "meaning"), ((f"`{_named(each)}`", _meaning(each)) for each in options)))
    return "\n".join(parts)


def _shown(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    name = f"{name}..." if argument.nargs != 1 and "..." not in name else name
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _named(option: Any) -> str:
    flags = ", ".join([*option.opts, *option.secondary_opts])
    return flags if option.is_flag else f"{flags} {option.metavar or option.name.upper()}"


def _meaning(option: Any) -> str:
    default = option.default
    told = option.is_flag or option.required or default is None or callable(default) or default in ([], ())
    notes = [] if told else [f"Default: {_value(getattr(default, 'value', default))}."]
    if option.required:
        notes.append("Required.")
    if option.envvar:
        notes.append(f"Environment: `{option.envvar}`.")
    return " ".join([_text(option.help), *notes])


def _value(default: object) -> str:
    return "a tab" if default == "\t" else f"`{default}`"


def _text(text: str | None) -> str:
    # Typer's mark where the short help ends; within a code span a sign stands for itself.
    parts = (text or "").replace("\f", "").strip().split("`")
    return "`".join(part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(parts))

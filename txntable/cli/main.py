"""The command line ``txntable``: nouns, each with its verbs.

Owns the root of the commands and the exit codes: 0 (done), 1 (failed, one line on standard error), 2 (usage), 3
(`check` only: something is late), 130 and 143 (ended by SIGINT or SIGTERM, one line on standard error).  Which commands
there are is said in ``txntable.cli.extension``.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from txntable.cli.connection import RootOutput, RootStorageOption, RootWarehouse
from txntable.cli.extension import ExtensibleGroup
from txntable.cli.interruption import leave_requests, watched
from txntable.cli.logs import LogLevel, LogLevelOption
from txntable.cli.output import FULL, escape_logs, flush_output, refuse_output, write_out
from txntable.cli.plain_help import PLAIN

application = typer.Typer(
    name="txntable",
    cls=ExtensibleGroup,
    help="Tables with Kafka's transactions on object storage.",
    epilog="Exit codes: 0 done; 1 failed; 2 wrong usage; 3 something is late (check); 130 and 143 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=PLAIN,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        write_out(f"txntable {version('txntable')}\n")
        raise typer.Exit


@application.callback()
def root(  # noqa: PLR0913  the interface of all commands
    context: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version.")
    ] = False,
    warehouse: RootWarehouse = None,
    storage_option: RootStorageOption = None,
    output: RootOutput = None,
    log_level: LogLevelOption = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="The same as --log-level info.")] = False,
) -> None:
    """Tables with Kafka's transactions on object storage.

    What is said of a warehouse here holds for every command, which finds it in its context.
    """
    if verbose and log_level is None:
        context.params["log_level"] = LogLevel.INFO


def main() -> None:
    """Run the command that the arguments of the process say, and exit."""
    escape_logs()
    try:
        with watched():
            application()
    except OSError as error:
        # What fails in a store is an error of ours by now: this one is of the answer.
        if error.filename is not None or error.errno not in FULL:
            raise
        refuse_output(error)
    except SystemExit as end:
        flush_output()
        leave_requests(end.code)
        raise
    finally:
        flush_output()

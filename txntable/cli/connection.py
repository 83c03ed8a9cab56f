"""Which warehouse a command works on and how it answers: the options that all commands share.

Owns `--warehouse`, `--storage-option`, `--output` and `--log-level`, which may stand before the noun or after the verb
(there they are stronger), and how a failure is told: one line on standard error and exit code 1; an interruption: 130
or 143.  Must not know of any single command.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

import txntable
from txntable.cli.interruption import exit_code, interruptible, word
from txntable.cli.logs import LogLevelOption, show_logs
from txntable.cli.output import Output, OutputFormat, output_for, tell
from txntable.cli.suggestion import suggestion
from txntable.errors import TxnTableError
from txntable.storage.object_store import ObjectStore, StoreSpec
from txntable.storage.open import open_store

WAREHOUSE_VARIABLE = "TXNTABLE_WAREHOUSE"

_CONTEXT = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
_URL_HELP = "A folder, s3://bucket/prefix, gs://… or az://…."
_STORAGE_HELP = "An option of the store's client; may be repeated."
_OUTPUT_HELP = "How the answer is printed."

RootWarehouse = Annotated[str | None, typer.Option("--warehouse", "-w", metavar="URL", help=_URL_HELP)]
RootStorageOption = Annotated[
    list[str] | None, typer.Option("--storage-option", metavar="NAME=VALUE", help=_STORAGE_HELP)
]
RootOutput = Annotated[OutputFormat | None, typer.Option("--output", "-o", help=_OUTPUT_HELP)]
Execute = Annotated[bool, typer.Option("--execute", help="Do it; without this: say what would be done.")]
"""Of all commands that are a dry run until it is said."""

_Warehouse = Annotated[
    str | None, typer.Option("--warehouse", "-w", envvar=WAREHOUSE_VARIABLE, metavar="URL", help=_URL_HELP)
]
_SHARED = tuple(
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
    for name, default, annotation in (
        ("warehouse", None, _Warehouse),
        ("storage_option", None, RootStorageOption),
        ("output", OutputFormat.TABLE, RootOutput),
        ("log_level", None, LogLevelOption),
    )
)


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a command works and how it answers.

    Attributes
    ----------
    url : str
        The warehouse's.
    storage_options : dict of str to str
        Of the store's client; never shown.
    output : Output
        Prints the answer.
    """

    url: str
    storage_options: dict[str, str] = field(repr=False)
    output: Output

    def open(self, *, recovering: bool = False) -> txntable.Warehouse:
        """Open the warehouse; see :meth:`txntable.warehouse.warehouse.Warehouse.open`.

        Raises
        ------
        WarehouseNotFoundError
            There is none: create one, or check the URL.
        """
        # By its package's name: it is imported when a warehouse is opened, not for `--help`.
        return txntable.Warehouse.open(self.url, self.storage_options, recovering=recovering)

    def store(self) -> ObjectStore:
        """Return the store, where a warehouse may be that cannot be opened."""
        return open_store(StoreSpec(self.url, self.storage_options))


def on_warehouse(command: Callable[..., None], *, default_url: str | None = None) -> Callable[..., None]:
    """Return `command` as the command line calls it: with the shared options in place of its connection.

    Parameters
    ----------
    command : callable
        Its first parameter takes a :class:`Connection`; the others are Typer's.
    default_url : str, optional
        Where the command works when nothing is said; it then does not look at the environment
        variable either.  Default: one of the two must be given.

    Returns
    -------
    callable
        With a signature for Typer.  An error of ours becomes one line and exit code 1, a signal one line and its code.
    """
    signature = inspect.signature(command, eval_str=True)
    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in signature.parameters.values()][1:]
    shared = (
        _SHARED
        if default_url is None
        else (_SHARED[0].replace(default=default_url, annotation=RootWarehouse), *_SHARED[1:])
    )

    @functools.wraps(command)
    def run(context: typer.Context, **arguments: Any) -> None:
        said = (_said(context, parameter.name, arguments.pop(parameter.name)) for parameter in shared)
        url, pairs, output, level = said
        show_logs(level)
        if not url:
            raise typer.BadParameter(f"say which one, or set {WAREHOUSE_VARIABLE}", param_hint="--warehouse")
        connection = Connection(url, storage_options(pairs or ()), output_for(output))
        try:
            with interruptible():
                command(connection, **arguments)
        except TxnTableError as error:
            tell_error(error, suggestion(error, connection.open))
            raise typer.Exit(1) from error
        except KeyboardInterrupt as interruption:
            tell(word(interruption))
            raise typer.Exit(exit_code(interruption)) from interruption

    # Typer reads the signature; the one of the wrapped function would lead it to the connection.
    parameters = [_CONTEXT, *own, *shared]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    del run.__wrapped__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _said(context: typer.Context, name: str, value: Any) -> Any:
    """Return the value of a shared option: said after the verb, else before the noun, else from elsewhere."""
    source, root = context.get_parameter_source(name), context.find_root()
    if root is context or (source is not None and source.name == "COMMANDLINE"):
        return value
    return root.params.get(name) or value


def storage_options(pairs: Sequence[str]) -> dict[str, str]:
    """Return ``NAME=VALUE`` pairs as a mapping; a usage error when one is no pair."""
    return named_values(pairs, "--storage-option")


def named_values(pairs: Sequence[str], option: str, form: str = "NAME=VALUE") -> dict[str, str]:
    """Return the ``NAME=VALUE`` pairs of a repeated option, whose help may call them otherwise (`form`).

    Raises
    ------
    typer.BadParameter
        One of them is no pair: exit code 2.
    """
    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            # The value stays unsaid: it may be a secret.
            raise typer.BadParameter(f"give {form}", param_hint=option)
        values[name] = value
    return values


def changed_values(config: Sequence[str], delete_config: Sequence[str]) -> dict[str, str | None]:
    """Return the settings that ``--config`` and ``--delete-config`` change; ``None``: back to the default.

    Raises
    ------
    typer.BadParameter
        One is no pair, or is said to be both: exit code 2.
    """
    said = named_values(config, "--config")
    twice = sorted(set(said) & set(delete_config))
    if twice:
        raise typer.BadParameter(f"{twice[0]} is in --config too", param_hint="--delete-config")
    return {**said, **dict.fromkeys(delete_config)}


def tell_error(error: TxnTableError, suggested: str | None = None) -> None:
    """Print what went wrong: code, what happened, what to do, facts, notes, what may have been meant; in one line."""
    said = [f"error: {error.code} {error}", *getattr(error, "__notes__", ()), f"({suggested})" if suggested else ""]
    tell(" ".join(" ".join(said).split()))

"""``python -m txntable.testing``: a mocked S3 for a shell, until it is interrupted; what is in it goes with it.

Owns the lines that a shell takes: the variables by which every client of AWS finds the server.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import typer

from txntable.cli.connection import WAREHOUSE_VARIABLE

if TYPE_CHECKING:
    from txntable.testing.moto_server import LockedMotoServer

_ENDS = {signal.SIGINT, signal.SIGTERM}


def exported(server: LockedMotoServer) -> Mapping[str, str]:
    """Return the variables of the environment in which commands work on a running server."""
    return {**server.storage_options, WAREHOUSE_VARIABLE: f"{server.url}/lake"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM; return the exit code."""
    what = "A mocked S3 until it is interrupted: prints the variables that another shell needs to work on it."
    argparse.ArgumentParser(prog="python -m txntable.testing", description=what).parse_args(arguments)
    try:
        from txntable.testing.moto_server import LockedMotoServer  # noqa: PLC0415  it needs what is not installed by default
    except ImportError as error:
        typer.echo(
            "error: MISSING_DEPENDENCY the mocked S3 is not installed; pip install 'txntable[testing]' "
            f"missing={error.name}",
            err=True,
        )
        return 1
    # Kept from the beginning, also from the server's threads: one that comes early ends it as well.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    with LockedMotoServer() as server:
        for name, value in exported(server).items():
            typer.echo(f"export {name}={value}")
        typer.echo("a mocked S3; paste these lines into another shell; Ctrl-C ends it", err=True)
        signal.sigwait(_ENDS)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""``python -m txntable.testing``: a mocked S3 for a shell, until it is interrupted; what is in it goes with it.

Owns the lines that a shell takes: the variables by which every client of AWS finds the server.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping

import typer

from txntable.cli.connection import WAREHOUSE_VARIABLE
from txntable.testing.moto_server import LockedMotoServer

_ENDS = {signal.SIGINT, signal.SIGTERM}


def exported(server: LockedMotoServer) -> Mapping[str, str]:
    """Return the variables of the environment in which commands work on a running server."""
    return {**server.storage_options, WAREHOUSE_VARIABLE: f"{server.url}/lake"}


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    # Kept from the beginning, also from the server's threads: one that comes early ends it as well.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    with LockedMotoServer() as server:
        for name, value in exported(server).items():
            typer.echo(f"export {name}={value}")
        typer.echo("a mocked S3; paste these lines into another shell; Ctrl-C ends it", err=True)
        signal.sigwait(_ENDS)


if __name__ == "__main__":
    main()

"""``python -m txntable.testing``: a mocked S3 for a shell, until it is interrupted; what is in it goes with it.

Owns the lines that a shell takes: the variables by which every client of AWS finds the server.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Mapping

import typer

from txntable.cli.connection import WAREHOUSE_VARIABLE
from txntable.testing.moto_server import LockedMotoServer


def exported(server: LockedMotoServer) -> Mapping[str, str]:
    """Return the variables of the environment in which commands work on a running server."""
    return {**server.storage_options, WAREHOUSE_VARIABLE: f"{server.url}/lake"}


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with LockedMotoServer() as server, contextlib.suppress(KeyboardInterrupt):
        for name, value in exported(server).items():
            typer.echo(f"export {name}={value}")
        typer.echo("a mocked S3; paste these lines into another shell; Ctrl-C ends it", err=True)
        signal.pause()


if __name__ == "__main__":
    main()

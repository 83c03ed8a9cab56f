"""Spark's daemon of Python workers, whose workers open stores with faults (``spark.python.daemon.module``).

So faults reach the executors of a real cluster, and nothing of the product knows of them.  The daemon must not start a
thread before it forks, hence loads nothing of ours; a worker does.
"""

from __future__ import annotations

import importlib
import os
import socket

from pyspark import daemon

EXECUTOR = "FAULTY_DAEMON_EXECUTOR"

_plain_worker = daemon.worker


def faulty_worker(sock: socket.socket, authenticated: bool) -> int:
    """Be a worker: load the faults first."""
    importlib.import_module("tests.spark.faulty_store").install()
    return _plain_worker(sock, authenticated)


if __name__ == "__main__":
    os.environ[EXECUTOR] = str(os.getppid())
    daemon.worker = faulty_worker
    daemon.manager()

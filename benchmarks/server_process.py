"""A server that a benchmark starts: its port, until it answers, and its end."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_BEGIN_S, _END_S = 60.0, 30.0


def free_port() -> int:
    """Return a port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(answers: Callable[[], bool], server: subprocess.Popen[bytes], output: Path) -> None:
    """Wait until a server answers; raises RuntimeError with the end of its output if it does not."""
    until = time.monotonic() + _BEGIN_S
    while not answers():
        if server.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"the server does not answer: {output.read_text(errors='replace')[-2_000:]}")
        time.sleep(0.2)


@contextmanager
def ended(server: subprocess.Popen[bytes], stop: Callable[[], None]) -> Iterator[None]:
    """End a server after the block: by `stop`, and where it goes on, by a kill."""
    try:
        yield
    finally:
        stop()
        try:
            server.wait(_END_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()

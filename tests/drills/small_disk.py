"""A file system that is full after some kilobytes: in a mount namespace of its own, reached past it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """Give the path of such a file system; skip the test where the kernel makes no namespace."""
    folder.mkdir()
    mount = f"mount -t tmpfs -o size={kilobytes}k none '{folder}' && echo mounted && exec cat"
    command, pipe = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount], subprocess.PIPE
    try:
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    except FileNotFoundError:
        pytest.skip("no unshare here")
    with process:
        assert process.stdout is not None
        assert process.stdin is not None
        if process.stdout.readline() != "mounted\n":
            process.kill()
            pytest.skip("the kernel gives nobody a mount namespace here")
        try:
            yield Path(f"/proc/{process.pid}/root{folder}")
        finally:
            process.stdin.close()


def free_bytes(place: Path) -> int:
    """Return how much can still be written."""
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize

"""Turns of writing to a folder of a local store: the kernel's lock of it, on which nothing depends."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from pathlib import Path
from typing import NoReturn

import pytest

from txntable.storage.local_folder import LocalFolder
from txntable.storage.object_store import StoreSpec
from txntable.storage.system_calls import MachineCalls


def folder_at(path: Path) -> LocalFolder:
    return LocalFolder(StoreSpec(str(path), {}, "page-cache"))


def test_turn_of_a_folder_is_one_writers_until_it_is_left(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    first, second = folder_at(tmp_path), folder_at(tmp_path)

    turn = first.turn("log")
    assert turn is not None
    with turn as is_turn:
        assert is_turn
        assert second.turn("log") is None
    freed = second.turn("log")

    assert freed is not None
    with freed as is_turn:
        assert is_turn


def test_turn_ends_with_its_process(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        turn = folder_at(tmp_path).turn("log")
        assert turn is not None
        with turn:
            os.write(write_end, b"x")
            os.kill(os.getpid(), signal.SIGKILL)
    os.read(read_end, 1)
    os.waitpid(child, 0)

    assert folder_at(tmp_path).turn("log") is not None


def test_turn_of_a_folder_that_is_not_there_is_granted_and_none(tmp_path: Path) -> None:
    turn = folder_at(tmp_path).turn("log")

    assert turn is not None
    with turn as is_turn:
        assert not is_turn


def test_turn_where_the_file_system_has_no_locks_is_granted_and_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise OSError(errno.ENOLCK, "no locks available")

    (tmp_path / "log").mkdir()
    monkeypatch.setattr(fcntl, "flock", refuse)
    turn = folder_at(tmp_path).turn("log")

    assert turn is not None
    with turn as is_turn:
        assert not is_turn


def test_disk_of_a_test_has_no_turns(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    turn = LocalFolder(StoreSpec(str(tmp_path), {}, "page-cache"), MachineCalls()).turn("log")

    assert turn is not None
    with turn as is_turn:
        assert not is_turn

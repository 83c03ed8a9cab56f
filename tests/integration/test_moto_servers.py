"""Servers of moto in one process, whose state they share: each begins with empty buckets of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from txntable.errors import WarehouseAlreadyExistsError
from txntable.testing.__main__ import exported, main
from txntable.testing.moto_server import LockedMotoServer
from txntable.warehouse.warehouse import Warehouse


def create(server: LockedMotoServer) -> None:
    Warehouse.create(f"{server.url}/warehouse", server.storage_options)


def test_server_begins_empty_though_another_has_run_on_since_the_last_one_of_its_bucket() -> None:
    with LockedMotoServer("outer") as outer:
        create(outer)
        for _ in range(2):
            with LockedMotoServer("inner") as inner:
                create(inner)

        with pytest.raises(WarehouseAlreadyExistsError):
            create(outer)


def test_bucket_of_two_servers_stays_until_the_last_of_them_stops() -> None:
    with LockedMotoServer("both") as first:
        create(first)
        with LockedMotoServer("both"):
            pass

        with pytest.raises(WarehouseAlreadyExistsError):
            create(first)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_server_for_a_shell_prints_what_commands_need_and_ends_when_it_is_told(end: signal.Signals) -> None:
    program = [sys.executable, "-m", "txntable.testing"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        # It says that it serves once everything is printed.
        assert "Ctrl-C ends it" in server.stderr.readline()
        server.send_signal(end)
        printed, _ = server.communicate()
    variables = dict(line.removeprefix("export ").split("=", 1) for line in printed.splitlines())

    assert server.returncode == 0
    assert variables["TXNTABLE_WAREHOUSE"] == "s3://warehouse/lake"
    assert variables["AWS_ENDPOINT_URL"].startswith("http://127.0.0.1:")


def test_commands_work_on_the_server_in_the_environment_that_it_prints() -> None:
    with LockedMotoServer("shell") as server:

        def txntable(*words: str) -> str:
            program = [sys.executable, "-c", "from txntable.cli.main import main; main()", *words]
            return subprocess.check_output(program, env={**os.environ, **exported(server)}, text=True)

        txntable("warehouse", "create")
        txntable("topics", "create", "orders")

        assert "orders" in txntable("topics", "list")


def test_server_for_a_shell_says_what_to_install_where_moto_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "txntable.testing.moto_server", None)

    assert main([]) == 1

    assert "pip install 'txntable[testing]'" in capsys.readouterr().err


@pytest.mark.parametrize(("word", "code"), [("--help", 0), ("--port", 2)])
def test_server_for_a_shell_does_not_begin_where_help_or_something_unknown_is_asked_for(word: str, code: int) -> None:
    with pytest.raises(SystemExit) as ended:
        main([word])

    assert ended.value.code == code

"""``txntable report`` and ``txntable ui``."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.unit.cli.conftest import Call
from tests.unit.report.reading_page import read_page
from txntable.cli.report import DEFAULT_FILE
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture
def orders(warehouse: Warehouse) -> Warehouse:
    warehouse.admin().create_topic("orders")
    with warehouse.producer() as producer:
        producer.send("orders", key=b"a key", value=b"a value")
    return warehouse


def test_report_writes_one_page_and_says_where(call: Call, orders: Warehouse, tmp_path: Path) -> None:
    file = tmp_path / "page.html"

    result = call("report", str(file), "--output", "json")

    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout) == {"file": str(file), "bytes": file.stat().st_size}
    document = read_page(file.read_text(encoding="utf-8"))
    assert document.first("h1").text == orders.url
    assert "a value" in document.first(id="records").text
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "warehouse"}


def test_report_has_a_name_of_its_own_and_replaces_what_it_was(
    call: Call, orders: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(DEFAULT_FILE).write_text("of yesterday")

    assert call("report").exit_code == 0

    assert Path(DEFAULT_FILE).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_report_without_records_has_no_content_of_any(call: Call, orders: Warehouse, tmp_path: Path) -> None:
    file = tmp_path / "page.html"

    assert call("report", str(file), "--records", "0").exit_code == 0

    page = file.read_text(encoding="utf-8")
    assert "a value" not in page
    assert "a key" not in page
    assert "orders" in page


def test_report_behind_a_link_is_written_where_the_link_leads(call: Call, orders: Warehouse, tmp_path: Path) -> None:
    public = tmp_path / "public"
    public.mkdir()
    (tmp_path / "current.html").symlink_to("public/page.html")

    for _ in range(2):
        assert call("report", str(tmp_path / "current.html")).exit_code == 0

        assert (tmp_path / "current.html").is_symlink()
        assert (public / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [path.name for path in public.iterdir()] == ["page.html"]


def test_report_keeps_the_permissions_of_the_file_that_it_replaces(
    call: Call, orders: Warehouse, tmp_path: Path
) -> None:
    """It has keys and values of records."""
    file = tmp_path / "page.html"
    file.touch(mode=0o600)

    assert call("report", str(file)).exit_code == 0

    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def run(*words: str, orders: Warehouse, into: int | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", "from txntable.cli.main import main; main()", "--warehouse", orders.url, *words]
    return subprocess.run(
        command, stdout=subprocess.PIPE if into is None else into, stderr=subprocess.PIPE, check=False
    )


@pytest.mark.parametrize("name", ["pipe", "/dev/stdout", "/dev/fd/1"])
def test_report_into_a_pipe_is_read_from_it(orders: Warehouse, tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    # Open for both: to open it waits for nobody, and holds the page, or what there is of it, until it is read.
    descriptor = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)

    ran = run(
        "report", str(tmp_path / name), "--records", "0", orders=orders, into=None if name == "pipe" else descriptor
    )

    assert (ran.returncode, ran.stderr) == (0, b"")
    assert os.read(descriptor, 15) == b"<!doctype html>"
    assert (tmp_path / "pipe").is_fifo()
    os.close(descriptor)


def test_report_into_a_pipe_that_nobody_reads_any_more_is_no_error(orders: Warehouse) -> None:
    reading, writing = os.pipe()
    os.close(reading)

    ran = run("report", "-", orders=orders, into=writing)

    os.close(writing)
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_report_keeps_the_owner_and_the_group_of_the_file_that_it_replaces(
    call: Call, orders: Warehouse, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.touch()
    os.chown(file, 1000, 1234)

    assert call("report", str(file)).exit_code == 0

    assert (file.stat().st_uid, file.stat().st_gid) == (1000, 1234)


def test_report_in_the_place_of_a_page_that_may_only_be_read_takes_it(
    call: Call, orders: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug: it was opened for writing once it had the permissions, which only root may do."""
    file = tmp_path / "page.html"
    file.touch(mode=0o444)
    opened: list[int] = []
    own = os.open

    def opening(path: str, flags: int, mode: int = 0o777) -> int:
        opened.append(mode)
        return own(path, flags, mode)

    monkeypatch.setattr(os, "open", opening)

    assert call("report", str(file)).exit_code == 0

    assert stat.S_IMODE(file.stat().st_mode) == 0o444
    assert 0o600 in opened


def test_report_in_the_place_of_a_link_to_itself_is_written(call: Call, orders: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")

    assert call("report", str(tmp_path / "loop")).exit_code == 0

    assert (tmp_path / "loop").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_report_named_by_a_dash_is_the_standard_output(
    call: Call, orders: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    result = call("report", "-")

    assert result.exit_code == 0
    assert result.stdout.startswith("<!doctype html>")
    assert result.stdout.rstrip().endswith("</html>")
    assert {path.name for path in tmp_path.iterdir()} == {"warehouse"}


def test_report_that_cannot_be_written_says_so_and_leaves_nothing(
    call: Call, orders: Warehouse, tmp_path: Path
) -> None:
    result = call("report", str(tmp_path / "no folder" / "page.html"))

    assert result.exit_code == 1
    assert "name another file" in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"warehouse"}


@pytest.mark.parametrize("option", ["--records=-1", "--records=10001", "--entries=x"])
def test_report_refuses_a_limit_that_is_none(call: Call, orders: Warehouse, option: str) -> None:
    assert call("report", option).exit_code == 2


def test_ui_serves_the_page_until_it_is_interrupted(orders: Warehouse) -> None:
    command = [sys.executable, "-m", "txntable.jobs.command", "--warehouse", orders.url, "--output", "json", "ui"]
    with subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        told = b"".join(iter(process.stdout.readline, b"}\n")) + b"}"
        url = json.loads(told)["url"]
        with urlopen(url, timeout=60) as answer:
            page = answer.read().decode()
        with pytest.raises(HTTPError) as refused:
            urlopen(Request(url, headers={"Host": "rebound.example"}), timeout=60)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()

    assert read_page(page).first("h1").text == orders.url
    assert refused.value.code == 421
    refused.value.close()
    assert (process.returncode, said) == (130, b"interrupted\n")


def test_ui_says_that_a_port_is_taken(call: Call, orders: Warehouse) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = call("ui", "--port", str(taken.getsockname()[1]))

    assert result.exit_code == 1
    assert "say another one with --port" in result.stderr

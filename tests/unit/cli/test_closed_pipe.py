"""Who closes the pipe has what he wanted: the command ends as it would have, and says nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from txntable.format.records import TopicPartition
from txntable.warehouse.warehouse import Warehouse


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A warehouse with a topic and a group."""
    url = str(tmp_path_factory.mktemp("closed") / "warehouse")
    warehouse = Warehouse.create(url)
    warehouse.admin().create_topic("raw")
    with warehouse.producer() as producer:
        producer.send("raw", b"v")
    warehouse.admin().alter_consumer_group_offsets("readers", {TopicPartition("raw", 0): 1})
    return url


RESET = "groups reset-offsets readers --all-topics --to-earliest"


@pytest.mark.parametrize(
    ("words", "ended", "unbuffered"),
    [
        ("topics list", 0, ""),
        ("topics describe raw", 0, "1"),
        ("topics describe raw --output json", 0, "1"),
        ("topics describe missing", 1, ""),
        ("vacuum", 0, ""),
        ("check --metrics prometheus", 0, "1"),
        ("watch --interval-ms 100", 0, ""),
        ("watch --interval-ms 100 --output json", 0, "1"),
        (f"{RESET} --export", 0, "1"),
        ("--version", 0, "1"),
    ],
)
def test_command_ends_as_it_would_have_where_nobody_reads_its_answer(
    url: str, words: str, ended: int, unbuffered: str
) -> None:
    ran = run(url, words, unbuffered)

    assert ran.returncode == ended
    assert b"Traceback" not in ran.stderr
    assert b"Broken" not in ran.stderr


@pytest.mark.parametrize("words", ["vacuum", "topics delete raw", "compact --once"])
def test_work_is_done_where_nobody_reads_notes_and_progress_either(url: str, words: str) -> None:
    assert run(url, words, "", errors=subprocess.STDOUT).returncode == 0


def run(url: str, words: str, unbuffered: str, errors: int = subprocess.PIPE) -> subprocess.CompletedProcess[bytes]:
    """Run a command whose standard output is a pipe that was closed before."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", "from txntable.cli.main import main; main()", *words.split()]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered, "TXNTABLE_WAREHOUSE": url}
    try:
        return subprocess.run(command, stdout=writing, stderr=errors, check=False, env=environment, timeout=60)
    finally:
        os.close(writing)


def test_damage_is_an_error_where_nobody_reads_what_it_is(url: str, tmp_path: Path) -> None:
    subprocess.run(["cp", "-r", url, str(tmp_path / "damaged")], check=True)
    segment = next((tmp_path / "damaged" / "topics" / "raw" / "_segments").rglob("p00000/*.parquet"))
    segment.write_bytes(segment.read_bytes()[:-1])

    assert run(str(tmp_path / "damaged"), "warehouse verify", "").returncode == 1

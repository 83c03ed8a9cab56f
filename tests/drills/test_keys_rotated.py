"""Keys are rotated under load: a file gets others, and the old ones are refused from then on.

Lost: nothing.  Not lost: every transaction that was told committed, once; every record is read once, as nobody was
restarted.  Processes whose keys are in options or in the environment end with ``StorePermissionError`` instead, and go
on by their transactional id when they are started with the new key.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.doubles.key_gate import GatedServer
from tests.drills.runbook import Shell
from tests.drills.stage import OLD, Stage
from txntable.errors import StorePermissionError
from txntable.storage.aws_session import s3_client
from txntable.storage.object_store import StoreSpec

pytestmark = pytest.mark.s3
ROLES = ("producer", "consumer", "job")
EACH = 3


class Rotated:
    """The stage, a file of keys, and the server that refuses some."""

    def __init__(self, server: GatedServer, folder: Path) -> None:
        self.server, self.file = server, folder / "credentials"
        client = s3_client(StoreSpec(server.url, server.storage_options))
        of_admin = {name: value for name, value in server.storage_options.items() if name != "AWS_REGION"}
        shell = Shell(folder, {**of_admin, "AWS_DEFAULT_REGION": "us-east-1"})
        self.stage = Stage(dict(server.storage_options), client, shell)
        self.stage.create()
        self.shell = shell

    def give(self, key: str, secret: str) -> None:
        """Replace the file at once, as tools do."""
        new = self.file.with_suffix(".new")
        new.write_text(f"[default]\naws_access_key_id={key}\naws_secret_access_key={secret}\n")
        new.replace(self.file)

    @contextmanager
    def process(self, role: str) -> Iterator[subprocess.Popen[str]]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
        where = {name: self.stage.options[name] for name in ("AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP", "AWS_REGION")}
        environment = {**kept, **where, "AWS_SHARED_CREDENTIALS_FILE": str(self.file), "AWS_CONFIG_FILE": os.devnull}
        command, pipe = [sys.executable, "-m", "tests.drills.working", role, OLD], subprocess.PIPE
        with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def rotated(tmp_path: Path) -> Iterator[Rotated]:
    with GatedServer("my-lake") as server:
        yield Rotated(server, tmp_path)


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    """What a process says next."""
    assert process.stdout is not None
    found = [process.stdout.readline().strip() for _ in range(count)]
    assert all(found), f"a process has ended: {found}"
    return found


def end(process: subprocess.Popen[str]) -> list[str]:
    """Tell a process to end, and return what else it says."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    said = process.stdout.read().splitlines()
    assert process.wait() == 0
    return said


@pytest.mark.nightly  # three processes that live through two rotations
def test_processes_go_on_with_the_keys_of_their_file_when_the_old_ones_are_refused(rotated: Rotated) -> None:
    shell, server = rotated.shell, rotated.server
    shell.run("aws iam create-user --user-name etl")
    rotated.give("FIRST", "s")
    running = rotated.process
    with running("producer") as producer, running("consumer") as consumer, running("job") as job:
        told, read = lines(producer, EACH), lines(consumer, EACH)
        lines(job, 1)
        for refusal in (("400 Bad Request", "ExpiredToken"), ("403 Forbidden", "InvalidAccessKeyId")):
            old = rotated.file.read_text().split("aws_access_key_id=")[1].split("\n")[0]
            made = next(iter(shell.follow("Rotating keys").values()))
            key = json.loads(made)["AccessKey"]
            rotated.give(key["AccessKeyId"], key["SecretAccessKey"])
            server.refuse(old, *refusal)
            # Of a slow process there may be lines from before in the pipe: it has not met the refusal yet.
            while not server.turned_away[old]:
                told += lines(producer, 1)
            told += lines(producer, EACH)
            read += lines(consumer, EACH)
            lines(job, 2)
        told += end(producer)
        read += end(consumer)
        end(job)

    assert rotated.stage.seen() == told
    assert rotated.stage.offsets("etl") == len(told)
    assert read == told[: len(read)]


def test_process_with_a_key_in_its_options_goes_on_by_its_id_when_it_is_started_with_the_new_one(
    rotated: Rotated,
) -> None:
    stage = rotated.stage
    writer = stage.writer("etl", AWS_ACCESS_KEY_ID="FIRST")
    writer.transact()
    rotated.server.refuse("FIRST", "403 Forbidden", "InvalidAccessKeyId")

    (refused,) = writer.try_to(1)

    assert isinstance(refused, StorePermissionError)
    again = stage.writer("etl", AWS_ACCESS_KEY_ID="SECOND")
    again.transact()
    assert stage.seen() == [*writer.told, *again.told]
